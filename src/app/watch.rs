//! `watch`: the writer's loop without a screen, for systemd. It runs until it is told to end, and
//! prints each transition.

use std::io::Write;
use std::sync::mpsc;
use std::time::Duration;

use super::engine::{self, Engine};
use super::{Exit, Setting, complain, once};
use crate::reconcile::Pass;
use crate::report;
use crate::snapshot;
use crate::store::Reader;

/// Between two looks at files, while nothing announces changes, ms.
const LOOK_MS: u64 = 4_000;
/// Between two tries to become the writer, ms.
const TAKE_OVER_MS: u64 = 1_000;
/// How long a write waits for other programs.
const BUSY: Duration = Duration::from_secs(5);

/// Runs for ever.
pub fn watch(setting: &Setting) -> anyhow::Result<Exit> {
    let ended = ended_by_signal()?;
    let mut told = false;
    let mut engine = loop {
        if let Some(engine) = engine::try_open(setting, BUSY)? {
            break engine;
        }
        if !told {
            complain("another process writes; waiting for it to end");
            told = true;
        }
        if ended.recv_timeout(Duration::from_millis(TAKE_OVER_MS)).is_ok() {
            return Ok(Exit::Fine);
        }
    };
    let mut reader = Reader::open(&setting.config.db)?;
    let mut warned = Vec::new();
    loop {
        match engine.pass() {
            Ok(pass) => {
                tell(setting, &mut reader, &pass)?;
                warn(setting, &mut engine, &mut warned)?;
            }
            // Nothing is lost: the next pass reads again from where the store stands.
            Err(error) => complain(&format!("{error:#}")),
        }
        if ended.recv_timeout(Duration::from_millis(LOOK_MS)).is_ok() {
            return Ok(Exit::Fine);
        }
    }
}

/// Prints the transitions of a pass.
fn tell(setting: &Setting, reader: &mut Reader, pass: &Pass) -> anyhow::Result<()> {
    let ids: Vec<i64> = pass.moved.iter().map(|moved| moved.transition_id).collect();
    let rows = reader.read(|tx| snapshot::transitions(tx, &ids))?;
    let style = setting.style();
    once::print(|out| {
        for (entity, row) in &rows {
            if setting.json {
                report::json::transition(out, entity, row)?;
            } else {
                report::table::transition(out, entity, row, style)?;
            }
        }
        out.flush()
    })
}

/// Says each warning once.
fn warn(setting: &Setting, engine: &mut Engine, warned: &mut Vec<String>) -> anyhow::Result<()> {
    let now = engine.beside(&setting.host)?.mirror.warnings;
    for warning in now.iter().filter(|warning| !warned.contains(warning)) {
        complain(warning);
    }
    *warned = now;
    Ok(())
}

/// A channel on which SIGTERM, SIGINT or SIGHUP arrives, once.
fn ended_by_signal() -> anyhow::Result<mpsc::Receiver<()>> {
    let (send, receive) = mpsc::channel();
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
        let _ = send.send(());
    })?;
    Ok(receive)
}
