//! From a real process to a status: what counts, and each thing that does not.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fs;

use lullwatch::liveness::hooks::{Event, HookAgent, Kind, leave};
use lullwatch::liveness::proc::Proc;
use lullwatch::liveness::scope::Scope;
use lullwatch::snapshot::{Compaction, Phase, Session, Status, WaitKind};
use rstest::rstest;
use rustix::process::{Signal, WaitIdOptions};
use serde_json::{Value, json};

use crate::liveness::StandIn;
use crate::monitor::{
    Agent, CLAUDE, CODEX, DAY, DSH, DshLog, HOUR, MINUTE, Monitor, OTHER, SECOND, Said, T0, remove,
    session,
};

fn busy() -> Value {
    json!({"status": "busy"})
}

fn idle() -> Value {
    json!({"status": "idle"})
}

/// A Claude session with a closed turn, whose process was seen alive at T0 + 2 s.
fn seen_idle() -> (Monitor, Agent) {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Answer("Done."));
    monitor.entry(&agent, CLAUDE, T0 + SECOND, &idle());
    assert_eq!(alive(&monitor, T0 + 2 * SECOND), Some(true));
    (monitor, agent)
}

/// The same at work on a tool, its turn open.
fn seen_busy() -> (Monitor, Agent) {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Call("Bash"));
    monitor.entry(&agent, CLAUDE, T0 + SECOND, &busy());
    assert_eq!(alive(&monitor, T0 + 2 * SECOND), Some(true));
    (monitor, agent)
}

fn look(monitor: &Monitor, at_ms: i64) -> Session {
    session(&monitor.pass(at_ms), CLAUDE).clone()
}

fn status(monitor: &Monitor, at_ms: i64) -> Status {
    look(monitor, at_ms).status
}

fn alive(monitor: &Monitor, at_ms: i64) -> Option<bool> {
    look(monitor, at_ms).process.alive
}

#[test]
fn an_exit_completes_within_one_pass() {
    let (monitor, agent) = seen_idle();
    remove(&monitor.entry_path(&agent));
    agent.end();
    let ended = look(&monitor, T0 + MINUTE);
    assert_eq!(ended.reason.code, "session.completed.exited");
    assert_eq!((ended.process.alive, ended.ended_ms), (Some(false), Some(T0 + 2 * SECOND)));
    assert!(ended.ended_approximate);
    assert_eq!(monitor.story(CLAUDE)[1], "running>completed session.completed.exited");
}

#[test]
fn an_entry_left_behind_by_a_killed_process_is_an_exit_too() {
    let (monitor, agent) = seen_idle();
    agent.end();
    assert_eq!(status(&monitor, T0 + MINUTE), Status::Completed);
}

#[test]
fn a_killed_process_inside_a_turn_needs_somebody() {
    let (monitor, agent) = seen_busy();
    agent.end();
    let ended = look(&monitor, T0 + MINUTE);
    assert_eq!((ended.status, ended.attention), (Status::Completed, true));
    assert!(ended.notices.iter().any(|notice| notice.code == "ended_in_turn"));
}

#[test]
fn what_it_wrote_before_it_was_found_gone_does_not_bring_it_back_and_what_comes_later_does() {
    let (monitor, agent) = seen_idle();
    // It goes on for a while, unseen, and exits.
    monitor.claude(CLAUDE, T0 + 30 * SECOND, &Said::Answer("And one more thing."));
    agent.end();
    assert_eq!(status(&monitor, T0 + MINUTE), Status::Completed);
    monitor.claude(CLAUDE, T0 + 61 * SECOND, &Said::Answer("a late flush"));
    assert_eq!(status(&monitor, T0 + 65 * SECOND), Status::Completed);
    monitor.claude(CLAUDE, T0 + 63 * SECOND, &Said::Prompt("Where were we?"));
    let back = monitor.pass(T0 + 65 * SECOND);
    assert_eq!(session(&back, CLAUDE).status, Status::Running);
    assert_eq!((back.audit.overrides, back.audit.overrides_after_exit), (0, 1));
}

#[test]
fn a_missing_entry_of_a_live_process_is_no_end() {
    let (monitor, agent) = seen_idle();
    remove(&monitor.entry_path(&agent));
    let seen = look(&monitor, T0 + MINUTE);
    assert_eq!((seen.status, seen.process.alive), (Status::Running, None));
    // Nor does it hold: nobody knows that it is still here.
    assert_eq!(status(&monitor, T0 + 2 * DAY), Status::Completed);
    assert_eq!(monitor.story(CLAUDE)[2], "idle>completed session.completed.silence");
}

#[rstest]
#[case::half_written(r#"{"pid": 1, "sess"#)]
#[case::empty("")]
#[case::of_another_pid(r#"{"pid": 1, "procStart": "1", "sessionId": "x"}"#)]
#[case::no_object("[1, 2]")]
fn an_unreadable_entry_is_no_end(#[case] content: &str) {
    let (monitor, agent) = seen_idle();
    fs::write(monitor.entry_path(&agent), content).unwrap();
    let seen = look(&monitor, T0 + MINUTE);
    assert_eq!((seen.status, seen.process.alive), (Status::Running, None));
    // It was only being written.
    monitor.entry(&agent, CLAUDE, T0 + SECOND, &idle());
    assert_eq!(alive(&monitor, T0 + 2 * MINUTE), Some(true));
}

#[test]
fn a_process_never_seen_alive_proves_no_end() {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    monitor.entry(&agent, CLAUDE, T0, &busy());
    agent.end();
    for (at, status) in
        [(MINUTE, Status::Running), (HOUR, Status::Idle), (2 * DAY, Status::Completed)]
    {
        let seen = look(&monitor, T0 + at);
        assert_eq!((seen.status, seen.process.alive), (status, Some(false)));
        assert_ne!(seen.reason.code, "session.completed.exited");
    }
}

