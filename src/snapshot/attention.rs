//! Whether a session needs a human.
//!
//! Decisions where the design is silent:
//!
//! - *Ended inside a turn* is news like an entry of the ledger, and stands and falls with one: an
//!   admission (history from before the store) raises nothing, or a first run would cry over years
//!   of old sessions; an acknowledgement by `operator` settles it.
//! - Its 24 hours count from the transition, not from the end: an end by silence is a day old when
//!   it is written.
//! - A row past its deadline claims nothing until it is checked: what was true three days ago must
//!   not ring a bell today.

use super::Phase;

/// How long an end inside a turn asks for attention, ms.
pub const ENDED_IN_TURN_MS: i64 = 86_400_000;

/// All that attention depends on.
#[expect(clippy::struct_excessive_bools, reason = "a row of the decision table, all independent")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stakes {
    /// Its status is running or idle.
    pub live: bool,
    /// Past its deadline and not checked.
    pub unchecked: bool,
    /// Its phase.
    pub phase: Option<Phase>,
    /// Its compaction has been running for too long.
    pub stuck: bool,
    /// A process verified alive says that it waits.
    pub process_waits: bool,
    /// It ended with its turn open, by a transition that is news, not older than
    /// [`ENDED_IN_TURN_MS`] and not acknowledged.
    pub fresh_end_in_turn: bool,
}

/// Whether it needs a human.
pub fn needs_human(stakes: &Stakes) -> bool {
    let blocked = match stakes.phase {
        Some(Phase::NeedsApproval | Phase::Question | Phase::Error) => true,
        Some(
            Phase::Ended
            | Phase::Compacting
            | Phase::Tool
            | Phase::Working
            | Phase::ProbablyLeft
            | Phase::YourTurn,
        )
        | None => false,
    };
    // What a process says is verified now, whatever has become of the row.
    stakes.process_waits
        || (!stakes.unchecked && stakes.live && (blocked || stakes.stuck))
        || stakes.fresh_end_in_turn
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const LIVE: Stakes = Stakes {
        live: true,
        unchecked: false,
        phase: None,
        stuck: false,
        process_waits: false,
        fresh_end_in_turn: false,
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
    #[case::ended_in_turn(Stakes { fresh_end_in_turn: true, ..ENDED }, true)]
    fn who_needs_a_human(#[case] stakes: Stakes, #[case] want: bool) {
        assert_eq!(needs_human(&stakes), want);
    }
}
