//! Events by way of a library, where there is no inotify: it follows whole trees by itself.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use notify::event::EventKind;
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::{Depth, Heard, may_matter};

/// One event, as far as it matters.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hint {
    /// Something happened to these paths.
    Paths(Vec<PathBuf>),
    /// Look at everything.
    Lost,
}

/// The watches.
pub(super) struct Events {
    inner: RecommendedWatcher,
    /// Folders watched, with the inode each had.
    watched: HashMap<PathBuf, u64>,
    /// Folders of which one file matters.
    narrow: Vec<PathBuf>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("watched", &self.watched).finish_non_exhaustive()
    }
}

impl Events {
    /// Starts listening; `Err`: why that cannot be.
    pub(super) fn start(deliver: impl Fn(Vec<Hint>) + Send + 'static) -> Result<Self, String> {
        let inner = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            match event {
                Ok(event) if event.need_rescan() => deliver(vec![Hint::Lost]),
                // Our own reading must not wake us.
                Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
                Ok(event) => deliver(vec![Hint::Paths(event.paths)]),
                Err(_) => deliver(vec![Hint::Lost]),
            }
        });
        let inner = inner.map_err(|error| explain(&error))?;
        Ok(Self { inner, watched: HashMap::new(), narrow: Vec::new() })
    }

    /// Watches these folders; one that was replaced is watched anew.
    pub(super) fn cover(&mut self, folders: &[(PathBuf, Depth)]) -> Result<(), String> {
        let narrow = folders.iter().filter(|(_, depth)| matches!(depth, Depth::File(_)));
        self.narrow = narrow.map(|(folder, _)| folder.clone()).collect();
        for (folder, depth) in folders {
            let meta = std::fs::metadata(folder).ok().filter(std::fs::Metadata::is_dir);
            let inode = meta.map(|meta| meta.ino());
            let old = self.watched.get(folder).copied();
            if old == inode {
                continue;
            }
            if old.is_some() {
                let _ = self.inner.unwatch(folder); // gone with the folder, most likely
                self.watched.remove(folder);
            }
            let Some(inode) = inode else { continue };
            let mode = match depth {
                Depth::Tree => RecursiveMode::Recursive,
                Depth::Folder | Depth::File(_) => RecursiveMode::NonRecursive,
            };
            match self.inner.watch(folder, mode) {
                Ok(()) => {
                    self.watched.insert(folder.clone(), inode);
                }
                Err(_) if !folder.is_dir() => {}
                Err(error) => return Err(explain(&error)),
            }
        }
        Ok(())
    }

    /// Whether changes of this file are announced.
    #[expect(clippy::unnecessary_wraps, reason = "where there is inotify, it may fail")]
    pub(super) fn hears(&mut self, path: &Path) -> Result<bool, String> {
        let narrow = path.parent().is_some_and(|folder| self.narrow.iter().any(|n| n == folder));
        Ok(!narrow && path.ancestors().any(|folder| self.watched.contains_key(folder)))
    }

    /// Every folder is to be covered anew.
    pub(super) fn forget(&mut self) {
        for inode in self.watched.values_mut() {
            *inode = 0;
        }
    }

    /// What hints mean. A folder that came may hold files already: the scan finds them.
    #[expect(clippy::unnecessary_wraps, reason = "where there is inotify, it may fail")]
    pub(super) fn hear(&mut self, hints: Vec<Hint>, heard: &mut Heard) -> Result<(), String> {
        for hint in hints {
            match hint {
                Hint::Lost => {
                    self.forget();
                    heard.rescan = true;
                }
                Hint::Paths(paths) => {
                    heard.rescan |= paths.iter().any(|path| path.is_dir());
                    let asked = |path: &Path| {
                        path.parent().is_some_and(|folder| {
                            self.watched.contains_key(folder)
                                && !self.narrow.iter().any(|narrow| narrow == folder)
                        })
                    };
                    let mut ours = paths;
                    ours.retain(|path| may_matter(path) || asked(path));
                    heard.paths.append(&mut ours);
                }
            }
        }
        Ok(())
    }
}

fn explain(error: &notify::Error) -> String {
    format!("file events are not to be had ({error}): polling")
}