#[test]
fn a_pid_given_to_another_process_is_not_the_one_that_wrote_the_entry() {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    let start: u64 = agent.start().parse().unwrap();
    let more = json!({"status": "busy", "procStart": (start - 1).to_string()});
    monitor.entry(&agent, CLAUDE, T0, &more);
    let seen = look(&monitor, T0 + HOUR);
    assert_eq!((seen.status, seen.process.alive), (Status::Idle, Some(false)));
}

#[test]
fn legacy_and_foreign_files_of_the_registry_are_ignored() {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    monitor.entry(&agent, CLAUDE, T0, &busy());
    let entry = fs::read(monitor.entry_path(&agent)).unwrap();
    remove(&monitor.entry_path(&agent));
    for name in ["pid-7.json", "7.waiting.json", "7.key", "claude.json"] {
        fs::write(monitor.path(".claude/sessions").join(name), &entry).unwrap();
    }
    assert_eq!(alive(&monitor, T0 + MINUTE), None);
}

#[rstest]
#[case::another_namespace("linux::pid:[1]")]
#[case::another_system("darwin")]
fn a_pid_of_another_domain_proves_nothing(#[case] domain: &str) {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    monitor.entry(&agent, CLAUDE, T0, &json!({"status": "busy", "pidDomain": domain}));
    assert_eq!(alive(&monitor, T0 + MINUTE), None);
    agent.end();
    assert_eq!(alive(&monitor, T0 + HOUR), None);
    assert_eq!(status(&monitor, T0 + HOUR), Status::Idle);
}

/// Another machine's monitor had seen a process alive on this session, in a store that we share.
#[rstest]
#[case::another_host("$.scope.host", "elsewhere", Status::Idle)]
#[case::another_container("$.scope.pid_ns", "1", Status::Idle)]
#[case::another_boot("$.scope.boot_id", "an earlier one", Status::Completed)]
fn gone_is_proven_only_where_it_was_seen_or_by_another_boot(
    #[case] field: &str,
    #[case] value: &str,
    #[case] wanted: Status,
) {
    let (monitor, agent) = seen_idle();
    let value = if value == "1" { "1".to_owned() } else { format!("'{value}'") };
    monitor.sql(&format!("UPDATE evidence SET body = json_set(body, '{field}', {value})"));
    remove(&monitor.entry_path(&agent));
    agent.end();
    assert_eq!(status(&monitor, T0 + HOUR), wanted);
}

#[test]
fn an_entry_that_names_another_session_is_believed_at_the_second_look() {
    let (monitor, agent) = seen_idle();
    monitor.claude(OTHER, T0 + MINUTE, &Said::Prompt("Something else"));
    monitor.entry(&agent, OTHER, T0 + MINUTE, &busy());
    assert_eq!(status(&monitor, T0 + MINUTE), Status::Running);
    assert_eq!(status(&monitor, T0 + MINUTE + 1_999), Status::Running);
    let moved = look(&monitor, T0 + MINUTE + 2_000);
    assert_eq!((moved.status, moved.process.alive), (Status::Completed, Some(false)));
    assert!(moved.reason.summary.contains("registry names another session"), "{moved:?}");
}

#[test]
fn an_entry_that_names_another_session_while_the_turn_here_is_open_is_no_end() {
    let (monitor, agent) = seen_busy();
    monitor.claude(OTHER, T0 + MINUTE, &Said::Prompt("Something else"));
    monitor.entry(&agent, OTHER, T0 + MINUTE, &busy());
    for seconds in [60, 63, 66] {
        let seen = look(&monitor, T0 + seconds * SECOND);
        assert_eq!((seen.status, seen.process.alive), (Status::Running, None));
    }
}

#[test]
fn two_processes_are_over_only_when_both_are_gone() {
    let (monitor, first) = seen_idle();
    let second = Agent::start_one();
    monitor.entry(&second, CLAUDE, T0 + SECOND, &idle());
    monitor.pass(T0 + 3 * SECOND);
    first.end();
    let held = look(&monitor, T0 + HOUR);
    assert_eq!((held.status, held.process.alive), (Status::Idle, Some(true)));
    assert_eq!(held.process.pid, Some(second.pid()));
    second.end();
    assert_eq!(status(&monitor, T0 + HOUR + MINUTE), Status::Completed);
}

#[test]
fn what_whoever_resumes_repairs_brings_nothing_back_and_its_own_work_does() {
    let (monitor, killed) = seen_busy();
    killed.end();
    assert_eq!(status(&monitor, T0 + MINUTE), Status::Completed);
    // It closes what the life before left open, with the time of its last record and a bit.
    let next = Agent::start_one();
    monitor.claude(CLAUDE, T0 + 5 * SECOND, &Said::Answer("(interrupted)"));
    monitor.entry(&next, CLAUDE, T0 + 2 * MINUTE, &idle());
    for at_ms in [T0 + 2 * MINUTE, T0 + 3 * MINUTE] {
        let seen = monitor.pass(at_ms);
        assert_eq!(session(&seen, CLAUDE).process.alive, Some(true));
        assert_eq!((seen.audit.overrides, seen.audit.overrides_after_exit), (0, 0));
    }
    monitor.claude(CLAUDE, T0 + 4 * MINUTE, &Said::Prompt("Where were we?"));
    let back = monitor.pass(T0 + 4 * MINUTE);
    assert_eq!(session(&back, CLAUDE).status, Status::Running);
    assert_eq!((back.audit.overrides, back.audit.overrides_after_exit), (0, 1));
}

#[test]
fn a_dedicated_process_keeps_a_session_idle_for_days() {
    let (monitor, agent) = seen_idle();
    let held = look(&monitor, T0 + 5 * DAY);
    assert_eq!((held.status, held.unchecked), (Status::Idle, false));
    let written = monitor.rows_written(T0 + 5 * DAY + SECOND);
    assert_eq!(written, 0, "a process that is still there is no news");
    agent.end();
    assert_eq!(status(&monitor, T0 + 5 * DAY + MINUTE), Status::Completed);
}

