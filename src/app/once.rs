//! `--once`, and the pass that every reading command runs first if it can.
//!
//! With the writer lock free it mirrors and reconciles; while another process writes, it waits for
//! that one's next complete pass; and if neither comes in time it prints what there is and says so.

use std::io::{self, BufWriter, Write};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context as _;

use super::deliver;
use super::engine::{self, Engine};
use super::lock::{self, Holder, STALLED_MS};
use super::{Exit, Setting, commands, complain, log};
use crate::clock::Clock;
use crate::lifecycle::windows::{Asked, windows_beside};
use crate::liveness::proc::Proc;
use crate::report;
use crate::snapshot::{self, Beside, Query, Snapshot};
use crate::store::{self, Reader, StoreError};

/// How long `--once` waits for the writer lock, or for the writer's next pass, ms.
const PATIENCE_MS: i64 = 9_000;
/// How long a log that was removed is waited for, ms.
const LOG_WAIT_MS: i64 = 3_000;
/// How often it looks, ms.
const LOOK_MS: u64 = 25;

/// A store brought up to date as far as it could be, to be read.
#[derive(Debug)]
pub struct View {
    /// The connection.
    pub reader: Reader,
    /// What is known beside the store.
    pub beside: Beside,
    /// Work counters.
    pub stats: Vec<String>,
}

/// How much a command may wait for a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Up to 9 s.
    Wait,
    /// Not at all. It only asks, so its pass begins no watch: new roots get no epoch.
    None,
}

/// `--once`.
pub fn once(setting: &Setting) -> anyhow::Result<Exit> {
    let mut view = up_to_date(setting, Patience::Wait)?;
    let snapshot = load(setting, &mut view)?;
    print(|out| {
        if setting.json {
            report::json::snapshot(out, &snapshot)
        } else {
            report::table::sessions(out, &snapshot, setting.style())
        }
    })?;
    if view.beside.mirror.writer {
        deliver::soon(setting);
    }
    finish(setting, &view, snapshot.counts.attention > 0)
}

/// Work counters and the exit code.
pub fn finish(setting: &Setting, view: &View, attention: bool) -> anyhow::Result<Exit> {
    if setting.config.stats {
        let mut err = io::stderr();
        for line in &view.stats {
            writeln!(err, "{line}").ok();
        }
    }
    Ok(if setting.exit_code && attention { Exit::Attention } else { Exit::Fine })
}

/// Writes to stdout, buffered; a closed pipe comes back as an error that `run` takes for an end.
pub fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    write(&mut out).and_then(|()| out.flush()).context("cannot write to stdout")
}

/// The snapshot that was asked for.
pub fn load(setting: &Setting, view: &mut View) -> anyhow::Result<Snapshot> {
    let now_ms = setting.clock.now_ms();
    let query = query(setting);
    Ok(view.reader.read(|tx| snapshot::load(tx, &query, &view.beside, now_ms))?)
}

/// The display filters that were typed.
pub fn query(setting: &Setting) -> Query {
    Query {
        agent: setting.config.agent.map(|agent| agent.word().to_owned()),
        within_ms: setting.config.since_ms,
        children: setting.children,
        consumer: Some(setting.config.consumer.clone()),
        open: None,
    }
}

/// Runs a pass, or waits for the writer's; then opens the store to read.
pub fn up_to_date(setting: &Setting, patience: Patience) -> anyhow::Result<View> {
    let began_ms = setting.clock.awake_ms();
    let budget_ms = match patience {
        Patience::Wait => PATIENCE_MS,
        Patience::None => 0,
    };
    let first = lock::read(&setting.config.db);
    let mut asked = false;
    let (_keep, never) = mpsc::channel::<()>();
    loop {
        let left_ms = budget_ms - (setting.clock.awake_ms() - began_ms);
        let busy = Duration::from_millis(left_ms.clamp(500, PATIENCE_MS).cast_unsigned());
        match engine::try_open(setting, busy) {
            Ok(Some(mut engine)) => {
                if patience == Patience::None {
                    engine.set_no_epochs();
                }
                return written(setting, engine);
            }
            Ok(None) => {}
            Err(error) => return read_only(setting, error),
        }
        if !asked && patience == Patience::Wait {
            lock::ask(&setting.config.db);
            asked = true;
        }
        let holder = lock::read(&setting.config.db).unwrap_or_default();
        let passed =
            first.is_some_and(|first| first.pid == holder.pid && holder.passes > first.passes);
        if passed || left_ms <= 0 {
            return viewed(setting, holder);
        }
        let _ = never.recv_timeout(Duration::from_millis(LOOK_MS));
    }
}

