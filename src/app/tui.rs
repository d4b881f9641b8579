//! The loop of the screen: signals, keys, pictures, answers and time become messages, effects are
//! carried out, and at most every 33 ms what has changed is drawn.
//!
//! ```text
//!  signals ─┐                                     ┌─▶ requests (bounded) ─▶ worker, reader
//!  keys ────┤                                     │
//!  pictures ┼─▶ select! ─▶ ui::update ─▶ effects ─┤
//!  replies ─┤                   │                 └─▶ terminal: clipboard, bell, mouse
//!  time ────┘                   ▼
//!                           ui::view ─▶ painter ─▶ bytes, if there are any
//! ```
//!
//! It never waits for another thread, with one exception: before it stops on ^Z it waits, for a
//! bounded time, until the worker has finished its step and given the writer lock back.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{self, Signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::app::input::{self, Decoder, Input};
use crate::app::painter::Painter;
use crate::app::signals::Ignored;
use crate::app::terminal::{self, Guard};
use crate::app::tui::sources::{Deadlines, Event, Signals, Sources};
use crate::snapshot::{Picture, Pointer, Query};
use crate::ui::{self, Effect, Model, Msg, Reply, Switch};

mod osc;
mod sources;

pub use osc::Notify;

/// Between two frames at least.
const FRAME: Duration = Duration::from_millis(33);
/// How often ages are looked at; they change no more often than this.
const TICK: Duration = Duration::from_secs(10);
/// How long a request that found its channel full waits for the next try.
const RETRY: Duration = Duration::from_millis(50);
/// How long ^Z waits for the worker.
const SUSPEND_MAX: Duration = Duration::from_secs(2);
/// How long the signal to go on may come after we do.
const GO_ON_MAX: Duration = Duration::from_millis(300);
/// How long a stop takes to be in force.
const STOP_TAKES: Duration = Duration::from_millis(20);
/// Requests that may wait for room.
const OUTBOX_MAX: usize = 64;

/// What the loop is fed with and where its requests go.
#[derive(Debug)]
pub struct Feed {
    /// Pictures of the store, the latest alone; `None` until the first.
    pub pictures: watch::Receiver<Option<Arc<Picture>>>,
    /// Answers and news; a small bound.
    pub replies: mpsc::Receiver<Reply>,
    /// What makes going on pointless; the program ends with it.
    pub hopeless: mpsc::Receiver<anyhow::Error>,
    /// What others are asked to do.
    pub requests: SyncSender<Request>,
}

/// What others are asked to do.
#[derive(Debug)]
pub enum Request {
    /// Make pictures with this query from now on.
    Query(Query),
    /// Acknowledge these entries; answered by a reply.
    Acknowledge {
        /// Transition ids.
        ids: Vec<i64>,
        /// By whom.
        consumer: String,
    },
    /// Read a message's full text; answered by a reply.
    ReadMessage {
        /// Its id.
        id: i64,
        /// Where it lies.
        pointer: Pointer,
    },
    /// Look at every file now.
    Rescan,
    /// Finish the step, give the writer lock back, say so, and touch nothing until `Resumed`.
    Suspend(oneshot::Sender<()>),
    /// The process goes on after a stop: probe before judging.
    Resumed,
}

/// How the screen is to be.
pub struct Options {
    /// What the model needs to know.
    pub ui: ui::Options,
    /// How to reach somebody who is not looking.
    pub notify: Notify,
    /// Inside tmux, which passes on only what is wrapped.
    pub tmux: bool,
    /// The clock, ms.
    pub now: Box<dyn Fn() -> i64>,
    /// For tests: fail on this many-th frame in this way.
    pub fault: Option<Fault>,
}

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Options").field("ui", &self.ui).finish_non_exhaustive()
    }
}

/// A failure on purpose, for the tests of the terminal's way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An error after the terminal was borrowed, before the first frame.
    ErrorAtStart,
    /// A panic after the first frame.
    PanicAfterFrame,
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The user left.
    Quit,
    /// This signal came.
    Signal(i32),
    /// The terminal is gone: there is nobody to tell.
    HangUp,
}

