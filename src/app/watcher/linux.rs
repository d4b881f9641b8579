//! inotify, with no more than is needed: our own reading does not wake us, a new folder is watched
//! and listed at once, and a limit that is reached comes back as a sentence.
//!
//! A thread reads events and passes them on as they are; the worker, which owns the watches, turns
//! them into paths. So nothing is shared.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::{Depth, Heard, may_matter};

/// Bytes of events read at a time.
const READ_BYTES_MAX: usize = 64 * 1024;
/// How deep folders are followed, links among them.
const DEPTH_MAX: usize = 16;
/// Files listed in a new folder; with more, everything is looked at.
const LISTED_MAX: usize = 2_048;

/// One event, as it came.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hint {
    watch: i32,
    name: Option<OsString>,
    what: ReadFlags,
}

/// A watched folder.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    care: Care,
    inode: u64,
}

/// What matters in a folder, each more than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Care {
    /// That a folder is made in it on the way to one that is missing.
    Way,
    /// Some files in it, which are closed after each change; much else in it is written all the time.
    Files,
    /// Its files.
    Folder,
    /// Everything below it.
    Tree,
}

/// The watches, and the thread that listens.
#[derive(Debug)]
pub(super) struct Events {
    inotify: Arc<OwnedFd>,
    /// Written to, it ends the thread.
    end: Arc<OwnedFd>,
    places: HashMap<i32, Place>,
    watches: HashMap<PathBuf, i32>,
    /// Folders to be watched that are not there.
    missing: Vec<PathBuf>,
    /// The files that matter where some do.
    files: Vec<PathBuf>,
}

