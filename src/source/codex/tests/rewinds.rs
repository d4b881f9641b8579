//! Turns that were taken back: what they said of the session no longer counts, what they cost does.

use rstest::rstest;
use serde_json::{Value as Json, json};

use super::super::super::Outcome::{Aborted, Completed, Error};
use super::super::super::Turn::{self, Closed, Open};
use super::super::super::facts::{Facts, Part, merge};
use super::super::super::testing::{hint, read};
use super::super::super::{Agent, Outcome};
use super::{NOW, Tape, own_id, stem_of, uuid7};

/// A turn with a prompt, an answer and a request.
fn turn<'t>(tape: &'t mut Tape, id: &str, text: &str) -> &'t mut Tape {
    let [input, cached, output] = tape.total;
    tape.second += 1;
    tape.start(id).prompt(&format!("ask {id}")).answer(text);
    tape.tokens(input + 1000, cached, output + 10).complete(id)
}

fn failed<'t>(tape: &'t mut Tape, id: &str) -> &'t mut Tape {
    tape.second += 1;
    tape.start(id).prompt("again");
    tape.event("task_complete", &json!({"turn_id": id, "error": {"message": "no"}}))
}

fn back(tape: &mut Tape, turns: u64) -> &mut Tape {
    tape.second += 1;
    tape.event("thread_rolled_back", &json!({"num_turns": turns}))
}

/// Turn, outcome, error and text.
fn says(facts: &Facts) -> (Turn, Option<Outcome>, Option<&str>, Option<&str>) {
    let error = facts.last_error.as_deref();
    (facts.turn, facts.last_turn, error, facts.newest_text())
}

#[test]
fn a_turn_that_was_rolled_back_says_nothing_more_and_its_tokens_are_spent() {
    let mut tape = Tape::new();
    turn(&mut tape, "a", "first");
    let before = tape.facts();
    turn(&mut tape, "b", "second");
    failed(&mut tape, "c");
    assert_eq!(says(&tape.facts()), (Closed, Some(Error), Some("error no"), Some("second")));
    back(&mut tape, 2);
    let facts = tape.facts();
    assert_eq!(says(&facts), (Closed, Some(Completed), None, Some("first")));
    assert_eq!(facts.context_used, before.context_used);
    assert_eq!(facts.tokens.total(), 2020);
    turn(&mut tape, "d", "third");
    assert_eq!(says(&tape.facts()), (Closed, Some(Completed), None, Some("third")));
    assert_eq!(tape.facts().context_used, Some(1010), "also one as full as that taken back");
}

#[rstest]
#[case::none(0, Some("third"))]
#[case::one(1, Some("second"))]
#[case::two(2, Some("first"))]
#[case::all(3, None)]
#[case::more_than_there_are(9, None)]
#[case::beyond_reason(u64::MAX, None)]
fn so_many_turns_are_taken_back(#[case] turns: u64, #[case] want: Option<&str>) {
    let mut tape = Tape::new();
    for (id, text) in [("a", "first"), ("b", "second"), ("c", "third")] {
        turn(&mut tape, id, text);
    }
    back(&mut tape, turns);
    let facts = tape.facts();
    assert_eq!(facts.newest_text(), want);
    assert_eq!(facts.last_turn, want.map(|_| Completed));
    assert_eq!(facts.turn, Closed);
}

#[test]
fn only_what_a_human_asked_for_is_a_turn_to_take_back() {
    let mut tape = Tape::new();
    turn(&mut tape, "a", "first");
    turn(&mut tape, "b", "second");
    tape.start("manual").compacted().estimate(10).complete("manual");
    back(&mut tape, 1);
    let facts = tape.facts();
    assert_eq!(facts.newest_text(), Some("first"));
    assert_eq!(facts.context_used, Some(1010), "the compaction is taken back with what it packed");
}

#[test]
fn an_open_turn_that_is_taken_back_is_open_no_longer() {
    let mut tape = Tape::new();
    turn(&mut tape, "a", "first");
    tape.start("b").prompt("x").call("c");
    assert_eq!((tape.facts().turn, tape.facts().open_calls.len()), (Open, 1));
    back(&mut tape, 1);
    assert_eq!((tape.facts().turn, tape.facts().open_calls.len()), (Closed, 0));
    tape.aborted("b");
    assert_eq!(tape.facts().last_turn, Some(Completed), "its late end says nothing");
    turn(&mut tape, "d", "next");
    assert_eq!(tape.facts().last_turn, Some(Completed));
}

