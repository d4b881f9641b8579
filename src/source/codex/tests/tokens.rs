//! Tokens, and how full the context is.

use serde_json::json;

use super::super::super::Tokens;
use super::Tape;

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
    assert_eq!(read.own().context_used, Some(12_320));
    assert_eq!(read.own().context_window, Some(258_400));
}

#[test]
fn a_total_that_fell_counts_anew() {
    let mut tape = Tape::new();
    tape.tokens(9000, 8000, 120).tokens(500, 0, 50);
    assert_eq!(tape.facts().tokens.total(), 9120 + 550);
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
    tape.event(
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
    assert_eq!(tape.facts().context_used, Some(9700));
}
