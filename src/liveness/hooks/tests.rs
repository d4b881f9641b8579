//! What hooks leave in the inbox: little, in time, private, and read once.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

use super::*;

const NOW_MS: i64 = 1_800_000_000_000;

fn parsed(input: &str, named: &str) -> Option<Event> {
    parse(input.as_bytes(), named, NOW_MS, &Scope::default())
}

fn event(kind: Kind) -> Event {
    Event {
        agent: Some(HookAgent::Claude),
        kind,
        at_ms: NOW_MS,
        session_id: Some("s".to_owned()),
        transcript_path: None,
        agent_id: None,
        reason: None,
        trigger: None,
        tool_name: None,
        turn_id: None,
        scope: Scope::default(),
        start_ticks: None,
    }
}

#[test]
fn a_payload_is_kept_by_name_and_nothing_of_its_content() {
    let input = r#"{"session_id":"s","transcript_path":"/h/.claude/projects/p/s.jsonl",
        "cwd":"/secret/place","hook_event_name":"PermissionRequest","tool_name":"Bash",
        "tool_input":{"command":"cat secret","session_id":"no"},"prompt":"secret \u0000"}"#;
    let read = parsed(input, "PermissionRequest").unwrap();
    let wanted = Event {
        transcript_path: Some("/h/.claude/projects/p/s.jsonl".to_owned()),
        tool_name: Some("Bash".to_owned()),
        ..event(Kind::PermissionRequest)
    };
    assert_eq!(read, wanted);
    assert!(!serde_json::to_string(&read).unwrap().contains("secret"));
}

#[test]
fn whose_an_event_is_follows_from_the_command_or_the_path() {
    let codex = r#"{"session_id":"s","transcript_path":"/x/sessions/2026/rollout-1-s.jsonl"}"#;
    assert_eq!(parsed(codex, "Stop").unwrap().agent, Some(HookAgent::Codex));
    let bare = r#"{"session_id":"s","transcript_path":null,"turn_id":"t"}"#;
    assert_eq!(parsed(bare, "Stop").unwrap().agent, None);
    let read = parsed(bare, "codex:SessionEnd").unwrap();
    assert_eq!((read.agent, read.kind), (Some(HookAgent::Codex), Kind::SessionEnd));
    assert_eq!(read.turn_id.as_deref(), Some("t"));
}

