//! The mirror: what is new in which file, read in bounded steps into the store.
//!
//! [`Mirror::scan`] looks at every root and plans; each [`Mirror::step`] reads a bounded part and
//! commits it with its cursor in one transaction, newest files first. It knows nothing of a status
//! and nothing of a screen. Between two steps nothing is lost by a kill: what the store holds is all
//! there is to remember.

pub mod commit;
pub mod discover;
pub mod frames;
mod known;
pub mod place;
pub mod plan;
pub mod pointer;
pub mod read;
mod reading;
mod settle;
pub mod split;
mod unobserved;
mod watching;
pub mod window;

pub use watching::{Extent, Glance};

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::source::{Agent, State};
use crate::store::{self, Store, files};
use commit::Batch;
use discover::{Found, Root, RootState, Scan};
use known::{Known, load_known};
use reading::{Origin, Reading, Start};

/// Rows of dead generations deleted in one transaction.
const DEAD_ROWS_MAX: i64 = 20_000;

/// How much one step takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one read.
    pub chunk_bytes: usize,
    /// A step commits at about this many bytes read …
    pub step_bytes: usize,
    /// … or this many records …
    pub step_records: usize,
    /// … or this many files.
    pub step_files: usize,
    /// A file gives way to the next one after this many bytes in a row.
    pub turn_bytes: u64,
}

impl Limits {
    /// Those of the program, but with steps (and reads) of about so many bytes.
    #[must_use]
    pub fn with_step_bytes(bytes: usize) -> Self {
        let limits = Self::default();
        let chunk_bytes = limits.chunk_bytes.min(bytes).max(1);
        Self { chunk_bytes, step_bytes: bytes.max(1), ..limits }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            chunk_bytes: read::CHUNK_BYTES,
            step_bytes: 4 << 20,
            step_records: 8_000,
            step_files: 256,
            turn_bytes: 32 << 20,
        }
    }
}

/// Work done, for `--stats` and for tests that assert work instead of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Walks over the roots.
    pub scans: u64,
    /// Files seen by the last walk.
    pub files: u64,
    /// Files opened.
    pub files_opened: u64,
    /// Decoded bytes parsed.
    pub bytes_parsed: u64,
    /// Physical lines parsed.
    pub lines_parsed: u64,
    /// Message rows inserted.
    pub message_rows: u64,
    /// Transactions committed.
    pub transactions: u64,
    /// Batches dropped because another reader was faster.
    pub batches_dropped: u64,
}

/// What is still to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Files.
    pub files: u64,
    /// Bytes of them on disk, at most.
    pub bytes: u64,
}

/// The mirror's memory between steps; all of it can be made again from the store.
#[derive(Debug)]
pub struct Mirror {
    host: String,
    roots: Vec<Root>,
    /// Id of each root that has had a pass, and its epoch if it has one, ms.
    root_ids: Vec<Option<(i64, Option<i64>)>>,
    sets_epochs: bool,
    scan_ms: i64,
    known: HashMap<PathBuf, Known>,
    /// A write failed, and what the store holds has not been read since.
    known_stale: bool,
    /// Files of the last scan, so that a hint can be followed without another one.
    found: HashMap<PathBuf, Found>,
    queue: VecDeque<Found>,
    reading: Option<Reading>,
    /// Files that could not be read, or that a scan could not see: no silence may be inferred.
    blind: HashMap<PathBuf, String>,
    root_states: Vec<RootState>,
    /// How far the unfinished last line of a file has been searched for its end.
    searched: HashMap<PathBuf, (u64, u64)>,
    limits: Limits,
    work: Work,
}

/// What a scan changed at once, and what it left to be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scanned {
    /// Roots that are not there.
    pub missing_roots: Vec<PathBuf>,
    /// What is to be read.
    pub backlog: Backlog,
    /// Files that have grown, were replaced or are new since they were last looked at. Much else may
    /// have something to be read: what was left over, what cannot be read, what was only touched.
    pub grown: Vec<PathBuf>,
}

