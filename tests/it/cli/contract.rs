//! What `--once` says: of nothing, of one session of each agent, and field for field in JSON.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::paper::{
    CLAUDE_ID, CODEX_ID, DSH_ID, append, claude_answer, claude_path, claude_prompt, claude_session,
    codex_session, dsh_session,
};
use super::tree::{Kind, Tree};
use super::{Home, MINUTE, NOW, Run, run};

/// One finished session of each agent.
fn three() -> Home {
    let home = Home::new();
    claude_session(&home, CLAUDE_ID, NOW - 2 * MINUTE, "Add a table");
    codex_session(&home, CODEX_ID, NOW - 12 * MINUTE, "Fix the parser", "Fixed.");
    dsh_session(&home, DSH_ID, NOW - 22 * MINUTE, "Write a page", "Written.");
    home
}

#[test]
fn an_empty_home_is_told_where_was_looked_and_what_to_do() {
    let home = Home::new();
    let out = run(&home, &["--once"]).fine();
    insta::with_settings!({filters => [(regex_of(&home).as_str(), "~")]}, {
        insta::assert_snapshot!("empty_home", out);
    });
    assert_eq!(run(&home, &[]).fine(), out, "without a terminal it is the same");
    let dumb = Run::new(&home, &[]).env("TERM", "dumb").said().fine();
    assert_eq!(dumb, out, "and with a dumb one");
}

fn regex_of(home: &Home) -> String {
    home.home().display().to_string().replace('.', r"\.")
}

