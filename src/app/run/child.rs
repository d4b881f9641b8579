//! The command under watch: its signals, its stops, its end, and the end of its time.
//!
//! It shares our process group, so what a terminal sends (^C, ^\, ^Z, a hang-up) reaches it beside
//! us and is not passed on; what a process sends to us is. When it alone is stopped, we stop too, so
//! that the shell gets its prompt back, and go on together. A signal that we were started with as
//! ignored stays so, for it and for us.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, WaitOptions, getpid, getsid, kill_process, waitpid};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::exfiltrator::origin::Origin;
use signal_hook::low_level::siginfo::Cause as From;

use crate::app::signals::Ignored;
use crate::clock::Clock;
use crate::lifecycle::run::Ended;
use crate::liveness::family::family;
use crate::liveness::proc::{Proc, ProcessId, Run, Seen};

/// Signals that are passed on, and those that say that we go on.
const SIGNALS: [i32; 7] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT];
/// Events that wait.
const EVENTS_MAX: usize = 64;
/// A child seen stopped is looked at again after this, twice, before we stop too, ms: when the
/// whole group was stopped, we were too, and it goes on with us.
const STOP_LOOK_MS: i64 = 25;
const STOP_LOOKS: u8 = 2;
/// After the first end of its time, this long until the last one, ms.
const GRACE_MS: i64 = 5_000;
/// How often the rest of its family is looked at after it has ended in time, ms.
const FAMILY_LOOK_MS: i64 = 25;
/// The session it opened is looked for after this, and then at doubling distances up to the
/// second, ms.
const LOOK_MS: (i64, i64) = (1_000, 60_000);
/// A signal that came this long before the end had no part in it, ms.
const SIGNAL_COUNTS_MS: i64 = 10_000;
/// Processes gone through to find its family.
const PROCESSES_MAX: usize = 32_768;

/// What happens to a child.
enum Event {
    Signal(Origin),
    Stopped,
    Ended(Ended),
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    /// How.
    pub(super) ended: Ended,
    /// Its time was up.
    pub(super) timed_out: bool,
    /// The signal that we got shortly before.
    pub(super) signal: Option<i32>,
}

/// Ears for signals, there before the child is.
#[derive(Debug)]
pub(super) struct Watch {
    send: SyncSender<Event>,
    events: Receiver<Event>,
}

