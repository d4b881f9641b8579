//! A session's compaction bracket as shown: the one place that reads compaction's own types.

use super::{Compaction, Status};
use crate::compaction::Fold;

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

/// The newest bracket of a log in a session of this status, at `now_ms`.
pub(super) fn standing(fold: &Fold, status: Status, now_ms: i64) -> Standing {
    // Neither changes what a finished bracket says.
    let _ = (status, now_ms);
    let shown = Compaction {
        bracket: if fold.count > 0 { "closed" } else { "none" },
        count: fold.count,
        ..NONE
    };
    Standing { shown, running: false, stuck: false }
}

/// The newest brackets of a log, newest first.
pub(super) fn newest(fold: &Fold, status: Status, now_ms: i64) -> Vec<Compaction> {
    let shown = standing(fold, status, now_ms).shown;
    if shown.bracket == NONE.bracket { Vec::new() } else { vec![shown] }
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
