//! The writer's loop for the TUI and for `watch`: bounded steps, with an ear for orders between
//! them, and a rest until something is due.
//!
//! A process that does not hold the writer lock is a viewer: it looks every second whether the lock
//! has fallen free, and takes over. Every wake has the same order: scan, read, look at processes,
//! reconcile; the look comes every two seconds while there is anything to see.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use tokio::sync::oneshot;

use super::deliver::Deliverer;
use super::engine::{self, Engine};
use super::lock::{self, Holder};
use super::watcher::{Heard, Hints, Mode, Watcher};
use super::{Setting, once};
use crate::delivery::{self, Acked, Which};
use crate::reconcile::Pass;
use crate::snapshot::Beside;
use crate::store::{Store, StoreError};

/// A scan at least this often, whatever the events say, ms.
const SCAN_MS: i64 = 30_000;
/// While polling: everything this often, ms …
const POLL_ALL_MS: i64 = 4_000;
/// … and what changed lately this often, ms.
const POLL_HOT_MS: i64 = 250;
/// A file is hot for so long after its last change, ms.
const HOT_MS: i64 = 600_000;
/// Hot files polled at most.
const HOT_FILES_MAX: usize = 32;
/// A viewer tries to take over this often, ms.
const TAKE_OVER_MS: i64 = 500;
/// The writer shows that it lives at least this often, ms.
const BEAT_MS: i64 = 5_000;
/// A writer at rest sees within this time that somebody asks for a pass, ms.
const ASKED_MS: i64 = 500;
/// While files are being read: reconcile and show what there is this often, ms.
const SHOW_MS: i64 = 300;
/// What is past its deadline and cannot be judged yet (a file of it cannot be read, or the clock was
/// set) is looked at again after this long, ms.
const OVERDUE_MS: i64 = 5_000;
/// Waits after a failed write: doubling between these, ms.
const RETRY_MS: (i64, i64) = (100, 10_000);
/// What was written goes from the log into the database this often, ms: if the log is lost, so is what
/// lies in it.
const CHECKPOINT_MS: i64 = 5_000;
/// How long a write waits for other programs.
const BUSY: Duration = Duration::from_secs(5);

/// What a worker is told.
#[derive(Debug)]
pub enum Order {
    /// Something may have changed.
    Hints(Hints),
    /// Look at everything now.
    Rescan,
    /// Acknowledge deliveries.
    Acknowledge {
        /// Transition ids.
        ids: Vec<i64>,
        /// For whom.
        consumer: String,
    },
    /// Finish the step and let go of the lock; answer when done.
    Suspend(oneshot::Sender<()>),
    /// Go on.
    Resume,
    /// End.
    Stop,
}

/// What a worker tells.
#[derive(Debug)]
pub enum News {
    /// The store has changed, or what is known beside it.
    Changed {
        /// What is known beside the store.
        beside: Box<Beside>,
        /// What was moved.
        pass: Pass,
    },
    /// Deliveries have been acknowledged for a consumer.
    Acknowledged(Acked, String),
    /// These could not be.
    NotAcknowledged {
        /// Transition ids.
        ids: Vec<i64>,
        /// Why.
        why: String,
    },
    /// Something went wrong; it is tried again.
    Fault(String),
    /// The store cannot be used, and waiting would not help: the worker has ended.
    Hopeless(anyhow::Error),
}

/// Why a part of the loop ended.
enum Turn {
    Stop,
    /// To be answered once the lock is given back.
    Suspended(oneshot::Sender<()>),
    Lost,
}

/// The loop's memory that outlives a change between writer and viewer.
struct Worker<'a> {
    setting: &'a Setting,
    orders: &'a Receiver<Order>,
    watcher: Watcher,
    news: &'a mut dyn FnMut(News),
    retry_ms: i64,
    /// A file of the store was lost: it is read through when it is opened again.
    in_doubt: bool,
}

