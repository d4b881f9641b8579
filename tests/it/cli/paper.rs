//! Transcripts as the three agents write them, a line at a time, with the stamps a test names.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};

use super::{Home, stamp};

pub(super) const CLAUDE_ID: &str = "26f52589-6919-4be1-ac4b-9de9d22c854c";
pub(super) const CODEX_ID: &str = "01a22b80-efc0-70bc-a6a2-339c6bb9adef";
pub(super) const DSH_ID: &str = "session-36ff7ae3-2273-46f2-99a4-3d775e289a80";

/// Where the transcript of a Claude session lies.
pub(super) fn claude_path(id: &str) -> String {
    format!(".claude/projects/-tmp-demo/{id}.jsonl")
}

pub(super) fn codex_path(id: &str) -> String {
    format!(".codex/sessions/2026/11/30/rollout-2026-11-30T08-10-00-{id}.jsonl")
}

pub(super) fn dsh_path(id: &str) -> String {
    format!(".dsh/sessions/--tmp-demo--/{id}/session.jsonl")
}

/// Appends lines to a file of the home, which is made if it is not there.
pub(super) fn append(home: &Home, rel: &str, lines: &[Value]) {
    let path = home.home().join(rel);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    file.write_all((text.join("\n") + "\n").as_bytes()).unwrap();
}

fn claude(id: &str, at: i64, of: Value) -> Value {
    let mut line = json!({
        "parentUuid": null, "isSidechain": false, "userType": "external", "cwd": "/tmp/demo",
        "sessionId": id, "version": "2.1.270", "gitBranch": "main",
        "uuid": format!("00000000-0000-4000-8000-{at:012}"), "timestamp": stamp(at),
    });
    let Value::Object(of) = of else { panic!("{of}") };
    line.as_object_mut().unwrap().extend(of);
    line
}

pub(super) fn claude_prompt(id: &str, at: i64, text: &str) -> Value {
    claude(id, at, json!({"type": "user", "message": {"role": "user", "content": text}}))
}

fn claude_message(id: &str, at: i64, content: &Value, stop: &str) -> Value {
    let of = json!({
        "type": "assistant", "requestId": format!("req_{at}"),
        "message": {
            "id": format!("msg_{at}"), "type": "message", "role": "assistant",
            "model": "claude-opus-5", "content": [content], "stop_reason": stop,
            "usage": {"input_tokens": 900, "cache_creation_input_tokens": 30,
                "cache_read_input_tokens": 20, "output_tokens": 40},
        },
    });
    claude(id, at, of)
}

pub(super) fn claude_answer(id: &str, at: i64, text: &str) -> Value {
    claude_message(id, at, &json!({"type": "text", "text": text}), "end_turn")
}

/// A call that waits for its result.
pub(super) fn claude_call(id: &str, at: i64, name: &str, input: &Value) -> Value {
    let call = json!({"type": "tool_use", "id": format!("toolu_{at}"), "name": name,
        "input": input});
    claude_message(id, at, &call, "tool_use")
}

/// What Claude writes last when it ends well: began then, and took so long.
pub(super) fn claude_cost(id: &str, began: i64, took: i64) -> Value {
    json!({"type": "cost-state", "sessionId": id, "totalCostUSD": 0.03, "totalDuration": took,
        "startTime": began, "modelUsage": {}})
}

/// A whole small session: a prompt then, and its answer ten seconds later.
pub(super) fn claude_session(home: &Home, id: &str, at: i64, prompt: &str) {
    let lines = [claude_prompt(id, at, prompt), claude_answer(id, at + 10_000, "Done.")];
    append(home, &claude_path(id), &lines);
}

/// A rollout with one finished turn of ten seconds.
pub(super) fn codex_session(home: &Home, id: &str, at: i64, prompt: &str, answer: &str) {
    let turn = "01a22b80-efc0-7b2f-8dc8-e6f315882441";
    let line = |after: i64, kind: &str, payload: Value| json!({"timestamp": stamp(at + after), "type": kind, "payload": payload});
    let lines = [
        line(
            0,
            "session_meta",
            json!({"id": id, "timestamp": stamp(at), "cwd": "/tmp/demo",
            "originator": "codex_cli_rs", "cli_version": "0.151.0", "source": "cli",
            "git": {"branch": "main"}}),
        ),
        line(
            0,
            "event_msg",
            json!({"type": "task_started", "turn_id": turn,
            "model_context_window": 258_400}),
        ),
        line(
            0,
            "turn_context",
            json!({"turn_id": turn, "cwd": "/tmp/demo",
            "model": "gpt-5.3-codex"}),
        ),
        line(
            1_000,
            "response_item",
            json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": prompt}]}),
        ),
        line(
            1_000,
            "event_msg",
            json!({"type": "user_message", "message": prompt,
            "images": []}),
        ),
        line(
            2_000,
            "response_item",
            json!({"type": "function_call", "name": "exec_command",
            "arguments": "{}", "call_id": "call_1"}),
        ),
        line(
            3_000,
            "response_item",
            json!({"type": "function_call_output", "call_id": "call_1",
            "output": "ok"}),
        ),
        line(9_000, "event_msg", json!({"type": "agent_message", "message": answer})),
        line(
            9_000,
            "event_msg",
            json!({"type": "token_count", "info": {
            "total_token_usage": {"input_tokens": 900, "cached_input_tokens": 200,
                "output_tokens": 100, "total_tokens": 1_000},
            "last_token_usage": {"input_tokens": 900, "cached_input_tokens": 200,
                "output_tokens": 100, "total_tokens": 1_000},
            "model_context_window": 258_400}}),
        ),
        line(
            10_000,
            "event_msg",
            json!({"type": "task_complete", "turn_id": turn,
            "last_agent_message": answer}),
        ),
    ];
    append(home, &codex_path(id), &lines);
}

/// A log with one finished turn of ten seconds, and a compaction that an end-seed made stale.
pub(super) fn dsh_session(home: &Home, id: &str, at: i64, prompt: &str, answer: &str) {
    let row = |seq: i64, after: i64, kind: &str, data: Value| json!({"type": kind, "seq": seq, "time": at + after, "data": data});
    let mut lines = vec![json!({"type": "session", "version": 0, "id": id, "createdAt": at,
        "cwd": "/tmp/demo", "delegationDepth": 0})];
    lines.extend([
        row(0, 0, "turn/start", json!({"turn": 1})),
        row(
            1,
            1_000,
            "user/message",
            json!({"id": "m1", "role": "user",
            "source": {"kind": "user"}, "content": [{"type": "text", "text": prompt}]}),
        ),
        row(
            2,
            8_000,
            "assistant/message",
            json!({"turn": 1, "step": 1, "message": {
            "id": "a1", "role": "assistant",
            "source": {"kind": "model", "provider": "p", "model": "deepseek-v4"},
            "content": [{"type": "text", "text": answer}]},
            "usage": {"inputTokens": 9, "outputTokens": 2}}),
        ),
        row(3, 9_000, "compaction/start", json!({"compactionId": "c1", "turn": 1})),
        row(4, 9_500, "session/end-seed", json!({})),
        row(5, 10_000, "turn/end", json!({"turn": 1, "reason": {"kind": "completed"}})),
    ]);
    append(home, &dsh_path(id), &lines);
}
