//! What the adapter claims, one transcript per rule. The builders write records as Claude does.

mod activity;
mod background;
mod brackets;
mod places;
mod properties;
mod rows;
mod spend;
mod tail;
mod titles;
mod turns;

use serde_json::{Value as Json, json};

use super::super::testing::{Read, hint, read};
use super::super::{Agent, Hint, Message, MessageKind, What};

/// The session of the transcripts below.
const SESSION: &str = "s-1";
/// A moment after everything here, ms.
const LATER_MS: i64 = 4_000_000_000_000;

/// Second `second` of the transcript, as written.
fn stamp(second: i64) -> String {
    let base: jiff::Timestamp = "2026-09-01T10:00:00Z".parse().unwrap();
    let at = jiff::Timestamp::from_millisecond(base.as_millisecond() + second * 1000).unwrap();
    format!("{at:.3}")
}

/// Second `second` of the transcript, ms.
fn ms(second: i64) -> i64 {
    stamp(second).parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// A conversation record; its uuid tells its second.
fn record(kind: &str, second: i64) -> Json {
    json!({"parentUuid": null, "isSidechain": false, "type": kind, "uuid": format!("r-{second}"),
        "timestamp": stamp(second), "cwd": "/w", "sessionId": SESSION, "version": "2.1.270",
        "gitBranch": "main", "entrypoint": "cli"})
}

/// The record with more fields, or other values in them.
fn with(mut record: Json, more: Json) -> Json {
    let Json::Object(more) = more else { panic!("fields, please") };
    record.as_object_mut().unwrap().extend(more);
    record
}

fn user(second: i64, content: impl Into<Json>) -> Json {
    let message = json!({"role": "user", "content": content.into()});
    with(record("user", second), json!({ "message": message }))
}

fn meta(second: i64, content: impl Into<Json>) -> Json {
    with(user(second, content), json!({"isMeta": true}))
}

fn result(second: i64, call: &str) -> Json {
    user(second, json!([{"type": "tool_result", "tool_use_id": call, "content": "ok"}]))
}

fn assistant(second: i64, id: &str, block: impl Into<Json>, stop: impl Into<Json>) -> Json {
    let block: Json = block.into();
    let message = json!({"id": id, "type": "message", "role": "assistant", "model": "claude-opus-5",
        "content": [block], "stop_reason": stop.into()});
    with(record("assistant", second), json!({"message": message, "requestId": "req_1"}))
}

fn says(second: i64, id: &str, text: &str) -> Json {
    assistant(second, id, json!({"type": "text", "text": text}), "end_turn")
}

fn calls(second: i64, id: &str, call: &str, name: &str) -> Json {
    let block = json!({"type": "tool_use", "id": call, "name": name, "input": {"command": "ls"}});
    assistant(second, id, block, "tool_use")
}

fn system(second: i64, subtype: &str) -> Json {
    with(record("system", second), json!({ "subtype": subtype }))
}

fn filler(second: i64) -> Json {
    let message = json!({"id": "x", "model": "<synthetic>", "stop_reason": "stop_sequence",
        "content": [{"type": "text", "text": "No response requested."}]});
    with(record("assistant", second), json!({"message": message, "isApiErrorMessage": false}))
}

fn api_error(second: i64) -> Json {
    let message = json!({"id": "x", "model": "<synthetic>", "stop_reason": "stop_sequence",
        "content": [{"type": "text", "text": "API Error: 529 overloaded"}],
        "usage": {"input_tokens": 0, "output_tokens": 0}});
    let error = json!({"message": message, "isApiErrorMessage": true, "error": "overloaded"});
    with(record("assistant", second), error)
}

/// A metadata record of the session.
fn metadata(kind: &str, payload: Json) -> Json {
    with(json!({"type": kind, "sessionId": SESSION}), payload)
}

fn command(second: i64, name: &str) -> Json {
    user(second, format!("<command-name>/{name}</command-name>\n<command-args></command-args>"))
}

fn transcript(lines: &[Json]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

fn read_as(hint: &Hint, lines: &[Json]) -> Read {
    read(Agent::Claude, hint, &transcript(lines), LATER_MS)
}

fn read_lines(lines: &[Json]) -> Read {
    read_as(&hint(SESSION), lines)
}

/// Message rows in order: kind, whether it counts, text.
fn rows(read: &Read) -> Vec<(MessageKind, bool, &str)> {
    messages(read).map(|row| (row.kind, row.counted, row.text.as_str())).collect()
}

fn messages(read: &Read) -> impl Iterator<Item = &Message> {
    read.records.iter().filter_map(|record| {
        if let What::Message(message) = &record.what { Some(message) } else { None }
    })
}
