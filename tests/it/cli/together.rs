//! Several processes on one database, and `watch`: who writes, who waits, and how each ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::paper::{CLAUDE_ID, append, claude_answer, claude_path, claude_prompt, claude_session};
use super::tree::Tree;
use super::{Home, MINUTE, NOW, Run, db, run, until};

/// `lullwatch watch`, ended when the test ends.
struct Watch {
    child: Child,
    out: Option<BufReader<ChildStdout>>,
}

impl Watch {
    /// Starts one, and waits for its first complete pass.
    fn start(home: &Home, args: &[&str]) -> Self {
        let watch = Self::spawn(home, args);
        let pid = u64::from(watch.child.id());
        until("the writer's first pass", || {
            let holder = holder(home)?;
            (holder["pid"] == pid && holder["passes"].as_u64()? > 0).then_some(())
        });
        watch
    }

    fn spawn(home: &Home, args: &[&str]) -> Self {
        let mut run = Run::new(home, &[&["watch"], args].concat());
        let mut child = run.command.spawn().unwrap();
        let out = child.stdout.take().map(BufReader::new);
        Self { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Its exit code, what it still printed, and what it told.
    fn end(mut self) -> (Option<i32>, String, String) {
        until("the watch to end", || self.child.try_wait().unwrap());
        let (mut out, mut err) = (String::new(), String::new());
        if let Some(mut pipe) = self.out.take() {
            std::io::Read::read_to_string(&mut pipe, &mut out).unwrap();
        }
        let mut pipe = self.child.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut pipe, &mut err).unwrap();
        (self.child.wait().unwrap().code(), out, err)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the lock file says of its holder.
fn holder(home: &Home) -> Option<Value> {
    let text = fs::read_to_string(db(home).with_extension("db.lock")).ok()?;
    serde_json::from_str(text.trim_end()).ok()
}

fn one() -> Home {
    let home = Home::new();
    claude_session(&home, CLAUDE_ID, NOW - 20 * MINUTE, "Add a table");
    home
}

#[test]
fn watch_prints_each_transition_once_and_ends_well_when_told() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let home = one();
        let mut watch = Watch::start(&home, &[]);
        let admitted = watch.line();
        assert!(admitted.contains("idle") && admitted.contains(CLAUDE_ID), "{admitted}");
        let spoke = [claude_prompt(CLAUDE_ID, NOW - MINUTE, "go on")];
        append(&home, &claude_path(CLAUDE_ID), &spoke);
        let moved = watch.line();
        assert!(moved.contains("idle → running"), "{moved}");
        append(&home, &claude_path(CLAUDE_ID), &[claude_answer(CLAUDE_ID, NOW - 1_000, "ok")]);
        watch.signal(signal);
        let (code, out, err) = watch.end();
        assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", ""), "{signal:?}");
        let after = run(&home, &["--once", "--json"]).json();
        assert_eq!(after.get("mirror.writer"), "true", "the lock is free");
    }
}

#[test]
fn watch_in_json_is_a_line_per_transition() {
    let home = one();
    let mut watch = Watch::start(&home, &["--json"]);
    let row = Tree::parse(&watch.line());
    let keys: Vec<&str> = match &row {
        Tree::Object(pairs) => pairs.iter().map(|(key, _)| key.as_str()).collect(),
        other @ (Tree::List(_) | Tree::Leaf(_)) => panic!("{other}"),
    };
    assert_eq!(keys, ["schema", "entity", "id", "at", "from", "to", "reason", "actor"]);
    assert_eq!(row.get("schema"), "\"lullwatch.transition.v1\"");
    assert_eq!(row.get("to"), "\"idle\"");
}

#[test]
fn watch_ends_well_when_nobody_reads_it_any_more() {
    let home = one();
    let mut watch = Watch::start(&home, &[]);
    watch.line();
    watch.out = None;
    let spoke = [claude_prompt(CLAUDE_ID, NOW - MINUTE, "go on")];
    append(&home, &claude_path(CLAUDE_ID), &spoke);
    let (code, _, err) = watch.end();
    assert_eq!((code, err.as_str()), (Some(0), ""));
}

#[test]
fn once_beside_a_writer_shows_what_its_next_pass_brought() {
    let home = one();
    let mut watch = Watch::start(&home, &[]);
    watch.line();
    let once = Run::new(&home, &["--once", "--json"]).command.spawn().unwrap();
    // It has begun to wait or is about to: either way a pass after its start is what it shows.
    let spoke = [claude_prompt(CLAUDE_ID, NOW - MINUTE, "go on")];
    append(&home, &claude_path(CLAUDE_ID), &spoke);
    let mut lines = 0;
    let ended = until_ended(once, || {
        // Should it have started only after that pass: one more.
        lines += 1;
        let more = claude_answer(CLAUDE_ID, NOW - MINUTE + lines, "ok");
        append(&home, &claude_path(CLAUDE_ID), &[more]);
    });
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let snapshot = Tree::parse(&ended.out);
    assert_eq!(snapshot.get("mirror.writer"), "false");
    assert_eq!(snapshot.get("as_of"), "\"2026-11-30T09:00:00.000Z\"");
    assert_eq!(snapshot.get("sessions.0.status"), "\"running\"");
    let pid = watch.child.id().to_string();
    assert!(ended.err.contains(&pid) && ended.err.lines().count() == 1, "{}", ended.err);
}

#[test]
fn once_beside_a_writer_at_rest_makes_it_look() {
    let home = one();
    let mut watch = Watch::start(&home, &[]);
    watch.line();
    let passes = || holder(&home).unwrap()["passes"].as_u64().unwrap();
    let before = passes();
    assert_eq!(run(&home, &["--once"]).code, Some(0));
    let after = passes();
    assert!(after > before, "{before} passes, then {after}");
    assert!(!db(&home).with_extension("db.ask").exists(), "the question was heard");
}

/// Waits for a process, and does something every tenth of a second meanwhile.
fn until_ended(mut child: Child, mut meanwhile: impl FnMut()) -> super::Said {
    let mut looks = 0;
    until("the process to end", || {
        looks += 1;
        if looks % 10 == 0 {
            meanwhile();
        }
        child.try_wait().unwrap()
    });
    let output = child.wait_with_output().unwrap();
    super::Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn reading_commands_beside_a_writer_do_not_wait_and_may_acknowledge() {
    let home = one();
    let watch = Watch::start(&home, &[]);
    let pid = watch.child.id().to_string();
    for args in [&["show", CLAUDE_ID][..], &["audit"], &["ledger"], &["compactions"]] {
        let said = run(&home, args);
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        assert!(said.err.contains(&pid), "{args:?}: {}", said.err);
    }
    assert_eq!(run(&home, &["ledger", "ack", "--all"]).code, Some(0));
    let first = run(&home, &["ledger", "--consumer", "pager"]);
    assert_eq!(first.code, Some(0));
    assert!(first.err.contains("`pager` is new"), "{}", first.err);
    let second = run(&home, &["ledger", "--consumer", "pager"]);
    assert!(!second.err.contains("new"), "{}", second.err);
    let err = run(&home, &["migrate"]).refused(1);
    assert!(err.contains(&pid) && err.contains("hint:"), "{err}");
}

#[test]
fn other_windows_are_refused_beside_a_writer_too() {
    let home = one();
    let _watch = Watch::start(&home, &[]);
    for args in
        [&["show", CLAUDE_ID, "--live-window", "1m"][..], &["audit", "--ended-window", "1h"]]
    {
        let err = run(&home, args).refused(1);
        assert!(err.contains("lullwatch config --set-windows"), "{args:?}: {err}");
    }
}

#[test]
fn a_newer_database_is_refused_beside_a_writer_too() {
    let home = one();
    let _watch = Watch::start(&home, &[]);
    #[expect(clippy::disallowed_methods, reason = "as if a newer program wrote it")]
    let raw = rusqlite::Connection::open(db(&home)).unwrap();
    raw.pragma_update(None, "user_version", 999).unwrap();
    let err = run(&home, &["show", CLAUDE_ID]).refused(1);
    assert!(err.contains("999"), "{err}");
}

#[test]
fn after_kill_9_of_the_writer_the_next_is_the_writer() {
    let home = one();
    let mut watch = Watch::start(&home, &[]);
    watch.line();
    watch.signal(Signal::KILL);
    let (code, _, _) = watch.end();
    assert_eq!(code, None, "killed");
    let snapshot = run(&home, &["--once", "--json"]).json();
    assert_eq!(snapshot.get("mirror.writer"), "true");
    assert_eq!(snapshot.get("sessions.0.status"), "\"idle\"");
}

#[test]
fn a_second_watch_says_who_writes_and_takes_over_when_it_falls() {
    let home = one();
    let mut first = Watch::start(&home, &[]);
    first.line();
    let mut second = Watch::spawn(&home, &[]);
    let mut told = BufReader::new(second.child.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    assert!(line.contains(&format!("pid {}", first.child.id())), "{line}");
    first.signal(Signal::KILL);
    first.end();
    let pid = second.child.id();
    until("the second to write", || (holder(&home)?["pid"] == pid).then_some(()));
    append(&home, &claude_path(CLAUDE_ID), &[claude_prompt(CLAUDE_ID, NOW - MINUTE, "go on")]);
    let moved = second.line();
    assert!(moved.contains("idle → running"), "{moved}");
}

#[test]
fn a_watch_that_only_views_prints_what_the_writer_writes() {
    let home = one();
    let mut first = Watch::start(&home, &[]);
    first.line();
    let mut second = Watch::spawn(&home, &[]);
    let mut told = BufReader::new(second.child.stderr.take().unwrap());
    told.read_line(&mut String::new()).unwrap();
    append(&home, &claude_path(CLAUDE_ID), &[claude_prompt(CLAUDE_ID, NOW - MINUTE, "go on")]);
    let (written, viewed) = (first.line(), second.line());
    assert!(written.contains("idle → running"), "{written}");
    assert_eq!(written, viewed);
}

#[test]
fn eight_at_once_on_no_database_all_print_the_same() {
    let home = one();
    let calls: Vec<Child> =
        (0..8).map(|_| Run::new(&home, &["--once"]).command.spawn().unwrap()).collect();
    let outputs: Vec<_> = calls.into_iter().map(|call| call.wait_with_output().unwrap()).collect();
    for output in &outputs {
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!(text(&output.stdout), text(&outputs[0].stdout));
    }
    let show = run(&home, &["show", CLAUDE_ID, "--json"]).json();
    assert_eq!(show.at("transitions").items().len(), 1);
}

#[test]
fn a_file_that_cannot_be_read_is_told_and_the_others_are_shown() {
    let home = one();
    // A folder in the place of a transcript is passed over; a loop of links cannot be followed.
    let odd = home.home().join(".claude/projects/-tmp-odd");
    fs::create_dir_all(&odd).unwrap();
    std::os::unix::fs::symlink("loop.jsonl", odd.join("loop.jsonl")).unwrap();
    fs::create_dir(odd.join("folder.jsonl")).unwrap();
    let said = run(&home, &["--once"]);
    assert_eq!(said.code, Some(0));
    assert!(said.out.contains("Add a table"), "{}", said.out);
    let mut closed = Run::new(&home, &["--once"]);
    closed.command.stderr(Stdio::null());
    assert_eq!(closed.said().code, Some(0));
}
