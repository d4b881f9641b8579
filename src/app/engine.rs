//! The writer: look, then judge. Every pass has the same order, at start and after a wake too: scan,
//! read, probe, reconcile.
//!
//! Whoever holds the writer lock drives it: `--once` runs whole passes, the TUI and `watch` take
//! bounded steps and answer in between.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use super::Setting;
use super::clocks::Clocks;
use super::lock::WriterLock;
use super::log;
use super::probe::{Probe, Probed, Reach};
use super::runs::Runs;
use super::watcher::Depth;
use crate::clock::Clock;
use crate::delivery::{self, on_terminal};
use crate::lifecycle::Windows;
use crate::lifecycle::windows::{Asked, windows_for};
use crate::mirror::discover::RootState;
use crate::mirror::{Backlog, Extent, Glance, Limits, Mirror};
use crate::reconcile::{self, Look, Options, Pass};
use crate::snapshot;
use crate::store::{self, Store, StoreError, files, findings};

/// Processes are looked at again this often while there is anything to see, ms …
const PROBE_MS: i64 = 2_000;
/// … and after a hint at the earliest this long after the last look, ms.
const PROBE_HINT_MS: i64 = 200;
/// How long a writer goes on at most after its lock file was deleted.
const YIELD: Duration = Duration::from_millis(1_200);
/// Damaged files named in the warnings.
const DAMAGED_SHOWN: u32 = 5;

/// The writing side of a process.
#[derive(Debug)]
pub struct Engine {
    /// The store.
    pub store: Store,
    mirror: Mirror,
    runs: Runs,
    lock: WriterLock,
    windows: Windows,
    clock: Clock,
    clocks: Clocks,
    /// Sessions that wait until the clock is trusted.
    ahead: u64,
    probe: Probe,
    /// What the last look at processes came to.
    probed: Probed,
    /// When it was, ms; `None`: one is due.
    probed_ms: Option<i64>,
    /// When the next look is due, by the clock that runs while awake, ms.
    probe_at: i64,
    /// When the last scan began, ms.
    scanned_ms: Option<i64>,
    /// The next look is the first one since a scan.
    scanned_anew: bool,
    /// Observations were stored since it was last asked.
    news: bool,
    /// The moment of the last pass over the rows that are due, ms.
    judged_ms: i64,
    /// Rows whose moves the last pass had to undo.
    undone: Vec<i64>,
    /// Roots that were there at some look of this process.
    seen: HashSet<PathBuf>,
    /// The consumer of the configuration was not known before.
    pub new_consumer: bool,
}

impl Engine {
    /// Opens the store for writing. `busy` is how long a write waits for other programs.
    pub fn open(setting: &Setting, lock: WriterLock, busy: Duration) -> anyhow::Result<Self> {
        let config = &setting.config;
        let mut store = Store::open(&config.db, busy, setting.clock.now_ms())?;
        if config.on_terminal.is_some() {
            on_terminal::register(&mut store, setting.clock.now_ms())?;
        }
        let (live_ms, ended_ms) = config.windows;
        let windows = windows_for(&mut store, Asked { live_ms, ended_ms })?;
        let now_ms = setting.clock.now_ms();
        let new_consumer = delivery::introduce(&mut store, &config.consumer, now_ms)?;
        let mirror = Mirror::new(&mut store, setting.host.clone(), config.roots.clone())?
            .with_limits(config.step_bytes.map_or_else(Limits::default, Limits::with_step_bytes));
        let probe = Probe::new(&setting.host, &config.db, &config.roots);
        Ok(Self {
            store,
            mirror,
            runs: Runs::new(setting.host.clone(), config.roots.clone()),
            lock,
            windows,
            clock: setting.clock,
            clocks: Clocks::new(setting.clock),
            ahead: 0,
            probe,
            probed: Probed::default(),
            probed_ms: None,
            probe_at: 0,
            scanned_ms: None,
            scanned_anew: true,
            news: false,
            judged_ms: i64::MIN,
            undone: Vec::new(),
            seen: HashSet::new(),
            new_consumer,
        })
    }

    /// Before anything is written: we are still the only writer, of the files that lie there.
    pub fn guard(&mut self) -> store::Result<()> {
        if self.lock.is_lost() {
            return Err(StoreError::Replaced { path: self.lock.path().to_owned() });
        }
        self.store.check()
    }

    /// Looks at every root, and compares the clocks. Returns the files that have grown.
    pub fn scan(&mut self) -> store::Result<Vec<PathBuf>> {
        self.guard()?;
        let clock = self.clock;
        self.read_clocks()?;
        let now_ms = clock.now_ms();
        let scanned = self.mirror.scan(&mut self.store, now_ms)?;
        self.scanned_ms = Some(now_ms);
        self.clocks.compare_with_files(self.mirror.newest_change_ms(), self.windows);
        self.scanned_anew = true;
        self.probe_at = 0;
        self.beat();
        Ok(scanned.grown)
    }