impl Events {
    /// Starts listening; `Err`: why that cannot be.
    pub(super) fn start(deliver: impl Fn(Vec<Hint>) + Send + 'static) -> Result<Self, String> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        let inotify = Arc::new(inotify.map_err(|errno| explain(errno, Call::Init))?);
        let end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let end = Arc::new(end.map_err(|errno| explain(errno, Call::Init))?);
        let (events, ending) = (Arc::clone(&inotify), Arc::clone(&end));
        thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || listen(&events, &ending, deliver))
            .map_err(|error| format!("file events are not to be had ({error}): polling"))?;
        Ok(Self {
            inotify,
            end,
            places: HashMap::new(),
            watches: HashMap::new(),
            missing: Vec::new(),
            files: Vec::new(),
        })
    }

    /// Watches these folders and drops the watches outside them.
    pub(super) fn cover(&mut self, folders: &[(PathBuf, Depth)]) -> Result<(), String> {
        // In the order in which a scan goes through them, so that of two names of a folder both
        // take the same.
        let mut wanted: Vec<(PathBuf, Care)> = Vec::new();
        self.missing.clear();
        self.files.clear();
        for (folder, depth) in folders {
            let care = match depth {
                Depth::Tree => Care::Tree,
                Depth::Folder => Care::Folder,
                Depth::File(name) => {
                    self.files.push(folder.join(name));
                    Care::Files
                }
            };
            let (place, care) = if folder.is_dir() {
                (folder.as_path(), care)
            } else {
                self.missing.push(folder.clone());
                // Whoever makes it makes it there.
                let above = folder.ancestors().skip(1).find(|above| above.is_dir());
                let Some(above) = above else { continue };
                (above, Care::Way)
            };
            match wanted.iter_mut().find(|(known, _)| known == place) {
                Some((_, known)) => *known = care.max(*known),
                None => wanted.push((place.to_owned(), care)),
            }
        }
        let belongs = |path: &PathBuf| {
            wanted.iter().any(|(folder, care)| match care {
                Care::Tree => path.starts_with(folder),
                Care::Folder | Care::Files | Care::Way => path == folder,
            })
        };
        let outside: Vec<PathBuf> =
            self.watches.keys().filter(|path| !belongs(path)).cloned().collect();
        for path in outside {
            self.drop_watch(&path);
        }
        for (folder, care) in wanted {
            if !self.is_covered(&folder, care) {
                self.watch(&folder, care, 0, &mut Heard::default())?;
            }
        }
        Ok(())
    }

    /// Whether changes of this file are announced. A folder that was overlooked is watched from now
    /// on.
    pub(super) fn hears(&mut self, path: &Path) -> Result<bool, String> {
        let Some(folder) = path.parent() else { return Ok(false) };
        let care = |events: &Self, folder: &Path| {
            let place = events.watches.get(folder).and_then(|watch| events.places.get(watch));
            place.map(|place| place.care)
        };
        if let Some(care) = care(self, folder) {
            return Ok(care == Care::Tree);
        }
        if folder.ancestors().any(|above| care(self, above) == Some(Care::Tree)) {
            self.watch(folder, Care::Tree, 0, &mut Heard::default())?;
        }
        Ok(false)
    }

    /// Every folder is to be covered anew.
    pub(super) fn forget(&mut self) {
        for place in self.places.values_mut() {
            place.inode = 0;
        }
    }

    /// What hints mean.
    pub(super) fn hear(&mut self, hints: Vec<Hint>, heard: &mut Heard) -> Result<(), String> {
        for hint in hints {
            if hint.what.contains(ReadFlags::QUEUE_OVERFLOW) {
                self.forget();
                heard.rescan = true;
                continue;
            }
            if hint.what.contains(ReadFlags::IGNORED) {
                if let Some(place) = self.places.remove(&hint.watch) {
                    self.watches.remove(&place.path);
                }
                continue;
            }
            let Some(place) = self.places.get(&hint.watch) else { continue };
            let care = place.care;
            let Some(name) = &hint.name else {
                // The folder itself went or was moved.
                heard.rescan = true;
                continue;
            };
            let path = place.path.join(name);
            if hint.what.contains(ReadFlags::ISDIR) || is_new_link(&path, hint.what, care) {
                self.hear_folder(&path, hint.what, care, heard)?;
            } else if self.matters(&path, care) && heard.paths.last() != Some(&path) {
                heard.paths.push(path);
            }
        }
        Ok(())
    }

    fn hear_folder(
        &mut self,
        path: &Path,
        what: ReadFlags,
        care: Care,
        heard: &mut Heard,
    ) -> Result<(), String> {
        let arrived = what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
        match care {
            Care::Tree if arrived => self.watch(path, care, 0, heard)?,
            Care::Tree => {
                self.drop_below(path);
                heard.rescan = true;
            }
            Care::Folder => heard.rescan = true,
            Care::Way | Care::Files => {
                heard.rescan |= self.missing.iter().any(|missing| missing.starts_with(path));
            }
        }
        Ok(())
    }

    fn is_covered(&self, folder: &Path, care: Care) -> bool {
        let inode = fs::metadata(folder).map(|meta| meta.ino());
        let place = self.watches.get(folder).and_then(|watch| self.places.get(watch));
        let same = |place: &Place| place.care == care && inode.is_ok_and(|now| now == place.inode);
        place.is_some_and(same)
    }

    /// Watches a folder, then lists it: in this order nothing falls between.
    fn watch(
        &mut self,
        folder: &Path,
        care: Care,
        level: usize,
        heard: &mut Heard,
    ) -> Result<(), String> {
        let watch = match inotify::add_watch(&*self.inotify, folder, flags(care)) {
            Ok(watch) => watch,
            Err(errno @ (Errno::NOSPC | Errno::NOMEM)) => return Err(explain(errno, Call::Add)),
            // Gone already, or not ours to read: the scan says so.
            Err(_) => return Ok(()),
        };
        let Ok(meta) = fs::metadata(folder) else { return Ok(()) };
        if let Some(known) = self.places.get(&watch).filter(|known| known.path != folder) {
            let same = fs::metadata(&known.path).is_ok_and(|other| other.ino() == meta.ino());
            if same {
                // A link to a folder that is watched under its other name: entered once.
                return Ok(());
            }
            self.watches.remove(&known.path);
        }
        let place = Place { path: folder.to_owned(), care, inode: meta.ino() };
        self.places.insert(watch, place);
        self.watches.insert(folder.to_owned(), watch);
        if care != Care::Tree || level >= DEPTH_MAX {
            return Ok(());
        }
        let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
        for entry in entries.flatten() {
            let path = entry.path();
            let kind = entry.file_type();
            let linked = kind.as_ref().is_ok_and(fs::FileType::is_symlink);
            if kind.is_ok_and(|kind| kind.is_dir()) || (linked && path.is_dir()) {
                self.watch(&path, care, level + 1, heard)?;
            } else if heard.paths.len() >= LISTED_MAX {
                heard.rescan = true;
            } else if self.matters(&path, care) {
                heard.paths.push(path);
            }
        }
        Ok(())
    }

    /// Whether a file is worth a look. Agents write much beside their transcripts.
    fn matters(&self, path: &Path, care: Care) -> bool {
        match care {
            Care::Tree => may_matter(path),
            Care::Folder => true,
            Care::Files => self.files.iter().any(|file| file == path),
            Care::Way => false,
        }
    }

    fn drop_below(&mut self, folder: &Path) {
        let below: Vec<PathBuf> =
            self.watches.keys().filter(|path| path.starts_with(folder)).cloned().collect();
        for path in below {
            self.drop_watch(&path);
        }
    }

    fn drop_watch(&mut self, path: &Path) {
        if let Some(watch) = self.watches.remove(path) {
            self.places.remove(&watch);
            // Gone with its folder, perhaps.
            let _ = inotify::remove_watch(&*self.inotify, watch);
        }
    }
}

