//! Stand-in agents under `lullwatch run`: what reaches them, what passes through, what is recorded.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

use lullwatch::lifecycle::Status;
use lullwatch::lifecycle::run::{self, Cause, Ended};
use lullwatch::store::runs::{self, NewRun};
use rstest::rstest;
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};

use crate::bed::{Bed, T0};
use crate::stage::{HOUR, MINUTE, Stage, pid_in};

mod rows;
mod terminal;

const STORY: &str = "SELECT coalesce(previous_status, 'none'), status, reason_code, actor_id
    FROM status_transitions WHERE entity_type = 'run' ORDER BY id";
const NATIVE: &str = "26f52589-6919-4be1-ac4b-9de9d22c854c";
const STARTED: &str = "none|starting|run.started.ok|lullwatch-run\n\
    starting|running|run.started.ok|lullwatch-run\n";

/// The story of the one run after its start: `from|to|reason|actor` a line.
fn story(stage: &Stage) -> String {
    let story = stage.query(STORY);
    let rest = story.strip_prefix(STARTED);
    rest.unwrap_or_else(|| panic!("no start in {story}")).to_owned()
}

/// Overrides, rejections, migrations; pending entries of the operator's ledger about runs.
fn counts(stage: &Stage) -> (String, String) {
    let audit = stage.query("SELECT count(*) FROM admin_events");
    let ledger = stage.query(
        "SELECT count(*) FROM status_transitions t JOIN consumers c ON c.name = 'operator'
        WHERE t.entity_type = 'run' AND t.id > c.since_seq AND t.previous_status IS NOT NULL
            AND t.status NOT IN ('starting', 'running')",
    );
    (audit.trim().to_owned(), ledger.trim().to_owned())
}

#[rstest]
#[case::good("exit 0", 0, "completed", "run.completed.ok")]
#[case::bad("exit 1", 1, "failed", "run.failed.exit_nonzero")]
#[case::odd("exit 77", 77, "failed", "run.failed.exit_nonzero")]
#[case::killed("kill -KILL $$", 137, "failed", "run.failed.exit_nonzero")]
#[case::interrupted("kill -INT $$", 130, "cancelled", "run.cancelled.sigint")]
#[case::terminated("kill -TERM $$", 143, "cancelled", "run.cancelled.sigterm")]
#[case::hung_up("kill -HUP $$", 129, "aborted", "run.aborted.user")]
fn the_end_of_the_command_is_the_end_of_the_run(
    #[case] script: &str,
    #[case] code: i32,
    #[case] status: &str,
    #[case] reason: &str,
) {
    let stage = Stage::new();
    let done = stage.output(&["run", "--name", "r", "--", "sh", "-c", script]);
    assert_eq!(done.status.code(), Some(code), "{done:?}");
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    assert_eq!(story(&stage), format!("running|{status}|{reason}|lullwatch-run\n"));
    assert_eq!(counts(&stage), ("0".to_owned(), "1".to_owned()));
    let row = "SELECT name, status, ended_ms >= started_ms, duration_ms = ended_ms - started_ms,
        ended_approx, child_pid > 0, child_start > 0, wrapper_start > 0 FROM runs";
    assert_eq!(stage.query(row), format!("r|{status}|1|1|0|1|1|1\n"));
}

#[test]
fn what_goes_in_and_out_is_not_touched() {
    let stage = Stage::new();
    let script = "cat; echo \"$1 $2\"; echo wrong >&2";
    let mut child = stage
        .lullwatch(&["run", "--", "sh", "-c", script, "sh", "--json", "two words"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"in\0\xff\n").unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.stdout, b"in\0\xff\n--json two words\n");
    assert_eq!(done.stderr, b"wrong\n");
}

#[test]
fn a_command_that_is_not_there_fails_as_a_shell_says_it() {
    let stage = Stage::new();
    let done = stage.output(&["run", "--", "no-such-program"]);
    assert_eq!(done.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&done.stderr).contains("`no-such-program`"), "{done:?}");
    let failed = "none|starting|run.started.ok|lullwatch-run\n\
        starting|failed|run.failed.exit_nonzero|lullwatch-run\n";
    assert_eq!(stage.query(STORY), failed);
    stage.put("work/plain", "no program");
    let done = stage.output(&["run", "--", "./plain"]);
    assert_eq!(done.status.code(), Some(126));
}

