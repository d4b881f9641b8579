//! A home with transcripts of three agents, written record by record, and the real program in it.
//!
//! Time is an argument: the program gets the same moment with `--now`, so every run is the same.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed; the library of tests is no test to clippy"
)]

use std::cell::Cell;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use portable_pty::CommandBuilder;
use serde_json::{Value, json};

pub(crate) const SECOND: i64 = 1_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;

/// A moment as everything here writes it.
pub(crate) fn stamp(ms: i64) -> String {
    format!("{:.3}", jiff::Timestamp::from_millisecond(ms).unwrap())
}

/// A home folder of its own.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Scene {
    pub(crate) fn new(program: &str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), program: PathBuf::from(program) }
    }

    pub(crate) fn home(&self) -> &Path {
        self.folder.path()
    }

    /// A Claude session of a project below the home folder.
    pub(crate) fn claude(&self, project: &str, id: &str) -> Claude {
        let cwd = format!("/home/ada/{project}");
        let folder = self.home().join(".claude/projects").join(cwd.replace(['/', '.'], "-"));
        Claude {
            path: folder.join(format!("{id}.jsonl")),
            id: id.to_owned(),
            agent: None,
            cwd,
            branch: "main".to_owned(),
            context: 30_000,
            serial: Cell::new(0),
        }
    }

    /// A Codex session that starts at this moment.
    pub(crate) fn codex(&self, project: &str, id: &str, at_ms: i64) -> Codex {
        let at = stamp(at_ms);
        let name = format!("rollout-{}-{id}.jsonl", at[..19].replace(':', "-"));
        let day = at[..10].replace('-', "/");
        let path = self.home().join(".codex/sessions").join(day).join(name);
        let codex = Codex { path, turn: format!("{id}-turn"), serial: Cell::new(0) };
        let meta = json!({"id": id, "timestamp": at, "cwd": format!("/home/ada/{project}"),
            "originator": "codex_cli_rs", "cli_version": "0.151.0", "source": "cli",
            "git": {"branch": "main"}});
        codex.row(at_ms, "session_meta", &meta);
        codex
    }

    /// A dsh session that starts at this moment.
    pub(crate) fn dsh(&self, project: &str, id: &str, at_ms: i64) -> Dsh {
        let cwd = format!("/home/ada/{project}");
        let folder = format!("--{}--", cwd.trim_start_matches('/').replace('/', "-"));
        let path = self.home().join(".dsh/sessions").join(folder).join(id).join("session.jsonl");
        append(
            &path,
            &json!({"type": "session", "version": 0, "id": id, "createdAt": at_ms, "cwd": cwd,
                "delegationDepth": 0}),
        );
        Dsh { path, seq: Cell::new(0) }
    }

    /// One pass at a moment, without a screen.
    pub(crate) fn once(&self, now_ms: i64) {
        self.plain(now_ms, &["--once"]);
    }

    /// A command at a moment; what it printed.
    pub(crate) fn plain(&self, now_ms: i64, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        command.env_clear().env("HOME", self.home()).env("TZ", "UTC");
        command.args(arguments).args(["--now", &stamp(now_ms)]);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {text} {output:?}");
        text
    }

    /// The program in a terminal, at a moment that stands still.
    pub(crate) fn at(&self, now_ms: i64, arguments: &[&str]) -> CommandBuilder {
        let mut command = CommandBuilder::new(&self.program);
        command.env_clear();
        command.env("HOME", self.home());
        command.env("TERM", "xterm-256color");
        command.env("TZ", "UTC");
        command.args(arguments);
        command.args(["--now", &stamp(now_ms)]);
        command.cwd(self.home());
        command
    }
}

fn append(path: &Path, record: &Value) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(format!("{record}\n").as_bytes()).unwrap();
}

fn next(serial: &Cell<u64>) -> u64 {
    serial.set(serial.get() + 1);
    serial.get()
}

/// A Claude transcript.
pub(crate) struct Claude {
    path: PathBuf,
    id: String,
    agent: Option<String>,
    cwd: String,
    pub(crate) branch: String,
    /// Tokens of context that the next answers report.
    pub(crate) context: u64,
    serial: Cell<u64>,
}

impl Claude {
    /// A sub-agent of it, with its task.
    pub(crate) fn sub_agent(&self, name: &str, description: &str) -> Self {
        let folder = self.path.with_extension("").join("subagents");
        let meta = folder.join(format!("agent-{name}.meta.json"));
        if !meta.exists() {
            append(&meta, &json!({"agentType": "general-purpose", "description": description}));
        }
        Self {
            path: folder.join(format!("agent-{name}.jsonl")),
            id: self.id.clone(),
            agent: Some(name.to_owned()),
            cwd: self.cwd.clone(),
            branch: self.branch.clone(),
            context: 12_000,
            serial: Cell::new(0),
        }
    }

    pub(crate) fn prompt(&self, at_ms: i64, text: &str) {
        self.record(at_ms, "user", json!({"message": {"role": "user", "content": text}}));
    }

    pub(crate) fn answer(&self, at_ms: i64, text: &str) {
        self.said(at_ms, &json!({"type": "text", "text": text}), "end_turn");
    }

    pub(crate) fn call(&self, at_ms: i64, tool: &str, input: &Value) {
        let number = self.serial.get() + 1;
        let call = json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": tool, "input": input});
        self.said(at_ms, &call, "tool_use");
    }

    /// The result of the call before.
    pub(crate) fn result(&self, at_ms: i64, text: &str) {
        let call = format!("toolu_{}", self.serial.get());
        let content = json!([{"type": "tool_result", "tool_use_id": call, "content": text}]);
        self.record(at_ms, "user", json!({"message": {"role": "user", "content": content}}));
    }

