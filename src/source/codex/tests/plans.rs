//! A plan that waits for its approval.

use rstest::rstest;
use serde_json::{Value as Json, json};

use super::super::super::Turn::Open;
use super::{T0, Tape, message};

const PROPOSED: &str = "Here it is.\n<proposed_plan>\n# Plan\n- look\n</proposed_plan>\n";

/// A turn in that mode that the human began.
fn planning(mode: &Json) -> Tape {
    let mut tape = Tape::new();
    let start = json!({"turn_id": "a", "collaboration_mode_kind": mode});
    tape.at(1).event("task_started", &start).prompt("plan it");
    tape
}

fn plan_item(tape: &mut Tape) -> &mut Tape {
    tape.done(&json!({"type": "Plan", "id": "p", "text": "# Plan\n- look\n"}))
}

#[test]
fn a_turn_that_ended_with_a_plan_waits_for_its_approval_until_the_next_turn() {
    let mut tape = planning(&json!("plan"));
    plan_item(&mut tape);
    assert_eq!(tape.facts().plan, None, "the turn goes on");
    tape.at(9).item(&message("assistant", "output_text", PROPOSED)).complete("a");
    let plan = tape.facts().plan.unwrap();
    assert_eq!((plan.at_ms, plan.text.as_str()), (T0 + 9000, "# Plan\n- look\n"));
    tape.event("token_count", &json!({"info": null}));
    assert!(tape.facts().plan.is_some(), "a count is no turn");
    tape.start("b");
    assert_eq!((tape.facts().plan, tape.facts().turn), (None, Open));
}

#[test]
fn a_message_that_proposes_a_plan_is_one_too() {
    let mut tape = planning(&json!("plan"));
    tape.item(&message("assistant", "output_text", PROPOSED)).complete("a");
    assert_eq!(tape.facts().plan.unwrap().text, "# Plan\n- look\n");
}

#[rstest]
#[case::no_plan(json!("plan"), &["answer"], "complete")]
#[case::another_mode(json!("default"), &["item"], "complete")]
#[case::quoted_in_another_mode(json!("default"), &["proposed"], "complete")]
#[case::quoted_in_an_unknown_mode(json!(null), &["proposed"], "complete")]
#[case::aborted(json!("plan"), &["item"], "abort")]
#[case::failed(json!("plan"), &["item"], "fail")]
fn what_does_not_wait(#[case] mode: Json, #[case] steps: &[&str], #[case] end: &str) {
    let mut tape = planning(&mode);
    for step in steps {
        match *step {
            "item" => plan_item(&mut tape),
            "proposed" => tape.item(&message("assistant", "output_text", PROPOSED)),
            _ => tape.answer("what do you want?"),
        };
    }
    match end {
        "complete" => tape.complete("a"),
        "abort" => tape.aborted("a"),
        _ => tape.event("task_complete", &json!({"turn_id": "a", "error": {"message": "x"}})),
    };
    assert_eq!(tape.facts().plan, None);
}

#[test]
fn a_plan_item_of_an_unknown_mode_is_a_plan() {
    let mut tape = planning(&json!(null));
    plan_item(&mut tape).complete("a");
    assert!(tape.facts().plan.is_some(), "the program makes such items in plan mode only");
}

#[test]
fn a_plan_of_a_review_inside_the_turn_waits_for_nobody() {
    let mut tape = planning(&json!("plan"));
    tape.event("task_started", &json!({"turn_id": "b", "collaboration_mode_kind": "plan"}));
    plan_item(&mut tape).complete("b");
    assert_eq!((tape.facts().plan, tape.facts().turn), (None, Open));
}
