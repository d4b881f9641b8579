//! The mirror: what is new in which file, read in bounded steps into the store.
//!
//! [`Mirror::scan`] looks at every root and plans; each [`Mirror::step`] reads a bounded part and
//! commits it with its cursor in one transaction, newest files first. It knows nothing of a status
//! and nothing of a screen. Between two steps nothing is lost by a kill: what the store holds is all
//! there is to remember.

pub mod commit;
pub mod discover;
pub mod place;
pub mod plan;
pub mod pointer;
pub mod read;
mod reading;
mod settle;
pub mod split;
mod watching;

pub use watching::Glance;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::source::{Agent, Place, SessionKey, State};
use crate::store::{self, Store, files, ingest};
use commit::Batch;
use discover::{Found, Root, RootState, Scan};
use plan::{Cursor, Stat};
use reading::{Reading, Start};

/// A step commits at about this many bytes read …
const STEP_BYTES_MAX: usize = 4 << 20;
/// … or this many records.
const STEP_RECORDS_MAX: usize = 8_000;
/// … or this many files.
const STEP_FILES_MAX: usize = 256;
/// A file gives way to the next one after this many bytes in a row.
const TURN_BYTES_MAX: u64 = 32 << 20;
/// Rows of dead generations deleted in one transaction.
const DEAD_ROWS_MAX: i64 = 20_000;

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
    /// Id and epoch of each root that has had a pass.
    root_ids: Vec<Option<(i64, i64)>>,
    scan_ms: i64,
    known: HashMap<PathBuf, Known>,
    /// Files of the last scan, so that a hint can be followed without another one.
    found: HashMap<PathBuf, Found>,
    queue: VecDeque<Found>,
    reading: Option<Reading>,
    /// Files that could not be read, or that a scan could not see: no silence may be inferred.
    blind: HashMap<PathBuf, String>,
    root_states: Vec<RootState>,
    /// How far the unfinished last line of a file has been searched for its end.
    searched: HashMap<PathBuf, (u64, u64)>,
    work: Work,
}

#[derive(Debug, Clone)]
struct Known {
    generation: i64,
    stem: String,
    cursor: Cursor,
    gone: bool,
}

/// What a scan changed at once, and what it left to be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scanned {
    /// Roots that are not there.
    pub missing_roots: Vec<PathBuf>,
    /// What could not be read, each a sentence.
    pub warnings: Vec<String>,
    /// What is to be read.
    pub backlog: Backlog,
}