/// Borrows the terminal and runs until somebody or something ends it. The terminal is given back
/// when this returns, whatever it returns.
pub fn run(feed: Feed, options: Options) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    runtime.block_on(open_and_run(feed, options))
}

async fn open_and_run(feed: Feed, mut options: Options) -> anyhow::Result<Exit> {
    let ignored = Ignored::at_start();
    let mut signals = Signals::listen(ignored).context("cannot listen for signals")?;
    if !terminal::is_ours() {
        release(&feed.requests).await;
        if let Some(exit) = in_front(&mut signals).await {
            return Ok(exit);
        }
        let _ = feed.requests.send(Request::Resumed);
    }
    let (panics, panicked) = mpsc::channel(1);
    let elsewhere = move |message| {
        // The first one is the one to be told.
        let _ = panics.try_send(message);
    };
    let guard = Guard::enter(options.ui.mouse, elsewhere).context("cannot set up the terminal")?;
    if options.fault == Some(Fault::ErrorAtStart) {
        anyhow::bail!("failed on purpose");
    }
    let bytes = input::reader().context("cannot read the terminal")?;
    options.ui.notify = if options.notify == Notify::Off { Switch::Off } else { Switch::On };
    let (width, height) = terminal::size();
    let Feed { pictures, replies, hopeless, requests } = feed;
    let mut sources = Sources { signals, panicked, hopeless, bytes, pictures, replies };
    let mut screen = Screen {
        guard,
        model: Model::new(options.ui.clone(), width, height, (options.now)()),
        painter: Painter::default(),
        decoder: Decoder::default(),
        requests,
        outbox: VecDeque::new(),
        options,
        exit: None,
        deadlines: Deadlines::starting(TICK),
        started: Instant::now(),
        last_frame: None,
        own_stop: false,
        can_stop: !ignored.has(Signal::TSTP.as_raw()),
    };
    screen.take_picture(&mut sources)?;
    screen.draw();
    while screen.exit.is_none() {
        let event = sources.next(screen.deadlines).await?;
        screen.turn(event, &mut sources).await?;
    }
    if screen.decoder.is_pasting() {
        // The rest of it is not for the shell.
        terminal::drop_input();
    }
    Ok(screen.exit.unwrap_or(Exit::Quit))
}

/// The loop's state.
struct Screen {
    guard: Guard,
    model: Model,
    painter: Painter,
    decoder: Decoder,
    requests: SyncSender<Request>,
    outbox: VecDeque<Request>,
    options: Options,
    exit: Option<Exit>,
    deadlines: Deadlines,
    /// When the screen was opened: what times of reads are measured from.
    started: Instant,
    last_frame: Option<Instant>,
    /// We sent a stop signal to our process group, hence to ourselves too: it is no news.
    own_stop: bool,
    /// Whoever started us can make a stopped program go on: it has not told us to ignore stops.
    can_stop: bool,
}

impl Screen {
    async fn turn(&mut self, event: Event, sources: &mut Sources) -> anyhow::Result<()> {
        match event {
            Event::Exit(exit) => self.exit = Some(exit),
            Event::Panicked(message) => anyhow::bail!("a background thread failed: {message}"),
            Event::Hopeless(error) => return Err(error),
            Event::Stop if self.own_stop => self.own_stop = false,
            Event::Stop => self.stop(Others::Go, sources).await?,
            Event::GoOn => {
                // Stopped and woken by somebody else: the shell has changed the modes meanwhile.
                self.guard.give_back();
                self.back(sources).await?;
            }
            Event::Resize => self.resize()?,
            Event::Bytes(mut bytes) => {
                // A flood is taken at once, so that what ends it does not wait behind it.
                while let Ok(more) = sources.bytes.try_recv() {
                    bytes.extend(more);
                }
                let now_ms = self.started.elapsed().as_millis();
                let inputs = self.decoder.feed(&bytes, i64::try_from(now_ms).unwrap_or(i64::MAX));
                self.inputs(inputs, sources).await?;
            }
            Event::InputOver => {
                let inputs = self.decoder.flush();
                self.inputs(inputs, sources).await?;
            }
            Event::Picture => self.take_picture(sources)?,
            Event::Reply(reply) => {
                let effects = self.tell(Msg::Reply(reply));
                self.carry_out(effects, sources).await?;
            }
            Event::Frame => self.draw(),
            Event::Tick => {
                self.deadlines.tick = Instant::now() + TICK;
                let now_ms = (self.options.now)();
                self.tell(Msg::Now(now_ms));
            }
            Event::Retry => self.send_all()?,
        }
        Ok(())
    }