#[test]
fn a_busy_process_keeps_an_open_turn_running_and_is_believed_for_twelve_hours() {
    let (monitor, _agent) = seen_busy();
    for at in [HOUR, 6 * HOUR, 12 * HOUR] {
        assert_eq!(status(&monitor, T0 + SECOND + at), Status::Running);
    }
    assert_eq!(status(&monitor, T0 + 12 * HOUR + 4 * MINUTE), Status::Running);
    assert_eq!(status(&monitor, T0 + 12 * HOUR + 6 * MINUTE), Status::Idle);
}

#[test]
fn a_busy_process_without_an_open_turn_does_not_work() {
    let (monitor, agent) = seen_idle();
    monitor.entry(&agent, CLAUDE, T0 + SECOND, &busy());
    let seen = look(&monitor, T0 + HOUR);
    assert_eq!((seen.status, seen.process.alive), (Status::Idle, Some(true)));
}

#[test]
fn an_idle_process_with_an_open_turn_does_not_work() {
    let (monitor, agent) = seen_busy();
    monitor.entry(&agent, CLAUDE, T0 + SECOND, &idle());
    assert_eq!(status(&monitor, T0 + HOUR), Status::Idle);
}

#[test]
fn a_headless_process_that_never_had_a_status_works() {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    monitor.entry(&agent, CLAUDE, T0, &json!({"entrypoint": "sdk-cli"}));
    assert_eq!(status(&monitor, T0 + HOUR), Status::Running);
    monitor.entry(&agent, CLAUDE, T0, &json!({"entrypoint": "cli"}));
    assert_eq!(status(&monitor, T0 + 2 * HOUR), Status::Idle);
}

#[test]
fn a_stopped_process_does_not_work() {
    let (monitor, agent) = seen_busy();
    agent.stop();
    let seen = look(&monitor, T0 + HOUR);
    assert_eq!((seen.status, seen.process.alive), (Status::Idle, Some(true)));
    assert_eq!(seen.process.state.as_deref(), Some("stopped"));
}

#[test]
fn a_suspect_entry_neither_holds_nor_works() {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Answer("Done."));
    // `/resume` of another session, which some versions do not write down.
    monitor.entry(&agent, CLAUDE, T0 + MINUTE, &busy());
    monitor.claude(OTHER, T0 + 2 * MINUTE, &Said::Prompt("Something else"));
    let seen = look(&monitor, T0 + HOUR);
    assert_eq!((seen.status, seen.process.alive), (Status::Idle, None));
    assert_eq!(status(&monitor, T0 + 2 * DAY), Status::Completed);
    assert!(session(&monitor.pass(T0 + 2 * DAY), OTHER).status.is_terminal());
}

#[test]
fn what_a_waiting_process_waits_for_is_the_phase() {
    let (monitor, agent) = seen_busy();
    let waits = |what: &str| json!({"status": "waiting", "waitingFor": what});
    monitor.entry(&agent, CLAUDE, T0 + MINUTE, &waits("permission prompt"));
    let seen = look(&monitor, T0 + MINUTE);
    assert_eq!((seen.phase, seen.attention), (Some(Phase::NeedsApproval), true));
    assert_eq!(seen.process.state.as_deref(), Some("waiting"));
    monitor.entry(&agent, CLAUDE, T0 + 2 * MINUTE, &waits("input needed"));
    let seen = look(&monitor, T0 + 2 * MINUTE);
    assert_eq!((seen.phase, seen.attention), (Some(Phase::Question), true));
}

#[test]
fn a_live_process_that_waits_needs_somebody_whatever_the_status() {
    let (monitor, agent) = seen_idle();
    agent.end();
    assert_eq!(status(&monitor, T0 + MINUTE), Status::Completed);
    let again = Agent::start_one();
    let waits = json!({"status": "waiting", "waitingFor": "sandbox request"});
    monitor.entry(&again, CLAUDE, T0 + 2 * MINUTE, &waits);
    let seen = look(&monitor, T0 + 2 * MINUTE);
    assert_eq!((seen.status, seen.attention), (Status::Completed, true));
    assert_eq!(seen.process.pid, Some(again.pid()));
    assert_eq!(seen.waiting_for.map(|waits| waits.kind), Some(WaitKind::Approval));
    assert_eq!(monitor.story(CLAUDE).len(), 2, "a live process revives nothing");
    // A menu that the person opened asks nobody.
    let menu = json!({"status": "waiting", "waitingFor": "dialog open"});
    monitor.entry(&again, CLAUDE, T0 + 3 * MINUTE, &menu);
    let seen = look(&monitor, T0 + 3 * MINUTE);
    assert_eq!((seen.process.state.as_deref(), seen.attention), (Some("waiting"), false));
    assert_eq!(seen.waiting_for, None);
}

// Hooks.

fn hook(monitor: &Monitor, at_ms: i64, kind: Kind, more: impl FnOnce(&mut Event)) {
    let mut event = Event {
        agent: Some(HookAgent::Claude),
        kind,
        at_ms,
        session_id: Some(CLAUDE.to_owned()),
        transcript_path: None,
        agent_id: None,
        reason: None,
        trigger: None,
        tool_name: None,
        turn_id: None,
        scope: Scope::default(),
        start_ticks: None,
    };
    more(&mut event);
    leave(&monitor.path(".local/state/lullwatch/inbox"), &event).unwrap();
}

