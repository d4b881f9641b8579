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

/// What a live process says of the work, where it is the newer word: the transcript says the other
/// thing, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newer {
    /// It is at work although the turn is not open.
    Works,
    /// It rests although a turn looks open: Esc before the first token leaves no line.
    Rests,
}

/// All that a phase depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signs<'a> {
    /// The end of its status.
    pub ended: Ended,
    /// Whose it is.
    pub rank: Rank,
    /// Its compaction bracket.
    pub bracket: Bracket,
    /// What a live process or a hook asks for.
    pub asks: Option<Asks>,
    /// What a live process says of the work, if that is newer than the transcript.
    pub newer: Option<Newer>,
    /// dsh: approvals asked and not decided.
    pub approvals: usize,
    /// Names of the calls without a result.
    pub calls: &'a [&'a str],
    /// Whether a plan waits for its approval.
    pub plan: Plan,
    /// State of the newest turn.
    pub turn: Turn,
    /// Outcome of the last finished one.
    pub last_turn: Option<Outcome>,
    /// What the end of the file looks like.
    pub tail: Tail,
    /// What is known of the process that has it open.
    pub holder: Holder,
}

/// Whose a session is: to whom a finished turn goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// A session: the turn goes to the human.
    Top,
    /// A sub-agent or an internal thread: it has returned to its parent.
    Nested,
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

/// Whether the turn that is over ended with a plan for the human to approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// It did.
    Waits,
    /// It did not, or another turn has begun.
    None,
}

/// What the end of a transcript looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// A decidable metadata trailer, as an agent writes when it is left.
    Trailer,
    /// Anything else.
    Plain,
}

/// What is known of the process that has a session open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// It is verified alive.
    Alive,
    /// Every one that is known of is known to be gone.
    Gone,
    /// None is known, or not what became of it.
    Unknown,
}

/// The phase.
pub fn phase(signs: &Signs<'_>) -> Option<Phase> {
    let open = is_open(signs.turn);
    let rests = open && signs.newer == Some(Newer::Rests);
    if signs.ended == Ended::Yes {
        Some(Phase::Ended)
    } else if signs.bracket == Bracket::Running {
        Some(Phase::Compacting)
    } else if let Some(asked) = asked(signs, rests) {
        Some(asked)
    } else if !open && signs.newer == Some(Newer::Works) {
        Some(Phase::Working)
    } else if !open && signs.plan == Plan::Waits {
        Some(Phase::Question)
    } else if !open && signs.last_turn == Some(Outcome::Error) {
        Some(Phase::Error)
    } else if rests {
        Some(Phase::YourTurn)
    } else if open {
        Some(at_work(signs))
    } else if signs.holder != Holder::Alive && signs.tail == Tail::Trailer {
        Some(Phase::ProbablyLeft)
    } else if signs.turn == Turn::None {
        None
    } else {
        match signs.rank {
            Rank::Top => Some(Phase::YourTurn),
            Rank::Nested => Some(Phase::Returned),
        }
    }
}

fn is_open(turn: Turn) -> bool {
    match turn {
        Turn::Open => true,
        Turn::None | Turn::Closed | Turn::Interrupted => false,
    }
}

/// What a human is asked. A plan's approval is announced as a permission, and is a question.
fn asked(signs: &Signs<'_>, rests: bool) -> Option<Phase> {
    let calls = if rests { &[] } else { signs.calls };
    let questions = calls.iter().filter(|name| is_question(name)).count();
    let only_questions = questions > 0 && questions == calls.len();
    let leave = signs.asks == Some(Asks::Approval) && !only_questions;
    if leave || signs.approvals > 0 {
        Some(Phase::NeedsApproval)
    } else {
        (signs.asks.is_some() || questions > 0).then_some(Phase::Question)
    }
}

