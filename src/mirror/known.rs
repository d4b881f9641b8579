//! What the mirror remembers of a file between two scans, and how it gets it back from the store.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::Mirror;
use super::commit::{Batch, Replaces};
use super::discover::Found;
use super::plan::{Cursor, Stat};
use crate::source::{Agent, Place};
use crate::store::{self, Store, files};

impl Mirror {
    /// Remembers what a committed batch has read.
    pub(super) fn remember_read(&mut self, batch: Batch, found: Found, generation: i64) {
        if let Replaces::WhenRead(rereading) = batch.replaces
            && !rereading.done
        {
            if let Some(known) = self.known.get_mut(&found.path) {
                known.again = Some((generation, batch.to));
            }
            return;
        }
        let changed_places = matches!(batch.replaces, Replaces::WhenRead(_));
        self.known.insert(found.path.clone(), Known::read(batch, generation));
        if changed_places && self.is_news(&found) {
            // What lies behind the place to which it was read before.
            self.queue.push_front(found);
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) generation: i64,
    pub(super) agent: Option<Agent>,
    pub(super) place: Option<Place>,
    pub(super) stem: String,
    pub(super) cursor: Cursor,
    pub(super) gone: bool,
    /// By which version of the adapter it was read.
    reading: i64,
    /// What has been read anew in its place so far: generation and cursor.
    pub(super) again: Option<(i64, Cursor)>,
}

impl Known {
    /// A generation read by this program.
    pub(super) fn read(batch: Batch, generation: i64) -> Self {
        Self {
            generation,
            agent: Some(batch.agent),
            place: Some(batch.place),
            stem: batch.stem,
            cursor: batch.to,
            gone: false,
            reading: batch.agent.reading_version(),
            again: None,
        }
    }

    /// Whether an older program read it, which knew less.
    pub(super) fn is_outdated(&self) -> bool {
        self.agent.is_some_and(|agent| self.reading < agent.reading_version())
    }

    /// Bytes of the file that need not be read any more.
    pub(super) fn done_bytes(&self) -> u64 {
        let again = || self.again.map_or(0, |(_, cursor)| cursor.frame_at);
        if self.is_outdated() { again() } else { self.cursor.frame_at }
    }

    /// Takes up what has been read anew in its place, unless another adapter has read that.
    fn take_up(&mut self, again: &Self) {
        if !again.is_outdated() {
            self.again = Some((again.generation, again.cursor));
        }
    }
}

/// All files the store knows of a host, by path.
pub(super) fn load_known(store: &mut Store, host: &str) -> store::Result<HashMap<PathBuf, Known>> {
    let (rows, again) =
        store.read(|tx| Ok((files::live_files(tx, host)?, files::rereadings(tx, host)?)))?;
    let mut known: HashMap<PathBuf, Known> =
        rows.into_iter().map(|row| (path_of(row.path.clone()), Known::from(row))).collect();
    for row in again {
        if let Some(live) = known.get_mut(&path_of(row.path.clone())) {
            live.take_up(&Known::from(row));
        }
    }
    Ok(known)
}

/// One file the store knows of a host.
pub(super) fn load_one(store: &mut Store, host: &str, path: &Path) -> store::Result<Option<Known>> {
    let path = path.as_os_str().as_bytes();
    let (row, again) = store
        .read(|tx| Ok((files::live_file(tx, host, path)?, files::rereading(tx, host, path)?)))?;
    let mut known = row.map(Known::from);
    if let (Some(known), Some(again)) = (&mut known, again) {
        known.take_up(&Known::from(again));
    }
    Ok(known)
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
            in_damage: row.in_damage,
            head: (row.head.0.cast_unsigned(), row.head.1),
            tail: (row.tail.0.cast_unsigned(), row.tail.1),
        };
        let cursor = if cursor.is_possible() { cursor } else { Cursor::NOWHERE };
        Self {
            generation: row.id,
            agent: Agent::from_word(&row.agent),
            place: Place::from_word(&row.place),
            stem: row.stem,
            cursor,
            gone: row.gone_ms.is_some(),
            reading: row.reading,
            again: None,
        }
    }
}