#[test]
fn an_empty_home_is_valid_json_with_no_sessions() {
    let snapshot = run(&Home::new(), &["--once", "--json"]).json();
    assert_eq!(snapshot.get("sessions"), "[]");
    assert_eq!(snapshot.get("windows"), r#"{"live_ms":300000,"ended_ms":86400000}"#);
    assert_eq!(snapshot.get("mirror.writer"), "true");
    assert_eq!(snapshot.breaches(SNAPSHOT), [""; 0]);
}

#[test]
fn the_other_commands_have_an_answer_for_an_empty_home() {
    let home = Home::new();
    for command in ["audit", "ledger", "compactions"] {
        let out = run(&home, &[command]).fine();
        assert!(out.trim_end().len() > 20, "{command}: {out}");
        let json = run(&home, &[command, "--json"]).json();
        assert_eq!(json.get("schema"), format!("\"lullwatch.{command}.v1\""));
        assert_eq!(json.get("generated_at"), "\"2026-11-30T09:00:00.000Z\"");
        assert_eq!(json.get("items"), "[]");
    }
}

#[test]
fn one_session_of_each_agent_is_a_row_that_a_person_can_read() {
    let out = run(&three(), &["--once"]).fine();
    insta::assert_snapshot!("three_agents", out);
}

#[test]
fn one_session_of_each_agent_is_an_object_with_every_fact() {
    let out = run(&three(), &["--once", "--json"]).json();
    assert_eq!(out.breaches(SNAPSHOT), [""; 0]);
    let sessions: String = out.at("sessions").lines();
    insta::assert_snapshot!("three_agents_json", sessions);
}

#[test]
fn two_runs_of_the_same_minute_print_the_same_table() {
    let home = three();
    let first = run(&home, &["--once"]).fine();
    let later = Run::new(&home, &["--once"]).at(NOW + 59_000).said().fine();
    assert_eq!(first, later);
}

#[test]
fn filters_change_what_is_listed_and_counted_and_nothing_else() {
    let home = three();
    let all = run(&home, &["--once", "--json"]).json();
    let one = run(&home, &["--once", "--json", "--agent", "codex"]).json();
    let ids = |tree: &Tree| -> Vec<String> {
        tree.at("sessions").items().iter().map(|session| session.get("id")).collect()
    };
    assert_eq!(ids(&one), [format!("\"codex:{CODEX_ID}\"")]);
    assert_eq!(one.get("counts.idle"), "1");
    assert_eq!(one.get("mirror"), all.get("mirror"));
    let recent = run(&home, &["--once", "--json", "--since", "5m"]).json();
    assert_eq!(ids(&recent), [format!("\"claude:{CLAUDE_ID}\"")]);
    let out = run(&home, &["--once", "--agent", "dsh", "--since", "1m"]).fine();
    assert!(out.contains("--since"), "it says what hides them: {out}");
}

#[test]
fn sub_agents_are_listed_when_they_are_asked_for() {
    let home = Home::new();
    claude_session(&home, CLAUDE_ID, NOW - 9 * MINUTE, "Parent");
    let own = format!(".claude/projects/-tmp-demo/{CLAUDE_ID}/subagents/agent-a1b2c3d4.jsonl");
    let mut lines = vec![
        claude_prompt(CLAUDE_ID, NOW - MINUTE, "Look for it"),
        claude_answer(CLAUDE_ID, NOW - MINUTE + 500, "Found."),
    ];
    for line in &mut lines {
        line["isSidechain"] = true.into();
        line["agentId"] = "a1b2c3d4".into();
    }
    append(&home, &own, &lines);
    let plain = run(&home, &["--once", "--json"]).json();
    assert_eq!(plain.at("sessions").items().len(), 1);
    assert_eq!(plain.get("sessions.0.children"), "1");
    assert_eq!(plain.get("sessions.0.status"), "\"running\"", "its activity climbs");
    let both = run(&home, &["--once", "--json", "--children"]).json();
    assert_eq!(both.breaches(SNAPSHOT), [""; 0]);
    let child = both.at("sessions").items().iter().find(|one| one.get("kind") == "\"subagent\"");
    let child = child.unwrap_or_else(|| panic!("{both}"));
    assert_eq!(child.get("id"), format!("\"claude:{CLAUDE_ID}/a1b2c3d4\""));
    assert_eq!(child.get("parent_native_id"), format!("\"{CLAUDE_ID}\""));
    assert_eq!(child.get("title"), "\"Look for it\"");
}

#[test]
fn a_reader_that_leaves_after_one_line_is_no_error() {
    let home = three();
    for n in 0..900 {
        let id = format!("{n:08}-6919-4be1-ac4b-9de9d22c854c");
        append(&home, &claude_path(&id), &[claude_prompt(&id, NOW - MINUTE, "one of many")]);
    }
    run(&home, &["--once"]).fine();
    for args in [&["--once"][..], &["--once", "--json"], &["--once", "--children"]] {
        let mut child = Run::new(&home, args).command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = vec![0; 64];
        std::io::Read::read_exact(&mut out, &mut line).unwrap();
        drop(out);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{args:?}");
        assert_eq!(ended.status.code(), Some(0), "{args:?}");
    }
}

#[test]
fn a_stdout_that_is_closed_from_the_start_is_no_error() {
    let home = three();
    let program = env!("CARGO_BIN_EXE_lullwatch");
    for close in [">&-", ">&- 2>&-", "<&- >&- 2>&-"] {
        let mut shell = Run::new(&home, &[]);
        let script = format!("{program} --once {close}; echo ended $?");
        shell.command = {
            let mut command = std::process::Command::new("/bin/sh");
            command.args(["-c", &script]).env_clear().env("HOME", home.home());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command
        };
        let said = shell.at(NOW).said();
        assert_eq!((said.out.as_str(), said.err.as_str()), ("ended 0\n", ""), "{close}");
    }
}

#[test]
fn a_full_disk_behind_stdout_is_a_fault_that_is_told() {
    let home = three();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut run = Run::new(&home, &["--once"]);
    run.command.stdout(full);
    let said = run.said();
    assert_eq!(said.code, Some(1));
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
}

#[test]
fn json_is_one_line_that_ends() {
    let home = three();
    let out = run(&home, &["--once", "--json"]).fine();
    assert_eq!(BufReader::new(out.as_bytes()).lines().count(), 1);
    assert!(out.ends_with("}\n"));
}

use Kind::{Bool, List, Number, Object, Or, Text, Time, Word};

/// Section 8 of the design, by hand.
const SNAPSHOT: Kind = Object(&[
    ("schema", Word(&["lullwatch.snapshot.v1"])),
    ("generated_at", Time),
    ("as_of", Or(&Time)),
    ("host", Text),
    ("windows", Object(&[("live_ms", Number), ("ended_ms", Number)])),
    (
        "counts",
        Object(&[
            ("running", Number),
            ("idle", Number),
            ("completed", Number),
            ("other", Number),
            ("unchecked", Number),
            ("attention", Number),
            ("at_work", Number),
            ("your_turn", Number),
        ]),
    ),
    ("hidden", Number),
    (
        "mirror",
        Object(&[
            ("writer", Bool),
            ("files", Number),
            ("bytes", Number),
            ("skipped_lines", Number),
            ("complete", Bool),
            ("warnings", List(&Text)),
        ]),
    ),
    (
        "audit",
        Object(&[
            ("overrides", Number),
            ("overrides_after_exit", Number),
            ("rejections", Number),
            ("migrations", Number),
        ]),
    ),
    ("ledger", Object(&[("consumer", Text), ("pending", Number)])),
    ("sessions", List(&SESSION)),
]);

/// One session: also what `show` prints.
pub(super) const SESSION: Kind = Object(&[
    ("id", Text),
    ("agent", Word(&["claude", "codex", "dsh"])),
    ("native_id", Text),
    ("kind", Word(&["main", "fork", "team", "background", "sdk", "subagent", "internal"])),
    ("parent_native_id", Or(&Text)),
    ("title", Or(&Text)),
    ("title_source", Or(&Text)),
    ("cwd", Or(&Text)),
    ("branch", Or(&Text)),
    ("model", Or(&Text)),
    ("agent_version", Or(&Text)),
    (
        "status",
        Word(&[
            "running",
            "idle",
            "completed",
            "completed_empty",
            "failed",
            "timed_out",
            "aborted",
            "cancelled",
        ]),
    ),
    ("status_since", Or(&Time)),
    ("reason", REASON),
    ("phase", Or(&Text)),
    ("attention", Bool),
    ("turn", Word(&["open", "closed", "interrupted", "none"])),
    ("last_turn", Or(&Word(&["completed", "aborted", "error"]))),
    ("last_error", Or(&Text)),
    ("started_at", Or(&Time)),
    ("last_activity_at", Or(&Time)),
    ("clock_ahead", Bool),
    ("quiet_ms", Or(&Number)),
    ("ended_at", Or(&Time)),
    ("ended_at_approximate", Bool),
    ("checked_at", Or(&Time)),
    (
        "process",
        Object(&[
            ("alive", Or(&Bool)),
            ("pid", Or(&Number)),
            ("state", Or(&Text)),
            ("source", Or(&Text)),
        ]),
    ),
    ("prompts", Number),
    ("answers", Number),
    ("tool_calls", Number),
    ("skipped_lines", Number),
    ("last_text", Or(&Text)),
    (
        "tokens",
        Object(&[
            ("input", Number),
            ("cache_read", Number),
            ("cache_write", Number),
            ("output", Number),
            ("total", Number),
        ]),
    ),
    ("context", Object(&[("used", Or(&Number)), ("window", Or(&Number))])),
    ("compaction", COMPACTION),
    ("notices", List(&Object(&[("code", Text), ("text", Text)]))),
    ("children", Number),
    ("active_children", Number),
    ("transcript", Word(&["present", "missing"])),
    (
        "waiting_for",
        Or(&Object(&[
            ("kind", Word(&["approval", "question", "plan", "input"])),
            ("tool", Or(&Text)),
            ("text", Or(&Text)),
            ("since", Or(&Time)),
        ])),
    ),
    ("ended_in", Or(&Word(&["turn", "error"]))),
]);

pub(super) const REASON: Kind = Object(&[
    ("code", Or(&Text)),
    ("summary", Or(&Text)),
    ("basis", Word(&["observed", "inferred"])),
    ("rule", Or(&Text)),
    ("evidence", List(&Text)),
]);

pub(super) const COMPACTION: Kind = Object(&[
    ("bracket", Word(&["none", "open", "closed", "failed", "stale"])),
    ("state", Or(&Text)),
    ("phase", Or(&Word(&["started", "summarized", "replaced"]))),
    ("blocking", Bool),
    ("running", Or(&Bool)),
    ("trigger", Or(&Text)),
    ("started_at", Or(&Time)),
    ("ended_at", Or(&Time)),
    ("error", Or(&Text)),
    ("seq", Or(&Number)),
    ("end_seed_seq", Or(&Number)),
    ("orphans", Number),
    ("count", Number),
    ("why", Or(&Text)),
]);
