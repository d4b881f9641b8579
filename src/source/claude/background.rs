//! Work that goes on behind the conversation: shells, sub-agents and workflows that were started in
//! the background, and what says that they are over.
//!
//! A result tells that one was started; a notification, in any of three forms, that it is done; and
//! the end of a turn how many sub-agents and workflows still run. A shell that ends with its
//! session says nothing, so all of this is only as good as the session is alive.
//! Format: formats/claude-and-codex.md section 3.3 and appendix A.1.

use super::super::json::Value;
use super::super::{Background, What};
use super::envelope::word;
use super::line::{ID_CHARS, Line};
use super::text;

/// A longer result is some file's content: none of those looked for is.
const RESULT_BYTES_MAX: usize = 16 << 10;
/// Characters of a notification within which its task is named.
const NOTICE_CHARS: usize = 400;

/// What a result says of background work.
pub(super) fn result(line: &mut Line<'_, '_>) {
    let short = |value: &Value<'_>| value.raw().len() <= RESULT_BYTES_MAX;
    let Some(result) = line.envelope.result.filter(short) else { return };
    let names =
        ["backgroundTaskId", "status", "agentId", "taskId", "task_id", "shellId", "shell_id"];
    let [shell, status, agent, workflow, stopped, read, killed] = result.pick(names);
    let id = |value: Option<Value<'_>>| word(value, ID_CHARS);
    let (launched, runs) = (
        status.is_some_and(|status| status.is("async_launched")),
        status.is_none_or(|status| status.is("running")),
    );
    if let Some(id) = id(shell) {
        line.say(What::Background(Background::Shell(id)));
    } else if launched && let Some(id) = id(agent).or_else(|| id(workflow)) {
        line.say(What::Background(Background::Agent(id)));
    } else if let Some(id) = id(stopped).or_else(|| id(killed)) {
        line.say(What::Background(Background::Over(id)));
    } else if !runs && let Some(id) = id(read) {
        line.say(What::Background(Background::Over(id)));
    }
}

/// What a notification says, if this is the text of one.
pub(super) fn notice(said: Option<Value<'_>>, line: &mut Line<'_, '_>) {
    for block in said.into_iter().flat_map(text::blocks) {
        let Some(text) = text::block_text(block) else { continue };
        if text::tag(text) != text::Tag::Injected {
            continue;
        }
        let head = text.text_up_to(NOTICE_CHARS).unwrap_or_default();
        let inside = head.trim_start().strip_prefix("<task-notification>");
        let id = inside.and_then(|inside| {
            let (_, rest) = inside.split_once("<task-id>")?;
            rest.split_once("</task-id>")
        });
        if let Some((id, _)) = id.filter(|(id, _)| !id.trim().is_empty()) {
            line.say(What::Background(Background::Over(id.trim().to_owned())));
        }
    }
}

/// How many sub-agents and workflows the end of a turn leaves at work; a count of none is not
/// written.
pub(super) fn turn_over(line: &mut Line<'_, '_>) {
    let Some(record) = line.envelope.object else { return };
    let counts = record.pick(["pendingBackgroundAgentCount", "pendingWorkflowCount"]);
    let left = counts.into_iter().flatten().filter_map(Value::uint).sum();
    line.say(What::Background(Background::Left(left)));
}
