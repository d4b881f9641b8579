//! The real program as an agent's hook: whatever happens it ends well, in time and without a word.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const PAYLOAD: &str = r#"{"session_id":"s","hook_event_name":"SessionEnd","reason":"logout"}"#;

/// An agent gives a hook longer; nothing here is a measurement.
const LATE: Duration = Duration::from_secs(2);

fn hook(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lullwatch"));
    command.args(["hook"]).args(args).env_clear().env("HOME", home);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn told(mut command: Command, input: &[u8]) -> Output {
    let mut child = command.spawn().unwrap();
    // It may end before it has heard everything.
    let _closed = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn inbox(home: &Path) -> usize {
    fs::read_dir(home.join(".local/state/lullwatch/inbox")).map_or(0, Iterator::count)
}

fn is_quiet(output: &Output) {
    assert_eq!(output.status.code(), Some(0));
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b""[..], &b""[..]));
}

/// Waits for it in another thread; the child if it did not end in time.
fn ends_in_time(child: Child) -> Option<Output> {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output().unwrap()));
    wait.recv_timeout(LATE).ok()
}

#[test]
fn an_event_is_left_and_the_database_not_even_made() {
    let home = tempfile::tempdir().unwrap();
    is_quiet(&told(hook(home.path(), &["SessionEnd"]), PAYLOAD.as_bytes()));
    assert_eq!(inbox(home.path()), 1);
    assert!(!home.path().join(".local/state/lullwatch/lullwatch.db").exists());
    // The JSON's own name of the event will do.
    is_quiet(&told(hook(home.path(), &[]), PAYLOAD.as_bytes()));
    assert_eq!(inbox(home.path()), 2);
}

#[test]
fn without_stdin_or_with_garbage_it_ends_well() {
    let home = tempfile::tempdir().unwrap();
    let mut without = hook(home.path(), &["Stop"]);
    is_quiet(&without.stdin(Stdio::null()).output().unwrap());
    is_quiet(&told(hook(home.path(), &["Stop"]), b"\xff\xfe{{{"));
    assert_eq!(inbox(home.path()), 0);
}

#[test]
fn a_huge_payload_is_read_as_far_as_it_is_needed() {
    let home = tempfile::tempdir().unwrap();
    let prompt = "x".repeat(20 << 20);
    let input = format!(r#"{{"session_id":"s","prompt":"{prompt}"}}"#);
    is_quiet(&told(hook(home.path(), &["UserPromptSubmit"]), input.as_bytes()));
}

#[test]
fn a_stdin_that_never_ends_does_not_hold_it() {
    let home = tempfile::tempdir().unwrap();
    let mut child = hook(home.path(), &["Stop"]).spawn().unwrap();
    let mut keeps_open = child.stdin.take().unwrap();
    keeps_open.write_all(b"{").unwrap();
    let output = ends_in_time(child).expect("held by its stdin");
    is_quiet(&output);
    drop(keeps_open);
}

#[test]
fn nowhere_to_write_and_nobody_to_tell_are_no_reasons_to_fail() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    let mut command = hook(home.path(), &["Stop"]);
    command.env("LULLWATCH_DB", home.path().join("file/x.db"));
    is_quiet(&told(command, PAYLOAD.as_bytes()));
    let mut homeless = hook(home.path(), &["Stop"]);
    homeless.env_remove("HOME");
    is_quiet(&told(homeless, PAYLOAD.as_bytes()));
    let mut child = hook(home.path(), &["Stop"]).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take(), child.stdin.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_broken_setting_stops_no_prompt() {
    let home = tempfile::tempdir().unwrap();
    // An agent takes exit code 2, a usage error, for a refusal.
    let mut command = hook(home.path(), &["UserPromptSubmit"]);
    command.env("LULLWATCH_LIVE_WINDOW", "nonsense");
    is_quiet(&told(command, PAYLOAD.as_bytes()));
    is_quiet(&told(hook(home.path(), &["Stop", "more", "--and-more"]), PAYLOAD.as_bytes()));
    fs::create_dir_all(home.path().join(".config/lullwatch")).unwrap();
    fs::write(home.path().join(".config/lullwatch/config.toml"), "no = such key").unwrap();
    is_quiet(&told(hook(home.path(), &["Stop"]), PAYLOAD.as_bytes()));
    assert_eq!(inbox(home.path()), 1, "where it would be without a config file");
}

#[test]
fn the_settings_are_printed_and_nobodys_file_is_changed() {
    let home = tempfile::tempdir().unwrap();
    for agent in ["claude", "codex"] {
        let output = hook(home.path(), &["--print-config", agent]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let command = json["hooks"]["SessionEnd"][0]["hooks"][0]["command"].as_str().unwrap();
        assert!(command.contains("lullwatch hook "), "{command}");
        assert!(!output.stderr.is_empty());
    }
    let wrong = hook(home.path(), &["--print-config", "emacs"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn the_settings_lead_to_the_store_that_was_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let db = home.path().join("my state/x.db");
    for by_env in [false, true] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lullwatch"));
        command.env_clear().env("HOME", home.path()).current_dir(home.path());
        if by_env {
            command.env("LULLWATCH_DB", &db);
        } else {
            command.args(["--db", "my state/x.db"]);
        }
        let output = command.args(["hook", "--print-config", "codex"]).output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let call = json["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
        // As Codex calls it, from wherever it is.
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", call]).env_clear().env("HOME", home.path()).current_dir("/");
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        is_quiet(&told(shell, PAYLOAD.as_bytes()));
    }
    assert_eq!(fs::read_dir(home.path().join("my state/inbox/x.db")).unwrap().count(), 2);
    assert_eq!(inbox(home.path()), 0);
}

#[test]
fn of_many_at_once_none_is_lost_without_a_word() {
    const HOOKS: usize = 200;
    let home = tempfile::tempdir().unwrap();
    let mut children: Vec<Child> =
        (0..HOOKS).map(|_| hook(home.path(), &["Stop"]).spawn().unwrap()).collect();
    for child in &mut children {
        let _closed = child.stdin.take().unwrap().write_all(PAYLOAD.as_bytes());
    }
    for child in children {
        is_quiet(&child.wait_with_output().unwrap());
    }
    // Each has left its event, or the file that it began.
    assert_eq!(inbox(home.path()), HOOKS);
}