#[test]
fn a_session_end_hook_is_an_exact_end_and_later_activity_revokes_it() {
    let monitor = Monitor::new();
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Prompt("Add a table"));
    monitor.claude(CLAUDE, T0 + 2 * SECOND, &Said::Answer("Done."));
    hook(&monitor, T0 + MINUTE, Kind::SessionEnd, |event| event.reason = Some("logout".to_owned()));
    let ended = look(&monitor, T0 + 2 * MINUTE);
    assert_eq!((ended.status, ended.ended_ms), (Status::Completed, Some(T0 + MINUTE)));
    assert!(!ended.ended_approximate);
    monitor.claude(CLAUDE, T0 + 3 * MINUTE, &Said::Prompt("Wait"));
    assert_eq!(status(&monitor, T0 + 3 * MINUTE), Status::Running);
}

#[test]
fn a_live_process_vetoes_the_hook_until_it_is_gone() {
    let (monitor, agent) = seen_idle();
    hook(&monitor, T0 + MINUTE, Kind::SessionEnd, |_| {});
    assert_eq!(status(&monitor, T0 + MINUTE), Status::Running);
    agent.end();
    let ended = look(&monitor, T0 + 2 * MINUTE);
    assert_eq!((ended.ended_ms, ended.ended_approximate), (Some(T0 + MINUTE), false));
}

#[test]
fn a_permission_hook_asks_until_it_is_answered() {
    let monitor = Monitor::new();
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Prompt("Add a table"));
    monitor.claude(CLAUDE, T0 + 2 * SECOND, &Said::Call("Bash"));
    hook(&monitor, T0 + 3 * SECOND, Kind::PermissionRequest, |event| {
        event.tool_name = Some("Bash".to_owned());
    });
    let asks = look(&monitor, T0 + MINUTE);
    assert_eq!((asks.phase, asks.attention), (Some(Phase::NeedsApproval), true));
    assert_eq!((asks.process.alive, asks.process.source), (None, Some("hook")));
    monitor.claude(CLAUDE, T0 + 2 * MINUTE, &Said::Result);
    let goes_on = look(&monitor, T0 + 2 * MINUTE);
    assert_eq!((goes_on.phase, goes_on.attention), (Some(Phase::Working), false));
}

/// A Codex session that asks at T0 + 3 s whether a command may run.
fn codex_asks() -> Monitor {
    let monitor = Monitor::new();
    monitor.codex(T0 + SECOND, &json!({"type": "task_started", "turn_id": "t"}));
    monitor.codex(T0 + SECOND, &json!({"type": "user_message", "message": "Add a table"}));
    monitor.codex_item(
        T0 + 2 * SECOND,
        &json!({"type": "function_call", "name": "exec_command", "arguments": "{}",
            "call_id": "c"}),
    );
    hook(&monitor, T0 + 3 * SECOND, Kind::PermissionRequest, |event| {
        event.agent = Some(HookAgent::Codex);
        event.session_id = Some(CODEX.to_owned());
        event.tool_name = Some("Bash".to_owned());
    });
    let asks = look_codex(&monitor, T0 + 3 * SECOND);
    assert_eq!((asks.phase, asks.attention), (Some(Phase::NeedsApproval), true));
    monitor
}

fn codex_result(monitor: &Monitor, at_ms: i64, output: &str) {
    let result = json!({"type": "function_call_output", "call_id": "c", "output": output});
    monitor.codex_item(at_ms, &result);
}

#[test]
fn a_request_that_is_denied_at_once_asks_no_more() {
    let monitor = codex_asks();
    codex_result(&monitor, T0 + 4 * SECOND, "aborted by user");
    let abort = json!({"type": "turn_aborted", "turn_id": "t", "reason": "interrupted"});
    monitor.codex(T0 + 4 * SECOND, &abort);
    let denied = look_codex(&monitor, T0 + 10 * SECOND);
    assert_eq!((denied.phase, denied.attention), (Some(Phase::YourTurn), false));
}

#[test]
fn a_request_whose_call_has_its_result_at_once_asks_no_more() {
    let monitor = codex_asks();
    codex_result(&monitor, T0 + 4 * SECOND, "ok");
    let allowed = look_codex(&monitor, T0 + 10 * SECOND);
    assert_eq!((allowed.phase, allowed.attention), (Some(Phase::Working), false));
}

#[rstest]
#[case::a_terminal(&[])]
#[case::the_daemon(&["app-server"])]
fn a_child_that_is_younger_than_the_request_says_that_it_was_allowed(#[case] argv: &[&str]) {
    let monitor = codex_asks();
    let mut holder = StandIn::start_with("codex", argv);
    let locks = monitor.path(".codex/thread-writer-locks");
    holder.does("hold", &locks.join(format!("{CODEX}.lock")));
    let note = monitor.path("child");
    holder.does("start", &note);
    let child: u32 = fs::read_to_string(&note).unwrap().parse().unwrap();
    let started = Proc::system().start_ticks(child).unwrap();
    let asks = |at_ms: i64, hook_ticks: u64| {
        hook(&monitor, at_ms, Kind::PermissionRequest, |event| {
            event.agent = Some(HookAgent::Codex);
            event.session_id = Some(CODEX.to_owned());
            event.tool_name = Some("Bash".to_owned());
            event.start_ticks = Some(hook_ticks);
        });
        let seen = look_codex(&monitor, at_ms);
        (seen.phase, seen.attention)
    };
    // Older than the request, or begun with it as other hooks are: a server of tools, say.
    assert_eq!(asks(T0 + 4 * SECOND, started + 100), (Some(Phase::NeedsApproval), true));
    assert_eq!(asks(T0 + 5 * SECOND, started), (Some(Phase::NeedsApproval), true));
    assert_eq!(asks(T0 + 6 * SECOND, started - 100), (Some(Phase::Tool), false));
    assert_eq!(monitor.rows_written(T0 + 7 * SECOND), 0, "seen once is enough");
    // It has ended, and its output is not written yet.
    holder.does("stop", &note);
    assert_eq!(look_codex(&monitor, T0 + 8 * SECOND).phase, Some(Phase::Tool));
    // The next request is one of its own.
    assert_eq!(asks(T0 + 9 * SECOND, started + 900), (Some(Phase::NeedsApproval), true));
    // Of several sessions of one server nobody can tell whose child it is.
    holder.does("hold", &locks.join("another.lock"));
    holder.does("start", &note);
    assert_eq!(asks(T0 + 10 * SECOND, started - 100), (Some(Phase::NeedsApproval), true));
    holder.does("stop", &note);
    holder.kill();
}