impl Watch {
    /// Takes the signals.
    pub(super) fn prepare() -> anyhow::Result<Self> {
        let (send, events) = mpsc::sync_channel(EVENTS_MAX);
        let ignored = Ignored::at_start();
        let wanted = SIGNALS.into_iter().filter(|signal| !ignored.has(*signal));
        let mut signals = SignalsInfo::<WithOrigin>::new(wanted).context("cannot take signals")?;
        let own = send.clone();
        thread("signals", move || {
            for origin in signals.forever() {
                if own.send(Event::Signal(origin)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { send, events })
    }

    /// Waits until the child has ended. `look` is called now and then, to find its session.
    pub(super) fn until_ended(
        self,
        pid: u32,
        limit_ms: Option<i64>,
        look: &mut dyn FnMut() -> Looking,
    ) -> Outcome {
        let Some(target) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            return Outcome { ended: Ended::Exit(1), timed_out: false, signal: None };
        };
        let send = self.send.clone();
        if thread("child", move || wait_for(target, &send)).is_err() {
            // No thread to be had: without ears then, but to its end.
            wait_for(target, &self.send);
        }
        let now_ms = Clock::default().awake_ms();
        let mut child = Child {
            pid,
            target,
            stop_looks: 0,
            deadline_ms: limit_ms.map(|limit| now_ms.saturating_add(limit)),
            doomed: None,
            look_at_ms: Some(now_ms + LOOK_MS.0),
            look_gap_ms: LOOK_MS.0,
            signal: None,
        };
        let ended = child.watch(&self.events, look);
        let timed_out = child.doomed.is_some();
        if let Some(doomed) = &child.doomed {
            doomed.finish(&self.events);
        }
        let recent = |at: i64| Clock::default().awake_ms() - at <= SIGNAL_COUNTS_MS;
        let signal = child.signal.filter(|(_, at)| recent(*at)).map(|(signal, _)| signal);
        Outcome { ended, timed_out, signal }
    }
}

/// Whether the session of a run is still looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looking {
    /// It is not known yet.
    On,
    /// It is, or nothing can be found out.
    Over,
}

struct Child {
    pid: u32,
    target: Pid,
    /// Looks left before a stopped child stops us.
    stop_looks: u8,
    deadline_ms: Option<i64>,
    doomed: Option<Doomed>,
    look_at_ms: Option<i64>,
    look_gap_ms: i64,
    /// The last signal that could end it, and when it came.
    signal: Option<(i32, i64)>,
}

impl Child {
    fn watch(&mut self, events: &Receiver<Event>, look: &mut dyn FnMut() -> Looking) -> Ended {
        loop {
            let event = match self.wait_ms() {
                Some(ms) => events.recv_timeout(Duration::from_millis(ms.cast_unsigned())),
                None => events.recv().map_err(RecvTimeoutError::from),
            };
            match event {
                Ok(Event::Ended(ended)) => return ended,
                Ok(Event::Signal(origin)) => self.signal(&origin),
                Ok(Event::Stopped) => self.stop_looks = STOP_LOOKS,
                Err(RecvTimeoutError::Timeout) => self.due(look),
                // Both threads are gone, and with them the end.
                Err(RecvTimeoutError::Disconnected) => return Ended::Exit(1),
            }
        }
    }

    /// How long nothing is due, ms; `None`: nothing ever is.
    fn wait_ms(&self) -> Option<i64> {
        if self.stop_looks > 0 {
            return Some(STOP_LOOK_MS);
        }
        let kill =
            self.doomed.as_ref().filter(|doomed| !doomed.killed).map(|doomed| doomed.kill_ms);
        let deadline = self.deadline_ms.filter(|_| self.doomed.is_none());
        let next = [kill, deadline, self.look_at_ms].into_iter().flatten().min()?;
        Some((next - Clock::default().awake_ms()).max(0))
    }

    fn due(&mut self, look: &mut dyn FnMut() -> Looking) {
        let now_ms = Clock::default().awake_ms();
        if self.stop_looks > 0 {
            self.stop_too();
            return;
        }
        if self.look_at_ms.is_some_and(|at| at <= now_ms) {
            self.look_gap_ms = (self.look_gap_ms * 2).min(LOOK_MS.1);
            self.look_at_ms = match look() {
                Looking::On => Some(Clock::default().awake_ms() + self.look_gap_ms),
                Looking::Over => None,
            };
        }
        match &mut self.doomed {
            None if self.deadline_ms.is_some_and(|at| at <= now_ms) => {
                self.doomed = Some(Doomed::sentence(self.pid, now_ms));
            }
            Some(doomed) if !doomed.killed && doomed.kill_ms <= now_ms => doomed.kill(),
            None | Some(_) => {}
        }
    }

    fn signal(&mut self, origin: &Origin) {
        if origin.signal == SIGCONT {
            // Whoever was stopped with us, or alone, goes on with us.
            self.stop_looks = 0;
            let _ = kill_process(self.target, Signal::CONT);
            return;
        }
        if ![SIGUSR1, SIGUSR2].contains(&origin.signal) {
            self.signal = Some((origin.signal, Clock::default().awake_ms()));
        }
        let from_kernel = matches!(origin.cause, From::Kernel);
        // A terminal that goes tells the leader of the session alone.
        let for_us_alone = origin.signal == SIGHUP && getsid(None).is_ok_and(|id| id == getpid());
        let by_child =
            origin.process.is_some_and(|process| process.pid.cast_unsigned() == self.pid);
        if (from_kernel && !for_us_alone) || by_child {
            return;
        }
        if let Some(signal) = Signal::from_named_raw(origin.signal) {
            // It may have ended just now.
            let _ = kill_process(self.target, signal);
        }
    }

