//! From a store to what people and programs read: the list, the tables, the JSON, `show`.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage must fail")]

mod hostile;

use std::time::Duration;

use lullwatch::compaction::{Event, Fold, Trigger};
use lullwatch::report::{Colour, Glyphs, Style, Width, json, show, table};
use lullwatch::snapshot::{
    self, Beside, EndedIn, LedgerWhich, Mirror, Narrow, Phase, Query, Resolved, Root, RootState,
    Snapshot, Windows,
};
use lullwatch::source::facts::{Counts, Facts, OpenCall, Stamped};
use lullwatch::source::{self, Outcome, TitleKind, Tokens, Turn};
use lullwatch::store::Store;
use lullwatch::text::Zone;
use rusqlite::{Connection, params};

/// 2026-11-30T09:00:30Z.
const NOW: i64 = 1_796_029_230_000;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A store and a second connection that sets its rows.
struct Bed {
    store: Store,
    raw: Connection,
    /// End of the last complete pass, ms.
    as_of: Option<i64>,
    _folder: tempfile::TempDir,
}

/// A session's row as a test states it; the rest follows.
struct Row {
    agent: &'static str,
    native: &'static str,
    parent: &'static str,
    kind: &'static str,
    nested: bool,
    facts: Facts,
    status: Option<&'static str>,
    /// Silence, ms.
    quiet: i64,
    deadline: Option<i64>,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            agent: "claude",
            native: "s1",
            parent: "",
            kind: "main",
            nested: false,
            facts: Facts::default(),
            status: Some("idle"),
            quiet: 7 * MINUTE,
            deadline: None,
        }
    }
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let store = Store::open(&path, Duration::from_secs(1), NOW - 90 * DAY).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test that plays the writer")]
        let raw = Connection::open(&path).unwrap();
        Self { store, raw, as_of: Some(NOW - 1_000), _folder: folder }
    }

    /// Adds a session; its transition too, if it has a status.
    fn add(&self, row: &Row) -> i64 {
        let at = NOW - row.quiet;
        self.raw
            .execute(
                "INSERT INTO sessions (host, agent, native_id, parent_native_id, root_id, kind,
                    nested, facts, own_clock_ms, last_activity_ms, sign_of_life_ms, deadline_ms,
                    checked_ms)
                 VALUES ('saturn', ?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?7, ?7, ?8, ?9)",
                params![
                    row.agent,
                    row.native,
                    row.parent,
                    row.kind,
                    row.nested,
                    serde_json::to_string(&row.facts).unwrap(),
                    at,
                    row.deadline,
                    NOW - row.quiet,
                ],
            )
            .unwrap();
        let id = self.raw.last_insert_rowid();
        if let Some(status) = row.status {
            self.step(id, Some("running"), status, at);
        }
        id
    }

    /// Writes a transition and the status that follows from it.
    fn step(&self, session: i64, from: Option<&str>, to: &str, at: i64) -> i64 {
        let ended = (!matches!(to, "running" | "idle")).then_some(at);
        let (reason, basis, evidence) = match to {
            "running" => ("session.running.activity", "observed", r#"["last record 5 s ago"]"#),
            "idle" => ("session.idle.silence", "observed", r#"["silent for 7 m"]"#),
            _ => ("session.completed.silence", "inferred", r#"["silent for 25 h"]"#),
        };
        self.raw
            .execute(
                "INSERT INTO status_transitions (entity_type, entity_id, previous_status, status,
                    reason_code, reason_summary, basis, rule, evidence, actor_type, actor_id,
                    created_ms, ended_ms)
                 VALUES ('session', ?1, ?2, ?3, ?4, 'as the windows say', ?5, 'silence', ?6,
                    'system', 'claude-mirror-reconcile', ?7, ?8)",
                params![session, from, to, reason, basis, evidence, at, ended],
            )
            .unwrap();
        let transition = self.raw.last_insert_rowid();
        self.raw
            .execute(
                "UPDATE sessions SET status = ?2, status_since_ms = ?3, reason_code = ?4,
                    reason_summary = 'as the windows say', basis = ?5, rule = 'silence',
                    evidence = ?6, ended_ms = ?7, ended_approx = ?8, transition_id = ?9
                 WHERE id = ?1",
                params![
                    session,
                    to,
                    at,
                    reason,
                    basis,
                    evidence,
                    ended,
                    ended.is_some(),
                    transition
                ],
            )
            .unwrap();
        transition
    }

    fn event(&self, session: i64, action: &str, after: Option<&str>, details: &str) {
        self.raw
            .execute(
                "INSERT INTO admin_events (action, entity_type, entity_id, actor, after_end, details,
                    created_ms, last_ms, repeats)
                 VALUES (?1, 'session', ?2, 'claude-mirror-reconcile', ?3, ?4, ?5, ?5, 2)",
                params![action, session, after, details, NOW - HOUR],
            )
            .unwrap();
    }

    fn load(&mut self, query: &Query) -> Snapshot {
        let beside = beside(self.as_of);
        self.store.read(|tx| snapshot::load(tx, query, &beside, NOW)).unwrap()
    }

    /// The list in a table of this width.
    fn list(&mut self, width: Width) -> String {
        let snapshot = self.load(&Query::default());
        written(|out| table::sessions(out, &snapshot, plain(width)))
    }
}

