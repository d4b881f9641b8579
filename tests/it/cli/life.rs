//! The life of a session over many calls, each at its own moment: statuses, history, ledger, audit.

use super::contract::{COMPACTION, REASON, SESSION};
use super::paper::{
    CLAUDE_ID, CODEX_ID, DSH_ID, append, claude_answer, claude_call, claude_cost, claude_path,
    claude_prompt, claude_session, codex_session, dsh_session,
};
use super::tree::{Kind, Tree};
use super::{DAY, HOUR, Home, MINUTE, NOW, Run, SECOND, run, stamp};

fn json(home: &Home, at: i64, args: &[&str]) -> Tree {
    let args = [args, &["--json"]].concat();
    Run::new(home, &args).at(at).said().json()
}

/// A home whose root has been seen, empty, at `NOW`: its epoch.
fn seen_empty() -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.home().join(".claude/projects/-tmp-demo")).unwrap();
    run(&home, &["--once"]).fine();
    home
}

fn prompt(home: &Home, at: i64, text: &str) {
    let lines = [claude_prompt(CLAUDE_ID, at, text), claude_answer(CLAUDE_ID, at + 1, "ok")];
    append(home, &claude_path(CLAUDE_ID), &lines);
}

/// `status pending/overrides from>to,…` of the one session, as one line.
fn state(home: &Home, at: i64) -> String {
    let snapshot = json(home, at, &["--once"]);
    let show = json(home, at, &["show", CLAUDE_ID]);
    assert_eq!(snapshot.get("sessions.0"), show.get("session"), "one verdict on every surface");
    let story: Vec<String> = show
        .at("transitions")
        .items()
        .iter()
        .map(|row| format!("{}>{}", row.get("from"), row.get("to")))
        .collect();
    format!(
        "{} {}/{} {}",
        snapshot.get("sessions.0.status"),
        snapshot.get("ledger.pending"),
        snapshot.get("audit.overrides"),
        story.join(" ")
    )
    .replace('"', "")
}

#[test]
fn a_lull_is_no_end_and_an_end_by_silence_is_taken_back_once() {
    let home = seen_empty();
    let (spoke, again) = (NOW + MINUTE, NOW + 11 * MINUTE);
    prompt(&home, spoke, "first");
    assert_eq!(state(&home, spoke + MINUTE), "running 0/0 null>running");
    // Exactly at a window is inside it; the answer came a millisecond later.
    assert_eq!(state(&home, spoke + 5 * MINUTE + 1), "running 0/0 null>running");
    assert_eq!(state(&home, spoke + 5 * MINUTE + 2), "idle 0/0 null>running running>idle");
    prompt(&home, again, "go on");
    let back = "null>running running>idle idle>running";
    assert_eq!(state(&home, again + MINUTE), format!("running 0/0 {back}"));
    let ended = format!("{back} running>idle idle>completed");
    assert_eq!(state(&home, again + DAY + 1), format!("idle 0/0 {back} running>idle"));
    assert_eq!(state(&home, again + DAY + 2), format!("completed 1/0 {ended}"));
    let show = json(&home, again + DAY + 2, &["show", CLAUDE_ID]);
    assert_eq!(show.get("session.ended_at"), format!("\"{}\"", stamp(again + 1)));
    assert_eq!(show.get("session.ended_at_approximate"), "true");
    assert_eq!(show.get("session.reason.basis"), "\"inferred\"");
    assert_eq!(show.get("session.phase"), "\"ended\"");

    prompt(&home, again + 2 * DAY, "still here");
    let revived = format!("{ended} completed>running");
    assert_eq!(state(&home, again + 2 * DAY + MINUTE), format!("running 1/1 {revived}"));
    let show = json(&home, again + 2 * DAY + MINUTE, &["show", CLAUDE_ID]);
    assert_eq!(show.get("session.ended_at"), "null", "what lives has no end");
    let end = again + 4 * DAY;
    let whole = format!("{revived} running>idle idle>completed");
    for _ in 0..3 {
        assert_eq!(state(&home, end), format!("completed 2/1 {whole}"), "nothing grows");
    }
    ledger_and_audit_of_that_life(&home, end);
}

