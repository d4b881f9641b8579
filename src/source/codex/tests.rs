//! What the Codex adapter claims, one rule at a time, and two properties over a whole transcript.

#![expect(clippy::wildcard_enum_match_arm, reason = "tests look for one variant among many")]

use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value as Json, json};

use super::super::Outcome::{Aborted, Completed, Error};
use super::super::Turn::{Closed, Open};
use super::super::facts::{Counts, Facts, OpenCall};
use super::super::testing::{Read, hint, read};
use super::super::{
    Agent, Hint, Kind, MessageKind, MessageSource, Outcome, PREVIEW_CHARS, Place, Record,
    SessionKey, State, Title, TitleKind, Tokens, Turn, What, read_line, read_oversized,
};
use crate::compaction::{Event, Trigger};

/// 2026-09-01T10:00:00Z.
const T0: i64 = 1_788_256_800_000;
const NOW: i64 = T0 + 86_400_000;

/// A version 7 uuid of that second.
fn uuid7(second: i64, number: u32) -> String {
    let ms = T0 + second * 1000;
    format!("{:08x}-{:04x}-7000-8000-{number:012x}", ms >> 16, ms & 0xffff)
}

fn own_id() -> String {
    uuid7(0, 1)
}

fn stem_of(id: &str) -> String {
    format!("rollout-2026-09-01T10-00-00-{id}")
}

fn iso(second: i64) -> String {
    jiff::Timestamp::from_millisecond(T0 + second * 1000).unwrap().to_string()
}

/// A rollout under construction; `second` stamps the lines that follow.
#[derive(Default, Clone)]
struct Tape {
    lines: Vec<String>,
    second: i64,
    ordinal: Option<u64>,
}

impl Tape {
    /// A rollout that begins with its own meta.
    fn new() -> Self {
        Self::with_meta(&json!({}))
    }

    fn with_meta(more: &Json) -> Self {
        let mut tape = Self::default();
        tape.meta(&own_id(), more);
        tape
    }

    fn meta(&mut self, id: &str, more: &Json) -> &mut Self {
        let mut payload = json!({
            "id": id, "session_id": "shared", "timestamp": iso(self.second), "cwd": "/w",
            "cli_version": "0.148.0", "source": "cli", "git": {"branch": "main"},
        });
        for (key, value) in more.as_object().unwrap() {
            payload[key] = value.clone();
        }
        self.line("session_meta", &payload)
    }

    fn at(&mut self, second: i64) -> &mut Self {
        self.second = second;
        self
    }

    fn line(&mut self, kind: &str, payload: &Json) -> &mut Self {
        let mut line = json!({"timestamp": iso(self.second), "type": kind, "payload": payload});
        if let Some(ordinal) = &mut self.ordinal {
            line["ordinal"] = json!(ordinal);
            *ordinal += 1;
        }
        self.raw(&line.to_string())
    }

    fn raw(&mut self, line: &str) -> &mut Self {
        self.lines.push(line.to_owned());
        self
    }

    fn event(&mut self, kind: &str, more: &Json) -> &mut Self {
        let mut payload = json!({"type": kind});
        for (key, value) in more.as_object().unwrap() {
            payload[key] = value.clone();
        }
        self.line("event_msg", &payload)
    }

    fn item(&mut self, item: &Json) -> &mut Self {
        self.line("response_item", item)
    }

    fn done(&mut self, item: &Json) -> &mut Self {
        self.event("item_completed", &json!({"thread_id": "t", "turn_id": "n", "item": item}))
    }

    fn start(&mut self, turn: &str) -> &mut Self {
        self.event("task_started", &json!({"turn_id": turn, "model_context_window": 258_400}))
    }

    fn complete(&mut self, turn: &str) -> &mut Self {
        self.event("task_complete", &json!({"turn_id": turn, "last_agent_message": null}))
    }

    fn aborted(&mut self, turn: &str) -> &mut Self {
        self.event("turn_aborted", &json!({"turn_id": turn, "reason": "interrupted"}))
    }

    fn prompt(&mut self, text: &str) -> &mut Self {
        self.item(&message("user", "input_text", text));
        self.event("user_message", &json!({"message": text, "images": []}))
    }

