//! Who a rollout is, and the three eras it may be written in.

use rstest::rstest;
use serde_json::{Value as Json, json};

use super::super::super::Outcome::Completed;
use super::super::super::Turn::{Closed, Open};
use super::super::super::facts::{Counts, OpenCall};
use super::super::super::testing::{hint, read};
use super::super::super::{Agent, Kind, SessionKey, State};
use super::{NOW, T0, Tape, iso, message, own_id, paginated, rows, stem_of};

#[test]
fn the_first_meta_tells_id_start_cwd_branch_and_version() {
    let mut tape = Tape::new();
    tape.at(5).meta(&own_id(), &json!({"cwd": "/other", "git": {"branch": "next"}}));
    let read = tape.read();
    assert_eq!(read.key(), SessionKey::top(own_id()));
    let facts = read.own();
    assert_eq!(facts.started_ms, Some(T0));
    assert_eq!(facts.last_activity_ms, None, "a meta is no activity");
    assert_eq!(facts.cwd.as_deref(), Some("/w"), "the first");
    assert_eq!(facts.branch.as_deref(), Some("next"), "the newest");
    assert_eq!(facts.version.as_deref(), Some("0.148.0"));
    assert_eq!(facts.kind, Some(Kind::Main));
}

#[test]
fn the_start_is_the_metas_own_stamp_not_the_lines() {
    let tape = Tape::with_meta(&json!({"timestamp": iso(-60)}));
    assert_eq!(tape.facts().started_ms, Some(T0 - 60_000));
}

#[rstest]
#[case("rollout-2026-09-01T10-00-00-01a22b8a-1780-7070-9b6e-f1834a0e5bce", true)]
#[case(
    "rollout-2026-09-01T10-00-00-01a22b8a-1780-7070-9b6e-f1834a0e5bce\
     _01a22b9c-6700-7ab9-9c7e-edde36149b1f",
    true
)]
#[case("rollout-2026-09-01T10-00-00", false)]
#[case("rollout-ü1a22b8a-1780-7070-9b6e-f1834a0e5bc", false)]
fn without_a_meta_the_file_name_tells_the_thread(#[case] stem: &str, #[case] named: bool) {
    let mut tape = Tape::default();
    tape.prompt("hello");
    let read = read(Agent::Codex, &hint(stem), &tape.bytes(), NOW);
    let want = named.then(|| SessionKey::top("01a22b8a-1780-7070-9b6e-f1834a0e5bce"));
    assert_eq!(read.state.key(), want);
}

#[test]
fn no_line_no_session() {
    assert_eq!(State::new(Agent::Codex, &hint(&stem_of(&own_id()))).key(), None);
}

#[rstest]
#[case(json!({}), Kind::Main, None, None)]
#[case(json!({"source": "vscode"}), Kind::Main, None, None)]
#[case(json!({"source": {"custom": "x"}}), Kind::Main, None, None)]
#[case(json!({"source": 7}), Kind::Main, None, None)]
#[case(json!({"source": "exec"}), Kind::Sdk, None, None)]
#[case(json!({"source": "mcp"}), Kind::Sdk, None, None)]
#[case(json!({"source": "exec", "forked_from_id": "f-1"}), Kind::Fork, None, Some("f-1"))]
#[case(json!({"source": {"subagent": "review"}}), Kind::Internal, None, None)]
#[case(json!({"source": {"subagent": {"other": "guardian"}}}), Kind::Internal, None, None)]
#[case(json!({"source": {"internal": "titles"}}), Kind::Internal, None, None)]
#[case(json!({"thread_source": "guardian_review"}), Kind::Internal, None, None)]
#[case(json!({"thread_source": "memory_consolidation"}), Kind::Internal, None, None)]
#[case(
    json!({"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p-1"}}},
           "thread_source": "subagent", "forked_from_id": "p-1"}),
    Kind::SubAgent, Some("p-1"), None)]
#[case(json!({"source": {"subagent": {"thread_spawn": {}}}, "parent_thread_id": "p-2"}),
    Kind::SubAgent, Some("p-2"), None)]
#[case(json!({"source": {"subagent": {"thread_spawn": {}}}}), Kind::SubAgent, None, None)]
fn the_meta_tells_the_kind(
    #[case] meta: Json,
    #[case] kind: Kind,
    #[case] parent: Option<&str>,
    #[case] fork_of: Option<&str>,
) {
    let read = Tape::with_meta(&meta).read();
    assert_eq!(read.own().kind, Some(kind));
    assert_eq!(read.key(), SessionKey { native: own_id(), parent: parent.map(str::to_owned) });
    assert_eq!(read.own().fork_of.as_deref(), fork_of);
}

