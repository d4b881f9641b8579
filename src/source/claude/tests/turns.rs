//! When a turn is open, closed, interrupted, and with which outcome.

use rstest::rstest;
use serde_json::json;

use super::super::super::{Outcome, Turn, TurnMark};
use super::*;

/// What is known of the turn after these lines.
fn turn(lines: &[Json]) -> (Turn, Option<Outcome>) {
    let read = read_lines(lines);
    (read.own().turn, read.own().last_turn)
}

fn stops(second: i64, reason: impl Into<Json>) -> Json {
    assistant(second, "m1", json!({"type": "text", "text": "So"}), reason)
}

#[rstest]
#[case::tool_use("tool_use", (Turn::Open, None))]
#[case::pause_turn("pause_turn", (Turn::Open, None))]
#[case::end_turn("end_turn", (Turn::Closed, Some(Outcome::Completed)))]
#[case::max_tokens("max_tokens", (Turn::Closed, Some(Outcome::Completed)))]
#[case::stop_sequence("stop_sequence", (Turn::Closed, Some(Outcome::Completed)))]
#[case::a_new_reason("brand_new", (Turn::Closed, Some(Outcome::Completed)))]
#[case::refusal("refusal", (Turn::Closed, Some(Outcome::Error)))]
fn the_stop_reason_tells_the_turn(#[case] reason: &str, #[case] want: (Turn, Option<Outcome>)) {
    assert_eq!(turn(&[user(1, "x"), stops(2, reason)]), want);
}

#[rstest]
#[case::text_before("2.1.75", json!({"type": "text", "text": "So"}), Turn::Closed)]
#[case::text_long_before("1.0.128", json!({"type": "text", "text": "So"}), Turn::Closed)]
#[case::text_from_then_on("2.1.76", json!({"type": "text", "text": "So"}), Turn::Open)]
#[case::text_far_later("2.10.0", json!({"type": "text", "text": "So"}), Turn::Open)]
#[case::text_of_no_version("nightly", json!({"type": "text", "text": "So"}), Turn::Open)]
#[case::thinking_before("2.1.75", json!({"type": "thinking", "thinking": ""}), Turn::Open)]
#[case::call_before("2.1.75", json!({"type": "tool_use", "id": "t", "name": "Bash"}), Turn::Open)]
fn a_null_stop_reason_closes_only_on_a_text_and_only_before_2_1_76(
    #[case] version: &str,
    #[case] block: Json,
    #[case] want: Turn,
) {
    let line = with(assistant(2, "m1", block, Json::Null), json!({"version": version}));
    assert_eq!(turn(&[says(1, "m0", "x"), line]).0, want);
}

#[test]
fn a_null_stop_reason_without_content_changes_nothing() {
    let empty = with(record("assistant", 2), json!({"message": {"role": "assistant"}}));
    let closed = (Turn::Closed, Some(Outcome::Completed));
    assert_eq!(turn(&[says(1, "m0", "x"), empty]), closed);
}

#[rstest]
#[case::prompt(user(2, "more"), Turn::Open)]
#[case::result(result(2, "t"), Turn::Open)]
#[case::from_inside(with(user(2, "x"), json!({"origin": {"kind": "peer"}})), Turn::Open)]
#[case::teammate(user(2, "<teammate-message teammate_id=\"a\">x</teammate-message>"), Turn::Open)]
#[case::meta(meta(2, "x"), Turn::Closed)]
#[case::summary(with(user(2, "x"), json!({"isCompactSummary": true})), Turn::Closed)]
#[case::sentinel(user(2, "[Request interrupted by user for tool use]"), Turn::Interrupted)]
#[case::quoted_sentinel(user(2, "what is [Request interrupted by user]?"), Turn::Open)]
#[case::command(command(2, "model"), Turn::Closed)]
#[case::command_message(user(2, "<command-message>x</command-message>"), Turn::Closed)]
#[case::local_output(user(2, "<local-command-stdout></local-command-stdout>"), Turn::Closed)]
#[case::caveat(user(2, "Caveat: The messages below were generated"), Turn::Closed)]
#[case::bash(user(2, "<bash-input>ls</bash-input>"), Turn::Closed)]
#[case::bash_output(user(2, "<bash-stdout>a.rs</bash-stdout>"), Turn::Closed)]
#[case::filler(filler(2), Turn::Closed)]
#[case::retry(system(2, "api_error"), Turn::Closed)]
#[case::boundary(system(2, "compact_boundary"), Turn::Closed)]
#[case::away(system(2, "away_summary"), Turn::Closed)]
#[case::progress(record("progress", 2), Turn::Closed)]
#[case::attachment(record("attachment", 2), Turn::Closed)]
#[case::metadata(metadata("mode", json!({})), Turn::Closed)]
fn behind_a_closed_turn_only_work_opens_one(#[case] line: Json, #[case] want: Turn) {
    let read = read_lines(&[user(0, "x"), says(1, "m1", "Done."), line]);
    assert_eq!(read.own().turn, want);
    let outcome = if want == Turn::Interrupted { Outcome::Aborted } else { Outcome::Completed };
    assert_eq!(read.own().last_turn, Some(outcome));
}