    fn answer(&mut self, text: &str) -> &mut Self {
        self.event("agent_message", &json!({"message": text}));
        self.item(&message("assistant", "output_text", text))
    }

    fn call(&mut self, id: &str) -> &mut Self {
        self.item(&json!({"type": "function_call", "name": "exec_command", "call_id": id,
            "arguments": "{\"cmd\":\"ls -l\"}"}))
    }

    fn output(&mut self, id: &str) -> &mut Self {
        self.item(&json!({"type": "function_call_output", "call_id": id, "output": "a.rs\n"}))
    }

    fn tokens(&mut self, input: i64, cached: i64, output: i64) -> &mut Self {
        let usage = json!({"input_tokens": input, "cached_input_tokens": cached,
            "output_tokens": output, "reasoning_output_tokens": 0,
            "total_tokens": input + output});
        self.event(
            "token_count",
            &json!({"info": {"total_token_usage": usage,
            "last_token_usage": usage, "model_context_window": 258_400}}),
        )
    }

    fn estimate(&mut self, tokens: i64) -> &mut Self {
        self.event(
            "token_count",
            &json!({"info": {"last_token_usage": {"input_tokens": 0,
            "cached_input_tokens": 0, "output_tokens": 0, "total_tokens": tokens}}}),
        )
    }

    fn compacted(&mut self) -> &mut Self {
        self.line(
            "compacted",
            &json!({"message": "", "replacement_history": [
            {"type": "message", "role": "user", "content": [{"text": "again"}]}]}),
        )
    }

    fn bytes(&self) -> Vec<u8> {
        self.lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
    }

    fn read(&self) -> Read {
        read(Agent::Codex, &hint(&stem_of(&own_id())), &self.bytes(), NOW)
    }

    fn facts(&self) -> Facts {
        self.read().own().clone()
    }
}

fn message(role: &str, part: &str, text: &str) -> Json {
    json!({"type": "message", "role": role, "content": [{"type": part, "text": text}]})
}

fn rows(read: &Read) -> Vec<(MessageKind, MessageSource, String)> {
    let row = |record: &Record| match &record.what {
        What::Message(message) => Some((message.kind, message.source, message.text.clone())),
        _ => None,
    };
    read.records.iter().filter_map(row).collect()
}

fn finished(read: &Read) -> Vec<(Option<i64>, Option<i64>, Option<Trigger>)> {
    let event = |record: &Record| match record.what {
        What::Compaction(Event::Finished { at_ms, started_ms, trigger, .. }) => {
            Some((at_ms, started_ms, trigger))
        }
        _ => None,
    };
    read.records.iter().filter_map(event).collect()
}

// ---- identity, kind, start ----

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

// ---- eras ----

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
        [OpenCall { id: "c".into(), name: "shell".into(), at_ms: Some(T0 + 3000) }]
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

