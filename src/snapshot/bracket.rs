//! A session's compaction bracket as shown: the one place that reads compaction's own types.

use super::{Compaction, Status};
use crate::compaction::evidence::START_SLACK_MS;
use crate::compaction::{
    Announced, Attempt, Bracket, BracketEvidence, Fold, Lock, LogVerdict, Phase, State, Trigger,
    announced, state,
};
use crate::lifecycle::presence::{Compacting, Presence};
use crate::store::evidence::Evidence;

/// The newest bracket, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    /// As shown.
    pub(super) shown: Compaction,
    /// Evidence beside the log says that it runs.
    pub(super) running: bool,
    /// It has been running for too long.
    pub(super) stuck: bool,
}

/// What is known beside the log of a session: whether it has ended, who holds its lock, who else
/// could be at it. `believed`: the observations are those of a look from here, not long ago.
pub(super) fn evidence(
    status: Status,
    fold: &Fold,
    seen: &[Evidence],
    presence: &Presence,
    believed: bool,
    clock_stepped_ms: Option<i64>,
) -> BracketEvidence {
    let started_ms = fold.verdict().attempt.and_then(|attempt| attempt.started_ms);
    let seen = if believed { seen } else { &[] };
    let writer = seen.iter().find(|row| row.source == "writer");
    let programs = writer.filter(|row| row.subject == "programs");
    // A process that came after the start cannot have made it.
    let younger = |row: &Evidence| match (row.started_ms, started_ms) {
        (Some(process), Some(start)) => process > start.saturating_add(START_SLACK_MS),
        (_, None) | (None, _) => false,
    };
    BracketEvidence {
        session_ended: status.is_terminal(),
        lock: match (held(seen, presence), writer) {
            (Some(lock), _) => lock,
            (None, Some(row)) if row.says == "free" => Lock::Free,
            (None, Some(row)) if row.says == "none" => Lock::NoWriter,
            (None, Some(row)) if row.says == "some" && younger(row) => Lock::NoWriter,
            (None, _) => Lock::Unknown,
        },
        clock_stepped: clock_stepped_ms
            .is_some_and(|at| started_ms.is_none_or(|start| start <= at)),
        other_writer_possible: programs.is_some_and(|row| row.says == "some" && !younger(row)),
    }
}

/// The process that holds the lock; of several the oldest, for only one that was there before a
/// bracket can be at it.
fn held(seen: &[Evidence], presence: &Presence) -> Option<Lock> {
    let holds = |row: &&Evidence| {
        row.source == "lock" && matches!(row.says.as_str(), "dedicated" | "shared")
    };
    let row = seen.iter().filter(holds).min_by_key(|row| row.started_ms.unwrap_or(i64::MAX))?;
    let pid = row.pid.filter(|_| presence.alive == Some(true))?;
    Some(Lock::Held { pid, started_ms: row.started_ms })
}

/// The standing of a session's newest bracket, with one that a hook has announced in its place.
pub(super) fn with_announced(
    standing: Standing,
    compacting: Option<&Compacting>,
    now_ms: i64,
) -> Standing {
    let Some(compacting) = compacting else { return standing };
    let said = Announced { since_ms: compacting.since_ms, pid: compacting.pid };
    let judged = announced(&said, now_ms);
    let shown = Compaction {
        bracket: Bracket::Open.word(),
        state: Some(judged.state.word().to_owned()),
        phase: Some(Phase::Started.word()),
        running: judged.running,
        trigger: match compacting.trigger.as_deref() {
            Some("manual") => Some(Trigger::Manual.word()),
            Some("auto") => Some(Trigger::Auto.word()),
            Some(_) | None => None,
        },
        started_ms: Some(compacting.since_ms),
        orphans: standing.shown.orphans,
        count: standing.shown.count,
        why: Some(judged.why),
        ..NONE
    };
    Standing { shown, running: true, stuck: judged.attention }
}

/// The newest bracket of a log, beside what is known of its processes, at `now_ms`.
pub(super) fn standing(fold: &Fold, evidence: &BracketEvidence, now_ms: i64) -> Standing {
    let log = fold.verdict();
    let judged = state(&log, evidence, now_ms);
    let attempt = log.attempt.as_ref();
    let shown = Compaction {
        bracket: log.bracket.word(),
        state: said(judged.state, log.bracket),
        phase: log.phase.map(Phase::word),
        blocking: judged.blocking,
        running: judged.running.filter(|_| log.bracket != Bracket::None),
        seq: log.decisive_seq,
        end_seed_seq: log.end_seed_seq,
        orphans: log.orphans,
        count: log.count,
        why: (judged.state != State::None).then(|| judged.why.clone()),
        ..attempt.map_or(NONE, of_attempt)
    };
    Standing { shown, running: judged.state.is_verified_work(), stuck: judged.attention }
}

/// The newest brackets of a log, newest first, each as it stands now.
pub(super) fn newest(fold: &Fold, evidence: &BracketEvidence, now_ms: i64) -> Vec<Compaction> {
    let mut last = true;
    let mut shown = Vec::new();
    for attempt in fold.attempts().rev() {
        if std::mem::take(&mut last) {
            shown.push(standing(fold, evidence, now_ms).shown);
            continue;
        }
        let log = LogVerdict {
            bracket: attempt.bracket,
            decisive_seq: attempt.end_seq.or(attempt.start_seq),
            end_seed_seq: attempt.boundary_seq,
            phase: Some(attempt.phase),
            orphans: 0,
            count: 0,
            attempt: Some(attempt.clone()),
        };
        let judged = state(&log, evidence, now_ms);
        shown.push(Compaction {
            state: said(judged.state, log.bracket),
            why: Some(judged.why),
            seq: log.decisive_seq,
            ..of_attempt(attempt)
        });
    }
    shown
}

/// The state, where it says more than the bracket does.
fn said(state: State, bracket: Bracket) -> Option<String> {
    (state.word() != bracket.word()).then(|| state.word().to_owned())
}

fn of_attempt(attempt: &Attempt) -> Compaction {
    Compaction {
        bracket: attempt.bracket.word(),
        trigger: attempt.trigger.map(Trigger::word),
        started_ms: attempt.started_ms,
        ended_ms: attempt.ended_ms,
        error: attempt.error.as_deref().map(|error| crate::text::line_up_to(error, 200)),
        before_tokens: attempt.before_tokens,
        after_tokens: attempt.after_tokens,
        end_seed_seq: attempt.boundary_seq,
        ..NONE
    }
}

/// No compaction at all.
const NONE: Compaction = Compaction {
    bracket: "none",
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
};