#[test]
fn names_are_unique_and_no_command_is_refused_for_one() {
    let stage = Stage::new();
    for _ in 0..3 {
        assert!(stage.output(&["run", "--name", "twin", "--", "true"]).status.success());
    }
    assert_eq!(stage.query("SELECT name FROM runs ORDER BY id"), "twin\ntwin-2\ntwin-3\n");
}

/// Starts a command under watch that writes its pid, and waits until it has.
fn start(stage: &Stage, arguments: &[&str], script: &str) -> (Child, Pid) {
    stage.program("agent", &format!("echo $$ > {}\n{script}", stage.path("pid").display()));
    let mut command = vec!["run"];
    command.extend(arguments);
    command.extend(["--", "agent"]);
    let child = stage.lullwatch(&command).spawn().unwrap();
    stage.until("started", |stage| {
        pid_in(&stage.path("pid")).is_some()
            && stage.query("SELECT status FROM runs") == "running\n"
    });
    (child, pid_in(&stage.path("pid")).unwrap())
}

fn id(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

#[rstest]
#[case::interrupt(Signal::INT, "INT", "cancelled|run.cancelled.sigint")]
#[case::terminate(Signal::TERM, "TERM", "cancelled|run.cancelled.sigterm")]
#[case::quit(Signal::QUIT, "QUIT", "aborted|run.aborted.user")]
fn a_signal_to_the_wrapper_reaches_the_command_once(
    #[case] signal: Signal,
    #[case] name: &str,
    #[case] end: &str,
) {
    let stage = Stage::new();
    let log = stage.path("log");
    let script = format!(
        "trap 'echo {name} >> {0}' {name}\ni=0\n\
        while [ ! -s {0} ] && [ $i -lt 3000 ]; do sleep 0.01; i=$((i+1)); done\nexit 9",
        log.display()
    );
    let (mut child, _) = start(&stage, &[], &script);
    kill_process(id(&child), signal).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(9));
    assert_eq!(stage.text("log"), format!("{name}\n"));
    assert_eq!(story(&stage), format!("running|{end}|lullwatch-run\n"));
}

/// A command that waits for a file, or for 30 s.
fn waits_for(stage: &Stage, name: &str, then: &str) -> String {
    let file = stage.path(name);
    format!(
        "i=0\nwhile [ ! -e {} ] && [ $i -lt 3000 ]; do sleep 0.01; i=$((i+1)); done\n{then}",
        file.display()
    )
}

#[test]
fn a_time_limit_ends_the_command_and_all_below_it() {
    let stage = Stage::new();
    let script = format!("sleep 60 & echo $! > {}\nwait", stage.path("below").display());
    stage.program("agent", &script);
    let done = stage.output(&["run", "--timeout", "300ms", "--", "agent"]);
    assert_eq!(done.status.code(), Some(124));
    assert_eq!(story(&stage), "running|timed_out|run.timed_out.deadline|lullwatch-run\n");
    let below = pid_in(&stage.path("below")).unwrap();
    stage.until("gone", |_| is_gone(below));
}

fn is_gone(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
    stat.map_or(true, |stat| stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
}

#[test]
fn a_killed_wrapper_leaves_a_run_that_is_swept_only_when_its_agent_is_gone_too() {
    let stage = Stage::new();
    let script = waits_for(&stage, "stop", "exit 0");
    let (mut wrapper, agent) = start(&stage, &[], &script);
    wrapper.kill().unwrap();
    wrapper.wait().unwrap();
    stage.pass();
    assert_eq!(story(&stage), "", "the agent outlives its wrapper");
    stage.put("stop", "");
    stage.until("gone", |_| is_gone(agent));
    stage.pass();
    stage.pass();
    assert_eq!(story(&stage), "running|aborted|run.aborted.process_gone|lullwatch-sweep\n");
    assert_eq!(counts(&stage), ("0".to_owned(), "1".to_owned()));
    let proof = stage.query("SELECT evidence FROM runs");
    assert_eq!(proof.matches("is gone").count() + proof.matches("has ended").count(), 2, "{proof}");
}

#[test]
fn a_pid_that_belongs_to_another_process_now_is_gone_and_another_hosts_is_not() {
    let stage = Stage::new();
    assert!(stage.output(&["run", "--", "true"]).status.success());
    #[expect(clippy::disallowed_methods, reason = "a test that plays a wrapper that was killed")]
    let raw = Connection::open(stage.db()).unwrap();
    let own = std::process::id();
    let make = |name: &str, host: &str, start: i64| {
        raw.execute(
            "INSERT INTO runs (name, host, scope, wrapper_pid, wrapper_start, child_pid,
                child_start, started_ms, status, version)
            SELECT ?1, replace(host, host, coalesce(nullif(?2, ''), host)), scope, ?3, ?4, ?3, ?4,
                started_ms, 'running', 1 FROM runs WHERE id = 1",
            (name, host, own, start.to_string()),
        )
        .unwrap();
    };
    make("reused", "", 1);
    make("elsewhere", "another-host", 1);
    stage.pass();
    let rows = stage.query("SELECT name, status FROM runs WHERE id > 1 ORDER BY id");
    assert_eq!(rows, "reused|aborted\nelsewhere|running\n");
}

