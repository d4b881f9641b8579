//! `watch`: the same loop as behind the TUI, without a screen, for systemd. It runs until it is told
//! to end, and prints each transition.

use std::sync::mpsc::{self, SyncSender};

use super::worker::{self, News, Order};
use super::{Exit, Setting, complain, is_closed_pipe, once};
use crate::reconcile::Pass;
use crate::report;
use crate::snapshot;
use crate::store::Reader;

/// Orders that wait; more hints than that mean "look at everything".
const ORDERS_MAX: usize = 256;

/// Runs until SIGTERM, SIGINT or SIGHUP, or until nobody reads what it prints.
pub fn watch(setting: &Setting) -> anyhow::Result<Exit> {
    let (send, orders) = mpsc::sync_channel(ORDERS_MAX);
    stop_on_signal(send.clone())?;
    let mut teller = Teller { setting, reader: None, warned: Vec::new() };
    let mut outcome = Ok(Exit::Fine);
    let stop = send.clone();
    worker::run(setting, &orders, send, &mut |news| {
        if let Err(error) = teller.tell(news) {
            outcome = if is_closed_pipe(&error) { Ok(Exit::Fine) } else { Err(error) };
            // If the queue is full the next thing told fails again.
            let _ = stop.try_send(Order::Stop);
        }
    });
    outcome
}

struct Teller<'a> {
    setting: &'a Setting,
    reader: Option<Reader>,
    warned: Vec<String>,
}

impl Teller<'_> {
    fn tell(&mut self, news: News) -> anyhow::Result<()> {
        match news {
            News::Changed { beside, pass } => {
                let mut warnings = beside.mirror.warnings;
                if let Some(pid) = beside.mirror.writer_pid {
                    warnings.push(format!("pid {pid} writes; waiting for it to end"));
                }
                for warning in warnings.iter().filter(|new| !self.warned.contains(new)) {
                    complain(warning);
                }
                self.warned = warnings;
                self.transitions(&pass)
            }
            News::Acknowledged(..) | News::NotAcknowledged { .. } => Ok(()),
            News::Fault(message) => {
                complain(&message);
                Ok(())
            }
            News::Hopeless(error) => Err(error),
        }
    }

    fn transitions(&mut self, pass: &Pass) -> anyhow::Result<()> {
        if pass.moved.is_empty() {
            return Ok(());
        }
        let reader = match self.reader.as_mut() {
            Some(reader) => reader,
            None => self.reader.insert(Reader::open(&self.setting.config.db)?),
        };
        let ids: Vec<i64> = pass.moved.iter().map(|moved| moved.transition_id).collect();
        let rows = reader.read(|tx| snapshot::transitions(tx, &ids))?;
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

/// Sends an order to stop when the process is told to end.
fn stop_on_signal(send: SyncSender<Order>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let (Ok(mut term), Ok(mut int), Ok(mut hup)) = (
                signal(SignalKind::terminate()),
                signal(SignalKind::interrupt()),
                signal(SignalKind::hangup()),
            ) else {
                return;
            };
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
                _ = hup.recv() => {}
            }
        });
        // The loop may have ended already.
        let _ = send.send(Order::Stop);
    })?;
    Ok(())
}
