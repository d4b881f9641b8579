//! What a transcript and a real process say together: the phase, who waits, who needs somebody.

use lullwatch::snapshot::{EndedIn, Phase, Session, Status, WaitKind};
use rstest::rstest;
use serde_json::{Value, json};

use crate::monitor::{
    Agent, CLAUDE, DAY, HOUR, MINUTE, Monitor, OTHER, SECOND, Said, T0, session, stamp,
};

const CHILD: &str = "a1b2c3d4e5f6a7b8c";

fn says(word: &str) -> Value {
    json!({"status": word})
}

fn look(monitor: &Monitor, at_ms: i64) -> Session {
    session(&monitor.pass(at_ms), CLAUDE).clone()
}

/// A record of a sub-agent of the Claude session, in which a tool begins.
fn child_calls(monitor: &Monitor, at_ms: i64) {
    let record = json!({
        "parentUuid": null, "isSidechain": true, "agentId": CHILD, "cwd": "/w", "type": "assistant",
        "sessionId": CLAUDE, "version": "2.1.332", "uuid": format!("k-{at_ms}"),
        "timestamp": stamp(at_ms),
        "message": {"id": format!("mk-{at_ms}"), "type": "message", "role": "assistant",
            "model": "claude-opus-5", "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "tk", "name": "Bash", "input": {}}]},
    });
    let name = format!(".claude/projects/-w/{CLAUDE}/subagents/agent-{CHILD}.jsonl");
    monitor.append(&name, &record);
}

/// The marker of a graceful end.
fn leaves(monitor: &Monitor, at_ms: i64) {
    let marker = json!({"type": "cost-state", "sessionId": CLAUDE, "totalCostUSD": 0.01,
        "totalDuration": at_ms - T0, "startTime": T0, "modelUsage": {}});
    monitor.append(&format!(".claude/projects/-w/{CLAUDE}.jsonl"), &marker);
}

/// An API error that ends the turn.
fn fails(monitor: &Monitor, at_ms: i64) {
    let record = json!({
        "parentUuid": null, "isSidechain": false, "cwd": "/w", "type": "assistant",
        "sessionId": CLAUDE, "version": "2.1.332", "uuid": format!("e-{at_ms}"),
        "timestamp": stamp(at_ms), "error": "rate_limit", "isApiErrorMessage": true,
        "message": {"id": "e1", "model": "<synthetic>", "role": "assistant", "type": "message",
            "stop_reason": "stop_sequence",
            "content": [{"type": "text", "text": "API Error: 429 slow down"}]},
    });
    monitor.append(&format!(".claude/projects/-w/{CLAUDE}.jsonl"), &record);
}

/// Report 86: Esc before the first token leaves no line.
#[test]
fn a_process_that_rests_since_after_a_dangling_prompt_leaves_the_turn_to_the_human() {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Prompt("Do it"));
    let phase = |word: &str, said_ms: i64| {
        monitor.entry(&agent, CLAUDE, said_ms, &says(word));
        let seen = look(&monitor, T0 + 10 * SECOND);
        assert_eq!((seen.turn, seen.attention), ("open", false), "the transcript's own fact");
        seen.phase
    };
    assert_eq!(phase("busy", T0 + 2 * SECOND), Some(Phase::Working));
    assert_eq!(phase("idle", T0 + 3 * SECOND), Some(Phase::YourTurn));
    assert_eq!(phase("shell", T0 + 4 * SECOND), Some(Phase::YourTurn));
    assert_eq!(phase("busy", T0 + 5 * SECOND), Some(Phase::Working));
    // It said so before the prompt, and has not taken notice of it yet.
    assert_eq!(phase("idle", T0), Some(Phase::Working));
    // A newer record has the word again.
    monitor.entry(&agent, CLAUDE, T0 + 6 * SECOND, &says("idle"));
    monitor.claude(CLAUDE, T0 + 7 * SECOND, &Said::Call("Bash"));
    assert_eq!(look(&monitor, T0 + 10 * SECOND).phase, Some(Phase::Tool));
}

