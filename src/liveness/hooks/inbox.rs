//! The folder in which events wait: one file each, named by time, written beside and renamed.
//!
//! A reader sees a file whole or not at all, and two hooks at one moment never take one name. The
//! folder is bounded: with nobody there to absorb, the newest events are not recorded. What is not
//! recorded, for that reason or another, is counted: each adds a byte to a file beside the events.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::Event;
use crate::liveness::scope::Scope;

/// The database whose inbox is the folder `inbox` itself; that of another lies in it, by its name.
const FIRST_DB: &str = "lullwatch.db";
/// The file whose length says how many events were lost.
const LOST: &str = "lost";
/// Files that wait at most.
const FILES_MAX: usize = 10_000;
/// Bytes of one file at most.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// An unfinished file older than this was left behind by a hook that did not get to its end, ms.
const LEFTOVER_AFTER_MS: i64 = 60_000;
/// Names tried within one millisecond of one process.
const NAMES_MAX: u32 = 1_000;
/// Version of the format, the first field of each file.
const VERSION: u32 = 1;

/// A file of the inbox that holds no event, and that its reader should remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Too long.
    TooLong,
    /// A link, a folder, a pipe.
    NotAFile,
    /// No event of a version we know.
    NoEvent,
    /// Begun and never finished.
    Leftover,
}

/// Where the hooks of one store leave their events, and where they did before each had its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbox {
    /// Its folder.
    pub folder: PathBuf,
    /// The folder that once served every store beside this one; `None` if it is this store's own, or
    /// that of another that is there.
    pub shared: Option<PathBuf>,
}

impl Inbox {
    /// Of the store with this database, by whatever name it is called.
    pub fn of(db: &Path) -> Self {
        let real = fs::canonicalize(db).unwrap_or_else(|_| db.to_owned());
        let state = real.parent().unwrap_or(Path::new("."));
        let shared = state.join("inbox");
        match real.file_name() {
            Some(name) if name != OsStr::new(FIRST_DB) => Self {
                folder: shared.join(name),
                shared: (!state.join(FIRST_DB).exists()).then_some(shared),
            },
            Some(_) | None => Self { folder: shared, shared: None },
        }
    }
}

/// Events that were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// How many.
    pub events: u64,
    /// When the last one was, ms.
    pub last_ms: i64,
}

/// Counts an event that could not be left, or was begun and never finished.
pub fn count_lost(inbox: &Path, at_ms: i64) -> io::Result<()> {
    make_folder(inbox)?;
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(NO_FOLLOW);
    // Appends of one byte never overwrite each other.
    let mut file = options.open(inbox.join(LOST))?;
    file.write_all(b".")?;
    file.set_modified(UNIX_EPOCH + Duration::from_millis(at_ms.max(0).cast_unsigned()))
}

/// Not through a link that somebody has planted there.
const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// What was lost so far, if anything was.
pub fn lost(inbox: &Path) -> Option<Lost> {
    let meta = fs::symlink_metadata(inbox.join(LOST)).ok().filter(fs::Metadata::is_file)?;
    let last_ms = meta.mtime().saturating_mul(1_000).saturating_add(meta.mtime_nsec() / 1_000_000);
    (meta.len() > 0).then_some(Lost { events: meta.len(), last_ms })
}

/// Begins to count anew.
pub fn forget_lost(inbox: &Path) -> io::Result<()> {
    fs::remove_file(inbox.join(LOST))
}

fn make_folder(inbox: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(inbox)
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Stored {
    version: u32,
    #[serde(flatten)]
    event: Event,
}

/// Leaves an event, and says where; the folder is made if it is missing.
pub fn leave(inbox: &Path, event: &Event) -> io::Result<PathBuf> {
    begin(inbox, event.at_ms, &event.scope)?.finish(event)
}

/// A file that is begun, before it is known what will stand in it. Whatever becomes of its hook, it
/// is found by the reader: what was begun and never finished is an event that was lost.
#[derive(Debug)]
pub(super) struct Begun {
    file: File,
    unfinished: PathBuf,
    finished: PathBuf,
}

/// Begins a file; the folder is made if it is missing.
pub(super) fn begin(inbox: &Path, at_ms: i64, scope: &Scope) -> io::Result<Begun> {
    // Of containers that share the folder, two may have the same pid.
    let namespace = scope.pid_ns.unwrap_or_default();
    let stem = format!("{:015}-{namespace:x}-{}", at_ms.max(0), std::process::id());
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    for number in 0..NAMES_MAX {
        let unfinished = inbox.join(format!(".{stem}-{number}.tmp"));
        let finished = inbox.join(format!("{stem}-{number}.json"));
        let made = match options.open(&unfinished) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_folder(inbox)?;
                options.open(&unfinished)
            }
            made => made,
        };
        let file = match made {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        if finished.exists() {
            fs::remove_file(&unfinished)?;
            continue;
        }
        return Ok(Begun { file, unfinished, finished });
    }
    Err(io::Error::other("too many events at one moment"))
}

