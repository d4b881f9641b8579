//! What a session waits for, of a human; pure.
//!
//! It goes with the phases that ask, and with a process that says it waits whatever the status. Who
//! says so may be the process (Claude's registry), a hook, or the transcript by a call that is a
//! question; since when is told by the one who says it.

use super::phase::{self, Asks};
use super::session::clean;
use super::{Phase, WaitKind, WaitingFor};
use crate::lifecycle::presence::{Presence, Wait};
use crate::store::query::{Facts, OpenCall};

/// An answer where the process says so, or where the tool is one that asks; else leave to go on.
pub(super) fn asks(wait: &Wait) -> Asks {
    let what = wait.what.as_deref().unwrap_or_default();
    let answer = what == "input needed"
        || what.starts_with("elicitation")
        || phase::QUESTION_TOOLS.contains(&what);
    if answer { Asks::Answer } else { Asks::Approval }
}

/// A process that is verified alive says so; a hook alone shows no process.
pub(super) fn process_waits(seen: &Presence) -> bool {
    seen.alive == Some(true) && seen.wait.as_ref().is_some_and(|wait| wait.source == "registry")
}

/// What is waited for in this phase.
pub(super) fn waiting_for(
    facts: &Facts,
    phase: Option<Phase>,
    seen: &Presence,
) -> Option<WaitingFor> {
    let question = facts.open_calls.iter().rev().find(|call| is_question(call));
    let newest = facts.open_calls.last();
    let wait = seen.wait.as_ref();
    let asks = match phase {
        Some(Phase::NeedsApproval) => Asks::Approval,
        Some(Phase::Question) => Asks::Answer,
        // It is over by its row or compacts, and its process asks all the same.
        Some(_) | None if process_waits(seen) => wait.map(asks)?,
        Some(_) | None => return None,
    };
    let call = match asks {
        Asks::Approval => newest.filter(|call| !is_question(call)),
        Asks::Answer => question,
    };
    let tool = call.map(|call| call.name.clone()).or_else(|| hooked_tool(wait));
    let kind = match (asks, tool.as_deref()) {
        (Asks::Approval, _) => WaitKind::Approval,
        (Asks::Answer, Some("ExitPlanMode" | "exit_plan_mode")) => WaitKind::Plan,
        (Asks::Answer, Some(_)) => WaitKind::Question,
        (Asks::Answer, None) => WaitKind::Input,
    };
    let since_ms = wait.and_then(|wait| wait.since_ms);
    Some(WaitingFor {
        kind,
        since_ms: since_ms.or(call.and_then(|call| call.at_ms)),
        tool,
        text: call.and_then(|call| clean(&call.text)),
    })
}

/// A request of a hook says for which tool; the words of a process and of a notification do not.
fn hooked_tool(wait: Option<&Wait>) -> Option<String> {
    let what = wait.filter(|wait| wait.source == "hook")?.what.as_ref()?;
    let is_tool = what != "permission_prompt" && !what.starts_with("elicitation");
    is_tool.then(|| what.clone())
}

fn is_question(call: &OpenCall) -> bool {
    phase::QUESTION_TOOLS.contains(&call.name.as_str())
}