/// A paginated turn: the call is told by both sides.
fn paginated() -> Tape {
    let mut tape = Tape { ordinal: Some(0), ..Tape::default() };
    tape.meta(&own_id(), &json!({"history_mode": "paginated"}));
    tape.at(1).start("n-1").item(&message("user", "input_text", "fix it"));
    tape.done(&json!({"type": "UserMessage", "id": "i", "content": [
        {"type": "text", "text": "fix it"}]}));
    tape.call("c").output("c");
    tape.done(&json!({"type": "CommandExecution", "id": "c", "command": ["ls", "-l"],
        "status": "completed"}));
    tape.done(&json!({"type": "Plan", "id": "p", "text": "1. look"}));
    tape.done(&json!({"type": "AgentMessage", "id": "a", "content": [
        {"type": "Text", "text": "done"}]}));
    tape.item(&message("assistant", "output_text", "done"));
    tape.complete("n-1");
    tape
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

// ---- activity ----

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

// ---- forks and sub-agents ----

/// A fork: own meta, its parent's records under new stamps.
fn fork() -> Tape {
    let mut tape = Tape::with_meta(&json!({"forked_from_id": uuid7(-1000, 9)}));
    tape.meta(&uuid7(-1000, 9), &json!({"cwd": "/parent", "git": {"branch": "theirs"}}));
    let old = uuid7(-900, 2);
    tape.at(1).start(&old).prompt("the parent's").call("c").output("c").answer("said");
    tape.line("turn_context", &json!({"model": "theirs", "cwd": "/parent"}));
    tape.tokens(2700, 200, 300).compacted().complete(&old);
    tape
}

#[test]
fn a_replay_is_nobodys_activity_turn_message_title_or_token() {
    let read = fork().read();
    assert_eq!(read.key(), SessionKey::top(own_id()));
    let facts = read.own();
    assert_eq!(facts.kind, Some(Kind::Fork));
    assert_eq!(facts.fork_of, Some(uuid7(-1000, 9)));
    assert_eq!(facts.last_activity_ms, None);
    assert_eq!(facts.turn, Turn::None);
    assert_eq!(facts.prompts, Counts::default());
    assert_eq!(facts.answers, Counts::default());
    assert_eq!(facts.tool_calls, Counts::default());
    assert_eq!(facts.tokens, Tokens::default());
    assert_eq!(facts.compaction.count, 0);
    assert_eq!((facts.model.as_deref(), facts.branch.as_deref()), (None, Some("main")));
    assert!(rows(&read).is_empty());
}

#[test]
fn after_a_replay_tokens_count_from_the_replayed_total() {
    let mut tape = fork();
    tape.at(60).start(&uuid7(60, 3)).prompt("my own").answer("yes").tokens(3780, 300, 420);
    tape.complete(&uuid7(60, 3));
    let facts = tape.facts();
    assert_eq!(facts.first_prompt.as_ref().unwrap().text, "my own");
    assert_eq!((facts.prompts.chosen(), facts.answers.chosen()), (1, 1));
    assert_eq!(
        facts.tokens,
        Tokens { input: 980, cache_read: 100, cache_write: 0, output: 120 },
        "4200 - 3000 in all"
    );
}

#[rstest]
#[case::older(uuid7(-1, 1), false)]
#[case::equal(uuid7(0, 7), true)]
#[case::later(uuid7(1, 1), true)]
#[case::version_4("1a2b3c4d-0000-4000-8000-000000000000".to_owned(), true)]
#[case::number("3".to_owned(), true)]
fn a_turn_not_older_than_the_rollout_ends_the_replay(#[case] turn: String, #[case] own: bool) {
    let mut tape = Tape::new();
    tape.meta("another", &json!({})).start(&turn);
    assert_eq!(tape.facts().turn == Open, own);
}

#[test]
fn a_start_without_an_id_ends_the_replay() {
    let mut tape = Tape::new();
    tape.meta("another", &json!({})).event("turn_started", &json!({}));
    assert_eq!(tape.facts().turn, Open);
}

#[test]
fn an_ordinal_below_the_history_start_is_the_parents() {
    let mut tape = Tape { ordinal: Some(0), ..Tape::default() };
    tape.meta(
        &own_id(),
        &json!({"subagent_history_start_ordinal": 5,
            "source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}}),
    );
    tape.meta("p", &json!({})).prompt("the parent's").tokens(1000, 0, 100);
    tape.at(7).prompt("my task").tokens(1500, 0, 200);
    let facts = tape.facts();
    assert_eq!(facts.prompts.chosen(), 1);
    assert_eq!(facts.first_prompt.unwrap().text, "my task");
    assert_eq!(facts.tokens.total(), 600);
}

#[test]
fn a_fork_whose_first_line_is_torn_keeps_the_id_in_its_name() {
    let mut tape = fork();
    tape.lines[0].truncate(80);
    let read = tape.read();
    assert_eq!(read.key(), SessionKey::top(own_id()));
    assert_eq!(read.own().prompts, Counts::default());
    assert_eq!(read.flaws.skipped, 1);
}

// ---- turns ----

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

// ---- messages ----

#[rstest]
#[case("<environment_context>\n<cwd>/w</cwd>")]
#[case("\n<user_instructions>be kind")]
#[case("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>")]
#[case("<turn_aborted>\nThe user interrupted")]
#[case("<recommended_plugins>")]
#[case("<hook_prompt>")]
#[case("<codex_internal_context source=\"goal\">")]
#[case("<goal_context>")]
#[case("<user_action>")]
#[case("<realtime_delegation>")]
#[case("<send_user_message_question_reply>")]
#[case("<skill>\n<name>x</name>")]
#[case("<user_shell_command>")]
#[case("# Files mentioned by the user:\n\n## a.rs")]
fn text_that_codex_puts_into_the_users_role_is_no_prompt(#[case] text: &str) {
    let mut tape = Tape::new();
    tape.item(&message("user", "input_text", text));
    let facts = tape.facts();
    assert_eq!((facts.prompts, facts.turn), (Counts::default(), Turn::None));
    assert!(facts.last_activity_ms.is_some(), "but an item all the same");
}

#[rstest]
#[case("<skills> are what?", "<skills> are what?")]
#[case("<b>bold</b>", "<b>bold</b>")]
#[case("# AGENTS.md is wrong", "# AGENTS.md is wrong")]
#[case(
    "# Files mentioned by the user:\n\n## a.rs\n\n## My request for Codex:\nfix \"it\"\n",
    "fix \"it\"\n"
)]
#[case("# Context from my IDE setup:\n\n## My request for Codex:\nfix it", "fix it")]
fn the_humans_own_words_are_the_prompt(#[case] text: &str, #[case] want: &str) {
    let mut tape = Tape::new();
    tape.prompt(text);
    let facts = tape.facts();
    assert_eq!(facts.prompts, Counts { primary: 1, fallback: 1 });
    assert_eq!(facts.first_prompt.unwrap().text, want);
}

#[test]
fn a_prompt_beside_injected_parts_is_found() {
    let mut tape = Tape::new();
    tape.item(&json!({"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "<environment_context>"},
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_text", "text": "what is this?"}]}));
    assert_eq!(tape.facts().first_prompt_fallback.unwrap().text, "what is this?");
}

#[test]
fn context_in_the_event_of_2025_is_no_prompt() {
    let mut tape = Tape::new();
    tape.event("user_message", &json!({"message": "be kind", "kind": "user_instructions"}));
    tape.event("user_message", &json!({"message": "<environment_context>", "kind": "plain"}));
    tape.event("user_message", &json!({"message": "go", "kind": "plain"}));
    assert_eq!(tape.facts().prompts.chosen(), 1);
}

#[test]
fn developer_messages_are_nothing() {
    let mut tape = Tape::new();
    tape.item(&message("developer", "input_text", "keep the build green"));
    let read = tape.read();
    assert!(rows(&read).is_empty());
}

#[rstest]
#[case(json!({"type": "function_call", "name": "shell", "call_id": "c",
    "arguments": "{\"command\":[\"bash\",\"-lc\",\"ls\"]}"}), Some("c"), "shell", "bash -lc ls")]
