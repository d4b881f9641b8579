//! Whether a session needs a human, and how urgently.
//!
//! Decisions where the design is silent:
//!
//! - A bad end (inside a turn, or in an error) is news like an entry of the ledger: an
//!   acknowledgement by `operator` settles it.
//! - Its 24 hours count from the transition, for an end by silence is a day old when it is written.
//!   Of an admission, which is history and no transition, they count from the end itself: a first
//!   run shows the last day's bad ends and does not cry over years of old sessions.
//! - A row past its deadline claims nothing until it is checked: what was true three days ago must
//!   not ring a bell today.
//! - Of a sub-agent whose process is gone nobody is told: its root's end is what counts.

use super::{Phase, Session};

/// How long a bad end asks for attention, ms.
pub const BAD_END_MS: i64 = 86_400_000;

/// All that attention depends on.
#[expect(clippy::struct_excessive_bools, reason = "a row of the decision table, all independent")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stakes {
    /// Its status is running or idle.
    pub live: bool,
    /// A sub-agent or an internal thread.
    pub nested: bool,
    /// Past its deadline and not checked.
    pub unchecked: bool,
    /// Its phase.
    pub phase: Option<Phase>,
    /// Its compaction has been running for too long.
    pub stuck: bool,
    /// A process verified alive says that it waits.
    pub process_waits: bool,
    /// It ended inside a turn or in an error, not longer than [`BAD_END_MS`] ago, and nobody has
    /// acknowledged it.
    pub fresh_bad_end: bool,
}

/// Whether it needs a human.
pub fn needs_human(stakes: &Stakes) -> bool {
    let blocked = match stakes.phase {
        Some(Phase::NeedsApproval | Phase::Question | Phase::Error) => true,
        Some(Phase::ToolGone | Phase::WorkingGone) => !stakes.nested,
        Some(
            Phase::Ended
            | Phase::Compacting
            | Phase::Tool
            | Phase::Working
            | Phase::ProbablyLeft
            | Phase::YourTurn
            | Phase::Returned,
        )
        | None => false,
    };
    // What a process says is verified now, whatever has become of the row.
    stakes.process_waits
        || (!stakes.unchecked && stakes.live && (blocked || stakes.stuck))
        || stakes.fresh_bad_end
}

/// What a session that needs a human needs; the more urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Somebody waits for an answer, a permission, a yes to a plan.
    Asked,
    /// Something went wrong, and the session is still there.
    Wrong,
    /// It ended badly.
    Ended,
}

/// How urgently a session needs a human; `None` if it does not.
pub fn urgency(session: &Session) -> Option<Urgency> {
    let asked = session.waiting_for.is_some();
    session.attention.then(|| match (asked, session.status.is_terminal()) {
        (true, _) => Urgency::Asked,
        (false, false) => Urgency::Wrong,
        (false, true) => Urgency::Ended,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const LIVE: Stakes = Stakes {
        live: true,
        nested: false,
        unchecked: false,
        phase: None,
        stuck: false,
        process_waits: false,
        fresh_bad_end: false,
    };
    const ENDED: Stakes = Stakes { live: false, phase: Some(Phase::Ended), ..LIVE };

    #[rstest]
    #[case::approval(Stakes { phase: Some(Phase::NeedsApproval), ..LIVE }, true)]
    #[case::question(Stakes { phase: Some(Phase::Question), ..LIVE }, true)]
    #[case::error(Stakes { phase: Some(Phase::Error), ..LIVE }, true)]
    #[case::tool(Stakes { phase: Some(Phase::Tool), ..LIVE }, false)]
    #[case::your_turn(Stakes { phase: Some(Phase::YourTurn), ..LIVE }, false)]
    #[case::probably_left(Stakes { phase: Some(Phase::ProbablyLeft), ..LIVE }, false)]
    #[case::stuck(Stakes { stuck: true, phase: Some(Phase::Compacting), ..LIVE }, true)]
    #[case::stuck_but_ended(Stakes { stuck: true, ..ENDED }, false)]
    #[case::unchecked_question(
        Stakes { unchecked: true, phase: Some(Phase::Question), ..LIVE }, false
    )]
    #[case::ended(ENDED, false)]
    #[case::ended_but_waiting(Stakes { process_waits: true, ..ENDED }, true)]
    #[case::ended_badly(Stakes { fresh_bad_end: true, ..ENDED }, true)]
    #[case::gone_in_a_tool(Stakes { phase: Some(Phase::ToolGone), ..LIVE }, true)]
    #[case::gone_in_a_turn(Stakes { phase: Some(Phase::WorkingGone), ..LIVE }, true)]
    #[case::gone_but_unchecked(
        Stakes { unchecked: true, phase: Some(Phase::ToolGone), ..LIVE }, false
    )]
    #[case::a_sub_agent_is_gone(
        Stakes { nested: true, phase: Some(Phase::WorkingGone), ..LIVE }, false
    )]
    #[case::a_sub_agent_has_returned(
        Stakes { nested: true, phase: Some(Phase::Returned), ..LIVE }, false
    )]
    fn who_needs_a_human(#[case] stakes: Stakes, #[case] want: bool) {
        assert_eq!(needs_human(&stakes), want);
    }
}
