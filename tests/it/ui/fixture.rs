//! Pictures to draw: made up, and the same on every run.

use std::sync::Arc;

use lullwatch::lifecycle::{Basis, Status, Windows};
use lullwatch::snapshot::{
    AuditCounts, AuditRow, Compaction, CompactionRow, Counts, Detail, Hidden, LedgerCount,
    LedgerRow, MessageRow, Mirror, Notice, Phase, Picture, Pointer, Process, Reason, Root,
    RootState, Session, Snapshot, Tokens, Transition, Tried,
};

/// 2026-11-30 09:00:00 UTC.
pub(crate) const NOW_MS: i64 = 1_796_029_200_000;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

pub(crate) fn compaction(bracket: &'static str) -> Compaction {
    Compaction {
        bracket,
        state: None,
        phase: None,
        blocking: false,
        running: None,
        trigger: None,
        started_ms: None,
        ended_ms: None,
        error: None,
        seq: None,
        end_seed_seq: None,
        orphans: 0,
        count: 0,
        why: None,
        before_tokens: None,
        after_tokens: None,
    }
}

pub(crate) fn session(row_id: i64, agent: &'static str, title: &str, status: Status) -> Session {
    let project = match row_id % 3 {
        0 => "payments",
        1 => "parser",
        _ => "site",
    };
    let native_id = format!("{row_id:08x}-f36b-4af0-a1a4-2d4d9bf530fb");
    Session {
        row_id,
        id: format!("{agent}:{native_id}"),
        agent,
        native_id,
        kind: "main",
        parent_native_id: None,
        title: Some(title.to_owned()),
        title_source: Some("custom"),
        cwd: Some(format!("/home/ada/src/{project}")),
        branch: Some("main".to_owned()),
        model: Some("opus-5".to_owned()),
        agent_version: Some("2.1.300".to_owned()),
        status,
        status_since_ms: Some(NOW_MS - 5 * MINUTE_MS),
        reason: Reason {
            code: "session.running.activity".to_owned(),
            summary: "active 2m ago, within the live window of 5m".to_owned(),
            basis: Basis::Observed,
            rule: "silence_within_live_window".to_owned(),
            evidence: vec!["last activity 2026-11-30T08:58:00.000Z".to_owned()],
        },
        phase: Some(Phase::Working),
        tool: None,
        waiting_for: None,
        attention: false,
        turn: "open",
        last_turn: Some("completed"),
        last_error: None,
        started_ms: Some(NOW_MS - 3 * HOUR_MS),
        last_activity_ms: Some(NOW_MS - 2 * MINUTE_MS),
        clock_ahead: false,
        quiet_ms: Some(2 * MINUTE_MS),
        ended_ms: None,
        ended_approximate: false,
        ended_in: None,
        checked_ms: Some(NOW_MS),
        unchecked: false,
        process: Process::default(),
        prompts: 3,
        answers: 12,
        tool_calls: 40,
        skipped_lines: 0,
        last_text: Some("Done; the tests pass.".to_owned()),
        tokens: Tokens {
            input: 2_000,
            cache_read: 100_000,
            cache_write: 10_000,
            output: 8_000,
            total: 120_000,
        },
        context_used: Some(90_000),
        context_window: Some(200_000),
        compaction: compaction("none"),
        notices: Vec::new(),
        behind: None,
        children: 0,
        active_children: 0,
        transcript_present: true,
    }
}

fn ended(row_id: i64, agent: &'static str, title: &str, basis: Basis, hours: i64) -> Session {
    let (code, summary, rule) = match basis {
        Basis::Observed => ("session.completed.exited", "its process has exited", "end_evidence"),
        Basis::Inferred => {
            ("session.completed.silence", "silent for longer than 24h", "silence_past_ended_window")
        }
    };
    Session {
        reason: Reason {
            code: code.to_owned(),
            summary: summary.to_owned(),
            basis,
            rule: rule.to_owned(),
            evidence: Vec::new(),
        },
        phase: Some(Phase::Ended),
        quiet_ms: Some(hours * HOUR_MS),
        ended_ms: Some(NOW_MS - hours * HOUR_MS),
        turn: "closed",
        ..session(row_id, agent, title, Status::Completed)
    }
}