impl Mirror {
    /// Remembers from the store what has been read before.
    pub fn new(store: &mut Store, host: String, roots: Vec<Root>) -> store::Result<Self> {
        let known = load_known(store)?;
        Ok(Self {
            host,
            root_ids: vec![None; roots.len()],
            scan_ms: 0,
            roots,
            known,
            found: HashMap::new(),
            queue: VecDeque::new(),
            reading: None,
            blind: HashMap::new(),
            root_states: Vec::new(),
            searched: HashMap::new(),
            work: Work::default(),
        })
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
            let done = self.known.get(&found.path).map_or(0, |known| known.cursor.frame_at);
            backlog.files += 1;
            backlog.bytes += u64::try_from(found.stat.size).unwrap_or(0).saturating_sub(done);
        }
        backlog
    }

    /// Looks at every root: notes what is gone or moved, and queues what is to be read.
    pub fn scan(&mut self, store: &mut Store, now_ms: i64) -> store::Result<Scanned> {
        let mut scan = discover::scan(&self.roots);
        self.work.scans += 1;
        self.scan_ms = now_ms;
        self.work.files = scan.files.len() as u64;
        self.root_states.clone_from(&scan.roots);
        self.name_roots(store, &scan, now_ms)?;
        self.reading = None;
        self.blind.clear();
        self.settle_absent(store, &scan, now_ms)?;
        let files = std::mem::take(&mut scan.files);
        self.queue = files.iter().filter(|found| self.is_news(found)).cloned().collect();
        self.found = files.into_iter().map(|found| (found.path.clone(), found)).collect();
        let mut scanned = Scanned { backlog: self.backlog(), ..Scanned::default() };
        for (root, state) in self.roots.iter().zip(&scan.roots) {
            if *state == RootState::Missing {
                scanned.missing_roots.push(root.path.clone());
            }
        }
        for (path, kind) in &scan.unreadable {
            scanned.warnings.push(format!("cannot read {}: {kind}", path.display()));
        }
        Ok(scanned)
    }

    /// Gives each walked root its id, and at its first pass its epoch, before anything is read.
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
            *slot = Some(match known {
                Some(root) => root,
                None => (store.write(|tx| files::add_root(tx, host, agent, path, now_ms))?, now_ms),
            });
        }
        Ok(())
    }

    /// Reads and commits the next bounded part; false when nothing is left to read.
    pub fn step(&mut self, store: &mut Store, now_ms: i64) -> store::Result<bool> {
        let mut batches: Vec<(Batch, PathBuf, bool)> = Vec::new();
        let (mut bytes, mut records) = (0, 0);
        while bytes < STEP_BYTES_MAX && records < STEP_RECORDS_MAX && batches.len() < STEP_FILES_MAX
        {
            let Some(mut reading) = self.next_reading(store)? else { break };
            let path = reading.found.path.clone();
            let root = self.root_ids.get(reading.found.root).copied().flatten().unwrap_or_default();
            // What was there before the root's first pass did not appear after it, although it may
            // be read only now.
            let old = reading.found.stat.mtime_ms <= root.1;
            let first_seen_ms = if old { root.1 } else { self.scan_ms };
            match reading.batch(root.0, first_seen_ms, &mut self.work) {
                Ok((batch, read, end)) => {
                    bytes += read;
                    records += batch.records.len();
                    batches.push((batch, path, end));
                    if !end {
                        self.reading = Some(reading);
                        break; // the file's next batch continues what this one commits
                    }
                }
                Err(error) => {
                    self.blind.insert(path, error.kind().to_string());
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
        batches: Vec<(Batch, PathBuf, bool)>,
        now_ms: i64,
    ) -> store::Result<()> {
        let host = self.host.clone();
        let outcome = store.write(|tx| {
            let mut sessions = BTreeSet::new();
            let mut generations = Vec::with_capacity(batches.len());
            let mut rows = 0;
            for (batch, _, _) in &batches {
                let changed = commit::write(tx, &host, batch, now_ms)?;
                generations.push(changed.as_ref().map(|changed| changed.generation));
                if let Some(changed) = changed {
                    sessions.extend(changed.sessions);
                    rows += changed.rows;
                }
            }
            commit::merge(tx, &sessions)?;
            Ok((generations, rows))
        });
        let (generations, rows) = match outcome {
            Ok(done) => done,
            Err(error) => {
                // It may have happened or not: believe the store, not our memory.
                self.reading = None;
                self.queue.clear();
                self.known = load_known(store).unwrap_or_default();
                return Err(error);
            }
        };
        self.work.transactions += 1;
        self.work.message_rows += rows;
        for ((batch, path, end), generation) in batches.into_iter().zip(generations) {
            let Some(generation) = generation else {
                self.work.batches_dropped += 1;
                self.reading = None;
                self.reload(store, &path)?;
                continue;
            };
            let known = Known { generation, stem: batch.stem, cursor: batch.to, gone: false };
            self.known.insert(path, known);
            if let Some(reading) = self.reading.as_mut().filter(|_| !end) {
                reading.generation = Some(generation);
                reading.replaces = None;
            }
        }
        Ok(())
    }

    /// Another writer was faster: take its cursor and look at the file again at the next scan.
    fn reload(&mut self, store: &mut Store, path: &Path) -> store::Result<()> {
        let fresh = load_known(store)?.remove(path);
        match fresh {
            Some(known) => self.known.insert(path.to_owned(), known),
            None => self.known.remove(path),
        };
        Ok(())
    }

    /// The file being read, or the next one of the queue that has something to read.
    fn next_reading(&mut self, store: &mut Store) -> store::Result<Option<Reading>> {
        if let Some(mut reading) = self.reading.take() {
            if reading.turn_bytes < TURN_BYTES_MAX || self.queue.is_empty() {
                return Ok(Some(reading));
            }
            reading.turn_bytes = 0;
            self.queue.push_back(reading.found);
        }
        while let Some(found) = self.queue.pop_front() {
            let path = found.path.clone();
            if self.root_ids.get(found.root).copied().flatten().is_none() {
                continue;
            }
            let known = self.known.get(&path);
            let start = match Start::look(&found, known, self.searched.get(&path).copied()) {
                Ok(start) => start,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue, // gone since
                Err(error) => {
                    self.blind.insert(path, error.kind().to_string());
                    continue;
                }
            };
            self.work.files_opened += 1;
            match start {
                Start::Unfinished { position, searched } => {
                    self.searched.insert(path, (position, searched));
                }
                Start::At { opened, cursor, generation, replaces } => {
                    self.searched.remove(&path);
                    let state = stored_state(store, &found, generation)?;
                    match Reading::new(found, opened, &cursor, generation, replaces, state) {
                        Ok(reading) => return Ok(Some(reading)),
                        Err(error) => {
                            self.blind.insert(path, error.kind().to_string());
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    /// Sessions about which nothing may be concluded from silence: a file of theirs, or of a
    /// sub-agent below them, has not been read to its end, or cannot be seen.
    pub fn unobserved(&self, store: &mut Store) -> store::Result<HashSet<i64>> {
        let reading = self.reading.iter().map(|reading| &reading.found);
        let pending: Vec<&Found> = self.queue.iter().chain(reading).collect();
        if pending.is_empty() && self.blind.is_empty() {
            return Ok(HashSet::new());
        }
        let paths = pending.iter().map(|found| &found.path).chain(self.blind.keys());
        let generations: Vec<i64> =
            paths.filter_map(|path| self.known.get(path)).map(|known| known.generation).collect();
        let folders: Vec<SessionKey> = pending
            .iter()
            .filter(|found| found.hint.place == Place::SubAgent)
            .filter_map(|found| found.hint.folder.clone().map(SessionKey::top))
            .collect();
        let host = &self.host;
        store.read(|tx| {
            let mut blocked = HashSet::new();
            for generation in generations {
                blocked.extend(files::sessions_of(tx, generation)?);
            }
            for key in folders {
                blocked.extend(ingest::find_session(tx, host, Agent::Claude.word(), &key)?);
            }
            for session in blocked.clone() {
                blocked.extend(ingest::ancestors(tx, session)?);
            }
            Ok(blocked)
        })
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

/// The adapter's state where a generation stands, or before the first line.
fn stored_state(store: &mut Store, found: &Found, generation: Option<i64>) -> store::Result<State> {
    let stored = match generation {
        Some(id) => store.read(|tx| files::state(tx, id))?,
        None => None,
    };
    Ok(stored
        .and_then(|json| serde_json::from_str(&json).ok())
        .unwrap_or_else(|| State::new(found.agent, &found.hint)))
}

fn load_known(store: &mut Store) -> store::Result<HashMap<PathBuf, Known>> {
    let rows = store.read(files::live_files)?;
    Ok(rows.into_iter().map(|row| (path_of(row.path.clone()), Known::from(row))).collect())
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

impl From<files::FileRow> for Known {
    fn from(row: files::FileRow) -> Self {
        let [dev, ino, size, ctime_ns, mtime_ms] = row.stat;
        let cursor = Cursor {
            stat: Stat { dev, ino, size, ctime_ns, mtime_ms },
            position: row.position.cast_unsigned(),
            frame_at: row.frame.0.cast_unsigned(),
            frame_position: row.frame.1.cast_unsigned(),
            head: (row.head.0.cast_unsigned(), row.head.1),
            tail: (row.tail.0.cast_unsigned(), row.tail.1),
        };
        Self { generation: row.id, stem: row.stem, cursor, gone: row.gone_ms.is_some() }
    }
}