#[case(json!({"type": "function_call", "name": "update_plan", "call_id": "c",
    "arguments": "{\"plan\":[]}"}), Some("c"), "update_plan", "{\"plan\":[]}")]
#[case(json!({"type": "function_call", "name": "broken", "call_id": "c",
    "arguments": "{\"cmd\":"}), Some("c"), "broken", "{\"cmd\":")]
#[case(json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "c",
    "input": "*** Begin Patch"}), Some("c"), "apply_patch", "*** Begin Patch")]
#[case(json!({"type": "local_shell_call", "id": "l", "call_id": null, "status": "completed",
    "action": {"type": "exec", "command": ["ls"]}}), Some("l"), "local_shell", "ls")]
#[case(json!({"type": "tool_search_call", "call_id": "c", "arguments": {"query": "x"}}),
    Some("c"), "tool_search", "{\"query\":\"x\"}")]
#[case(json!({"type": "web_search_call", "id": "w", "action": {"type": "search",
    "query": "rust"}}), None, "web_search", "rust")]
#[case(json!({"type": "image_generation_call", "id": "g", "result": "AAAA"}),
    None, "image_generation", "[image 4 B]")]
#[case(json!({"type": "function_call", "name": 7, "arguments": []}), None, "function", "[]")]
fn calls_have_a_name_and_a_line(
    #[case] item: Json,
    #[case] open: Option<&str>,
    #[case] name: &str,
    #[case] line: &str,
) {
    let mut tape = Tape::new();
    tape.start("a").item(&item);
    let read = tape.read();
    let messages: Vec<_> = read
        .records
        .iter()
        .filter_map(|record| match &record.what {
            What::Message(message) => Some(message),
            _ => None,
        })
        .collect();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].kind, MessageKind::ToolCall);
    assert_eq!(messages[0].name.as_deref(), Some(name));
    assert_eq!(messages[0].text, line);
    let ids: Vec<_> = read.own().open_calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, open.into_iter().collect::<Vec<_>>());
    assert_eq!(read.own().tool_calls.chosen(), 1);
}

