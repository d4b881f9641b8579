//! File events as hints: they say "look now", never what happened.
//!
//! On Linux events may be missed (a file written in a folder that was made a moment ago), so a scan
//! every 30 s is what guarantees; where events cannot be had at all, or twice announced nothing of
//! what a scan found, the files are polled, and that is said once. One watch per folder, none per
//! file; all go when this is dropped.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::worker::Order;

/// Safety scans in a row that found growth which no event announced, before we stop trusting events.
const UNANNOUNCED_MAX: u32 = 2;

/// How changes are noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// By events.
    Events,
    /// By polling; why, as a sentence with the next step.
    Polling(String),
}

/// The watches.
pub struct Watcher {
    inner: Option<RecommendedWatcher>,
    /// Folders watched, with the inode each had.
    watched: HashMap<PathBuf, u64>,
    mode: Mode,
    unannounced: u32,
    /// Events came faster than they were taken: look at everything.
    overflow: Arc<AtomicBool>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Watcher {
    /// Starts without any folder. Hints go into `orders`; when that is full, `overflow` is set.
    pub fn new(orders: SyncSender<Order>) -> Self {
        let overflow = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&overflow);
        let made = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let order = match event {
                Ok(event) if is_change(event.kind) => match event.need_rescan() {
                    true => Order::Rescan,
                    false => Order::Changed { paths: event.paths, made: is_made(event.kind) },
                },
                Ok(_) => return,
                Err(_) => Order::Rescan,
            };
            if orders.try_send(order).is_err() {
                flag.store(true, Ordering::Relaxed);
            }
        });
        let (inner, mode) = match made {
            Ok(inner) => (Some(inner), Mode::Events),
            Err(error) => (None, Mode::Polling(explain(&error))),
        };
        Self { inner, watched: HashMap::new(), mode, unannounced: 0, overflow }
    }

    /// How changes are noticed now.
    pub fn mode(&self) -> &Mode {
        &self.mode
    }

    /// Whether hints were lost since the last call.
    pub fn take_overflow(&self) -> bool {
        self.overflow.swap(false, Ordering::Relaxed)
    }

    /// Watches the folders that are there, each once; one that was replaced is watched anew.
    pub fn cover(&mut self, folders: &[(PathBuf, Depth)]) {
        for (folder, depth) in folders {
            let Some(inner) = self.inner.as_mut() else { return };
            let inode = std::fs::metadata(folder).ok().filter(std::fs::Metadata::is_dir);
            let inode = inode.map(|meta| meta.ino());
            match (self.watched.get(folder).copied(), inode) {
                (old, new) if old == new => {}
                (Some(_), None) => {
                    let _ = inner.unwatch(folder); // gone with the folder, most likely
                    self.watched.remove(folder);
                }
                (_, Some(new)) => {
                    let mode = match depth {
                        Depth::Tree => RecursiveMode::Recursive,
                        Depth::Folder => RecursiveMode::NonRecursive,
                    };
                    match inner.watch(folder, mode) {
                        Ok(()) => {
                            self.watched.insert(folder.clone(), new);
                        }
                        Err(error) if vanished(&error, folder) => {}
                        Err(error) => self.give_up(explain(&error)),
                    }
                }
                (None, None) => {}
            }
        }
    }

    /// Reports what a safety scan found that no event had announced: twice in a row means that
    /// events do not work here (network file systems).
    pub fn self_test(&mut self, unannounced_files: usize) {
        if self.mode != Mode::Events {
            return;
        }
        self.unannounced = if unannounced_files == 0 { 0 } else { self.unannounced + 1 };
        if self.unannounced >= UNANNOUNCED_MAX {
            self.give_up(
                "file events do not arrive here (a network file system?); polling instead"
                    .to_owned(),
            );
        }
    }

    fn give_up(&mut self, why: String) {
        self.inner = None;
        self.watched.clear();
        self.mode = Mode::Polling(why);
    }
}

/// How deep a folder is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// With all below it.
    Tree,
    /// Itself alone.
    Folder,
}

fn is_change(kind: EventKind) -> bool {
    match kind {
        // Our own reading must not wake us.
        EventKind::Access(_) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

/// Something was made or moved in: if it is a folder, what is written in it now may go unannounced.
fn is_made(kind: EventKind) -> bool {
    matches!(kind, EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(_)))
}

fn vanished(error: &notify::Error, folder: &Path) -> bool {
    matches!(error.kind, notify::ErrorKind::PathNotFound) || !folder.is_dir()
}

/// What a watch failed for, and what to do.
fn explain(error: &notify::Error) -> String {
    let watches = "the limit of file watches is reached; polling instead (raise \
        fs.inotify.max_user_watches with sysctl)";
    let instances = "the limit of watch instances is reached; polling instead (raise \
        fs.inotify.max_user_instances with sysctl)";
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => watches.to_owned(),
        notify::ErrorKind::Io(inner) if inner.raw_os_error() == Some(NO_SPACE) => {
            watches.to_owned()
        }
        notify::ErrorKind::Io(inner) if is_out_of_files(inner) => instances.to_owned(),
        notify::ErrorKind::Io(_)
        | notify::ErrorKind::Generic(_)
        | notify::ErrorKind::PathNotFound
        | notify::ErrorKind::WatchNotFound
        | notify::ErrorKind::InvalidConfig(_) => {
            format!("file events are not to be had ({error}); polling instead")
        }
    }
}

/// ENOSPC and EMFILE, as `inotify_add_watch` and `inotify_init` report their limits.
const NO_SPACE: i32 = 28;
const OUT_OF_FILES: i32 = 24;

fn is_out_of_files(error: &io::Error) -> bool {
    error.raw_os_error() == Some(OUT_OF_FILES)
}
