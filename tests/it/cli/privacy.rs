//! What is nobody else's business stays where it is, and nothing in a transcript drives a terminal.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::json;

use super::paper::{
    CLAUDE_ID, CODEX_ID, DSH_ID, append, claude_answer, claude_call, claude_path, claude_prompt,
    codex_session, dsh_session,
};
use super::{DAY, DB, Home, MINUTE, NOW, Run, Said, run};

/// Every command that prints something of a session.
fn every_command(home: &Home, at: i64) -> Vec<(String, Said)> {
    let mut said = Vec::new();
    for args in [
        &["--once"][..],
        &["--once", "--json"],
        &["--once", "--children", "--stats"],
        &["--once", "--ascii"],
        &["show", CLAUDE_ID],
        &["show", CODEX_ID],
        &["show", DSH_ID],
        &["show", CLAUDE_ID, "--json"],
        &["show", CODEX_ID, "--json"],
        &["show", DSH_ID, "--json"],
        &["show", "nobody"],
        &["audit"],
        &["audit", "--json"],
        &["ledger", "--history"],
        &["ledger", "--history", "--json"],
        &["ledger", "ack", "nobody"],
        &["compactions"],
        &["compactions", "--json"],
        &["migrate"],
        &["config"],
        &["ledger", "ack", "--all"],
    ] {
        said.push((args.join(" "), Run::new(home, args).at(at).said()));
    }
    said
}

/// A home in which everything that can be hostile is, in every place that is shown.
fn hostile() -> Home {
    let home = Home::new();
    let bad = "a\u{1b}]0;owned\u{7}\u{1b}[2Jb\u{9b}31mc\u{8}\rd\te\u{202e}f\u{2066}g\u{85}h\u{200f}\
        i\u{1b}P+q\u{1b}\\j\u{1b}]8;;http://x\u{1b}\\k\u{7f}l\u{0}m\nn\u{1b}]52;c;eA==";
    let lines = [
        claude_prompt(CLAUDE_ID, NOW - 19 * MINUTE, bad),
        claude_call(CLAUDE_ID, NOW - 18 * MINUTE, bad, &json!({"command": bad})),
        json!({"type": "ai-title", "aiTitle": bad, "sessionId": CLAUDE_ID}),
        json!({"type": bad, "sessionId": bad, "timestamp": bad}),
    ];
    let mut lines = lines.to_vec();
    for line in &mut lines {
        line["cwd"] = bad.into();
        line["gitBranch"] = bad.into();
        line["version"] = bad.into();
    }
    lines[1]["message"]["model"] = bad.into();
    append(&home, &claude_path(CLAUDE_ID), &lines);
    codex_session(&home, CODEX_ID, NOW - 12 * MINUTE, bad, bad);
    dsh_session(&home, DSH_ID, NOW - 22 * MINUTE, bad, bad);
    let error = json!({"type": "turn/end", "seq": 6, "time": NOW - 9 * MINUTE, "data":
        {"turn": 1, "reason": {"kind": "error", "error": {"message": bad, "code": bad}}}});
    append(&home, &super::paper::dsh_path(DSH_ID), &[error]);
    // Names of folders and of files, and a line that is no JSON, are as little to be trusted.
    let odd = ".claude/projects/-tmp-\u{1b}[31m\u{202e}x/\u{1b}]0;y\u{7}.jsonl";
    append(&home, odd, &[claude_prompt(bad, NOW - 2 * MINUTE, "named so")]);
    fs::write(home.home().join(".claude/projects/-tmp-demo/x.jsonl"), format!("{bad}\n")).unwrap();
    home
}