fn idle(row_id: i64, agent: &'static str, title: &str, phase: Phase, minutes: i64) -> Session {
    Session {
        phase: Some(phase),
        quiet_ms: Some(minutes * MINUTE_MS),
        turn: "closed",
        reason: Reason {
            code: "session.idle.silence".to_owned(),
            summary: format!("silent for {minutes}m: past 5m, within 24h"),
            basis: Basis::Observed,
            rule: "silence_within_ended_window".to_owned(),
            evidence: Vec::new(),
        },
        ..session(row_id, agent, title, Status::Idle)
    }
}

/// Sessions of every kind, as the snapshot orders them.
pub(crate) fn sessions() -> Vec<Session> {
    let alive = |pid, state: &str| Process {
        alive: Some(true),
        pid: Some(pid),
        state: Some(state.to_owned()),
        source: Some("registry"),
    };
    vec![
        Session {
            attention: true,
            phase: Some(Phase::NeedsApproval),
            quiet_ms: Some(42_000),
            process: alive(4242, "waiting"),
            ..session(1, "claude", "Deploy the payment service to staging", Status::Running)
        },
        Session {
            attention: true,
            process: alive(4321, "idle"),
            ..idle(2, "claude", "Which database for the audit trail?", Phase::Question, 17)
        },
        Session {
            attention: true,
            last_error: Some("overloaded_error the server is overloaded".to_owned()),
            last_turn: Some("error"),
            ..idle(3, "codex", "Upgrade the parser generator", Phase::Error, 31)
        },
        Session {
            phase: Some(Phase::Tool),
            tool: Some(("Bash".to_owned(), Some(NOW_MS - 4 * MINUTE_MS))),
            children: 3,
            active_children: 1,
            process: alive(5151, "busy"),
            ..session(4, "claude", "Rework the retry logic", Status::Running)
        },
        Session {
            quiet_ms: Some(3_000),
            ..session(5, "codex", "Fix flaky tests", Status::Running)
        },
        Session {
            phase: Some(Phase::Compacting),
            context_used: Some(190_000),
            compaction: Compaction { state: Some("compacting".to_owned()), ..compaction("open") },
            ..session(6, "dsh", "Site search: index and ranking", Status::Running)
        },
        Session {
            context_used: None,
            branch: None,
            ..idle(7, "claude", "修正支付服务的重试逻辑🙏并补充测试", Phase::YourTurn, 48)
        },
        Session {
            title: None,
            model: None,
            tokens: Tokens::default(),
            ..idle(8, "dsh", "", Phase::ProbablyLeft, 300)
        },
        ended(9, "claude", "Write the release notes", Basis::Observed, 2),
        Session {
            process: alive(6161, "idle"),
            ..ended(10, "claude", "Explain the build graph", Basis::Inferred, 30)
        },
        ended(11, "codex", "Rename the crate", Basis::Inferred, 80),
        Session { status: Status::Failed, ..ended(12, "codex", "Nightly run", Basis::Observed, 9) },
        Session {
            unchecked: true,
            quiet_ms: Some(72 * HOUR_MS),
            ..session(13, "claude", "Old notes", Status::Running)
        },
    ]
}

pub(crate) fn snapshot(sessions: Vec<Session>) -> Snapshot {
    Snapshot {
        at_ms: NOW_MS,
        as_of_ms: Some(NOW_MS),
        host: "ghost".to_owned(),
        windows: Windows::default(),
        counts: Counts::default(),
        hidden: Hidden::default(),
        mirror: Mirror {
            writer: true,
            files: 268,
            bytes: 203_000_000,
            complete: true,
            roots: vec![
                Root {
                    agent: "claude",
                    path: "/home/ada/.claude/projects".to_owned(),
                    state: RootState::Present,
                },
                Root {
                    agent: "codex",
                    path: "/home/ada/.codex/sessions".to_owned(),
                    state: RootState::Missing,
                },
            ],
            ..Mirror::default()
        },
        audit: AuditCounts { overrides: 1, ..AuditCounts::default() },
        ledger: LedgerCount { consumer: "operator".to_owned(), pending: 3 },
        sessions,
    }
}