#[rstest]
#[case(json!("a.rs\n"), "a.rs\n")]
#[case(json!([{"type": "input_text", "text": "ok"}]), "ok")]
#[case(json!({"content": "inner", "success": true}), "inner")]
#[case(json!({"other": 1}), "{\"other\":1}")]
#[case(json!(null), "")]
fn results_close_their_call_whatever_their_shape(#[case] output: Json, #[case] want: &str) {
    let mut tape = Tape::new();
    tape.start("a").call("c");
    tape.item(&json!({"type": "function_call_output", "call_id": "c", "output": output}));
    let read = tape.read();
    assert!(read.own().open_calls.is_empty());
    assert_eq!(rows(&read)[1].2, want);
}

#[test]
fn pictures_become_size_notes() {
    let data = format!("data:image/png;base64,{}", "B".repeat(9 << 20));
    let mut tape = Tape::new();
    tape.event("user_message", &json!({"message": "", "images": [&data], "local_images": ["/p"]}));
    tape.event("user_message", &json!({"message": "look", "images": [&data]}));
    tape.item(&json!({"type": "custom_tool_call_output", "call_id": "c", "output": [
        {"type": "output_text", "text": "ok"}, {"type": "input_image", "image_url": data}]}));
    let texts: Vec<String> = rows(&tape.read()).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(texts, ["[image 9.0 MiB] [image]", "look", "ok\n[image 9.0 MiB]"]);
}

#[rstest]
#[case(0, "[x 0 B]")]
#[case(1023, "[x 1023 B]")]
#[case(1024, "[x 1.0 KiB]")]
#[case((12 << 20) + 15, "[x 12.0 MiB]")]
fn sizes_read_well(#[case] bytes: u64, #[case] want: &str) {
    assert_eq!(super::text::size_note("x", bytes), want);
}

#[test]
fn previews_are_short_whatever_the_text() {
    let mut tape = Tape::new();
    let long = "é\n".repeat(4000);
    tape.prompt(&long).answer(&long);
    tape.item(&json!({"type": "function_call", "name": long, "call_id": long,
        "arguments": long}));
    tape.item(&json!({"type": "function_call_output", "output": [
        {"text": long}, {"text": long}, {"type": "input_image"}]}));
    tape.done(&json!({"type": "FileChange", "changes": {"p": 1, "q": 2}, "status": "declined"}));
    for (kind, _, text) in rows(&tape.read()) {
        assert!(text.chars().count() <= PREVIEW_CHARS, "{kind:?}");
    }
}

#[test]
fn one_object_makes_at_most_one_row() {
    let read = sample().read();
    let mut offsets: Vec<u64> = read
        .records
        .iter()
        .filter(|record| matches!(record.what, What::Message(_)))
        .map(|record| record.span.offset)
        .collect();
    let all = offsets.len();
    offsets.dedup();
    assert_eq!(offsets.len(), all);
}

