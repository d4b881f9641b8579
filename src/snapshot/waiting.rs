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
    // Codex ends the turn with its plan, and no call is open.
    let plan = facts.plan.as_ref().filter(|_| call.is_none() && asks == Asks::Answer);
    let tool = call.map(|call| call.name.clone()).or_else(|| hooked_tool(wait));
    let kind = match (asks, tool.as_deref()) {
        (Asks::Approval, _) => WaitKind::Approval,
        (Asks::Answer, Some("ExitPlanMode" | "exit_plan_mode")) => WaitKind::Plan,
        (Asks::Answer, Some(_)) => WaitKind::Question,
        (Asks::Answer, None) if plan.is_some() => WaitKind::Plan,
        (Asks::Answer, None) => WaitKind::Input,
    };
    let said_ms = wait.and_then(|wait| wait.since_ms);
    let written_ms = call.map_or_else(|| plan.map(|plan| plan.at_ms), |call| call.at_ms);
    let text = call.map(|call| &call.text).or(plan.map(|plan| &plan.text));
    Some(WaitingFor {
        kind,
        tool,
        text: text.and_then(|text| clean(text)),
        since_ms: said_ms.or(written_ms),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::facts::Stamped;

    const AT_MS: i64 = 1_000;

    fn hook(what: &str) -> Presence {
        let wait = Wait { what: Some(what.to_owned()), since_ms: Some(AT_MS + 1), source: "hook" };
        Presence { wait: Some(wait), ..Presence::default() }
    }

    fn call(name: &str) -> Facts {
        let (id, text) = ("c".to_owned(), "make all".to_owned());
        let call = OpenCall { id, name: name.to_owned(), at_ms: Some(AT_MS), text };
        Facts { open_calls: vec![call], ..Facts::default() }
    }

    fn waits(kind: WaitKind, tool: Option<&str>, text: Option<&str>, since_ms: i64) -> WaitingFor {
        let [tool, text] = [tool, text].map(|text| text.map(str::to_owned));
        WaitingFor { kind, tool, text, since_ms: Some(since_ms) }
    }

    #[test]
    fn a_plan_with_which_a_turn_ended_waits_for_a_yes() {
        let plan = Stamped { at_ms: AT_MS, text: "1. Read\n2. Write".to_owned() };
        let facts = Facts { plan: Some(plan), ..Facts::default() };
        let found = waiting_for(&facts, Some(Phase::Question), &Presence::default());
        assert_eq!(found, Some(waits(WaitKind::Plan, None, Some("1. Read 2. Write"), AT_MS)));
    }

    #[test]
    fn a_question_is_told_by_its_call() {
        for (tool, kind) in [
            ("AskUserQuestion", WaitKind::Question),
            ("request_user_input", WaitKind::Question),
            ("exit_plan_mode", WaitKind::Plan),
        ] {
            let found = waiting_for(&call(tool), Some(Phase::Question), &Presence::default());
            assert_eq!(found, Some(waits(kind, Some(tool), Some("make all"), AT_MS)));
        }
    }

    #[test]
    fn an_approval_is_told_by_the_hook_and_by_the_call_it_is_for() {
        let phase = Some(Phase::NeedsApproval);
        let found = waiting_for(&call("Bash"), phase, &hook("permission_prompt"));
        assert_eq!(
            found,
            Some(waits(WaitKind::Approval, Some("Bash"), Some("make all"), AT_MS + 1))
        );
        // The call is not on disk yet.
        let found = waiting_for(&Facts::default(), phase, &hook("Edit"));
        assert_eq!(found, Some(waits(WaitKind::Approval, Some("Edit"), None, AT_MS + 1)));
        let found = waiting_for(&Facts::default(), phase, &hook("permission_prompt"));
        assert_eq!(found, Some(waits(WaitKind::Approval, None, None, AT_MS + 1)));
    }

    #[test]
    fn who_does_not_ask_waits_for_nothing() {
        for phase in [None, Some(Phase::Tool), Some(Phase::YourTurn), Some(Phase::Ended)] {
            assert_eq!(waiting_for(&call("Bash"), phase, &Presence::default()), None);
        }
        // A hook of a session that has ended shows no process that asks.
        assert_eq!(waiting_for(&call("Bash"), Some(Phase::Ended), &hook("Bash")), None);
    }
}