fn ledger_and_audit_of_that_life(home: &Home, end: i64) {
    let ledger = json(home, end, &["ledger"]);
    assert_eq!(ledger.breaches(LEDGER), [""; 0]);
    let superseded: Vec<String> =
        ledger.at("items").items().iter().map(|row| row.get("superseded")).collect();
    assert_eq!(superseded, ["true", "false"], "oldest first");
    assert_eq!(ledger.get("items.0.entity"), format!("\"claude:{CLAUDE_ID}\""));
    let audit = json(home, end, &["audit"]);
    assert_eq!(audit.breaches(AUDIT), [""; 0]);
    assert_eq!(audit.at("items").items().len(), 1);
    assert_eq!(audit.get("items.0.action"), "\"status_transition_override\"");
    assert_eq!(audit.get("items.0.reason"), "\"session.reactivated.activity\"");
    assert_eq!(audit.get("items.0.actor"), "\"claude-mirror-reconcile\"");
    assert_eq!(audit.get("items.0.after"), "\"silence\"");
    let table = Run::new(home, &["ledger"]).at(end).said().fine();
    assert!(table.contains("superseded"), "{table}");
    let table = Run::new(home, &["audit"]).at(end).said().fine();
    assert!(table.contains("completed → running") && table.contains("silence"), "{table}");
}

#[test]
fn both_hops_of_one_pass_are_two_rows() {
    let home = seen_empty();
    prompt(&home, NOW + MINUTE, "first");
    assert_eq!(state(&home, NOW + 2 * MINUTE), "running 0/0 null>running");
    let late = state(&home, NOW + 3 * DAY);
    assert_eq!(late, "completed 1/0 null>running running>idle idle>completed");
}

#[test]
fn history_is_no_news() {
    let home = Home::new();
    claude_session(&home, CLAUDE_ID, NOW - 40 * DAY, "long ago");
    assert_eq!(state(&home, NOW), "completed 0/0 null>completed");
    let history = json(&home, NOW, &["ledger", "--history"]);
    assert_eq!(history.at("items").items().len(), 1);
    assert_eq!(history.get("items.0.from"), "null");
    let show = json(&home, NOW, &["show", CLAUDE_ID]);
    assert_eq!(
        show.get("session.ended_at"),
        format!("\"{}\"", stamp(NOW - 40 * DAY + 10 * SECOND)),
        "its last line, not now"
    );
}

#[test]
fn what_ended_while_the_monitor_was_off_is_news() {
    let home = seen_empty();
    prompt(&home, NOW + MINUTE, "unwatched");
    assert_eq!(state(&home, NOW + 9 * DAY), "completed 1/0 null>idle idle>completed");
}

#[test]
fn a_question_is_no_watch_and_sets_no_epoch() {
    for question in [&["audit"][..], &["ledger"], &["compactions"], &["show", CLAUDE_ID]] {
        let home = Home::new();
        claude_session(&home, CLAUDE_ID, NOW - HOUR, "asked about");
        run(&home, question).fine();
        let over = NOW + 9 * DAY;
        append(
            &home,
            &claude_path(OTHER_ID),
            &[claude_prompt(OTHER_ID, NOW + MINUTE, "unwatched")],
        );
        let first = json(&home, over, &["--once"]);
        // The one that was asked about was seen alive, so its end is news; the other is history.
        assert_eq!(first.get("ledger.pending"), "1", "{question:?}");
        // From the first watch on, what ends is news.
        append(&home, &claude_path(LATER_ID), &[claude_prompt(LATER_ID, over + MINUTE, "watched")]);
        let second = json(&home, over + 9 * DAY, &["--once"]);
        assert_eq!(second.get("ledger.pending"), "2", "{question:?}");
    }
}

