//! The `on_terminal` command: told at least once, never in the way, and by whom it concerns.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use lullwatch::lifecycle::Status;
use lullwatch::store::Store;
use lullwatch::store::runs;
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::stage::{HOUR, MINUTE, Stage, now, pid_in};

const NATIVE: &str = "26f52589-6919-4be1-ac4b-9de9d22c854c";
/// What consumer `on_terminal` has acknowledged, and how.
const ACKED: &str = "SELECT how, count(*) FROM terminal_deliveries
    WHERE consumer = 'on_terminal' GROUP BY how ORDER BY how";
const ATTEMPTS: &str = "SELECT attempts, last_error FROM delivery_attempts ORDER BY transition_id";

/// A stage whose `on_terminal` command runs that script, registered by a first pass. Each call's
/// envelope is in `$ENVELOPE`, and the log is `$LOG`.
fn stage(script: &str, timeout_ms: u64) -> Stage {
    let stage = Stage::new();
    let log = stage.path("log").display().to_string();
    // A folder that is watched from the start.
    stage.put(".claude/projects/-w/notes.txt", "");
    let told = stage.program("told", &format!("LOG={log}\nENVELOPE=$(cat)\n{script}"));
    configure(&stage, &told.display().to_string(), timeout_ms);
    stage.pass();
    stage
}

fn configure(stage: &Stage, command: &str, timeout_ms: u64) {
    let text = format!("[on_terminal]\ncommand = ['{command}']\ntimeout = '{timeout_ms}ms'\n");
    stage.put(".config/lullwatch/config.toml", &text);
}

const LOG: &str = "echo \"$ENVELOPE\" >> $LOG";

fn end_a_run(stage: &Stage) {
    assert!(stage.output(&["run", "--name", "r", "--", "true"]).status.success());
}

fn envelopes(stage: &Stage) -> Vec<Value> {
    stage.text("log").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_end_is_told_once_and_history_is_no_news() {
    let stage = Stage::new();
    // Ended before anything was configured, and ended before anybody looked.
    end_a_run(&stage);
    stage.answered_session(NATIVE, 30 * HOUR);
    let log = stage.path("log").display().to_string();
    let told = stage.program("told", &format!("cat >> {log}"));
    configure(&stage, &told.display().to_string(), 10_000);
    stage.pass();
    assert_eq!(stage.query("SELECT status FROM sessions"), "completed\n");
    assert_eq!(stage.text("log"), "");
    end_a_run(&stage);
    stage.pass();
    stage.pass();
    let told = envelopes(&stage);
    assert_eq!(told.len(), 1, "{told:?}");
    let one = &told[0];
    let fields = ["schema", "from", "to", "reason", "basis", "superseded", "attempt"];
    let values: Vec<String> = fields.iter().map(|name| one[name].to_string()).collect();
    let expected = [
        r#""lullwatch.terminal.v1""#,
        r#""running""#,
        r#""completed""#,
        r#""run.completed.ok""#,
        r#""observed""#,
        "false",
        "1",
    ];
    assert_eq!(values, expected);
    assert_eq!(one["entity"], serde_json::json!({"type": "run", "id": "r-2"}));
    let id = stage.query("SELECT max(id) FROM status_transitions WHERE entity_type = 'run'");
    assert_eq!(one["event_id"].to_string(), id.trim());
    assert_eq!(stage.query(ACKED), "delivered|1\n");
}

#[test]
fn one_exit_is_told_once_as_the_end_of_the_run_which_names_the_session() {
    let stage = stage(LOG, 10_000);
    stage.answered_session(NATIVE, 10 * MINUTE);
    stage.pass();
    let go = stage.path("go").display().to_string();
    stage.program("claude", &format!("while [ ! -e {go} ]; do sleep 0.01; done"));
    let run = stage.lullwatch(&["run", "--name", "r", "--", "claude"]).spawn().unwrap();
    stage.until("started", |stage| stage.query("SELECT status FROM runs") == "running\n");
    let mut store = Store::open(&stage.db(), Duration::from_secs(5), 1).unwrap();
    store.write(|tx| runs::link(tx, 1, "claude", NATIVE)).unwrap();
    stage.put("go", "");
    assert!(run.wait_with_output().unwrap().status.success());
    stage.pass();
    stage.pass();
    assert_eq!(stage.query("SELECT status FROM sessions"), "completed\n");
    let told = envelopes(&stage);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["entity"], serde_json::json!({"type": "run", "id": "r"}));
    assert_eq!(told[0]["session"], format!("claude:{NATIVE}"));
    assert_eq!(stage.query(ACKED), "delivered|1\nskipped|1\n");
    // What the operator has to take note of are two things: what the run came to, and the session.
    let shown = stage.output(&["ledger", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["items"].as_array().unwrap().len(), 2);
}

#[test]
fn a_failure_is_kept_and_tried_again_when_it_is_due() {
    let stage = stage(
        &format!("{LOG}\n[ -e $HOME/ok ] && exit 0\nprintf 'no\\033[31m way\\nmore' >&2; exit 3"),
        10_000,
    );
    end_a_run(&stage);
    let begin = now();
    let pass = |later: i64| {
        let at = jiff::Timestamp::from_millisecond(begin + later).unwrap().to_string();
        assert!(stage.output(&["--once", "--now", &at]).status.success());
        envelopes(&stage).len()
    };
    assert_eq!(pass(0), 1);
    assert_eq!(stage.query(ATTEMPTS), "1|exit status: 3: no way\n");
    let shown = stage.output(&["ledger", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["items"][0]["last_error"], "exit status: 3: no way", "the operator sees it");
    assert_eq!(pass(999), 1, "not due yet");
    assert_eq!(pass(1_000), 2);
    assert_eq!(pass(2_999), 2, "the wait has doubled");
    stage.put("ok", "");
    assert_eq!(pass(3_000), 3);
    assert_eq!(pass(HOUR), 3, "and that was the last time");
    assert_eq!(stage.query(ATTEMPTS), "2|\n");
    assert_eq!(stage.query(ACKED), "delivered|1\n");
    assert_eq!(envelopes(&stage)[2]["attempt"], 3);
}

#[test]
fn a_command_that_hangs_is_ended_with_its_group() {
    let script = "(trap '' TERM; echo > $HOME/deaf; sleep 60) & echo $! > $HOME/below\n\
        while [ ! -e $HOME/deaf ]; do sleep 0.01; done; wait";
    let stage = stage(script, 300);
    end_a_run(&stage);
    stage.pass();
    assert_eq!(stage.query(ATTEMPTS), "1|took longer than 300 ms and was ended\n");
    let below = pid_in(&stage.path("below")).unwrap();
    stage.until("gone", |_| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", below.as_raw_pid()));
        stat.map_or(true, |stat| stat.contains(") Z"))
    });
    assert_eq!(stage.query(ACKED), "");
}

#[test]
fn a_program_that_is_missing_is_an_error_like_any_other() {
    let stage = Stage::new();
    configure(&stage, "/no/such/program", 1_000);
    stage.pass();
    end_a_run(&stage);
    end_a_run(&stage);
    stage.pass();
    let attempts = stage.query(ATTEMPTS);
    assert_eq!(attempts.lines().count(), 2, "{attempts}");
    assert!(attempts.starts_with("1|cannot start `/no/such/program`: "), "{attempts}");
}

/// Writes ends of a session as if so many had ended at once.
fn storm(stage: &Stage, ends: i64, then: &[Status]) {
    #[expect(clippy::disallowed_methods, reason = "a test that plays the reconciler")]
    let mut raw = Connection::open(stage.db()).unwrap();
    raw.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    let transaction = raw.transaction().unwrap();
    let write = |session: i64, from: &str, to: &str| {
        let sql = "INSERT INTO status_transitions (entity_type, entity_id, previous_status, status,
                reason_code, basis, actor_type, actor_id, created_ms, ended_ms)
            VALUES ('session', ?1, ?2, ?3, 'session.completed.silence', 'inferred', 'system',
                'claude-mirror-reconcile', ?4, ?4)";
        transaction.execute(sql, (session, from, to, now())).unwrap();
    };
    for session in 1_000..1_000 + ends {
        write(session, "idle", "completed");
        for status in then {
            write(session, "completed", status.word());
        }
    }
    transaction.commit().unwrap();
}