    /// One message into the model; whether anything on the screen changed is seen when drawing.
    fn tell(&mut self, msg: Msg) -> Vec<Effect> {
        let effects = ui::update(&mut self.model, msg);
        let soonest = self.last_frame.map_or_else(Instant::now, |last| last + FRAME);
        self.deadlines.frame.get_or_insert(soonest);
        effects
    }

    async fn inputs(&mut self, inputs: Vec<Input>, sources: &mut Sources) -> anyhow::Result<()> {
        self.deadlines.input = self.decoder.patience().map(|patience| Instant::now() + patience);
        let now_ms = (self.options.now)();
        self.tell(Msg::Now(now_ms));
        // As a terminal does that is not raw: the interrupt key takes back what was typed before it.
        let first = inputs.iter().rposition(Input::is_interrupt).unwrap_or(0);
        for input in inputs.into_iter().skip(first) {
            let msg = match input {
                Input::Key(key) => Msg::Key(key),
                Input::Paste(text) => Msg::Paste(text),
                Input::Mouse(mouse) => Msg::Mouse(mouse),
            };
            let effects = self.tell(msg);
            self.carry_out(effects, sources).await?;
            if self.exit.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn take_picture(&mut self, sources: &mut Sources) -> anyhow::Result<()> {
        let picture = sources.pictures.borrow_and_update().clone();
        let now_ms = (self.options.now)();
        self.tell(Msg::Now(now_ms));
        let Some(picture) = picture else { return Ok(()) };
        for effect in self.tell(Msg::Picture(picture)) {
            // A picture asks for a query or for a human, never for a stop.
            self.carry_out_at_once(effect)?;
        }
        Ok(())
    }

    async fn carry_out(
        &mut self,
        effects: Vec<Effect>,
        sources: &mut Sources,
    ) -> anyhow::Result<()> {
        for effect in effects {
            if effect == Effect::Suspend && !self.can_stop {
                let why = "^Z does nothing here: whoever started lullwatch has no job control";
                self.tell(Msg::Reply(Reply::Notice(why.to_owned())));
            } else if effect == Effect::Suspend {
                self.stop(Others::Stop, sources).await?;
            } else {
                self.carry_out_at_once(effect)?;
            }
        }
        Ok(())
    }

    fn carry_out_at_once(&mut self, effect: Effect) -> anyhow::Result<()> {
        match effect {
            Effect::Quit => self.exit = Some(Exit::Quit),
            Effect::Redraw => self.painter.forget(),
            Effect::Copy(text) => self.write(&osc::copy(&text, self.options.tmux)),
            Effect::Notify(text) => {
                self.write(&osc::notify(&text, self.options.notify, self.options.tmux));
            }
            Effect::Mouse(switch) => self.guard.mouse(switch).context("cannot switch the mouse")?,
            Effect::Query(query) => self.ask(Request::Query(query))?,
            Effect::Acknowledge { ids, consumer } => {
                self.ask(Request::Acknowledge { ids, consumer })?;
            }
            Effect::ReadMessage { id, pointer } => {
                self.ask(Request::ReadMessage { id, pointer })?;
            }
            Effect::Rescan => self.ask(Request::Rescan)?,
            Effect::Suspend => {}
        }
        Ok(())
    }

    /// Queues a request; of queries only the newest is worth sending.
    fn ask(&mut self, request: Request) -> anyhow::Result<()> {
        if matches!(request, Request::Query(_)) {
            self.outbox.retain(|waiting| !matches!(waiting, Request::Query(_)));
        }
        if self.outbox.len() < OUTBOX_MAX {
            self.outbox.push_back(request);
        } else {
            self.tell(Msg::Reply(Reply::Failed("too much at once; try again".to_owned())));
        }
        self.send_all()
    }

    fn send_all(&mut self) -> anyhow::Result<()> {
        self.deadlines.retry = None;
        while let Some(request) = self.outbox.pop_front() {
            match self.requests.try_send(request) {
                Ok(()) => {}
                Err(TrySendError::Full(request)) => {
                    self.outbox.push_front(request);
                    self.deadlines.retry = Some(Instant::now() + RETRY);
                    break;
                }
                Err(TrySendError::Disconnected(_)) => {
                    anyhow::bail!("the background threads have ended");
                }
            }
        }
        Ok(())
    }

    fn resize(&mut self) -> anyhow::Result<()> {
        // A terminal cuts and moves what it shows when its size changes, there and back included.
        self.painter.forget();
        let (width, height) = terminal::size();
        for effect in self.tell(Msg::Resize { width, height }) {
            self.carry_out_at_once(effect)?;
        }
        Ok(())
    }

    fn draw(&mut self) {
        self.deadlines.frame = None;
        self.last_frame = Some(Instant::now());
        let bytes = self.painter.paint(ui::view(&self.model));
        if !bytes.is_empty() {
            self.write(&bytes);
        }
        assert!(self.options.fault != Some(Fault::PanicAfterFrame), "failed on purpose");
    }

    /// Writes; a terminal that takes nothing any more is gone.
    fn write(&mut self, text: &str) {
        match terminal::write(text.as_bytes()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Half a frame may be out: the next one is drawn whole.
                self.painter.forget();
                self.deadlines.frame = Some(Instant::now() + FRAME);
            }
            Err(_) => self.exit = Some(Exit::HangUp),
        }
    }

    /// Stops, as ^Z does everywhere.
    async fn stop(&mut self, others: Others, sources: &mut Sources) -> anyhow::Result<()> {
        release(&self.requests).await;
        self.guard.give_back();
        if others == Others::Stop {
            // What ^Z would have done without raw mode: whoever started us stops too, or the shell
            // would not notice. We catch the signal ourselves, so we stop in the next line.
            self.own_stop = process::kill_current_process_group(Signal::TSTP).is_ok();
        }
        process::kill_process(process::getpid(), Signal::STOP).context("cannot stop")?;
        let _ = timeout(GO_ON_MAX, sources.signals.go_on.next()).await;
        self.back(sources).await
    }

    async fn back(&mut self, sources: &mut Sources) -> anyhow::Result<()> {
        if let Some(exit) = in_front(&mut sources.signals).await {
            self.exit = Some(exit);
            return Ok(());
        }
        self.guard.take(self.model.mouse).context("cannot set up the terminal again")?;
        self.painter.forget();
        self.ask(Request::Resumed)?;
        self.tell(Msg::Resumed);
        self.take_picture(sources)?;
        self.resize()
    }
}

/// Has the worker finish its step and give the writer lock back, so that another monitor can take
/// over while this one sleeps.
async fn release(requests: &SyncSender<Request>) {
    let (done, released) = oneshot::channel();
    let asked = async {
        let mut request = Request::Suspend(done);
        while let Err(TrySendError::Full(back)) = requests.try_send(request) {
            request = back;
            sleep(RETRY).await;
        }
        let _ = released.await;
    };
    let _ = timeout(SUSPEND_MAX, asked).await;
}

/// Waits until this process is in front, stopped as every job in the background is that reaches for
/// the terminal. A signal that ends us is heard whenever somebody makes us go on, and returned: one
/// that came to a process stopped while it sets the terminal would not be.
async fn in_front(signals: &mut Signals) -> Option<Exit> {
    let mut can_stop = true;
    while can_stop && !terminal::is_ours() {
        if let Some(exit) = signals.ended_within(STOP_TAKES).await {
            return Some(exit);
        }
        can_stop = process::kill_current_process_group(Signal::TTOU).is_ok();
        // The whole process stops in here, whichever of its threads the signal met.
        std::thread::park_timeout(STOP_TAKES);
        // Where nobody is left who could make us go on, nothing stops us either: then setting up
        // the terminal says what is wrong.
        can_stop &= timeout(GO_ON_MAX, signals.go_on.next()).await.is_ok();
    }
    signals.ended_within(Duration::ZERO).await
}

/// Whether the rest of our process group stops with us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    /// It does: the user pressed ^Z.
    Stop,
    /// It does not: the signal was for us alone.
    Go,
}
