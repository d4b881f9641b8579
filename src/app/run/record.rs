//! The row of a run, written beside the command and never in its way.
//!
//! Each write is a short transaction of its own and may fail; the next one then brings what it
//! missed, so that a database that was locked for a while still gets the whole run. What went wrong
//! is told once, and the command never waits long for any of it.

use std::sync::mpsc;
use std::time::Duration;

use super::child::Looking;
use super::{Asked, arguments};
use crate::app::{Setting, complain, engine, link, lock};
use crate::lifecycle::run::{self, Cause, Ended};
use crate::liveness::proc::{Proc, ProcessId, Seen};
use crate::source::Agent;
use crate::store::runs::links::Among;
use crate::store::runs::{self, NewRun};
use crate::store::{self, Store, StoreError, Tx};
use crate::text;

/// How long a write may wait for other programs while the command runs …
const BUSY: Duration = Duration::from_millis(250);
/// … and when it has ended.
const BUSY_AT_END: Duration = Duration::from_secs(2);
/// How long reading what the command wrote last may take, or another writer's reading of it, ms.
const LAST_LOOK_MS: i64 = 1_500;
/// How often that one is looked at, ms.
const LOOK_MS: u64 = 25;

/// A run being recorded.
#[derive(Debug)]
pub(super) struct Record<'a> {
    setting: &'a Setting,
    agent: Option<Agent>,
    name: String,
    argv: String,
    place: String,
    wrapper: ProcessId,
    started_ms: i64,
    /// The child, once it runs, and since when.
    child: Option<(u32, Option<u64>, i64)>,
    /// The row, once it is there.
    id: Option<i64>,
    /// The row says that the child runs.
    runs: bool,
    linked: bool,
    told: bool,
}

impl<'a> Record<'a> {
    /// A run that nothing is known of but what was typed.
    pub(super) fn new(setting: &'a Setting, asked: &Asked, agent: Option<Agent>) -> Self {
        let proc = Proc::system();
        let pid = std::process::id();
        let start_ticks = match proc.look(pid, None) {
            Seen::Alive(seen) => seen.id.start_ticks,
            Seen::Exited(_) | Seen::Missing | Seen::Unknown(_) => None,
        };
        let name = asked.name.clone().unwrap_or_else(|| {
            let program = asked.command.first().cloned().unwrap_or_default();
            let program = std::path::PathBuf::from(program);
            let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
            format!("{}-{pid}", text::line_up_to(&program, 32))
        });
        Self {
            setting,
            agent,
            name,
            argv: arguments::kept(&asked.command),
            place: link::place_here(&proc),
            wrapper: ProcessId { pid, start_ticks },
            started_ms: setting.clock.now_ms(),
            child: None,
            id: None,
            runs: false,
            linked: false,
            told: false,
        }
    }

    /// The command is about to be started.
    pub(super) fn begin(&mut self) {
        self.keep(BUSY, |_, _, _| Ok(()));
    }

    /// It runs.
    pub(super) fn running(&mut self, pid: u32, start: Option<u64>) {
        self.child = Some((pid, start, self.setting.clock.now_ms()));
        self.keep(BUSY, |_, _, _| Ok(()));
    }

    /// It could not be started.
    pub(super) fn never_started(&mut self, code: i32, why: &str) {
        self.keep(BUSY_AT_END, |tx, id, now_ms| {
            run::never_started(tx, id, code, why, now_ms).map(|_| ())
        });
    }

    /// Looks for the session it has opened, by its processes.
    pub(super) fn look(&mut self) -> Looking {
        if self.linked {
            return Looking::Over;
        }
        let roots = self.setting.config.roots.clone();
        let mut found = false;
        self.keep(BUSY, |tx, id, _| {
            let Some(row) = runs::load(tx, id)? else { return Ok(()) };
            found = row.session.is_some();
            if !found && let Some(link) = link::by_process(tx, &row, &roots, &Proc::system())? {
                found = true;
                runs::link(tx, id, &link.agent, &link.native_id)?;
            }
            Ok(())
        });
        self.linked = found;
        if found { Looking::Over } else { Looking::On }
    }

