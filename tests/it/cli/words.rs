//! What people are told: moments in their own zone, filters that are said, and nothing that a
//! terminal obeys.

use super::paper::{
    CLAUDE_ID, CODEX_ID, append, claude_path, claude_prompt, claude_session, codex_session,
};
use super::tree::Tree;
use super::{DAY, HOUR, Home, MINUTE, NOW, Run, run};

#[test]
fn moments_are_told_in_the_named_zone_by_the_rules_of_their_own_time() {
    let home = Home::new();
    // NOW is in November; half a year before, clocks went by summer time.
    claude_session(&home, CLAUDE_ID, NOW - 140 * DAY, "in July");
    let show = |zone: &str| Run::new(&home, &["show", CLAUDE_ID]).env("TZ", zone).said().fine();
    assert!(show("UTC").contains("started       2026-07-13 09:00:00Z"), "{}", show("UTC"));
    for zone in ["Europe/Berlin", ":Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"] {
        let told = show(zone);
        assert!(told.contains("started       2026-07-13 11:00:00+02"), "{zone}: {told}");
        assert!(told.contains("+01 (") || told.contains("+01\n"), "{zone}: {told}");
        assert!(
            !told.contains("00Z") && !told.contains("000Z"),
            "a moment went its own way: {told}"
        );
    }
    // Where the system has no zone files, those that are compiled in count.
    let bare =
        Run::new(&home, &["show", CLAUDE_ID]).env("TZ", "Europe/Berlin").env("TZDIR", "/nowhere");
    assert!(bare.said().fine().contains("2026-07-13 11:00:00+02"));
    let json = Run::new(&home, &["show", CLAUDE_ID, "--json"]).env("TZ", "Europe/Berlin").said();
    let started = json.json().get("session.started_at");
    assert_eq!(started, "\"2026-07-13T09:00:00.000Z\"");
}

/// A Claude session and a Codex one that both ended after the epoch, and the moment after.
fn two_agents() -> (Home, i64) {
    let home = Home::new();
    std::fs::create_dir_all(home.home().join(".claude/projects")).unwrap();
    std::fs::create_dir_all(home.home().join(".codex/sessions")).unwrap();
    run(&home, &["--once"]);
    append(&home, &claude_path(CLAUDE_ID), &[claude_prompt(CLAUDE_ID, NOW + MINUTE, "work")]);
    codex_session(&home, CODEX_ID, NOW + MINUTE, "Fix the parser", "Fixed.");
    Run::new(&home, &["--once"]).at(NOW + 2 * MINUTE).said().fine();
    (home, NOW + 2 * DAY)
}

#[test]
fn audit_and_ledger_keep_to_the_filters_and_so_does_acknowledging_all() {
    let (home, end) = two_agents();
    let rows = |args: &[&str]| -> Vec<String> {
        let tree = Run::new(&home, &[args, &["--json"]].concat()).at(end + HOUR).said().json();
        tree.at("items").items().iter().map(|row| row.get("entity")).collect()
    };
    let (claude, codex) = (format!("\"claude:{CLAUDE_ID}\""), format!("\"codex:{CODEX_ID}\""));
    Run::new(&home, &["--once"]).at(end).said().fine();
    assert_eq!(rows(&["ledger"]).len(), 2);
    assert_eq!(rows(&["ledger", "--agent", "claude"]), std::slice::from_ref(&claude));
    assert_eq!(rows(&["ledger", "--agent", "dsh"]), [""; 0]);
    assert_eq!(rows(&["ledger", "--since", "2h"]).len(), 2);
    assert_eq!(rows(&["ledger", "--since", "1m"]), [""; 0]);
    let all = ["ledger", "ack", "--all", "--agent", "codex"];
    assert_eq!(Run::new(&home, &all).at(end + HOUR).said().code, Some(0));
    assert_eq!(rows(&["ledger"]), std::slice::from_ref(&claude), "the other agent's stays");
    // Both come back: two overrides.
    append(&home, &claude_path(CLAUDE_ID), &[claude_prompt(CLAUDE_ID, end + HOUR, "again")]);
    let back = Run::new(&home, &["--once"]).at(end + HOUR).said().fine();
    assert!(back.contains("1 running"), "{back}");
    assert_eq!(rows(&["audit"]), std::slice::from_ref(&claude));
    assert_eq!(rows(&["audit", "--agent", "claude"]), [claude]);
    assert_eq!(rows(&["audit", "--agent", "codex"]), [""; 0]);
    let told = Run::new(&home, &["audit", "--agent", "codex"]).at(end + HOUR).said().fine();
    assert!(told.contains("--agent codex"), "{told}");
    let _ = codex;
}

#[test]
fn a_filter_is_marked_with_what_it_hides() {
    let home = Home::new();
    claude_session(&home, CLAUDE_ID, NOW - 9 * MINUTE, "one");
    codex_session(&home, CODEX_ID, NOW - 3 * HOUR, "two", "Done.");
    let json =
        |args: &[&str]| -> Tree { run(&home, &[&["--once", "--json"], args].concat()).json() };
    assert_eq!(json(&[]).get("hidden"), "0");
    assert_eq!(json(&["--agent", "claude"]).get("hidden"), "1");
    assert_eq!(json(&["--since", "5m"]).get("hidden"), "2");
    let table = |args: &[&str]| run(&home, &[&["--once"], args].concat()).fine();
    assert!(!table(&[]).contains("hidden"));
    let some = table(&["--agent", "claude", "--since", "90m"]);
    assert!(some.contains("1 session hidden by --agent claude --since 1h30m"), "{some}");
    let none = table(&["--since", "5m"]);
    assert!(none.contains("2 sessions hidden by --since 5m"), "{none}");
    assert!(!none.contains("no transcript yet"), "{none}");
}

#[test]
fn a_session_that_is_idle_is_never_shown_quieter_than_the_window() {
    let home = Home::new();
    claude_session(&home, CLAUDE_ID, NOW - 9 * MINUTE, "one");
    // It answered after 10 s, and 5 m 1 s later the minute has just begun.
    let at = NOW - 9 * MINUTE + 5 * MINUTE + 11_000;
    let table = Run::new(&home, &["--once"]).at(at).said().fine();
    let row = table.lines().find(|line| line.contains("one")).unwrap_or_default();
    assert!(row.contains("idle") && row.contains(" 5m "), "{table}");
}

#[test]
fn a_mistake_quotes_nothing_that_a_terminal_obeys() {
    let home = Home::new();
    for args in [
        &["--agent", "\u{202e}evil\u{1b}[2J\u{9b}31m"][..],
        &["\u{1b}]0;pwn\u{7}x"],
        &["--once", "--\u{2066}x\u{1b}[31m"],
        &["show", "\u{200b}\u{202e}x\u{1b}[2J"],
    ] {
        let told = run(&home, args);
        let harmful = |letter: char| {
            (letter.is_control() && letter != '\n')
                || matches!(letter, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert!(!told.err.is_empty() && !told.err.contains(harmful), "{:?}", told.err);
    }
    let told = Run::new(&home, &["--once"]).env("LULLWATCH_AGENT", "\u{202e}x").said();
    assert!(!told.err.contains('\u{202e}'), "{:?}", told.err);
}
