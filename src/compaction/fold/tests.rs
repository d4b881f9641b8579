//! What a log of bracket events says: positions decide, never times and never ids.

use rstest::rstest;

use super::*;

fn start(seq: u64) -> Event {
    Event::Start { seq, at_ms: Some(seq.cast_signed() * 1000), turn: None, command: None }
}

fn owned(seq: u64, turn: i64) -> Event {
    Event::Start { seq, at_ms: None, turn: Some(turn), command: None }
}

fn asked(seq: u64, command: &str) -> Event {
    Event::Start { seq, at_ms: None, turn: None, command: Some(command.to_owned()) }
}

fn summary(seq: u64) -> Event {
    Event::Summary { seq, shadowed_tokens: Some(1200), summary_tokens: Some(60) }
}

fn replaced(seq: u64) -> Event {
    Event::Replaced { seq }
}

fn end(seq: u64) -> Event {
    Event::End { seq, at_ms: Some(seq.cast_signed() * 1000), error: None }
}

fn failed(seq: u64) -> Event {
    Event::End { seq, at_ms: None, error: Some("no room".to_owned()) }
}

fn seed(seq: u64) -> Event {
    Event::Boundary { seq, inherited: false }
}

fn cut_at(seq: u64) -> Event {
    Event::Boundary { seq, inherited: true }
}

fn edge(seq: u64) -> Event {
    Event::TurnEdge { seq }
}

fn done(seq: u64, command: &str) -> Event {
    Event::CommandDone { seq, command: command.to_owned() }
}

fn finished(seq: u64) -> Event {
    Event::Finished {
        seq,
        at_ms: Some(9),
        started_ms: Some(5),
        trigger: Some(Trigger::Auto),
        before_tokens: Some(100),
        after_tokens: Some(10),
    }
}

fn fold(events: &[Event]) -> Fold {
    let mut fold = Fold::default();
    for event in events {
        fold.fold(event);
    }
    fold
}

fn verdict(events: &[Event]) -> LogVerdict {
    fold(events).verdict()
}

#[rstest]
#[case::nothing(&[], Bracket::None, None, None, 0)]
#[case::marker_alone(&[seed(0)], Bracket::None, None, Some(0), 0)]
#[case::start(&[start(6)], Bracket::Open, Some(6), None, 0)]
#[case::start_after_marker(&[seed(6), start(7)], Bracket::Open, Some(7), Some(6), 0)]
#[case::start_before_marker(&[start(6), seed(7)], Bracket::Stale, Some(6), Some(7), 1)]
#[case::newest_marker(&[start(6), seed(7), seed(9)], Bracket::Stale, Some(6), Some(9), 1)]
#[case::lineage_marker(&[start(6), cut_at(7)], Bracket::Stale, Some(6), Some(7), 1)]
#[case::closed(&[start(6), end(9)], Bracket::Closed, Some(9), None, 0)]
#[case::closed_then_marker(&[start(6), end(9), seed(10)], Bracket::Closed, Some(9), Some(10), 0)]
#[case::failed(&[start(6), failed(7)], Bracket::Failed, Some(7), None, 0)]
#[case::end_alone(&[end(6)], Bracket::Closed, Some(6), None, 0)]
#[case::superseded(&[start(6), start(7), failed(8)], Bracket::Failed, Some(8), None, 1)]
#[case::late_end(&[start(6), seed(7), end(8)], Bracket::Closed, Some(8), Some(7), 1)]
#[case::again(&[start(6), seed(7), start(14)], Bracket::Open, Some(14), Some(7), 1)]
#[case::finished(&[finished(4711)], Bracket::Closed, Some(4711), None, 0)]
fn the_newest_start_or_end_and_the_newest_marker_decide(
    #[case] events: &[Event],
    #[case] bracket: Bracket,
    #[case] decisive: Option<u64>,
    #[case] end_seed: Option<u64>,
    #[case] orphans: u64,
) {
    let found = verdict(events);
    let facts = (found.bracket, found.decisive_seq, found.end_seed_seq, found.orphans);
    assert_eq!(facts, (bracket, decisive, end_seed, orphans));
}

#[rstest]
#[case::started(&[start(6)], Some(Phase::Started))]
#[case::summarized(&[start(6), summary(7)], Some(Phase::Summarized))]
#[case::replaced(&[start(6), summary(7), replaced(8)], Some(Phase::Replaced))]
#[case::replaced_then_stale(&[start(6), replaced(8), seed(9)], Some(Phase::Replaced))]
#[case::not_after_the_marker(&[start(6), seed(7), summary(8), replaced(9)], Some(Phase::Started))]
#[case::closed(&[start(6), summary(7), replaced(8), end(9)], None)]
#[case::none(&[summary(7), replaced(8)], None)]
fn the_phase_is_that_of_the_bracket_it_stands_in(
    #[case] events: &[Event],
    #[case] phase: Option<Phase>,
) {
    assert_eq!(verdict(events).phase, phase);
}

#[test]
fn only_an_open_bracket_notices_turns_and_commands() {
    let over = verdict(&[owned(6, 2), edge(7), edge(9)]).attempt.unwrap();
    assert_eq!((over.turn_over_seq, over.owner), (Some(7), Some(Owner::Turn(2))));
    let later = verdict(&[start(6), seed(7), edge(8)]).attempt.unwrap();
    assert_eq!(later.turn_over_seq, None);
    let lost = verdict(&[asked(6, "c1"), done(7, "c0"), done(8, "c1")]).attempt.unwrap();
    assert_eq!((lost.command_done_seq, lost.trigger), (Some(8), Some(Trigger::Manual)));
}

