//! `watch`: the same loop as behind the TUI, without a screen, for systemd. It runs until it is told
//! to end, and prints each transition, whoever writes it: as a viewer those of the writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;

use anyhow::Context as _;

use super::signals::{self, Ignored, Listener};
use super::worker::{self, News, Order};
use super::{Exit, Setting, complain, engine, is_closed_pipe, once};
use crate::report;
use crate::snapshot;
use crate::store::{Reader, StoreError, transitions};

/// Orders that wait; more hints than that mean "look at everything".
const ORDERS_MAX: usize = 256;
/// Transitions printed at a time; the rest follows with the next look.
const ROWS_MAX: i64 = 10_000;
/// How long the first look at the store waits for other programs.
const BUSY: Duration = Duration::from_millis(500);

/// Runs until a signal that ends it (see [`signals`]), or until nobody reads what it prints.
pub fn watch(setting: &Setting) -> anyhow::Result<Exit> {
    usable(setting)?;
    let (send, orders) = mpsc::sync_channel(ORDERS_MAX);
    let signal = stop_on_signal(send.clone())?;
    let mut teller =
        Teller { setting, reader: None, told: newest(setting), warned: Vec::new(), trouble: None };
    let mut outcome = Ok(Exit::Fine);
    let stop = send.clone();
    worker::run(setting, &orders, send, &mut |news| {
        if let Err(error) = teller.tell(news) {
            outcome = if is_closed_pipe(&error) { Ok(Exit::Fine) } else { Err(error) };
            // If the queue is full the next thing told fails again.
            let _ = stop.try_send(Order::Stop);
        }
    });
    let signal = signal.load(Ordering::SeqCst);
    match signals::farewell(signal) {
        Some(line) => {
            complain(&line);
            outcome.map(|_| Exit::Signal(signal))
        }
        None => outcome,
    }
}

/// The newest transition before anything is printed; 0 in a store that is yet to be made.
fn newest(setting: &Setting) -> i64 {
    Reader::open(&setting.config.db)
        .and_then(|mut reader| reader.read(transitions::newest_id))
        .unwrap_or(0)
}

/// A store that no retry makes usable is told at once: a service manager must see the failure. What
/// may pass (locked, full, read-only) is retried by the loop.
fn usable(setting: &Setting) -> anyhow::Result<()> {
    let opened = match engine::try_open(setting, BUSY) {
        Ok(Some(_)) => return Ok(()),
        Ok(None) => once::open_beside(setting).map(drop),
        Err(error) => Err(error),
    };
    opened.or_else(|error| match error.downcast_ref() {
        Some(
            StoreError::Busy { .. }
            | StoreError::Full { .. }
            | StoreError::ReadOnly { .. }
            | StoreError::Disk { .. }
            | StoreError::Replaced { .. },
        ) => Ok(()),
        Some(_) | None => Err(error),
    })
}

struct Teller<'a> {
    setting: &'a Setting,
    reader: Option<Reader>,
    /// The last transition that was printed.
    told: i64,
    warned: Vec<String>,
    /// What was told last of a store that cannot be used.
    trouble: Option<String>,
}

impl Teller<'_> {
    fn tell(&mut self, news: News) -> anyhow::Result<()> {
        match news {
            News::Changed { beside, .. } => {
                let mut warnings = beside.mirror.warnings;
                if let Some(pid) = beside.mirror.writer_pid {
                    warnings.push(format!("pid {pid} writes; waiting for it to end"));
                }
                for warning in warnings.iter().filter(|new| !self.warned.contains(new)) {
                    complain(warning);
                }
                self.warned = warnings;
                self.trouble = None;
                self.transitions().or_else(|error| self.again(error))
            }
            News::Acknowledged(..) | News::NotAcknowledged { .. } => Ok(()),
            News::Fault(message) => {
                // What was replaced under us is opened again when nobody here holds it any more.
                self.reader = None;
                self.trouble(message);
                Ok(())
            }
            News::Hopeless(error) => Err(error),
        }
    }

    /// What is wrong with the store is told once, and what it holds is asked for again with the next
    /// news. Whatever else fails, ends us.
    fn again(&mut self, error: anyhow::Error) -> anyhow::Result<()> {
        if error.downcast_ref::<StoreError>().is_none() {
            return Err(error);
        }
        self.reader = None;
        self.trouble(format!("{error:#}"));
        Ok(())
    }

    fn trouble(&mut self, message: String) {
        if self.trouble.as_ref() != Some(&message) {
            complain(&message);
            self.trouble = Some(message);
        }
    }

    fn transitions(&mut self) -> anyhow::Result<()> {
        let reader = match self.reader.as_mut() {
            Some(reader) => reader,
            None => self.reader.insert(Reader::open(&self.setting.config.db)?),
        };
        // Of a store that was made anew since, nothing has been told.
        let newest = reader.read(transitions::newest_id)?;
        let told = if newest < self.told { 0 } else { self.told };
        let rows = reader.read(|tx| {
            let new = transitions::after(tx, told, ROWS_MAX)?;
            let ids: Vec<i64> = new.iter().map(|row| row.id).collect();
            snapshot::transitions(tx, &ids)
        })?;
        let Some((_, last)) = rows.last() else { return Ok(()) };
        self.told = last.id;
        let style = self.setting.style();
        once::print(|out| {
            for (entity, row) in &rows {
                if self.setting.json {
                    report::json::transition(out, entity, row)?;
                } else {
                    report::table::transition(out, entity, row, style)?;
                }
            }
            out.flush()
        })
    }
}

/// Sends an order to stop when the process is told to end; which signal told it, 0 if none did.
fn stop_on_signal(send: SyncSender<Order>) -> anyhow::Result<Arc<AtomicI32>> {
    let ignored = Ignored::at_start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut listener = {
        let _inside = runtime.enter();
        Listener::to(signals::ENDING, ignored).context("cannot listen for signals")?
    };
    signals::outlive_needless(ignored);
    let told = Arc::new(AtomicI32::new(0));
    let tell = Arc::clone(&told);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        tell.store(runtime.block_on(listener.next()), Ordering::SeqCst);
        // The loop may have ended already.
        let _ = send.send(Order::Stop);
    })?;
    Ok(told)
}
