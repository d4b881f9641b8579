//! A stage for the real program: a home of its own, stand-in agents, transcripts stamped around now.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once, mpsc};
use std::time::Duration;

use lullwatch::clock::Clock;
use lullwatch::store::Reader;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};
use signal_hook::flag::register_conditional_shutdown;

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);

pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const HOUR: i64 = 60 * MINUTE;

static SIGNALS: Once = Once::new();

/// What ignores a signal leaves that to its children, and `nohup cargo test &` ignores these. What
/// handles one leaves them the default.
pub(crate) fn heed_signals() {
    SIGNALS.call_once(register_signals);
}

fn register_signals() {
    for signal in [SIGHUP, SIGINT, SIGQUIT] {
        let always = Arc::new(AtomicBool::new(true));
        register_conditional_shutdown(signal, 128 + signal, always).unwrap();
    }
}

pub(crate) struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        heed_signals();
        let stage = Self { folder: tempfile::tempdir().unwrap() };
        for folder in ["bin", "work", "state"] {
            fs::create_dir(stage.path(folder)).unwrap();
        }
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.path("state/x.db")
    }

    pub(crate) fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// A program of that name in the home's `bin`, run by `sh`.
    pub(crate) fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.put(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// lullwatch in this home, in the folder `work`.
    pub(crate) fn lullwatch<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lullwatch"));
        command.args(arguments).env_clear().envs(self.environment());
        command.current_dir(self.path("work")).stdin(Stdio::null());
        command
    }

    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let path = std::env::var("PATH").unwrap();
        let own = |name: &str| self.path(name).display().to_string();
        [
            ("HOME", own("")),
            ("PATH", format!("{}:{path}", own("bin"))),
            ("LULLWATCH_DB", own("state/x.db")),
        ]
        .map(|(name, value)| (name.to_owned(), value.trim_end_matches('/').to_owned()))
        .into()
    }

    #[track_caller]
    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.lullwatch(arguments).output().unwrap()
    }

    /// One whole pass.
    #[track_caller]
    pub(crate) fn pass(&self) {
        let done = self.output(&["--once"]);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Rows of a query, columns joined by `|`.
    pub(crate) fn query(&self, sql: &str) -> String {
        let Ok(mut reader) = Reader::open(&self.db()) else { return String::new() };
        reader.read(|tx| tx.dump(&[sql])).unwrap_or_default()
    }

    /// Waits until something holds.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let (_keep, never) = mpsc::channel::<()>();
        for _ in 0..LIMIT.as_millis() / LOOK.as_millis() {
            if holds(self) {
                return;
            }
            let _ = never.recv_timeout(LOOK);
        }
        panic!("never {what}");
    }

    /// A transcript of that agent whose last turn ended with that API error, so long ago. `ended`:
    /// with an end marker behind it, of Claude.
    pub(crate) fn failed_session(&self, agent: &str, native: &str, ago: i64) {
        let cwd = self.path("work").display().to_string();
        let lines = match agent {
            "claude" => claude(native, &cwd, ago),
            "codex" => codex(native, &cwd, ago),
            _ => dsh(native, &cwd, ago),
        };
        self.put(&transcript(agent, native), &text_of(&lines));
    }

    /// A transcript of Claude with one answered prompt, so long ago.
    pub(crate) fn answered_session(&self, native: &str, ago: i64) {
        let cwd = self.path("work").display().to_string();
        let answer = json!({"role": "assistant", "id": "m", "model": "claude-opus-5",
            "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"});
        let lines = [
            record(native, &cwd, "user", ago + 1, &json!({"role": "user", "content": "go"})),
            record(native, &cwd, "assistant", ago, &answer),
        ];
        self.put(&transcript("claude", native), &text_of(&lines));
    }
}

pub(crate) fn now() -> i64 {
    Clock::default().now_ms()
}

fn text_of(lines: &[serde_json::Value]) -> String {
    let mut text = String::new();
    for line in lines {
        text += &line.to_string();
        text.push('\n');
    }
    text
}

/// A moment so long ago, as the agents write it.
pub(crate) fn stamp(ago: i64) -> String {
    format!("{:.3}", jiff::Timestamp::from_millisecond(now() - ago).unwrap())
}

/// Where an agent keeps the transcript of a session.
pub(crate) fn transcript(agent: &str, native: &str) -> String {
    match agent {
        "claude" => format!(".claude/projects/-w/{native}.jsonl"),
        "codex" => format!(".codex/sessions/2026/11/30/rollout-2026-11-30T08-10-00-{native}.jsonl"),
        _ => format!(".dsh/sessions/--w--/{native}/session.jsonl"),
    }
}

fn record(
    native: &str,
    cwd: &str,
    kind: &str,
    ago: i64,
    message: &serde_json::Value,
) -> serde_json::Value {
    json!({"parentUuid": null, "isSidechain": false, "type": kind, "uuid": format!("{kind}-{ago}"),
        "timestamp": stamp(ago), "cwd": cwd, "sessionId": native, "version": "2.1.270",
        "gitBranch": "main", "entrypoint": "cli", "message": message})
}

fn claude(native: &str, cwd: &str, ago: i64) -> Vec<serde_json::Value> {
    let message = json!({"role": "assistant", "id": "x", "model": "<synthetic>",
        "content": [{"type": "text", "text": "API Error: 429 slow down"}]});
    let mut error = record(native, cwd, "assistant", ago, &message);
    error["isApiErrorMessage"] = json!(true);
    error["error"] = json!("rate_limit");
    vec![record(native, cwd, "user", ago + 1, &json!({"role": "user", "content": "go"})), error]
}

fn codex(native: &str, cwd: &str, ago: i64) -> Vec<serde_json::Value> {
    let turn = "01a22b80-efc0-7b2f-8dc8-e6f315882441";
    let line = |kind: &str, payload: serde_json::Value| json!({"timestamp": stamp(ago), "type": kind, "payload": payload});
    vec![
        line(
            "session_meta",
            json!({"id": native, "timestamp": stamp(ago), "cwd": cwd,
            "originator": "codex_cli_rs", "cli_version": "0.151.0", "source": "cli"}),
        ),
        line("event_msg", json!({"type": "task_started", "turn_id": turn})),
        line("event_msg", json!({"type": "user_message", "message": "go", "images": []})),
        line(
            "event_msg",
            json!({"type": "task_complete", "turn_id": turn,
            "error": {"message": "500 upstream", "codex_error_info": "server_error"}}),
        ),
    ]
}

fn dsh(native: &str, cwd: &str, ago: i64) -> Vec<serde_json::Value> {
    let at = now() - ago;
    let row = |kind: &str, seq: u64, data: serde_json::Value| json!({"type": kind, "seq": seq, "time": at, "data": data});
    let error = json!({"message": "503 upstream", "code": "PROVIDER_ERROR", "status": 503});
    vec![
        json!({"type": "session", "version": 0, "id": native, "createdAt": at, "cwd": cwd,
            "delegationDepth": 0}),
        row("turn/start", 0, json!({"turn": 1})),
        row(
            "user/message",
            1,
            json!({"id": "m", "role": "user", "source": {"kind": "user"},
            "content": [{"type": "text", "text": "go"}]}),
        ),
        row("turn/end", 2, json!({"turn": 1, "reason": {"kind": "error", "error": error}})),
    ]
}

/// The process that a file names, once it does.
pub(crate) fn pid_in(path: &Path) -> Option<rustix::process::Pid> {
    let text = fs::read_to_string(path).ok()?;
    rustix::process::Pid::from_raw(text.trim().parse().ok()?)
}
