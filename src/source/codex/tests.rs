//! What the Codex adapter claims, one rule at a time, and two properties over a whole transcript.

#![expect(clippy::wildcard_enum_match_arm, reason = "tests look for one variant among many")]

mod activity;
mod children;
mod compactions;
mod identity;
mod index;
mod plans;
mod properties;
mod replays;
mod rewinds;
mod rows;
mod tokens;
mod turns;

use serde_json::{Value as Json, json};

use super::super::facts::Facts;
use super::super::testing::{Read, hint, read};
use super::super::{Agent, MessageKind, MessageSource, Record, What};
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
    /// The last total of tokens: input, cached, output.
    total: [i64; 3],
}

/// Input, cached, output as Codex writes them.
fn usage([input, cached, output]: [i64; 3]) -> Json {
    json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output,
        "reasoning_output_tokens": 0, "total_tokens": input + output})
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

    /// A `token_count` of that total; its last request is what was added.
    fn tokens(&mut self, input: i64, cached: i64, output: i64) -> &mut Self {
        let total = [input, cached, output];
        let mut last = total;
        let grown = last.iter().zip(self.total).all(|(new, old)| *new >= old);
        if grown {
            last.iter_mut().zip(self.total).for_each(|(new, old)| *new -= old);
        }
        self.count(total, last)
    }

    fn count(&mut self, total: [i64; 3], last: [i64; 3]) -> &mut Self {
        self.total = total;
        self.event(
            "token_count",
            &json!({"info": {"total_token_usage": usage(total),
            "last_token_usage": usage(last), "model_context_window": 258_400}}),
        )
    }

    /// A `token_usage_record`: input, cached, output.
    fn usage_record(&mut self, response: &str, used: [i64; 3]) -> &mut Self {
        let payload = json!({"response_id": response, "usage": usage(used)});
        self.line("token_usage_record", &payload)
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
