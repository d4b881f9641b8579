//! From a row's status to a verdict's: which moves, in which order.
//!
//! Pure. A session that was ever live completes by silence only through `idle`; what ended before
//! its root's epoch is history and is admitted as such; only activity stamped after its end brings
//! a terminal row back.

use crate::lifecycle::apply::{After, Override};
use crate::lifecycle::decide::{Known, Rule, Verdict};
use crate::lifecycle::policy::reason;
use crate::lifecycle::{Actor, Basis, EndStamp, Status, Windows};
use crate::store::sessions::SessionRow;

/// Whether a verdict by silence may end a session now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Silence {
    /// It may.
    Judged,
    /// It waits: the clock has jumped.
    Held,
}

/// What is to be done with one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// The moves, in order.
    pub(super) hops: Vec<Hop>,
    /// When time alone may change the status, ms.
    pub(super) deadline_ms: Option<i64>,
    /// An end by silence waits.
    pub(super) held: bool,
}

/// One move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hop {
    /// Status after.
    pub(super) to: Status,
    /// Reason code.
    pub(super) reason: &'static str,
    /// One sentence.
    pub(super) summary: String,
    /// Seen or concluded.
    pub(super) basis: Basis,
    /// The rule that held.
    pub(super) rule: Rule,
    /// What it rests on.
    pub(super) evidence: Vec<String>,
    /// The end of a terminal status.
    pub(super) end: Option<EndStamp>,
    /// The end that it takes back.
    pub(super) taken_back: Option<TakenBack>,
}

/// An end that turned out to be none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TakenBack {
    after: After,
    ended_ms: i64,
    activity_ms: i64,
}

impl TakenBack {
    /// As an override by that actor.
    pub(super) fn on_account_of(self, actor: &Actor) -> Override {
        let moment = crate::lifecycle::moment;
        Override {
            actor: actor.id.clone(),
            justification: format!(
                "activity stamped {} lies after the end at {}",
                moment(self.activity_ms),
                moment(self.ended_ms)
            ),
            after: self.after,
            gap_ms: Some(self.activity_ms.saturating_sub(self.ended_ms)),
        }
    }
}

/// What stands in for a sign of life that lies ahead of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Anchor {
    /// The last activity it stands in for, ms.
    pub(super) anchored_ms: Option<i64>,
    /// It was set just now.
    pub(super) fresh: bool,
}

/// Sets a sign of life ahead of `now_ms` back to it, once per activity.
///
/// With news about the row, or while it runs, silence starts now. A row that is idle and has no
/// news stays idle: a clock set back makes nobody work. Of one that is over the first anchor stands,
/// for its news may be no activity. An anchor ends nobody whose stamp the clock has passed since:
/// then the stamp itself has the word again.
pub(super) fn anchor(row: &SessionRow, known: &mut Known, windows: Windows, now_ms: i64) -> Anchor {
    let Some(last) = row.last_activity_ms else {
        return Anchor { anchored_ms: None, fresh: false };
    };
    let standing = row.anchored_ms.filter(|anchored| *anchored == last);
    let live = !row.status.is_some_and(Status::is_terminal);
    let over = now_ms.saturating_sub(known.sign_of_life_ms) > windows.ended_ms;
    let passed = live && last <= now_ms && (row.status == Some(Status::Running) || over);
    if standing.is_some() && passed {
        stamped(row, known, now_ms);
        known.sign_of_life_ms = known.sign_of_life_ms.max(last);
        return Anchor { anchored_ms: None, fresh: false };
    }
    let again = last > now_ms && (standing.is_none() || (row.dirty && live));
    if !again && known.sign_of_life_ms <= now_ms {
        return Anchor { anchored_ms: standing, fresh: false };
    }
    stamped(row, known, now_ms);
    let lull = row.status == Some(Status::Idle) && !row.dirty;
    let back = if lull { windows.live_ms.saturating_add(1) } else { 0 };
    known.sign_of_life_ms = now_ms.saturating_sub(back);
    Anchor { anchored_ms: Some(last), fresh: true }
}

/// The activity as it is stamped, clamped to now: no anchor stands in for it any more.
fn stamped(row: &SessionRow, known: &mut Known, now_ms: i64) {
    known.last_activity_ms = row.last_activity_ms.map_or(now_ms, |at| at.min(now_ms));
    known.own_activity_ms = row.own_clock_ms.map(|at| at.min(now_ms));
    known.child_activity_ms = row.child_activity_ms.map(|at| at.min(now_ms));
}

