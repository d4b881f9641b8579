//! Several records tell of one compaction.

use rstest::rstest;
use serde_json::json;

use super::super::super::Outcome::Completed;
use super::super::super::facts::Counts;
use super::super::super::{MessageKind, MessageSource, What};
use super::{T0, Tape, finished, message, own_id, rows};
use crate::compaction::{Event, Trigger};

#[rstest]
#[case::legacy(&["compacted", "world", "estimate", "event"], 1)]
#[case::paginated(&["compacted", "estimate", "item"], 1)]
#[case::migrated(&["compacted", "event", "item"], 1)]
#[case::event_alone(&["event"], 1)]
#[case::item_first(&["item", "compacted"], 1)]
#[case::two_records(&["compacted", "compacted"], 2)]
#[case::work_between(&["compacted", "event", "call", "compacted", "event"], 2)]
#[case::turn_between(&["compacted", "start", "event"], 2)]
fn the_records_of_one_compaction_count_once(
    #[case] steps: &[&str],
    #[case] want: u64,
    #[values(false, true)] paginated: bool,
) {
    let mut tape = Tape { ordinal: paginated.then_some(0), ..Tape::default() };
    tape.meta(&own_id(), &json!({})).start("a").prompt("x");
    for step in steps {
        tape.second += 1;
        match *step {
            "compacted" => tape.compacted(),
            "world" => tape.line("world_state", &json!({})),
            "estimate" => tape.estimate(4000),
            "event" => tape.event("context_compacted", &json!({})),
            "item" => tape.done(&json!({"type": "ContextCompaction", "id": "k"})),
            "call" => tape.call("c"),
            "start" => tape.start("b"),
            other => panic!("{other}"),
        };
    }
    tape.answer("go on");
    let read = tape.read();
    assert_eq!(read.own().compaction.count, want);
    let notes = rows(&read).iter().filter(|(kind, _, _)| *kind == MessageKind::Note).count();
    assert_eq!(notes as u64, want);
}

#[test]
fn a_compaction_that_is_written_twice_counts_once() {
    let mut tape = Tape { ordinal: Some(0), ..Tape::default() };
    tape.meta(&own_id(), &json!({})).start("a").prompt("x");
    let first = tape.lines.len();
    tape.at(20).compacted().estimate(4000);
    tape.at(21).done(&json!({"type": "ContextCompaction", "id": "k"}));
    let block = tape.lines[first..].to_vec();
    tape.lines.extend(block);
    tape.at(30).answer("go on");
    assert_eq!(tape.facts().compaction.count, 1);
    tape.at(40).compacted().done(&json!({"type": "ContextCompaction", "id": "l"})).answer("z");
    assert_eq!(tape.facts().compaction.count, 2);
}

#[test]
fn compactions_of_two_turns_at_one_moment_are_two() {
    let mut tape = Tape::new();
    for turn in ["a", "b"] {
        tape.at(20).start(turn).compacted().event("context_compacted", &json!({}));
        tape.complete(turn);
    }
    assert_eq!(tape.facts().compaction.count, 2);
}

#[test]
fn a_compaction_alone_in_its_turn_is_manual_and_began_with_it() {
    let mut tape = Tape::new();
    tape.at(10).start("a").at(20).compacted().event("context_compacted", &json!({}));
    tape.complete("a");
    let manual = (Some(T0 + 20_000), Some(T0 + 10_000), Some(Trigger::Manual));
    assert_eq!(finished(&tape.read()), [manual]);
}

#[test]
fn a_compaction_amid_work_is_automatic_and_its_start_unknown() {
    let mut tape = Tape::new();
    tape.at(10).start("a").prompt("x").at(20).compacted();
    assert_eq!(finished(&tape.read()), [(Some(T0 + 20_000), None, Some(Trigger::Auto))]);
}

#[test]
fn a_compaction_between_turns_has_no_trigger() {
    let mut tape = Tape::new();
    tape.at(10).start("a").prompt("x").answer("y").complete("a").at(20).compacted();
    assert_eq!(finished(&tape.read()), [(Some(T0 + 20_000), None, None)]);
}

