//! Work that goes on behind the conversation: shells, sub-agents and workflows that were started in
//! the background, monitors and timers that will wake the session, and what says that they are over.
//!
//! A result tells that one was started; a notification, in any of three forms, that it is done; and
//! the end of a turn how many sub-agents and workflows still run. A shell that ends with its
//! session says nothing, so all of this is only as good as the session is alive. What ends a
//! sub-agent here ends its turn in its own file too.
//! Format: formats/claude-and-codex.md section 3.3 and appendix A.1.

use super::super::json::Value;
use super::super::{Background, Outcome, Returned, SessionKey, What};
use super::envelope::{is_set, word};
use super::line::{ID_CHARS, Line};
use super::text;

/// A longer result is some file's content: none of those looked for is. That of a sub-agent holds
/// its whole last word.
const RESULT_BYTES_MAX: usize = 256 << 10;
/// Characters of a notification within which its task and status are named; a path may stand
/// between them.
const NOTICE_CHARS: usize = 2000;

/// What a result says of background work. `root` is the session that sub-agents belong to.
pub(super) fn result(root: Option<&str>, line: &mut Line<'_, '_>) {
    let short = |value: &Value<'_>| value.raw().len() <= RESULT_BYTES_MAX;
    let Some(result) = line.envelope.result.filter(short) else { return };
    let names =
        ["backgroundTaskId", "status", "agentId", "taskId", "task_id", "shellId", "shell_id"];
    let [shell, status, agent, task, stopped, read, killed] = result.pick(names);
    let id = |value: Option<Value<'_>>| word(value, ID_CHARS);
    let (launched, runs) = (
        status.is_some_and(|status| status.is("async_launched")),
        status.is_none_or(|status| status.is("running")),
    );
    if let Some(id) = id(shell) {
        line.say(What::Background(Background::Shell(id)));
    } else if launched && let Some(id) = id(agent).or_else(|| id(task)) {
        line.say(What::Background(Background::Agent(id)));
    } else if let Some(id) = id(agent) {
        let outcome = word(status, ID_CHARS).and_then(|status| outcome(&status));
        returned(root, &id, outcome, line);
    } else if let Some(id) = id(stopped).or_else(|| id(killed)) {
        line.say(What::Background(Background::Over(id)));
    } else if !runs && let Some(id) = id(read) {
        line.say(What::Background(Background::Over(id)));
    } else {
        waits(result, id(task), line);
    }
}

/// What a result says of what will wake the session: a monitor, a timer, a wake-up, or the end of
/// one. `CronDelete` answers with the id alone.
fn waits(result: Value<'_>, task: Option<String>, line: &mut Line<'_, '_>) {
    let names = ["timeoutMs", "persistent", "scheduledFor", "stopped", "id", "humanSchedule"];
    let [timeout, persistent, scheduled, stopped, id, schedule] = result.pick(names);
    if let Some(id) = task.filter(|_| timeout.is_some() || persistent.is_some()) {
        let timeout = timeout.filter(|_| !is_set(persistent)).and_then(Value::int);
        let until_ms = line.carried_ms.zip(timeout).map(|(at, timeout)| at.saturating_add(timeout));
        line.say(What::Background(Background::Monitor { id, until_ms }));
    } else if let Some(at_ms) = scheduled.and_then(Value::int) {
        line.say(What::Background(Background::Wakeup(Some(at_ms))));
    } else if is_set(stopped) {
        line.say(What::Background(Background::Wakeup(None)));
    } else if let Some(id) = word(id, ID_CHARS) {
        let recurring = result.get("recurring").and_then(Value::bool) != Some(false);
        let said = match schedule {
            Some(_) => Background::Timer { id, recurring },
            None => Background::Unset(id),
        };
        line.say(What::Background(said));
    }
}

/// A timer that went off: `scheduledTaskId` on the record that it leads to.
pub(super) fn fired(line: &mut Line<'_, '_>) {
    if let Some(id) = word(line.envelope.scheduled, ID_CHARS) {
        line.say(What::Background(Background::Fired(id)));
    }
}

/// What a notification says, if this is the text of one. One without a status tells an event of a
/// monitor, which goes on.
pub(super) fn notice(root: Option<&str>, said: Option<Value<'_>>, line: &mut Line<'_, '_>) {
    for block in said.into_iter().flat_map(text::blocks) {
        let Some(text) = text::block_text(block) else { continue };
        if text::tag(text) != text::Tag::Injected {
            continue;
        }
        let head = text.text_up_to(NOTICE_CHARS).unwrap_or_default();
        let Some(inside) = head.trim_start().strip_prefix("<task-notification>") else { continue };
        let (Some(id), Some(status)) = (element(inside, "task-id"), element(inside, "status"))
        else {
            continue;
        };
        if !matches!(status, "running" | "pending") {
            line.say(What::Background(Background::Over(id.chars().take(ID_CHARS).collect())));
        }
        returned(root, id, outcome(status), line);
    }
}

/// A sub-agent is over. The id may also be that of a shell: then there is nobody whom it tells of.
fn returned(root: Option<&str>, id: &str, outcome: Option<Outcome>, line: &mut Line<'_, '_>) {
    let (Some(root), Some(outcome)) = (root, outcome) else { return };
    let id: String = id.chars().take(ID_CHARS).collect();
    line.say(What::Returned(Returned { to: SessionKey::child(id, root), outcome }));
}

fn outcome(status: &str) -> Option<Outcome> {
    match status {
        "completed" => Some(Outcome::Completed),
        "failed" => Some(Outcome::Error),
        "killed" => Some(Outcome::Aborted),
        _ => None,
    }
}

/// The text of the first element of that name.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    Some(inner.trim()).filter(|inner| !inner.is_empty())
}

/// How many sub-agents and workflows the end of a turn leaves at work; a count of none is not
/// written.
pub(super) fn turn_over(line: &mut Line<'_, '_>) {
    let Some(record) = line.envelope.object else { return };
    let counts = record.pick(["pendingBackgroundAgentCount", "pendingWorkflowCount"]);
    let left = counts.into_iter().flatten().filter_map(Value::uint).sum();
    line.say(What::Background(Background::Left(left)));
}
