//! The folder in which events wait: one file each, named by time, written beside and renamed.
//!
//! A reader sees a file whole or not at all, and two hooks at one moment never take one name. The
//! folder is bounded: with nobody there to absorb, the newest events are not recorded.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Event;

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

#[derive(serde::Serialize, serde::Deserialize)]
struct Stored {
    version: u32,
    #[serde(flatten)]
    event: Event,
}

/// Leaves an event, and says where; the folder is made if it is missing.
pub fn leave(inbox: &Path, event: &Event) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(inbox)?;
    if fs::read_dir(inbox)?.take(FILES_MAX).count() >= FILES_MAX {
        return Err(io::Error::other("the inbox is full"));
    }
    let bytes = serde_json::to_vec(&Stored { version: VERSION, event: event.clone() })?;
    // Of containers that share the folder, two may have the same pid.
    let namespace = event.scope.pid_ns.unwrap_or_default();
    let stem = format!("{:015}-{namespace:x}-{}", event.at_ms.max(0), std::process::id());
    for number in 0..NAMES_MAX {
        let unfinished = inbox.join(format!(".{stem}-{number}.tmp"));
        let finished = inbox.join(format!("{stem}-{number}.json"));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished);
        let mut file = match made {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        if finished.exists() {
            fs::remove_file(&unfinished)?;
            continue;
        }
        let renamed = file.write_all(&bytes).and_then(|()| fs::rename(&unfinished, &finished));
        if let Err(error) = renamed {
            // Nothing more can be done if even that fails; the reader removes what is old.
            let _left = fs::remove_file(&unfinished);
            return Err(error);
        }
        return Ok(finished);
    }
    Err(io::Error::other("too many events at one moment"))
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
