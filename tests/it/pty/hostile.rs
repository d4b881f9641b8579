//! Transcripts full of control sequences, through every pane of the real program: none of them
//! reaches the terminal.

use serde_json::json;

use super::real::{T0, days, scene};
use super::scene::{HOUR, MINUTE, Scene};
use super::screen::Screen;

/// Clears, titles, clipboards, links, questions, tunnels, an endless string, old controls, eight-bit
/// controls, and letters that turn others round.
const EVIL: &str = "evil\u{1b}[2J\u{1b}]0;owned\u{7}\u{1b}]52;c;b3duZWQ=\u{7}\u{1b}]8;;http://x\u{1b}\\\
    \u{1b}[6n\u{1b}[5n\u{1b}[c\u{1b}c\u{1b}Ptmux;\u{1b}\u{1b}]0;x\u{7}\u{1b}\\\u{1b}[?1049l\u{9b}2J\
    \u{9d}0;x\u{9c}\u{8}\u{8}\r\u{b}\u{c}\u{202e}gnp\u{2066}\u{200f}\u{0}\u{7f} end\u{1b}]0;no end";

/// Everything that reaches the screen, hostile.
fn everywhere(scene: &Scene) {
    let mut evil = scene.claude("site", "0a6f3a1e-0009-4d11-8a11-000000000009");
    EVIL.clone_into(&mut evil.branch);
    evil.prompt(T0 - 3 * MINUTE, EVIL);
    evil.call(T0 - 3 * MINUTE, EVIL, &json!({"command": EVIL}));
    evil.result(T0 - 2 * MINUTE, EVIL);
    evil.compacted(T0 - 2 * MINUTE, EVIL, 100_000, 900);
    evil.answer(T0 - MINUTE, EVIL);
    let sub = evil.sub_agent("a1", EVIL);
    sub.prompt(T0 - MINUTE, EVIL);
    evil.error(T0 - MINUTE, EVIL);
    let codex = scene.codex(EVIL, "01a22b80-efc0-70bc-a6a2-339c6bb9adef", T0 - MINUTE);
    codex.prompt(T0 - MINUTE, EVIL);
    codex.call(T0 - MINUTE, EVIL);
    let dsh = scene.dsh("evil", "session-evil", T0 - HOUR);
    dsh.prompt(T0 - MINUTE, EVIL);
    dsh.event(T0 - MINUTE, "compaction/start", &json!({"compactionId": EVIL}));
}

#[test]
fn nothing_from_a_transcript_reaches_the_terminal_unfiltered() {
    let scene = days(EVIL);
    everywhere(&scene);
    for (columns, rows) in [(80, 24), (200, 50)] {
        let mut screen = Screen::start(scene.at(T0, &[]), columns, rows);
        screen.wait_for("1 needs you");
        for (keys, seen) in [
            ("t", "└ evil"),
            ("\r", "Transcript"),
            ("k\r", "evil"),
            ("k\r", "evil"),
            ("k\r", "evil"),
            ("l", "live_window"),
            ("l", "admitted"),
            ("l", "100k →"),
            ("l", "evil"),
            ("\u{1b}r", "claude --resume"),
            ("\u{1b}2", "after silence"),
            ("3", "superseded"),
            ("4", "100k → 900"),
            ("1w", "warnings and roots"),
            ("\u{1b}/evil", "/evil"),
            ("\r", "of"),
        ] {
            screen.send(keys);
            screen.wait_for(seen);
        }
        screen.send("q");
        assert_eq!(screen.exit_code(), 0);
        harmless(&screen.raw());
    }
    let table = scene.plain(T0, &["--once"]);
    assert!(!table.contains('\u{1b}') && !table.contains('\u{9b}'), "{table:?}");
}

#[test]
fn a_hostile_title_is_searched_and_shown_without_its_controls() {
    let scene = scene();
    scene.claude("site", "0a6f3a1e-0009-4d11-8a11-000000000009").prompt(T0 - MINUTE, EVIL);
    let mut screen = Screen::start(scene.at(T0, &[]), 80, 24);
    screen.wait_for("evil gnp end");
    harmless(&screen.raw());
}

/// What is left of a recording without our own sequences has no control in it.
fn harmless(raw: &str) {
    let mut rest = raw;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let end = after.find(|letter: char| letter.is_ascii_alphabetic()).unwrap();
        let (parameters, last) = (&after[..end], &after[end..=end]);
        let known = match last {
            "h" | "l" => matches!(parameters, "?1049" | "?2004" | "?25" | "?2026"),
            "H" | "m" => parameters.chars().all(|c| c.is_ascii_digit() || c == ';'),
            "J" => parameters == "2",
            _ => false,
        };
        assert!(known, "not ours: ESC [ {parameters} {last}");
        rest = &after[end + 1..];
    }
    plain.push_str(rest);
    let is_harmful = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if let Some(at) = plain.find(is_harmful) {
        panic!("a control: {:?}", plain[at..].chars().take(40).collect::<String>());
    }
    let left = raw.find("\u{1b}[?1049l");
    assert!(left.is_none_or(|at| !raw[at + 8..].contains("\u{1b}[?1049l")), "left twice");
}
