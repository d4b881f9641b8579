//! What the shell needs to follow hints: where to listen, and a look at a few files alone.
//!
//! A hint says "look now" and nothing else, so a look is a `stat` of files that the last scan found;
//! a path it did not find asks for another scan.

use std::fs;
use std::path::{Path, PathBuf};

use super::discover::{self, Found};
use super::plan::{self, Plan};
use super::{Agent, Mirror};

/// What a look at a few files showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Glance {
    /// Something is to be read.
    pub queued: bool,
    /// A path is not one of those found by the last scan: scan again.
    pub unknown: bool,
}

impl Mirror {
    /// Whether a file holds something not yet read.
    pub(super) fn is_news(&self, found: &Found) -> bool {
        match self.known.get(&found.path) {
            Some(known) => {
                known.gone
                    || known.is_outdated()
                    || plan::plan(&known.cursor, &found.stat) != Plan::Unchanged
            }
            None => true,
        }
    }

    /// Looks at these paths alone and queues, before all others, those that have changed.
    pub fn look_at(&mut self, paths: &[PathBuf]) -> Glance {
        let mut glance = Glance::default();
        for path in paths {
            let Some(found) = self.found.get_mut(path) else {
                glance.unknown = true;
                continue;
            };
            match fs::metadata(path) {
                Ok(meta) if meta.is_file() => found.stat = discover::stat(&meta),
                Ok(_) | Err(_) => {
                    glance.unknown = true;
                    continue;
                }
            }
            let found = found.clone();
            let waiting = self.queue.iter().any(|queued| queued.path == *path)
                || self.reading.iter().any(|reading| reading.found.path == *path);
            if self.is_news(&found) {
                glance.queued = true;
                if !waiting {
                    self.queue.push_front(found);
                }
            }
        }
        glance
    }

    /// Files that wait to be read.
    pub fn queued(&self) -> impl Iterator<Item = &Path> {
        self.queue.iter().map(|found| found.path.as_path())
    }

    /// Files changed at or after `since_ms`, newest first, at most `files_max`.
    pub fn hot_files(&self, since_ms: i64, files_max: usize) -> Vec<PathBuf> {
        let mut hot: Vec<&Found> =
            self.found.values().filter(|found| found.stat.mtime_ms >= since_ms).collect();
        hot.sort_by_key(|found| std::cmp::Reverse(found.stat.mtime_ms));
        hot.into_iter().take(files_max).map(|found| found.path.clone()).collect()
    }

    /// Folders whose changes announce something, each with whether all below it belongs to it.
    pub fn watch_folders(&self) -> impl Iterator<Item = (PathBuf, bool)> {
        self.roots.iter().flat_map(|root| {
            let inner: &[(&str, bool)] = match root.agent {
                Agent::Claude => &[("projects", true)],
                Agent::Codex => &[("sessions", true), ("archived_sessions", true)],
                Agent::Dsh => &[("sessions", true)],
            };
            let home = inner.iter().any(|(name, _)| root.path.join(name).is_dir());
            let folders: Vec<(PathBuf, bool)> = if home {
                inner.iter().map(|(name, tree)| (root.path.join(name), *tree)).collect()
            } else {
                vec![(
                    root.path.clone(),
                    root.path.ends_with("sessions") || root.path.ends_with("projects"),
                )]
            };
            folders
        })
    }
}
