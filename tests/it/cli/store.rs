//! The database: what makes it unusable and how that is told, its windows, its migration, its work.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::json;

use super::paper::{
    CLAUDE_ID, CODEX_ID, DSH_ID, append, claude_session, codex_session, dsh_path, dsh_session,
};
use super::{DAY, Home, MINUTE, NOW, Run, db, run};

fn one() -> Home {
    let home = Home::new();
    claude_session(&home, CLAUDE_ID, NOW - 2 * MINUTE, "Add a table");
    home
}

fn raw(path: &Path) -> Connection {
    #[expect(clippy::disallowed_methods, reason = "looks at what the program has left")]
    Connection::open(path).unwrap()
}

/// What every command says of a database that it cannot use: one sentence that names the file.
#[track_caller]
fn unusable(home: &Home, path: &str, says: &str) {
    for args in [
        &["--once"][..],
        &["--once", "--json"],
        &["show", CLAUDE_ID],
        &["audit"],
        &["ledger"],
        &["compactions"],
        &["ledger", "ack", "--all"],
        &["migrate"],
        &["watch"],
        &["config", "--set-windows", "1m", "2m"],
    ] {
        let err = run(home, &[args, &["--db", path]].concat()).refused(1);
        let lines: Vec<&str> = err.lines().collect();
        let hints = lines.iter().filter(|line| line.starts_with("hint: ")).count();
        assert!(lines.len() - hints == 1 && err.contains(path), "{args:?}: {err}");
        assert!(err.contains(says), "{args:?}: no `{says}` in {err}");
    }
}

#[test]
fn a_folder_where_the_database_should_be_is_a_fault() {
    let home = one();
    fs::create_dir(home.home().join("folder.db")).unwrap();
    unusable(&home, "folder.db", "folder");
    assert_eq!(fs::read_dir(home.home().join("folder.db")).unwrap().count(), 0);
}

#[test]
fn a_text_where_the_database_should_be_is_a_fault_and_stays_as_it_is() {
    let home = one();
    let text = "notes of somebody\n".repeat(99);
    let path = home.put("notes.txt", text.as_bytes());
    unusable(&home, "notes.txt", "not a database of lullwatch");
    assert_eq!(fs::read_to_string(path).unwrap(), text);
    assert!(!home.home().join("notes.txt-wal").exists());
}

#[test]
fn a_database_of_another_program_is_a_fault_and_stays_as_it_is() {
    let home = one();
    let path = home.home().join("other.db");
    raw(&path).execute_batch("CREATE TABLE sessions (x); INSERT INTO sessions VALUES (1)").unwrap();
    let before = fs::read(&path).unwrap();
    unusable(&home, "other.db", "not a database of lullwatch");
    assert_eq!(fs::read(path).unwrap(), before);
}

#[test]
fn a_database_of_a_newer_version_is_a_fault_and_stays_as_it_is() {
    let home = one();
    run(&home, &["--once", "--db", "newer.db"]).fine();
    let path = home.home().join("newer.db");
    raw(&path).pragma_update(None, "user_version", 999).unwrap();
    let before = fs::read(&path).unwrap();
    unusable(&home, "newer.db", "999");
    assert_eq!(fs::read(path).unwrap(), before);
}

#[test]
fn a_damaged_database_is_a_fault() {
    let home = one();
    run(&home, &["--once", "--db", "bad.db"]).fine();
    let path = home.home().join("bad.db");
    raw(&path).query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    for byte in &mut bytes[200..60_000] {
        *byte = 0xa5;
    }
    fs::write(&path, &bytes).unwrap();
    unusable(&home, "bad.db", "damaged");
}

#[test]
fn a_path_below_a_file_is_a_fault() {
    let home = one();
    home.put("file", b"x");
    unusable(&home, "file/x.db", "cannot open");
}

#[test]
fn a_folder_that_cannot_be_written_is_a_fault() {
    let home = one();
    // Nobody, root included, makes a file there.
    unusable(&home, "/proc/lullwatch/x.db", "cannot open");
}

