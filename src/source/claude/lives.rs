//! The lives of a session, as far as its own end markers tell of them.
//!
//! `cost-state` has no stamp. Its `startTime` is kept over all lives of a session, in forks too, and
//! `totalDuration` adds up without the time between, so their sum is the end of a first life only
//! (formats/claude-and-codex.md, *Seen on 2026-11-30*). Of a later one the end is not in the file;
//! the last stamp before the marker stands for it.

use serde::{Deserialize, Serialize};

use super::super::{EndKind, EndMark};

/// A record of the turn that was broken off may come so late behind the marker, ms; so much the
/// clock of an end may differ from that of the records.
const SLACK_MS: i64 = 2_000;

/// What is carried from record to record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Lives {
    /// The marker behind which nothing has happened, and the newest stamp before it, ms.
    over: Option<(EndMark, Option<i64>)>,
    /// A `cost-state` was written.
    counted: bool,
    /// Its times add up: it has lived on behind one, or in a copy of another session.
    later: bool,
}

impl Lives {
    /// A marker, with the moment it tells itself and the newest stamp before it, ms.
    pub(super) fn end(
        &mut self,
        kind: EndKind,
        told_ms: Option<i64>,
        newest_ms: Option<i64>,
    ) -> EndMark {
        let mark = match kind {
            EndKind::CostState => self.cost_state(told_ms, newest_ms),
            EndKind::ContinuedIn | EndKind::EndedByModel => {
                EndMark { kind, at_ms: told_ms, approximate: false }
            }
        };
        self.over = Some((mark.clone(), newest_ms));
        mark
    }

    fn cost_state(&mut self, told_ms: Option<i64>, newest_ms: Option<i64>) -> EndMark {
        self.counted = true;
        let fits = |at: &i64| newest_ms.is_none_or(|newest| newest <= at.saturating_add(SLACK_MS));
        let exact_ms = told_ms.filter(|at| !self.later && fits(at));
        EndMark {
            kind: EndKind::CostState,
            at_ms: exact_ms.or(newest_ms),
            approximate: exact_ms.is_none(),
        }
    }

    /// Activity: a marker before it stands no more.
    pub(super) fn live(&mut self) {
        self.over = None;
        self.later |= self.counted;
    }

    /// A copy of another session's record.
    pub(super) fn copy(&mut self) {
        self.later = true;
    }

    /// The marker that an interrupt sentinel of this stamp leaves as it is: its turn was broken off
    /// by the end, and was written a moment later.
    pub(super) fn behind(&self, at_ms: Option<i64>) -> Option<EndMark> {
        let (mark, newest_ms) = self.over.as_ref()?;
        let over_ms = mark.at_ms.max(*newest_ms);
        let late = at_ms.zip(over_ms).is_none_or(|(at, over)| at <= over.saturating_add(SLACK_MS));
        late.then(|| mark.clone())
    }
}