fn audit() -> Vec<AuditRow> {
    let row = |id: i64, action: &str, from: &str, to: &str, after: Option<&str>| AuditRow {
        id,
        action: action.to_owned(),
        at_ms: NOW_MS - id * 3 * MINUTE_MS,
        entity_type: "session".to_owned(),
        entity: "claude:00000001-f36b-4af0-a1a4-2d4d9bf530fb".to_owned(),
        title: Some("Deploy the payment service to staging".to_owned()),
        from: Some(from.to_owned()),
        to: to.to_owned(),
        reason: "session.reactivated.activity".to_owned(),
        actor: "claude-mirror-reconcile".to_owned(),
        why: "activity stamped after its end".to_owned(),
        after: after.map(str::to_owned),
        gap_ms: Some(30 * HOUR_MS),
        repeats: 1,
        evidence: vec!["user record at 2026-11-30T08:56:58.000Z".to_owned()],
    };
    vec![
        row(1, "status_transition_override", "completed", "running", Some("silence")),
        row(2, "status_transition_override", "completed", "running", Some("exit")),
        AuditRow {
            why: "no such edge for this actor".to_owned(),
            actor: "script".to_owned(),
            gap_ms: None,
            repeats: 4,
            ..row(3, "status_transition_rejected", "running", "failed", None)
        },
        AuditRow {
            title: None,
            gap_ms: None,
            actor: "idleness-migration".to_owned(),
            ..row(40, "status_migrated", "completed", "idle", None)
        },
    ]
}

fn ledger() -> Vec<LedgerRow> {
    let row = |id: i64, title: &str, to: &str, reason: &str| LedgerRow {
        id,
        at_ms: NOW_MS - (200 - id) * MINUTE_MS,
        entity_type: "session".to_owned(),
        entity: format!("claude:{id:08x}-f36b-4af0-a1a4-2d4d9bf530fb"),
        title: Some(title.to_owned()),
        from: "idle".to_owned(),
        to: to.to_owned(),
        reason: reason.to_owned(),
        basis: "observed".to_owned(),
        ended_ms: Some(NOW_MS - (201 - id) * MINUTE_MS),
        superseded: false,
        acked_ms: None,
        last_error: None,
        attempts: 0,
    };
    vec![
        LedgerRow {
            superseded: true,
            basis: "inferred".to_owned(),
            ..row(
                1,
                "Deploy the payment service to staging",
                "completed",
                "session.completed.silence",
            )
        },
        row(9, "Write the release notes", "completed", "session.completed.exited"),
        LedgerRow {
            entity_type: "run".to_owned(),
            last_error: Some("exit status 1".to_owned()),
            attempts: 3,
            ..row(12, "Nightly run", "failed", "run.failed.exit_nonzero")
        },
    ]
}

fn compactions() -> Vec<CompactionRow> {
    let row = |row_id: i64, title: &str, compaction: Compaction| CompactionRow {
        session: format!("dsh:{row_id:08x}"),
        row_id,
        title: Some(title.to_owned()),
        status: Status::Running,
        compaction,
        since_ms: Some(NOW_MS - row_id * 2 * MINUTE_MS),
        attention: false,
    };
    vec![
        CompactionRow {
            attention: true,
            ..row(
                6,
                "Site search: index and ranking",
                Compaction {
                    state: Some("compacting, stuck?".to_owned()),
                    blocking: true,
                    running: Some(true),
                    trigger: Some("auto"),
                    phase: Some("summarized"),
                    started_ms: Some(NOW_MS - 12 * MINUTE_MS),
                    seq: Some(412),
                    end_seed_seq: Some(7),
                    before_tokens: Some(180_000),
                    why: Some(
                        "start at seq 412 is behind the end-seed at 7; nothing closed it"
                            .to_owned(),
                    ),
                    ..compaction("open")
                },
            )
        },
        row(
            8,
            "",
            Compaction {
                orphans: 1,
                why: Some("start at seq 3 lies before the end-seed at 9".to_owned()),
                ..compaction("stale")
            },
        ),
        row(
            4,
            "Rework the retry logic",
            Compaction {
                trigger: Some("manual"),
                before_tokens: Some(168_000),
                after_tokens: Some(21_000),
                count: 2,
                ..compaction("closed")
            },
        ),
    ]
}

fn message(id: i64, kind: &'static str, name: Option<&str>, text: &str) -> MessageRow {
    MessageRow {
        id,
        kind,
        at_ms: Some(NOW_MS - (20 - id) * MINUTE_MS),
        name: name.map(str::to_owned),
        text: text.to_owned(),
        pointer: Pointer {
            frame: (0, 0),
            path: b"/home/ada/.claude/projects/a.jsonl".to_vec(),
            offset: 100 * id.unsigned_abs(),
            bytes: 90,
            hash: 7,
        },
    }
}

