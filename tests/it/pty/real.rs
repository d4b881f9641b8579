//! The real program in a terminal, over real transcripts: what happens on the disk is on the screen,
//! keys do what they say, and two of them share a store.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::scene::{HOUR, MINUTE, SECOND, Scene};
use super::screen::Screen;

/// 2026-11-30T09:00:00Z.
pub(super) const T0: i64 = 1_796_029_200_000;
const DEPLOY: &str = "0a6f3a1e-0001-4d11-8a11-000000000001";
const LEDGER: &str = "0a6f3a1e-0002-4d11-8a11-000000000002";
const NIGHT: &str = "0a6f3a1e-0003-4d11-8a11-000000000003";
const BACK: &str = "0a6f3a1e-0004-4d11-8a11-000000000004";

pub(super) fn scene() -> Scene {
    Scene::new(env!("CARGO_BIN_EXE_lullwatch"))
}

/// One session whose turn it is, one that asks.
fn two() -> Scene {
    let scene = scene();
    let deploy = scene.claude("site", DEPLOY);
    deploy.prompt(T0 - 2 * MINUTE, "Deploy the notes");
    deploy.answer(T0 - MINUTE, "The notes are out.");
    let ledger = scene.claude("payments", LEDGER);
    ledger.prompt(T0 - 3 * MINUTE, "Migrate the ledger");
    ledger.call(T0 - 3 * MINUTE, "AskUserQuestion", &json!({"question": "Now?"}));
    scene
}

/// Days with the program: one session ended unseen, one came back after it had been called ended.
pub(super) fn days(title: &str) -> Scene {
    let scene = scene();
    scene.claude("old", DEPLOY).prompt(T0 - 90 * HOUR, "Long ago");
    scene.once(T0 - 30 * HOUR);
    for (project, id, name) in [("night", NIGHT, "Nightly run"), ("back", BACK, title)] {
        let session = scene.claude(project, id);
        session.prompt(T0 - 29 * HOUR, name);
        session.answer(T0 - 29 * HOUR, "Done.");
    }
    scene.once(T0 - 29 * HOUR + MINUTE);
    scene.once(T0 - 2 * HOUR);
    let back = scene.claude("back", BACK);
    back.record(
        T0 - MINUTE,
        "user",
        json!({"uuid": "later", "message":
        {"role": "user", "content": "And once more"}}),
    );
    scene.once(T0);
    scene
}

fn start(scene: &Scene, columns: u16, rows: u16) -> Screen {
    Screen::start(scene.at(T0, &[]), columns, rows)
}

#[test]
fn what_is_written_on_the_disk_is_on_the_screen() {
    let scene = two();
    let mut screen = start(&scene, 120, 30);
    screen.wait_for("Deploy the notes");
    screen.wait_for("writer");
    assert!(screen.text().contains("1 needs you"), "{}", screen.text());
    // The one that asks stands first, and its transcript beside the list.
    screen.wait_for("AskUserQuestion");

    // A line appended to a transcript.
    screen.send("j");
    screen.wait_for("The notes are out.");
    let deploy = scene.claude("site", DEPLOY);
    let more =
        json!({"uuid": "more", "message": {"role": "user", "content": "Now tell everybody"}});
    deploy.record(T0 - SECOND, "user", more);
    screen.wait_for("Now tell everybody");

    // A session in a folder that did not exist a moment ago.
    scene.claude("quite/new", NIGHT).prompt(T0 - 30 * SECOND, "Sweep the floor");
    screen.wait_for("Sweep the floor");

    // A sub-agent in a folder that did not exist a moment ago.
    deploy.sub_agent("a1", "Read the old notes").prompt(T0 - 9 * SECOND, "Read them");
    screen.wait_for("1 of 1 sub-a");
    screen.send("l");
    screen.wait_for("└ Read the old notes");
    screen.send("q");
    assert_eq!(screen.exit_code(), 0);
    screen.given_back();
}

#[test]
fn at_rest_it_writes_nothing_and_a_whole_screen_is_small() {
    let scene = scene();
    for number in 0..45_i64 {
        let at = T0 - number * MINUTE;
        let session = scene.claude("site", &format!("0a6f3a1e-{number:04}-4d11-8a11-000000000001"));
        session.title("A title that is longer than any column has room for, with a 修正支付 in it");
        session.prompt(at, "A prompt of some length, which stands beside the list and is wrapped");
        session.call(at, "Bash", &json!({"command": "cargo test --workspace --all-features"}));
        session.result(at, "test result: ok. 931 passed; 0 failed; 0 ignored; finished in 12.89s");
    }
    let codex = scene.codex("parser", "01a22b80-efc0-70bc-a6a2-339c6bb9adef", T0 - MINUTE);
    codex.prompt(T0 - MINUTE, "Rework the tokenizer");
    codex.answer(T0 - SECOND, "Reworked.");
    let dsh = scene.dsh("quay", "session-7c1a90e2", T0 - HOUR);
    dsh.prompt(T0 - MINUTE, "Tidy the scheduler");
    dsh.answer(T0 - 2 * SECOND, "Tidy.");

    let mut screen = start(&scene, 120, 40);
    screen.wait_for("· writer");
    screen.wait_for("1 Sessions 47");
    screen.wait_for("Tidy the scheduler");
    screen.settle();
    assert_eq!(screen.written_within(Duration::from_millis(1_500)), 0, "{}", screen.text());
    screen.send("\u{c}");
    let bytes = screen.settle();
    assert!((2_000..=16_384).contains(&bytes), "{bytes} bytes");
    screen.send("q");
    assert_eq!(screen.exit_code(), 0);
}

