//! Prompts, answers, calls and results as rows.

use rstest::rstest;
use serde_json::{Value as Json, json};

use super::super::super::Outcome::Completed;
use super::super::super::Turn::Closed;
use super::super::super::facts::Counts;
use super::super::super::testing::hint;
use super::super::super::{
    Agent, MessageKind, PREVIEW_CHARS, Span, State, Turn, What, read_oversized,
};
use super::{Tape, iso, message, own_id, rows, sample, stem_of};

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
    assert_eq!(super::super::text::size_note("x", bytes), want);
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
    let span = Span { offset: 7, len: 98 << 20 };
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

/// An item with an id, as the program tells it.
fn told(kind: &str, id: &str, text: &str) -> Json {
    json!({"type": kind, "id": id, "content": [{"type": "text", "text": text}]})
}

fn counts(tape: &Tape) -> [u64; 3] {
    let facts = tape.facts();
    [facts.prompts.chosen(), facts.answers.chosen(), facts.tool_calls.chosen()]
}

#[test]
fn what_is_written_twice_counts_once_also_later_and_behind_its_turn() {
    let mut tape = Tape::new();
    tape.at(1).start("a");
    let first = tape.lines.len();
    tape.done(&told("UserMessage", "u", "do it")).done(&told("AgentMessage", "m", "done"));
    tape.item(&json!({"type": "function_call", "id": "f", "call_id": "c", "name": "x"}));
    tape.item(&json!({"type": "function_call_output", "id": "o", "call_id": "c", "output": "y"}));
    let block = tape.lines[first..].to_vec();
    assert_eq!(counts(&tape), [1, 1, 1]);
    tape.at(2).complete("a");
    tape.lines.extend(block.iter().map(|line| line.replace(&iso(1), &iso(3))));
    assert_eq!(counts(&tape), [1, 1, 1]);
    let read = tape.read();
    assert_eq!((read.own().turn, read.own().last_turn), (Closed, Some(Completed)));
}

#[test]
fn records_without_ids_are_the_same_at_the_same_moment() {
    let mut tape = Tape::new();
    tape.at(1).start("a").event("user_message", &json!({"message": "go"}));
    tape.event("agent_message", &json!({"message": "ok"}));
    let block = tape.lines[2..].to_vec();
    tape.lines.extend(block);
    assert_eq!(counts(&tape), [1, 1, 0]);
    tape.at(2).event("user_message", &json!({"message": "go"}));
    tape.event("agent_message", &json!({"message": "ok"}));
    assert_eq!(counts(&tape), [2, 2, 0], "said again is another");
}

#[test]
fn an_id_used_again_in_another_turn_is_another() {
    let mut tape = Tape::new();
    for turn in ["a", "b"] {
        tape.at(1).start(turn);
        let done = |item: Json| json!({"turn_id": turn, "item": item});
        tape.event("item_completed", &done(told("UserMessage", "u", "do it")));
        tape.call("call_1").output("call_1");
        tape.event("item_completed", &done(told("AgentMessage", "m", "done"))).complete(turn);
    }
    assert_eq!(counts(&tape), [2, 2, 2]);
}

#[test]
fn bare_lines_without_stamps_and_ids_all_count() {
    let mut tape = Tape::default();
    tape.raw(&format!(r#"{{"id":"b-1","timestamp":"{}","instructions":null}}"#, iso(3)));
    for _ in 0..2 {
        tape.raw(&message("user", "input_text", "yes").to_string());
        tape.raw(&message("assistant", "output_text", "ok").to_string());
    }
    assert_eq!(counts(&tape), [2, 2, 0]);
}

#[test]
fn both_tellings_of_a_thing_keep_their_row() {
    let mut tape = Tape::new();
    tape.start("a").item(&json!({"type": "message", "id": "m", "role": "assistant",
        "content": [{"type": "output_text", "text": "done"}]}));
    tape.done(&told("AgentMessage", "m", "done"));
    let facts = tape.facts();
    assert_eq!(facts.answers, Counts { primary: 1, fallback: 1 });
}