impl Mirror {
    /// Remembers from the store what has been read before.
    pub fn new(store: &mut Store, host: String, roots: Vec<Root>) -> store::Result<Self> {
        let known = load_known(store, &host)?;
        Ok(Self {
            host,
            root_ids: vec![None; roots.len()],
            sets_epochs: true,
            scan_ms: 0,
            roots,
            known,
            known_stale: false,
            found: HashMap::new(),
            queue: VecDeque::new(),
            reading: None,
            blind: HashMap::new(),
            root_states: Vec::new(),
            searched: HashMap::new(),
            limits: Limits::default(),
            work: Work::default(),
        })
    }

    /// The same with other limits: for tests, which want small steps.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Leaves new roots without an epoch: for a pass that only answers a question, after which nobody
    /// watches.
    pub fn set_no_epochs(&mut self) {
        self.sets_epochs = false;
    }

    /// Work done so far.
    pub fn work(&self) -> Work {
        self.work
    }

    /// The roots and their state at the last scan.
    pub fn roots(&self) -> impl Iterator<Item = (&Root, RootState)> {
        let states = self.root_states.iter().copied().chain(std::iter::repeat(RootState::Missing));
        self.roots.iter().zip(states)
    }

    /// What is still to be read.
    pub fn backlog(&self) -> Backlog {
        let reading = self.reading.iter().map(|reading| &reading.found);
        let mut backlog = Backlog::default();
        for found in self.queue.iter().chain(reading) {
            let done = self.known.get(&found.path).map_or(0, Known::done_bytes);
            backlog.files += 1;
            backlog.bytes += u64::try_from(found.stat.size).unwrap_or(0).saturating_sub(done);
        }
        backlog
    }

    /// Looks at every root: notes what is gone or moved, and queues what is to be read.
    pub fn scan(&mut self, store: &mut Store, now_ms: i64) -> store::Result<Scanned> {
        self.reading = None;
        self.queue.clear();
        self.trust(store)?;
        let mut scan = discover::scan(&self.roots);
        self.work.scans += 1;
        self.scan_ms = now_ms;
        self.work.files = scan.files.len() as u64;
        self.root_states.clone_from(&scan.roots);
        self.name_roots(store, &scan, now_ms)?;
        self.blind.clear();
        let settled = self.settle_absent(store, &scan, now_ms);
        self.known_stale |= settled.is_err();
        settled?;
        // Of what cannot be seen nothing is known, not even whose it is.
        self.blind.extend(std::mem::take(&mut scan.unreadable));
        let files = std::mem::take(&mut scan.files);
        self.queue = files.iter().filter(|found| self.is_news(found)).cloned().collect();
        let grown = self.queue.iter().filter(|found| self.has_grown(found));
        let grown = grown.map(|found| found.path.clone()).collect();
        self.found = files.into_iter().map(|found| (found.path.clone(), found)).collect();
        let mut scanned = Scanned { backlog: self.backlog(), grown, ..Scanned::default() };
        for (root, state) in self.roots.iter().zip(&scan.roots) {
            if *state == RootState::Missing {
                scanned.missing_roots.push(root.path.clone());
            }
        }
        Ok(scanned)
    }

    /// Gives each walked root its id, and at its first watching pass its epoch, before anything is
    /// read.
    fn name_roots(&mut self, store: &mut Store, scan: &Scan, now_ms: i64) -> store::Result<()> {
        for (index, root) in self.roots.iter().enumerate() {
            let present = scan.roots.get(index) == Some(&RootState::Present);
            let Some(slot) = self.root_ids.get_mut(index).filter(|slot| slot.is_none() && present)
            else {
                continue;
            };
            let (host, agent) = (&self.host, root.agent.word());
            let path = root.path.as_os_str().as_bytes();
            let known = store.read(|tx| files::root(tx, host, agent, path))?;
            let epoch_ms = self.sets_epochs.then_some(now_ms);
            *slot = Some(match known {
                Some(root) if root.1.is_some() || epoch_ms.is_none() => root,
                _ => {
                    let add = |tx: &store::Tx<'_>| files::add_root(tx, host, agent, path, epoch_ms);
                    (store.write(add)?, epoch_ms)
                }
            });
        }
        Ok(())
    }