#[test]
fn a_running_compaction_of_claude_is_told_by_hook_and_registry() {
    let (monitor, agent) = seen_busy();
    hook(&monitor, T0 + MINUTE, Kind::PreCompact, |event| event.trigger = Some("auto".to_owned()));
    let seen = look(&monitor, T0 + 2 * MINUTE);
    assert_eq!((seen.phase, seen.compaction.bracket), (Some(Phase::Compacting), "open"));
    assert_eq!(seen.compaction.state.as_deref(), Some("compacting"));
    assert_eq!((seen.compaction.trigger, seen.compaction.running), (Some("auto"), Some(true)));
    let stuck = look(&monitor, T0 + 12 * MINUTE);
    assert_eq!((stuck.compaction.state.as_deref(), stuck.attention), (Some("stuck?"), true));
    monitor.entry(&agent, CLAUDE, T0 + 12 * MINUTE, &idle());
    assert_eq!(look(&monitor, T0 + 12 * MINUTE).compaction.bracket, "none");
    monitor.entry(&agent, CLAUDE, T0 + 12 * MINUTE, &busy());
    hook(&monitor, T0 + 13 * MINUTE, Kind::PostCompact, |_| {});
    assert_eq!(look(&monitor, T0 + 13 * MINUTE).compaction.bracket, "none");
}

// Locks.

/// A Codex session with its turn over, and where its lock lies.
fn codex() -> (Monitor, std::path::PathBuf) {
    let monitor = Monitor::new();
    monitor.codex(T0 + SECOND, &json!({"type": "task_started", "turn_id": "t"}));
    monitor.codex(T0 + SECOND, &json!({"type": "user_message", "message": "Add a table"}));
    monitor.codex(T0 + 2 * SECOND, &json!({"type": "agent_message", "message": "Added."}));
    monitor.codex(T0 + 2 * SECOND, &json!({"type": "task_complete", "turn_id": "t"}));
    let lock = monitor.path(&format!(".codex/thread-writer-locks/{CODEX}.lock"));
    (monitor, lock)
}

fn look_codex(monitor: &Monitor, at_ms: i64) -> Session {
    session(&monitor.pass(at_ms), CODEX).clone()
}

#[test]
fn a_lock_freed_by_a_process_that_lives_on_is_no_end() {
    let (monitor, lock) = codex();
    let mut holder = StandIn::start();
    holder.does("hold", &lock);
    let held = look_codex(&monitor, T0 + MINUTE);
    assert_eq!((held.process.alive, held.process.source), (Some(true), Some("lock")));
    holder.does("free", &lock);
    let freed = look_codex(&monitor, T0 + HOUR);
    assert_eq!((freed.status, freed.process.alive), (Status::Idle, None));
    holder.kill();
    // It let go of the session long before it ended.
    let later = look_codex(&monitor, T0 + 2 * HOUR);
    assert_eq!(later.status, Status::Idle);
}

#[test]
fn a_holder_that_is_killed_leaves_its_file_and_ends_the_session() {
    let (monitor, lock) = codex();
    let mut holder = StandIn::start();
    holder.does("hold", &lock);
    // Held for two days: a dedicated holder.
    assert_eq!(look_codex(&monitor, T0 + 2 * DAY).status, Status::Idle);
    holder.kill();
    assert!(lock.exists());
    let ended = look_codex(&monitor, T0 + 2 * DAY + MINUTE);
    assert_eq!(ended.reason.code, "session.completed.exited");
    assert_eq!(ended.ended_ms, Some(T0 + 2 * DAY));
}

#[test]
fn a_server_that_holds_many_vetoes_an_end_and_never_silence() {
    let (monitor, lock) = codex();
    let mut server = StandIn::start();
    server.does("hold", &lock);
    server.does("hold", &lock.with_file_name("another.lock"));
    let held = look_codex(&monitor, T0 + HOUR);
    assert_eq!((held.status, held.process.alive), (Status::Idle, Some(true)));
    let detail = monitor.open(T0 + HOUR, CODEX);
    let told = format!("loaded by pid {}", server.pid());
    assert!(detail.why.iter().any(|rule| rule.evidence.contains(&told)));
    let silent = look_codex(&monitor, T0 + 2 * DAY);
    assert_eq!(silent.reason.code, "session.completed.silence");
    assert_eq!(silent.process.alive, Some(true));
    server.kill();
}

#[test]
fn a_lock_never_means_working() {
    let (monitor, lock) = codex();
    monitor.codex(T0 + MINUTE, &json!({"type": "task_started", "turn_id": "u"}));
    let mut holder = StandIn::start();
    holder.does("hold", &lock);
    let seen = look_codex(&monitor, T0 + HOUR);
    assert_eq!((seen.status, seen.phase), (Status::Idle, Some(Phase::Working)));
    assert_eq!(seen.process.alive, Some(true));
    holder.kill();
}

#[test]
fn a_completed_session_whose_lock_is_taken_again_is_open_again() {
    let (monitor, lock) = codex();
    look_codex(&monitor, T0 + HOUR);
    assert_eq!(look_codex(&monitor, T0 + 3 * DAY).status, Status::Completed);
    let mut holder = StandIn::start();
    holder.does("hold", &lock);
    let again = look_codex(&monitor, T0 + 4 * DAY);
    assert_eq!((again.status, again.process.alive), (Status::Completed, Some(true)));
    assert_eq!(again.process.pid, Some(holder.pid()));
    holder.kill();
}