/// The fourth session, opened.
pub(crate) fn detail() -> Detail {
    let mut session = sessions().remove(3);
    session.notices.push(Notice {
        code: "damaged".to_owned(),
        text: "2 lines of its transcript could not be read and were skipped".to_owned(),
    });
    let child = |row_id: i64, title: &str, status: Status, parent: &str| Session {
        kind: "subagent",
        parent_native_id: Some(parent.to_owned()),
        ..super::fixture::session(row_id, "claude", title, status)
    };
    let first = child(101, "look at the tests", Status::Running, &session.native_id);
    let children = vec![
        first.clone(),
        child(102, "read the history", Status::Idle, &first.native_id),
        child(103, "draft the change", Status::Completed, &session.native_id),
    ];
    let long = "The retry loop swallows the last error, so callers see a timeout instead of the \
                real cause; I will keep the last error and attach it to the result, with a test \
                for each kind of failure that the service knows, and then look at the back-off.";
    Detail {
        why: vec![
            tried("end_evidence", "end evidence and no live holder", Held::No),
            Tried {
                evidence: vec!["last activity 2m ago (2026-11-30T08:58:00Z)".to_owned()],
                ..tried("silence_within_live_window", "silence 2m ≤ 5m", Held::Decided)
            },
            tried("silence_within_ended_window", "silence 2m ≤ 24h", Held::Yes),
            tried("otherwise", "completed by silence", Held::Yes),
        ],
        transitions: vec![
            transition(1, None, "running", "session.admitted.activity", "first seen at work"),
            transition(2, Some("running"), "idle", "session.idle.silence", "silent for 5m"),
            transition(3, Some("idle"), "running", "session.running.activity", "active again"),
        ],
        brackets: vec![Compaction {
            trigger: Some("manual"),
            started_ms: Some(NOW_MS - HOUR_MS),
            before_tokens: Some(168_000),
            after_tokens: Some(21_000),
            why: Some("boundary and summary at byte 48213".to_owned()),
            ..compaction("closed")
        }],
        messages: vec![
            message(1, "prompt", None, "Rework the retry logic, please.\nKeep the old tests."),
            message(2, "answer", None, long),
            message(3, "tool_call", Some("Bash"), "cargo test -p payments -- retry"),
            message(4, "tool_result", None, "running 12 tests\ntest retry::gives_up ... FAILED"),
            message(5, "answer", None, "One test fails; I look at it."),
            message(6, "tool_call", Some("Read"), "src/retry.rs"),
        ],
        children,
        session,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    No,
    Yes,
    Decided,
}

fn tried(rule: &str, test: &str, held: Held) -> Tried {
    Tried {
        rule: rule.to_owned(),
        test: test.to_owned(),
        held: held != Held::No,
        decided: held == Held::Decided,
        basis: "observed",
        evidence: Vec::new(),
    }
}

fn transition(id: i64, from: Option<&str>, to: &str, reason: &str, summary: &str) -> Transition {
    Transition {
        id,
        at_ms: NOW_MS - (4 - id) * 17 * MINUTE_MS,
        from: from.map(str::to_owned),
        to: to.to_owned(),
        reason: reason.to_owned(),
        summary: summary.to_owned(),
        basis: "observed".to_owned(),
        rule: "silence_within_live_window".to_owned(),
        actor: "claude-mirror-reconcile".to_owned(),
        evidence: Vec::new(),
    }
}

/// Everything at once.
pub(crate) fn many() -> Picture {
    Picture {
        snapshot: snapshot(sessions()),
        audit: audit(),
        ledger: ledger(),
        compactions: compactions(),
        detail: None,
    }
}

/// No session, no row.
pub(crate) fn empty() -> Picture {
    let mut snapshot = snapshot(Vec::new());
    snapshot.audit = AuditCounts::default();
    snapshot.ledger.pending = 0;
    Picture {
        snapshot,
        audit: Vec::new(),
        ledger: Vec::new(),
        compactions: Vec::new(),
        detail: None,
    }
}

/// So many sessions, statuses mixed.
pub(crate) fn fleet(count: i64) -> Arc<Picture> {
    let kinds = sessions();
    let mut all: Vec<Session> = (0..count)
        .zip(kinds.iter().cycle())
        .map(|(number, kind)| {
            let named = session(number + 1, kind.agent, &format!("Task {number}"), kind.status);
            Session {
                row_id: named.row_id,
                id: named.id,
                native_id: named.native_id,
                title: named.title,
                attention: kind.attention && number < 20,
                ..kind.clone()
            }
        })
        .collect();
    all.sort_by_key(|session| (!session.attention, session.status));
    Arc::new(Picture { snapshot: snapshot(all), ..many() })
}