    /// Compares the clocks, and takes in what has happened to them since.
    fn read_clocks(&mut self) -> store::Result<()> {
        if let Some(step) = self.clocks.read(&mut self.store, self.windows)? {
            let back = reconcile::take_step(&mut self.store, self.windows, step)?;
            self.mirror.shift_epochs(step.since_ms, step.old_ms(), step.by_ms);
            self.clocks.taken(step);
            log::note(&format!("the clock was set; {back} ends by silence taken back"));
            self.clocks.read(&mut self.store, self.windows)?;
        }
        Ok(())
    }

    /// Reads a bounded part; false when everything has been read.
    pub fn step(&mut self) -> store::Result<bool> {
        self.guard()?;
        let read = self.mirror.work().transactions;
        let more = self.mirror.step(&mut self.store, self.clock.now_ms())?;
        if self.mirror.work().transactions != read {
            // Whoever is judged on what was read is looked at first.
            self.probe_at = 0;
        }
        self.beat();
        Ok(more)
    }

    /// Looks at processes, if that is due, and decides on the sessions that are due and whose files
    /// have been read, and on runs.
    pub fn reconcile(&mut self) -> store::Result<Pass> {
        self.guard()?;
        self.read_clocks()?;
        let read_ms = if self.backlog().files == 0 { self.scanned_ms } else { None };
        self.runs.before(&mut self.store, self.clock, read_ms)?;
        let now_ms = self.clock.now_ms();
        if self.probe_at <= self.clock.awake_ms() {
            let reach = if self.scanned_anew { Reach::Far } else { Reach::Near };
            self.probed = self.probe.look(&mut self.store, reach, now_ms)?;
            self.news |= self.probed.changed;
            if self.probed.unlooked.is_empty() {
                self.probed_ms = Some(now_ms);
            }
            self.scanned_anew = false;
            self.probe_at = self.clock.awake_ms() + PROBE_MS;
        }
        let mut unobserved = self.mirror.unobserved(&mut self.store)?;
        unobserved.extend(&self.probed.unlooked);
        let mut unseen = self.mirror.unseen(&mut self.store)?;
        unseen.extend(&self.probed.unlooked);
        let look = Look {
            unobserved,
            unseen,
            hold_silence: self.clocks.hold_silence(),
            hold_ahead: self.clocks.hold_ahead(),
            processes: self.probed.processes.clone(),
        };
        let mut pass =
            reconcile::tick(&mut self.store, &look, self.windows, now_ms, Options::default())?;
        self.ahead = pass.ahead;
        let looked_ms = self.probed_ms.unwrap_or(i64::MIN);
        pass.runs = self.runs.after(&mut self.store, looked_ms, now_ms)?;
        self.judged_ms = now_ms;
        if !pass.moved.is_empty() {
            log::note(&format!("{} statuses changed", pass.moved.len()));
        }
        let undone: Vec<i64> = pass.undone.iter().map(|(id, _)| *id).collect();
        for (id, why) in pass.undone.iter().filter(|(id, _)| !self.undone.contains(id)) {
            log::note(&format!("session row {id} cannot be decided on, and stays due: {why}"));
        }
        self.undone = undone;
        Ok(pass)
    }

    /// When the next look at processes is due, by the clock that runs while awake, ms; `None` while
    /// there is nothing to see between two scans.
    pub fn next_probe_ms(&self) -> Option<i64> {
        self.probe.wants_looks().then_some(self.probe_at)
    }

    /// Takes these paths for hints that a process has changed; returns the others.
    pub fn take_hints(&mut self, mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
        let folders: Vec<PathBuf> = self.probe.hint_folders().collect();
        let before = paths.len();
        let is_hint = |path: &PathBuf| {
            folders.iter().any(|folder| path == folder || path.parent() == Some(folder.as_path()))
        };
        paths.retain(|path| !is_hint(path));
        if paths.len() < before {
            let earliest = self.probe_at - PROBE_MS + PROBE_HINT_MS;
            self.probe_at = self.probe_at.min(earliest.max(self.clock.awake_ms()));
        }
        paths
    }