/// One process holds a dsh session and its sub-agent, and is killed: nothing of an ended parent is at
/// work.
#[test]
fn a_sub_agent_of_dsh_whose_holder_was_killed_is_at_work_no_more() {
    let monitor = Monitor::new();
    let top = DshLog { version: 4, id: DSH, parent: None };
    let child = DshLog { version: 4, id: "child", parent: Some(DSH) };
    monitor.dsh_as(&top, 0, T0, "turn/start", &json!({"turn": 1}));
    let done = json!({"turn": 1, "reason": {"kind": "completed"}});
    monitor.dsh_as(&top, 1, T0 + SECOND, "turn/end", &done);
    monitor.dsh_as(&child, 0, T0 + 2 * SECOND, "turn/start", &json!({"turn": 1}));
    let mut holder = StandIn::start();
    for id in [DSH, "child"] {
        holder.does("hold", &monitor.path(&format!(".dsh/sessions/--w--/{id}/session.lock")));
    }
    let look = |at_ms| {
        let seen = monitor.open(at_ms, DSH);
        let child = &seen.children[0];
        (seen.session.status, seen.session.active_children, child.phase)
    };
    let alive = look(T0 + 10 * SECOND);
    assert_eq!(alive, (Status::Running, 1, Some(Phase::Working)));
    holder.kill();
    let dead = look(T0 + 12 * SECOND);
    assert_eq!(dead, (Status::Completed, 0, Some(Phase::WorkingGone)));
}

#[test]
fn a_dsh_session_that_ended_in_an_error_needs_somebody() {
    let monitor = Monitor::new();
    let log = DshLog { version: 4, id: DSH, parent: None };
    monitor.dsh_as(&log, 0, T0, "turn/start", &json!({"turn": 1}));
    let error = json!({"message": "no key", "code": "AUTH", "status": 401});
    let failed = json!({"turn": 1, "reason": {"kind": "error", "error": error}});
    monitor.dsh_as(&log, 1, T0 + SECOND, "turn/end", &failed);
    let mut holder = StandIn::start();
    holder.does("hold", &dsh_lock(&monitor));
    let look = |at_ms| {
        let seen = session(&monitor.pass(at_ms), DSH).clone();
        (seen.status, seen.phase, seen.attention)
    };
    assert_eq!(look(T0 + 10 * SECOND), (Status::Running, Some(Phase::Error), true));
    holder.kill();
    assert_eq!(look(T0 + 12 * SECOND), (Status::Completed, Some(Phase::Ended), true));
}

#[test]
fn a_session_that_a_daemon_has_unloaded_is_completed_and_comes_back_with_new_activity() {
    let (monitor, lock) = codex();
    let mut daemon = StandIn::start_with("codex", &["app-server"]);
    daemon.does("hold", &lock);
    let held = look_codex(&monitor, T0 + MINUTE);
    assert_eq!((held.status, held.process.alive), (Status::Running, Some(true)));
    daemon.does("free", &lock);
    remove(&lock);
    let unloaded = look_codex(&monitor, T0 + 2 * MINUTE);
    assert_eq!((unloaded.status, unloaded.process.alive), (Status::Completed, Some(false)));
    assert_eq!((unloaded.ended_ms, unloaded.ended_approximate), (Some(T0 + MINUTE), true));
    assert!(unloaded.reason.summary.contains("unloaded by its server"), "{unloaded:?}");
    assert_eq!(monitor.rows_written(T0 + 3 * MINUTE), 0, "nobody looks at it any more");
    daemon.does("hold", &lock);
    monitor.codex(T0 + 4 * MINUTE, &json!({"type": "task_started", "turn_id": "u"}));
    assert_eq!(look_codex(&monitor, T0 + 4 * MINUTE).status, Status::Running);
    // Inside a turn it is only a lock that is gone.
    daemon.does("free", &lock);
    assert_eq!(look_codex(&monitor, T0 + 5 * MINUTE).status, Status::Running);
    daemon.kill();
}

/// A `codex exec` whose one turn ends at T0 + 2 s, with other values in its meta.
fn exec(meta: &Value) -> Monitor {
    let monitor = Monitor::new();
    let mut more = json!({"source": "exec", "cli_version": "0.171.0"});
    more.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
    monitor.codex_meta(T0 + SECOND, &more);
    monitor.codex(T0 + SECOND, &json!({"type": "task_started", "turn_id": "t"}));
    monitor.codex(T0 + SECOND, &json!({"type": "user_message", "message": "Add a table"}));
    monitor.codex(T0 + 2 * SECOND, &json!({"type": "agent_message", "message": "Added."}));
    monitor.codex(T0 + 2 * SECOND, &json!({"type": "task_complete", "turn_id": "t"}));
    monitor
}

#[test]
fn an_exec_too_short_to_be_seen_is_completed_without_its_lock() {
    let monitor = exec(&json!({}));
    let done = look_codex(&monitor, T0 + 5 * SECOND);
    assert_eq!((done.status, done.reason.code.as_str()), EXITED);
    assert_eq!((done.ended_ms, done.ended_approximate), (Some(T0 + 2 * SECOND), true));
    assert_eq!(monitor.rows_written(T0 + MINUTE), 0);
    // `codex exec resume`, again too short to be seen.
    monitor.codex(T0 + HOUR, &json!({"type": "task_started", "turn_id": "u"}));
    assert_eq!(look_codex(&monitor, T0 + HOUR).status, Status::Running);
    monitor.codex(T0 + HOUR + SECOND, &json!({"type": "task_complete", "turn_id": "u"}));
    let again = look_codex(&monitor, T0 + HOUR + 2 * SECOND);
    assert_eq!((again.status, again.ended_ms), (Status::Completed, Some(T0 + HOUR + SECOND)));
}