#[rstest]
#[case(
    r#""type":"response_item","payload":{"type":"message","role":"user","content":["#,
    Some(MessageKind::Prompt)
)]
#[case(
    r#""type":"event_msg","payload":{"type":"user_message","images":["#,
    Some(MessageKind::Prompt)
)]
#[case(
    r#""type":"event_msg","payload":{"type":"agent_message","message":"x"#,
    Some(MessageKind::Answer)
)]
#[case(
    r#""type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"x"#,
    Some(MessageKind::ToolResult)
)]
#[case(
    r#""type":"response_item","payload":{"type":"custom_tool_call","call_id":"c","input":"x"#,
    Some(MessageKind::ToolCall)
)]
#[case(
    r#""type":"event_msg","payload":{"type":"item_completed","item":{"type":"#,
    Some(MessageKind::Note)
)]
#[case(
    r#""type":"compacted","payload":{"message":"","replacement_history":[{"#,
    Some(MessageKind::Note)
)]
#[case(r#""type":"response_item","payload":{"type":"reasoning","encrypted_content":"x"#, None)]
fn a_line_too_long_to_read_is_still_a_row(#[case] head: &str, #[case] kind: Option<MessageKind>) {
    let mut state = State::new(Agent::Codex, &hint(&stem_of(&own_id())));
    let mut out = Vec::new();
    let head = format!("{{\"timestamp\":\"{}\",{head}", iso(2));
    let span = super::super::Span { offset: 7, len: 98 << 20 };
    let flaws = read_oversized(&mut state, head.as_bytes(), b"AAAA\"}]}}", span, &mut out);
    assert_eq!(flaws.oversized, 1);
    let rows: Vec<_> = out
        .iter()
        .filter_map(|record| match &record.what {
            What::Message(message) => Some((message.kind, message.text.as_str())),
            _ => None,
        })
        .collect();
    let want: Vec<_> = kind.map(|kind| (kind, "[oversized 98.0 MiB]")).into_iter().collect();
    assert_eq!(rows, want);
    assert!(out.iter().any(|record| record.what == What::Activity));
}

// ---- tokens and context ----

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

// ---- compactions ----

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

// ---- the index ----

#[test]
fn the_index_names_threads_and_is_no_session() {
    let hint = Hint {
        place: Place::SessionIndex,
        stem: "session_index".to_owned(),
        folder: None,
        named_ms: None,
    };
    let mut bytes = Vec::new();
    for (id, name, second) in [("t-1", "old", 1), ("t-2", "other", 2), ("t-1", "new", 3)] {
        let line = json!({"id": id, "thread_name": name, "updated_at": iso(second)});
        bytes.extend_from_slice(format!("{line}\n").as_bytes());
    }
    bytes.extend_from_slice(b"{\"id\":\"t-3\"}\n{\"id\":[],\"thread_name\":\"x\"}\n");
    let read = read(Agent::Codex, &hint, &bytes, NOW);
    assert_eq!(read.state.key(), None);
    let title = |id: &str, text: &str| Title {
        kind: TitleKind::Custom,
        to: Some(SessionKey::top(id)),
        text: text.to_owned(),
    };
    let want = [title("t-1", "old"), title("t-2", "other"), title("t-1", "new")];
    assert_eq!(read.titles(), want.iter().collect::<Vec<_>>());
    let stamps: Vec<_> = read.records.iter().map(|record| record.at_ms.unwrap() - T0).collect();
    assert_eq!(stamps, [1000, 2000, 3000], "by them the last one wins");
}

// ---- properties ----

/// A transcript with every feature, of all eras.
fn sample() -> Tape {
    let mut tape = fork();
    tape.raw(&message("assistant", "output_text", "bare, replayed").to_string());
    tape.at(60).start(&uuid7(60, 3)).prompt("my own").call("c-1").output("c-1").answer("yes");
    tape.line("turn_context", &json!({"model": "gpt-6", "cwd": "/w"})).tokens(3780, 300, 420);
    tape.at(61).compacted().estimate(900).event("context_compacted", &json!({}));
    tape.start("nested").answer("reviewed").complete("nested").complete(&uuid7(60, 3));
    tape.raw(&message("user", "input_text", "bare").to_string());
    tape.at(62).start("killed").prompt("again").call("c-2");
    tape.at(63).start("manual").compacted().complete("manual");
    tape.at(64).start("b").prompt("resumed").event("error", &json!({"message": "m"}));
    tape.complete("b").aborted("none").tokens(10, 0, 1);
    tape.ordinal = Some(40);
    tape.lines.extend(paginated().lines);
    tape.at(70).start("p").done(&json!({"type": "UserMessage", "content": [{"text": "go"}]}));
    tape.compacted().estimate(800).event(
        "item_completed",
        &json!({"item": {"type": "ContextCompaction"}, "started_at_ms": T0, "completed_at_ms": T0}),
    );
    tape.compacted().item(&json!({"type": "reasoning"})).call("c-3").aborted("p");
    tape.event("thread_rolled_back", &json!({"num_turns": 1})).event("new", &json!({}));
    tape.raw("{\"type\":\"response_item\"}").raw("42").raw("{}");
    tape
}