#[test]
fn a_locked_database_keeps_no_command_waiting() {
    let stage = Stage::new();
    stage.pass();
    #[expect(clippy::disallowed_methods, reason = "a test that plays another program")]
    let raw = Connection::open(stage.db()).unwrap();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let done = stage.output(&["run", "--", "sh", "-c", "echo out; exit 3"]);
    assert_eq!(done.status.code(), Some(3));
    assert_eq!(done.stdout, b"out\n");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("the run is not recorded") && told.contains("locked"), "{told}");
    raw.execute_batch("ROLLBACK").unwrap();
    assert_eq!(stage.query("SELECT count(*) FROM runs"), "0\n");
}

#[test]
fn a_database_that_was_locked_at_the_start_gets_the_whole_run_at_the_end() {
    let stage = Stage::new();
    stage.pass();
    stage.program("agent", &waits_for(&stage, "go", "exit 4"));
    #[expect(clippy::disallowed_methods, reason = "a test that plays another program")]
    let raw = Connection::open(stage.db()).unwrap();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let told = std::fs::File::create(stage.path("told")).unwrap();
    let command = stage.lullwatch(&["run", "--", "agent"]).stderr(told).spawn().unwrap();
    stage.until("told", |stage| stage.text("told").contains("locked"));
    raw.execute_batch("ROLLBACK").unwrap();
    stage.put("go", "");
    let done = command.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(4));
    assert_eq!(story(&stage), "running|failed|run.failed.exit_nonzero|lullwatch-run\n");
}

#[test]
fn a_database_that_cannot_be_used_is_told_and_the_command_runs() {
    let stage = Stage::new();
    stage.put("state/x.db", "this is no database, and long enough to be seen as none");
    let done = stage.output(&["run", "--", "sh", "-c", "echo out"]);
    assert!(done.status.success());
    assert_eq!(done.stdout, b"out\n");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(told.lines().count(), 2, "what happened, and a hint: {told}");
    assert!(told.contains("not a database of lullwatch"), "{told}");
}

/// A run of an agent whose session is linked while it waits; its last word is an API error.
fn provider_error(agent: &str, native: &str, ago: Option<i64>) -> Stage {
    let stage = Stage::new();
    if let Some(ago) = ago {
        stage.failed_session(agent, native, ago);
    }
    stage.pass();
    stage.program(agent, &waits_for(&stage, "go", "exit 1"));
    let child = stage.lullwatch(&["run", "--", agent]).spawn().unwrap();
    stage.until("started", |stage| stage.query("SELECT status FROM runs") == "running\n");
    let mut store = lullwatch::store::Store::open(&stage.db(), Duration::from_secs(5), 1).unwrap();
    store.write(|tx| runs::link(tx, 1, agent, native)).unwrap();
    stage.put("go", "");
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    stage
}

const ROW: &str = "SELECT status, exit_code, ended_ms IS NOT NULL, duration_ms IS NOT NULL,
    reason_summary = 'awaiting linked session' FROM runs";