fn beside(as_of_ms: Option<i64>) -> Beside {
    let mirror = Mirror { writer: true, complete: true, ..Mirror::default() };
    Beside { host: "saturn".to_owned(), mirror, as_of_ms, ..Beside::default() }
}

fn plain(width: Width) -> Style {
    Style { width, colour: Colour::Plain, glyphs: Glyphs::Unicode, zone: Zone::default() }
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A table without the spaces that fill it; that they are there is a test of its own.
fn trimmed(table: &str) -> String {
    table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn facts(title: &str, turn: Turn) -> Facts {
    Facts {
        cwd: Some("/home/me/src/lullwatch".to_owned()),
        branch: Some("main".to_owned()),
        title: Some(title.to_owned()),
        title_source: Some(TitleKind::FirstPrompt),
        turn,
        ..Facts::default()
    }
}

/// The fold of a log with two finished compactions.
fn compacted_twice() -> Fold {
    let event = Event::Finished {
        seq: 90,
        at_ms: Some(NOW - HOUR),
        started_ms: None,
        trigger: Some(Trigger::Manual),
        before_tokens: Some(150_000),
        after_tokens: Some(12_000),
    };
    let mut fold = Fold::default();
    fold.fold(&event);
    fold.fold(&event);
    fold
}

fn call(name: &str, ago: i64) -> OpenCall {
    let (id, name) = ("c1".to_owned(), name.to_owned());
    OpenCall { id, name, at_ms: Some(NOW - ago), text: "make\u{202e} all".to_owned() }
}

/// One session of each sort an operator meets.
fn fleet() -> Bed {
    let bed = Bed { as_of: None, ..Bed::new() };
    let asks = Facts {
        open_calls: vec![call("AskUserQuestion", 3 * HOUR)],
        context_used: Some(90_000),
        context_window: Some(200_000),
        tokens: Tokens { input: 1_200, cache_read: 800_000, cache_write: 9_000, output: 12_345 },
        ..facts("Survey the web module and review the parser", Turn::Open)
    };
    bed.add(&Row {
        native: "ca28c2a5-f36b-4af0-a1a4-2d4d9bf530fb",
        facts: asks,
        quiet: 3 * HOUR,
        ..Row::default()
    });
    let works = Facts {
        open_calls: vec![call("exec_command", 2 * MINUTE)],
        ..facts("修正支付服务的重试逻辑🙏并补充测试", Turn::Open)
    };
    bed.add(&Row {
        agent: "codex",
        native: "01a22ba8-4de0-7ed1-b6c9-748555166064",
        facts: works,
        status: Some("running"),
        quiet: 40_000,
        ..Row::default()
    });
    bed.add(&Row {
        agent: "codex",
        native: "01a22ba8-5de0-7ed1-b6c9-748555166064",
        parent: "01a22ba8-4de0-7ed1-b6c9-748555166064",
        kind: "subagent",
        nested: true,
        facts: Facts {
            last_activity_ms: Some(NOW - 20_000),
            ..facts("Look for callers", Turn::Open)
        },
        status: None,
        quiet: 20_000,
        ..Row::default()
    });
    let done = Facts {
        last_turn: Some(Outcome::Completed),
        ..facts("Réécrire l’analyseur", Turn::Closed)
    };
    bed.add(&Row {
        agent: "dsh",
        native: "session-36ff7ae3-2273-46f2-99a4-3d775e289a80",
        facts: Facts { compaction: compacted_twice(), branch: None, ..done },
        ..Row::default()
    });
    bed.add(&Row {
        native: "79ce4b0f-7088-4a67-acec-6c6a3b208aac",
        facts: Facts { title: None, cwd: None, ..facts("", Turn::Open) },
        status: Some("running"),
        quiet: 3 * DAY + MINUTE,
        deadline: Some(NOW - 3 * DAY),
        ..Row::default()
    });
    bed.add(&Row {
        native: "f83b3923-4354-4d0e-b792-fd357385b6db",
        facts: facts("Check this diff for security problems", Turn::Closed),
        status: Some("completed"),
        quiet: 25 * HOUR,
        ..Row::default()
    });
    bed
}

#[test]
fn the_list_as_a_person_reads_it() {
    for cells in [20, 60, 80, 140] {
        let list = fleet().list(Width::Cells(cells));
        insta::assert_snapshot!(format!("sessions_{cells}"), trimmed(&list));
    }
    insta::assert_snapshot!("sessions_free", fleet().list(Width::Free));
}

#[test]
fn every_row_is_as_wide_as_asked() {
    let snapshot = fleet().load(&Query::default());
    for cells in 20..=200 {
        let text = written(|out| table::sessions(out, &snapshot, plain(Width::Cells(cells))));
        for line in text.lines().filter(|line| !line.is_empty()) {
            assert_eq!(lullwatch::text::width(line), cells, "{line:?}");
        }
    }
}

#[test]
fn ascii_glyphs_leave_the_transcripts_own_text_alone() {
    let snapshot = fleet().load(&Query::default());
    let style = Style { glyphs: Glyphs::Ascii, ..plain(Width::Cells(100)) };
    let text = written(|out| table::sessions(out, &snapshot, style));
    insta::assert_snapshot!("sessions_ascii", trimmed(&text));
}

#[test]
fn colours_change_nothing_but_the_colour() {
    let snapshot = fleet().load(&Query::default());
    for cells in [20, 60, 100, 200] {
        let plain = plain(Width::Cells(cells));
        let painted = Style { colour: Colour::Ansi, ..plain };
        let text = written(|out| table::sessions(out, &snapshot, painted));
        assert!(cells < 60 || text.contains("\u{1b}[1;33m"), "{text}");
        let codes = ["0", "1", "2", "31", "32", "36", "1;33"].map(|code| format!("\u{1b}[{code}m"));
        let bare = codes.iter().fold(text, |text, code| text.replace(code, ""));
        assert_eq!(bare, written(|out| table::sessions(out, &snapshot, plain)));
    }
}

#[test]
fn one_session_is_a_list_too() {
    let mut bed = Bed::new();
    bed.add(&Row { facts: facts("Only one", Turn::Closed), ..Row::default() });
    insta::assert_snapshot!("sessions_one", trimmed(&bed.list(Width::Cells(80))));
}

#[test]
fn without_a_session_it_says_where_it_looked_and_what_to_do() {
    let mut bed = Bed::new();
    let mut snapshot = bed.load(&Query::default());
    let root = |agent: &'static str, path: &str, state: RootState| Root {
        agent,
        path: path.to_owned(),
        state,
    };
    snapshot.mirror.roots = vec![
        root("claude", "/home/me/.claude/projects", RootState::Present),
        root("codex", "/home/me/.codex/sessions", RootState::Missing),
    ];
    let text = written(|out| table::sessions(out, &snapshot, plain(Width::Cells(72))));
    insta::assert_snapshot!("sessions_none", trimmed(&text));
}

#[test]
fn two_looks_in_the_same_minute_print_the_same() {
    let mut bed = fleet();
    let mut at = |now: i64| {
        let snapshot =
            bed.store.read(|tx| snapshot::load(tx, &Query::default(), &beside(None), now)).unwrap();
        written(|out| table::sessions(out, &snapshot, plain(Width::Free)))
    };
    let first = at(NOW - 30_000);
    for second in 0..60 {
        assert_eq!(at(NOW - 30_000 + second * 1_000), first);
    }
}

/// A session of which everything is known.
fn full() -> (Bed, i64) {
    let bed = Bed::new();
    let facts = Facts {
        kind: None,
        fork_of: Some("older".to_owned()),
        model: Some("some-model".to_owned()),
        version: Some("2.1.300".to_owned()),
        started_ms: Some(NOW - 2 * HOUR),
        first_activity_ms: Some(NOW - 2 * HOUR),
        last_activity_ms: Some(NOW - 7 * MINUTE),
        last_turn: Some(Outcome::Error),
        last_error: Some("rate_limit too\nmany \u{1b}[31mrequests".to_owned()),
        prompts: Counts { primary: 3, fallback: 9 },
        answers: Counts { primary: 0, fallback: 4 },
        tool_calls: Counts { primary: 5, fallback: 0 },
        last_text_fallback: Some(Stamped { at_ms: 1, text: "done\tnow".to_owned() }),
        tokens: Tokens { input: 1, cache_read: 2, cache_write: 3, output: 4 },
        context_used: Some(90_000),
        context_window: Some(200_000),
        compaction: compacted_twice(),
        notices: vec![source::Notice { code: "format".to_owned(), text: "newer".to_owned() }],
        flaws: source::Flaws { skipped: 1, oversized: 0 },
        ..facts("A \u{1b}]0;x\u{7}title", Turn::Closed)
    };
    let id = bed.add(&Row { facts, ..Row::default() });
    bed.raw
        .execute_batch(&format!(
            "INSERT INTO source_files (id, root_id, agent, place, path, stem, dev, ino, size,
                ctime_ns, mtime_ms, state, skipped_lines, damaged, first_seen_ms)
             VALUES (7, 1, 'claude', 'transcript', CAST('/x/s1.jsonl' AS BLOB), 's1', 1, 2, 500,
                0, 0, '{{}}', 1, 1, 0);
             INSERT INTO facts VALUES (7, {id}, '{{}}');
             INSERT INTO messages VALUES
                ((7 << 40) | 0, {id}, 11, 'prompt', 0, 1, {NOW} - 60000, NULL, NULL,
                    'Do \u{1b}[2Jit', 0, 90, 5),
                ((7 << 40) | 90, {id}, 12, 'tool_call', 0, 1, {NOW} - 50000, 'c', 'Bash',
                    'ls', 90, 80, 6);
             INSERT INTO findings (code, subject, text, first_ms, last_ms)
             VALUES ('watch', 'inotify', 'raise fs.inotify.max_user_watches', 1, 1);"
        ))
        .unwrap();
    (bed, id)
}

