//! Tokens, and how full the context is.

use rstest::rstest;
use serde_json::json;

use super::super::super::Tokens;
use super::{Tape, fork, usage, uuid7};

#[test]
fn usage_is_the_difference_of_totals_and_a_repeat_is_nothing() {
    let mut tape = Tape::new();
    tape.event("token_count", &json!({"info": null, "rate_limits": {}}));
    tape.tokens(9000, 8000, 120).tokens(9000, 8000, 120).tokens(12_000, 9500, 320);
    let read = tape.read();
    let used: Vec<Tokens> = read.usage().iter().map(|usage| usage.tokens).collect();
    assert_eq!(
        used,
        [
            Tokens { input: 1000, cache_read: 8000, cache_write: 0, output: 120 },
            Tokens { input: 1500, cache_read: 1500, cache_write: 0, output: 200 },
        ]
    );
    assert_eq!(read.own().context_used, Some(3200));
    assert_eq!(read.own().context_window, Some(258_400));
}

#[test]
fn a_total_that_fell_adds_the_request_and_not_itself() {
    let mut tape = Tape::new();
    for (input, output) in [(1000, 10), (2000, 20), (3000, 30)] {
        tape.count([input, 0, output], [1000, 0, 10]);
    }
    tape.count([1500, 0, 15], [500, 0, 5]);
    let want = Tokens { input: 3500, cache_read: 0, cache_write: 0, output: 35 };
    assert_eq!(tape.facts().tokens, want);
}

#[test]
fn a_total_without_its_request_adds_the_difference_or_where_it_fell_itself() {
    let mut tape = Tape::new();
    for total in [[9000, 0, 100], [9500, 0, 150], [500, 0, 50]] {
        tape.event("token_count", &json!({"info": {"total_token_usage": usage(total)}}));
    }
    assert_eq!(tape.facts().tokens.total(), 9100 + 550 + 550);
}

#[test]
fn counts_written_twice_count_once_also_where_others_lie_between() {
    let mut tape = Tape::new();
    let first = tape.lines.len();
    tape.at(1).tokens(1000, 0, 10).at(2).tokens(2000, 0, 20).at(3).tokens(3000, 0, 30);
    let block = tape.lines[first..].to_vec();
    tape.lines.extend(block);
    assert_eq!(tape.facts().tokens.total(), 3030);
}

#[rstest]
#[case::both_ways(&["record a", "count"], 1050)]
#[case::count_alone(&["count"], 1050)]
#[case::records_alone(&["record a", "record b"], 2100)]
#[case::a_record_twice(&["record a", "record a"], 1050)]
#[case::told_both_ways_twice(&["record a", "count", "record b", "count"], 2100)]
#[case::with_the_total_again(&["record a", "count", "again", "record b", "count", "again"], 2100)]
#[case::two_records_then_their_counts(&["record a", "record b", "count", "count"], 2100)]
#[case::an_older_client_goes_on(&["record a", "other"], 1050 + 550)]
fn a_response_told_both_ways_counts_once(#[case] steps: &[&str], #[case] want: i64) {
    let mut tape = Tape::new();
    let [mut input, mut output] = [0, 0];
    for step in steps {
        tape.second += 1;
        match *step {
            "count" => {
                (input, output) = (input + 1000, output + 50);
                tape.count([input, 400, output], [1000, 400, 50])
            }
            "again" => tape.count([input, 400, output], [1000, 400, 50]),
            "other" => tape.count([500, 0, 50], [500, 0, 50]),
            record => tape.usage_record(record, [1000, 400, 50]),
        };
    }
    assert_eq!(tape.facts().tokens.total(), want);
}

#[test]
fn a_count_is_of_the_response_whose_record_has_the_same_total_of_the_thread() {
    let mut tape = Tape::new();
    let payload = json!({"response_id": "r", "usage": usage([900, 0, 50]),
        "thread_token_usage": usage([1000, 0, 50])});
    tape.line("token_usage_record", &payload).tokens(1000, 0, 50);
    assert_eq!(tape.facts().tokens.total(), 950, "what the server said of the response");
}

#[test]
fn a_record_is_no_activity_and_fills_the_context() {
    let mut tape = Tape::new();
    tape.at(9).usage_record("r", [1000, 400, 50]);
    let facts = tape.facts();
    assert_eq!((facts.last_activity_ms, facts.context_used), (None, Some(1050)));
    assert!(facts.unknown.is_empty(), "{:?}", facts.unknown);
}

#[test]
fn replayed_records_are_the_parents() {
    let mut tape = fork();
    tape.usage_record("theirs", [100, 0, 10]);
    tape.at(60).start(&uuid7(60, 3)).prompt("own").usage_record("own", [50, 0, 5]);
    tape.count([2750, 200, 305], [50, 0, 5]);
    assert_eq!(tape.facts().tokens.total(), 55);
}

#[test]
fn the_first_total_of_a_rollout_that_goes_on_is_a_repeat_until_the_model_has_spoken() {
    let goes_on = || Tape::with_meta(&json!({"history_base": {"thread_id": "r"}}));
    let mut tape = goes_on();
    tape.start("a").count([5000, 0, 500], [100, 0, 10]).compacted().complete("a");
    assert_eq!(tape.facts().tokens.total(), 0);
    tape.start("b").prompt("x").answer("y").count([5200, 0, 520], [200, 0, 20]);
    assert_eq!(tape.facts().tokens.total(), 220);
}

#[test]
fn cache_writes_are_no_uncached_input() {
    let mut tape = Tape::new();
    tape.event(
        "token_count",
        &json!({"info": {"total_token_usage": {"input_tokens": 100,
        "cached_input_tokens": 60, "cache_write_input_tokens": 30, "output_tokens": 5}}}),
    );
    let want = Tokens { input: 10, cache_read: 60, cache_write: 30, output: 5 };
    assert_eq!(tape.facts().tokens, want);
}

#[test]
fn a_rollout_that_goes_on_with_another_counts_only_its_own_requests() {
    let total = json!({"input_tokens": 5000, "cached_input_tokens": 0, "output_tokens": 500});
    let last = json!({"input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 10,
        "total_tokens": 110});
    let mut tape = Tape::with_meta(&json!({"history_base": {"thread_id": "r"}}));
    tape.start("a").prompt("x").answer("y").event(
        "token_count",
        &json!({"info": {"total_token_usage": total,
        "last_token_usage": last}}),
    );
    assert_eq!(tape.facts().tokens.total(), 110);
}

#[test]
fn a_compaction_empties_the_context_and_its_estimate_is_no_request() {
    let mut tape = Tape::new();
    tape.start("a").prompt("x").tokens(9000, 0, 100).compacted().estimate(4000);
    assert_eq!(tape.facts().context_used, None);
    tape.tokens(9500, 0, 200);
    assert_eq!(tape.facts().context_used, Some(600));
}
