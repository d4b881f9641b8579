//! A whole monitor on a scratch home: real files, real processes, the engine's own passes, and a
//! clock that only tests move. Each pass is a process of its own, as `--once` is: what one must
//! know of the one before lies in the store.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lullwatch::app::Setting;
use lullwatch::app::engine::{self, Engine};
use lullwatch::cli::Globals;
use lullwatch::clock::Clock;
use lullwatch::config::{self, Surroundings};
use lullwatch::liveness::proc::{Proc, Seen};
use lullwatch::snapshot::{self, Detail, Query, Session, Snapshot};
use lullwatch::store::Reader;
use lullwatch::text::Zone;
use rusqlite::Connection;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::{Value, json};

/// When the roots of every test are first looked at: 2026-11-30T09:00:00Z.
pub(crate) const T0: i64 = 1_796_029_200_000;
pub(crate) const SECOND: i64 = 1_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

/// Ids of the sessions of the tests.
pub(crate) const CLAUDE: &str = "26f52589-6919-4be1-ac4b-9de9d22c854c";
pub(crate) const OTHER: &str = "cc1c4b9b-e7a6-4252-8adf-a1b28b24998a";
pub(crate) const CODEX: &str = "01a22b80-efc0-70bc-a6a2-339c6bb9adef";
pub(crate) const DSH: &str = "session-1";

/// The monitor of one home.
pub(crate) struct Monitor {
    folder: tempfile::TempDir,
}

impl Monitor {
    /// Its roots are empty, and have been looked at, so that what comes is news.
    pub(crate) fn new() -> Self {
        let monitor = Self::unlooked();
        monitor.pass(T0);
        monitor
    }