#[rstest]
fn a_provider_error_is_settled_by_the_linked_session(
    #[values("claude", "codex", "dsh")] agent: &str,
    #[values("terminal", "running", "idle", "none")] row: &str,
) {
    let ago = match row {
        "terminal" => Some(25 * HOUR),
        "running" => Some(0),
        "idle" => Some(10 * MINUTE),
        _ => None,
    };
    let stage = provider_error(agent, NATIVE, ago);
    let session = "SELECT status FROM sessions";
    match row {
        "terminal" => {
            assert_eq!(stage.query(session), "completed\n");
            assert_eq!(story(&stage), "running|completed|run.completed.ok|lullwatch-run\n");
            assert_eq!(stage.query(ROW), "completed|1|1|0|0\n");
        }
        "none" => {
            assert_eq!(story(&stage), "running|failed|run.failed.exit_nonzero|lullwatch-run\n");
            assert_eq!(stage.query(ROW), "failed|1|1|1|0\n");
        }
        live => {
            assert_eq!(stage.query(session), format!("{live}\n"));
            assert_eq!(story(&stage), "");
            assert_eq!(stage.query(ROW), "running|1|0|0|1\n");
            // The child's exit ends the session; of how the run went it says nothing.
            stage.pass();
            assert_eq!(stage.query(session), "completed\n");
            let failed = "running|failed|run.failed.provider_retryable|lullwatch-run\n";
            assert_eq!(story(&stage), failed);
            assert_eq!(stage.query(ROW), "failed|1|1|1|0\n");
            let ends = "SELECT (SELECT ended_ms FROM runs) = (SELECT ended_ms FROM sessions)";
            assert_eq!(stage.query(ends), "1\n");
            let evidence =
                "SELECT source, says, ended_ms IS NOT NULL FROM evidence WHERE source <> 'writer'";
            assert_eq!(stage.query(evidence), "run|exited|1\n");
        }
    }
    assert_eq!(counts(&stage), ("0".to_owned(), "1".to_owned()));
}

#[rstest]
fn after_a_run_has_ended_a_pass_writes_nothing(#[values("claude", "codex", "dsh")] agent: &str) {
    let stage = provider_error(agent, NATIVE, Some(0));
    stage.pass();
    stage.pass();
    let told = "SELECT source, says FROM evidence WHERE source = 'run'";
    assert_eq!(stage.query(told), "run|exited\n");
    let done = stage.output(&["--once", "--stats"]);
    let stats = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(stats.contains("rows_written=0\n"), "{stats}");
}