fn is_harmless(letter: char) -> bool {
    !matches!(letter,
        '\u{0}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn nothing_in_a_transcript_or_a_name_reaches_a_terminal_unfiltered() {
    let home = hostile();
    for at in [NOW, NOW + 3 * DAY] {
        for (args, said) in every_command(&home, at) {
            for text in [&said.out, &said.err] {
                assert!(text.chars().all(is_harmless), "{args}: {text:?}");
                assert!(!text.contains("owned") && !text.contains('\t'), "{args}: {text:?}");
            }
            if args.contains("--json") {
                assert_eq!(said.out.matches('\\').count(), 0, "{args}: {}", said.out);
            }
        }
    }
    let show = run(&home, &["show", CODEX_ID, "--json"]).json();
    assert_eq!(show.get("session.title"), "\"abc d efg hijklm n\"");
}

#[test]
fn a_hostile_argument_comes_back_harmless() {
    let home = Home::new();
    for args in [
        &["show", "\u{1b}]0;owned\u{7}x\u{202e}"][..],
        &["ledger", "ack", "\u{1b}[31mx\u{9b}"],
        &["ledger", "--consumer", "\u{1b}[31mx\u{202e}"],
        &["--once", "--db", "file\u{1b}[31m/\u{202e}x.db", "--config", "\u{1b}[31m.toml"],
        &["--once", "--root", "claude=\u{1b}[31m\u{202e}"],
    ] {
        let said = run(&home, args);
        for text in [&said.out, &said.err] {
            assert!(text.chars().all(is_harmless), "{args:?}: {text:?}");
        }
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_is_kept_is_readable_by_its_owner_alone() {
    let home = hostile();
    // The shell of whoever starts it may be generous.
    let mut shell = Run::new(&home, &[]);
    let script = format!("umask 000; exec {} --once", env!("CARGO_BIN_EXE_lullwatch"));
    shell.command = {
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", &script]).env_clear().env("HOME", home.home());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command
    };
    assert_eq!(shell.at(NOW).said().code, Some(0));
    let folder = home.home().join(DB).parent().unwrap().to_owned();
    assert_eq!(mode(&folder), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    assert!(names.contains(&"lullwatch.db.lock".to_owned()), "{names:?}");
}

#[test]
fn no_word_of_a_transcript_is_in_a_message_or_in_the_log() {
    let home = Home::new();
    let secret = "xyzzy-plugh";
    let path = claude_path(CLAUDE_ID);
    let lines = [
        claude_prompt(CLAUDE_ID, NOW - 9 * MINUTE, secret),
        claude_call(CLAUDE_ID, NOW - 8 * MINUTE, "Bash", &json!({"command": secret})),
        json!({"type": secret, "timestamp": secret, "sessionId": 7}),
        claude_answer(CLAUDE_ID, NOW - 7 * MINUTE, secret),
    ];
    append(&home, &path, &lines);
    for bad in [&b"{\"xyzzy-plugh\":\n"[..], b"xyzzy-plugh\n", b"\0\0xyzzy-plugh\xff\n"] {
        let mut bytes = fs::read(home.home().join(&path)).unwrap();
        bytes.extend_from_slice(bad);
        fs::write(home.home().join(&path), bytes).unwrap();
    }
    codex_session(&home, CODEX_ID, NOW - 12 * MINUTE, secret, secret);
    dsh_session(&home, DSH_ID, NOW - 22 * MINUTE, secret, secret);
    // A packed log that breaks off in its middle.
    let packed = zstd::stream::encode_all(format!("{secret}\n").repeat(500).as_bytes(), 1).unwrap();
    home.put(
        ".dsh/sessions/--tmp-demo--/session-2/session.jsonl.zstd",
        &[&packed[..20], &packed].concat(),
    );
    let log = home.home().join("x.log");
    for at in [NOW, NOW + 3 * DAY] {
        for (args, _) in every_command(&home, at) {
            let args: Vec<&str> = args.split(' ').chain(["--log-file", "x.log"]).collect();
            let said = Run::new(&home, &args).at(at).env("RUST_LOG", "trace").said();
            assert!(!said.err.contains(secret), "{args:?}: {}", said.err);
        }
    }
    let log = fs::read_to_string(log).unwrap();
    assert!(!log.contains(secret) && log.contains("files="), "{log}");
}

/// Every file and folder below, with what a write would change.
fn listing(folder: &Path, found: &mut Vec<String>) {
    let meta = fs::symlink_metadata(folder).unwrap();
    let line = format!(
        "{} {:o} {} {} {}.{} {}.{}",
        folder.display(),
        meta.mode(),
        meta.ino(),
        meta.size(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec()
    );
    found.push(line);
    if meta.is_dir() {
        let mut inside: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        inside.sort();
        for path in inside {
            listing(&path, found);
        }
    }
}

#[test]
fn nothing_of_an_agent_is_ever_written() {
    let home = hostile();
    home.put(".dsh/sessions/--tmp-demo--/session.lock", b"");
    home.put(".claude/sessions/4194000.json", b"{\"pid\":4194000,\"procStart\":\"1\"}");
    home.put(".codex/thread-writer-locks/x.lock", b"");
    let look = || {
        let mut found = Vec::new();
        for agent in [".claude", ".codex", ".dsh"] {
            listing(&home.home().join(agent), &mut found);
        }
        found
    };
    let before = look();
    for at in [NOW, NOW + 3 * DAY] {
        every_command(&home, at);
    }
    assert_eq!(look(), before);
    assert!(!home.home().join(".config/claude").exists(), "and nothing is made for one");
    // Only the state folder is new.
    let mut names: Vec<String> = fs::read_dir(home.home())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [".claude", ".codex", ".dsh", ".local"]);
}