#[cfg(test)]
impl Events {
    /// Plays a folder on which no watch could be set.
    pub(super) fn overlook(&mut self, folder: &Path) {
        self.drop_watch(folder);
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // The watches go with the last handle, which is the thread's.
        let _ = rustix::io::write(&*self.end, &1_u64.to_ne_bytes());
    }
}

/// What is asked of the system. On the way to a missing folder nothing that is written matters: we
/// may write there ourselves.
fn flags(care: Care) -> WatchFlags {
    let coming = WatchFlags::CREATE
        | WatchFlags::MOVED_TO
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR;
    match care {
        Care::Way => coming,
        // Not each write: databases beside them are written without end, and stay open.
        Care::Files => {
            coming | WatchFlags::CLOSE_WRITE | WatchFlags::DELETE | WatchFlags::MOVED_FROM
        }
        Care::Folder | Care::Tree => {
            let changing = WatchFlags::MODIFY | WatchFlags::DELETE | WatchFlags::MOVED_FROM;
            coming | changing | WatchFlags::EXCL_UNLINK
        }
    }
}

/// Whether this is a link to a folder that was just made: a scan follows it.
fn is_new_link(path: &Path, what: ReadFlags, care: Care) -> bool {
    let arrived = what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
    care == Care::Tree && arrived && path.is_symlink() && path.is_dir()
}

/// Passes events on until told to end.
fn listen(inotify: &OwnedFd, end: &OwnedFd, deliver: impl Fn(Vec<Hint>)) {
    let mut buffer = vec![MaybeUninit::uninit(); READ_BYTES_MAX];
    let mut reader = inotify::Reader::new(inotify, &mut buffer);
    loop {
        let mut ready = [PollFd::new(inotify, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        let [_, ended] = &ready;
        if !ended.revents().is_empty() {
            return;
        }
        let mut hints: Vec<Hint> = Vec::new();
        loop {
            let hint = match reader.next() {
                Ok(event) => Hint {
                    watch: event.wd(),
                    name: event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).into()),
                    what: event.events(),
                },
                Err(Errno::INTR) => continue,
                Err(_) => break,
            };
            if hints.last() != Some(&hint) {
                hints.push(hint);
            }
        }
        if !hints.is_empty() {
            deliver(hints);
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Call {
    Init,
    Add,
}

/// What failed, and what to do: the name of the limit first, for it must survive a narrow screen.
fn explain(errno: Errno, call: Call) -> String {
    match (call, errno) {
        (Call::Add, Errno::NOSPC) => {
            "fs.inotify.max_user_watches is used up: polling (raise it with sysctl)".to_owned()
        }
        (Call::Init, Errno::MFILE) => {
            "fs.inotify.max_user_instances is used up: polling (raise it with sysctl)".to_owned()
        }
        (Call::Init | Call::Add, errno) => {
            format!("file events are not to be had ({errno}): polling")
        }
    }
}
