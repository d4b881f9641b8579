//! The writer's loop as it runs behind the TUI: an exit that no file tells of, a state that only
//! the registry has, and a hook are noticed without anything else happening.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use lullwatch::clock::Clock;
use serde_json::{Value, json};

use crate::monitor::{Agent, CLAUDE, Monitor, SECOND, Said};
use crate::stage::heed_signals;

/// How long something may take that takes two seconds when nothing else runs.
const LATE: Duration = Duration::from_secs(30);

/// `lullwatch watch --json` on a home, and what it tells.
struct Watch {
    child: Child,
    told: Receiver<Value>,
}

impl Watch {
    fn start(monitor: &Monitor) -> Self {
        Self::start_as(
            monitor,
            Command::new(env!("CARGO_BIN_EXE_lullwatch")).args(["watch", "--json"]),
        )
    }

    /// Started by a shell that ignores these signals, as `nohup` and a script's `&` do.
    fn start_ignoring(monitor: &Monitor, signals: &str) -> Self {
        let script = format!("trap '' {signals}; exec \"$0\" watch --json");
        Self::start_as(
            monitor,
            Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_lullwatch")]),
        )
    }

    fn start_as(monitor: &Monitor, command: &mut Command) -> Self {
        heed_signals();
        let mut child = command
            .env_clear()
            .env("HOME", monitor.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (tell, told) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if tell.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { child, told }
    }

    /// Waits for a transition to that status; its reason.
    fn hears(&self, status: &str) -> String {
        loop {
            let told = self.told.recv_timeout(LATE).unwrap();
            if told["to"] == status {
                return told["reason"]["code"].as_str().unwrap().to_owned();
            }
        }
    }
}

impl Watch {
    fn kill(&self, signal: i32) {
        let status =
            Command::new("kill").args([format!("-{signal}"), self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Its exit code, once it has ended.
    fn ends(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _waited_already = self.child.wait();
    }
}

#[test]
fn an_exit_that_no_file_tells_of_is_noticed() {
    let (monitor, agent) = (Monitor::new(), Agent::start_one());
    let now = Clock::default().now_ms();
    monitor.claude(CLAUDE, now - 2 * SECOND, &Said::Prompt("Add a table"));
    monitor.claude(CLAUDE, now - SECOND, &Said::Answer("Done."));
    monitor.entry(&agent, CLAUDE, now - SECOND, &json!({"status": "idle"}));
    let watch = Watch::start(&monitor);
    assert_eq!(watch.hears("running"), "session.admitted.activity");
    // Its entry stays, and says that it is idle.
    agent.end();
    assert_eq!(watch.hears("completed"), "session.completed.exited");
}

#[test]
fn a_hook_is_absorbed_by_whoever_writes() {
    let monitor = Monitor::new();
    let now = Clock::default().now_ms();
    monitor.claude(CLAUDE, now - 2 * SECOND, &Said::Prompt("Add a table"));
    let watch = Watch::start(&monitor);
    assert_eq!(watch.hears("running"), "session.admitted.activity");
    let mut hook = Command::new(env!("CARGO_BIN_EXE_lullwatch"))
        .args(["hook", "SessionEnd"])
        .env_clear()
        .env("HOME", monitor.path(""))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let payload = json!({"session_id": CLAUDE, "hook_event_name": "SessionEnd"});
    serde_json::to_writer(hook.stdin.take().unwrap(), &payload).unwrap();
    assert!(hook.wait().unwrap().success());
    assert_eq!(watch.hears("completed"), "session.completed.exited");
    let inbox = monitor.path(".local/state/lullwatch/inbox");
    let waiting = || std::fs::read_dir(&inbox).unwrap().count();
    // Stored first, removed then.
    while waiting() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn signals_ignored_at_the_start_and_those_without_meaning_do_not_end_it() {
    const TERM: i32 = 15;
    let monitor = Monitor::new();
    let now = Clock::default().now_ms();
    monitor.claude(CLAUDE, now - 2 * SECOND, &Said::Prompt("Add a table"));
    let mut watch = Watch::start_ignoring(&monitor, "HUP INT QUIT");
    assert_eq!(watch.hears("running"), "session.admitted.activity");
    // HUP, INT, QUIT; USR1, USR2, ALRM, VTALRM, PROF, IO, XFSZ and one without a name.
    for signal in [1, 2, 3, 10, 12, 14, 26, 27, 29, 25, 40] {
        watch.kill(signal);
    }
    monitor.claude("0a6f3a1e-0009-4d11-8a11-0000000000aa", now, &Said::Prompt("And a chair"));
    assert_eq!(watch.hears("running"), "session.admitted.activity");
    watch.kill(TERM);
    assert_eq!(watch.ends(), Some(0));
}

#[test]
fn a_signal_that_ends_it_ends_it_in_order() {
    // TERM is what a service manager sends; QUIT and XCPU are said.
    for (signal, code) in [(15, 0), (3, 131), (24, 152)] {
        let monitor = Monitor::new();
        let now = Clock::default().now_ms();
        monitor.claude(CLAUDE, now - 2 * SECOND, &Said::Prompt("Add a table"));
        let mut watch = Watch::start_ignoring(&monitor, "USR1");
        watch.hears("running");
        watch.kill(signal);
        assert_eq!(watch.ends(), Some(code), "signal {signal}");
    }
}

#[test]
fn a_limit_on_the_size_of_files_ends_nothing_without_a_word() {
    let monitor = Monitor::new();
    let now = Clock::default().now_ms();
    monitor.claude(CLAUDE, now - 2 * SECOND, &Said::Prompt("Add a table"));
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 8; exec \"$0\" --once", env!("CARGO_BIN_EXE_lullwatch")])
        .env_clear()
        .env("HOME", monitor.path(""))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.starts_with("lullwatch: "), "{told}");
}
