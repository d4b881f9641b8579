//! A session's compaction bracket as shown: the one place that reads compaction's own types.

use super::{Compaction, Status};
use crate::compaction::{
    Attempt, Bracket, BracketEvidence, Fold, Lock, LogVerdict, Phase, State, Trigger, state,
};

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

/// What is known beside the log of a session with that status: its end. Processes are unknown.
pub(super) fn evidence(status: Status) -> BracketEvidence {
    BracketEvidence {
        session_ended: status.is_terminal(),
        lock: Lock::Unknown,
        clock_stepped: false,
        other_writer_possible: false,
    }
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