#[test]
fn a_sentinel_beside_a_result_is_a_sentinel() {
    let both = json!([
        {"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": true},
        {"type": "text", "text": "[Request interrupted by user for tool use]"},
    ]);
    let lines = [user(1, "x"), calls(2, "m1", "t", "Bash"), user(3, both)];
    assert_eq!(turn(&lines), (Turn::Interrupted, Some(Outcome::Aborted)));
}

#[rstest]
#[case::duration(json!({"subtype": "turn_duration"}), Turn::Closed)]
#[case::hooks(json!({"subtype": "stop_hook_summary", "hookErrors": []}), Turn::Closed)]
#[case::hooks_untold(json!({"subtype": "stop_hook_summary"}), Turn::Closed)]
#[case::hooks_failed(json!({"subtype": "stop_hook_summary", "hookErrors": ["x"]}), Turn::Closed)]
fn turn_end_records_close_a_turn_that_is_still_open(#[case] end: Json, #[case] want: Turn) {
    let line = with(record("system", 3), end);
    assert_eq!(turn(&[user(1, "x"), line]).0, want);
}

#[test]
fn turn_end_records_never_change_an_outcome() {
    let lines = [user(1, "x"), api_error(2), system(3, "turn_duration")];
    assert_eq!(turn(&lines), (Turn::Closed, Some(Outcome::Error)));
    let lines = [user(1, "[Request interrupted by user]"), system(3, "turn_duration")];
    assert_eq!(turn(&lines), (Turn::Interrupted, Some(Outcome::Aborted)));
}

#[rstest]
#[case::at_once(&[meta(3, "Review it.")], Turn::Open)]
#[case::behind_an_attachment(&[record("attachment", 3), meta(4, "Review it.")], Turn::Open)]
#[case::behind_metadata(&[metadata("mode", json!({})), meta(4, "Review it.")], Turn::Open)]
#[case::never(&[], Turn::Closed)]
#[case::behind_its_output(&[output(3), meta(4, "Review it.")], Turn::Open)]
#[case::behind_its_newer_output(&[said_output(3), meta(4, "Review it.")], Turn::Open)]
#[case::behind_two_outputs(&[output(3), output(4), meta(5, "Review it.")], Turn::Closed)]
#[case::of_the_same_prompt(
    &[output(3), with(meta(4, "x"), json!({"promptId": "p-1"}))], Turn::Open)]
#[case::of_another_prompt(
    &[output(3), with(meta(4, "x"), json!({"promptId": "p-2"}))], Turn::Closed)]
#[case::a_resume_behind_its_output(
    &[output(3), meta(4, "Continue from where you left off.")], Turn::Closed)]
#[case::the_caveat_of_the_next(
    &[meta(3, "<local-command-caveat>Caveat: x</local-command-caveat>")], Turn::Closed)]
#[case::an_answer_between(&[says(3, "m2", "x"), meta(4, "x")], Turn::Closed)]
fn a_command_opens_a_turn_only_if_its_next_record_is_its_expansion(
    #[case] next: &[Json],
    #[case] want: Turn,
) {
    let command = with(command(2, "review"), json!({"promptId": "p-1"}));
    let mut lines = vec![user(0, "x"), says(1, "m1", "Done."), command];
    lines.extend_from_slice(next);
    assert_eq!(turn(&lines).0, want);
}

fn output(second: i64) -> Json {
    user(second, "<local-command-stdout>x</local-command-stdout>")
}