#[test]
fn a_compaction_that_writes_nothing_is_work_and_a_sign_of_life() {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Prompt("Hello"));
    monitor.claude(CLAUDE, T0 + 2 * SECOND, &Said::Answer("Hi."));
    monitor.entry(&agent, CLAUDE, T0 + 2 * SECOND, &says("busy"));
    let before = look(&monitor, T0 + 3 * SECOND);
    assert_eq!(before.phase, Some(Phase::YourTurn), "busy with the turn that has just ended");
    monitor.entry(&agent, CLAUDE, T0 + MINUTE, &says("busy"));
    for at_ms in [T0 + 2 * MINUTE, T0 + 20 * MINUTE] {
        let seen = look(&monitor, at_ms);
        assert_eq!((seen.status, seen.phase), (Status::Running, Some(Phase::Working)));
    }
    assert_eq!(look(&monitor, T0 + DAY).status, Status::Idle, "believed for twelve hours");
}

#[test]
fn busy_while_a_sub_agent_works_is_work() {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Prompt("Go"));
    child_calls(&monitor, T0 + 2 * SECOND);
    monitor.claude(CLAUDE, T0 + 3 * SECOND, &Said::Answer("Started."));
    monitor.entry(&agent, CLAUDE, T0 + SECOND, &says("busy"));
    let seen = look(&monitor, T0 + 20 * MINUTE);
    assert_eq!((seen.status, seen.phase), (Status::Running, Some(Phase::Working)));
    monitor.entry(&agent, CLAUDE, T0 + 20 * MINUTE, &says("idle"));
    let seen = look(&monitor, T0 + 40 * MINUTE);
    assert_eq!((seen.status, seen.phase), (Status::Idle, Some(Phase::YourTurn)));
}

#[test]
fn of_two_terminals_the_one_that_works_is_shown() {
    let (monitor, works, rests) = (Monitor::new(), Agent::start_one(), Agent::start_one());
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Prompt("A long one, of the one"));
    monitor.claude(CLAUDE, T0 + 3 * SECOND, &Said::Answer("Short, of the other."));
    monitor.entry(&works, CLAUDE, T0 + SECOND, &says("busy"));
    monitor.entry(&rests, CLAUDE, T0 + 3 * SECOND, &says("idle"));
    let seen = look(&monitor, T0 + 20 * MINUTE);
    assert_eq!((seen.status, seen.phase), (Status::Running, Some(Phase::Working)));
    assert_eq!(
        (seen.process.pid, seen.process.state),
        (Some(works.pid()), Some("busy".to_owned()))
    );
    works.end();
    let seen = look(&monitor, T0 + 21 * MINUTE);
    assert_eq!((seen.phase, seen.process.pid), (Some(Phase::YourTurn), Some(rests.pid())));
}

#[rstest]
#[case::in_a_tool(Said::Call("Bash"), Phase::ToolGone)]
#[case::in_a_turn(Said::Result, Phase::WorkingGone)]
fn a_process_known_to_be_gone_does_not_show_as_work(
    #[case] last: Said<'static>,
    #[case] phase: Phase,
) {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Prompt("Do it"));
    monitor.claude(CLAUDE, T0 + 2 * SECOND, &Said::Call("Bash"));
    monitor.claude(CLAUDE, T0 + 3 * SECOND, &last);
    monitor.entry(&agent, CLAUDE, T0 + SECOND, &says("busy"));
    // It was never seen alive, so that it is gone is no end: the windows keep the status.
    agent.end();
    for (at_ms, status) in [(T0 + MINUTE, Status::Running), (T0 + HOUR, Status::Idle)] {
        let seen = look(&monitor, at_ms);
        assert_eq!((seen.status, seen.phase, seen.attention), (status, Some(phase), true));
        assert_eq!(
            (seen.process.alive, seen.tool.is_some()),
            (Some(false), phase == Phase::ToolGone)
        );
    }
    // Another one works on it.
    let next = Agent::start_one();
    monitor.entry(&next, CLAUDE, T0 + HOUR, &says("busy"));
    let seen = look(&monitor, T0 + 2 * HOUR);
    assert!(!seen.attention);
    assert!(matches!(seen.phase, Some(Phase::Tool | Phase::Working)), "{:?}", seen.phase);
}