#[test]
fn the_whole_object_in_its_stable_order() {
    let (mut bed, id) = full();
    bed.event(id, "status_transition_override", Some("silence"), "{}");
    bed.event(id, "status_transition_override", Some("exit"), "{}");
    bed.event(id, "status_transition_rejected", None, "{}");
    let snapshot = bed.load(&Query::default());
    let text = written(|out| json::snapshot(out, &snapshot));
    assert!(text.ends_with("}\n") && text.lines().count() == 1);
    insta::assert_snapshot!("snapshot_json", text.replace(",\"", ",\n\""));
}

#[test]
fn show_tells_everything_of_one_session() {
    let (mut bed, id) = full();
    let detail =
        bed.store.read(|tx| snapshot::detail(tx, id, &beside(None), NOW)).unwrap().unwrap();
    let windows = Windows { live_ms: 3_000, ended_ms: 10_000 };
    let page = |width| written(|out| show::detail(out, &detail, windows, NOW, plain(width)));
    insta::assert_snapshot!("show_80", page(Width::Cells(80)));
    for cells in 20..120 {
        for line in page(Width::Cells(cells)).lines() {
            assert!(lullwatch::text::width(line) <= cells, "{line:?} in {cells}");
        }
    }
    let text = written(|out| json::show(out, &detail, windows, NOW));
    let tail = text.split("},\"why\"").nth(1).unwrap();
    insta::assert_snapshot!("show_json", tail.replace(",\"", ",\n\""));
}

