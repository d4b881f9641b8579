//! The lattice of design section 5 as a decision table, and what each why-line names.

use rstest::rstest;

use super::super::{Event, Fold};
use super::*;

const START_MS: i64 = 1_000_000;
const LATER_MS: i64 = START_MS + 60_000;

fn log(events: &[Event]) -> LogVerdict {
    let mut fold = Fold::default();
    for event in events {
        fold.fold(event);
    }
    fold.verdict()
}

fn start() -> Event {
    let command = Some("c1".to_owned());
    Event::Start { seq: 7, at_ms: Some(START_MS), turn: Some(2), command }
}

fn seed(seq: u64) -> Event {
    Event::Boundary { seq, inherited: false }
}

fn end(error: Option<&str>) -> Event {
    Event::End { seq: 9, at_ms: None, error: error.map(str::to_owned) }
}

fn done() -> Event {
    Event::CommandDone { seq: 11, command: "c1".to_owned() }
}

fn held(started_ms: impl Into<Option<i64>>) -> Lock {
    Lock::Held { pid: 4242, started_ms: started_ms.into() }
}

fn with(lock: Lock) -> BracketEvidence {
    BracketEvidence {
        session_ended: false,
        lock,
        clock_stepped: false,
        other_writer_possible: false,
    }
}

fn ended(lock: Lock) -> BracketEvidence {
    BracketEvidence { session_ended: true, ..with(lock) }
}

fn stepped(lock: Lock) -> BracketEvidence {
    BracketEvidence { clock_stepped: true, ..with(lock) }
}

fn shared() -> BracketEvidence {
    BracketEvidence { other_writer_possible: true, ..with(Lock::Unknown) }
}

const OLDER: i64 = START_MS - 5_000;
const YOUNGER: i64 = START_MS + START_SLACK_MS + 1;

#[rstest]
#[case::unknown(&[start()], with(Lock::Unknown), State::Unverified, None)]
#[case::free(&[start()], with(Lock::Free), State::WriterGone, Some(false))]
#[case::older(&[start()], with(held(OLDER)), State::Compacting, Some(true))]
#[case::older_after_a_step(&[start()], stepped(held(OLDER)), State::Compacting, Some(true))]
#[case::in_the_slack(&[start()], with(held(YOUNGER - 1)), State::Compacting, Some(true))]
#[case::younger(&[start()], with(held(YOUNGER)), State::BoundaryPending, Some(false))]
#[case::younger_after_a_step(&[start()], stepped(held(YOUNGER)), State::Unverified, None)]
#[case::holder_without_a_time(&[start()], with(held(None)), State::Unverified, None)]
#[case::turn_over(
    &[start(), Event::TurnEdge { seq: 8 }], with(held(OLDER)), State::Abandoned, Some(false)
)]
#[case::turn_over_and_free(
    &[start(), Event::TurnEdge { seq: 8 }], with(Lock::Free), State::Abandoned, Some(false)
)]
#[case::command_done(&[start(), done()], with(held(OLDER)), State::CloseLost, Some(false))]
#[case::command_done_first(
    &[start(), Event::TurnEdge { seq: 8 }, done()], with(Lock::Free), State::CloseLost, Some(false)
)]
#[case::session_ended(&[start()], ended(Lock::Unknown), State::SessionEnded, Some(false))]
#[case::session_ended_and_held(&[start()], ended(held(OLDER)), State::SessionEnded, Some(false))]
fn an_open_bracket_is_what_the_evidence_says(
    #[case] events: &[Event],
    #[case] evidence: BracketEvidence,
    #[case] expected: State,
    #[case] running: Option<bool>,
) {
    let found = state(&log(events), &evidence, LATER_MS);
    assert_eq!((found.state, found.running), (expected, running));
    assert_eq!((found.blocking, found.age_ms), (true, Some(60_000)));
    assert!(found.why.starts_with("start at seq 7, no end-seed after it; "), "{}", found.why);
    assert!(!found.attention);
}

#[rstest]
#[case::none(&[], with(Lock::Free), State::None)]
#[case::marker_alone(&[seed(0)], shared(), State::None)]
#[case::closed(&[start(), end(None)], ended(Lock::Free), State::Closed)]
#[case::failed(&[start(), end(Some("no"))], with(held(OLDER)), State::Failed)]
#[case::stale(&[start(), seed(8)], with(held(OLDER)), State::Stale)]
#[case::stale_in_an_ended_session(&[start(), seed(8)], ended(Lock::Unknown), State::Stale)]
#[case::stale_and_shared(&[start(), seed(8)], shared(), State::StaleUnsure)]
fn what_is_not_open_blocks_nothing(
    #[case] events: &[Event],
    #[case] evidence: BracketEvidence,
    #[case] expected: State,
) {
    let found = state(&log(events), &evidence, LATER_MS);
    assert_eq!((found.state, found.blocking, found.age_ms), (expected, false, None));
    assert!(!found.state.is_verified_work() && !found.attention);
}

#[rstest]
#[case::at_the_limit(STUCK_AFTER_MS, State::Compacting, Some(true))]
#[case::past_it(STUCK_AFTER_MS + 1, State::Stuck, None)]
#[case::clock_behind(-5_000, State::Compacting, Some(true))]
fn a_long_compaction_is_doubted(
    #[case] age_ms: i64,
    #[case] expected: State,
    #[case] running: Option<bool>,
) {
    let found = state(&log(&[start()]), &with(held(OLDER)), START_MS + age_ms);
    assert_eq!((found.state, found.running), (expected, running));
    assert_eq!(found.attention, expected == State::Stuck);
    assert_eq!(found.age_ms, Some(age_ms.max(0)));
    assert!(found.state.is_verified_work());
}

#[test]
fn a_start_without_a_stamp_compares_with_nothing() {
    let unstamped = Event::Start { seq: 7, at_ms: None, turn: None, command: None };
    let found = state(&log(&[unstamped]), &with(held(OLDER)), LATER_MS);
    assert_eq!((found.state, found.age_ms), (State::Unverified, None));
}

#[rstest]
#[case(
    &[start()],
    with(held(OLDER)),
    "start at seq 7, no end-seed after it; lock held by pid 4242 since before the start"
)]
#[case(
    &[start(), done()],
    ended(Lock::Free),
    "start at seq 7, no end-seed after it; its command was done at seq 11, so its close was \
     lost; the session has ended"
)]
#[case(
    &[start(), seed(8)],
    shared(),
    "start at seq 7, end-seed at seq 8 after it: left by an earlier lifecycle; this log has no \
     locks, and an older dsh process is alive"
)]
#[case(
    &[start(), Event::Replaced { seq: 8 }, Event::Boundary { seq: 9, inherited: true }],
    with(Lock::Unknown),
    "start at seq 7, end-seed at seq 9 after it: inherited at the fork; whose lifecycle it was, is \
     the parent's affair; the messages had been replaced already"
)]
#[case(&[start(), end(None)], with(Lock::Free), "end at seq 9 closes the start at seq 7")]
#[case(&[end(None)], with(Lock::Free), "end at seq 9, no start before it")]
#[case(&[end(Some("x"))], with(Lock::Free), "end at seq 9 carries an error, no start before it")]
fn the_reason_names_the_positions(
    #[case] events: &[Event],
    #[case] evidence: BracketEvidence,
    #[case] why: &str,
) {
    assert_eq!(state(&log(events), &evidence, LATER_MS).why, why);
}
