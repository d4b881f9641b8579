//! Prompts, answers, calls and results: what counts, once, and what its preview shows.

use rstest::rstest;
use serde_json::json;

use super::super::super::MessageKind::{Answer, Note, Prompt, ToolCall, ToolResult};
use super::super::super::{Flaws, PREVIEW_CHARS, Record, Span, State, TurnMark, read_oversized};
use super::*;

fn image(bytes: usize) -> Json {
    json!({"type": "image", "source": {"type": "base64", "data": "A".repeat(bytes)}})
}

fn text(text: &str) -> Json {
    json!({"type": "text", "text": text})
}

#[rstest]
#[case::typed(user(1, "fix it"), true)]
#[case::by_a_program(with(user(1, "fix it"), json!({"promptSource": "sdk"})), true)]
#[case::by_a_human(with(user(1, "fix it"), json!({"origin": {"kind": "human"}})), true)]
#[case::blocks(user(1, json!([text("fix it")])), true)]
#[case::by_an_agent(with(user(1, "fix it"), json!({"origin": {"kind": "coordinator"}})), false)]
#[case::by_the_system(with(user(1, "fix it"), json!({"promptSource": "system"})), false)]
#[case::meta(meta(1, "fix it"), false)]
#[case::summary(with(user(1, "fix it"), json!({"isCompactSummary": true})), false)]
#[case::result(user(1, json!([{"type": "tool_result"}, text("fix it")])), false)]
#[case::sentinel(user(1, "[Request interrupted by user]"), false)]
#[case::command(command(1, "review"), false)]
#[case::local(user(1, "<local-command-stderr>x</local-command-stderr>"), false)]
#[case::bash(user(1, "<bash-input>ls</bash-input>"), false)]
#[case::reminder(user(1, "<system-reminder>x</system-reminder>"), false)]
#[case::notification(user(1, "<task-notification>\n<task-id>a</task-id>"), false)]
#[case::spaced_tag(user(1, " <system-reminder>x</system-reminder>"), false)]
#[case::quoted_tag(user(1, "what is <system-reminder>?"), true)]
#[case::no_content(user(1, Json::Null), false)]
#[case::no_blocks(user(1, json!([])), false)]
fn a_prompt_is_text_from_outside(#[case] line: Json, #[case] counts: bool) {
    let read = read_lines(&[line]);
    assert_eq!(read.own().prompts.primary, u64::from(counts));
    assert_eq!(rows(&read).iter().filter(|row| row.0 == Prompt).count(), usize::from(counts));
}

#[test]
fn context_beside_a_prompt_is_a_note_and_the_prompt_is_the_typed_text() {
    let content =
        json!([text("<ide_opened_file>a.rs</ide_opened_file>"), text("fix it"), text("now")]);
    let read = read_lines(&[user(1, content)]);
    assert_eq!(
        rows(&read),
        [
            (Note, false, "<ide_opened_file>a.rs</ide_opened_file>"),
            (Prompt, true, "fix it"),
            (Prompt, false, "now"),
        ]
    );
    assert_eq!(read.own().first_prompt.as_ref().unwrap().text, "fix it");
}

#[test]
fn a_picture_is_a_size_note_beside_a_prompt_and_a_prompt_where_it_stands_alone() {
    let read = read_lines(&[user(1, json!([image(2 << 20), text("Why?")]))]);
    assert_eq!(rows(&read), [(Note, false, "[image 2.0 MiB]"), (Prompt, true, "Why?")]);
    let read = read_lines(&[user(1, json!([image(1536), image(10)]))]);
    assert_eq!(rows(&read), [(Prompt, true, "[image 1.5 KiB]"), (Note, false, "[image 10 B]")]);
}

#[rstest]
#[case::document(json!({"type": "document", "source": {"data": "AAAA"}}), "[document 4 B]")]
#[case::linked(json!({"type": "image", "source": {"type": "url", "url": "https://x"}}), "[image]")]
#[case::without_source(json!({"type": "image", "source": 7}), "[image]")]
fn what_is_no_text_is_named(#[case] block: Json, #[case] want: &str) {
    assert_eq!(rows(&read_lines(&[user(1, json!([block]))])), [(Prompt, true, want)]);
}

#[test]
fn a_preview_has_at_most_256_characters_and_is_cut_between_them() {
    let long = "é🙏".repeat(400);
    let content =
        json!([{"type": "tool_result", "tool_use_id": "t", "content": [text(&long), text("x")]}]);
    let read = read_lines(&[user(1, long.as_str()), user(2, content)]);
    let want: String = long.chars().take(PREVIEW_CHARS).collect();
    assert_eq!(rows(&read), [(Prompt, true, &*want), (ToolResult, false, &*want)]);
}