    /// After a failed write: what happened of it is in the store alone.
    fn trust(&mut self, store: &mut Store) -> store::Result<()> {
        if self.known_stale {
            self.known = load_known(store, &self.host)?;
            self.known_stale = false;
        }
        Ok(())
    }

    /// Reads and commits the next bounded part; false when nothing is left to read.
    pub fn step(&mut self, store: &mut Store, now_ms: i64) -> store::Result<bool> {
        let outcome = self.read_and_commit(store, now_ms);
        if outcome.is_err() {
            // It may have happened or not: believe the store, not our memory. What was taken from
            // the queue is lost, so until the next scan nothing may be concluded from silence.
            self.known_stale = true;
            self.reading = None;
            self.queue.clear();
            let unread = || "not read, since the store could not be written".to_owned();
            self.blind.extend(self.found.keys().map(|path| (path.clone(), unread())));
        }
        outcome
    }

    fn read_and_commit(&mut self, store: &mut Store, now_ms: i64) -> store::Result<bool> {
        let limits = self.limits;
        let mut batches: Vec<(Batch, Found, bool)> = Vec::new();
        let (mut bytes, mut records) = (0, 0);
        while bytes < limits.step_bytes
            && records < limits.step_records
            && batches.len() < limits.step_files
        {
            let Some(mut reading) = self.next_reading(store)? else { break };
            let found = reading.found.clone();
            let (root_id, epoch_ms) =
                self.root_ids.get(found.root).copied().flatten().unwrap_or_default();
            // What was there before the root's first pass did not appear after it, although it may
            // be read only now.
            let old = epoch_ms.filter(|epoch| found.stat.mtime_ms <= *epoch);
            let first_seen_ms = old.unwrap_or(self.scan_ms);
            match reading.batch(Origin { root_id, first_seen_ms }, limits, &mut self.work) {
                Ok((batch, read, end)) => {
                    bytes += read;
                    records += batch.parts.iter().map(|part| part.records.len()).sum::<usize>();
                    batches.push((batch, found, end));
                    if !end {
                        self.reading = Some(reading);
                        break; // the file's next batch continues what this one commits
                    }
                    if let Some(searched) = reading.unfinished() {
                        self.searched.insert(reading.found.path, searched);
                    }
                }
                Err(error) => {
                    self.blind.insert(found.path, read::words(&error));
                }
            }
        }
        if !batches.is_empty() {
            self.commit(store, batches, now_ms)?;
        }
        Ok(self.reading.is_some() || !self.queue.is_empty())
    }

    fn commit(
        &mut self,
        store: &mut Store,
        batches: Vec<(Batch, Found, bool)>,
        now_ms: i64,
    ) -> store::Result<()> {
        let host = self.host.clone();
        let (generations, rows) = store.write(|tx| {
            let mut sessions = BTreeSet::new();
            let mut generations = Vec::with_capacity(batches.len());
            let mut rows = 0;
            for (batch, _, _) in &batches {
                let changed = commit::write(tx, &host, batch, now_ms)?;
                generations.push(changed.as_ref().map(|changed| changed.generation));
                let Some(changed) = changed else { continue };
                rows += changed.rows;
                if changed.reread {
                    // What is news in this step is merged apart from what is none.
                    commit::merge(tx, &std::mem::take(&mut sessions))?;
                    commit::merge_reread(tx, &changed.sessions)?;
                } else {
                    sessions.extend(changed.sessions);
                }
            }
            commit::merge(tx, &sessions)?;
            Ok((generations, rows))
        })?;
        self.work.transactions += 1;
        self.work.message_rows += rows;
        for ((batch, found, end), generation) in batches.into_iter().zip(generations) {
            let Some(generation) = generation else {
                self.work.batches_dropped += 1;
                self.again(store, found)?;
                continue;
            };
            self.remember_read(batch, found, generation);
            if let Some(reading) = self.reading.as_mut().filter(|_| !end) {
                reading.goes_on(generation);
            }
        }
        Ok(())
    }