#[test]
fn the_last_messages_are_told_once_each_whatever_the_number_of_files() {
    let mut bed = Bed::new();
    let id = bed.add(&Row::default());
    let better = Facts { answers: Counts { primary: 1, fallback: 1 }, ..Facts::default() };
    let better = serde_json::to_string(&better).unwrap();
    for (generation, path) in [(3, "/x/old.jsonl"), (4, "/x/new.jsonl")] {
        bed.raw
            .execute(
                "INSERT INTO source_files (id, root_id, agent, place, path, stem, dev, ino, size,
                    ctime_ns, mtime_ms, state, first_seen_ms)
                 VALUES (?1, 1, 'claude', 'transcript', CAST(?2 AS BLOB), 's', 1, ?1, 9, 0, 0,
                    '{}', 0)",
                params![generation, path],
            )
            .unwrap();
        bed.raw
            .execute("INSERT INTO facts VALUES (?1, ?2, ?3)", params![generation, id, better])
            .unwrap();
    }
    for (generation, at, native, kind, fallback, text) in [
        (3, 10, Some(1), "prompt", 0, "asked"),
        (3, 20, None, "answer", 1, "said, as an item"),
        (3, 20, None, "answer", 0, "said"),
        (4, 10, Some(1), "prompt", 0, "asked"),
        (4, 30, Some(2), "prompt", 0, "asked again"),
    ] {
        bed.raw
            .execute(
                "INSERT INTO messages SELECT (?1 << 40) | COUNT(*), ?2, ?3, ?4, ?5, 1, ?6, NULL,
                    NULL, ?7, 0, 1, 0 FROM messages",
                params![generation, id, native, kind, fallback, at, text],
            )
            .unwrap();
    }
    let detail =
        bed.store.read(|tx| snapshot::detail(tx, id, &beside(None), NOW)).unwrap().unwrap();
    let told: Vec<_> = detail
        .messages
        .iter()
        .map(|row| (row.text.as_str(), row.pointer.path.as_slice()))
        .collect();
    let (old, new) = (b"/x/old.jsonl".as_slice(), b"/x/new.jsonl".as_slice());
    assert_eq!(told, [("asked", old), ("said", old), ("asked again", new)]);
}

