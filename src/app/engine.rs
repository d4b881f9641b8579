//! The writer: look, then judge. Every pass has the same order, at start and after a wake too: scan,
//! read, probe, reconcile.
//!
//! Whoever holds the writer lock drives it: `--once` runs whole passes, the TUI and `watch` take
//! bounded steps and answer in between.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use super::Setting;
use super::lock::WriterLock;
use super::watcher::Depth;
use crate::clock::Clock;
use crate::lifecycle::Windows;
use crate::lifecycle::windows::{Asked, windows_for};
use crate::mirror::{Backlog, Glance, Limits, Mirror, Scanned};
use crate::reconcile::{self, ClockCheck, Look, Options, Pass, Reading};
use crate::report::Looked;
use crate::snapshot;
use crate::store::{self, Store, files};

/// Damaged files named in the warnings.
const DAMAGED_SHOWN: i64 = 5;

/// The writing side of a process.
#[derive(Debug)]
pub struct Engine {
    /// The store.
    pub store: Store,
    mirror: Mirror,
    lock: WriterLock,
    windows: Windows,
    clock: Clock,
    clocks: ClockCheck,
    scanned: Scanned,
    hold_silence: bool,
    clock_warning: Option<String>,
}

impl Engine {
    /// Opens the store for writing. `busy` is how long a write waits for other programs.
    pub fn open(setting: &Setting, lock: WriterLock, busy: Duration) -> anyhow::Result<Self> {
        let config = &setting.config;
        let mut store = Store::open(&config.db, busy, setting.clock.now_ms())?;
        let (live_ms, ended_ms) = config.windows;
        let windows = windows_for(&mut store, Asked { live_ms, ended_ms })?;
        let mirror = Mirror::new(&mut store, setting.host.clone(), config.roots.clone())?
            .with_limits(config.step_bytes.map_or_else(Limits::default, Limits::with_step_bytes));
        Ok(Self {
            store,
            mirror,
            lock,
            windows,
            clock: setting.clock,
            clocks: ClockCheck::default(),
            scanned: Scanned::default(),
            hold_silence: false,
            clock_warning: None,
        })
    }

    /// Looks at every root, and compares the clocks. Returns the files that have changed.
    pub fn scan(&mut self) -> store::Result<Vec<PathBuf>> {
        let clock = self.clock;
        let reading = Reading {
            wall_ms: clock.now_ms(),
            boot_ms: clock.boot_ms(),
            awake_ms: clock.awake_ms(),
        };
        let look = self.clocks.observe(reading, self.windows);
        self.hold_silence = look.hold_silence;
        self.clock_warning = look.warning.map(|warning| warning.phrase());
        self.scanned = self.mirror.scan(&mut self.store, clock.now_ms())?;
        self.beat();
        Ok(self.mirror.queued().map(Path::to_owned).collect())
    }

    /// Reads a bounded part; false when everything has been read.
    pub fn step(&mut self) -> store::Result<bool> {
        let more = self.mirror.step(&mut self.store, self.clock.now_ms())?;
        self.beat();
        Ok(more)
    }

    /// Decides on what is due, of the sessions whose files have been read.
    pub fn reconcile(&mut self) -> store::Result<Pass> {
        let look = Look {
            unobserved: self.mirror.unobserved(&mut self.store)?,
            hold_silence: self.hold_silence,
            ..Look::default()
        };
        let now_ms = self.clock.now_ms();
        reconcile::tick(&mut self.store, &look, self.windows, now_ms, Options::default())
    }

    /// Looks at these files alone.
    pub fn look_at(&mut self, paths: &[PathBuf]) -> Glance {
        self.mirror.look_at(paths)
    }

    /// Files changed at or after `since_ms`, newest first, at most `files_max`.
    pub fn hot_files(&self, since_ms: i64, files_max: usize) -> Vec<PathBuf> {
        self.mirror.hot_files(since_ms, files_max)
    }

    /// Folders whose changes announce new transcripts.
    pub fn watch_folders(&self) -> Vec<(PathBuf, Depth)> {
        self.mirror
            .watch_folders()
            .map(|(path, tree)| (path, if tree { Depth::Tree } else { Depth::Folder }))
            .collect()
    }