#[test]
fn the_item_of_a_paginated_compaction_tells_start_and_end() {
    let mut tape = Tape { ordinal: Some(0), ..Tape::default() };
    tape.meta(&own_id(), &json!({})).start("a").prompt("x").tokens(9000, 0, 100);
    tape.at(20).compacted().estimate(4000);
    tape.event(
        "item_completed",
        &json!({"item": {"type": "ContextCompaction"},
            "started_at_ms": T0 + 11_000, "completed_at_ms": T0 + 21_000}),
    );
    let read = tape.read();
    let events: Vec<_> = read
        .records
        .iter()
        .filter_map(|record| match &record.what {
            What::Compaction(event) => Some(event.clone()),
            _ => None,
        })
        .collect();
    let compacted = tape.lines.iter().position(|line| line.contains("compacted\"")).unwrap();
    let seq: usize = tape.lines.iter().take(compacted).map(|line| line.len() + 1).sum();
    assert_eq!(
        events,
        [Event::Finished {
            seq: seq as u64,
            at_ms: Some(T0 + 21_000),
            started_ms: Some(T0 + 11_000),
            trigger: Some(Trigger::Auto),
            before_tokens: Some(9100),
            after_tokens: Some(4000),
        }]
    );
}

#[test]
fn a_paginated_compaction_without_its_item_counts_when_the_turn_goes_on() {
    let mut tape = Tape { ordinal: Some(0), ..Tape::default() };
    tape.meta(&own_id(), &json!({})).start("a").compacted().complete("a");
    assert_eq!(finished(&tape.read()), [(Some(T0), Some(T0), Some(Trigger::Manual))]);
}

#[test]
fn replacement_history_is_never_read() {
    let mut tape = Tape::new();
    tape.compacted();
    let read = tape.read();
    assert_eq!(read.own().prompts, Counts::default());
    assert_eq!(
        rows(&read),
        [(MessageKind::Note, MessageSource::Primary, "context compacted".into())]
    );
}

/// A manual compaction as 0.171 writes it: nobody asked, and the summary comes as an answer.
fn manual(tape: &mut Tape, metadata: &str) {
    tape.at(10).event("task_started", &json!({"turn_id": "b", "root_turn_id": "b"}));
    let summary = message("assistant", "output_text", "SUMMARY");
    tape.at(19).item(&summary);
    let line = tape.lines.pop().unwrap();
    let line = line.replace("{\"payload\"", &format!("{{{metadata}\"payload\""));
    tape.raw(&line);
    tape.at(20).compacted().estimate(4000);
}

#[rstest]
#[case::marked("\"metadata\":{\"compaction_output\":true},")]
#[case::of_a_turn_that_nobody_began("")]
fn a_compaction_whose_summary_comes_as_an_answer_is_manual(#[case] metadata: &str) {
    let mut tape = Tape::new();
    tape.at(1).start("a").prompt("x").answer("y").complete("a");
    manual(&mut tape, metadata);
    assert_eq!(
        finished(&tape.read()),
        [(Some(T0 + 20_000), Some(T0 + 10_000), Some(Trigger::Manual))]
    );
    tape.complete("b");
    assert_eq!(tape.facts().last_turn, Some(Completed));
}

#[test]
fn the_output_of_a_compaction_is_no_answer() {
    let mut tape = Tape::new();
    tape.at(1).start("a").item(&message("user", "input_text", "x"));
    tape.item(&message("assistant", "output_text", "y")).complete("a");
    manual(&mut tape, "\"metadata\":{\"compaction_output\":true},");
    let facts = tape.facts();
    assert_eq!(facts.answers.chosen(), 1);
    assert_eq!(facts.newest_text(), Some("y"));
    assert_eq!(facts.last_activity_ms, Some(T0 + 20_000));
}

#[test]
fn a_compaction_in_a_turn_that_somebody_began_is_automatic() {
    let mut tape = Tape::new();
    let start = json!({"turn_id": "a", "root_turn_id": "a",
        "turn_attribution": {"turn_trigger": "agent"}});
    tape.at(1).event("task_started", &start).call("c").output("c").compacted();
    assert_eq!(finished(&tape.read())[0].2, Some(Trigger::Auto));
}