#[test]
fn the_ledger_is_what_ended_and_nobody_acknowledged() {
    let mut bed = Bed::new();
    let id = bed.add(&Row { facts: facts("Twice ended", Turn::Closed), ..Row::default() });
    let first = bed.step(id, Some("idle"), "completed", NOW - 3 * HOUR);
    bed.step(id, Some("completed"), "running", NOW - 2 * HOUR);
    bed.step(id, Some("running"), "idle", NOW - 2 * HOUR + 1);
    let second = bed.step(id, Some("idle"), "completed", NOW - HOUR);
    let other = bed.add(&Row { native: "old", status: None, ..Row::default() });
    bed.step(other, None, "completed", NOW - HOUR);
    let ledger = |bed: &mut Bed, which| {
        bed.store.read(|tx| snapshot::ledger(tx, "operator", which, Narrow::NOTHING, 100)).unwrap()
    };
    let rows = ledger(&mut bed, LedgerWhich::Pending);
    let ids: Vec<_> = rows.iter().map(|row| (row.id, row.superseded)).collect();
    assert_eq!(ids, [(first, true), (second, false)]);
    assert_eq!(bed.load(&Query::default()).ledger.pending, 2);
    bed.raw
        .execute("INSERT INTO terminal_deliveries VALUES (?1, 'operator', ?2, 'x')", [first, NOW])
        .unwrap();
    let rows = ledger(&mut bed, LedgerWhich::Pending);
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [second]);
    assert_eq!(bed.load(&Query::default()).ledger.pending, 1);
    let rows = ledger(&mut bed, LedgerWhich::History);
    let text = written(|out| table::ledger(out, &rows, "operator", "", plain(Width::Cells(110))));
    insta::assert_snapshot!("ledger_110", trimmed(&text));
    let text = written(|out| json::ledger(out, &rows[..1], NOW));
    insta::assert_snapshot!("ledger_json", text.replace(",\"", ",\n\""));
    let text = written(|out| table::ledger(out, &[], "operator", "", plain(Width::Cells(40))));
    insta::assert_snapshot!("ledger_none", trimmed(&text));
}

