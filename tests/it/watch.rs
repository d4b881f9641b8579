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

/// How long something may take that takes two seconds when nothing else runs.
const LATE: Duration = Duration::from_secs(30);

/// `lullwatch watch --json` on a home, and what it tells.
struct Watch {
    child: Child,
    told: Receiver<Value>,
}

impl Watch {
    fn start(monitor: &Monitor) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lullwatch"))
            .args(["watch", "--json"])
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