const EXITED: (Status, &str) = (Status::Completed, "session.completed.exited");

#[rstest]
#[case::before_locks(json!({"cli_version": "0.146.9"}))]
#[case::of_unknown_version(json!({"cli_version": "next"}))]
#[case::of_a_terminal(json!({"source": "cli"}))]
#[case::of_a_server(json!({"source": "mcp"}))]
fn what_is_no_exec_with_a_lock_does_not_end_without_one(#[case] meta: Value) {
    let monitor = exec(&meta);
    assert_eq!(look_codex(&monitor, T0 + MINUTE).status, Status::Running);
}

#[test]
fn an_exec_with_its_lock_file_or_without_the_folder_of_locks_is_not_done() {
    let monitor = exec(&json!({}));
    let lock = monitor.path(&format!(".codex/thread-writer-locks/{CODEX}.lock"));
    fs::write(&lock, "").unwrap();
    assert_eq!(look_codex(&monitor, T0 + MINUTE).status, Status::Running);
    fs::remove_dir_all(lock.parent().unwrap()).unwrap();
    assert_eq!(look_codex(&monitor, T0 + MINUTE).status, Status::Running);
    fs::create_dir(lock.parent().unwrap()).unwrap();
    assert_eq!(look_codex(&monitor, T0 + MINUTE).status, Status::Completed);
}

// Brackets.

/// When a process started, ms.
fn started_ms(pid: u32) -> i64 {
    let lullwatch::liveness::proc::Seen::Alive(process) = Proc::system().look(pid, None) else {
        panic!("not there")
    };
    process.started_ms.unwrap()
}

/// A dsh session, its log of a format without locks, with an open bracket that began then.
fn open_bracket(start_ms: i64) -> Monitor {
    open_bracket_in(0, start_ms)
}

/// The same in a log of that format.
fn open_bracket_in(version: u64, start_ms: i64) -> Monitor {
    let monitor = Monitor::new();
    let log = DshLog { version, id: DSH, parent: None };
    monitor.dsh_as(&log, 0, start_ms - 2 * SECOND, "turn/start", &json!({"turn": 1}));
    let bracket = json!({"compactionId": "c1", "turn": 1});
    monitor.dsh_as(&log, 1, start_ms, "compaction/start", &bracket);
    monitor
}

fn compaction(monitor: &Monitor, at_ms: i64) -> (Compaction, Option<Phase>, bool) {
    let seen = session(&monitor.pass(at_ms), DSH).clone();
    (seen.compaction, seen.phase, seen.attention)
}

fn state(monitor: &Monitor, at_ms: i64) -> String {
    let (shown, _, _) = compaction(monitor, at_ms);
    assert_eq!(shown.bracket, "open");
    assert!(shown.why.unwrap().starts_with("start at seq 1, no end-seed after it; "));
    shown.state.unwrap()
}

fn dsh_lock(monitor: &Monitor) -> std::path::PathBuf {
    monitor.path(&format!(".dsh/sessions/--w--/{DSH}/session.lock"))
}

#[test]
fn a_bracket_whose_holder_is_older_is_compacting_then_stuck_then_of_nobody() {
    let mut holder = StandIn::start();
    let start = started_ms(holder.pid()) + MINUTE;
    let monitor = open_bracket_in(4, start);
    holder.does("hold", &dsh_lock(&monitor));
    let (shown, phase, attention) = compaction(&monitor, start + MINUTE);
    assert_eq!(shown.state.as_deref(), Some("compacting"));
    assert_eq!((shown.blocking, shown.running), (true, Some(true)));
    assert_eq!((phase, attention), (Some(Phase::Compacting), false));
    let why = format!(
        "start at seq 1, no end-seed after it; lock held by pid {} since before the start",
        holder.pid()
    );
    assert_eq!(shown.why, Some(why));
    let (stuck, _, attention) = compaction(&monitor, start + 10 * MINUTE + 1);
    assert_eq!((stuck.state.as_deref(), attention), (Some("stuck?"), true));
    holder.does("free", &dsh_lock(&monitor));
    assert_eq!(state(&monitor, start + 11 * MINUTE), "writer gone");
    holder.kill();
}

#[test]
fn a_bracket_whose_holder_is_younger_waits_for_its_boundary() {
    let mut holder = StandIn::start();
    let start = started_ms(holder.pid()) - MINUTE;
    let monitor = open_bracket_in(4, start);
    holder.does("hold", &dsh_lock(&monitor));
    assert_eq!(state(&monitor, start + 2 * MINUTE), "abandoned, boundary pending");
    holder.kill();
}

#[test]
fn a_bracket_whose_holder_was_killed_is_open_in_a_session_that_has_ended() {
    let mut holder = StandIn::start();
    let start = started_ms(holder.pid()) + MINUTE;
    let monitor = open_bracket_in(4, start);
    holder.does("hold", &dsh_lock(&monitor));
    assert_eq!(state(&monitor, start + MINUTE), "compacting");
    holder.kill();
    let (shown, phase, _) = compaction(&monitor, start + 2 * MINUTE);
    assert_eq!(shown.state.as_deref(), Some("open, session ended"));
    assert_eq!((shown.running, phase), (Some(false), Some(Phase::Ended)));
    assert!(shown.why.unwrap().contains("nobody holds the lock"));
}

/// Before any process of this machine.
const LONG_AGO: i64 = 1_000_000_000_000;

#[test]
fn a_bracket_in_a_log_without_a_lock_has_no_writer_where_every_dsh_is_younger() {
    let younger = StandIn::start_as("dsh");
    let monitor = open_bracket(LONG_AGO);
    assert_eq!(state(&monitor, LONG_AGO + MINUTE), "writer gone");
    younger.kill();
}