#[test]
fn two_hundred_ends_at_once_are_each_told_and_keep_nobody_waiting() {
    let stage = stage(&format!("{LOG}\nwhile [ ! -e $HOME/gate ]; do sleep 0.01; done"), 60_000);
    let watch = stage.lullwatch(&["watch"]).stdout(Stdio::null()).spawn().unwrap();
    stage.until("watching", |stage| lullwatch::app::lock::is_held(&stage.db()));
    storm(&stage, 200, &[]);
    // A new file wakes the mirror, which tells the courier; it is mirrored while the first call
    // hangs.
    stage.answered_session(NATIVE, MINUTE);
    stage.until("mirrored", |stage| stage.query("SELECT status FROM sessions") == "running\n");
    stage.until("called", |stage| !stage.text("log").is_empty());
    assert_eq!(envelopes(&stage).len(), 1, "one at a time");
    stage.put("gate", "");
    stage.until("told", |stage| stage.query(ACKED) == "delivered|200\n");
    let mut ids: Vec<u64> =
        envelopes(&stage).iter().map(|one| one["event_id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), 200);
    assert!(ids.is_sorted(), "oldest first");
    ids.dedup();
    assert_eq!(ids.len(), 200);
    stop(watch);
}

fn stop(mut watch: std::process::Child) {
    let pid = Pid::from_raw(i32::try_from(watch.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert!(watch.wait().unwrap().success());
}

#[test]
fn to_end_while_the_command_runs_loses_nothing() {
    let stage = stage(&format!("{LOG}\nsleep 60"), 60_000);
    let watch = stage.lullwatch(&["watch"]).stdout(Stdio::null()).spawn().unwrap();
    stage.until("watching", |stage| lullwatch::app::lock::is_held(&stage.db()));
    end_a_run(&stage);
    stage.answered_session(NATIVE, MINUTE);
    stage.until("called", |stage| !stage.text("log").is_empty());
    stop(watch);
    assert_eq!((stage.query(ACKED), stage.query(ATTEMPTS)), (String::new(), String::new()));
}

#[test]
fn killed_between_delivery_and_acknowledgement_it_delivers_again() {
    let script = format!("{LOG}\n[ -e $HOME/killed ] || {{ : > $HOME/killed; kill -9 $PPID; }}");
    let stage = stage(&script, 10_000);
    end_a_run(&stage);
    let killed = stage.output(&["--once"]);
    assert_eq!(killed.status.signal(), Some(9));
    assert_eq!(stage.query(ACKED), "");
    stage.pass();
    let told = envelopes(&stage);
    assert_eq!(told.len(), 2);
    assert_eq!(told[0]["event_id"], told[1]["event_id"]);
    assert_eq!(stage.query(ACKED), "delivered|1\n");
}

#[test]
fn what_was_taken_back_before_the_first_attempt_is_skipped() {
    let stage = stage(LOG, 10_000);
    storm(&stage, 1, &[Status::Running]);
    stage.pass();
    assert_eq!(stage.text("log"), "");
    assert_eq!(stage.query(ACKED), "skipped|1\n");
}