#[test]
fn an_end_marker_ends_what_was_seen_running_without_a_detour() {
    let home = seen_empty();
    prompt(&home, NOW + MINUTE, "first");
    json(&home, NOW + 2 * MINUTE, &["--once"]);
    append(&home, &claude_path(CLAUDE_ID), &[claude_cost(CLAUDE_ID, NOW + MINUTE, 30_000)]);
    let ended = state(&home, NOW + 3 * MINUTE);
    assert_eq!(ended, "completed 1/0 null>running running>completed");
}

#[test]
fn an_end_marker_ends_a_session_and_a_later_line_revokes_it() {
    let home = seen_empty();
    let began = NOW + MINUTE;
    prompt(&home, began, "first");
    let path = claude_path(CLAUDE_ID);
    append(&home, &path, &[claude_cost(CLAUDE_ID, began, 30_000)]);
    let ended = state(&home, began + MINUTE);
    assert_eq!(ended, "completed 1/0 null>idle idle>completed", "it ended after the epoch");
    let show = json(&home, began + MINUTE, &["show", CLAUDE_ID]);
    assert_eq!(show.get("session.reason.basis"), "\"observed\"");
    assert_eq!(show.get("session.ended_at"), format!("\"{}\"", stamp(began + 30_000)));
    assert_eq!(show.get("session.ended_at_approximate"), "false");
    prompt(&home, began + 2 * MINUTE, "resumed");
    let snapshot = json(&home, began + 3 * MINUTE, &["--once"]);
    assert_eq!(snapshot.get("sessions.0.status"), "\"running\"");
    assert_eq!(
        snapshot.get("audit"),
        r#"{"overrides":0,"overrides_after_exit":1,"rejections":0,"migrations":0}"#
    );
}

/// Two sessions that ended after the epoch, and the moment after.
fn two_ended() -> (Home, i64) {
    let home = seen_empty();
    for (n, id) in [CLAUDE_ID, OTHER_ID].into_iter().enumerate() {
        let at = NOW + MINUTE + i64::try_from(n).unwrap();
        append(&home, &claude_path(id), &[claude_prompt(id, at, "work")]);
    }
    json(&home, NOW + 2 * MINUTE, &["--once"]);
    let end = NOW + 2 * DAY;
    assert_eq!(json(&home, end, &["ledger"]).at("items").items().len(), 2);
    (home, end)
}

const OTHER_ID: &str = "26f52580-0000-4be1-ac4b-9de9d22c854c";
const LATER_ID: &str = "37a63691-0000-4be1-ac4b-9de9d22c854c";

#[test]
fn acknowledging_takes_an_entry_out_once() {
    let (home, end) = two_ended();
    let pending = || -> Vec<String> {
        let ledger = json(&home, end, &["ledger"]);
        ledger.at("items").items().iter().map(|row| row.get("id")).collect()
    };
    let ack = |args: &[&str]| Run::new(&home, &[&["ledger", "ack"], args].concat()).at(end).said();
    let before = pending();
    let first = before[0].as_str();
    assert_eq!(ack(&[first]).code, Some(0));
    assert_eq!(pending(), before[1..], "by number");
    let again = ack(&[first]);
    assert_eq!((again.code, pending()), (Some(0), before[1..].to_vec()), "doing it again is fine");
    assert!(again.err.contains("already"), "{}", again.err);
    let unknown = ack(&["999999"]);
    assert_eq!((unknown.code, pending()), (Some(1), before[1..].to_vec()));
    assert!(unknown.err.contains("999999") && unknown.err.contains("hint:"), "{}", unknown.err);
    // The session whose entry has the number above was the other one.
    let mixed = ack(&["999999", CLAUDE_ID]);
    assert_eq!((mixed.code, pending()), (Some(0), Vec::new()), "one matched, by session");
    assert!(mixed.err.contains("999999"), "{}", mixed.err);
    let again = ack(&[OTHER_ID]);
    assert_eq!(again.code, Some(0), "also by session: {}", again.err);
    let history = json(&home, end, &["ledger", "--history"]);
    let acked: Vec<String> =
        history.at("items").items().iter().map(|row| row.get("acked_at")).collect();
    assert_eq!(acked, vec![format!("\"{}\"", stamp(end)); 2], "the first time counts");
}