#[test]
fn the_audit_tells_what_was_taken_back_and_why() {
    let (mut bed, id) = full();
    bed.event(
        id,
        "status_transition_override",
        Some("silence"),
        r#"{"from":"completed","to":"running","reason":"session.reactivated.activity",
            "why":"a record behind the end","gap_ms":93600000,
            "evidence":["record at 08:00"]}"#,
    );
    bed.event(
        id,
        "status_transition_rejected",
        None,
        r#"{"to":"idle","why":"not a mirror actor"}"#,
    );
    bed.event(id, "odd", None, "not json");
    let rows = bed.store.read(|tx| snapshot::audit(tx, Narrow::NOTHING, 100)).unwrap();
    let text = written(|out| table::audit(out, &rows, "", plain(Width::Cells(120))));
    insta::assert_snapshot!("audit_120", trimmed(&text));
    let text = written(|out| json::audit(out, &rows[2..], NOW));
    insta::assert_snapshot!("audit_json", text.replace(",\"", ",\n\""));
    let counts = bed.load(&Query::default()).audit;
    assert_eq!((counts.overrides, counts.rejections), (1, 2));
}

#[test]
fn compactions_are_those_of_the_listed_sessions() {
    let mut bed = fleet();
    let rows = snapshot::compactions(&bed.load(&Query::default()));
    let text = written(|out| table::compactions(out, &rows, NOW, plain(Width::Cells(100))));
    insta::assert_snapshot!("compactions_100", trimmed(&text));
    let text = written(|out| json::compactions(out, &rows, NOW));
    insta::assert_snapshot!("compactions_json", text.replace(",\"", ",\n\""));
}