/// Runs until it is told to stop. `send` is the other end of `orders`, for file events.
pub fn run(
    setting: &Setting,
    orders: &Receiver<Order>,
    send: SyncSender<Order>,
    news: &mut dyn FnMut(News),
) {
    let watcher = Watcher::new(send);
    let mut worker =
        Worker { setting, orders, watcher, news, retry_ms: RETRY_MS.0, in_doubt: false };
    let mut begun = false;
    loop {
        let mut opened = engine::try_open(setting, BUSY);
        if let (true, Ok(Some(engine))) = (worker.in_doubt, &mut opened) {
            worker.in_doubt = false;
            if let Err(error) = engine.store.read_through() {
                (worker.news)(News::Fault(error.to_string()));
            }
        }
        let hopeless = !begun && opened.as_ref().is_err_and(|error| !once::is_passing(error));
        begun = true;
        let turn = match opened {
            Ok(Some(engine)) => worker.write(engine),
            Ok(None) => worker.view(),
            Err(error) if hopeless => return (worker.news)(News::Hopeless(error)),
            // Others of this process hold what was lost, and let go of it when they see so.
            Err(error) if worker.in_doubt && is_replaced(&error) => worker.rest(RETRY_MS.0),
            Err(error) => {
                (worker.news)(News::Fault(format!("{error:#}")));
                let wait = worker.retry_ms.max(TAKE_OVER_MS);
                worker.retry_ms = (wait * 2).min(RETRY_MS.1);
                worker.rest(wait)
            }
        };
        match turn {
            Turn::Stop => return,
            Turn::Lost => {}
            Turn::Suspended(done) => {
                // Nobody waits any more, perhaps.
                let _ = done.send(());
                if worker.sleep_until_resumed() {
                    return;
                }
            }
        }
    }
}