    /// Another writer was faster: take its cursor, and read the file again from there.
    fn again(&mut self, store: &mut Store, mut found: Found) -> store::Result<()> {
        if self.reading.as_ref().is_some_and(|reading| reading.found.path == found.path) {
            self.reading = None;
        }
        self.searched.remove(&found.path);
        match known::load_one(store, &self.host, &found.path)? {
            Some(known) => self.known.insert(found.path.clone(), known),
            None => self.known.remove(&found.path),
        };
        if let Ok(meta) = fs::metadata(&found.path) {
            found.stat = discover::stat(&meta);
        }
        if self.is_news(&found) {
            self.queue.push_back(found);
        }
        Ok(())
    }

    /// The file being read, or the next one of the queue that has something to read.
    fn next_reading(&mut self, store: &mut Store) -> store::Result<Option<Reading>> {
        if let Some(reading) = self.reading.take() {
            let turn_over = reading.turn_bytes >= self.limits.turn_bytes && reading.has_advanced();
            if !turn_over || self.queue.is_empty() {
                return Ok(Some(reading));
            }
            self.queue.push_back(reading.found);
        }
        while let Some(found) = self.queue.pop_front() {
            if self.root_ids.get(found.root).copied().flatten().is_none() {
                continue;
            }
            let known = self.known.get(&found.path);
            let searched = self.searched.get(&found.path).copied();
            let start = match Start::look(&found, known, searched) {
                Ok(start) => start,
                Err(error) => {
                    // Even of one that vanished since the scan: only a scan can see an absence.
                    self.blind.insert(found.path, read::words(&error));
                    continue;
                }
            };
            self.work.files_opened += 1;
            if let Start::Unfinished { position, searched } = start {
                self.searched.insert(found.path, (position, searched));
                continue;
            }
            self.searched.remove(&found.path);
            let path = found.path.clone();
            match self.begin(store, found, start)? {
                Ok(Some(reading)) => return Ok(Some(reading)),
                Ok(None) => {}
                Err(error) => {
                    self.blind.insert(path, read::words(&error));
                }
            }
        }
        Ok(None)
    }

    /// Takes up a file with the adapter as it stood; one whose state cannot be read (another version
    /// wrote it) begins anew.
    fn begin(
        &self,
        store: &mut Store,
        found: Found,
        start: Start,
    ) -> store::Result<io::Result<Option<Reading>>> {
        let known = self.known.get(&found.path);
        let stored = match start.generation() {
            Some(id) => store.read(|tx| files::state(tx, id))?,
            None => None,
        };
        let stored = stored.and_then(|json| serde_json::from_str(&json).ok());
        let start = match (start, known) {
            (Start::At { generation: Some(_), opened, .. }, Some(known)) if stored.is_none() => {
                match Start::again(opened, known, None) {
                    Ok(start) => start,
                    Err(error) => return Ok(Err(error)),
                }
            }
            (start, _) => start,
        };
        let state = stored.unwrap_or_else(|| State::new(found.agent, &found.hint));
        Ok(Reading::new(found, start, state, known, self.limits))
    }

    /// Files that could not be read or seen since the last scan, each with what was wrong.
    pub fn blind(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.blind.iter().map(|(path, why)| (path.as_path(), why.as_str()))
    }

    /// Deletes some rows of dead generations; false when there are none left.
    pub fn tidy(&mut self, store: &mut Store) -> store::Result<bool> {
        if !store.read(files::any_dead)? {
            return Ok(false);
        }
        store.write(|tx| files::delete_dead(tx, DEAD_ROWS_MAX))?;
        self.work.transactions += 1;
        Ok(true)
    }
}
