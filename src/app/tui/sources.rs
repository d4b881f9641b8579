//! Where the loop's events come from, and which one wins when several are there: signals, then the
//! screen when it is due, then the user, then everything else.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::app::tui::Exit;
use crate::snapshot::Picture;
use crate::ui::Reply;

/// One thing that happened.
#[derive(Debug)]
pub(super) enum Event {
    /// It is over.
    Exit(Exit),
    /// Somebody wants us to stop.
    Stop,
    /// We go on after a stop that was not ours.
    GoOn,
    /// The terminal has another size.
    Resize,
    /// The terminal sent something.
    Bytes(Vec<u8>),
    /// What the input waited for did not come.
    InputOver,
    /// There is a newer picture.
    Picture,
    /// An answer.
    Reply(Reply),
    /// Another thread panicked.
    Panicked(String),
    /// The store cannot be used.
    Hopeless(anyhow::Error),
    /// It is time to draw.
    Frame,
    /// It is time to look at the clock.
    Tick,
    /// It is time to try again to send.
    Retry,
}

/// Signals that end or change something.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    stop: Signal,
    pub(super) go_on: Signal,
    resize: Signal,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        let raw = |which: process::Signal| signal(SignalKind::from_raw(which.as_raw()));
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            stop: raw(process::Signal::TSTP)?,
            go_on: raw(process::Signal::CONT)?,
            resize: signal(SignalKind::window_change())?,
        })
    }
}

/// When something is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    pub(super) frame: Option<Instant>,
    pub(super) input: Option<Instant>,
    pub(super) retry: Option<Instant>,
    pub(super) tick: Instant,
}

impl Deadlines {
    pub(super) fn starting(tick: Duration) -> Self {
        Self { frame: None, input: None, retry: None, tick: Instant::now() + tick }
    }
}

/// Where events come from.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) signals: Signals,
    pub(super) panicked: mpsc::Receiver<String>,
    pub(super) hopeless: mpsc::Receiver<anyhow::Error>,
    pub(super) bytes: mpsc::Receiver<Vec<u8>>,
    pub(super) pictures: watch::Receiver<Option<Arc<Picture>>>,
    pub(super) replies: mpsc::Receiver<Reply>,
}

impl Sources {
    /// Waits for the next event.
    pub(super) async fn next(&mut self, deadlines: Deadlines) -> anyhow::Result<Event> {
        let signals = &mut self.signals;
        let ended = |which: process::Signal| Event::Exit(Exit::Signal(which.as_raw()));
        Ok(tokio::select! {
            biased;
            _ = signals.hang_up.recv() => Event::Exit(Exit::HangUp),
            _ = signals.terminate.recv() => ended(process::Signal::TERM),
            _ = signals.interrupt.recv() => ended(process::Signal::INT),
            _ = signals.stop.recv() => Event::Stop,
            _ = signals.go_on.recv() => Event::GoOn,
            Some(message) = self.panicked.recv() => Event::Panicked(message),
            Some(error) = self.hopeless.recv() => Event::Hopeless(error),
            _ = signals.resize.recv() => Event::Resize,
            // Before the input: a flood of it must not keep the screen as it was.
            () = due(deadlines.frame) => Event::Frame,
            bytes = self.bytes.recv() => bytes.map_or(Event::Exit(Exit::HangUp), Event::Bytes),
            () = due(deadlines.input) => Event::InputOver,
            changed = self.pictures.changed() => {
                changed.context("the reader of the store has ended")?;
                Event::Picture
            }
            Some(reply) = self.replies.recv() => Event::Reply(reply),
            () = due(deadlines.retry) => Event::Retry,
            () = sleep_until(deadlines.tick) => Event::Tick,
        })
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}