#[rstest]
#[case::a_plan("ExitPlanMode", "permission prompt", Phase::Question, WaitKind::Plan)]
#[case::a_question("AskUserQuestion", "input needed", Phase::Question, WaitKind::Question)]
#[case::a_tool("Bash", "permission prompt", Phase::NeedsApproval, WaitKind::Approval)]
fn what_is_waited_for_goes_with_the_phase(
    #[case] tool: &str,
    #[case] words: &str,
    #[case] phase: Phase,
    #[case] kind: WaitKind,
) {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Call(tool));
    let waits = json!({"status": "waiting", "waitingFor": words});
    monitor.entry(&agent, CLAUDE, T0 + 2 * SECOND, &waits);
    let seen = look(&monitor, T0 + MINUTE);
    assert_eq!((seen.phase, seen.attention), (Some(phase), true));
    let waits = seen.waiting_for.unwrap();
    assert_eq!((waits.kind, waits.tool.as_deref()), (kind, Some(tool)));
    assert_eq!(waits.since_ms, Some(T0 + 2 * SECOND));
    assert_eq!(waits.text.as_deref(), Some("make all"));
}

#[test]
fn nothing_below_an_ended_session_is_active() {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Prompt("Go"));
    monitor.claude(CLAUDE, T0 + 2 * SECOND, &Said::Answer("Started."));
    child_calls(&monitor, T0 + 3 * SECOND);
    monitor.entry(&agent, CLAUDE, T0 + 2 * SECOND, &says("idle"));
    assert_eq!(look(&monitor, T0 + 4 * SECOND).active_children, 1);
    let child = || monitor.open(T0 + MINUTE, CLAUDE).children.remove(0);
    assert_eq!(child().phase, Some(Phase::Tool));
    leaves(&monitor, T0 + 5 * SECOND);
    agent.end();
    let ended = look(&monitor, T0 + MINUTE);
    assert_eq!((ended.status, ended.children, ended.active_children), (Status::Completed, 1, 0));
    assert_eq!((child().phase, child().attention), (Some(Phase::ToolGone), false));
}

#[test]
fn an_end_in_an_error_needs_somebody_for_a_day() {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Prompt("Do it"));
    fails(&monitor, T0 + 2 * SECOND);
    monitor.entry(&agent, CLAUDE, T0 + 2 * SECOND, &says("idle"));
    let live = look(&monitor, T0 + 3 * SECOND);
    assert_eq!((live.phase, live.attention, live.ended_in), (Some(Phase::Error), true, None));
    agent.end();
    let seen = |at_ms: i64| {
        let seen = look(&monitor, at_ms);
        (seen.status, seen.attention, seen.ended_in)
    };
    let bad = Some(EndedIn::Error);
    assert_eq!(seen(T0 + MINUTE), (Status::Completed, true, bad));
    assert_eq!(seen(T0 + MINUTE + DAY), (Status::Completed, true, bad));
    assert_eq!(seen(T0 + MINUTE + DAY + 1), (Status::Completed, false, bad));
}

#[test]
fn those_who_wait_for_an_answer_stand_first_and_who_waits_longest_before_them() {
    let monitor = Monitor::new();
    let [third, first, second] = [CLAUDE, OTHER, "5a1c4b9b-e7a6-4252-8adf-a1b28b24998a"];
    monitor.claude(third, T0 + SECOND, &Said::Prompt("Do it"));
    fails(&monitor, T0 + 2 * SECOND);
    monitor.claude(first, T0 + 3 * SECOND, &Said::Call("AskUserQuestion"));
    monitor.claude(second, T0 + 4 * SECOND, &Said::Call("ExitPlanMode"));
    let fourth = "6a1c4b9b-e7a6-4252-8adf-a1b28b24998a";
    monitor.claude(fourth, T0 + 5 * SECOND, &Said::Answer("Done."));
    let fifth = "7a1c4b9b-e7a6-4252-8adf-a1b28b24998a";
    monitor.claude(fifth, T0 + SECOND, &Said::Prompt("Do it"));
    let seen = monitor.pass(T0 + MINUTE);
    let order: Vec<&str> = seen.sessions.iter().map(|one| one.native_id.as_str()).collect();
    assert_eq!(order, [first, second, third, fourth, fifth]);
    let counts = seen.counts;
    assert_eq!((counts.attention, counts.at_work, counts.your_turn), (3, 1, 1));
}