#[test]
fn a_lone_surrogate_in_a_preview_is_one_replacement_character() {
    let line = br#"{"type":"user","uuid":"u","message":{"content":"Ship the \ud83d release"}}"#;
    let read = read(Agent::Claude, &hint(SESSION), &[line, &b"\n"[..]].concat(), LATER_MS);
    assert_eq!(rows(&read), [(Prompt, true, "Ship the \u{fffd} release")]);
}

#[test]
fn a_tag_written_with_escapes_is_that_tag() {
    let line = br#"{"type":"user","uuid":"u","message":{"content":"\u003cbash-input>ls"}}"#;
    let read = read(Agent::Claude, &hint(SESSION), &[line, &b"\n"[..]].concat(), LATER_MS);
    assert_eq!(rows(&read), [(Note, false, "<bash-input>ls")]);
}

#[test]
fn a_record_written_again_is_the_same_row() {
    let read = read_lines(&[user(1, "x"), user(1, "x"), says(2, "m1", "y"), says(2, "m1", "y")]);
    assert_eq!((read.own().prompts.primary, read.own().answers.primary), (1, 1));
    let natives: Vec<_> = messages(&read).map(|row| row.native.clone().unwrap()).collect();
    assert_eq!(natives, ["r-1#0", "r-1#0", "r-2#0", "r-2#0"]);
}

#[test]
fn of_the_lines_of_one_message_the_first_one_counts() {
    let thinking = json!({"type": "thinking", "thinking": "", "signature": "x"});
    let lines = [
        assistant(1, "m1", thinking, Json::Null),
        assistant(2, "m1", text("Let me look."), Json::Null),
        calls(3, "m1", "t1", "Bash"),
        result(4, "t1"),
        calls(5, "m1", "t2", "Read"),
        says(6, "m2", "Done."),
    ];
    let read = read_lines(&lines);
    assert_eq!(
        rows(&read),
        [
            (Answer, true, ""),
            (Answer, false, "Let me look."),
            (ToolCall, true, "ls"),
            (ToolResult, false, "ok"),
            (ToolCall, true, "ls"),
            (Answer, true, "Done."),
        ]
    );
    assert_eq!((read.own().answers.primary, read.own().tool_calls.primary), (2, 2));
    assert_eq!(read.own().newest_text(), Some("Done."));
}

#[test]
fn a_message_of_calls_alone_is_an_answer() {
    let read = read_lines(&[calls(1, "m1", "t1", "Bash")]);
    assert_eq!(rows(&read), [(Answer, true, ""), (ToolCall, true, "ls")]);
    let natives: Vec<_> = messages(&read).map(|row| row.native.as_deref().unwrap()).collect();
    assert_eq!(natives, ["r-1#m", "r-1#0"]);
}

#[rstest]
#[case::without_an_id(json!({"content": [{"type": "text", "text": "x"}]}), 1)]
#[case::without_content(json!({"id": "m1"}), 1)]
#[case::with_neither(json!({"role": "assistant", "contents": []}), 0)]
#[case::no_object(json!("error"), 0)]
#[case::synthetic(json!({"id": "m1", "model": "<synthetic>", "content": [{"type": "text"}]}), 0)]
#[case::plain_text(json!({"id": "m1", "content": "x"}), 1)]
#[case::unknown_block(json!({"id": "m1", "content": [{"type": "brand-new", "data": {}}]}), 1)]
fn a_model_message_is_an_answer(#[case] message: Json, #[case] answers: u64) {
    let read = read_lines(&[with(record("assistant", 1), json!({ "message": message }))]);
    assert_eq!(read.own().answers.primary, answers);
}

#[rstest]
#[case::bash(json!({"description": "List", "command": "ls -l"}), "ls -l")]
#[case::read(json!({"file_path": "/w/a.rs", "limit": 5}), "/w/a.rs")]
#[case::task(json!({"prompt": "Look at …", "description": "Survey"}), "Survey")]
#[case::another(json!({"n": 1, "note": "hello"}), "hello")]
#[case::none(json!({"n": 1}), "")]
#[case::no_object(json!(7), "")]
fn a_call_shows_its_most_telling_argument(#[case] input: Json, #[case] want: &str) {
    let block = json!({"type": "tool_use", "id": "t", "name": "X", "input": input});
    let read = read_lines(&[assistant(1, "m1", block, "tool_use")]);
    assert_eq!(rows(&read)[1], (ToolCall, true, want));
}