/// A small file without task events or metas.
fn old_sample() -> Tape {
    let mut tape = Tape::default();
    tape.raw(&format!(r#"{{"id":"b-1","timestamp":"{}","instructions":null}}"#, iso(3)));
    tape.prompt("one").call("c").answer("wait").output("c").answer("done").call("d");
    tape.prompt("two").event("error", &json!({"message": 7})).compacted().answer("late");
    tape
}

/// Every record, the state stored and restored before each line that `stored` picks.
fn records(tape: &Tape, stored: impl Fn(usize) -> bool) -> (Vec<Record>, State) {
    let mut state = State::new(Agent::Codex, &hint(&stem_of(&own_id())));
    let mut out = Vec::new();
    let mut offset = 0;
    for (at, line) in tape.lines.iter().enumerate() {
        if stored(at) {
            let text = serde_json::to_string(&state).unwrap();
            state = serde_json::from_str(&text).unwrap();
        }
        read_line(&mut state, line.as_bytes(), offset, &mut out);
        offset += line.len() as u64 + 1;
    }
    (out, state)
}

/// More than any honest state needs; far less than a transcript.
const STATE_BYTES_MAX: usize = 32 << 10;

/// Words that steer the adapter, to be put in the place of others.
const WORDS: [&str; 12] = [
    "null",
    "[]",
    "{}",
    "-1",
    "18446744073709551615",
    "\"session_meta\"",
    "\"task_started\"",
    "\"compacted\"",
    "\"user_message\"",
    "\"\\ud83d\"",
    "[[[{\"type\":\"text\",\"text\":\"x\"}]]]",
    "\"01a22b8a-1780-7070-9b6e-f1834a0e5bce\"",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_state_stored_between_any_two_lines_changes_nothing(
        stored in prop::collection::vec(any::<bool>(), 128), old in any::<bool>()
    ) {
        let tape = if old { old_sample() } else { sample() };
        let plain = records(&tape, |_| false);
        prop_assert_eq!(&records(&tape, |at| stored[at % stored.len()]), &plain);
        prop_assert_eq!(&records(&tape, |_| true), &plain);
    }

    #[test]
    fn no_mutation_panics_or_swells_the_state(
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_usize..40, any::<u8>()),
            1..30,
        ),
        old in any::<bool>(),
    ) {
        let mut tape = if old { old_sample() } else { sample() };
        for (line, at, edit, byte) in edits {
            let index = line.index(tape.lines.len());
            let mut bytes = tape.lines[index].clone().into_bytes();
            let at = at.index(bytes.len() + 1);
            match edit {
                0..12 => {
                    let value = bytes[at..].iter().position(|b| *b == b':').map(|p| at + p + 1);
                    let start = value.unwrap_or(at);
                    let len = bytes[start..].iter().position(|b| matches!(b, b',' | b'}'));
                    let end = len.map_or(bytes.len(), |len| start + len);
                    bytes.splice(start..end, WORDS[edit].bytes());
                }
                12..20 => bytes.truncate(at),
                20..28 if at < bytes.len() => bytes[at] = byte,
                28..34 => {
                    let other = tape.lines[at % tape.lines.len()].clone();
                    tape.lines.insert(index, other);
                }
                _ => bytes.insert(at, byte),
            }
            tape.lines[index] = String::from_utf8_lossy(&bytes).into_owned();
        }
        let (out, state) = records(&tape, |_| false);
        prop_assert!(serde_json::to_string(&state).unwrap().len() <= STATE_BYTES_MAX);
        for record in out {
            if let What::Message(message) = record.what {
                prop_assert!(message.text.chars().count() <= PREVIEW_CHARS);
            }
        }
    }
}

#[test]
fn a_hostile_rollout_keeps_the_state_small() {
    let mut tape = old_sample();
    let long = "x".repeat(5000);
    for number in 0..500 {
        tape.call(&format!("{number}{long}"));
    }
    let (_, state) = records(&tape, |_| false);
    assert!(serde_json::to_string(&state).unwrap().len() <= STATE_BYTES_MAX);
    for number in 0..500 {
        tape.start(&format!("{number}{long}")).compacted();
    }
    let (_, state) = records(&tape, |_| false);
    assert!(serde_json::to_string(&state).unwrap().len() <= STATE_BYTES_MAX);
}