#[test]
fn all_means_all_that_is_pending_and_then_nothing() {
    let (home, end) = two_ended();
    let ack = || Run::new(&home, &["ledger", "ack", "--all"]).at(end).said();
    let first = ack();
    assert_eq!((first.code, first.out.as_str()), (Some(0), ""));
    assert!(first.err.contains('2'), "{}", first.err);
    assert_eq!(json(&home, end, &["--once"]).get("ledger.pending"), "0");
    assert_eq!(ack().code, Some(0), "nothing left to do is fine");
}

#[test]
fn an_ambiguous_session_is_not_acknowledged_by_guess() {
    let (home, end) = two_ended();
    let said = Run::new(&home, &["ledger", "ack", "26f5258"]).at(end).said();
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains(OTHER_ID) && said.err.contains("hint:"), "{}", said.err);
    assert_eq!(json(&home, end, &["--once"]).get("ledger.pending"), "2");
    // Also where what was typed reads like the number of an entry.
    claude_session(&home, "77000001-0000-4be1-ac4b-9de9d22c854c", end - MINUTE, "one");
    claude_session(&home, "77000002-0000-4be1-ac4b-9de9d22c854c", end - MINUTE, "two");
    json(&home, end, &["--once"]);
    let said = Run::new(&home, &["ledger", "ack", "770000"]).at(end).said();
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("`770000` fits 2 sessions"), "{}", said.err);
}