    /// It has ended. What it wrote last is read first, if that is soon done.
    pub(super) fn ended(&mut self, ended: Ended, cause: Cause) {
        let read = (self.agent.is_some() || self.linked) && self.last_look(ended, cause);
        let host = self.setting.host.clone();
        self.keep(BUSY_AT_END, |tx, id, now_ms| {
            if runs::load(tx, id)?.is_some_and(|row| row.session.is_none()) {
                let open = link::open(tx, &host)?;
                let read_ms = read.then_some(i64::MAX);
                let links = link::by_place(tx, &host, &open, Among::All, now_ms, read_ms)?;
                if let Some(own) = links.iter().find(|link| link.run == id) {
                    runs::link(tx, id, &own.agent, &own.native_id)?;
                }
            }
            run::end(tx, id, ended, cause, now_ms).map(|_| ())
        });
    }

    /// A short reading of what was written last, or the next pass of whoever writes; whether all has
    /// been read. It is no pass: it sets no root's epoch, and the newest files come first.
    fn last_look(&self, ended: Ended, cause: Cause) -> bool {
        let clock = self.setting.clock;
        let db = &self.setting.config.db;
        let until_ms = clock.awake_ms() + LAST_LOOK_MS;
        let before = lock::read(db).unwrap_or_default();
        let (_keep, never) = mpsc::channel::<()>();
        loop {
            match engine::try_open(self.setting, BUSY) {
                // What could not be read in time is left to the next pass.
                Ok(Some(mut engine)) => {
                    engine.set_no_epochs();
                    return engine.catch_up(until_ms).unwrap_or(false);
                }
                // A good end depends on what was said last only where a signal came before it.
                Ok(None) if ended != Ended::Exit(0) || cause != Cause::Itself => {}
                Ok(None) | Err(_) => return false,
            }
            // The pass of another may have begun before the end, and have read less than all.
            let holder = lock::read(db).unwrap_or_default();
            let passed = holder.pid == before.pid && holder.passes > before.passes;
            if passed || clock.awake_ms() >= until_ms {
                return false;
            }
            let _ = never.recv_timeout(Duration::from_millis(LOOK_MS));
        }
    }

    /// Writes what the row does not say yet, and more.
    fn keep(&mut self, busy: Duration, more: impl FnOnce(&Tx<'_>, i64, i64) -> store::Result<()>) {
        let now_ms = self.setting.clock.now_ms();
        let written = Store::open(&self.setting.config.db, busy, now_ms).and_then(|mut store| {
            store.write(|tx| {
                let (id, runs) = self.catch_up(tx)?;
                more(tx, id, now_ms)?;
                Ok((id, runs))
            })
        });
        match written {
            Ok((id, runs)) => (self.id, self.runs) = (Some(id), runs),
            Err(error) => self.tell(&error),
        }
    }

    fn catch_up(&self, tx: &Tx<'_>) -> store::Result<(i64, bool)> {
        let id = match self.id {
            Some(id) => id,
            None => self.insert(tx)?,
        };
        match self.child {
            Some((pid, start, at_ms)) if !self.runs => {
                let start = start.map(|ticks| ticks.to_string());
                run::start(tx, id, i64::from(pid), start.as_deref(), at_ms)?;
                Ok((id, true))
            }
            Some(_) | None => Ok((id, self.runs)),
        }
    }

    fn insert(&self, tx: &Tx<'_>) -> store::Result<i64> {
        let name = runs::free_name(tx, &self.name)?;
        let start = self.wrapper.start_ticks.map(|ticks| ticks.to_string());
        let id = runs::insert(
            tx,
            &NewRun {
                name: &name,
                host: &self.setting.host,
                agent: self.agent.map(Agent::word),
                argv: &self.argv,
                scope: &self.place,
                wrapper_pid: Some(i64::from(self.wrapper.pid)),
                wrapper_start: start.as_deref(),
                started_ms: self.started_ms,
            },
        )?;
        run::admit(tx, id, self.started_ms)?;
        Ok(id)
    }

    fn tell(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.told, true) {
            complain(&format!("the run is not recorded: {error}; the command goes on"));
        }
    }
}