/// The same as newer versions write it.
fn said_output(second: i64) -> Json {
    let content = json!({"content": "<local-command-stdout>x</local-command-stdout>"});
    with(system(second, "local_command"), content)
}

fn feedback(second: i64) -> Json {
    meta(second, "Stop hook feedback:\n- [check.sh]: tests fail, go on")
}

#[rstest]
#[case::alone(&[], Turn::Open)]
#[case::before_its_summary(&[system(4, "stop_hook_summary")], Turn::Open)]
#[case::before_both(&[system(4, "stop_hook_summary"), system(4, "turn_duration")], Turn::Open)]
#[case::behind_an_attachment(
    &[record("attachment", 3), metadata("mode", json!({})), system(4, "stop_hook_summary")],
    Turn::Open)]
#[case::answered(&[says(4, "m2", "x")], Turn::Closed)]
#[case::answered_with_null(
    &[stops(4, Json::Null), system(5, "stop_hook_summary")], Turn::Closed)]
#[case::broken_off(&[user(4, "[Request interrupted by user]")], Turn::Interrupted)]
fn the_feedback_of_a_stop_hook_sends_the_agent_on(#[case] next: &[Json], #[case] want: Turn) {
    let mut lines = vec![user(1, "x"), says(2, "m1", "Done."), feedback(3)];
    let read = read_lines(&lines);
    assert_eq!((read.own().turn, read.own().last_activity_ms), (Turn::Open, Some(ms(3))));
    lines.extend_from_slice(next);
    assert_eq!(turn(&lines).0, want);
}

#[test]
fn what_only_quotes_a_stop_hook_is_a_prompt_or_nothing() {
    let quoted = meta(3, "See: Stop hook feedback:");
    assert_eq!(turn(&[user(1, "x"), says(2, "m1", "Done."), quoted]).0, Turn::Closed);
    let typed = read_lines(&[user(1, "Stop hook feedback: what is that?")]);
    assert_eq!(typed.own().prompts.primary, 1);
}

#[rstest]
#[case::set(json!(true), Turn::Open)]
#[case::an_object(json!({"reason": "max_tokens"}), Turn::Open)]
#[case::not_set(json!(false), Turn::Closed)]
#[case::null(Json::Null, Turn::Closed)]
fn the_client_goes_on_by_itself_after_max_tokens(#[case] flag: Json, #[case] want: Turn) {
    let companion = with(meta(3, "Output token limit hit"), json!({"turnCompanion": flag}));
    let read = read_lines(&[user(1, "x"), stops(2, "max_tokens"), companion]);
    let active = if want == Turn::Open { ms(3) } else { ms(2) };
    assert_eq!((read.own().turn, read.own().last_activity_ms), (want, Some(active)));
    assert_eq!(read.own().prompts.primary, 1);
}

#[rstest]
#[case::thought(json!([{"type": "thinking", "thinking": ""}]), Turn::Open)]
#[case::hidden_thought(json!([{"type": "redacted_thinking", "data": "x"}]), Turn::Open)]
#[case::thought_and_text(
    json!([{"type": "thinking", "thinking": ""}, {"type": "text", "text": "x"}]), Turn::Closed)]
#[case::nothing(json!([]), Turn::Closed)]
fn max_tokens_on_a_thought_alone_leaves_the_turn_open(#[case] content: Json, #[case] want: Turn) {
    let mut line = stops(2, "max_tokens");
    line["message"]["content"] = content;
    assert_eq!(turn(&[user(1, "x"), line]).0, want);
}

#[test]
fn a_meta_record_after_an_exit_is_not_its_expansion() {
    let lines = [says(1, "m1", "x"), command(2, "exit"), meta(3, "Continue where you left off.")];
    assert_eq!(turn(&lines).0, Turn::Closed);
}

#[test]
fn an_error_is_said_before_the_turn_it_closes() {
    let read = read_lines(&[user(1, "x"), api_error(2)]);
    let place = |wanted: fn(&What) -> bool| {
        read.records.iter().rposition(|record| wanted(&record.what)).unwrap()
    };
    let activity = place(|what| *what == What::Activity);
    let error = place(|what| matches!(what, What::Error { .. }));
    let close = place(|what| *what == What::Turn(TurnMark::Close(Outcome::Error)));
    assert!(activity < error && error < close);
    assert_eq!(read.own().last_error.as_deref(), Some("529 overloaded"));
}