#[test]
fn a_thread_that_names_itself_as_parent_has_none() {
    let meta = json!({"source": {"subagent": {"thread_spawn": {"parent_thread_id": own_id()}}}});
    assert_eq!(Tape::with_meta(&meta).read().key(), SessionKey::top(own_id()));
}

#[test]
fn a_bare_rollout_inherits_the_stamp_of_its_header() {
    let mut tape = Tape::default();
    tape.raw(&format!(
        r#"{{"id":"b-1","timestamp":"{}","instructions":null,"git":{{"branch":"old"}}}}"#,
        iso(3)
    ));
    tape.raw(r#"{"record_type":"state"}"#);
    tape.raw(&message("user", "input_text", "hello").to_string());
    let call = json!({"type": "function_call", "name": "shell", "call_id": "c",
        "arguments": "{\"command\":[\"ls\",\"-l\"]}"});
    tape.raw(&call.to_string());
    let read_open = tape.read();
    tape.raw(r#"{"type":"function_call_output","call_id":"c","output":"x"}"#);
    tape.raw(&message("assistant", "output_text", "hi").to_string());
    let read = tape.read();
    assert_eq!(read.key(), SessionKey::top("b-1"));
    let facts = read.own();
    assert_eq!((facts.started_ms, facts.last_activity_ms), (Some(T0 + 3000), Some(T0 + 3000)));
    assert_eq!(facts.branch.as_deref(), Some("old"));
    assert_eq!(facts.prompts.chosen(), 1);
    assert_eq!(facts.answers.chosen(), 1);
    assert_eq!(facts.tool_calls.chosen(), 1);
    assert_eq!((facts.turn, facts.last_turn), (Closed, Some(Completed)));
    assert_eq!(read_open.own().turn, Open);
    assert_eq!(
        read_open.own().open_calls,
        [OpenCall {
            id: "c".into(),
            name: "shell".into(),
            at_ms: Some(T0 + 3000),
            text: "ls -l".into()
        }]
    );
    assert!(facts.unknown.is_empty(), "{:?}", facts.unknown);
}

#[test]
fn a_legacy_turn_counts_prompt_answer_and_call_once() {
    let mut tape = Tape::new();
    tape.at(1).start("n-1").prompt("fix it").call("c").output("c").at(9).answer("done");
    tape.complete("n-1");
    let facts = tape.facts();
    assert_eq!(facts.prompts, Counts { primary: 1, fallback: 1 });
    assert_eq!(facts.answers, Counts { primary: 1, fallback: 1 });
    assert_eq!(facts.tool_calls, Counts { primary: 1, fallback: 0 });
    assert_eq!(facts.first_prompt.unwrap().text, "fix it");
    assert_eq!(facts.last_text.unwrap().text, "done");
    assert_eq!((facts.turn, facts.last_turn), (Closed, Some(Completed)));
    assert_eq!(facts.last_activity_ms, Some(T0 + 9000));
    assert_eq!(facts.context_window, Some(258_400));
}

#[test]
fn a_paginated_turn_counts_each_thing_once_although_both_sides_tell_it() {
    let facts = paginated().facts();
    assert_eq!(facts.prompts.chosen(), 1);
    assert_eq!(facts.answers.chosen(), 1);
    assert_eq!(facts.tool_calls, Counts { primary: 1, fallback: 1 });
    assert_eq!((facts.turn, facts.last_turn), (Closed, Some(Completed)));
    assert!(facts.unknown.is_empty(), "{:?}", facts.unknown);
}

#[test]
fn items_alone_count_where_the_models_side_is_missing() {
    let mut tape = Tape::new();
    tape.start("n-1");
    tape.done(&json!({"type": "FileChange", "id": "1", "changes": {"/w/a.rs": {"add": {}}},
        "status": "declined"}));
    tape.done(
        &json!({"type": "McpToolCall", "server": "s", "tool": "find", "arguments": {"q": 1}}),
    );
    let read = tape.read();
    assert_eq!(read.own().tool_calls.chosen(), 2);
    assert!(read.own().open_calls.is_empty(), "an item is written when it is finished");
    let texts: Vec<String> = rows(&read).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(texts, ["declined: /w/a.rs", "{\"q\":1}"]);
}

#[test]
fn a_turn_answered_by_a_plan_alone_is_completed() {
    let mut tape = Tape::new();
    tape.start("n-1").prompt("plan it");
    tape.done(&json!({"type": "Plan", "id": "p", "text": "1. look"})).complete("n-1");
    assert_eq!(tape.facts().last_turn, Some(Completed));
}
