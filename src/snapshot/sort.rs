//! The order in which sessions are shown, and the groups of that order.

use std::cmp::Reverse;

use super::{Counts, Phase, Session, Status, attention};

/// Where a status stands in the list; those who need a human stand above all. A status of the future
/// must find its place here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Running, or a run about to.
    Running,
    /// Idle.
    Idle,
    /// Completed.
    Completed,
    /// Ended otherwise.
    Ended,
}

impl Group {
    /// In their order.
    pub const ALL: [Self; 4] = [Self::Running, Self::Idle, Self::Completed, Self::Ended];

    /// The group of a status.
    pub fn of(status: Status) -> Self {
        match status {
            Status::Starting | Status::Running => Self::Running,
            Status::Idle => Self::Idle,
            Status::Completed => Self::Completed,
            Status::CompletedEmpty
            | Status::Failed
            | Status::TimedOut
            | Status::Aborted
            | Status::Cancelled => Self::Ended,
        }
    }
}

/// The group of a session; `None`, which comes first, if it needs a human. One that is past its
/// deadline keeps the place of the status it had, so that it does not jump when it is checked.
pub fn group(session: &Session) -> Option<Group> {
    (!session.attention).then(|| Group::of(session.status))
}

/// Those who need a human first, the more urgent and the longer waiting before the others; then by
/// status, then newest activity first, then by id.
pub fn sort(sessions: &mut [Session]) {
    sessions.sort_by(|one, other| {
        let key = |session: &Session| {
            let waits = attention::urgency(session).map(|urgency| (urgency, since_ms(session)));
            (group(session), waits, Reverse(session.last_activity_ms))
        };
        key(one).cmp(&key(other)).then_with(|| one.id.cmp(&other.id))
    });
}

/// Since when a session has needed a human, ms; unknown before all others.
fn since_ms(session: &Session) -> Option<i64> {
    let asked = session.waiting_for.as_ref().and_then(|waiting| waiting.since_ms);
    asked.or(session.ended_ms).or(session.last_activity_ms)
}

/// Counts over sessions. An unchecked one is counted as that and not by its status, which nobody
/// vouches for; so the statuses and *unchecked* add up to the rows.
pub fn count(sessions: &[Session]) -> Counts {
    let mut counts = Counts::default();
    for session in sessions {
        counts.attention += u64::from(session.attention);
        if session.unchecked {
            counts.unchecked += 1;
            continue;
        }
        match session.phase {
            Some(Phase::Compacting | Phase::Tool | Phase::Working) => counts.at_work += 1,
            Some(Phase::YourTurn) => counts.your_turn += 1,
            Some(
                Phase::Ended
                | Phase::NeedsApproval
                | Phase::Question
                | Phase::Error
                | Phase::ToolGone
                | Phase::WorkingGone
                | Phase::ProbablyLeft
                | Phase::Returned,
            )
            | None => {}
        }
        match Group::of(session.status) {
            Group::Running => counts.running += 1,
            Group::Idle => counts.idle += 1,
            Group::Completed => counts.completed += 1,
            Group::Ended => counts.other += 1,
        }
    }
    counts
}