#[test]
fn the_name_given_wins_over_the_name_in_the_payload() {
    let input = r#"{"session_id":"s","hook_event_name":"PreCompact","trigger":"auto"}"#;
    assert_eq!(parsed(input, "session-end").unwrap().kind, Kind::SessionEnd);
    let read = parsed(input, "").unwrap();
    assert_eq!((read.kind, read.trigger.as_deref()), (Kind::PreCompact, Some("auto")));
    assert_eq!(parsed(r#"{"session_id":"s"}"#, "Newer").unwrap().kind, Kind::Other);
}

#[test]
fn reason_is_the_one_word_that_each_event_has() {
    for (input, reason) in [
        (r#"{"session_id":"s","reason":"logout"}"#, "logout"),
        (r#"{"session_id":"s","source":"resume"}"#, "resume"),
        (r#"{"session_id":"s","notification_type":"idle_prompt"}"#, "idle_prompt"),
    ] {
        assert_eq!(parsed(input, "").unwrap().reason.as_deref(), Some(reason));
    }
}

#[test]
fn what_was_read_before_the_input_broke_off_counts() {
    let cut = r#"{"session_id":"s","prompt":"half of a sent"#;
    assert_eq!(parsed(cut, "Stop").unwrap().kind, Kind::Stop);
    for useless in ["", "[]", "nonsense", "{}", r#"{"session_id":7}"#, r#"{"session_id":"s"#] {
        assert_eq!(parsed(useless, "Stop"), None, "{useless}");
    }
    let long = format!(r#"{{"session_id":"{}"}}"#, "s".repeat(5000));
    assert_eq!(parsed(&long, "Stop"), None);
}

#[test]
fn an_event_is_left_privately_and_read_back_oldest_first() {
    let state = tempfile::tempdir().unwrap();
    let inbox = state.path().join("state/inbox");
    let kinds = [Kind::SessionStart, Kind::Stop, Kind::SessionEnd];
    let mut left = Vec::new();
    for (index, kind) in kinds.into_iter().enumerate() {
        let at_ms = NOW_MS - i64::try_from(index).unwrap();
        left.push((leave(&inbox, &Event { at_ms, ..event(kind) }).unwrap(), at_ms, kind));
    }
    // The same moment twice: two files.
    leave(&inbox, &event(Kind::Stop)).unwrap();
    left.reverse();
    let read = read_inbox(&inbox, 3, NOW_MS).unwrap();
    let wanted: Vec<_> = left
        .iter()
        .map(|(path, at_ms, kind)| (path.clone(), Ok(Event { at_ms: *at_ms, ..event(*kind) })))
        .collect();
    assert_eq!(read, wanted);
    assert_eq!(read_inbox(&inbox, 100, NOW_MS).unwrap().len(), 4);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&inbox), mode(&left[0].0)), (0o700, 0o600));
}

#[test]
fn garbage_is_named_for_removal_and_what_is_not_ours_let_alone() {
    let state = tempfile::tempdir().unwrap();
    let inbox = state.path().join("inbox");
    assert_eq!(read_inbox(&inbox, 9, NOW_MS).unwrap(), []);
    fs::create_dir(&inbox).unwrap();
    let put = |name: &str, text: &str| fs::write(inbox.join(name), text).unwrap();
    put("1-garbage.json", "{");
    put("2-newer.json", r#"{"version":2,"kind":"Stop","at_ms":1,"scope":{}}"#);
    put("3-long.json", &" ".repeat(70_000));
    std::os::unix::fs::symlink("/etc/passwd", inbox.join("4-link.json")).unwrap();
    put(".001700000000000-0-7-0.tmp", "{");
    put(&format!(".{NOW_MS:015}-0-7-0.tmp"), "{");
    put("notes.txt", "mine");
    let read = read_inbox(&inbox, 9, NOW_MS).unwrap();
    let read: Vec<(String, Refused)> = read
        .into_iter()
        .map(|(path, event)| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), event.unwrap_err())
        })
        .collect();
    let wanted = [
        (".001700000000000-0-7-0.tmp", Refused::Leftover),
        ("1-garbage.json", Refused::NoEvent),
        ("2-newer.json", Refused::NoEvent),
        ("3-long.json", Refused::TooLong),
        ("4-link.json", Refused::NotAFile),
    ];
    assert_eq!(read, wanted.map(|(name, refused)| (name.to_owned(), refused)));
}

/// A pipe that gives these bytes and then stays open until the other end is dropped.
struct Open {
    bytes: io::Cursor<Vec<u8>>,
    closed: Receiver<()>,
}

impl Read for Open {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        if count == 0 {
            let _closed = self.closed.recv();
        }
        Ok(count)
    }
}

fn events_in(state: &Path) -> Vec<(PathBuf, Result<Event, Refused>)> {
    read_inbox(&state.join("inbox"), 9, NOW_MS).unwrap()
}

