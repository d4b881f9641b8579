//! What cannot be seen: a folder that cannot be read is no silence, whoever's it is.
//!
//! A link that leads to itself cannot be read by anybody, not even by root; what only others may not
//! read is tried where the tests are not run by root.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use lullwatch::snapshot::{AuditCounts, Snapshot, Status};
use serde_json::json;

use crate::monitor::{CLAUDE, CODEX, DAY, DSH, DshLog, HOUR, MINUTE, Monitor, Said, T0};
use crate::monitor::{OTHER, SECOND, session, stamp};

/// A way to make a folder unreadable; root is not kept out by its mode.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Loop,
    Mode,
}

/// The ways that keep this user out.
fn ways() -> Vec<Way> {
    let root = rustix::process::geteuid().is_root();
    if root { vec![Way::Loop] } else { vec![Way::Loop, Way::Mode] }
}

/// A folder that cannot be read, until it is let go.
struct Hidden {
    path: PathBuf,
    aside: PathBuf,
    way: Way,
}

impl Hidden {
    fn hide(monitor: &Monitor, folder: &str, way: Way) -> Self {
        let path = monitor.path(folder);
        let aside = monitor.path("aside");
        fs::create_dir_all(&path).unwrap();
        match way {
            Way::Loop => {
                fs::rename(&path, &aside).unwrap();
                symlink(&path, &path).unwrap();
            }
            Way::Mode => fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap(),
        }
        Self { path, aside, way }
    }