#[test]
fn windows_are_fixed_with_the_database_and_others_are_refused() {
    let home = one();
    let args = ["--once", "--json", "--live-window", "1m", "--ended-window", "1h"];
    let made = run(&home, &args).json();
    assert_eq!(made.get("windows"), r#"{"live_ms":60000,"ended_ms":3600000}"#);
    assert_eq!(made.get("sessions.0.status"), "\"idle\"", "two minutes are a lull here");
    let kept = run(&home, &["--once", "--json"]).json();
    assert_eq!(kept.get("windows"), made.get("windows"), "and stay fixed");
    assert!(run(&home, &["--once"]).fine().contains("1m"), "which the header says");
    assert!(run(&home, &["show", CLAUDE_ID]).fine().contains("1m"));
    for args in [
        &["--once", "--live-window", "2m"][..],
        &["--once", "--live-window", "1m", "--ended-window", "2h"],
        &["show", CLAUDE_ID, "--live-window", "2m"],
        &["audit", "--live-window", "2m"],
        &["watch", "--live-window", "2m"],
        &["migrate", "--live-window", "2m"],
    ] {
        let err = run(&home, args).refused(1);
        assert!(err.contains("lullwatch config --set-windows"), "{args:?}: {err}");
    }
    let same = run(&home, &["--once", "--json", "--live-window", "60"]).json();
    assert_eq!(same.get("windows"), made.get("windows"), "60 is 1m");

    let set = run(&home, &["config", "--set-windows", "2m", "2h"]);
    assert_eq!((set.code, set.out.as_str()), (Some(0), ""), "{}", set.err);
    let now = run(&home, &["--once", "--json", "--live-window", "2m"]).json();
    assert_eq!(now.get("windows"), r#"{"live_ms":120000,"ended_ms":7200000}"#);
    assert_eq!(now.get("sessions.0.status"), "\"running\"", "and is judged by them");
}

#[test]
fn other_windows_strand_nobody_and_one_row_has_one_verdict() {
    let home = one();
    let short = ["--once", "--live-window", "1s", "--ended-window", "2s"];
    run(&home, &short).fine();
    let set = run(&home, &["config", "--set-windows", "5m", "24h"]);
    assert!(
        set.err.contains("1 session was completed by silence under other windows"),
        "{}",
        set.err
    );
    assert!(set.err.contains("lullwatch migrate"), "{}", set.err);
    let stranded = run(&home, &["show", CLAUDE_ID, "--json"]).json();
    assert_eq!(stranded.get("session.status"), "\"completed\"");
    assert!(stranded.lines().contains("other_windows"), "{}", stranded.lines());
    assert_eq!(run(&home, &["migrate"]).code, Some(0));
    let taken_back = run(&home, &["show", CLAUDE_ID, "--json"]).json();
    assert!(!taken_back.lines().contains("other_windows"));
    let set = run(&home, &["config", "--set-windows", "5m", "24h"]);
    assert!(!set.err.contains("migrate"), "{}", set.err);
}

#[test]
fn config_prints_the_windows_in_force() {
    let home = one();
    let line = |args: &[&str]| {
        let said = run(&home, &[&["config"], args].concat());
        assert_eq!(said.code, Some(0));
        let table: toml::Table = toml::from_str(&said.out).unwrap();
        (table["live-window"].as_str().unwrap().to_owned(), said.err)
    };
    assert_eq!(line(&["--live-window", "90s"]), ("90s".to_owned(), String::new()), "will be made");
    run(&home, &["--once"]).fine();
    let (shown, told) = line(&["--live-window", "90s"]);
    assert_eq!(shown, "5m", "the store's own");
    assert!(told.contains("lullwatch config --set-windows"), "{told}");
}

#[test]
fn windows_that_leave_no_room_are_refused_and_fix_nothing() {
    let home = one();
    for args in [
        &["--once", "--live-window", "0"][..],
        &["--once", "--live-window", "2h", "--ended-window", "1h"],
        &["config", "--set-windows", "1h", "1h"],
    ] {
        let err = run(&home, args).refused(1);
        assert!(err.contains("hint:"), "{args:?}: {err}");
    }
    let kept = run(&home, &["--once", "--json"]).json();
    assert_eq!(kept.get("windows.live_ms"), "300000");
}

#[test]
fn a_second_pass_writes_no_row_and_parses_no_byte() {
    let home = one();
    codex_session(&home, CODEX_ID, NOW - 12 * MINUTE, "Fix the parser", "Fixed.");
    dsh_session(&home, DSH_ID, NOW - 22 * MINUTE, "Write a page", "Written.");
    // Of an open bracket it would be news that a dsh of this machine, another test's perhaps, has
    // started or left.
    let closed = json!({"type": "compaction/end", "seq": 6, "time": NOW - 21 * MINUTE,
        "data": {"compactionId": "c1", "turn": 1}});
    append(&home, &dsh_path(DSH_ID), &[closed]);
    let stats = || {
        let said = run(&home, &["--once", "--stats"]);
        assert_eq!(said.code, Some(0));
        let line = |line: &str| {
            let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("{line}"));
            (name.to_owned(), value.parse::<u64>().unwrap())
        };
        said.err.lines().map(line).collect::<std::collections::BTreeMap<_, _>>()
    };
    let first = stats();
    assert_eq!(first["files"], 3);
    assert!(first["bytes_parsed"] > 0 && first["rows_written"] > 0, "{first:?}");
    let before = fs::read(db(&home)).unwrap();
    let second = stats();
    for name in ["files_opened", "bytes_parsed", "lines_parsed", "rows_written", "transactions"] {
        assert_eq!(second[name], 0, "{name}");
    }
    assert_eq!(fs::read(db(&home)).unwrap(), before);
}

/// Rows as an import brings them: completed by a mirror, by a run, and long ago.
fn imported(path: &Path) {
    let raw = raw(path);
    for (id, native, last, actor) in [
        (101, "mirrored", NOW - DAY / 2, "claude-mirror-reconcile"),
        (102, "run", NOW - DAY / 2, "lullwatch-run"),
        (103, "old", NOW - 3 * DAY, "claude-mirror-reconcile"),
    ] {
        raw.execute(
            "INSERT INTO sessions (id, host, agent, native_id, root_id, own_clock_ms, first_activity_ms,
                last_activity_ms, status, status_since_ms, basis, rule, ended_ms, ended_approx,
                origin, dirty, version)
            VALUES (?1, 'h', 'claude', ?2, 1, ?3, ?3, ?3, 'completed', ?3 + 300000, 'inferred',
                'silence', ?3 + 300000, 1, 'lionagi', 0, 1)",
            (id, native, last),
        )
        .unwrap();
        raw.execute(
            "INSERT INTO status_transitions (entity_type, entity_id, previous_status, status,
                reason_code, reason_summary, basis, rule, evidence, actor_type, actor_id,
                created_ms, origin, metadata)
            VALUES ('session', ?1, 'running', 'completed', 'run.completed.ok', 'became idle',
                'inferred', '', '[]', 'system', ?2, ?3 + 300000, 'lionagi', '{}')",
            (id, actor, last),
        )
        .unwrap();
    }
}