    /// When time alone makes the next session due, ms.
    pub fn next_deadline(&mut self) -> store::Result<Option<i64>> {
        reconcile::next_deadline(&mut self.store)
    }

    /// Deletes some rows of dead generations; false when there are none.
    pub fn tidy(&mut self) -> store::Result<bool> {
        self.mirror.tidy(&mut self.store)
    }

    /// One whole pass.
    pub fn pass(&mut self) -> anyhow::Result<Pass> {
        self.scan()?;
        while self.step()? {}
        let pass = self.reconcile()?;
        self.finish_pass();
        while self.tidy()? {}
        Ok(pass)
    }

    /// Says to viewers that a pass is complete.
    pub fn finish_pass(&mut self) {
        self.lock.holder.passes += 1;
        self.lock.holder.as_of_ms = Some(self.clock.now_ms());
        self.beat();
    }

    /// Shows viewers that we live. A full disk must not end a pass, so a failure is let go: to
    /// viewers the writer then looks stalled, which is what it is.
    pub fn beat(&mut self) {
        self.lock.holder.backlog_bytes = self.mirror.backlog().bytes;
        let _ = self.lock.beat(Clock::default().now_ms());
    }

    /// What is still to be read.
    pub fn backlog(&self) -> Backlog {
        self.mirror.backlog()
    }

    /// What the snapshot cannot know from the store.
    pub fn beside(&mut self, host: &str) -> store::Result<snapshot::Beside> {
        let warnings = self.warnings()?;
        let backlog = self.mirror.backlog();
        Ok(snapshot::Beside {
            host: host.to_owned(),
            mirror: snapshot::Mirror {
                writer: true,
                backlog_bytes: backlog.bytes,
                complete: backlog.files == 0 && self.mirror.blind().next().is_none(),
                warnings,
                ..snapshot::Mirror::default()
            },
            as_of_ms: self.lock.holder.as_of_ms,
        })
    }

    /// Each a sentence that says what is wrong and where.
    fn warnings(&mut self) -> store::Result<Vec<String>> {
        let mut warnings = self.scanned.warnings.clone();
        warnings.extend(self.clock_warning.clone());
        let blind = self.mirror.blind().take(DAMAGED_SHOWN.cast_unsigned() as usize);
        for (path, why) in blind {
            warnings.push(format!("cannot read {}: {why}", path.display()));
        }
        for (path, parts) in self.store.read(|tx| files::damaged(tx, DAMAGED_SHOWN))? {
            let path = String::from_utf8_lossy(&path).into_owned();
            warnings.push(format!("{path}: {parts} damaged compressed part(s) passed over"));
        }
        Ok(warnings)
    }

    /// Where transcripts were looked for.
    pub fn looked(&self) -> Vec<Looked> {
        super::once::looked(self.mirror.roots())
    }

    /// Work counters, `name=value` each.
    pub fn stats(&self) -> Vec<String> {
        let work = self.mirror.work();
        [
            ("scans", work.scans),
            ("files", work.files),
            ("files_opened", work.files_opened),
            ("bytes_parsed", work.bytes_parsed),
            ("lines_parsed", work.lines_parsed),
            ("message_rows", work.message_rows),
            ("transactions", work.transactions),
            ("batches_dropped", work.batches_dropped),
            ("rows_written", self.store.rows_written()),
            ("peak_kb", peak_kb()),
        ]
        .map(|(name, value)| format!("{name}={value}"))
        .into()
    }

    /// The store's windows.
    pub fn windows(&self) -> Windows {
        self.windows
    }
}

/// The most memory this process has held, KiB; 0 where the system does not say.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Opens the engine if the lock is free.
pub fn try_open(setting: &Setting, busy: Duration) -> anyhow::Result<Option<Engine>> {
    store::prepare_folder(&setting.config.db)?;
    let lock = super::lock::try_take(&setting.config.db, Clock::default().now_ms()).with_context(
        || {
            let path = super::lock::path_for(&setting.config.db);
            format!("cannot use the lock file {}", path.display())
        },
    )?;
    lock.map(|lock| Engine::open(setting, lock, busy)).transpose()
}
