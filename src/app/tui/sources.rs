//! Where the loop's events come from, and which one wins when several are there: signals, then the
//! screen when it is due, then the user, then everything else.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::app::signals::{self, Ignored, Listener};
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
    ending: Listener,
    stop: Listener,
    pub(super) go_on: Listener,
    resize: Listener,
}

impl Signals {
    pub(super) fn listen(ignored: Ignored) -> io::Result<Self> {
        signals::outlive_needless(ignored);
        // To ignore these two is what everybody does by default: it says nothing.
        let always = |which: process::Signal| Listener::to([which.as_raw()], Ignored::default());
        Ok(Self {
            ending: Listener::to(signals::ENDING, ignored)?,
            stop: Listener::to([process::Signal::TSTP.as_raw()], ignored)?,
            go_on: always(process::Signal::CONT)?,
            resize: always(process::Signal::WINCH)?,
        })
    }

    /// The exit, if a signal that ends us has come or comes in this time.
    pub(super) async fn ended_within(&mut self, limit: Duration) -> Option<Exit> {
        timeout(limit, self.ending.next()).await.ok().map(exit)
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
        Ok(tokio::select! {
            biased;
            which = signals.ending.next() => Event::Exit(exit(which)),
            _ = signals.stop.next() => Event::Stop,
            _ = signals.go_on.next() => Event::GoOn,
            Some(message) = self.panicked.recv() => Event::Panicked(message),
            Some(error) = self.hopeless.recv() => Event::Hopeless(error),
            _ = signals.resize.next() => Event::Resize,
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

/// What a signal that ends us makes of the screen.
fn exit(which: i32) -> Exit {
    match which {
        signals::HANG_UP => Exit::HangUp,
        _ => Exit::Signal(which),
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}
