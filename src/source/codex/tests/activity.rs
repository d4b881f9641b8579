//! What moves the clock, and what is unknown.

use rstest::rstest;
use serde_json::json;

use super::{T0, Tape};

#[rstest]
#[case("token_count", false)]
#[case("thread_settings_applied", false)]
#[case("thread_goal_updated", false)]
#[case("agent_reasoning", true)]
#[case("a_type_of_tomorrow", true)]
fn all_events_but_three_are_activity(#[case] kind: &str, #[case] active: bool) {
    let mut tape = Tape::new();
    tape.at(9).event(kind, &json!({"info": null}));
    assert_eq!(tape.facts().last_activity_ms, active.then_some(T0 + 9000));
}

#[rstest]
#[case("turn_context", false, true)]
#[case("world_state", false, true)]
#[case("inter_agent_communication", false, true)]
#[case("retained_context", false, true)]
#[case("token_usage_record", false, true)]
#[case("a_type_of_tomorrow", false, false)]
#[case("response_item", true, false)]
#[case("compacted", true, true)]
fn of_other_records_only_items_and_compactions_are_activity(
    #[case] kind: &str,
    #[case] active: bool,
    #[case] known: bool,
) {
    let mut tape = Tape::new();
    tape.at(9).line(kind, &json!({}));
    let facts = tape.facts();
    assert_eq!(facts.last_activity_ms, active.then_some(T0 + 9000));
    assert_eq!(facts.unknown.is_empty(), known, "{:?}", facts.unknown);
}

#[test]
fn unknown_types_are_counted_with_the_record_around_them() {
    let mut tape = Tape::new();
    tape.event("new_event", &json!({})).item(&json!({"type": "new_item"}));
    tape.line("new_record", &json!({})).done(&json!({"type": "NewItem"}));
    tape.line("event_msg", &json!("gone")).raw(r#"{"type":["x"],"payload":1}"#);
    let names: Vec<String> = tape.facts().unknown.into_keys().collect();
    let want = [
        "event_msg",
        "event_msg/new_event",
        "item_completed/NewItem",
        "new_record",
        "response_item/new_item",
        "untyped",
    ];
    assert_eq!(names, want);
}

#[test]
fn a_row_without_a_stamp_takes_the_last_one_and_moves_no_clock() {
    let mut tape = Tape::new();
    tape.at(4).line("world_state", &json!({}));
    tape.raw(
        r#"{"timestamp":null,"type":"event_msg","payload":{"type":"user_message","message":"hi"}}"#,
    );
    let facts = tape.facts();
    assert_eq!(facts.first_prompt.unwrap().at_ms, T0 + 4000);
    assert_eq!(facts.last_activity_ms, None);
}

#[test]
fn settings_that_are_applied_tell_the_newest_model() {
    let mut tape = Tape::new();
    tape.at(9).line("turn_context", &json!({"model": "gpt-6", "cwd": "/w"}));
    tape.event("thread_settings_applied", &json!({"thread_settings": {"model": "gpt-7"}}));
    tape.event("thread_settings_applied", &json!({"thread_settings": {"model": null}}));
    let facts = tape.facts();
    assert_eq!((facts.model.as_deref(), facts.last_activity_ms), (Some("gpt-7"), None));
}
