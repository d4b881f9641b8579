//! Whatever stands in a transcript: no control reaches a terminal or JSON, and no column shifts.

use lullwatch::report::{Colour, Glyphs, Style, Width, json, show, table};
use lullwatch::snapshot::{
    self, AuditCounts, AuditRow, Basis, Compaction, CompactionRow, Detail, EndedIn, Hidden,
    LedgerCount, LedgerRow, MessageRow, Mirror, Notice, Phase, Pointer, Process, Reason, Root,
    RootState, Session, Snapshot, Status, Tokens, Transition, Tried, WaitKind, WaitingFor, Windows,
};
use lullwatch::text::Zone;
use proptest::prelude::*;

use super::{NOW, written};

fn bracket(evil: &str) -> Compaction {
    Compaction {
        bracket: "open",
        state: Some(evil.to_owned()),
        phase: Some("started"),
        blocking: true,
        running: None,
        trigger: Some("auto"),
        started_ms: Some(NOW - 1),
        ended_ms: None,
        error: Some(evil.to_owned()),
        seq: Some(1),
        end_seed_seq: None,
        orphans: 1,
        count: 0,
        why: Some(evil.to_owned()),
        before_tokens: Some(123_456),
        after_tokens: None,
    }
}

fn session(evil: &str, phase: Phase, quiet_ms: i64) -> Session {
    let text = || Some(evil.to_owned());
    Session {
        row_id: 1,
        id: format!("claude:{evil}"),
        agent: "claude",
        native_id: evil.to_owned(),
        kind: "main",
        parent_native_id: text(),
        title: text(),
        title_source: Some("custom"),
        cwd: text(),
        branch: text(),
        model: text(),
        agent_version: text(),
        status: if phase == Phase::Ended { Status::TimedOut } else { Status::Idle },
        status_since_ms: Some(NOW - quiet_ms),
        reason: Reason {
            code: evil.to_owned(),
            summary: evil.to_owned(),
            basis: Basis::Inferred,
            rule: evil.to_owned(),
            evidence: vec![evil.to_owned()],
        },
        phase: Some(phase),
        tool: Some((evil.to_owned(), Some(NOW - quiet_ms))),
        waiting_for: (phase == Phase::Question).then(|| WaitingFor {
            kind: WaitKind::Question,
            tool: text(),
            text: text(),
            since_ms: Some(i64::MIN),
        }),
        attention: phase == Phase::Question,
        turn: "open",
        last_turn: Some("error"),
        last_error: text(),
        started_ms: Some(i64::MIN),
        last_activity_ms: Some(NOW - quiet_ms),
        clock_ahead: true,
        quiet_ms: Some(quiet_ms),
        ended_ms: None,
        ended_approximate: true,
        ended_in: Some(EndedIn::Turn),
        checked_ms: None,
        unchecked: phase == Phase::Working,
        process: Process { alive: Some(true), pid: Some(7), state: text(), source: Some("lock") },
        prompts: 1,
        answers: 2,
        tool_calls: 3,
        skipped_lines: 4,
        last_text: text(),
        tokens: Tokens { total: quiet_ms, ..Tokens::default() },
        context_used: Some(90_000),
        context_window: None,
        compaction: bracket(evil),
        behind: None,
        notices: vec![Notice { code: evil.to_owned(), text: evil.to_owned() }],
        children: 2,
        active_children: 1,
        transcript_present: false,
    }
}

fn list(evil: &str, quiet_ms: i64) -> Snapshot {
    let phases = [Phase::Question, Phase::Tool, Phase::Working, Phase::YourTurn, Phase::Ended];
    let sessions: Vec<Session> =
        phases.into_iter().map(|phase| session(evil, phase, quiet_ms)).collect();
    Snapshot {
        at_ms: NOW,
        as_of_ms: Some(0),
        host: evil.to_owned(),
        windows: Windows { live_ms: 1, ended_ms: 2 },
        counts: snapshot::sort::count(&sessions),
        hidden: Hidden { sessions: 1, filters: evil.to_owned() },
        mirror: Mirror { warnings: vec![evil.to_owned()], ..Mirror::default() },
        audit: AuditCounts { overrides: 1, ..AuditCounts::default() },
        ledger: LedgerCount { consumer: evil.to_owned(), pending: 3 },
        sessions,
    }
}

fn audit(evil: &str) -> AuditRow {
    let text = || evil.to_owned();
    AuditRow {
        id: 1,
        action: text(),
        at_ms: NOW,
        entity_type: text(),
        entity: text(),
        title: Some(text()),
        from: Some(text()),
        to: text(),
        reason: text(),
        actor: text(),
        why: text(),
        after: Some(text()),
        gap_ms: Some(i64::MAX),
        repeats: 3,
        evidence: vec![text()],
    }
}

fn ledger(evil: &str) -> LedgerRow {
    let text = || evil.to_owned();
    LedgerRow {
        id: 1,
        at_ms: NOW,
        entity_type: text(),
        entity: text(),
        title: Some(text()),
        from: text(),
        to: text(),
        reason: text(),
        basis: text(),
        ended_ms: None,
        superseded: true,
        acked_ms: None,
        last_error: Some(text()),
        attempts: 2,
    }
}

