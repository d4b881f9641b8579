//! Tokens and context: one key per request, the last own request, the window.

use rstest::rstest;
use serde_json::json;

use super::super::super::{Kind, Place, Tokens};
use super::*;

fn spends(second: i64, id: &str, usage: Json) -> Json {
    let mut line = says(second, id, "x");
    line["message"]["usage"] = usage;
    line
}

fn usage(input: i64, cache_write: i64, cache_read: i64, output: i64) -> Json {
    json!({"input_tokens": input, "cache_creation_input_tokens": cache_write,
        "cache_read_input_tokens": cache_read, "output_tokens": output})
}

#[rstest]
#[case::both(json!({}), Some("m1\0req_1"))]
#[case::no_request(json!({"requestId": null}), Some("m1\0"))]
fn usage_is_keyed_by_message_and_request(#[case] more: Json, #[case] want: Option<&str>) {
    let read = read_lines(&[with(spends(1, "m1", usage(3, 100, 20_000, 42)), more)]);
    let got = read.usage();
    assert_eq!(got[0].key.as_deref(), want);
    let want = Tokens { input: 3, cache_read: 20_000, cache_write: 100, output: 42 };
    assert_eq!(got[0].tokens, want);
}

#[test]
fn usage_of_a_message_without_an_id_is_keyed_by_the_record_or_added() {
    let mut line = spends(1, "m1", usage(1, 0, 0, 2));
    line["message"]["id"] = Json::Null;
    assert_eq!(read_lines(&[line.clone()]).usage()[0].key.as_deref(), Some("r-1"));
    line["uuid"] = Json::Null;
    let read = read_lines(&[line.clone(), line]);
    assert_eq!(read.usage().iter().filter(|usage| usage.key.is_none()).count(), 2);
}

#[test]
fn a_repeated_usage_is_said_once_and_a_grown_one_again() {
    let lines = [
        spends(1, "m1", usage(3, 0, 9, 1)),
        spends(2, "m1", usage(3, 0, 9, 1)),
        spends(3, "m1", usage(3, 0, 9, 80)),
        spends(4, "m2", usage(3, 0, 9, 80)),
    ];
    let read = read_lines(&lines);
    let got: Vec<_> =
        read.usage().iter().map(|u| (u.key.clone().unwrap(), u.tokens.output)).collect();
    let want = [("m1\0req_1", 1), ("m1\0req_1", 80), ("m2\0req_1", 80)];
    assert_eq!(got, want.map(|(key, output)| (key.to_owned(), output)));
}

#[rstest]
#[case::negative(json!({"output_tokens": -5}), 0)]
#[case::a_text(json!({"output_tokens": "7"}), 0)]
#[case::absurd(json!({"output_tokens": i64::MAX}), 1_000_000_000_000)]
fn a_counter_is_a_plausible_number(#[case] usage: Json, #[case] want: i64) {
    assert_eq!(read_lines(&[spends(1, "m1", usage)]).usage()[0].tokens.output, want);
}

#[rstest]
#[case::fork_session(json!({"requestSessionId": "s-0"}), 0)]
#[case::branch(json!({"forkedFrom": {"sessionId": "s-0", "messageUuid": "r-1"}}), 0)]
#[case::its_own(json!({"requestSessionId": SESSION}), 1)]
#[case::odd(json!({"requestSessionId": 7}), 1)]
fn what_was_copied_from_another_session_is_that_sessions(#[case] more: Json, #[case] want: u64) {
    let copied = with(spends(1, "m1", usage(100, 0, 0, 10)), more.clone());
    let called = with(calls(2, "m2", "t", "Bash"), more);
    let read = read_lines(&[copied, called, spends(3, "m3", usage(200, 0, 0, 20))]);
    let own = read.own();
    assert_eq!(read.usage().len(), 1 + usize::try_from(want).unwrap());
    assert_eq!((own.answers.primary, own.tool_calls.primary), (1 + 2 * want, want));
    let kind = if want == 0 { Kind::Fork } else { Kind::Main };
    assert_eq!((own.kind, own.fork_of.as_deref() == Some("s-0")), (Some(kind), want == 0));
    assert_eq!(messages(&read).count(), 4, "the rows are shown all the same");
}