    fn show(self) {
        match self.way {
            Way::Loop => {
                fs::remove_file(&self.path).unwrap();
                fs::rename(&self.aside, &self.path).unwrap();
            }
            Way::Mode => {
                fs::set_permissions(&self.path, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
    }
}

/// A record of a sub-agent of the Claude session.
fn sub_agent(monitor: &Monitor, at_ms: i64) {
    let record = json!({"isSidechain": true, "agentId": "a1b2c3d4", "sessionId": CLAUDE,
        "cwd": "/w", "uuid": format!("s-{at_ms}"), "timestamp": stamp(at_ms), "type": "user",
        "message": {"role": "user", "content": "Look around"}});
    let folder = monitor.path(&format!(".claude/projects/-w/{CLAUDE}/subagents"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("agent-a1b2c3d4.jsonl"), format!("{record}\n")).unwrap();
}

fn is_listed(seen: &Snapshot, native: &str) -> bool {
    seen.sessions.iter().any(|session| session.native_id == native)
}

fn assert_unseen(seen: &Snapshot, folder: &str) {
    assert!(!seen.mirror.complete);
    let told = |warning: &String| warning.contains("cannot read") && warning.contains(folder);
    assert!(seen.mirror.warnings.iter().any(told), "{:?}", seen.mirror.warnings);
}

#[test]
fn at_the_first_look_a_parent_waits_for_the_folder_of_its_sub_agents() {
    for way in ways() {
        for folder in [format!("-w/{CLAUDE}"), format!("-w/{CLAUDE}/subagents")] {
            let monitor = Monitor::new();
            monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
            monitor.claude(CLAUDE, T0 + SECOND, &Said::Answer("Done."));
            monitor.claude(OTHER, T0, &Said::Prompt("Somebody else's"));
            sub_agent(&monitor, T0 + 2 * DAY - SECOND);
            let hidden = Hidden::hide(&monitor, &format!(".claude/projects/{folder}"), way);
            let first = monitor.pass(T0 + 2 * DAY);
            assert_unseen(&first, &folder);
            assert!(!is_listed(&first, CLAUDE));
            assert!(is_listed(&first, OTHER), "what can be seen is judged");
            hidden.show();
            let seen = monitor.pass(T0 + 2 * DAY);
            assert_eq!(session(&seen, CLAUDE).status, Status::Running);
            assert_eq!((seen.mirror.complete, seen.audit), (true, AuditCounts::default()));
        }
    }
}

#[test]
fn a_session_keeps_its_status_and_is_marked_while_its_folder_cannot_be_read() {
    for way in ways() {
        let monitor = Monitor::new();
        monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
        assert_eq!(session(&monitor.pass(T0 + SECOND), CLAUDE).status, Status::Running);
        let hidden = Hidden::hide(&monitor, ".claude/projects/-w", way);
        let lost = T0 + 2 * HOUR;
        assert_unseen(&monitor.pass(lost), "-w");
        let later = monitor.pass(T0 + 2 * DAY);
        let unseen = session(&later, CLAUDE);
        assert_eq!(
            (unseen.status, unseen.unchecked, later.counts.unchecked),
            (Status::Running, true, 1)
        );
        let notice = unseen.notices.iter().find(|notice| notice.code == "unobserved").unwrap();
        assert!(notice.text.contains(&stamp(lost)), "{}", notice.text);
        // A process that only reads says so too.
        let viewed = monitor.viewed(T0 + 2 * DAY, T0 + 2 * DAY);
        assert!(session(&viewed, CLAUDE).unchecked);
        let written = monitor.rows_written(T0 + 2 * DAY + SECOND);
        assert_eq!(written, 0, "a mark that stands is not written again");
        hidden.show();
        let seen = monitor.pass(T0 + 2 * DAY + MINUTE);
        assert_eq!((session(&seen, CLAUDE).status, seen.counts.unchecked), (Status::Completed, 0));
        assert!(session(&seen, CLAUDE).notices.iter().all(|notice| notice.code != "unobserved"));
    }
}

#[test]
fn a_sub_agents_folder_of_dsh_holds_back_the_sessions_of_its_project() {
    for way in ways() {
        let monitor = Monitor::new();
        monitor.dsh(0, T0, "turn/start", &json!({"turn": 1}));
        let child = DshLog { version: 4, id: "child", parent: Some(DSH) };
        monitor.dsh_as(&child, 0, T0 + 2 * DAY - SECOND, "turn/start", &json!({"turn": 1}));
        let hidden = Hidden::hide(&monitor, ".dsh/sessions/--w--/child", way);
        let first = monitor.pass(T0 + 2 * DAY);
        assert_unseen(&first, "--w--/child");
        assert!(!is_listed(&first, DSH));
        hidden.show();
        assert_eq!(session(&monitor.pass(T0 + 2 * DAY), DSH).status, Status::Running);
    }
}

#[test]
fn a_day_of_codex_holds_back_the_threads_that_began_until_then() {
    for way in ways() {
        let monitor = Monitor::new();
        monitor.codex(T0, &json!({"type": "task_started", "turn_id": "t"}));
        let hidden = Hidden::hide(&monitor, ".codex/sessions/2026/12", way);
        let first = monitor.pass(T0 + 2 * DAY);
        assert_unseen(&first, "2026/12");
        assert!(!is_listed(&first, CODEX));
        hidden.show();
        assert!(is_listed(&monitor.pass(T0 + 2 * DAY), CODEX));
        let earlier = Hidden::hide(&monitor, ".codex/sessions/2026/10", way);
        assert!(!session(&monitor.pass(T0 + 2 * DAY), CODEX).unchecked);
        earlier.show();
    }
}

#[test]
fn a_root_that_cannot_be_read_is_no_complete_look() {
    for way in ways() {
        let monitor = Monitor::new();
        monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
        monitor.pass(T0 + SECOND);
        let hidden = Hidden::hide(&monitor, ".claude", way);
        let seen = monitor.pass(T0 + 2 * DAY);
        assert_unseen(&seen, ".claude");
        let unseen = session(&seen, CLAUDE);
        assert_eq!((unseen.status, unseen.unchecked), (Status::Running, true));
        hidden.show();
    }
}

/// A root that is gone is no silence either.
#[test]
fn a_root_that_is_gone_marks_its_sessions() {
    let monitor = Monitor::new();
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    monitor.pass(T0 + SECOND);
    fs::rename(monitor.path(".claude"), monitor.path("away")).unwrap();
    let seen = monitor.pass(T0 + 2 * DAY);
    let unseen = session(&seen, CLAUDE);
    assert_eq!((unseen.status, unseen.unchecked), (Status::Running, true));
    fs::rename(monitor.path("away"), monitor.path(".claude")).unwrap();
    assert_eq!(session(&monitor.pass(T0 + 2 * DAY), CLAUDE).status, Status::Completed);
}

/// With too few file handles a part of a family is read, or nothing; never is one judged by a part.
#[test]
fn with_too_few_file_handles_nobody_is_judged_by_a_part_of_its_family() {
    let monitor = Monitor::unlooked();
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    sub_agent(&monitor, T0 + 2 * DAY - SECOND);
    let home = monitor.path("");
    let mut held_back = 0;
    for handles in 6..16 {
        let run = |arguments: &str| {
            let program = env!("CARGO_BIN_EXE_lullwatch");
            let script = format!("ulimit -n {handles}; exec \"{program}\" {arguments}");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).env_clear().env("HOME", &home);
            shell.env("LULLWATCH_NOW", stamp(T0 + 2 * DAY)).output().unwrap()
        };
        let db = monitor.path(&format!("state/{handles}.db"));
        let output = run(&format!("--once --json --db \"{}\"", db.display()));
        if output.status.code() == Some(1) {
            continue; // not even the database can be opened
        }
        let seen: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let complete = seen["mirror"]["complete"] == json!(true);
        let told: Vec<&str> = seen["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|session| session["status"].as_str().unwrap())
            .collect();
        assert_eq!(told, if complete { vec!["running"] } else { vec![] }, "{handles}: {seen}");
        held_back += usize::from(!complete);
    }
    assert!(held_back > 0, "some limit leaves the database and takes the folders");
}
