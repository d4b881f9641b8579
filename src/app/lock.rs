//! Who writes: a file lock beside the database, and what its holder says of itself.
//!
//! `flock` goes with the process, however it ends, so a lock never outlives its holder. The holder
//! writes its pid, a heartbeat and the number of its complete passes into the locked file, for the
//! viewers. This is our own file; an agent's lock is never touched.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A heartbeat older than this shows as a stalled writer, ms.
pub const STALLED_MS: i64 = 15_000;
/// Bytes of the record; padded, so that a shorter one leaves nothing of a longer one behind.
const RECORD_BYTES: usize = 256;

/// What the writer says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Holder {
    /// Its pid.
    pub pid: u32,
    /// When it last showed that it lives, wall clock, ms.
    pub heartbeat_ms: i64,
    /// Complete passes so far.
    pub passes: u64,
    /// When the last complete pass ended, in the time it reckons with, ms.
    pub as_of_ms: Option<i64>,
    /// Bytes still to be read.
    pub backlog_bytes: u64,
}

/// The writer lock, held.
#[derive(Debug)]
pub struct WriterLock {
    file: File,
    /// What is said to viewers.
    pub holder: Holder,
}

/// The lock file of a database.
pub fn path_for(db: &Path) -> PathBuf {
    let mut name = db.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

fn question_for(db: &Path) -> PathBuf {
    let mut name = db.as_os_str().to_owned();
    name.push(".ask");
    PathBuf::from(name)
}

/// Asks the holder for a pass soon: an empty file beside the database. Where none can be made nobody
/// is asked, and the next pass comes when it comes.
pub fn ask(db: &Path) {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let _ = options.open(question_for(db));
}

/// Whether somebody has asked for a pass since this was last called.
pub fn was_asked(db: &Path) -> bool {
    fs::remove_file(question_for(db)).is_ok()
}

/// Takes the lock if it is free.
pub fn try_take(db: &Path, now_ms: i64) -> io::Result<Option<WriterLock>> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path_for(db))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let holder = Holder { pid: std::process::id(), ..Holder::default() };
    let mut lock = WriterLock { file, holder };
    lock.beat(now_ms)?;
    Ok(Some(lock))
}

/// What the holder said last; `None` if nobody ever held it.
pub fn read(db: &Path) -> Option<Holder> {
    let mut text = String::new();
    let file = File::open(path_for(db)).ok()?;
    file.take(RECORD_BYTES as u64).read_to_string(&mut text).ok()?;
    serde_json::from_str(text.trim_end()).ok()
}

/// Whether somebody holds it now.
pub fn is_held(db: &Path) -> bool {
    let Ok(file) = File::open(path_for(db)) else { return false };
    // Ours, and free again at once: whoever wants it tries again.
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

impl WriterLock {
    /// Shows that the writer lives, wall clock, ms.
    pub fn beat(&mut self, now_ms: i64) -> io::Result<()> {
        self.holder.heartbeat_ms = now_ms;
        let mut record = serde_json::to_vec(&self.holder).map_err(io::Error::other)?;
        record.resize(RECORD_BYTES - 1, b' ');
        record.push(b'\n');
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_heard_once() {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("x.db");
        assert!(!was_asked(&db));
        ask(&db);
        ask(&db);
        assert!(was_asked(&db));
        assert!(!was_asked(&db));
        ask(&folder.path().join("gone/x.db"));
    }

    #[test]
    fn one_holds_it_and_the_others_read_who() {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("x.db");
        assert_eq!(read(&db), None);
        let mut held = try_take(&db, 5).unwrap().unwrap();
        assert!(try_take(&db, 6).unwrap().is_none());
        assert!(is_held(&db));
        held.holder.passes = 3;
        held.beat(7).unwrap();
        let seen = read(&db).unwrap();
        assert_eq!((seen.pid, seen.passes, seen.heartbeat_ms), (std::process::id(), 3, 7));
        drop(held);
        assert!(!is_held(&db));
        assert!(try_take(&db, 8).unwrap().is_some());
    }
}