    /// Whether observations were stored since this was last asked.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
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
            .map(|(path, extent)| match extent {
                Extent::Tree => (path, Depth::Tree),
                Extent::Folder => (path, Depth::Folder),
                Extent::File(name) => (path, Depth::File(name)),
            })
            .chain(self.probe.hint_folders().map(|path| (path, Depth::Folder)))
            .collect()
    }

    /// When time alone makes the next session due, ms.
    pub fn next_deadline(&mut self) -> store::Result<Option<i64>> {
        reconcile::next_deadline(&mut self.store, self.judged_ms)
    }

    /// Deletes some rows of dead generations; false when there are none.
    pub fn tidy(&mut self) -> store::Result<bool> {
        self.mirror.tidy(&mut self.store)
    }

    /// See [`Mirror::set_no_epochs`].
    pub fn set_no_epochs(&mut self) {
        self.mirror.set_no_epochs();
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

    /// Reads what has changed, until then at most, by the clock that runs while awake, ms; whether
    /// that was all. It looks at no process, and so it judges nobody.
    pub fn catch_up(&mut self, until_ms: i64) -> anyhow::Result<bool> {
        self.scan()?;
        let mut more = true;
        while more && self.clock.awake_ms() < until_ms {
            more = self.step()?;
        }
        Ok(!more)
    }

    /// Says to viewers that a pass is complete.
    pub fn finish_pass(&mut self) {
        self.lock.holder.passes += 1;
        // A pass that could not look is no look.
        if self.probed.unlooked.is_empty() {
            self.lock.holder.as_of_ms = Some(self.clock.now_ms());
        }
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
        findings::keep(&mut self.store, &warnings, self.clock.now_ms())?;
        let backlog = self.mirror.backlog();
        Ok(snapshot::Beside {
            host: host.to_owned(),
            mirror: snapshot::Mirror {
                writer: true,
                backlog_bytes: backlog.bytes,
                complete: backlog.files == 0
                    && self.ahead == 0
                    && self.mirror.blind().next().is_none(),
                warnings,
                roots: self.roots(),
                ..snapshot::Mirror::default()
            },
            as_of_ms: self.lock.holder.as_of_ms,
            scope: self.probe.scope().map(str::to_owned),
            probed_ms: self.probed_ms,
        })
    }

    /// Where transcripts are looked for, and what the last scan found there.
    fn roots(&mut self) -> Vec<snapshot::Root> {
        let mut roots = Vec::new();
        for (root, state) in self.mirror.roots() {
            let state = match state {
                RootState::Present => snapshot::RootState::Present,
                RootState::Missing if self.seen.contains(&root.path) => {
                    snapshot::RootState::Vanished
                }
                RootState::Missing => snapshot::RootState::Missing,
                RootState::Unreadable => snapshot::RootState::Unreadable,
            };
            if state == snapshot::RootState::Present {
                self.seen.insert(root.path.clone());
            }
            let path = root.path.display().to_string();
            roots.push(snapshot::Root { agent: root.agent.word(), path, state });
        }
        roots
    }

    /// Each a sentence that says what is wrong and where.
    fn warnings(&mut self) -> store::Result<Vec<String>> {
        let mut warnings: Vec<String> = self.clocks.warnings().collect();
        warnings.extend(self.probe.warnings());
        let missing = self.mirror.roots().filter(|(_, state)| *state == RootState::Missing);
        let gone: Vec<PathBuf> = missing
            .map(|(root, _)| root.path.clone())
            .filter(|path| self.seen.contains(path))
            .collect();
        for path in &gone {
            let path = path.display();
            warnings.push(format!("{path} is gone: its sessions keep their last status meanwhile"));
        }
        let below_gone = |path: &Path| gone.iter().any(|root| path.starts_with(root));
        // Of a folder that cannot be read nothing below it needs a word.
        let all: HashMap<&Path, &str> = self.mirror.blind().collect();
        let said = |path: &Path| path.ancestors().skip(1).any(|above| all.contains_key(above));
        let mut blind: Vec<(&Path, &str)> =
            self.mirror.blind().filter(|(path, _)| !below_gone(path) && !said(path)).collect();
        blind.sort_unstable();
        for (path, why) in blind.iter().take(DAMAGED_SHOWN as usize) {
            warnings.push(format!("cannot read {}: {why}", path.display()));
        }
        let more = blind.len().saturating_sub(DAMAGED_SHOWN as usize);
        if more > 0 {
            warnings.push(format!("cannot read {more} more files and folders"));
        }
        for (path, parts) in self.store.read(|tx| files::damaged(tx, i64::from(DAMAGED_SHOWN)))? {
            let path = String::from_utf8_lossy(&path).into_owned();
            warnings.push(format!("{path}: {parts} damaged compressed part(s) passed over"));
        }
        Ok(warnings)
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
            format!(
                "cannot use the lock file {} (move it away if it is not ours, see who owns the \
                 folder, or name another place with --db)",
                path.display()
            )
        },
    )?;
    let Some(lock) = lock else { return Ok(None) };
    if lock.is_new && store::has_log(&setting.config.db) {
        // The lock file may have been deleted under a writer: it sees so before its next step.
        let (_keep, never) = std::sync::mpsc::channel::<()>();
        let _ = never.recv_timeout(YIELD);
    }
    Engine::open(setting, lock, busy).map(Some)
}

#[cfg(test)]
mod tests;
