//! Which turns are open, and how each ends.

use rstest::rstest;
use serde_json::{Value as Json, json};

use super::super::super::Outcome::{Aborted, Completed, Error};
use super::super::super::Turn::{Closed, Open};
use super::super::super::{Outcome, Turn};
use super::Tape;

#[rstest]
#[case::answered(&["start a", "prompt", "answer", "complete a"], Closed, Some(Completed))]
#[case::only_calls(&["start a", "prompt", "call", "complete a"], Closed, Some(Completed))]
#[case::no_answer(&["start a", "prompt", "complete a"], Closed, Some(Error))]
#[case::empty(&["start a", "complete a"], Closed, None)]
#[case::compaction_only(&["start a", "compacted", "complete a"], Closed, Some(Completed))]
#[case::under_way(&["start a", "prompt", "answer"], Open, None)]
#[case::no_prompt(&["start a"], Open, None)]
#[case::aborted(&["start a", "prompt", "abort a"], Closed, Some(Aborted))]
#[case::aborted_empty(
    &["start a", "prompt", "answer", "complete a", "start b", "abort b"],
    Closed, Some(Completed))]
#[case::other_id(&["start a", "prompt", "answer", "complete z"], Closed, Some(Completed))]
#[case::no_id(&["start a", "prompt", "answer", "complete"], Closed, Some(Completed))]
#[case::nested(&["start a", "prompt", "start b", "answer", "complete b"], Open, None)]
#[case::nested_over(
    &["start a", "prompt", "start b", "answer", "complete b", "complete a"],
    Closed, Some(Completed))]
#[case::interleaved(
    &["start a", "prompt", "start b", "complete a"], Open, None)]
#[case::killed_then_resumed(
    &["start a", "prompt", "call", "start b", "prompt", "answer", "complete b"],
    Closed, Some(Completed))]
#[case::prompt_before_its_start(
    &["start a", "prompt", "answer", "complete a", "prompt", "start b", "abort b"],
    Closed, Some(Aborted))]
#[case::old_prompt(&["prompt"], Open, None)]
#[case::old_answered(&["prompt", "answer"], Closed, Some(Completed))]
#[case::old_answer_before_a_call(&["prompt", "answer", "call"], Open, Some(Completed))]
#[case::old_answer_during_a_call(&["prompt", "call", "answer"], Open, None)]
#[case::old_over(&["prompt", "call", "output", "answer"], Closed, Some(Completed))]
#[case::old_aborted(&["prompt", "call", "abort"], Closed, Some(Aborted))]
#[case::old_then_new(&["prompt", "start a", "complete a"], Closed, Some(Error))]
fn turns_open_and_close(
    #[case] steps: &[&str],
    #[case] turn: Turn,
    #[case] outcome: Option<Outcome>,
) {
    let mut tape = Tape::new();
    for step in steps {
        match step.split_once(' ').unwrap_or((step, "")) {
            ("start", id) => tape.start(id),
            ("complete", "") => tape.event("turn_complete", &json!({})),
            ("complete", id) => tape.complete(id),
            ("abort", "") => tape.event("turn_aborted", &json!({})),
            ("abort", id) => tape.aborted(id),
            ("prompt", _) => tape.prompt("do"),
            ("answer", _) => tape.answer("done"),
            ("call", _) => tape.call("c"),
            ("output", _) => tape.output("c"),
            ("compacted", _) => tape.compacted(),
            (other, _) => panic!("{other}"),
        };
    }
    let facts = tape.facts();
    assert_eq!((facts.turn, facts.last_turn), (turn, outcome));
}

#[test]
fn a_prompt_after_a_kill_voids_the_calls_of_the_dead_turn() {
    let mut tape = Tape::new();
    tape.start("a").prompt("one").call("c-1").start("b").prompt("two").call("c-2");
    let ids: Vec<String> = tape.facts().open_calls.into_iter().map(|call| call.id).collect();
    assert_eq!(ids, ["c-2"]);
}

#[rstest]
#[case(json!({"message": "too much", "codex_error_info": "usage_limit_exceeded"}),
    "usage_limit_exceeded too much")]
#[case(json!({"message": "down", "codex_error_info": {"http_failed": {"status": 500}}}),
    "http_failed down")]
#[case(json!({"message": "odd", "codex_error_info": "two words"}), "two_words odd")]
#[case(json!("only text"), "error only text")]
#[case(json!({"message": 7}), "error 7")]
#[case(json!({"message": "unexpected status 401 Unauthorized: x",
    "codex_error_info": {"http_connection_failed": {"http_status_code": 401}}}),
    "401 unauthorized: x")]
#[case(json!({"message": "stream failed",
    "codex_error_info": {"response_stream_connection_failed": {"http_status_code": 529}}}),
    "529 stream failed")]
#[case(json!({"message": "down",
    "codex_error_info": {"response_stream_disconnected": {"http_status_code": null}}}),
    "response_stream_disconnected down")]
#[case(json!({"message": "{\"error\":{\"message\":\"No such model\"}}",
    "codex_error_info": "bad_request"}), "bad_request No such model")]
fn a_turn_that_carries_an_error_ends_in_it(#[case] error: Json, #[case] want: &str) {
    let mut tape = Tape::new();
    tape.start("a").prompt("x").answer("y");
    tape.event("task_complete", &json!({"turn_id": "a", "error": error}));
    let facts = tape.facts();
    assert_eq!((facts.turn, facts.last_turn), (Closed, Some(Error)));
    assert_eq!(facts.last_error.as_deref(), Some(want));
    tape.start("b").prompt("x").answer("y").complete("b");
    assert_eq!(tape.facts().last_error, None, "a later completed turn clears it");
}

#[test]
fn an_error_event_names_the_error_of_a_turn_without_an_answer() {
    let mut tape = Tape::new();
    tape.start("a").prompt("x");
    tape.event("error", &json!({"message": "quota", "codex_error_info": "limit"}));
    assert_eq!(tape.facts().turn, Open, "its end follows");
    tape.complete("a");
    let facts = tape.facts();
    assert_eq!(facts.last_turn, Some(Error));
    assert_eq!(facts.last_error.as_deref(), Some("limit quota"));
}

#[test]
fn a_retry_is_no_error() {
    let mut tape = Tape::new();
    tape.start("a").prompt("x").event("stream_error", &json!({"message": "retrying"}));
    assert_eq!(tape.facts().last_error, None);
}