#[test]
fn a_plan_that_was_taken_back_waits_for_nobody() {
    let mut tape = Tape::new();
    let start = json!({"turn_id": "a", "collaboration_mode_kind": "plan"});
    tape.event("task_started", &start).prompt("plan it");
    tape.done(&json!({"type": "Plan", "id": "p", "text": "1."})).complete("a");
    assert!(tape.facts().plan.is_some());
    back(&mut tape, 1);
    assert_eq!(tape.facts().plan, None);
}

#[test]
fn prompts_before_there_were_task_events_begin_turns() {
    let mut tape = Tape::new();
    tape.prompt("one").answer("first").prompt("two").answer("second");
    back(&mut tape, 1);
    assert_eq!(tape.facts().newest_text(), Some("first"));
}

#[test]
fn of_a_conversation_taken_back_behind_what_is_remembered_nothing_is_known() {
    let mut tape = Tape::new();
    for number in 0..40 {
        turn(&mut tape, &format!("t-{number}"), &format!("answer {number}"));
    }
    let mut near = tape.clone();
    back(&mut near, 10);
    assert_eq!(near.facts().newest_text(), Some("answer 29"));
    back(&mut tape, 30);
    let facts = tape.facts();
    assert_eq!(says(&facts), (Closed, None, None, None));
    assert_eq!(facts.context_used, None);
}

// ---- a new rollout that goes on from an earlier place ----

/// A rollout of this thread: the first, or one that goes on with another.
fn part(stem: &str, tape: &Tape) -> Part {
    let read = read(Agent::Codex, &hint(stem), &tape.bytes(), NOW);
    Part { facts: read.own().clone(), tie: stem.to_owned() }
}

/// The first rollout: a turn that went well, one more, and one that failed.
fn first() -> Tape {
    let mut tape = Tape { ordinal: Some(0), ..Tape::default() };
    tape.meta(&own_id(), &json!({"history_mode": "paginated"}));
    turn(&mut tape, "a", "first");
    turn(&mut tape, "b", "second");
    failed(&mut tape, "c");
    tape
}

/// The ordinal and the byte at which a turn of a rollout begins.
fn begin(tape: &Tape, turn: &str) -> (u64, u64) {
    let mark = format!("\"turn_id\":\"{turn}\"");
    let at =
        tape.lines.iter().position(|line| line.contains("task_started") && line.contains(&mark));
    let at = at.unwrap();
    let line: Json = serde_json::from_str(&tape.lines[at]).unwrap();
    let bytes: usize = tape.lines[..at].iter().map(|line| line.len() + 1).sum();
    (line["ordinal"].as_u64().unwrap(), bytes as u64)
}

fn rewound(second: i64, base: &str, (ordinal, byte): (u64, u64)) -> Tape {
    let mut tape = Tape { ordinal: Some(ordinal), second, ..Tape::default() };
    tape.meta(
        &own_id(),
        &json!({"history_mode": "paginated", "history_base": {"thread_id": base,
            "end_ordinal_exclusive": ordinal, "end_byte_offset": byte}}),
    );
    tape.event("thread_settings_applied", &json!({"thread_settings": {"model": "gpt-6"}}));
    tape
}

/// The stem of the rollout with which the thread goes on.
fn stem_with(rollout: &str) -> String {
    format!("{}_{rollout}", stem_of(&own_id()))
}

fn merged(mut parts: Vec<Part>) -> Facts {
    let facts = merge(parts.clone(), &[]).unwrap();
    parts.reverse();
    assert_eq!(merge(parts, &[]).unwrap(), facts, "in whatever order they are read");
    facts
}

#[test]
fn a_rollout_that_goes_on_from_an_earlier_turn_takes_back_what_followed() {
    let first = first();
    let old = part(&stem_of(&own_id()), &first);
    assert_eq!(old.facts.last_turn, Some(Error));
    let rollout = uuid7(20, 15);
    let mut tape = rewound(20, &own_id(), begin(&first, "b"));
    let facts = merged(vec![old.clone(), part(&stem_with(&rollout), &tape)]);
    assert_eq!(says(&facts), (Closed, Some(Completed), None, Some("first")));
    assert_eq!(facts.context_used, Some(1010));
    assert_eq!(facts.tokens.total(), 2020, "spent");
    tape.total = [2000, 0, 20];
    turn(&mut tape, "d", "another");
    let facts = merged(vec![old, part(&stem_with(&rollout), &tape)]);
    assert_eq!(says(&facts), (Closed, Some(Completed), None, Some("another")));
    assert_eq!(facts.tokens.total(), 3030);
}