impl Worker<'_> {
    /// As the writer, until told otherwise. Deliveries end before the lock is let go.
    fn write(&mut self, mut engine: Engine) -> Turn {
        let mut times = Times::default();
        let deliverer = Deliverer::start(self.setting);
        loop {
            match self.round(&mut engine, &mut times, deliverer.as_ref()) {
                Ok(None) => self.retry_ms = RETRY_MS.0,
                Ok(Some(turn)) => return turn,
                Err(error) => {
                    (self.news)(News::Fault(format!("{error:#}")));
                    if is_replaced(&error) {
                        self.in_doubt = true;
                        return Turn::Lost; // the file there now is opened
                    }
                    let wait = self.retry_ms;
                    self.retry_ms = (wait * 2).min(RETRY_MS.1);
                    times.scan_at = 0;
                    if let Some(turn) = self.obey(&mut engine, &mut times, wait) {
                        return turn;
                    }
                }
            }
        }
    }

    /// One wake: scan if it is due, read, look at processes if that is due, reconcile, rest.
    fn round(
        &mut self,
        engine: &mut Engine,
        times: &mut Times,
        deliverer: Option<&Deliverer>,
    ) -> anyhow::Result<Option<Turn>> {
        let clock = self.setting.clock;
        let judging = times.judge_at <= clock.awake_ms()
            && engine.next_deadline()?.is_some_and(|due| due < clock.now_ms());
        if judging || times.scan_at <= clock.awake_ms() || self.watcher.take_overflow() {
            self.scan(engine, times)?;
        }
        while engine.step()? {
            if let Some(turn) = self.obey(engine, times, 0) {
                return Ok(Some(turn));
            }
            if times.show_at <= clock.awake_ms() {
                let pass = engine.reconcile()?;
                self.show(engine, pass)?;
                times.show_at = clock.awake_ms() + SHOW_MS;
            }
        }
        let pass = engine.reconcile()?;
        let tidied = engine.tidy()?;
        if times.looked || pass.has_moved() || tidied || engine.take_news() {
            engine.finish_pass();
            times.looked = false;
            self.show(engine, pass)?;
        }
        if let Some(deliverer) = deliverer {
            deliverer.look();
        }
        let wait = self.wait_ms(engine, times)?;
        Ok(self.obey(engine, times, wait))
    }

    /// Looks at everything; watches first, so that nothing changes unseen between the two.
    fn scan(&mut self, engine: &mut Engine, times: &mut Times) -> anyhow::Result<()> {
        self.watcher.cover(&engine.watch_folders());
        let grown = engine.scan()?;
        self.watcher.scanned(&grown, self.setting.clock.awake_ms());
        times.looked = true;
        times.scan_at = self.setting.clock.awake_ms()
            + match self.watcher.mode() {
                Mode::Events if !self.watcher.is_in_doubt() => SCAN_MS,
                Mode::Events | Mode::Polling(_) => POLL_ALL_MS,
            };
        Ok(())
    }

    /// How long nothing is due, ms.
    fn wait_ms(&self, engine: &mut Engine, times: &mut Times) -> anyhow::Result<i64> {
        let clock = self.setting.clock;
        let mut wait = (times.scan_at - clock.awake_ms()).min(BEAT_MS);
        if let Some(probe_at) = engine.next_probe_ms() {
            wait = wait.min(probe_at - clock.awake_ms());
        }
        if let Some(due) = engine.next_deadline()? {
            // Strictly past its deadline is due.
            let mut left = due.saturating_add(1) - clock.now_ms();
            if left <= 0 {
                left = OVERDUE_MS;
                times.judge_at = clock.awake_ms() + OVERDUE_MS;
            }
            wait = wait.min(left);
        }
        if *self.watcher.mode() != Mode::Events {
            wait = wait.min(POLL_HOT_MS);
        }
        Ok(wait.clamp(0, SCAN_MS))
    }

    /// Takes orders for so long; returns early after one that wants work.
    fn obey(&mut self, engine: &mut Engine, times: &mut Times, wait_ms: i64) -> Option<Turn> {
        let clock = self.setting.clock;
        let mut until_ms = clock.awake_ms() + wait_ms;
        loop {
            let left_ms = (until_ms - clock.awake_ms()).max(0);
            let slice = Duration::from_millis(left_ms.min(ASKED_MS).cast_unsigned());
            let order = match self.orders.recv_timeout(slice) {
                Ok(order) => order,
                Err(RecvTimeoutError::Timeout) => {
                    if wait_ms > 0 && lock::was_asked(&self.setting.config.db) {
                        times.scan_at = 0;
                    } else if left_ms > ASKED_MS && engine.guard().is_ok() {
                        continue;
                    }
                    engine.beat();
                    if engine.guard().is_err() {
                        times.scan_at = 0; // which finds it out again, and says so
                        return None;
                    }
                    if times.checkpoint_at <= clock.awake_ms() {
                        times.checkpoint_at = clock.awake_ms() + CHECKPOINT_MS;
                        let rows = engine.store.rows_written();
                        if std::mem::replace(&mut times.rows, rows) != rows {
                            // It stays in the log until the next time.
                            let _ = engine.store.checkpoint();
                        }
                    }
                    if *self.watcher.mode() != Mode::Events && wait_ms > 0 {
                        let hot = engine.hot_files(clock.now_ms() - HOT_MS, HOT_FILES_MAX);
                        times.looked |= engine.look_at(&hot).queued;
                    }
                    return None;
                }
                Err(RecvTimeoutError::Disconnected) => return Some(Turn::Stop),
            };
            match order {
                Order::Hints(hints) => {
                    let heard = self.watcher.hear(hints);
                    if heard == Heard::default() {
                        // Nothing of ours: the rest goes on.
                        continue;
                    }
                    let paths = engine.take_hints(heard.paths);
                    let look = engine.look_at(&paths);
                    times.looked |= look.queued;
                    if look.unknown || heard.rescan {
                        times.scan_at = 0;
                    }
                }
                Order::Rescan => times.scan_at = 0,
                Order::Acknowledge { ids, consumer } => {
                    let now_ms = clock.now_ms();
                    let acked = acknowledge(&mut engine.store, &ids, &consumer, now_ms);
                    self.tell_acknowledged(acked, ids, consumer);
                    times.looked = true;
                }
                Order::Suspend(done) => return Some(Turn::Suspended(done)),
                Order::Resume => {}
                Order::Stop => return Some(Turn::Stop),
            }
            // What came together is looked at together.
            until_ms = 0;
        }
    }

    fn show(&mut self, engine: &mut Engine, pass: Pass) -> anyhow::Result<()> {
        let mut beside = engine.beside(&self.setting.host)?;
        if let Mode::Polling(why) = self.watcher.mode() {
            beside.mirror.warnings.insert(0, why.clone());
        }
        (self.news)(News::Changed { beside: Box::new(beside), pass });
        Ok(())
    }

    /// As a viewer, until the lock falls free.
    fn view(&mut self) -> Turn {
        // Whoever writes listens.
        self.watcher.cover(&[]);
        let mut last = None;
        loop {
            let holder = lock::read(&self.setting.config.db).unwrap_or_default();
            // A heartbeat alone shows nothing; that there was none for long does.
            let visible = (Holder { heartbeat_ms: 0, ..holder }, once::is_stalled(holder));
            if last != Some(visible) {
                self.show_viewed(holder);
                last = Some(visible);
            }
            match self.rest(TAKE_OVER_MS) {
                Turn::Lost => {}
                turn @ (Turn::Stop | Turn::Suspended(_)) => return turn,
            }
            if !lock::is_held(&self.setting.config.db) {
                return Turn::Lost;
            }
        }
    }

    fn show_viewed(&mut self, holder: Holder) {
        let beside = once::beside_of(self.setting, holder);
        (self.news)(News::Changed { beside: Box::new(beside), pass: Pass::default() });
    }

    /// Without an engine: only acknowledgements can be obeyed.
    fn rest(&mut self, wait_ms: i64) -> Turn {
        let wait = Duration::from_millis(wait_ms.cast_unsigned());
        match self.orders.recv_timeout(wait) {
            Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => Turn::Stop,
            Ok(Order::Suspend(done)) => Turn::Suspended(done),
            Ok(Order::Acknowledge { ids, consumer }) => {
                let now_ms = self.setting.clock.now_ms();
                let acked = Store::open(&self.setting.config.db, BUSY, now_ms)
                    .and_then(|mut store| acknowledge(&mut store, &ids, &consumer, now_ms));
                self.tell_acknowledged(acked, ids, consumer);
                Turn::Lost
            }
            Ok(Order::Hints(_) | Order::Rescan | Order::Resume)
            | Err(RecvTimeoutError::Timeout) => Turn::Lost,
        }
    }

    fn tell_acknowledged(
        &mut self,
        acked: Result<Acked, StoreError>,
        ids: Vec<i64>,
        consumer: String,
    ) {
        (self.news)(match acked {
            Ok(acked) => News::Acknowledged(acked, consumer),
            Err(error) => News::NotAcknowledged { ids, why: error.to_string() },
        });
    }

    /// True when told to stop meanwhile.
    fn sleep_until_resumed(&mut self) -> bool {
        loop {
            match self.orders.recv() {
                Ok(Order::Resume) => return false,
                Ok(Order::Stop) | Err(_) => return true,
                Ok(_) => {}
            }
        }
    }
}

/// When what is due, by the clock that runs while the machine is awake, ms.
#[derive(Debug, Default)]
struct Times {
    scan_at: i64,
    show_at: i64,
    /// Something was looked at since the last complete pass.
    looked: bool,
    /// Before this, what is past its deadline is not judged again.
    judge_at: i64,
    checkpoint_at: i64,
    /// Rows written at the last checkpoint.
    rows: u64,
}

fn is_replaced(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(StoreError::Replaced { .. }))
}

fn acknowledge(
    store: &mut Store,
    ids: &[i64],
    consumer: &str,
    now_ms: i64,
) -> Result<Acked, StoreError> {
    store.write(|tx| delivery::ack(tx, consumer, Which::Ids(ids), now_ms))
}
