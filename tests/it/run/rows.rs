//! What is kept of a run, and of runs that never came to anything.

use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;

use super::{STORY, story};
use crate::stage::{Stage, now, stamp, transcript};

#[test]
fn a_folder_of_path_that_cannot_be_searched_hides_no_missing_command() {
    let stage = Stage::new();
    // Root may search every folder; what it may not either is start one.
    for folder in ["bin/no-such-program", "closed"] {
        std::fs::create_dir(stage.path(folder)).unwrap();
    }
    let closed = stage.path("closed");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o0)).unwrap();
    let path = format!("{}:{}:/usr/bin:/bin", closed.display(), stage.path("bin").display());
    let mut command = stage.lullwatch(&["run", "--", "no-such-program"]);
    let done = command.env("PATH", path).output().unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(done.status.code(), Some(127), "{done:?}");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(told.contains("cannot start `no-such-program`"), "{told}");
    assert_eq!(stage.query("SELECT status, exit_code FROM runs"), "failed|127\n");
}

#[test]
fn a_run_whose_wrapper_was_killed_before_the_command_ran_is_swept() {
    let stage = Stage::new();
    assert!(stage.output(&["run", "--", "true"]).status.success());
    #[expect(clippy::disallowed_methods, reason = "a test that plays a wrapper that was killed")]
    let raw = Connection::open(stage.db()).unwrap();
    let make = |name: &str, start: &str| {
        raw.execute(
            "INSERT INTO runs (name, host, scope, wrapper_pid, wrapper_start, started_ms, status,
                version)
            SELECT ?1, host, scope, ?2, CASE ?3 WHEN 'same' THEN ?4 ELSE '1' END, started_ms,
                'starting', 1 FROM runs WHERE id = 1",
            (name, std::process::id(), start, own_start()),
        )
        .unwrap();
    };
    make("killed", "another");
    make("alive", "same");
    stage.pass();
    let rows = stage.query("SELECT name, status, reason_code FROM runs WHERE id > 1 ORDER BY id");
    assert_eq!(rows, "killed|aborted|run.aborted.process_gone\nalive|starting|\n");
    let last = stage.query(STORY).lines().last().unwrap().to_owned();
    assert_eq!(last, "starting|aborted|run.aborted.process_gone|lullwatch-sweep");
}

/// When this very process started, in the kernel's ticks.
fn own_start() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().to_owned()
}

#[test]
fn secrets_of_a_command_line_reach_the_command_and_not_the_database() {
    let stage = Stage::new();
    stage.program("agent", "echo \"$@\"");
    let command = ["run", "--", "agent", "A=s3cret", "--api-key", "s3cret", "--token=s3cret", "go"];
    let done = stage.output(&command);
    assert_eq!(done.stdout, b"A=s3cret --api-key s3cret --token=s3cret go\n");
    let kept = stage.query("SELECT argv FROM runs");
    assert_eq!(kept, "[\"agent\",\"A=***\",\"--api-key\",\"***\",\"--token=***\",\"go\"]\n");
}

/// A Codex rollout of one turn, begun so long ago, in the folder where runs are started.
fn rollout(stage: &Stage, native: &str, ago: i64) {
    let at = stamp(ago);
    let cwd = stage.path("work").display().to_string();
    let line = |kind: &str, payload: &str| {
        format!(r#"{{"timestamp":"{at}","type":"{kind}","payload":{payload}}}"#)
    };
    let meta = format!(
        r#"{{"id":"{native}","timestamp":"{at}","cwd":"{cwd}","originator":"codex_exec","cli_version":"0.171.0","source":"exec"}}"#
    );
    let turn = r#""turn_id":"01a22b80-efc0-7b2f-8dc8-e6f315882441""#;
    let lines = [
        line("session_meta", &meta),
        line("event_msg", &format!(r#"{{"type":"task_started",{turn}}}"#)),
        line("event_msg", r#"{"type":"user_message","message":"go","images":[]}"#),
        line(
            "event_msg",
            &format!(
                r#"{{"type":"task_complete",{turn},"error":{{"message":"busy","codex_error_info":"internal_server_error"}}}}"#
            ),
        ),
    ];
    stage.put(&transcript("codex", native), &(lines.join("\n") + "\n"));
}

#[test]
fn a_run_is_linked_to_its_own_session_and_not_to_the_one_before_it() {
    let own = "26f52589-6919-4be1-ac4b-9de9d22c854c";
    let before = "11111111-1111-4111-8111-111111111111";
    let stage = Stage::new();
    rollout(&stage, before, 300);
    // Its own, made ahead and stamped when it is put in its place: the stamps of sh are too coarse.
    rollout(&stage, own, -400);
    let place = stage.path(&transcript("codex", own));
    let aside = stage.path("aside");
    std::fs::rename(&place, &aside).unwrap();
    let until = now() + 400;
    let script = format!(
        "while [ $(date +%s%3N) -lt {until} ]; do sleep 0.01; done\nmv {} {}\nexit 1",
        aside.display(),
        place.display()
    );
    stage.program("codex", &script);
    let done = stage.output(&["run", "--", "codex"]);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert_eq!(stage.query("SELECT agent, native_id FROM runs"), format!("codex|{own}\n"));
    stage.pass();
    let failed = "running|failed|run.failed.provider_retryable|lullwatch-run\n";
    assert_eq!(story(&stage), failed);
}
