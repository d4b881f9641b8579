//! One call of a command that is told something: envelope in, exit code out, within a time limit.
//!
//! The command has a process group of its own, so that all of it can be ended: by SIGTERM when its
//! time is up, and by SIGKILL when that does not help. Its output goes nowhere; of its errors the
//! first line is kept.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::clock::Clock;
use crate::config::OnTerminal;
use crate::text;

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// The same when we are to end ourselves.
const HASTY_GRACE: Duration = Duration::from_millis(200);
/// How long the first line of errors is waited for once the command has ended.
const ERROR_WAIT: Duration = Duration::from_millis(200);
/// Bytes read of that line, and characters kept.
const ERROR_BYTES_MAX: u64 = 4_096;
const ERROR_CHARS: usize = 200;

/// What may come while a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// There may be something to deliver.
    Look,
    /// End.
    Stop,
    /// The command with this pid has ended.
    Ended(Pid),
}

/// Where events come in, and whether one of them was the order to end: whoever hears it, the others
/// must know.
#[derive(Debug)]
pub struct Ears {
    events: Receiver<Event>,
    send: SyncSender<Event>,
    stopping: Cell<bool>,
}

impl Ears {
    /// Ears on that channel; its other end is needed for the end of a command.
    pub fn new(events: Receiver<Event>, send: SyncSender<Event>) -> Self {
        Self { events, send, stopping: Cell::new(false) }
    }

    /// The order to end has come.
    pub fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// The next event, if one comes in time.
    pub fn hear(&self, limit: Duration) -> Option<Event> {
        let event = match self.events.recv_timeout(limit) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Event::Stop),
        };
        self.stopping.set(self.stopping.get() || event == Some(Event::Stop));
        event
    }

    /// Waits for the end of a command; an order to end is heard too, unless there was one.
    fn wait(&self, pid: Pid, limit: Duration) -> Waited {
        let clock = Clock::default();
        let limit_ms = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
        let until_ms = clock.awake_ms().saturating_add(limit_ms);
        let mut stopping = self.is_stopping();
        loop {
            let left_ms = until_ms.saturating_sub(clock.awake_ms()).max(0).cast_unsigned();
            match self.hear(Duration::from_millis(left_ms)) {
                Some(Event::Ended(ended)) if ended == pid => return Waited::Ended,
                Some(Event::Stop) if !stopping => return Waited::Stopped,
                // What there is to deliver is asked for again afterwards.
                Some(Event::Look | Event::Ended(_) | Event::Stop) => stopping = self.is_stopping(),
                None => return Waited::TimeUp,
            }
        }
    }
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Called {
    /// It exited with 0.
    Taken,
    /// It did not, and why: one line, fit to be shown.
    Failed(String),
    /// We were told to end meanwhile; whether it was taken is not known.
    Stopped,
}

/// Calls the command.
pub fn call(command: &OnTerminal, envelope: &str, ears: &Ears) -> Called {
    let Some((program, arguments)) = command.command.split_first() else {
        return Called::Failed("no command is configured".to_owned());
    };
    let spawned = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            return Called::Failed(shown(&format!("cannot start `{program}`: {error}")));
        }
    };
    if let Some(mut stdin) = child.stdin.take() {
        // Shorter than any pipe, so it does not wait; one that does not read may still exit with 0.
        let _ = stdin.write_all(envelope.as_bytes());
    }
    let errors = child.stderr.take().map(first_line);
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return Called::Failed("its pid is none".to_owned());
    };
    announce_end(pid, &ears.send);
    let limit_ms = command.timeout_ms.max(1);
    match ears.wait(pid, Duration::from_millis(limit_ms.cast_unsigned())) {
        Waited::Ended => {}
        Waited::TimeUp => {
            end(&mut child, pid, ears, GRACE);
            return Called::Failed(format!("took longer than {limit_ms} ms and was ended"));
        }
        Waited::Stopped => {
            end(&mut child, pid, ears, HASTY_GRACE);
            return Called::Stopped;
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Called::Taken,
        Ok(status) => {
            let line = errors.and_then(|errors| errors.recv_timeout(ERROR_WAIT).ok());
            let line = line.filter(|line| !line.is_empty());
            let line = line.map(|line| format!(": {line}")).unwrap_or_default();
            Called::Failed(shown(&format!("{status}{line}")))
        }
        Err(error) => Called::Failed(shown(&error.to_string())),
    }
}

enum Waited {
    Ended,
    TimeUp,
    Stopped,
}

/// Ends a command and all of its group, which keeps its number until we have waited for it.
fn end(child: &mut Child, pid: Pid, ears: &Ears, grace: Duration) {
    let _ = kill_process_group(pid, Signal::TERM);
    let _ = ears.wait(pid, grace);
    // Also what is left of the group when its leader has obeyed.
    let _ = kill_process_group(pid, Signal::KILL);
    let _ = child.wait();
}

/// Sends word when a process has ended, and leaves it to be waited for.
fn announce_end(pid: Pid, send: &SyncSender<Event>) {
    let send = send.clone();
    let announce = move || {
        let flags = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), flags), Err(rustix::io::Errno::INTR)) {}
        let _ = send.send(Event::Ended(pid));
    };
    // Without a thread its time is up before its end is known: it is then delivered again.
    let _ = std::thread::Builder::new().name("on_terminal end".to_owned()).spawn(announce);
}

/// The first line of a command's errors; the rest is read and forgotten, so that it never waits.
fn first_line(errors: ChildStderr) -> Receiver<String> {
    let (send, line) = mpsc::sync_channel(1);
    let read = move || {
        let mut errors = BufReader::new(errors);
        let mut bytes = Vec::new();
        let _ = errors.by_ref().take(ERROR_BYTES_MAX).read_until(b'\n', &mut bytes);
        let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
        let _ = std::io::copy(&mut errors, &mut std::io::sink());
    };
    let _ = std::thread::Builder::new().name("on_terminal errors".to_owned()).spawn(read);
    line
}

fn shown(error: &str) -> String {
    text::line_up_to(error, ERROR_CHARS)
}
