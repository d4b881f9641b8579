//! What a session is doing or waiting for: the first that fits of the design's list.
//!
//! A phase is derived and never a status. It rests on what the transcript says of its turn and on
//! what a verified process or a hook says; it knows neither where these come from nor the time.

use super::Phase;
use crate::store::query::{Outcome, Turn};

/// The tools by which an agent asks the human, as each agent names them.
pub const QUESTION_TOOLS: [&str; 5] = [
    "AskUserQuestion",
    "ExitPlanMode",
    "request_user_input",
    "ask_user_question",
    "exit_plan_mode",
];

/// What a verified process or a hook says it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// `input needed`: an answer.
    Answer,
    /// Anything else: leave to do something.
    Approval,
}

/// All that a phase depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signs<'a> {
    /// The end of its status.
    pub ended: Ended,
    /// Its compaction bracket.
    pub bracket: Bracket,
    /// What a live process or a hook asks for.
    pub asks: Option<Asks>,
    /// dsh: approvals asked and not decided.
    pub approvals: usize,
    /// Names of the calls without a result.
    pub calls: &'a [&'a str],
    /// State of the newest turn.
    pub turn: Turn,
    /// Outcome of the last finished one.
    pub last_turn: Option<Outcome>,
    /// What the end of the file looks like.
    pub tail: Tail,
    /// A process verified alive holds it.
    pub holder: Holder,
}

/// Whether a status is one of the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It is terminal.
    Yes,
    /// It is not.
    No,
}

/// Whether a compaction runs, as far as a phase asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bracket {
    /// Evidence beside the log says that it runs.
    Running,
    /// None, closed, or open without evidence.
    Quiet,
}

/// What the end of a transcript looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// A decidable metadata trailer, as an agent writes when it is left.
    Trailer,
    /// Anything else.
    Plain,
}

/// Whether a live process holds a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// One does.
    Alive,
    /// None is known to.
    Unknown,
}

/// The phase.
pub fn phase(signs: &Signs<'_>) -> Option<Phase> {
    let open = match signs.turn {
        Turn::Open => true,
        Turn::None | Turn::Closed | Turn::Interrupted => false,
    };
    if signs.ended == Ended::Yes {
        Some(Phase::Ended)
    } else if signs.bracket == Bracket::Running {
        Some(Phase::Compacting)
    } else if signs.asks == Some(Asks::Approval) || signs.approvals > 0 {
        Some(Phase::NeedsApproval)
    } else if signs.asks == Some(Asks::Answer) || signs.calls.iter().any(|name| is_question(name)) {
        Some(Phase::Question)
    } else if !open && signs.last_turn == Some(Outcome::Error) {
        Some(Phase::Error)
    } else if open && !signs.calls.is_empty() {
        Some(Phase::Tool)
    } else if open {
        Some(Phase::Working)
    } else if signs.holder == Holder::Unknown && signs.tail == Tail::Trailer {
        Some(Phase::ProbablyLeft)
    } else if signs.turn == Turn::None {
        None
    } else {
        Some(Phase::YourTurn)
    }
}

fn is_question(tool: &str) -> bool {
    QUESTION_TOOLS.contains(&tool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const NOTHING: Signs<'static> = Signs {
        ended: Ended::No,
        bracket: Bracket::Quiet,
        asks: None,
        approvals: 0,
        calls: &[],
        turn: Turn::None,
        last_turn: None,
        tail: Tail::Plain,
        holder: Holder::Unknown,
    };
    const CLOSED: Signs<'static> =
        Signs { turn: Turn::Closed, last_turn: Some(Outcome::Completed), ..NOTHING };
    const OPEN: Signs<'static> = Signs { turn: Turn::Open, ..NOTHING };

    #[rstest]
    #[case::nothing_yet(NOTHING, None)]
    #[case::closed(CLOSED, Some(Phase::YourTurn))]
    #[case::interrupted(
        Signs { turn: Turn::Interrupted, last_turn: Some(Outcome::Aborted), ..NOTHING },
        Some(Phase::YourTurn)
    )]
    #[case::aborted_turn(
        Signs { last_turn: Some(Outcome::Aborted), ..CLOSED }, Some(Phase::YourTurn)
    )]
    #[case::trailer(Signs { tail: Tail::Trailer, ..CLOSED }, Some(Phase::ProbablyLeft))]
    #[case::trailer_without_a_turn(
        Signs { tail: Tail::Trailer, ..NOTHING }, Some(Phase::ProbablyLeft)
    )]
    #[case::trailer_but_held(
        Signs { tail: Tail::Trailer, holder: Holder::Alive, ..CLOSED }, Some(Phase::YourTurn)
    )]
    #[case::trailer_in_a_turn(Signs { tail: Tail::Trailer, ..OPEN }, Some(Phase::Working))]
    #[case::working(OPEN, Some(Phase::Working))]
    #[case::working_after_an_error(
        Signs { last_turn: Some(Outcome::Error), ..OPEN }, Some(Phase::Working)
    )]
    #[case::tool(Signs { calls: &["Bash"], ..OPEN }, Some(Phase::Tool))]
    #[case::call_left_over_from_a_closed_turn(
        Signs { calls: &["Bash"], ..CLOSED }, Some(Phase::YourTurn)
    )]
    #[case::error(Signs { last_turn: Some(Outcome::Error), ..CLOSED }, Some(Phase::Error))]
    #[case::error_before_a_trailer(
        Signs { last_turn: Some(Outcome::Error), tail: Tail::Trailer, ..CLOSED },
        Some(Phase::Error)
    )]
    #[case::question_tool(
        Signs { calls: &["Bash", "AskUserQuestion"], ..OPEN }, Some(Phase::Question)
    )]
    #[case::plan(Signs { calls: &["ExitPlanMode"], ..OPEN }, Some(Phase::Question))]
    #[case::codex_question(Signs { calls: &["request_user_input"], ..OPEN }, Some(Phase::Question))]
    #[case::dsh_question(Signs { calls: &["ask_user_question"], ..OPEN }, Some(Phase::Question))]
    #[case::dsh_plan(Signs { calls: &["exit_plan_mode"], ..OPEN }, Some(Phase::Question))]
    #[case::process_wants_an_answer(
        Signs { asks: Some(Asks::Answer), ..OPEN }, Some(Phase::Question)
    )]
    #[case::process_wants_leave(
        Signs { asks: Some(Asks::Approval), calls: &["Bash"], ..OPEN }, Some(Phase::NeedsApproval)
    )]
    #[case::approval_before_question(
        Signs { approvals: 1, calls: &["ask_user_question"], ..OPEN }, Some(Phase::NeedsApproval)
    )]
    #[case::compacting_before_approval(
        Signs { bracket: Bracket::Running, approvals: 1, ..OPEN }, Some(Phase::Compacting)
    )]
    #[case::ended_before_all(
        Signs { ended: Ended::Yes, bracket: Bracket::Running, approvals: 1, ..OPEN },
        Some(Phase::Ended)
    )]
    fn the_first_that_fits(#[case] signs: Signs<'_>, #[case] want: Option<Phase>) {
        assert_eq!(phase(&signs), want);
    }
}
