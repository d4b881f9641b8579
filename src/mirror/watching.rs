//! What the shell needs to follow hints: where to listen, and a look at a few files alone.
//!
//! A hint says "look now" and nothing else, so a look is a `stat` of files that the last scan found;
//! a path it did not find asks for another scan.

use std::fs;
use std::path::PathBuf;

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

    /// Whether a file has more bytes, or is another one, than when it was last looked at.
    pub(super) fn has_grown(&self, found: &Found) -> bool {
        self.found.get(&found.path).is_none_or(|then| {
            let is_other = (then.stat.dev, then.stat.ino) != (found.stat.dev, found.stat.ino);
            is_other || found.stat.size > then.stat.size
        })
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

    /// Files changed at or after `since_ms`, newest first, at most `files_max`.
    pub fn hot_files(&self, since_ms: i64, files_max: usize) -> Vec<PathBuf> {
        let mut hot: Vec<&Found> =
            self.found.values().filter(|found| found.stat.mtime_ms >= since_ms).collect();
        hot.sort_by_key(|found| std::cmp::Reverse(found.stat.mtime_ms));
        hot.into_iter().take(files_max).map(|found| found.path.clone()).collect()
    }

    /// When the system last noted a change of a file, by its own clock then, ms. Unlike the time of
    /// modification nobody can set it.
    pub fn newest_change_ms(&self) -> Option<i64> {
        self.found.values().map(|found| found.stat.ctime_ns / 1_000_000).max()
    }

    /// Moves the epochs between these moments by so much, as in the store: see
    /// `store::files::shift_epochs`.
    pub fn shift_epochs(&mut self, from_ms: i64, to_ms: i64, by_ms: i64) {
        let epochs = self.root_ids.iter_mut().flatten().filter_map(|(_, epoch)| epoch.as_mut());
        for epoch in epochs.filter(|epoch| (from_ms..=to_ms).contains(epoch)) {
            *epoch = epoch.saturating_add(by_ms);
        }
    }

    /// Folders whose changes announce something, each with what of it does.
    pub fn watch_folders(&self) -> impl Iterator<Item = (PathBuf, Extent)> {
        self.roots.iter().flat_map(|root| {
            let inner: &[(&str, Extent)] = match root.agent {
                Agent::Claude => &[("projects", Extent::Tree)],
                Agent::Codex => &[
                    ("sessions", Extent::Tree),
                    ("archived_sessions", Extent::Tree),
                    ("", Extent::File("session_index.jsonl")),
                ],
                Agent::Dsh => {
                    &[("sessions", Extent::Tree), ("storages", Extent::File("workspace.json"))]
                }
            };
            let is_home = inner
                .iter()
                .any(|(name, extent)| *extent == Extent::Tree && root.path.join(name).is_dir());
            if is_home {
                let place = |(name, extent): &(&str, Extent)| match *name {
                    "" => (root.path.clone(), *extent),
                    name => (root.path.join(name), *extent),
                };
                return inner.iter().map(place).collect::<Vec<_>>();
            }
            let bare = root.path.ends_with("sessions") || root.path.ends_with("projects");
            vec![(root.path.clone(), if bare { Extent::Tree } else { Extent::Folder })]
        })
    }
}

/// What of a folder announces something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Everything below it.
    Tree,
    /// What lies in it.
    Folder,
    /// The file of this name in it; agents write much else beside it, all the time.
    File(&'static str),
}