#[test]
fn keys_drive_every_pane() {
    let scene = days("Rework the parser");
    let mut screen = start(&scene, 80, 24);
    screen.wait_for("Rework the parser");
    for (keys, seen) in [
        ("2", "after silence"),
        ("\r", "Transcript  Why"),
        ("l", "1 no      end_evidence"),
        ("l", "completed → "),
        ("l", "no compaction in this session"),
        ("l", "no sub-agents"),
        ("\u{1b}", "lies after the end"),
        ("\t", "for operator"),
        ("j", "superseded"),
        ("4", "no compaction seen"),
        ("\u{1b}[Z", "for operator"),
        ("1", "STATUS"),
        ("/night", "1 of 3"),
        ("\u{1b}", "running 1"),
        ("f", "only needs you"),
        ("ff", "only idle"),
        ("\u{1b}", "running 1"),
        ("sj\r", "by quiet ↓"),
        ("s\r", "by quiet ↑"),
        ("sg\r", "running 1"),
        (" ", "PAUSED"),
        (" ", "running 1"),
        ("?", "─ keys ─"),
        ("\u{1b}", "running 1"),
        ("w", "warnings and roots"),
        ("\u{1b}", "running 1"),
        ("R", "looking at every file"),
        ("F", "FOLLOW"),
        ("F", "And once more"),
        ("\u{1b}", "needs you"),
    ] {
        screen.send(keys);
        screen.wait_for(seen);
    }
    assert!(!screen.raw().contains("\u{1b}[?1000h"), "the mouse is off until asked for");
    screen.send("\u{3}");
    assert_eq!(screen.exit_code(), 0);
    screen.given_back();
}

#[test]
fn the_resume_command_is_shown_and_copied_through_tmux_too() {
    let scene = two();
    for tmux in [false, true] {
        let mut command = scene.at(T0, &[]);
        if tmux {
            command.env("TMUX", "/tmp/tmux-0/default,1,0");
        }
        let mut screen = Screen::start(command, 80, 24);
        screen.wait_for("Migrate the ledger");
        screen.send("r");
        screen.wait_for("&& claude --resume");
        screen.send("y");
        screen.wait_for("copied cd /home/ada/payments");
        let shell = format!("cd /home/ada/payments && claude --resume {LEDGER}");
        let copied = format!("]52;c;{}\u{7}", base64(shell.as_bytes()));
        let plain = format!("\u{1b}{copied}");
        let passed_on = format!("\u{1b}Ptmux;\u{1b}\u{1b}{copied}\u{1b}\\");
        screen.wait_for_raw(&plain);
        assert_eq!(screen.raw().contains(&passed_on), tmux, "{:?}", screen.raw());
    }
}

#[test]
fn an_acknowledgement_is_one_entry_of_one_consumer_and_survives_a_restart() {
    let scene = days("Rework the parser");
    let mut screen = start(&scene, 80, 24);
    screen.wait_for("3 Ledger 2 unacked");
    screen.send("3");
    screen.wait_for("Nightly run");
    screen.send("a");
    screen.wait_for("Acknowledge this entry for operator?");
    screen.send("n");
    screen.wait_until_gone("Acknowledge this");
    screen.send("ay");
    screen.wait_for("1 entry acknowledged for operator");
    screen.wait_for("3 Ledger 1 unacked");
    screen.send("q");
    screen.exit_code();

    let mut screen = start(&scene, 80, 24);
    screen.wait_for("3 Ledger 1 unacked");
    drop(screen);
    let left = |arguments: &[&str]| scene.plain(T0, arguments).matches("claude:").count();
    assert_eq!(left(&["ledger", "--json"]), 1);
}

#[test]
fn a_second_one_watches_and_takes_over() {
    let scene = two();
    let mut first = start(&scene, 80, 24);
    first.wait_for("· writer");
    let mut second = start(&scene, 80, 24);
    second.wait_for("viewer of pid");
    second.wait_for("Deploy the notes");
    scene.claude("late", NIGHT).prompt(T0 - SECOND, "Sweep the floor");
    assert!(second.shows_within("Sweep the floor", Duration::from_secs(2)), "{}", second.text());

    first.send("q");
    first.exit_code();
    assert!(second.shows_within("· writer", Duration::from_secs(2)), "{}", second.text());
    let mut third = start(&scene, 80, 24);
    third.wait_for("viewer of pid");
    second.kill(Signal::KILL);
    assert!(third.shows_within("· writer", Duration::from_secs(2)), "{}", third.text());

    // Stopped, it gives the lock away; back, it finds somebody else there.
    let mut fourth = start(&scene, 80, 24);
    fourth.wait_for("viewer of pid");
    third.send("\u{1a}");
    third.wait_until_stopped();
    third.given_back();
    assert!(fourth.shows_within("· writer", Duration::from_secs(2)), "{}", fourth.text());
    third.kill(Signal::CONT);
    third.wait_for("viewer of pid");
    third.send("q");
    assert_eq!(third.exit_code(), 0);
    third.given_back();
}