#[test]
fn a_record_that_comes_late_to_the_old_rollout_changes_nothing() {
    let mut first = first();
    let place = begin(&first, "b");
    first.at(60).done(&json!({"type": "CommandExecution", "id": "c", "command": ["ls"]}));
    let tape = rewound(20, &own_id(), place);
    let parts = vec![part(&stem_of(&own_id()), &first), part(&stem_with(&uuid7(20, 15)), &tape)];
    assert_eq!(says(&merged(parts)), (Closed, Some(Completed), None, Some("first")));
}

#[test]
fn where_a_thread_was_taken_back_twice_the_newest_rollout_says_from_where() {
    let first = first();
    let old = part(&stem_of(&own_id()), &first);
    let middle = uuid7(20, 15);
    let mut tape = rewound(20, &own_id(), begin(&first, "c"));
    turn(&mut tape, "d", "dropped");
    let dropped = part(&stem_with(&middle), &tape);
    let again = rewound(40, &own_id(), begin(&first, "b"));
    let newest = part(&stem_with(&uuid7(40, 16)), &again);
    let facts = merged(vec![old.clone(), dropped.clone(), newest]);
    assert_eq!(facts.newest_text(), Some("first"), "of the rollout in between nothing is left");
    turn(&mut tape, "e", "last");
    let upon = rewound(50, &middle, begin(&tape, "e"));
    let newest = part(&stem_with(&uuid7(50, 17)), &upon);
    let facts = merged(vec![old, part(&stem_with(&middle), &tape), newest]);
    assert_eq!(facts.newest_text(), Some("dropped"), "it goes on with the one in between");
}

#[test]
fn a_rollout_that_goes_on_at_the_end_takes_back_nothing() {
    let mut first = first();
    failed(&mut first, "z");
    let end = (first.ordinal.unwrap(), first.bytes().len() as u64);
    let tape = rewound(20, &own_id(), end);
    let parts = vec![part(&stem_of(&own_id()), &first), part(&stem_with(&uuid7(20, 15)), &tape)];
    assert_eq!(says(&merged(parts)), (Closed, Some(Error), Some("error no"), Some("second")));
}

#[test]
fn a_rollout_that_goes_on_from_the_very_begin_leaves_nothing_said() {
    let first = first();
    let tape = rewound(20, &own_id(), begin(&first, "a"));
    let parts = vec![part(&stem_of(&own_id()), &first), part(&stem_with(&uuid7(20, 15)), &tape)];
    assert_eq!(says(&merged(parts)), (Closed, None, None, None));
}

#[test]
fn a_fork_that_points_into_another_thread_takes_nothing_back() {
    let mut tape = rewound(20, &uuid7(-900, 3), (30, 9000));
    turn(&mut tape, "d", "mine");
    let facts = merged(vec![part(&stem_of(&own_id()), &tape)]);
    assert_eq!(says(&facts), (Closed, Some(Completed), None, Some("mine")));
}

#[test]
fn rollouts_that_name_each_other_end() {
    let [one, other] = [uuid7(20, 15), uuid7(30, 16)];
    let parts = vec![
        part(&stem_with(&one), &rewound(20, &other, (5, 100))),
        part(&stem_with(&other), &rewound(30, &one, (5, 100))),
    ];
    assert_eq!(merged(parts).last_turn, None);
}

#[rstest]
#[case(json!(7))]
#[case(json!("x"))]
#[case(json!({}))]
#[case(json!({"thread_id": [], "end_ordinal_exclusive": -1}))]
fn a_base_that_says_nothing_takes_back_nothing(#[case] base: Json) {
    let mut tape = Tape::with_meta(&json!({ "history_base": base }));
    turn(&mut tape, "a", "mine");
    tape.start("b").prompt("x").aborted("b");
    let facts = merged(vec![part(&stem_of(&own_id()), &tape)]);
    assert_eq!(says(&facts), (Closed, Some(Aborted), None, Some("mine")));
}