/// The moves that lead from the row's status to the verdict's.
pub(super) fn plan(
    row: &SessionRow,
    known: &Known,
    verdict: Verdict,
    windows: Windows,
    silence: Silence,
) -> Plan {
    let ends_by_silence = verdict.rule == Rule::Silence;
    let goal =
        Goal { row, known, verdict, windows, held: ends_by_silence && silence == Silence::Held };
    match row.status {
        None => goal.admit(),
        Some(Status::Running) => goal.leave_running(Vec::new()),
        Some(Status::Idle) => goal.leave_idle(Vec::new()),
        // A session is never `starting`; the policy would refuse whatever came of it.
        Some(Status::Starting) => goal.stay(),
        Some(
            Status::Completed
            | Status::CompletedEmpty
            | Status::Failed
            | Status::TimedOut
            | Status::Aborted
            | Status::Cancelled,
        ) => goal.leave_terminal(),
    }
}

/// A verdict and the row it is for.
struct Goal<'a> {
    row: &'a SessionRow,
    known: &'a Known,
    verdict: Verdict,
    windows: Windows,
    held: bool,
}

impl Goal<'_> {
    fn admit(&self) -> Plan {
        match self.verdict.status {
            Status::Running => {
                self.done(vec![Hop { reason: reason::ADMITTED_ACTIVITY, ..self.hop() }])
            }
            Status::Idle => self.done(vec![Hop { reason: reason::ADMITTED_SILENCE, ..self.hop() }]),
            Status::Completed if self.is_history() && self.held => self.stay(),
            Status::Completed if self.is_history() => {
                self.done(vec![Hop { reason: reason::ADMITTED_ENDED, ..self.hop() }])
            }
            Status::Completed => {
                let lull = Hop { reason: reason::ADMITTED_SILENCE, ..self.lull() };
                self.leave_idle(vec![lull])
            }
            Status::Starting
            | Status::CompletedEmpty
            | Status::Failed
            | Status::TimedOut
            | Status::Aborted
            | Status::Cancelled => self.stay(),
        }
    }

    /// It ended at or before its root's first pass. A row without a root has no epoch to be news
    /// against.
    fn is_history(&self) -> bool {
        if self.was_reread() {
            return true;
        }
        let ended = match self.verdict.rule {
            Rule::EndEvidence => self.verdict.end.map(|end| end.at_ms),
            Rule::Silence | Rule::LiveWindow | Rule::EndedWindow => {
                Some(self.known.last_activity_ms.saturating_add(self.windows.ended_ms))
            }
        };
        match (ended, self.row.epoch_ms) {
            (Some(ended), Some(epoch)) => ended <= epoch,
            (_, None) => true,
            (None, Some(_)) => false,
        }
    }

    fn leave_running(&self, mut before: Vec<Hop>) -> Plan {
        match self.verdict.status {
            Status::Idle => {
                before.push(self.hop());
                self.done(before)
            }
            // End evidence needs no lull; silence leads through one.
            Status::Completed if self.verdict.rule == Rule::EndEvidence => {
                before.push(self.hop());
                self.done(before)
            }
            Status::Completed => {
                before.push(self.lull());
                self.leave_idle(before)
            }
            Status::Running
            | Status::Starting
            | Status::CompletedEmpty
            | Status::Failed
            | Status::TimedOut
            | Status::Aborted
            | Status::Cancelled => self.done(before),
        }
    }

    fn leave_idle(&self, mut before: Vec<Hop>) -> Plan {
        match self.verdict.status {
            Status::Completed if self.held => {
                // The row is past its deadline and stays so: it is due until the hold ends.
                let sign = self.known.sign_of_life_ms;
                let past = sign.saturating_add(self.windows.ended_ms).saturating_add(1);
                Plan { hops: before, deadline_ms: Some(past), held: true }
            }
            Status::Running | Status::Completed => {
                before.push(self.hop());
                self.done(before)
            }
            Status::Idle
            | Status::Starting
            | Status::CompletedEmpty
            | Status::Failed
            | Status::TimedOut
            | Status::Aborted
            | Status::Cancelled => self.done(before),
        }
    }

    /// Only activity stamped after the end, on which no end evidence stands, brings a row back,
    /// whatever its age when it is read. It then goes on as the verdict asks.
    fn leave_terminal(&self) -> Plan {
        if self.verdict.rule == Rule::EndEvidence {
            return self.confirmed();
        }
        // A live holder vetoes an end and revives nothing: whoever resumes a session repairs what
        // the life before left open, with stamps behind the end that was noted (dsh's `turn/end`).
        let Known { ends, left, .. } = self.known;
        if ends.iter().chain(left).any(|end| end.stands(self.known)) {
            return self.stay();
        }
        let Some(taken_back) = self.taken_back() else { return self.stay() };
        let back = Hop {
            to: Status::Running,
            reason: reason::REACTIVATED_ACTIVITY,
            summary: format!(
                "active again {} after its end",
                crate::lifecycle::span(taken_back.activity_ms.saturating_sub(taken_back.ended_ms))
            ),
            basis: Basis::Observed,
            rule: self.verdict.rule,
            evidence: self.verdict.evidence.clone(),
            end: None,
            taken_back: Some(taken_back),
        };
        self.leave_running(vec![back])
    }

    fn taken_back(&self) -> Option<TakenBack> {
        let row = self.row;
        // Ours always have an end; others' may come without.
        let ended_ms = row.ended_ms.or(row.status_since_ms).or(row.epoch_ms)?;
        let activity_ms = self.known.last_activity_ms;
        let own = row.origin == "mirror";
        let news = own || row.epoch_ms.is_some_and(|epoch| activity_ms > epoch);
        let after = match row.basis {
            Some(Basis::Observed) => After::Exit,
            Some(Basis::Inferred) | None => After::Silence,
        };
        let news = news && !self.was_reread();
        (news && activity_ms > ended_ms).then_some(TakenBack { after, ended_ms, activity_ms })
    }

    /// Its newest activity was in a file all along, and only a newer reading told it.
    fn was_reread(&self) -> bool {
        self.row.reread_ms.is_some_and(|reread| self.known.last_activity_ms <= reread)
    }

    /// An end that was inferred has been seen since: the status stays, the evidence is kept beside.
    fn confirmed(&self) -> Plan {
        let known = self.row.rule.as_deref() == Some(Rule::EndEvidence.word());
        if known || self.row.status != Some(Status::Completed) {
            return self.stay();
        }
        Plan { hops: vec![self.hop()], deadline_ms: None, held: false }
    }

    /// The verdict's own move.
    fn hop(&self) -> Hop {
        Hop {
            to: self.verdict.status,
            reason: self.verdict.reason,
            summary: self.verdict.summary.clone(),
            basis: self.verdict.basis,
            rule: self.verdict.rule,
            evidence: self.verdict.evidence.clone(),
            end: self.duration(),
            taken_back: None,
        }
    }

    /// The lull on the way to an end by silence, or to an end that was missed.
    fn lull(&self) -> Hop {
        let summary = match self.verdict.rule {
            Rule::EndEvidence => "ended since its root's first pass, seen only now".to_owned(),
            Rule::LiveWindow | Rule::EndedWindow | Rule::Silence => {
                let live = crate::lifecycle::span(self.windows.live_ms);
                format!("silent for longer than the live window of {live}")
            }
        };
        Hop {
            to: Status::Idle,
            reason: reason::IDLE_SILENCE,
            summary,
            basis: Basis::Observed,
            rule: Rule::EndedWindow,
            end: None,
            ..self.hop()
        }
    }

    /// Only an exact end has a duration.
    fn duration(&self) -> Option<EndStamp> {
        let end = self.verdict.end?;
        let started = self.row.started_ms.or(self.row.first_activity_ms);
        let duration_ms = started
            .filter(|_| !end.approximate)
            .map(|started| end.at_ms.saturating_sub(started).max(0));
        Some(EndStamp { duration_ms, ..end })
    }

    fn done(&self, hops: Vec<Hop>) -> Plan {
        Plan { hops, deadline_ms: self.verdict.until_ms, held: false }
    }

    fn stay(&self) -> Plan {
        Plan { hops: Vec::new(), deadline_ms: None, held: self.held }
    }
}

#[cfg(test)]
mod tests;