/// As the writer.
fn written(setting: &Setting, mut engine: Engine) -> anyhow::Result<View> {
    if engine.new_consumer {
        commands::welcome(&setting.config.consumer);
    }
    let outcome = engine.pass();
    if let Err(error) = outcome {
        return read_only(setting, error);
    }
    let beside = engine.beside(&setting.host)?;
    for warning in &beside.mirror.warnings {
        complain(warning);
    }
    log::note(&format!("pass complete: {}", engine.stats().join(" ")));
    let view = View { stats: engine.stats(), beside, reader: Reader::open(&setting.config.db)? };
    Ok(view)
}

/// Waits for a log that was removed under a writer, which makes it good in a moment: to open the
/// database meanwhile would begin another one.
pub fn await_log(setting: &Setting) -> anyhow::Result<()> {
    let (db, clock) = (&setting.config.db, setting.clock);
    let until_ms = clock.awake_ms() + LOG_WAIT_MS;
    let (_keep, never) = mpsc::channel::<()>();
    while lock::lost_log(db) {
        if clock.awake_ms() >= until_ms {
            let pid = lock::read(db).unwrap_or_default().pid;
            anyhow::bail!(
                "the log of the database {} was removed while pid {pid} writes\n\
                 hint: end that process first; never delete the -wal file of a database in use",
                db.display()
            );
        }
        let _ = never.recv_timeout(Duration::from_millis(LOOK_MS));
    }
    Ok(())
}

/// Beside a process that writes.
fn viewed(setting: &Setting, holder: Holder) -> anyhow::Result<View> {
    let state = if is_stalled(holder) { "writer stalled" } else { "writer" };
    complain(&format!(
        "{state}, pid {}, holds {}; showing what it has written",
        holder.pid,
        setting.config.db.display()
    ));
    let reader = open_beside(setting)?;
    let beside = beside_of(setting, holder);
    Ok(View { reader, beside, stats: Vec::new() })
}

/// The store, for a process that does not write it. One that is given other windows refuses here too.
pub fn open_beside(setting: &Setting) -> anyhow::Result<Reader> {
    await_log(setting)?;
    let mut reader = Reader::open(&setting.config.db)?;
    let (live_ms, ended_ms) = setting.config.windows;
    windows_beside(&mut reader, Asked { live_ms, ended_ms })?;
    Ok(reader)
}

/// What a viewer knows of the writer.
pub fn beside_of(setting: &Setting, holder: Holder) -> Beside {
    Beside {
        host: setting.host.clone(),
        mirror: snapshot::Mirror {
            writer: false,
            writer_pid: Some(holder.pid),
            writer_stalled: is_stalled(holder),
            backlog_bytes: holder.backlog_bytes,
            complete: holder.passes > 0 && holder.backlog_bytes == 0,
            ..snapshot::Mirror::default()
        },
        as_of_ms: holder.as_of_ms,
        scope: serde_json::to_string(Proc::system().scope()).ok(),
        probed_ms: holder.as_of_ms,
    }
}

/// Whether a writer has not shown for too long that it lives.
pub fn is_stalled(holder: Holder) -> bool {
    Clock::default().now_ms() - holder.heartbeat_ms > STALLED_MS
}

/// Whether waiting may help: somebody holds the store, the disk is full or cannot be written.
pub fn is_passing(error: &anyhow::Error) -> bool {
    let unwritable = |cause: &io::Error| {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, StorageFull};
        matches!(cause.kind(), PermissionDenied | ReadOnlyFilesystem | StorageFull)
    };
    error.chain().any(|cause| match cause.downcast_ref() {
        Some(
            StoreError::Busy { .. }
            | StoreError::ReadOnly { .. }
            | StoreError::Full { .. }
            | StoreError::Disk { .. }
            | StoreError::Replaced { .. },
        ) => true,
        Some(_) => false,
        None => cause.downcast_ref().is_some_and(unwritable), // the lock file
    })
}

/// The store cannot be written now: what it holds is shown, if it can be read and is of our
/// version; else the error stands.
fn read_only(setting: &Setting, error: anyhow::Error) -> anyhow::Result<View> {
    if !is_passing(&error) {
        return Err(error);
    }
    let Ok(mut reader) = Reader::open(&setting.config.db) else { return Err(error) };
    // An empty list would say that there is nothing, where nothing could be read.
    let Ok(true) = reader.read(store::query::any_session) else { return Err(error) };
    complain(&format!("{error:#}; showing what it held before"));
    let holder = lock::read(&setting.config.db).unwrap_or_default();
    let beside = Beside {
        host: setting.host.clone(),
        mirror: snapshot::Mirror::default(),
        as_of_ms: holder.as_of_ms,
        ..Beside::default()
    };
    Ok(View { reader, beside, stats: Vec::new() })
}