#[test]
fn sub_agents_have_a_status_of_their_own_and_climb_to_their_session() {
    let mut bed = Bed::new();
    bed.add(&Row { native: "root", ..Row::default() });
    for (native, parent, quiet, turn) in [
        ("busy", "root", 300_000, Turn::Open),
        ("late", "root", 300_001, Turn::Open),
        ("done", "busy", 1_000, Turn::Closed),
        ("gone", "root", DAY + 1, Turn::Open),
        ("lost", "nobody", 5_000, Turn::Open),
    ] {
        let facts = Facts { turn, last_activity_ms: Some(NOW - quiet), ..Facts::default() };
        let status = None;
        let (kind, nested) = ("subagent", true);
        bed.add(&Row { native, parent, kind, nested, facts, status, quiet, ..Row::default() });
    }
    let kind = "internal";
    let facts = Facts { last_activity_ms: Some(NOW), ..Facts::default() };
    bed.add(&Row { native: "self", kind, nested: true, facts, status: None, ..Row::default() });

    let listed = bed.load(&Query::default()).sessions;
    let names = |sessions: &[snapshot::Session]| {
        sessions.iter().map(|one| one.native_id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&listed), ["lost", "root"]);
    assert_eq!(listed[0].notices[0].code, "parent_missing");
    assert_eq!((listed[0].kind, listed[0].id.as_str()), ("subagent", "claude:nobody/lost"));
    assert_eq!((listed[1].children, listed[1].active_children), (4, 1));

    let all = bed.load(&Query { children: true, ..Query::default() });
    let status = |name: &str| {
        let one = all.sessions.iter().find(|one| one.native_id == name).unwrap();
        let basis = one.reason.basis.word();
        (one.status.word(), basis, one.phase.map(Phase::word), one.ended_ms.is_some())
    };
    assert_eq!(all.sessions.len(), 7);
    assert_eq!(status("busy"), ("running", "observed", Some("working"), false));
    assert_eq!(status("late"), ("idle", "observed", Some("working"), false));
    assert_eq!(status("done"), ("running", "observed", Some("returned"), false));
    assert_eq!(status("gone"), ("completed", "inferred", Some("ended"), true));
    assert_eq!(all.counts.running + all.counts.idle + all.counts.completed, 7);
}

#[test]
fn an_end_inside_a_turn_needs_a_human_until_acknowledged_or_a_day_old() {
    let mut bed = Bed::new();
    let add = |native, status| {
        let facts = facts("Left at work", Turn::Open);
        bed.add(&Row { native, facts, status, quiet: 2 * DAY, ..Row::default() })
    };
    let names = ["fresh", "old", "acked", "admitted", "admitted late"];
    let [fresh, old, acked, admitted, late] = names.map(|name| add(name, None));
    bed.step(fresh, Some("idle"), "completed", NOW - DAY);
    bed.step(old, Some("idle"), "completed", NOW - DAY - 1);
    let transition = bed.step(acked, Some("idle"), "completed", NOW - HOUR);
    bed.raw
        .execute(
            "INSERT INTO terminal_deliveries VALUES (?1, 'operator', ?2, 'x')",
            [transition, NOW],
        )
        .unwrap();
    // An admission is no news, but of an end of today nobody else will tell.
    for (row, ended) in [(admitted, NOW - DAY), (late, NOW - DAY - 1)] {
        bed.step(row, None, "completed", NOW - HOUR);
        bed.raw.execute("UPDATE sessions SET ended_ms = ?2 WHERE id = ?1", [row, ended]).unwrap();
    }
    let snapshot = bed.load(&Query::default());
    let mut needs: Vec<_> =
        snapshot.sessions.iter().filter(|one| one.attention).map(|one| one.row_id).collect();
    needs.sort_unstable();
    assert_eq!(needs, [fresh, admitted]);
    assert_eq!(snapshot.counts.attention, 2);
    // What it was stays, whoever has acknowledged it and however long ago it is: on every surface.
    assert!(snapshot.sessions.iter().all(|one| one.notices[0].code == "ended_in_turn"));
    assert!(snapshot.sessions.iter().all(|one| one.ended_in == Some(EndedIn::Turn)));
    let table = written(|out| table::sessions(out, &snapshot, plain(Width::Free)));
    assert_eq!(table.matches("ended in turn, inferred").count(), 5, "{table}");
}