#[test]
fn migrate_takes_back_what_silence_alone_decided_and_a_second_run_changes_nothing() {
    let home = one();
    run(&home, &["--once"]).fine();
    imported(&db(&home));
    let statuses = || {
        let snapshot = run(&home, &["--once", "--json"]).json();
        let mut list: Vec<String> = (snapshot.at("sessions").items().iter())
            .map(|row| format!("{} {}", row.get("native_id"), row.get("status")).replace('"', ""))
            .collect();
        list.sort();
        (list, snapshot.get("audit.migrations"), snapshot.get("audit.overrides"))
    };
    let said = run(&home, &["migrate"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{}", said.err);
    assert!(said.err.contains("1 made idle again"), "{}", said.err);
    let want = [&format!("{CLAUDE_ID} running"), "mirrored idle", "old completed", "run completed"];
    let first = statuses();
    assert_eq!(
        (first.0.as_slice(), first.1.as_str(), first.2.as_str()),
        (&want.map(str::to_owned)[..], "1", "0")
    );
    let again = run(&home, &["migrate"]);
    assert_eq!(again.code, Some(0));
    assert!(again.err.contains("0 made idle again"), "{}", again.err);
    assert_eq!(statuses(), first);
}

#[test]
fn a_database_locked_by_another_program_is_waited_for_or_named() {
    let home = one();
    run(&home, &["--once"]).fine();
    let other = raw(&db(&home));
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The clock has moved, so there is something to write; reading commands wait half a second.
    let said = Run::new(&home, &["show", CLAUDE_ID]).at(NOW + DAY / 2).said();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("Add a table"));
    assert!(said.err.contains("locked") && said.err.lines().count() == 1, "{}", said.err);
    other.execute_batch("ROLLBACK").unwrap();
    Run::new(&home, &["show", CLAUDE_ID]).at(NOW + DAY / 2).said().fine();
}
