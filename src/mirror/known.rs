//! What the mirror remembers of a file between two scans, and how it gets it back from the store.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::plan::{Cursor, Stat};
use crate::source::{Agent, Place};
use crate::store::{self, Store, files};

#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) generation: i64,
    pub(super) agent: Option<Agent>,
    pub(super) place: Option<Place>,
    pub(super) stem: String,
    pub(super) cursor: Cursor,
    pub(super) gone: bool,
}

/// All files the store knows, by path.
pub(super) fn load_known(store: &mut Store) -> store::Result<HashMap<PathBuf, Known>> {
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
            in_damage: row.in_damage,
            head: (row.head.0.cast_unsigned(), row.head.1),
            tail: (row.tail.0.cast_unsigned(), row.tail.1),
        };
        Self {
            generation: row.id,
            agent: Agent::from_word(&row.agent),
            place: Place::from_word(&row.place),
            stem: row.stem,
            cursor,
            gone: row.gone_ms.is_some(),
        }
    }
}