#[test]
fn a_copied_prompt_names_the_fork_and_is_not_its_own() {
    let from = json!({"forkedFrom": {"sessionId": "s-0", "messageUuid": "r-1"}});
    let read = read_lines(&[with(user(1, "first"), from), user(2, "second")]);
    assert_eq!(read.own().prompts.primary, 1);
    assert_eq!(read.own().first_prompt.as_ref().unwrap().text, "first");
}

#[test]
fn a_fork_of_a_fork_names_the_nearest_source() {
    let copied =
        |second, id, from: &str| with(says(second, id, "x"), json!({"requestSessionId": from}));
    let read = read_lines(&[copied(1, "m1", "s-0"), copied(2, "m2", "s-5"), says(3, "m3", "x")]);
    assert_eq!(read.own().fork_of.as_deref(), Some("s-5"));
}

#[test]
fn a_sub_agent_is_no_fork_of_its_parent() {
    let line = with(spends(1, "m1", usage(1, 0, 0, 1)), json!({"requestSessionId": "s-9"}));
    let hint = Hint {
        place: Place::SubAgent,
        stem: "agent-a1".to_owned(),
        folder: Some("s-9".to_owned()),
        named_ms: None,
    };
    let read = read_as(&hint, &[line]);
    assert_eq!((read.usage().len(), read.own().kind), (1, Some(Kind::SubAgent)));
}

#[test]
fn synthetic_messages_spend_nothing() {
    let mut line = filler(1);
    line["message"]["usage"] = usage(1, 1, 1, 1);
    assert!(read_lines(&[line, api_error(2)]).usage().is_empty());
}

#[test]
fn context_is_that_of_the_last_own_request() {
    let inline = json!({"isSidechain": true, "agentId": "a1"});
    let lines = [
        spends(1, "m1", usage(1, 2, 3, 99)),
        spends(2, "m2", usage(10, 20, 30, 99)),
        with(spends(3, "m3", usage(500, 500, 500, 1)), inline),
        with(spends(4, "m4", usage(700, 0, 0, 1)), json!({"isSidechain": true})),
    ];
    let own = read_lines(&lines).own().clone();
    assert_eq!((own.context_used, own.context_window), (Some(60), Some(200_000)));
}

#[rstest]
#[case::known(json!({"postTokens": 851}), Some(851))]
#[case::unknown(json!({"trigger": "auto"}), None)]
fn a_compaction_resets_the_context(#[case] about: Json, #[case] want: Option<u64>) {
    let boundary = with(system(2, "compact_boundary"), json!({ "compactMetadata": about }));
    let lines = [spends(1, "m1", usage(1, 2, 3, 4)), boundary];
    assert_eq!(read_lines(&lines).own().context_used, want);
    let after = [lines.to_vec(), vec![spends(3, "m2", usage(1, 2, 3, 4))]].concat();
    assert_eq!(read_lines(&after).own().context_used, Some(6));
}

#[test]
fn the_window_is_the_usual_one_until_something_shows_a_longer_one() {
    let small = [spends(1, "m1", usage(1, 0, 0, 1))];
    let window = |more: Json| {
        read_lines(&[small.to_vec(), vec![more], small.to_vec()].concat()).own().context_window
    };
    assert_eq!(window(user(2, "x")), Some(200_000));
    assert_eq!(window(spends(2, "m2", usage(0, 0, 200_000, 1))), Some(200_000));
    assert_eq!(window(spends(2, "m2", usage(0, 0, 200_001, 1))), Some(1_000_000));
    let named = |model: &str| metadata("cost-state", json!({"modelUsage": {model: {}}}));
    assert_eq!(window(named("claude-opus-5")), Some(200_000));
    assert_eq!(window(named("claude-opus-5[1m]")), Some(1_000_000));
    let mut long = spends(2, "m2", usage(1, 0, 0, 1));
    long["message"]["model"] = json!("claude-opus-5[1m]");
    assert_eq!(window(long), Some(1_000_000));
    for (model, want) in [
        ("claude-opus-5-5", 1_000_000),
        ("claude-opus-5-5-20261101", 1_000_000),
        ("claude-opus-5-50", 200_000),
        ("claude-opus-5", 200_000),
    ] {
        let mut line = spends(2, "m2", usage(1, 0, 0, 1));
        line["message"]["model"] = json!(model);
        assert_eq!(read_lines(&[line]).own().context_window, Some(want), "{model}");
    }
}
