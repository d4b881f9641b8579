//! What the end of a run asks of the session that it opened.
//!
//! Above all on what that session's end rests. The child's exit, its lock, its entry in a registry
//! and the marker it writes on its way out all say that the session is over, and nothing of how the
//! run went; only what somebody else left can be taken over. Whose word an end is, is told by time:
//! what began before the run, or was still there after its child, is not the child's.

use crate::lifecycle::consumers::{EndedBy, LinkedRow, OtherHolder};
use crate::lifecycle::decide::{END_SLACK_MS, End, Rule};
use crate::lifecycle::known::{Process, known, observed_end};
use crate::store::evidence::{self, Evidence};
use crate::store::runs::RunRow;
use crate::store::runs::links::{self, Linked};
use crate::store::sessions::{self, SessionRow};
use crate::store::{Result, Tx};

/// When processes were last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// Before the child's exit, or nobody knows: who is there may be the child itself.
    Before,
    /// Since: who is there is another.
    Since,
}

/// The session of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Session {
    /// What its transcript says.
    pub says: Linked,
    /// Its row, once it is admitted.
    pub row: Option<LinkedRow>,
}

/// The time of a run's child.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    /// Pid and start, as evidence names it.
    subject: Option<String>,
    from_ms: i64,
    to_ms: i64,
}

impl Span {
    fn is_before(&self, at_ms: i64) -> bool {
        at_ms < self.from_ms.saturating_sub(END_SLACK_MS)
    }

    fn is_after(&self, at_ms: i64) -> bool {
        at_ms > self.to_ms.saturating_add(END_SLACK_MS)
    }

    fn holds(&self, at_ms: i64) -> bool {
        !self.is_before(at_ms) && !self.is_after(at_ms)
    }

    /// An observation of the child, or of a process that came and went with it.
    fn is_own(&self, row: &Evidence) -> bool {
        if row.source == "hook" {
            return self.holds(row.last_ms);
        }
        self.subject.as_ref() == Some(&row.subject)
            || (!row.started_ms.is_some_and(|at| self.is_before(at)) && !self.is_after(row.last_ms))
    }

    /// A marker stands behind all activity: of what was active in the child's time it is the
    /// child's.
    fn is_own_marker(&self, row: &SessionRow, at_ms: Option<i64>) -> bool {
        let activity = row.own_clock_ms.is_some_and(|at| self.holds(at));
        match at_ms {
            Some(at) if self.is_after(at) => false,
            Some(at) => activity || !self.is_before(at),
            None => activity,
        }
    }
}

/// The session of a run whose child ended at `exit_ms`; `None` if it is not mirrored.
pub(super) fn session_of(
    tx: &Tx<'_>,
    run: &RunRow,
    exit_ms: i64,
    looked: Looked,
) -> Result<Option<Session>> {
    let Some(says) = links::linked(tx, run.id)? else { return Ok(None) };
    let row = match sessions::load(tx, says.session_id)? {
        Some(row) => {
            let seen = evidence::of_session(tx, row.id)?;
            linked_row(&row, &seen, &span(run, exit_ms), looked)
        }
        None => None,
    };
    Ok(Some(Session { says, row }))
}

fn span(run: &RunRow, exit_ms: i64) -> Span {
    let subject = run.child.as_ref().map(|(pid, start)| {
        let start = start.as_deref().unwrap_or("?");
        format!("{pid}:{start}")
    });
    Span { subject, from_ms: run.started_ms.unwrap_or(exit_ms).min(exit_ms), to_ms: exit_ms }
}

fn linked_row(
    row: &SessionRow,
    seen: &[Evidence],
    child: &Span,
    looked: Looked,
) -> Option<LinkedRow> {
    let status = row.status?;
    let other = |row: &&Evidence| match looked {
        Looked::Before => !child.is_own(row),
        Looked::Since => child.subject.as_ref() != Some(&row.subject),
    };
    let there = |row: &&Evidence| {
        matches!(row.source.as_str(), "registry" | "lock" | "run")
            && matches!(row.says.as_str(), "dedicated" | "shared")
    };
    let held = seen.iter().filter(there).any(|row| other(&row));
    let holder = if held { OtherHolder::Known } else { OtherHolder::NotKnown };
    Some(LinkedRow { status, holder, ended_by: ended_by(row, seen, child) })
}

fn ended_by(row: &SessionRow, seen: &[Evidence], child: &Span) -> EndedBy {
    if row.rule.as_deref() != Some(Rule::EndEvidence.word()) {
        // By silence, or by somebody who is not the mirror.
        return EndedBy::Another;
    }
    let Some(known) = known(row, seen, Process::default(), i64::MAX) else {
        return EndedBy::Another;
    };
    let ends = ends(row, seen, child);
    let stand = |whose: EndedBy| ends.iter().any(|(by, end)| *by == whose && end.stands(&known));
    if stand(EndedBy::Another) {
        EndedBy::Another
    } else if stand(EndedBy::OwnChild) {
        EndedBy::OwnChild
    } else if row.status_since_ms.is_some_and(|at| child.is_before(at)) {
        EndedBy::Another
    } else {
        // What it rested on has been revoked since; it was there in the child's time.
        EndedBy::OwnChild
    }
}

fn ends(row: &SessionRow, seen: &[Evidence], child: &Span) -> Vec<(EndedBy, End)> {
    let whose = |own: bool| if own { EndedBy::OwnChild } else { EndedBy::Another };
    let marker = row.marker.map(|(ending, at_ms)| {
        let own = child.is_own_marker(row, at_ms);
        (whose(own), End { ending, at_ms, observed_ms: None })
    });
    let observed =
        seen.iter().filter_map(|row| Some((whose(child.is_own(row)), observed_end(row)?)));
    marker.into_iter().chain(observed).collect()
}

#[cfg(test)]
mod tests;