    /// The same before its first look.
    pub(crate) fn unlooked() -> Self {
        let monitor = Self { folder: tempfile::tempdir().unwrap() };
        for root in [".claude/projects", ".claude/sessions", ".codex/sessions", ".dsh/sessions"] {
            fs::create_dir_all(monitor.path(root)).unwrap();
        }
        fs::create_dir_all(monitor.path(".codex/thread-writer-locks")).unwrap();
        monitor
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn setting(&self, now_ms: i64) -> Setting {
        let vars = BTreeMap::from([("HOME".to_owned(), self.folder.path().into())]);
        let around = Surroundings { vars, cwd: self.folder.path().to_owned() };
        Setting {
            config: config::load(&Globals::default(), &around).unwrap(),
            clock: Clock::new(Some(now_ms)),
            host: "h".to_owned(),
            json: false,
            children: false,
            exit_code: false,
            zone: Zone::default(),
        }
    }

    /// A process that stays, with a clock of its own.
    pub(crate) fn engine(&self, clock: Clock) -> Engine {
        open(&Setting { clock, ..self.setting(T0) })
    }

    /// What that one shows.
    pub(crate) fn seen_by(&self, engine: &mut Engine, now_ms: i64) -> Snapshot {
        let beside = engine.beside("h").unwrap();
        let mut reader = Reader::open(&self.setting(T0).config.db).unwrap();
        reader.read(|tx| snapshot::load(tx, &Query::default(), &beside, now_ms)).unwrap()
    }

    /// One pass of a process that starts for it, and what it shows.
    pub(crate) fn pass(&self, now_ms: i64) -> Snapshot {
        self.shown(now_ms, |tx, beside| snapshot::load(tx, &Query::default(), beside, now_ms))
    }

    /// The same, and one session opened.
    pub(crate) fn open(&self, now_ms: i64, native_id: &str) -> Detail {
        let row = session(&self.pass(now_ms), native_id).row_id;
        self.shown(now_ms, |tx, beside| snapshot::detail(tx, row, beside, now_ms)).unwrap()
    }

    /// What a process shows that writes nothing itself, and knows of a look at `probed_ms`.
    pub(crate) fn viewed(&self, now_ms: i64, probed_ms: i64) -> Snapshot {
        let beside = snapshot::Beside {
            scope: serde_json::to_string(Proc::system().scope()).ok(),
            probed_ms: Some(probed_ms),
            ..snapshot::Beside::default()
        };
        let mut reader = Reader::open(&self.setting(now_ms).config.db).unwrap();
        reader.read(|tx| snapshot::load(tx, &Query::default(), &beside, now_ms)).unwrap()
    }

    fn shown<T>(
        &self,
        now_ms: i64,
        show: impl FnOnce(&lullwatch::store::Tx<'_>, &snapshot::Beside) -> lullwatch::store::Result<T>,
    ) -> T {
        let setting = self.setting(now_ms);
        let mut engine = open(&setting);
        engine.pass().unwrap();
        let beside = engine.beside("h").unwrap();
        let mut reader = Reader::open(&setting.config.db).unwrap();
        reader.read(|tx| show(tx, &beside)).unwrap()
    }

    /// Rows that a pass at that moment writes.
    pub(crate) fn rows_written(&self, now_ms: i64) -> u64 {
        let mut engine = open(&self.setting(now_ms));
        engine.pass().unwrap();
        engine.store.rows_written()
    }

    /// A second connection, for what a test must falsify.
    pub(crate) fn sql(&self, sql: &str) {
        #[expect(clippy::disallowed_methods, reason = "plays another host, or another program")]
        let raw = Connection::open(self.setting(T0).config.db).unwrap();
        raw.execute_batch(sql).unwrap();
    }

    /// The history of a session as `from>to reason`.
    pub(crate) fn story(&self, native_id: &str) -> Vec<String> {
        let mut reader = Reader::open(&self.setting(T0).config.db).unwrap();
        let sql = format!(
            "SELECT coalesce(t.previous_status, 'none') || '>' || t.status || ' ' || t.reason_code
             FROM status_transitions t JOIN sessions s ON s.id = t.entity_id
             WHERE t.entity_type = 'session' AND s.native_id = '{native_id}' ORDER BY t.id"
        );
        let told = reader.read(|tx| tx.dump(&[&sql])).unwrap();
        told.lines().map(str::to_owned).collect()
    }

    pub(crate) fn append(&self, name: &str, line: &Value) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    /// A record of a Claude session.
    pub(crate) fn claude(&self, id: &str, at_ms: i64, said: &Said<'_>) {
        let mut record = json!({
            "parentUuid": null, "isSidechain": false, "cwd": "/w", "sessionId": id,
            "version": "2.1.270", "gitBranch": "main", "uuid": format!("{id}-{at_ms}"),
            "timestamp": stamp(at_ms),
        });
        let message = |stop: &str, block: Value| {
            json!({"id": format!("m-{at_ms}"), "type": "message", "role": "assistant",
                "model": "claude-opus-5", "content": [block], "stop_reason": stop})
        };
        let (kind, content) = match said {
            Said::Prompt(text) => ("user", json!({"role": "user", "content": text})),
            Said::Answer(text) => {
                ("assistant", message("end_turn", json!({"type": "text", "text": text})))
            }
            Said::Call(tool) => (
                "assistant",
                message(
                    "tool_use",
                    json!({"type": "tool_use", "id": "t", "name": tool,
                        "input": {"command": "make all"}}),
                ),
            ),
            Said::Result => (
                "user",
                json!({"role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}),
            ),
        };
        record["type"] = json!(kind);
        record["message"] = content;
        self.append(&format!(".claude/projects/-w/{id}.jsonl"), &record);
    }

    /// An event of the Codex session.
    pub(crate) fn codex(&self, at_ms: i64, payload: &Value) {
        self.codex_record(at_ms, "event_msg", payload);
    }

    /// An item of the Codex session.
    pub(crate) fn codex_item(&self, at_ms: i64, payload: &Value) {
        self.codex_record(at_ms, "response_item", payload);
    }

    /// The first record of the Codex session brings its meta before it.
    fn codex_record(&self, at_ms: i64, kind: &str, payload: &Value) {
        let at = stamp(at_ms);
        if !self.path(&codex_rollout()).exists() {
            self.codex_meta(at_ms, &json!({}));
        }
        self.append(&codex_rollout(), &json!({"timestamp": at, "type": kind, "payload": payload}));
    }

    /// The meta of the Codex session, with more fields or other values in them.
    pub(crate) fn codex_meta(&self, at_ms: i64, more: &Value) {
        let at = stamp(at_ms);
        let mut payload = json!({"id": CODEX, "timestamp": at, "cwd": "/w",
            "originator": "codex_cli_rs", "source": "cli"});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let meta = json!({"timestamp": at, "type": "session_meta", "payload": payload});
        self.append(&codex_rollout(), &meta);
    }

    /// A row of the dsh session, in the log of format 0; the first one brings its header before it.
    pub(crate) fn dsh(&self, seq: u64, at_ms: i64, kind: &str, data: &Value) {
        self.dsh_as(&DshLog { version: 0, id: DSH, parent: None }, seq, at_ms, kind, data);
    }

    /// A row of a dsh session; the first one brings its header before it.
    pub(crate) fn dsh_as(&self, log: &DshLog<'_>, seq: u64, at_ms: i64, kind: &str, data: &Value) {
        let file = match log.version {
            0 => "session.jsonl".to_owned(),
            version => format!("session.v{version}.jsonl"),
        };
        let name = format!(".dsh/sessions/--w--/{}/{file}", log.id);
        if seq == 0 {
            let mut header = json!({"type": "session", "version": log.version, "id": log.id,
                "createdAt": at_ms, "cwd": "/w", "delegationDepth": 0});
            if log.version >= 2 {
                header["isSeeded"] = json!(false);
            }
            if let Some(parent) = log.parent {
                header["parentSession"] = json!(parent);
                header["origin"] = json!("subagent");
                header["delegationDepth"] = json!(1);
            }
            self.append(&name, &header);
        }
        self.append(&name, &json!({"type": kind, "seq": seq, "time": at_ms, "data": data}));
    }

    /// An entry of Claude's registry, with more fields or other values in them.
    pub(crate) fn entry(&self, agent: &Agent, session: &str, at_ms: i64, more: &Value) {
        let mut entry = json!({"pid": agent.pid(), "procStart": agent.start(),
            "sessionId": session, "cwd": "/w", "startedAt": at_ms, "version": "2.1.270",
            "kind": "interactive", "entrypoint": "cli", "statusUpdatedAt": at_ms,
            "updatedAt": at_ms});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fs::write(self.entry_path(agent), entry.to_string()).unwrap();
    }

    pub(crate) fn entry_path(&self, agent: &Agent) -> PathBuf {
        self.path(&format!(".claude/sessions/{}.json", agent.pid()))
    }
}

fn codex_rollout() -> String {
    format!(".codex/sessions/2026/11/30/rollout-2026-11-30T09-00-00-{CODEX}.jsonl")
}

/// The engine. A process that another test starts holds all our locks until it has become its
/// program.
fn open(setting: &Setting) -> Engine {
    loop {
        if let Some(engine) = engine::try_open(setting, Duration::from_secs(5)).unwrap() {
            return engine;
        }
        std::thread::yield_now();
    }
}

/// A log of dsh.
pub(crate) struct DshLog<'a> {
    /// Its format: 0 has no lock.
    pub(crate) version: u64,
    pub(crate) id: &'a str,
    /// Of a sub-agent.
    pub(crate) parent: Option<&'a str>,
}

/// What a record of Claude says.
pub(crate) enum Said<'a> {
    Prompt(&'a str),
    Answer(&'a str),
    Call(&'a str),
    Result,
}

/// A process that stands for an agent: it sleeps, and is named as one.
pub(crate) struct Agent(Child);

impl Agent {
    pub(crate) fn start_one() -> Self {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Its start as the registry has it: clock ticks since boot, in words.
    pub(crate) fn start(&self) -> String {
        let Seen::Alive(process) = Proc::system().look(self.pid(), None) else {
            panic!("the stand-in is gone")
        };
        process.id.start_ticks.unwrap().to_string()
    }

    /// Stops it, and waits until it is.
    pub(crate) fn stop(&self) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::STOP).unwrap();
        waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT).unwrap();
    }

    pub(crate) fn end(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _waited_already = self.0.wait();
    }
}

/// The session of a snapshot with that native id.
pub(crate) fn session<'a>(snapshot: &'a Snapshot, native_id: &str) -> &'a Session {
    let found = snapshot.sessions.iter().find(|session| session.native_id == native_id);
    found.unwrap_or_else(|| panic!("no session {native_id}"))
}

/// RFC 3339, ms.
pub(crate) fn stamp(at_ms: i64) -> String {
    format!("{:.3}", jiff::Timestamp::from_millisecond(at_ms).unwrap())
}

/// Removes a file.
pub(crate) fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}