#[test]
fn a_row_past_its_deadline_claims_nothing_until_it_is_checked() {
    let mut bed = Bed::new();
    let asks = || Facts {
        open_calls: vec![call("AskUserQuestion", HOUR)],
        ..facts("A question", Turn::Open)
    };
    for (native, deadline, checked) in [
        ("not yet", NOW + 1, NOW - HOUR),
        ("due", NOW, NOW - HOUR),
        ("missed by the last pass", NOW - 999, NOW - HOUR),
        ("held at the last pass", NOW - 1_000, NOW - HOUR),
        ("looked at since", NOW - 999, NOW - 999),
    ] {
        let facts = asks();
        let id = bed.add(&Row { native, facts, deadline: Some(deadline), ..Row::default() });
        bed.raw
            .execute("UPDATE sessions SET checked_ms = ?2 WHERE id = ?1", [id, checked])
            .unwrap();
    }
    let snapshot = bed.load(&Query::default());
    let unchecked: Vec<_> = snapshot
        .sessions
        .iter()
        .map(|one| (one.native_id.as_str(), one.unchecked, one.attention))
        .collect();
    assert_eq!(
        unchecked,
        [
            ("held at the last pass", false, true),
            ("looked at since", false, true),
            ("not yet", false, true),
            ("due", true, false),
            ("missed by the last pass", true, false),
        ]
    );
    assert_eq!((snapshot.counts.unchecked, snapshot.counts.idle), (2, 3));
}

#[test]
fn filters_are_of_the_display_only() {
    let mut bed = fleet();
    let codex = Query { agent: Some("codex".to_owned()), ..Query::default() };
    assert_eq!(bed.load(&codex).sessions.len(), 1);
    let since = Query { within_ms: Some(7 * MINUTE), ..Query::default() };
    assert_eq!(bed.load(&since).sessions.len(), 2);
    assert_eq!(bed.load(&since).audit, bed.load(&Query::default()).audit);
}

#[test]
fn what_is_typed_names_a_session() {
    let mut bed = fleet();
    let mut resolve = |typed: &str| bed.store.read(|tx| snapshot::resolve(tx, "h", typed)).unwrap();
    assert_eq!(resolve("36ff"), Resolved::One(4));
    assert_eq!(resolve("codex:01a22ba8-4"), Resolved::One(2));
    assert_eq!(resolve("01a22ba8-4de0/01a22ba8-5"), Resolved::One(3));
    assert_eq!(resolve("zz"), Resolved::None);
    let Resolved::Many(many) = resolve("claude:") else { panic!("one of several") };
    assert_eq!(many.len(), 3);
}

#[test]
fn one_bad_row_spoils_nothing_else() {
    let mut bed = fleet();
    bed.raw.execute("UPDATE sessions SET status = 'sleeping' WHERE id = 1", []).unwrap();
    bed.raw.execute("UPDATE sessions SET facts = 'no json' WHERE id = 2", []).unwrap();
    let snapshot = bed.load(&Query::default());
    assert_eq!(snapshot.sessions.len(), 4);
    let spoilt = snapshot.sessions.iter().find(|one| one.row_id == 2).unwrap();
    assert_eq!(spoilt.notices[0].code, "unreadable");
    assert_eq!(snapshot.mirror.warnings.len(), 1);
}

#[test]
fn a_picture_is_one_state_of_all_panes() {
    let mut bed = fleet();
    let query = Query { open: Some(2), ..Query::default() };
    let picture = bed.store.read(|tx| snapshot::picture(tx, &query, &beside(None), NOW)).unwrap();
    assert_eq!(picture.snapshot, bed.load(&query));
    assert_eq!((picture.ledger.len(), picture.compactions.len()), (1, 1));
    let detail = picture.detail.unwrap();
    assert_eq!((detail.session.row_id, detail.children.len()), (2, 1));
}