#[test]
fn without_an_admitted_row_the_code_of_the_provider_decides() {
    for (error, reason) in [
        ("rate_limit x", "run.failed.provider_retryable"),
        ("billing_error x", "run.failed.provider_nonretryable"),
    ] {
        let mut bed = Bed::new();
        let session = bed.session("claude", "a", T0);
        let facts = format!(r#"{{"turn":"closed","last_turn":"error","last_error":"{error}"}}"#);
        bed.sql("UPDATE sessions SET facts = ?2 WHERE id = ?1", (session, facts));
        let row = NewRun {
            name: "r",
            host: "h",
            agent: Some("claude"),
            argv: "[]",
            scope: "{}",
            wrapper_pid: Some(1),
            wrapper_start: None,
            started_ms: T0,
        };
        bed.store
            .write(|tx| {
                let id = runs::insert(tx, &row)?;
                run::admit(tx, id, T0)?;
                run::start(tx, id, 2, Some("3"), T0)?;
                runs::link(tx, id, "claude", "a")?;
                run::end(tx, id, Ended::Exit(1), Cause::Itself, T0 + 5)
            })
            .unwrap();
        let row = bed.store.read(|tx| runs::load(tx, 1)).unwrap().unwrap();
        assert_eq!(row.status, Some(Status::Failed));
        assert_eq!(bed.value::<String>("SELECT reason_code FROM runs", []), reason);
    }
}

#[test]
fn a_session_is_linked_by_the_registry_entry_of_a_process_below_the_command() {
    let stage = Stage::new();
    stage.answered_session(NATIVE, 2 * HOUR);
    let entry = format!(
        "set -- $(cat /proc/$$/stat)\nmkdir -p $HOME/.claude/sessions\n\
        printf '{{\"pid\":%s,\"procStart\":\"%s\",\"sessionId\":\"{NATIVE}\",\"cwd\":\"/\"}}' \
        $$ ${{22}} > $HOME/.claude/sessions/$$.json\necho $$ > $HOME/pid\n"
    );
    stage.program("inner", &format!("{entry}{}", waits_for(&stage, "go", "exit 0")));
    stage.program("outer", "inner\nexit 0");
    let child = stage.lullwatch(&["run", "--", "outer"]).spawn().unwrap();
    stage.until("there", |stage| {
        pid_in(&stage.path("pid")).is_some()
            && stage.query("SELECT status FROM runs") == "running\n"
    });
    stage.pass();
    let link = "SELECT agent, native_id FROM runs";
    assert_eq!(stage.query(link), format!("claude|{NATIVE}\n"));
    stage.put("go", "");
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(story(&stage), "running|completed|run.completed.ok|lullwatch-run\n");
    stage.pass();
    assert_eq!(
        stage.query("SELECT source, says FROM evidence WHERE source = 'run'"),
        "run|exited\n"
    );
}

#[rstest]
#[case::codex("codex", ".codex/thread-writer-locks/26f52589-6919-4be1-ac4b-9de9d22c854c.lock")]
#[case::dsh("dsh", ".dsh/sessions/--w--/26f52589-6919-4be1-ac4b-9de9d22c854c/session.lock")]
fn a_session_is_linked_by_the_lock_that_the_command_holds(#[case] agent: &str, #[case] lock: &str) {
    let stage = Stage::new();
    stage.failed_session(agent, NATIVE, 2 * HOUR);
    stage.put(lock, "");
    // A stand-in in a language that can hold a lock: this very test binary.
    let holder = std::env::current_exe().unwrap();
    let arguments = ["--exact", "run::holds_a_lock", "--ignored", "-q"];
    let mut command = stage.lullwatch(&["run", "--"]);
    command.arg(holder).args(arguments).env("LULLWATCH_TEST_LOCK", stage.path(lock));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    stage.until("held", |stage| stage.text(lock) == "held");
    stage.until("recorded", |stage| stage.query("SELECT status FROM runs") == "running\n");
    stage.pass();
    let link = "SELECT agent, native_id FROM runs";
    assert_eq!(stage.query(link), format!("{agent}|{NATIVE}\n"));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
#[ignore = "a stand-in for the test above, not a test"]
fn holds_a_lock() {
    let Some(path) = std::env::var_os("LULLWATCH_TEST_LOCK") else { return };
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.lock().unwrap();
    file.write_all(b"held").unwrap();
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}

#[test]
fn a_session_is_linked_by_agent_and_directory_at_the_end_or_by_a_later_pass() {
    for (monitored, late) in [(true, false), (false, false), (true, true)] {
        let stage = Stage::new();
        if monitored {
            // A root that is there has an epoch: a monitor has looked at it.
            stage.put(".claude/settings.json", "{}");
            stage.pass();
        }
        stage.answered_session("11111111-1111-4111-8111-111111111111", HOUR);
        let cwd = stage.path("work").display().to_string();
        let record = format!(
            r#"{{"type":"user","uuid":"u","isSidechain":false,"timestamp":"%s","cwd":"{cwd}","sessionId":"{NATIVE}","version":"2.1.270","message":{{"role":"user","content":"go"}}}}\n"#
        );
        let file = stage.path(&crate::stage::transcript("claude", NATIVE));
        let folder = file.parent().unwrap().display();
        let written = if late { stage.path("aside") } else { file.clone() };
        let script = format!(
            "mkdir -p {folder}\nprintf '{record}' $(date -u +%Y-%m-%dT%H:%M:%S.999Z) > {}",
            written.display()
        );
        stage.program("claude", &script);
        assert!(stage.output(&["run", "--", "claude"]).status.success());
        if late {
            assert_eq!(stage.query("SELECT native_id IS NULL FROM runs"), "1\n");
            std::fs::rename(&written, &file).unwrap();
            stage.pass();
        }
        let link = "SELECT agent, native_id FROM runs";
        assert_eq!(stage.query(link), format!("claude|{NATIVE}\n"));
        let told = "SELECT s.native_id, e.source FROM evidence e JOIN sessions s
            ON s.id = e.session_id WHERE e.source = 'run'";
        stage.until("told", |stage| {
            stage.pass();
            stage.query(told) == format!("{NATIVE}|run\n")
        });
        // Nothing was said by the model: that is known if it was read when the command ended.
        let end = if late { "completed" } else { "completed_empty" };
        assert_eq!(story(&stage), format!("running|{end}|run.completed.ok|lullwatch-run\n"));
    }
}