fn at_work(signs: &Signs<'_>) -> Phase {
    match (signs.calls.is_empty(), signs.holder) {
        (false, Holder::Gone) => Phase::ToolGone,
        (false, Holder::Alive | Holder::Unknown) => Phase::Tool,
        (true, Holder::Gone) => Phase::WorkingGone,
        (true, Holder::Alive | Holder::Unknown) => Phase::Working,
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
        rank: Rank::Top,
        bracket: Bracket::Quiet,
        asks: None,
        newer: None,
        approvals: 0,
        calls: &[],
        plan: Plan::None,
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
    #[case::plan_to_approve(Signs { plan: Plan::Waits, ..CLOSED }, Some(Phase::Question))]
    #[case::plan_of_an_earlier_turn(Signs { plan: Plan::Waits, ..OPEN }, Some(Phase::Working))]
    #[case::plan_of_a_session_that_ended(
        Signs { plan: Plan::Waits, ended: Ended::Yes, ..CLOSED }, Some(Phase::Ended)
    )]
    #[case::codex_question(Signs { calls: &["request_user_input"], ..OPEN }, Some(Phase::Question))]
    #[case::dsh_question(Signs { calls: &["ask_user_question"], ..OPEN }, Some(Phase::Question))]
    #[case::dsh_plan(Signs { calls: &["exit_plan_mode"], ..OPEN }, Some(Phase::Question))]
    #[case::process_wants_an_answer(
        Signs { asks: Some(Asks::Answer), ..OPEN }, Some(Phase::Question)
    )]
    #[case::process_wants_leave(
        Signs { asks: Some(Asks::Approval), calls: &["Bash"], ..OPEN }, Some(Phase::NeedsApproval)
    )]
    #[case::a_plan_is_announced_as_a_permission(
        Signs { asks: Some(Asks::Approval), calls: &["ExitPlanMode"], ..OPEN },
        Some(Phase::Question)
    )]
    #[case::a_permission_beside_a_question(
        Signs { asks: Some(Asks::Approval), calls: &["AskUserQuestion", "Bash"], ..OPEN },
        Some(Phase::NeedsApproval)
    )]
    #[case::rests_although_a_turn_looks_open(
        Signs { newer: Some(Newer::Rests), ..OPEN }, Some(Phase::YourTurn)
    )]
    #[case::rests_although_a_call_looks_open(
        Signs { newer: Some(Newer::Rests), calls: &["Bash"], ..OPEN }, Some(Phase::YourTurn)
    )]
    #[case::rests_although_a_question_looks_open(
        Signs { newer: Some(Newer::Rests), calls: &["AskUserQuestion"], ..OPEN },
        Some(Phase::YourTurn)
    )]
    #[case::rests_after_an_error(
        Signs { newer: Some(Newer::Rests), last_turn: Some(Outcome::Error), ..CLOSED },
        Some(Phase::Error)
    )]
    #[case::works_although_the_turn_is_closed(
        Signs { newer: Some(Newer::Works), ..CLOSED }, Some(Phase::Working)
    )]
    #[case::works_after_an_error(
        Signs { newer: Some(Newer::Works), last_turn: Some(Outcome::Error), ..CLOSED },
        Some(Phase::Working)
    )]
    #[case::works_before_any_turn(
        Signs { newer: Some(Newer::Works), ..NOTHING }, Some(Phase::Working)
    )]
    #[case::works_at_a_call(
        Signs { newer: Some(Newer::Works), calls: &["Bash"], ..OPEN }, Some(Phase::Tool)
    )]
    #[case::works_and_compacts(
        Signs { newer: Some(Newer::Works), bracket: Bracket::Running, ..CLOSED },
        Some(Phase::Compacting)
    )]
    #[case::gone_in_a_turn(Signs { holder: Holder::Gone, ..OPEN }, Some(Phase::WorkingGone))]
    #[case::gone_in_a_tool(
        Signs { holder: Holder::Gone, calls: &["Bash"], ..OPEN }, Some(Phase::ToolGone)
    )]
    #[case::gone_after_its_turn(Signs { holder: Holder::Gone, ..CLOSED }, Some(Phase::YourTurn))]
    #[case::gone_with_a_trailer(
        Signs { holder: Holder::Gone, tail: Tail::Trailer, ..CLOSED }, Some(Phase::ProbablyLeft)
    )]
    #[case::returned(Signs { rank: Rank::Nested, ..CLOSED }, Some(Phase::Returned))]
    #[case::returned_when_interrupted(
        Signs { rank: Rank::Nested, turn: Turn::Interrupted, ..CLOSED }, Some(Phase::Returned)
    )]
    #[case::returned_with_an_error(
        Signs { rank: Rank::Nested, last_turn: Some(Outcome::Error), ..CLOSED },
        Some(Phase::Error)
    )]
    #[case::a_sub_agent_at_work(Signs { rank: Rank::Nested, ..OPEN }, Some(Phase::Working))]
    #[case::a_sub_agent_that_said_nothing(Signs { rank: Rank::Nested, ..NOTHING }, None)]
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