    pub(crate) fn error(&self, at_ms: i64, text: &str) {
        let number = next(&self.serial);
        let message = json!({"id": format!("{}-e{number}", self.id), "role": "assistant",
            "model": "<synthetic>", "stop_reason": "stop_sequence",
            "content": [{"type": "text", "text": text}]});
        let extra = json!({"isApiErrorMessage": true, "error": "overloaded", "message": message});
        self.record(at_ms, "assistant", extra);
    }

    pub(crate) fn compacted(&self, at_ms: i64, trigger: &str, before: u64, after: u64) {
        let metadata = json!({"trigger": trigger, "preTokens": before, "postTokens": after,
            "durationMs": 61_000});
        let extra = json!({"subtype": "compact_boundary", "content": "Conversation compacted",
            "compactMetadata": metadata});
        self.record(at_ms, "system", extra);
    }

    pub(crate) fn title(&self, text: &str) {
        let record = json!({"type": "ai-title", "aiTitle": text, "sessionId": self.id});
        append(&self.path, &record);
    }

    fn said(&self, at_ms: i64, block: &Value, stop: &str) {
        let number = next(&self.serial);
        let message = json!({"id": format!("{}-m{number}", self.id), "role": "assistant",
            "model": "claude-opus-5", "stop_reason": stop, "content": [block],
            "usage": {"input_tokens": 40, "cache_creation_input_tokens": 900,
                "cache_read_input_tokens": self.context, "output_tokens": 400}});
        self.serial.set(number - 1);
        self.record(at_ms, "assistant", json!({ "message": message }));
    }

    /// One record with what every record has.
    pub(crate) fn record(&self, at_ms: i64, kind: &str, mut extra: Value) {
        let number = next(&self.serial);
        let mut record = json!({"type": kind, "uuid": format!("{}-{number}", self.id),
            "timestamp": stamp(at_ms), "sessionId": self.id, "cwd": self.cwd,
            "gitBranch": self.branch, "version": "2.1.300", "isSidechain": self.agent.is_some()});
        if let Some(agent) = &self.agent {
            record["agentId"] = json!(agent);
        }
        record.as_object_mut().unwrap().append(extra.as_object_mut().unwrap());
        append(&self.path, &record);
    }
}

/// A Codex rollout.
pub(crate) struct Codex {
    path: PathBuf,
    turn: String,
    serial: Cell<u64>,
}

impl Codex {
    pub(crate) fn prompt(&self, at_ms: i64, text: &str) {
        let turn = format!("{}{}", self.turn, next(&self.serial));
        let started =
            json!({"type": "task_started", "turn_id": turn, "model_context_window": 258_400});
        self.row(at_ms, "event_msg", &started);
        let item = json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": text}]});
        self.row(at_ms, "response_item", &item);
        let message = json!({"type": "user_message", "message": text, "images": []});
        self.row(at_ms, "event_msg", &message);
    }

    pub(crate) fn call(&self, at_ms: i64, command: &str) {
        let call = json!({"type": "function_call", "name": "exec_command",
            "arguments": json!({"cmd": command}).to_string(), "call_id": "call_1"});
        self.row(at_ms, "response_item", &call);
    }

    pub(crate) fn answer(&self, at_ms: i64, text: &str) {
        self.row(at_ms, "event_msg", &json!({"type": "agent_message", "message": text}));
        let tokens = json!({"type": "token_count", "info": {
            "total_token_usage": {"input_tokens": 48_000, "cached_input_tokens": 31_000,
                "output_tokens": 2_100, "total_tokens": 50_100},
            "last_token_usage": {"input_tokens": 48_000, "total_tokens": 50_100},
            "model_context_window": 258_400}});
        self.row(at_ms, "event_msg", &tokens);
        let turn = format!("{}{}", self.turn, self.serial.get());
        let done = json!({"type": "task_complete", "turn_id": turn, "last_agent_message": text});
        self.row(at_ms, "event_msg", &done);
    }

    fn row(&self, at_ms: i64, kind: &str, payload: &Value) {
        append(&self.path, &json!({"timestamp": stamp(at_ms), "type": kind, "payload": payload}));
    }
}

/// A dsh log.
pub(crate) struct Dsh {
    path: PathBuf,
    seq: Cell<u64>,
}

impl Dsh {
    pub(crate) fn prompt(&self, at_ms: i64, text: &str) {
        self.event(at_ms, "turn/start", &json!({"turn": 1}));
        let message = json!({"id": format!("u{}", self.seq.get()), "role": "user",
            "source": {"kind": "user"}, "content": [{"type": "text", "text": text}]});
        self.event(at_ms, "user/message", &message);
    }

    pub(crate) fn answer(&self, at_ms: i64, text: &str) {
        let message = json!({"id": format!("a{}", self.seq.get()), "role": "assistant",
            "source": {"kind": "model", "provider": "deepseek", "model": "deepseek-v4"},
            "content": [{"type": "text", "text": text}]});
        let data = json!({"turn": 1, "step": 1, "message": message,
            "usage": {"inputTokens": 61_000, "outputTokens": 900}});
        self.event(at_ms, "assistant/message", &data);
        self.event(at_ms, "turn/end", &json!({"turn": 1, "reason": {"kind": "completed"}}));
    }

    pub(crate) fn event(&self, at_ms: i64, kind: &str, data: &Value) {
        let seq = self.seq.get();
        self.seq.set(seq + 1);
        let mut row = json!({"type": kind, "seq": seq, "time": at_ms, "data": data});
        if kind.ends_with("/message") {
            row["surfaceOp"] = json!("append");
        }
        append(&self.path, &row);
    }
}
