//! Whether the path of a store still leads to the files that a connection has open.
//!
//! SQLite goes on with files that were deleted or replaced under it, and nobody else sees what it
//! writes there; two logs of one database, each applied to it, damage it. So before each use the
//! database, its log and the memory that its readers share are compared with what was opened.
//!
//! The files are never opened here: to close one would take the locks of this process from it.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Result, StoreError};

/// Device and inode.
type FileId = (u64, u64);

/// What is wrong with the files of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// The database is another file, or none, or an older copy was written over it.
    Database,
    /// Its log, or the memory beside it, was deleted; nobody has made a new one.
    LogDeleted,
    /// There is another log now, which is somebody else's.
    LogReplaced,
}

/// The files that a connection has open.
#[derive(Debug, Clone, Default)]
pub(super) struct Identity {
    database: Option<FileId>,
    log: Option<FileId>,
    memory: Option<FileId>,
    /// The largest size of the database that was seen, bytes: it never shrinks.
    bytes: u64,
}

impl Identity {
    /// Of a connection that has just been opened and has read once.
    pub(super) fn of(path: &Path) -> Self {
        let meta = fs::metadata(path).ok();
        Self {
            database: meta.as_ref().map(id),
            log: file_id(&beside(path, "-wal")),
            memory: file_id(&beside(path, "-shm")),
            bytes: meta.map_or(0, |meta| meta.len()),
        }
    }

    /// Of one that reads the database alone, whatever lies beside it.
    pub(super) fn of_database(path: &Path) -> Self {
        Self { log: None, memory: None, ..Self::of(path) }
    }

    /// What was lost since, if anything; and which file tells it.
    pub(super) fn lost(&mut self, path: &Path) -> Option<(Lost, PathBuf)> {
        let database = fs::metadata(path).ok();
        let bytes = database.as_ref().map_or(0, Metadata::len);
        if database.as_ref().map(id) != self.database || bytes < self.bytes {
            return Some((Lost::Database, path.to_owned()));
        }
        self.bytes = bytes;
        for (ending, known) in [("-wal", self.log), ("-shm", self.memory)] {
            let beside = beside(path, ending);
            let Some(known) = known else { continue };
            match file_id(&beside) {
                None => return Some((Lost::LogDeleted, beside)),
                Some(found) if found != known => return Some((Lost::LogReplaced, beside)),
                Some(_) => {}
            }
        }
        None
    }

    /// Deletes the log and its memory if they are those of the database that is gone: applied to the
    /// one that lies there now, they would damage it.
    pub(super) fn delete_log(&self, path: &Path) {
        for (ending, known) in [("-wal", self.log), ("-shm", self.memory)] {
            let beside = beside(path, ending);
            if known.is_some() && file_id(&beside) == known {
                // It can only be gone already, or the folder cannot be written, nor then the store.
                let _ = fs::remove_file(beside);
            }
        }
    }
}

fn id(meta: &Metadata) -> FileId {
    (meta.dev(), meta.ino())
}

fn file_id(path: &Path) -> Option<FileId> {
    fs::metadata(path).ok().as_ref().map(id)
}

/// The file beside a database whose name ends so.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Refuses to open a store anew while this process still holds the log, or the memory, that was deleted:
/// SQLite has one such memory a process and file, so the new connection would take part in the old one
/// and in nobody else's. The others are closed as soon as they find out for themselves.
pub(super) fn await_others(path: &Path) -> Result<()> {
    // Only there it can be seen.
    let Ok(open) = fs::read_dir("/proc/self/fd") else { return Ok(()) };
    let beside = ["-wal", "-shm"].map(|ending| beside(path, ending));
    let deleted = beside.clone().map(|path| {
        let mut name = path.into_os_string();
        name.push(" (deleted)");
        PathBuf::from(name)
    });
    for target in open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()) {
        if let Some(at) = deleted.iter().position(|name| *name == target) {
            let path = beside.get(at).cloned().unwrap_or_default();
            return Err(StoreError::Replaced { path });
        }
    }
    Ok(())
}

/// As an error: what is known of the file must be read again.
pub(super) fn replaced(lost: Option<(Lost, PathBuf)>) -> Result<()> {
    lost.map_or(Ok(()), |(_, path)| Err(StoreError::Replaced { path }))
}