    /// Stops us when the child is still stopped; a shell then sees the whole job stopped.
    fn stop_too(&mut self) {
        let stopped = match Proc::system().look(self.pid, None) {
            Seen::Alive(seen) => seen.run == Run::Stopped,
            Seen::Exited(_) | Seen::Missing => false,
            Seen::Unknown(_) => true,
        };
        if !stopped {
            self.stop_looks = 0;
            return;
        }
        self.stop_looks -= 1;
        if self.stop_looks == 0 {
            // Not SIGSTOP: where nobody could make us go on, the kernel lets this one go.
            let _ = kill_process(getpid(), Signal::TSTP);
        }
    }
}

/// A family whose time is up. It is told by name and not by its group, which is ours too and may be
/// that of the script we run in.
struct Doomed {
    family: BTreeSet<ProcessId>,
    kill_ms: i64,
    killed: bool,
}

impl Doomed {
    fn sentence(pid: u32, now_ms: i64) -> Self {
        let proc = Proc::system();
        let known = |pid: u32| match proc.look(pid, None) {
            Seen::Alive(seen) => Some(seen.id),
            Seen::Exited(_) | Seen::Missing | Seen::Unknown(_) => None,
        };
        let mut members: BTreeSet<ProcessId> =
            family(&proc, pid, PROCESSES_MAX).into_iter().filter_map(known).collect();
        if members.is_empty() {
            members.insert(ProcessId { pid, start_ticks: None });
        }
        let doomed = Self { family: members, kill_ms: now_ms + GRACE_MS, killed: false };
        doomed.send(Signal::TERM);
        // One that is stopped could not obey.
        doomed.send(Signal::CONT);
        doomed
    }

    fn kill(&mut self) {
        self.killed = true;
        self.send(Signal::KILL);
    }

    /// After the child's own end: the rest of the family has until the grace is over.
    fn finish(&self, events: &Receiver<Event>) {
        while Clock::default().awake_ms() < self.kill_ms && self.living().next().is_some() {
            let _ = events.recv_timeout(Duration::from_millis(FAMILY_LOOK_MS.cast_unsigned()));
        }
        self.send(Signal::KILL);
    }

    fn living(&self) -> impl Iterator<Item = ProcessId> {
        let proc = Proc::system();
        self.family.iter().copied().filter(move |member| match proc.look(member.pid, None) {
            Seen::Alive(seen) => member.start_ticks.is_none() || seen.id == *member,
            Seen::Exited(_) | Seen::Missing => false,
            Seen::Unknown(_) => true,
        })
    }

    fn send(&self, signal: Signal) {
        for member in self.living() {
            if let Some(pid) = i32::try_from(member.pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// Tells each stop of a child, and its end.
fn wait_for(pid: Pid, send: &SyncSender<Event>) {
    loop {
        let event = match waitpid(Some(pid), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => Event::Stopped,
            Ok(Some((_, status))) => Event::Ended(match status.terminating_signal() {
                Some(signal) => Ended::Signal(signal),
                None => Ended::Exit(status.exit_status().unwrap_or(1)),
            }),
            Ok(None) | Err(rustix::io::Errno::INTR) => continue,
            // Nobody's child any more: how it ended cannot be told.
            Err(_) => Event::Ended(Ended::Exit(1)),
        };
        let over = matches!(event, Event::Ended(_));
        if send.send(event).is_err() || over {
            return;
        }
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let builder = std::thread::Builder::new().name(name.to_owned());
    builder.spawn(work).with_context(|| format!("cannot start the {name} thread"))?;
    Ok(())
}
