//! Who writes: a file lock beside the database, and what its holder says of itself.
//!
//! `flock` goes with the process, however it ends, so a lock never outlives its holder. The holder
//! writes its pid, a heartbeat and the number of its complete passes into the locked file, for the
//! viewers. This is our own file; an agent's lock is never touched.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::liveness::locks::device;

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
    path: PathBuf,
    /// It was not there before: somebody may go on under one that was deleted.
    pub is_new: bool,
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
    // A new file or none: what somebody has put there is not followed.
    let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(question_for(db));
}

/// Whether somebody has asked for a pass since this was last called.
pub fn was_asked(db: &Path) -> bool {
    fs::remove_file(question_for(db)).is_ok()
}

/// Takes the lock if it is free.
pub fn try_take(db: &Path, now_ms: i64) -> io::Result<Option<WriterLock>> {
    let path = path_for(db);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = open(&path, &mut options)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let holder = Holder { pid: std::process::id(), ..Holder::default() };
    let is_new = file.metadata()?.len() == 0;
    let mut lock = WriterLock { file, path, is_new, holder };
    if lock.is_lost() {
        return Ok(None); // deleted between the two: whoever made the new one may hold it
    }
    lock.beat(now_ms)?;
    Ok(Some(lock))
}

/// What the holder said last; `None` if nobody ever held it.
pub fn read(db: &Path) -> Option<Holder> {
    let mut text = String::new();
    let file = open(&path_for(db), OpenOptions::new().read(true)).ok()?;
    file.take(RECORD_BYTES as u64).read_to_string(&mut text).ok()?;
    serde_json::from_str(text.trim_end()).ok()
}

/// Whether somebody holds it now, told without taking it: who takes it meanwhile must not fail. A
/// holder in another container is not seen; where the system does not list its locks, a heartbeat
/// tells it. Only to take it is proof.
pub fn is_held(db: &Path) -> bool {
    let Ok(meta) = fs::symlink_metadata(path_for(db)) else { return false };
    match fs::read_to_string("/proc/locks") {
        Ok(locks) => locks.lines().any(|line| is_lock_of(line, meta.dev(), meta.ino())),
        Err(_) => read(db).is_some_and(|holder| {
            let age_ms = Clock::default().now_ms().saturating_sub(holder.heartbeat_ms);
            age_ms.abs() <= STALLED_MS
        }),
    }
}

/// Whether a line of `/proc/locks` (proc(5)) tells a `flock` on that file:
/// `1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`.
fn is_lock_of(line: &str, dev: u64, ino: u64) -> bool {
    let mut words = line.split_whitespace();
    let kind = words.nth(1);
    let Some(file) = words.nth(3) else { return false };
    let (major, minor) = device(dev);
    kind == Some("FLOCK") && file == format!("{major:02x}:{minor:02x}:{ino}")
}

/// Whether the log of a database that somebody writes is gone: whoever opens it now would begin
/// another one, and both applied to the database damage it. The writer makes it good in a moment.
pub fn lost_log(db: &Path) -> bool {
    let mut log = db.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(db).is_ok_and(|meta| meta.len() > 0) && !Path::new(&log).exists() && is_held(db)
}

/// Whether the lock file can be used as one; an error says what is there instead.
pub fn look(db: &Path) -> io::Result<()> {
    match open(&path_for(db), OpenOptions::new().read(true)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other.map(drop),
    }
}

/// Opens a lock file, which is ours: no link is followed, nothing is waited for, and what holds
/// anything but our record is left as it is.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
    let opened = options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0)).open(path);
    let file = opened.map_err(|error| match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::LOOP) => refused("it is a link"),
        Some(rustix::io::Errno::NXIO) => refused("it is no regular file"),
        Some(_) | None => error,
    })?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(refused("it is no regular file"));
    }
    if meta.nlink() > 1 {
        return Err(refused("it has other names (hard links)"));
    }
    let mut head = [0; 6];
    let read = file.read_at(&mut head, 0)?;
    if read > 0 && head != *b"{\"pid\"" {
        return Err(refused("it is not a lock file of lullwatch"));
    }
    Ok(file)
}

impl WriterLock {
    /// Whether its file is not there any more: then somebody else can take a new one.
    pub fn is_lost(&self) -> bool {
        let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let here = fs::symlink_metadata(&self.path).ok().map(id);
        here.is_none() || here != self.file.metadata().ok().map(id)
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }

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