#[rstest]
#[case::unknown(json!({"error": "unknown", "apiErrorStatus": 400,
    "apiErrorType": "invalid_request_error"}), "API Error: 400 bad", "400 bad")]
#[case::untold(json!({"apiErrorStatus": 529}), "Overloaded", "529 overloaded")]
#[case::of_a_type(json!({"error": "unknown", "apiErrorType": "overloaded_error"}), "x",
    "overloaded_error x")]
#[case::of_nothing(json!({"error": "unknown"}), "x", "unknown x")]
#[case::of_no_status(json!({"apiErrorStatus": -7}), "x", "error x")]
#[case::body(json!({"error": "overloaded"}),
    r#"API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    "529 overloaded")]
#[case::flat_body(json!({"error": "unknown", "apiErrorStatus": 500}), r#"{"message":"no"}"#,
    "500 no")]
#[case::body_without_words(json!({"error": "unknown", "apiErrorStatus": 500}),
    r#"API Error: 500 {"type":"error"}"#, "500 internal server error")]
#[case::a_brace_is_no_body(json!({"error": "server_error"}), "no } or { here",
    "server_error no } or { here")]
fn an_error_is_told_in_peoples_words(#[case] more: Json, #[case] text: &str, #[case] want: &str) {
    let message = json!({"model": "<synthetic>", "content": [{"type": "text", "text": text}]});
    let fields = json!({"message": message, "isApiErrorMessage": true});
    let read = read_lines(&[with(with(record("assistant", 1), fields), more)]);
    assert_eq!(read.own().last_error.as_deref(), Some(want));
}

#[rstest]
#[case::spoken(json!("server error"), "error x")]
#[case::missing(Json::Null, "error x")]
#[case::a_number(json!(529), "error x")]
#[case::an_object(json!({"type": "rate_limit"}), "rate_limit x")]
fn an_error_code_is_one_word(#[case] error: Json, #[case] want: &str) {
    let message = json!({"model": "<synthetic>", "content": [{"type": "text", "text": "x"}]});
    let fields = json!({"message": message, "isApiErrorMessage": true, "error": error});
    let read = read_lines(&[with(record("assistant", 1), fields)]);
    assert_eq!(read.own().last_error.as_deref(), Some(want));
}

#[test]
fn an_error_is_gone_after_a_completed_turn_and_stays_after_a_refusal() {
    let read = read_lines(&[api_error(1), user(2, "again"), says(3, "m1", "Done.")]);
    assert_eq!(read.own().last_error, None);
    let read = read_lines(&[user(1, "x"), stops(2, "refusal")]);
    assert_eq!(read.own().last_error.as_deref(), Some("refusal So"));
}

#[test]
fn a_prompt_voids_the_calls_before_it_and_a_queued_one_does_not() {
    let asked = [user(1, "x"), calls(2, "m1", "t", "Bash")];
    let read = read_lines(&[asked.to_vec(), vec![user(3, "no, stop")]].concat());
    assert!(read.own().open_calls.is_empty());
    let order: Vec<_> = read
        .records
        .iter()
        .filter(|record| matches!(record.what, What::CallsVoid | What::Turn(TurnMark::Open)))
        .map(|record| record.what == What::CallsVoid)
        .collect();
    assert_eq!(order, [true, false, false, true, false]);

    let queued = json!({"attachment": {"type": "queued_command", "prompt": "also the docs"}});
    let queued = with(record("attachment", 3), queued);
    let read = read_lines(&[asked.to_vec(), vec![queued]].concat());
    assert_eq!(read.own().open_calls.len(), 1);
    assert_eq!(read.own().prompts.primary, 2);
}

#[test]
fn a_result_answers_its_call() {
    let lines =
        [user(1, "x"), calls(2, "m1", "t1", "Bash"), calls(3, "m1", "t2", "AskUserQuestion")];
    let mut lines = lines.to_vec();
    lines.push(result(4, "t1"));
    let open = read_lines(&lines).own().open_calls.clone();
    assert_eq!(open.len(), 1);
    assert_eq!((open[0].name.as_str(), open[0].at_ms), ("AskUserQuestion", Some(ms(3))));
}