#[test]
fn signals_end_it_with_their_code_and_the_terminal_is_as_it_was() {
    let scene = two();
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut screen = start(&scene, 80, 24);
        screen.wait_for("Deploy the notes");
        screen.kill(signal);
        assert_eq!(screen.exit_code(), code, "{signal:?}");
        screen.given_back();
    }
    let mut screen = start(&scene, 80, 24);
    screen.wait_for("Deploy the notes");
    screen.hang_up();
    assert!(screen.is_gone_within(Duration::from_secs(2)), "it lives on without a terminal");
}

#[test]
fn a_store_that_cannot_be_used_ends_it_with_a_sentence_on_the_normal_screen() {
    let scene = two();
    let folder = scene.home().join("a-folder.db");
    fs::create_dir(&folder).unwrap();
    let damaged = scene.home().join("damaged.db");
    fs::write(&damaged, "no database, but as long as the header of one, and then some more of it")
        .unwrap();
    for (path, sentence) in [(&folder, "a-folder.db"), (&damaged, "is damaged")] {
        let command = scene.at(T0, &["--db", path.to_str().unwrap()]);
        let mut screen = Screen::start(command, 80, 24);
        assert_eq!(screen.exit_code(), 1);
        screen.given_back();
        screen.wait_for(sentence);
        assert!(!screen.emulated().alternate_screen());
    }
}

#[test]
fn sizes_change_faster_than_it_draws() {
    let scene = days("Rework the parser");
    let mut screen = start(&scene, 80, 24);
    screen.wait_for("Rework the parser");
    let sizes = [(0, 0), (1, 1), (2, 2), (5, 3), (20, 5), (31, 10), (53, 10), (80, 1), (1, 50)];
    let larger = [(500, 200), (60, 15), (200, 50), (120, 40)];
    for (columns, rows) in sizes.into_iter().chain(larger) {
        let mut other = start(&scene, columns, rows);
        other.wait_for_raw("\u{1b}[?2026l");
        other.send("?\u{1b}\tq");
        assert_eq!(other.exit_code(), 0, "{columns}x{rows}");
        other.given_back();
    }
    for keys in ["", "\r", "\u{1b}2", "3", "4", "?"] {
        screen.send(keys);
        for (columns, rows) in sizes.into_iter().chain(larger) {
            screen.resize(columns, rows);
        }
    }
    screen.resize(80, 24);
    screen.wait_for("─ keys ─");
    screen.send("\u{1b}1");
    screen.wait_for("Rework the parser");
    screen.send("q");
    assert_eq!(screen.exit_code(), 0);
    screen.given_back();
}

#[test]
fn a_human_is_called_once_an_event_and_only_if_asked_to() {
    for (how, tmux, call) in [
        (None, false, None),
        (Some("bell"), false, Some("\u{7}")),
        (Some("osc9"), false, Some("\u{1b}]9;lullwatch: question: Deploy the notes\u{7}")),
        (
            Some("osc777"),
            true,
            Some(
                "\u{1b}Ptmux;\u{1b}\u{1b}]777;notify;lullwatch;lullwatch: question: Deploy the notes\u{7}\u{1b}\\",
            ),
        ),
    ] {
        let scene = two();
        let mut command = scene.at(T0, &[]);
        if let Some(how) = how {
            command.args(["--notify", how]);
        }
        if tmux {
            command.env("TMUX", "x");
        }
        let mut screen = Screen::start(command, 80, 24);
        screen.wait_for("1 needs you");
        screen.wait_for("· writer");
        screen.send("R");
        screen.wait_for("looking at every file");
        assert!(!screen.raw().contains('\u{7}'), "what was so at the start is no news");
        let deploy = scene.claude("site", DEPLOY);
        let question = json!({"uuid": "question", "message": {"id": "m9", "role": "assistant",
            "model": "claude-opus-5", "stop_reason": "tool_use", "content": [{"type": "tool_use",
            "id": "toolu_9", "name": "AskUserQuestion", "input": {"question": "Sure?"}}]}});
        deploy.record(T0 - SECOND, "assistant", question);
        screen.wait_for("2 need you");
        deploy.sub_agent("a1", "Look").prompt(T0 - SECOND, "Look");
        // Who has waited longer stands above.
        screen.send("Gl");
        screen.wait_for("└ Look");
        screen.send("q");
        screen.exit_code();
        match call {
            Some(call) => assert_eq!(screen.raw().matches(call).count(), 1, "{:?}", screen.raw()),
            None => assert!(!screen.raw().contains('\u{7}')),
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for at in 0..4 {
            let letter = char::from(LETTERS[bits >> (18 - 6 * at) & 63]);
            text.push(if at <= group.len() { letter } else { '=' });
        }
    }
    text
}