#[test]
fn a_server_tool_brings_its_own_result() {
    let called =
        json!({"type": "server_tool_use", "id": "s1", "name": "search", "input": {"query": "q"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []});
    let message =
        json!({"id": "m1", "content": [called, found, text("Found.")], "stop_reason": "end_turn"});
    let read = read_lines(&[with(record("assistant", 1), json!({ "message": message }))]);
    let kinds: Vec<_> = rows(&read).into_iter().map(|row| row.0).collect();
    assert_eq!(kinds, [Answer, ToolCall, ToolResult, Answer]);
    assert!(read.own().open_calls.is_empty());
}

#[test]
fn what_nobody_typed_is_a_note_and_noise_is_no_row() {
    let lines = [
        meta(1, "<local-command-caveat>Caveat: x</local-command-caveat>"),
        user(2, "<command-name>/foo</command-name><command-args>a b</command-args>"),
        meta(3, "Do foo."),
        filler(4),
        user(5, "<local-command-stdout>x</local-command-stdout>"),
        user(6, "[Request interrupted by user]"),
        api_error(7),
        system(8, "away_summary"),
    ];
    assert_eq!(
        rows(&read_lines(&lines)),
        [
            (Note, false, "/foo a b"),
            (Note, false, "Do foo."),
            (Note, false, "[Request interrupted by user]"),
            (Note, false, "API Error: 529 overloaded"),
        ]
    );
}

#[rstest]
#[case::typed(json!({"commandMode": "prompt"}), true)]
#[case::no_mode(json!({}), true)]
#[case::by_a_human(json!({"origin": {"kind": "human"}}), true)]
#[case::notification(json!({"commandMode": "task-notification"}), false)]
#[case::from_inside(json!({"origin": {"kind": "task-notification"}}), false)]
#[case::meta(json!({"isMeta": true}), false)]
fn a_message_typed_into_a_running_turn_is_a_prompt(#[case] more: Json, #[case] counts: bool) {
    let queued = with(json!({"type": "queued_command", "prompt": "also the docs"}), more);
    let read = read_lines(&[with(record("attachment", 1), json!({ "attachment": queued }))]);
    let kind = if counts { Prompt } else { Note };
    assert_eq!(rows(&read), [(kind, counts, "also the docs")]);
}

/// What a line of 98 MiB says of which only the ends are read.
fn read_ends(head: &str, tail: &str) -> Vec<Record> {
    let mut state = State::new(Agent::Claude, &hint(SESSION));
    let mut out = Vec::new();
    let span = Span { offset: 7, len: 98 << 20 };
    let flaws = read_oversized(&mut state, head.as_bytes(), tail.as_bytes(), span, &mut out);
    assert_eq!(flaws, Flaws { skipped: 0, oversized: 1 });
    assert_eq!(out[0].at_ms, Some(ms(1)));
    assert!(out.iter().any(|record| record.what == What::Activity));
    assert!(out.iter().any(|record| record.what == What::Turn(TurnMark::Open)));
    out
}

#[rstest]
#[case::a_result(r#"[{"tool_use_id":"t1","type":"tool_result","content":[{"type":"image","s":{"#,
    &[(ToolResult, false, Some("t1"), "[oversized 98.0 MiB]")])]
#[case::a_picture_after_a_text(r#"[{"type":"text","text":"Why?"},{"type":"image","source":{"#,
    &[(Prompt, true, None, "Why?"), (Note, false, None, "[oversized 98.0 MiB]")])]
#[case::a_text_block(r#"[{"type":"text","text":"AA"#,
    &[(Prompt, true, None, "[oversized 98.0 MiB]")])]
#[case::a_plain_text(r#""AA"#, &[(Note, false, None, "[oversized 98.0 MiB]")])]
fn an_oversized_line_says_so_and_keeps_what_its_ends_tell(
    #[case] content: &str,
    #[case] want: &[(MessageKind, bool, Option<&str>, &str)],
) {
    let head = format!(r#"{{"type":"user","message":{{"role":"user","content":{content}"#);
    // As written by the agent: what is around the message stands behind it.
    let tail = format!(r#"AA"}}}}]}},"uuid":"u-1","timestamp":"{}"}}"#, stamp(1));
    let records = read_ends(&head, &tail);
    let rows = records.iter().filter_map(|record| {
        let What::Message(row) = &record.what else { return None };
        Some((row.kind, row.counted, row.call.as_deref(), row.text.as_str()))
    });
    assert_eq!(rows.collect::<Vec<_>>(), want);
}

#[test]
fn a_small_message_before_an_oversized_field_is_read_whole() {
    let block = r#"{"tool_use_id":"t1","type":"tool_result","content":"ok"}"#;
    let head = format!(r#"{{"type":"user","message":{{"content":[{block}]}},"toolUseResult":"AA"#);
    let records = read_ends(&head, &format!(r#"AA","timestamp":"{}"}}"#, stamp(1)));
    let answered = |record: &Record| matches!(&record.what, What::Message(row) if row.text == "ok");
    assert!(records.iter().any(answered));
}