#[test]
fn a_finished_attempt_carries_what_was_told_of_it() {
    let attempt = verdict(&[owned(6, 2), summary(7), replaced(8), end(9)]).attempt.unwrap();
    let expected = Attempt {
        start_seq: Some(6),
        end_seq: Some(9),
        bracket: Bracket::Closed,
        phase: Phase::Replaced,
        trigger: Some(Trigger::Auto),
        owner: Some(Owner::Turn(2)),
        started_ms: None,
        ended_ms: Some(9000),
        error: None,
        before_tokens: Some(1200),
        after_tokens: Some(60),
        estimated: true,
        inherited: false,
        boundary_seq: None,
        superseded_seq: None,
        turn_over_seq: None,
        command: None,
        command_done_seq: None,
    };
    assert_eq!(attempt, expected);
}

#[test]
fn only_own_successes_count() {
    let events = [start(1), end(2), start(3), failed(4), start(5), seed(6), end(8), finished(9)];
    assert_eq!(fold(&events).count, 3);
    let lineage = [Event::Lineage { until_seq: 5 }, start(1), end(2), seed(5), start(6), end(7)];
    assert_eq!(fold(&lineage).count, 1);
    let marked = [start(1), end(2), cut_at(3), start(4), end(5), cut_at(6)];
    assert_eq!(fold(&marked).count, 0);
}

#[test]
fn what_came_before_the_cut_is_inherited_and_still_decides() {
    let of = |events: &[Event]| {
        let found = verdict(events);
        (found.bracket, found.attempt.unwrap().inherited)
    };
    let v0 = [Event::Lineage { until_seq: 7 }, start(6)];
    assert_eq!(of(&v0), (Bracket::Open, true));
    assert_eq!(of(&[start(6), cut_at(7)]), (Bracket::Stale, true));
    assert_eq!(of(&[start(6), cut_at(7), start(9)]), (Bracket::Open, false));
}

#[test]
fn the_fold_is_bounded_and_keeps_the_newest() {
    let mut fold = Fold::default();
    for seq in 0..1000 {
        fold.fold(&Event::End { seq, at_ms: None, error: Some("é".repeat(5000)) });
    }
    let seqs: Vec<_> = fold.attempts().map(|attempt| attempt.end_seq).collect();
    assert_eq!(seqs, (968..1000).map(Some).collect::<Vec<_>>());
    let kept = fold.attempts().next().unwrap().error.as_ref().unwrap().chars().count();
    assert_eq!(kept, TEXT_CHARS_MAX);
}

#[rstest]
#[case::newer_says_nothing(&[start(6)], &[], Bracket::Open, 0)]
#[case::newer_has_a_boundary(&[start(6)], &[seed(0)], Bracket::Stale, 1)]
#[case::newer_starts(&[start(6)], &[start(2)], Bracket::Open, 1)]
#[case::newer_ends(&[start(6)], &[finished(2)], Bracket::Closed, 1)]
#[case::older_is_closed(&[start(6), end(7)], &[start(1), seed(2)], Bracket::Stale, 1)]
#[case::older_says_nothing(&[], &[start(1)], Bracket::Open, 0)]
fn a_merge_puts_the_older_log_before(
    #[case] older: &[Event],
    #[case] newer: &[Event],
    #[case] bracket: Bracket,
    #[case] orphans: u64,
) {
    let mut merged = fold(newer);
    merged.add_older(&fold(older));
    let found = merged.verdict();
    assert_eq!((found.bracket, found.orphans), (bracket, orphans));
    assert_eq!(merged.count, fold(older).count + fold(newer).count);
    let json = serde_json::to_string(&merged).unwrap();
    assert_eq!(serde_json::from_str::<Fold>(&json).unwrap(), merged);
}

#[test]
fn an_older_fold_reads_from_the_count_alone() {
    // Rows written before brackets were folded held only the count.
    let fold: Fold = serde_json::from_str(r#"{"count":3}"#).unwrap();
    assert_eq!((fold.count, fold.verdict().bracket), (3, Bracket::None));
}

fn compacted(at: u64) -> Event {
    compacted_at(at, at * 100)
}

/// The compaction of moment `at`, standing at `seq`.
fn compacted_at(at: u64, seq: u64) -> Event {
    Event::Finished {
        seq,
        at_ms: Some(at.cast_signed() * 1000),
        started_ms: None,
        trigger: Some(Trigger::Auto),
        before_tokens: Some(9),
        after_tokens: Some(1),
    }
}

fn joined(older: &[Event], newer: &[Event]) -> Fold {
    let fold = |events: &[Event]| {
        let mut fold = Fold::default();
        for event in events {
            fold.fold(event);
        }
        fold
    };
    let mut both = fold(newer);
    both.add_older(&fold(older));
    both
}

#[test]
fn a_compaction_that_stands_in_two_copies_counts_once() {
    let log: Vec<Event> = (1..4).map(compacted).collect();
    assert_eq!(joined(&log, &log), joined(&[], &log));
    assert_eq!(joined(&log[..2], &log).count, 3, "an older copy");
    let parted = joined(&log, &[compacted(1), compacted(2), compacted(7)]);
    assert_eq!((parted.count, parted.attempts().count()), (4, 4), "each went on for itself");
    let shifted = [compacted_at(1, 7), compacted(2)];
    assert_eq!(joined(&log[..1], &shifted).count, 2, "other positions, since a head was cut");
    assert_eq!(joined(&log[..1], &log[1..]).count, 3, "two parts of one history");
}

#[test]
fn of_long_copies_also_those_count_once_that_are_forgotten() {
    let many = u64::try_from(ATTEMPTS_MAX).unwrap() + 40;
    let log: Vec<Event> = (1..=many).map(compacted).collect();
    assert_eq!(joined(&log, &log).count, many);
    let on = [log.clone(), vec![compacted(many + 1)]].concat();
    assert_eq!(joined(&log, &on).count, many + 1);
}