#[test]
fn a_bracket_in_a_log_without_a_lock_is_unverified_where_an_older_dsh_runs() {
    let older = StandIn::start_as("dsh");
    let start = started_ms(older.pid()) + MINUTE;
    let monitor = open_bracket(start);
    assert_eq!(state(&monitor, start + MINUTE), "open, unverified");
    older.kill();
}

/// A later dsh leaves its lock beside a log of format 0 when it could not migrate it; whoever writes
/// that log takes no lock.
#[test]
fn a_free_lock_beside_a_log_of_a_format_without_locks_says_nothing() {
    let older = StandIn::start_as("dsh");
    let start = started_ms(older.pid()) + MINUTE;
    let monitor = open_bracket(start);
    fs::write(dsh_lock(&monitor), "").unwrap();
    assert_eq!(state(&monitor, start + MINUTE), "open, unverified");
    monitor.dsh(2, start + SECOND, "session/end-seed", &json!({}));
    let (stale, _, _) = compaction(&monitor, start + MINUTE);
    let unsure = "stale by log; another writer cannot be excluded";
    assert_eq!(stale.state.as_deref(), Some(unsure));
    older.kill();
}

/// Nor does it say that the writer has gone, where only younger processes run.
#[test]
fn a_free_lock_beside_a_log_of_a_format_without_locks_is_not_why_its_writer_is_gone() {
    let monitor = open_bracket(LONG_AGO);
    fs::write(dsh_lock(&monitor), "").unwrap();
    let why = compaction(&monitor, LONG_AGO + MINUTE).0.why.unwrap();
    assert!(!why.contains("nobody holds the lock"), "{why}");
}

#[test]
fn a_stale_bracket_is_a_fact_about_the_log_and_not_about_other_writers() {
    let older = StandIn::start_as("dsh");
    let start = started_ms(older.pid()) + MINUTE;
    let monitor = open_bracket(start);
    monitor.dsh(2, start + SECOND, "session/end-seed", &json!({}));
    let (shown, _, attention) = compaction(&monitor, start + MINUTE);
    let unsure = "stale by log; another writer cannot be excluded";
    assert_eq!((shown.bracket, shown.state.as_deref()), ("stale", Some(unsure)));
    assert_eq!((shown.blocking, attention), (false, false));
    older.kill();
}

#[test]
fn after_a_step_of_the_clock_start_times_are_not_compared() {
    let mut holder = StandIn::start();
    let start = started_ms(holder.pid()) - MINUTE;
    let monitor = open_bracket_in(4, start);
    holder.does("hold", &dsh_lock(&monitor));
    let stepped = start + SECOND;
    monitor.sql(&format!("INSERT INTO meta VALUES ('clock_stepped_ms', '{stepped}')"));
    assert_eq!(state(&monitor, start + 2 * MINUTE), "open, unverified");
    holder.kill();
}

// Runs.

/// A run of this host that opened the Claude session, with that process for a child.
fn run_of(monitor: &Monitor, agent: &Agent) {
    let scope = serde_json::to_string(Proc::system().scope()).unwrap();
    monitor.sql(&format!(
        "INSERT INTO runs (name, host, agent, native_id, scope, child_pid, child_start, started_ms,
            status)
         VALUES ('r', 'h', 'claude', '{CLAUDE}', '{scope}', {}, '{}', {T0}, 'running')",
        agent.pid(),
        agent.start(),
    ));
}

#[test]
fn the_child_of_a_run_holds_its_session_and_its_exit_is_an_exact_end() {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    monitor.claude(CLAUDE, T0 + SECOND, &Said::Answer("Done."));
    monitor.pass(T0 + SECOND);
    run_of(&monitor, &agent);
    let held = look(&monitor, T0 + 2 * DAY);
    assert_eq!((held.status, held.process.alive), (Status::Idle, Some(true)));
    assert_eq!(held.process.source, Some("run"));
    agent.end();
    let exit = T0 + 2 * DAY + MINUTE;
    monitor.sql(&format!(
        "UPDATE runs SET exit_code = 0, exit_ms = {exit}, status = 'completed', ended_ms = {exit}"
    ));
    let ended = look(&monitor, exit + HOUR);
    assert_eq!((ended.ended_ms, ended.ended_approximate), (Some(exit), false));
    assert!(ended.reason.summary.contains("child exited"), "{}", ended.reason.summary);
}

#[test]
fn a_child_whose_wrapper_was_killed_is_found_gone() {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    monitor.pass(T0 + SECOND);
    run_of(&monitor, &agent);
    assert_eq!(alive(&monitor, T0 + MINUTE), Some(true));
    agent.end();
    let ended = look(&monitor, T0 + 2 * MINUTE);
    assert_eq!(ended.reason.code, "session.completed.exited");
    assert_eq!((ended.ended_ms, ended.ended_approximate), (Some(T0 + MINUTE), true));
}

#[test]
fn who_has_not_seen_a_fresh_look_claims_nothing_of_processes() {
    let (monitor, _agent) = seen_busy();
    let seen = |at_ms| session(&monitor.viewed(at_ms, T0 + 2 * SECOND), CLAUDE).process.clone();
    assert_eq!(seen(T0 + 2 * SECOND + 2 * MINUTE).alive, Some(true));
    let late = seen(T0 + 2 * SECOND + 2 * MINUTE + 1);
    assert_eq!((late.alive, late.state), (None, None));
}

#[test]
fn a_stopped_stand_in_holds_its_lock() {
    let (monitor, lock) = codex();
    let mut holder = StandIn::start();
    holder.does("hold", &lock);
    holder.signal(Signal::STOP, WaitIdOptions::STOPPED);
    let held = look_codex(&monitor, T0 + 2 * DAY);
    assert_eq!((held.status, held.process.alive), (Status::Idle, Some(true)));
    assert_eq!(held.process.state.as_deref(), Some("stopped"));
    holder.kill();
}