#[test]
fn consumers_do_not_acknowledge_for_each_other() {
    let home = seen_empty();
    let known = Run::new(&home, &["ledger", "--consumer", "pager"]).said();
    assert_eq!(known.code, Some(0));
    assert!(known.err.contains("pager") && known.err.contains("new"), "{}", known.err);
    prompt(&home, NOW + MINUTE, "work");
    json(&home, NOW + 2 * MINUTE, &["--once"]);
    let end = NOW + 2 * DAY;
    let pending =
        |consumer: &str| json(&home, end, &["--once", "--consumer", consumer]).get("ledger");
    assert_eq!(pending("pager"), r#"{"consumer":"pager","pending":1}"#);
    let said = Run::new(&home, &["ledger", "ack", "--all", "--consumer", "pager"]).at(end).said();
    assert_eq!(said.code, Some(0));
    assert_eq!(pending("pager"), r#"{"consumer":"pager","pending":0}"#);
    assert_eq!(pending("operator"), r#"{"consumer":"operator","pending":1}"#);
}

#[test]
fn a_consumer_gets_what_ends_after_it_was_first_named() {
    let (home, end) = two_ended();
    let late = Run::new(&home, &["ledger", "--json", "--consumer", "late"]).at(end).said();
    assert_eq!(Tree::parse(&late.out).get("items"), "[]");
    assert_eq!(json(&home, end, &["ledger"]).at("items").items().len(), 2);
}

#[test]
fn show_is_refused_with_a_hint_when_the_id_is_unknown_or_fits_several() {
    let home = Home::new();
    claude_session(&home, CLAUDE_ID, NOW - 9 * MINUTE, "one");
    claude_session(&home, OTHER_ID, NOW - 8 * MINUTE, "two");
    for id in ["zzz", "codex:26f5", ""] {
        let err = run(&home, &["show", id]).refused(1);
        assert!(err.contains("hint:") && err.contains(&format!("`{id}`")), "{err}");
    }
    let err = run(&home, &["show", "26f5"]).refused(1);
    assert!(err.contains(CLAUDE_ID) && err.contains(OTHER_ID) && err.contains("hint:"), "{err}");
    for id in ["26f52589", "claude:26f52589", CLAUDE_ID, &format!("claude:{CLAUDE_ID}")] {
        let out = run(&home, &["show", id]).fine();
        assert!(out.contains(CLAUDE_ID) && !out.contains(OTHER_ID), "{id}: {out}");
    }
}

#[test]
fn the_why_of_a_status_tries_every_rule_and_decides_by_one() {
    let home = Home::new();
    claude_session(&home, CLAUDE_ID, NOW - 9 * MINUTE, "one");
    codex_session(&home, CODEX_ID, NOW - MINUTE, "two", "Fixed.");
    dsh_session(&home, DSH_ID, NOW - 3 * DAY, "three", "Written.");
    let want = [(CLAUDE_ID, "idle"), (CODEX_ID, "running"), (DSH_ID, "completed")];
    for (id, status) in want {
        let show = json(&home, NOW, &["show", id]);
        assert_eq!(show.breaches(SHOW), [""; 0]);
        assert_eq!(show.get("session.status"), format!("\"{status}\""));
        let why = show.at("why").items();
        assert_eq!(why.len(), 4, "{}", show.get("why"));
        let decided: Vec<&Tree> = why.iter().filter(|rule| rule.get("decided") == "true").collect();
        assert_eq!(decided.len(), 1);
        assert_eq!(decided[0].get("rule"), show.get("session.reason.rule"));
        assert_eq!(decided[0].get("held"), "true");
        let out = run(&home, &["show", id]).fine();
        for part in ["Why", "Timeline", "Last messages", status, id] {
            assert!(out.contains(part), "no {part} in {out}");
        }
    }
}

#[test]
fn compactions_tells_each_bracket_and_why() {
    let home = Home::new();
    dsh_session(&home, DSH_ID, NOW - 9 * MINUTE, "three", "Written.");
    let rows = json(&home, NOW, &["compactions"]);
    assert_eq!(rows.breaches(COMPACTIONS), [""; 0]);
    assert_eq!(rows.get("items.0.session"), format!("\"dsh:{DSH_ID}\""));
    assert_eq!(rows.get("items.0.bracket"), "\"stale\"");
    assert_eq!(
        (rows.get("items.0.seq"), rows.get("items.0.end_seed_seq")),
        ("3".into(), "4".into())
    );
    let why = rows.get("items.0.why");
    assert!(why.contains('3') && why.contains('4'), "{why}");
    let show = json(&home, NOW, &["show", DSH_ID]);
    assert_eq!(show.get("session.compaction.bracket"), "\"stale\"");
    assert_eq!(show.breaches(SHOW), [""; 0]);
    let table = run(&home, &["compactions"]).fine();
    assert!(table.contains("stale") && table.contains("36ff7ae3"), "{table}");
}

#[test]
fn an_open_question_needs_attention_and_is_an_exit_code_when_asked() {
    let home = Home::new();
    let lines = [
        claude_prompt(CLAUDE_ID, NOW - 9 * MINUTE, "one"),
        claude_call(CLAUDE_ID, NOW - 8 * MINUTE, "AskUserQuestion", &serde_json::json!({})),
    ];
    append(&home, &claude_path(CLAUDE_ID), &lines);
    let snapshot = json(&home, NOW, &["--once"]);
    assert_eq!(snapshot.get("sessions.0.phase"), "\"question\"");
    assert_eq!(snapshot.get("sessions.0.attention"), "true");
    assert_eq!(snapshot.get("counts.attention"), "1");
    assert_eq!(run(&home, &["--once"]).code, Some(0), "only when asked");
    for args in [
        &["--once", "--exit-code"][..],
        &["--exit-code"],
        &["--once", "--json", "--exit-code"],
        &["show", CLAUDE_ID, "--exit-code"],
        &["ledger", "--exit-code"],
        &["audit", "--exit-code"],
        &["compactions", "--exit-code"],
    ] {
        let said = run(&home, args);
        assert_eq!((said.code, said.err.as_str()), (Some(3), ""), "{args:?}");
    }
    append(&home, &claude_path(CLAUDE_ID), &[claude_answer(CLAUDE_ID, NOW - HOUR / 60, "Well.")]);
    claude_session(&home, OTHER_ID, NOW - 8 * MINUTE, "your turn is no attention");
    assert_eq!(run(&home, &["--once", "--exit-code"]).code, Some(0));
}

use Kind::{Bool, List, Number, Object, Or, Text, Time, Word};

const WINDOWS: Kind = Object(&[("live_ms", Number), ("ended_ms", Number)]);

const SHOW: Kind = Object(&[
    ("schema", Word(&["lullwatch.show.v1"])),
    ("generated_at", Time),
    ("windows", WINDOWS),
    ("session", SESSION),
    (
        "why",
        List(&Object(&[
            ("rule", Text),
            ("test", Text),
            ("held", Bool),
            ("decided", Bool),
            ("basis", Word(&["observed", "inferred"])),
            ("evidence", List(&Text)),
        ])),
    ),
    (
        "transitions",
        List(&Object(&[
            ("id", Number),
            ("at", Time),
            ("from", Or(&Text)),
            ("to", Text),
            ("reason", REASON),
            ("actor", Text),
        ])),
    ),
    ("brackets", List(&COMPACTION)),
    (
        "messages",
        List(&Object(&[
            ("id", Number),
            ("kind", Text),
            ("at", Or(&Time)),
            ("name", Or(&Text)),
            ("text", Text),
            ("path", Text),
            ("offset", Number),
            ("bytes", Number),
        ])),
    ),
    ("children", List(&SESSION)),
]);

const LEDGER: Kind = Object(&[
    ("schema", Word(&["lullwatch.ledger.v1"])),
    ("generated_at", Time),
    (
        "items",
        List(&Object(&[
            ("id", Number),
            ("at", Time),
            ("entity_type", Word(&["session", "run"])),
            ("entity", Text),
            ("title", Or(&Text)),
            ("from", Or(&Text)),
            ("to", Text),
            ("reason", Text),
            ("basis", Word(&["observed", "inferred"])),
            ("ended_at", Or(&Time)),
            ("superseded", Bool),
            ("acked_at", Or(&Time)),
            ("attempts", Number),
            ("last_error", Or(&Text)),
        ])),
    ),
]);

const AUDIT: Kind = Object(&[
    ("schema", Word(&["lullwatch.audit.v1"])),
    ("generated_at", Time),
    (
        "items",
        List(&Object(&[
            ("id", Number),
            (
                "action",
                Word(&[
                    "status_transition_override",
                    "status_transition_rejected",
                    "status_migrated",
                ]),
            ),
            ("at", Time),
            ("entity_type", Word(&["session", "run"])),
            ("entity", Text),
            ("title", Or(&Text)),
            ("from", Or(&Text)),
            ("to", Or(&Text)),
            ("reason", Or(&Text)),
            ("actor", Text),
            ("why", Or(&Text)),
            ("after", Or(&Word(&["silence", "exit"]))),
            ("gap_ms", Or(&Number)),
            ("repeats", Number),
            ("evidence", List(&Text)),
        ])),
    ),
]);

const COMPACTIONS: Kind = Object(&[
    ("schema", Word(&["lullwatch.compactions.v1"])),
    ("generated_at", Time),
    (
        "items",
        List(&Object(&[
            ("session", Text),
            ("title", Or(&Text)),
            ("status", Text),
            ("attention", Bool),
            ("since", Or(&Time)),
            ("bracket", Word(&["open", "closed", "failed", "stale"])),
            ("state", Or(&Text)),
            ("phase", Or(&Text)),
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
            ("before_tokens", Or(&Number)),
            ("after_tokens", Or(&Number)),
        ])),
    ),
]);