#[test]
fn a_pipe_that_stays_open_behind_the_object_does_not_matter() {
    let state = tempfile::tempdir().unwrap();
    let (keeps_open, closed) = channel();
    let bytes = io::Cursor::new(br#"{"session_id":"s","reason":"clear"}"#.to_vec());
    record_hook(Open { bytes, closed }, &state.path().join("inbox"), "SessionEnd", NOW_MS);
    let (_, read) = events_in(state.path()).pop().unwrap();
    let read = read.unwrap();
    assert_eq!((read.kind, read.reason.as_deref()), (Kind::SessionEnd, Some("clear")));
    assert!(read.scope.boot_id.is_some());
    drop(keeps_open);
}

#[test]
fn a_hook_that_hears_nothing_gives_up_in_time() {
    let state = tempfile::tempdir().unwrap();
    let (keeps_open, closed) = channel();
    // It returns although the other end is still there, so it did not wait for it.
    let bytes = io::Cursor::new(b"{".to_vec());
    record_hook(Open { bytes, closed }, &state.path().join("inbox"), "Stop", NOW_MS);
    assert_eq!(events_in(state.path()), []);
    drop(keeps_open);
}

#[test]
fn a_hook_never_fails() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("file");
    fs::write(&file, "").unwrap();
    // No folder can be made below a file.
    record_hook(&br#"{"session_id":"s"}"#[..], &file, "Stop", NOW_MS);
    record_hook(io::empty(), &state.path().join("inbox"), "Stop", NOW_MS);
    record_hook(&b"\xff\xfe{"[..], &state.path().join("inbox"), "codex:", i64::MIN);
    assert_eq!(events_in(state.path()), []);
}

#[test]
fn settings_call_the_hook_for_each_event() {
    for agent in [HookAgent::Claude, HookAgent::Codex] {
        assert_eq!(HookAgent::from_word(agent.word()), Some(agent));
        let settings = print_config(agent, &["lullwatch".to_owned()]);
        let json: serde_json::Value = serde_json::from_str(&settings.json).unwrap();
        for (name, groups) in json["hooks"].as_object().unwrap() {
            let seconds = groups[0]["hooks"][0]["timeout"].as_u64().unwrap();
            assert!(seconds <= 3, "Codex gives the end of a session no more, and complains");
            assert!(DEADLINE < Duration::from_secs(seconds));
            let command = groups[0]["hooks"][0]["command"].as_str().unwrap();
            let given = command.strip_prefix("lullwatch hook ").unwrap();
            let read = parsed(r#"{"session_id":"s"}"#, given).unwrap();
            assert_eq!(read.kind.name(), name);
        }
        assert!(settings.json.contains("SessionEnd"));
    }
    let odd = ["/a b/it's", "--db", "/my state/x.db"].map(str::to_owned);
    let odd = print_config(HookAgent::Codex, &odd).json;
    assert!(odd.contains(r"'/a b/it'\\''s' --db '/my state/x.db' hook codex:Stop"), "{odd}");
}

#[test]
fn each_store_has_an_inbox_of_its_own() {
    let state = tempfile::tempdir().unwrap();
    let state = state.path().canonicalize().unwrap();
    let of = |name: &str| Inbox::of(&state.join(name));
    let (inbox, its) = (state.join("inbox"), state.join("inbox/x.db"));
    assert_eq!(of("lullwatch.db"), Inbox { folder: inbox.clone(), shared: None });
    // What hooks left where all stores had one inbox may be anybody's.
    assert_eq!(of("x.db"), Inbox { folder: its.clone(), shared: Some(inbox) });
    for name in ["x.db", "lullwatch.db"] {
        fs::write(state.join(name), "").unwrap();
    }
    assert_eq!(of("x.db"), Inbox { folder: its.clone(), shared: None });
    std::os::unix::fs::symlink(state.join("x.db"), state.join("y.db")).unwrap();
    assert_eq!(of("y.db").folder, its, "by whatever name it is called");
    leave(&its, &event(Kind::Stop)).unwrap();
    assert_eq!(read_inbox(&of("lullwatch.db").folder, 9, NOW_MS).unwrap(), []);
}

#[test]
fn what_cannot_be_recorded_is_counted() {
    let state = tempfile::tempdir().unwrap();
    let inbox = state.path().join("inbox");
    assert_eq!(lost(&inbox), None);
    // No file can be made under this name: a folder has it.
    let scope = Proc::system().scope().clone();
    let stem = format!("{NOW_MS:015}-{:x}-{}", scope.pid_ns.unwrap_or(0), std::process::id());
    for number in 0..1_000 {
        fs::create_dir_all(inbox.join(format!(".{stem}-{number}.tmp"))).unwrap();
    }
    for _ in 0..2 {
        record_hook(&br#"{"session_id":"s"}"#[..], &inbox, "Stop", NOW_MS);
    }
    assert_eq!(lost(&inbox).map(|lost| lost.events), Some(2));
    let other_ms = NOW_MS + 1;
    record_hook(&b"{}"[..], &inbox, "Stop", other_ms);
    assert_eq!(lost(&inbox).map(|lost| lost.events), Some(2), "what names no session is no loss");
    assert_eq!(read_inbox(&inbox, 9, NOW_MS + 70_000).unwrap(), []);
    forget_lost(&inbox).unwrap();
    assert_eq!(lost(&inbox), None);
}

#[test]
fn a_hook_that_did_not_get_to_its_end_leaves_a_trace() {
    let state = tempfile::tempdir().unwrap();
    let (keeps_open, closed) = channel();
    let bytes = io::Cursor::new(br#"{"session_id":"s""#.to_vec());
    record_hook(Open { bytes, closed }, state.path(), "Stop", NOW_MS);
    let later = read_inbox(state.path(), 9, NOW_MS + 60_001).unwrap();
    let read: Vec<_> = later.into_iter().map(|(_, event)| event).collect();
    assert_eq!(read, [Err(Refused::Leftover)]);
    drop(keeps_open);
}

#[test]
fn a_full_inbox_takes_no_more_and_an_event_that_is_there_is_never_taken_back() {
    let inbox = tempfile::tempdir().unwrap();
    for number in 0..10_000 {
        fs::write(inbox.path().join(format!("{number}.json")), "").unwrap();
    }
    assert!(leave(inbox.path(), &event(Kind::Stop)).is_err());
    assert_eq!(lost(inbox.path()).map(|lost| lost.events), Some(1));
    for number in 0..2 {
        fs::remove_file(inbox.path().join(format!("{number}.json"))).unwrap();
    }
    assert!(leave(inbox.path(), &event(Kind::Stop)).unwrap().exists());
}
