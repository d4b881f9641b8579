//! Tells the `on_terminal` command what has ended: one at a time, in a thread of its own, so that a
//! storm of endings, or a command that hangs, keeps neither the mirror nor the screen waiting.
//!
//! The queue is the ledger itself. The thread lives as long as its process is the writer; nobody
//! else delivers. The command is never called inside a transaction.

use std::sync::mpsc::{self, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::attempt::{self, Called, Ears, Event};
use super::{Setting, complain, lock};
use crate::clock::Clock;
use crate::config::OnTerminal;
use crate::delivery::Delivery;
use crate::delivery::on_terminal::{self, Envelope, Task};
use crate::store::{self, Store};
use crate::text;

/// Events that wait.
const EVENTS_MAX: usize = 8;
/// Entries read at a time.
const ROWS_MAX: i64 = 32;
/// How long a write waits for other programs.
const BUSY: Duration = Duration::from_secs(5);
/// After a fault of the database it is tried again, ms.
const RETRY_MS: i64 = 5_000;
/// With nothing due it looks this often by itself, ms.
const REST_MS: i64 = 60_000;
/// `--once` begins no further delivery after this, ms.
const ONCE_MS: i64 = 2_000;

/// The thread that delivers.
#[derive(Debug)]
pub struct Deliverer {
    send: SyncSender<Event>,
    thread: Option<JoinHandle<()>>,
}

impl Deliverer {
    /// Starts it, if a command is configured.
    pub fn start(setting: &Setting) -> Option<Self> {
        let command = setting.config.on_terminal.clone()?;
        let (send, events) = mpsc::sync_channel(EVENTS_MAX);
        let (setting, own) = (setting.clone(), send.clone());
        let work = move || {
            let courier = Courier { setting: &setting, command, ears: Ears::new(events, own) };
            courier.run();
        };
        let thread = std::thread::Builder::new().name("on_terminal".to_owned()).spawn(work);
        if let Err(error) = &thread {
            complain(&format!("cannot start the on_terminal thread: {error}"));
        }
        Some(Self { send, thread: thread.ok() })
    }

    /// Something may have ended.
    pub fn look(&self) {
        // Full: it looks anyway.
        let _ = self.send.try_send(Event::Look);
    }
}

impl Drop for Deliverer {
    /// Waits for it; a command that runs is ended, and called again by whoever writes next.
    fn drop(&mut self) {
        let _ = self.send.send(Event::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Delivers what is due within a small budget, if nobody has begun to write meanwhile.
pub fn soon(setting: &Setting) {
    let Some(command) = setting.config.on_terminal.clone() else { return };
    let Ok(Some(_lock)) = lock::try_take(&setting.config.db, Clock::default().now_ms()) else {
        return;
    };
    let (send, events) = mpsc::sync_channel(EVENTS_MAX);
    let courier = Courier { setting, command, ears: Ears::new(events, send) };
    let until_ms = Clock::default().awake_ms() + ONCE_MS;
    let outcome = courier.open().and_then(|mut store| courier.round(&mut store, until_ms));
    if let Err(error) = outcome {
        complain(&format!("cannot deliver: {error}"));
    }
}

/// Whether a round goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Rest,
    Stop,
}

struct Courier<'a> {
    setting: &'a Setting,
    command: OnTerminal,
    ears: Ears,
}

impl Courier<'_> {
    /// Until told to stop.
    fn run(&self) {
        let mut open = None;
        loop {
            let wait_ms = match self.once_more(&mut open) {
                Ok((Next::Stop, _)) => return,
                Ok((Next::Rest, wait_ms)) => wait_ms,
                // It is told by those who write, and tried again.
                Err(_) => {
                    open = None;
                    RETRY_MS
                }
            };
            let wait = Duration::from_millis(wait_ms.max(0).cast_unsigned());
            let _ = self.ears.hear(wait);
            if self.ears.is_stopping() {
                return;
            }
        }
    }

    /// One round; also how long nothing more is due, ms.
    fn once_more(&self, open: &mut Option<Store>) -> store::Result<(Next, i64)> {
        let store = match open {
            Some(store) => store,
            None => open.insert(self.open()?),
        };
        let (next, held_ms) = self.round(store, i64::MAX)?;
        let due_ms = store.read(on_terminal::next_due_ms)?;
        let now_ms = self.setting.clock.now_ms();
        let due_ms = due_ms.into_iter().chain(held_ms).min();
        let wait_ms = due_ms.map_or(REST_MS, |due| due.saturating_sub(now_ms));
        Ok((next, wait_ms.clamp(1, REST_MS)))
    }

    fn open(&self) -> store::Result<Store> {
        Store::open(&self.setting.config.db, BUSY, self.setting.clock.now_ms())
    }

    /// Everything that is due, oldest first; begins nothing after `until_ms`. Also when what is held
    /// back is to be asked for again, ms.
    fn round(&self, store: &mut Store, until_ms: i64) -> store::Result<(Next, Option<i64>)> {
        loop {
            let now_ms = self.setting.clock.now_ms();
            let due = store.read(|tx| on_terminal::due(tx, now_ms, ROWS_MAX))?;
            let mut held_ms: Option<i64> = None;
            let mut done = 0;
            for (entry, task) in &due {
                if Clock::default().awake_ms() >= until_ms {
                    return Ok((Next::Rest, held_ms));
                }
                if let Task::WaitUntil(at_ms) = task {
                    held_ms = Some(held_ms.map_or(*at_ms, |held| held.min(*at_ms)));
                    continue;
                }
                done += 1;
                if self.deliver(store, entry, *task)? == Next::Stop || self.ears.is_stopping() {
                    return Ok((Next::Stop, held_ms));
                }
            }
            if done == 0 {
                return Ok((Next::Rest, held_ms));
            }
        }
    }

    fn deliver(&self, store: &mut Store, entry: &Delivery, task: Task) -> store::Result<Next> {
        let now_ms = || self.setting.clock.now_ms();
        match task {
            Task::WaitUntil(_) => {}
            Task::Skip => store.write(|tx| on_terminal::skipped(tx, entry.id, now_ms()))?,
            Task::Deliver => {
                let (name, host) = (text::line(&entry.name), text::line(&self.setting.host));
                let session = entry.session.as_deref().map(text::line);
                let envelope = Envelope::new(entry, &name, session.as_deref(), &host).text();
                match attempt::call(&self.command, &envelope, &self.ears) {
                    Called::Taken => {
                        store.write(|tx| on_terminal::delivered(tx, entry.id, now_ms()))?;
                    }
                    Called::Failed(error) => {
                        store.write(|tx| on_terminal::failed(tx, entry, &error, now_ms()))?;
                    }
                    Called::Stopped => return Ok(Next::Stop),
                }
            }
        }
        Ok(Next::Rest)
    }
}