impl Begun {
    /// Writes the event, and says where. Only then is it asked whether there was room: many may come
    /// at once, and each has little time.
    pub(super) fn finish(mut self, event: &Event) -> io::Result<PathBuf> {
        let bytes = serde_json::to_vec(&Stored { version: VERSION, event: event.clone() })?;
        self.file.write_all(&bytes)?;
        fs::rename(&self.unfinished, &self.finished)?;
        let inbox = self.finished.parent().unwrap_or(Path::new("."));
        if fs::read_dir(inbox)?.take(FILES_MAX + 1).count() > FILES_MAX {
            fs::remove_file(&self.finished)?;
            count_lost(inbox, event.at_ms)?;
            return Err(io::Error::other("the inbox is full"));
        }
        Ok(self.finished)
    }

    /// There was nothing to leave.
    pub(super) fn discard(self) {
        // Should it stay, it counts as an event that was lost.
        let _stays = fs::remove_file(&self.unfinished);
    }
}

/// The events that wait, oldest first, at most `limit`; beside them the files to be removed unread.
/// A folder that is missing is an empty one. The caller removes each file once it is absorbed.
pub fn read_inbox(
    inbox: &Path,
    limit: usize,
    now_ms: i64,
) -> io::Result<Vec<(PathBuf, Result<Event, Refused>)>> {
    let entries = match fs::read_dir(inbox) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // Twice what hooks leave at most: more is not ours, and is looked at in a later turn.
    let names = entries.flatten().take(FILES_MAX * 2).filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        // That of another store may be named like an event.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            return None;
        }
        is_ours(&name, now_ms).then_some(name)
    });
    let mut names: Vec<String> = names.collect();
    names.sort_unstable_by(|a, b| a.trim_start_matches('.').cmp(b.trim_start_matches('.')));
    names.truncate(limit);
    let read = |name: String| {
        let path = inbox.join(&name);
        let event = if name.starts_with('.') { Err(Refused::Leftover) } else { read_event(&path) };
        (path, event)
    };
    Ok(names.into_iter().map(read).collect())
}

/// A finished file, or one that was begun long ago. What else lies there is let alone.
fn is_ours(name: &str, now_ms: i64) -> bool {
    let is_json = Path::new(name).extension().is_some_and(|extension| extension == "json");
    let Some(unfinished) = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp")) else {
        return is_json && !name.starts_with('.');
    };
    let begun_ms = unfinished.split('-').next().and_then(|digits| digits.parse::<i64>().ok());
    begun_ms.is_some_and(|begun_ms| now_ms.saturating_sub(begun_ms) > LEFTOVER_AFTER_MS)
}

fn read_event(path: &Path) -> Result<Event, Refused> {
    // A link could lead anywhere, and a pipe keep us.
    let meta = fs::symlink_metadata(path).ok().ok_or(Refused::NoEvent)?;
    if !meta.is_file() {
        return Err(Refused::NotAFile);
    }
    if meta.len() > FILE_BYTES_MAX {
        return Err(Refused::TooLong);
    }
    let mut bytes = Vec::new();
    let file = File::open(path).ok().ok_or(Refused::NoEvent)?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok().ok_or(Refused::NoEvent)?;
    let stored: Stored = serde_json::from_slice(&bytes).ok().ok_or(Refused::NoEvent)?;
    if stored.version != VERSION {
        return Err(Refused::NoEvent);
    }
    Ok(stored.event)
}
