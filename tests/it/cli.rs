//! The real program as a process, held against the design: what it prints, where, and how it ends.
//!
//! Every test has a home of its own and an environment with nothing else in it. The clock stands
//! still at a moment the test names, so a life of days takes as long as its processes; only where a
//! second process is involved is anything waited for, by looking until it is there.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod contract;
mod life;
mod paper;
mod privacy;
mod store;
mod together;
mod tree;
mod usage;
mod words;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::home::{Home, NOW};
use tree::Tree;

pub(crate) const SECOND: i64 = 1_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

/// Where the program keeps its database when nothing else is said.
const DB: &str = ".local/state/lullwatch/lullwatch.db";

/// One call of the program, yet to be made.
struct Run {
    command: Command,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Run {
    fn new(home: &Home, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lullwatch"));
        command
            .args(args)
            .env_clear()
            .env("HOME", home.home())
            .env("TZ", "UTC")
            .current_dir(home.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self { command }.at(NOW)
    }

    /// With the clock standing still at this moment, ms.
    fn at(self, ms: i64) -> Self {
        self.env("LULLWATCH_NOW", &stamp(ms))
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it to its end; one that has not ended after 20 s is killed, and has no code.
    fn said(mut self) -> Said {
        let child = self.command.spawn().unwrap();
        let pid = Pid::from_child(&child);
        let (ended, killer) = std::sync::mpsc::channel::<()>();
        let limit = std::thread::spawn(move || {
            if killer.recv_timeout(Duration::from_secs(20)) == Err(RecvTimeoutError::Timeout) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        let output = child.wait_with_output().unwrap();
        drop(ended);
        limit.join().unwrap();
        Said {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Said {
    /// What was printed, of a call that went well.
    #[track_caller]
    fn fine(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{}", self.out);
        self.out
    }

    /// The same as JSON.
    #[track_caller]
    fn json(self) -> Tree {
        Tree::parse(&self.fine())
    }

    /// What was told on stderr, of a call that ended so and printed nothing.
    #[track_caller]
    fn refused(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self.err
    }
}

fn run(home: &Home, args: &[&str]) -> Said {
    Run::new(home, args).said()
}

fn db(home: &Home) -> PathBuf {
    home.home().join(DB)
}

/// A moment as transcripts write it.
fn stamp(ms: i64) -> String {
    format!("{:.3}", jiff::Timestamp::from_millisecond(ms).unwrap())
}

/// Looks until it is there; a process that never gets there is a failure, not a hang.
#[track_caller]
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let (_keep, never) = std::sync::mpsc::channel::<()>();
    for _ in 0..2_000 {
        if let Some(found) = look() {
            return found;
        }
        let _ = never.recv_timeout(Duration::from_millis(10));
    }
    panic!("waited 20 s for {what}");
}