fn detail(evil: &str, quiet_ms: i64) -> Detail {
    let text = || evil.to_owned();
    Detail {
        session: session(evil, Phase::Tool, quiet_ms),
        why: vec![Tried {
            rule: text(),
            test: text(),
            held: true,
            decided: true,
            basis: "observed",
            evidence: vec![text()],
        }],
        transitions: vec![Transition {
            id: 1,
            at_ms: NOW,
            from: Some(text()),
            to: text(),
            reason: text(),
            summary: text(),
            basis: text(),
            rule: text(),
            actor: text(),
            evidence: vec![text()],
        }],
        brackets: vec![bracket(evil)],
        messages: vec![MessageRow {
            id: 1,
            kind: "answer",
            at_ms: None,
            name: Some(text()),
            text: text(),
            pointer: Pointer {
                frame: (0, 0),
                path: evil.as_bytes().to_vec(),
                offset: 0,
                bytes: 0,
                hash: 0,
            },
        }],
        children: vec![session(evil, Phase::Ended, quiet_ms)],
    }
}

fn tables(evil: &str, quiet_ms: i64, style: Style) -> Vec<String> {
    let snapshot = list(evil, quiet_ms);
    let compaction = CompactionRow {
        session: evil.to_owned(),
        row_id: 1,
        title: None,
        status: Status::Idle,
        compaction: bracket(evil),
        since_ms: Some(NOW - quiet_ms),
        attention: true,
    };
    vec![
        written(|out| table::sessions(out, &snapshot, style)),
        written(|out| table::audit(out, &[audit(evil)], "", style)),
        written(|out| table::ledger(out, &[ledger(evil)], evil, "", style)),
        written(|out| table::compactions(out, &[compaction], NOW, style)),
    ]
}

fn pages(evil: &str, quiet_ms: i64, style: Style) -> Vec<String> {
    let windows = Windows::default();
    let mut nothing = Snapshot { sessions: Vec::new(), ..list(evil, quiet_ms) };
    let root = Root { agent: "claude", path: evil.to_owned(), state: RootState::Missing };
    nothing.mirror.roots = vec![root];
    let detail = detail(evil, quiet_ms);
    vec![
        written(|out| show::detail(out, &detail, windows, NOW, style)),
        written(|out| table::sessions(out, &nothing, style)),
        written(|out| table::ledger(out, &[], evil, "", style)),
    ]
}

fn objects(evil: &str, quiet_ms: i64) -> Vec<String> {
    let detail = detail(evil, quiet_ms);
    let transition = |out: &mut Vec<u8>| {
        detail.transitions.iter().try_for_each(|row| json::transition(out, evil, row))
    };
    vec![
        written(|out| json::snapshot(out, &list(evil, quiet_ms))),
        written(|out| json::show(out, &detail, Windows::default(), NOW)),
        written(|out| json::audit(out, &[audit(evil)], NOW)),
        written(|out| json::ledger(out, &[ledger(evil)], NOW)),
        written(transition),
    ]
}

fn is_harmful(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Every string of a JSON value.
fn strings(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => found.push(text.clone()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        serde_json::Value::Object(fields) => fields.values().for_each(|item| strings(item, found)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

/// Texts as a hostile or merely foreign transcript holds them.
fn evil() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\u{1b}[2J"),
        Just("\u{1b}]52;c;aaaa\u{7}"),
        Just("\u{9b}31m"),
        Just("\r\n"),
        Just("\u{202e}"),
        Just("修正"),
        Just("👩\u{200d}👩\u{200d}👧"),
        Just("e\u{301}"),
        Just("\u{fe0f}"),
        Just("1\u{fe0f}\u{20e3}"),
        Just("/a/b c"),
        Just(": "),
    ];
    prop_oneof![
        any::<String>(),
        "\\PC{0,300}",
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, cases: 128, ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_harmful_gets_out_and_no_row_is_wider_or_narrower_than_asked(
        evil in evil(), cells in 20_usize..=200, quiet_ms in 0_i64..400_000_000_000,
    ) {
        for glyphs in [Glyphs::Unicode, Glyphs::Ascii] {
            let style = Style { width: Width::Cells(cells), colour: Colour::Plain, glyphs, zone: Zone::default() };
            for text in tables(&evil, quiet_ms, style) {
                for line in text.split('\n') {
                    prop_assert!(!line.chars().any(is_harmful), "{line:?}");
                    let width = lullwatch::text::width(line);
                    prop_assert!(width == cells || line.is_empty(), "{line:?} in {cells}");
                }
            }
            for text in pages(&evil, quiet_ms, style) {
                for line in text.split('\n') {
                    prop_assert!(!line.chars().any(is_harmful), "{line:?}");
                    prop_assert!(lullwatch::text::width(line) <= cells, "{line:?} in {cells}");
                }
            }
            let free = Style { width: Width::Free, ..style };
            for text in tables(&evil, quiet_ms, free).iter().chain(&pages(&evil, quiet_ms, free)) {
                prop_assert!(!text.replace('\n', "").chars().any(is_harmful), "{text:?}");
            }
        }
        for text in objects(&evil, quiet_ms) {
            let mut found = Vec::new();
            strings(&serde_json::from_str(&text).unwrap(), &mut found);
            prop_assert!(!found.iter().any(|text| text.chars().any(is_harmful)), "{found:?}");
        }
    }
}
