//! Processes as `/proc` shows them: the only reader of it.
//!
//! `Proc` is rooted at a path, so that tests use a tree of their own; everything is read by pid, on
//! demand, and nothing is written, signalled or locked. What cannot be seen is *unknown*: a missing
//! entry counts as gone only where this `/proc` is proven to show the processes of that user.
//! Layout: proc(5).

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::scope::{Scope, namespace_inode};

/// Bytes read of one small file: it has one line, or what is wanted stands at its head.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Bytes gone through of a file with many lines, or long ones: interrupts, groups, mounts.
const LINES_BYTES_MAX: u64 = 64 << 20;
/// Bytes kept of one line of it.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Bytes read of the arguments of a process, more than the kernel lets them have.
const ARGV_BYTES_MAX: u64 = 8 << 20;
/// Bytes read of the table of locks.
const LOCKS_BYTES_MAX: u64 = 8 << 20;
/// A table longer than this came in several reads, between which the kernel may skip a line.
const LOCKS_ONE_READ_BYTES: usize = 3_900;
/// A long table is gone through this often.
const LOCKS_LONG_LOOKS: usize = 3;
/// Bytes asked for in one read; the kernel gives a page of them.
const READ_BYTES: usize = 64 << 10;

/// One process: its pid, and its start, which tells it from a later one with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its pid.
    pub pid: u32,
    /// Start, in clock ticks since boot (field 22 of `stat`); `None` if it could not be read.
    pub start_ticks: Option<u64>,
}

/// What a process does, as the scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Run {
    /// On a processor, or ready for it (`R`).
    Running,
    /// Waiting for something (`S`, `D`, `I`).
    Sleeping,
    /// Stopped by a signal or a debugger (`T`, `t`).
    Stopped,
    /// Ended, but not yet waited for by its parent (`Z`, `X`).
    Zombie,
}

impl Run {
    /// The word shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Sleeping => "sleeping",
            Self::Stopped => "stopped",
            Self::Zombie => "zombie",
        }
    }

    /// Whether a process in this state can be at work.
    pub fn can_work(self) -> bool {
        match self {
            Self::Running | Self::Sleeping => true,
            Self::Stopped | Self::Zombie => false,
        }
    }
}

/// A process that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Who it is.
    pub id: ProcessId,
    /// When it started, ms since 1970 UTC.
    pub started_ms: Option<i64>,
    /// What it does.
    pub run: Run,
    /// Its real user id.
    pub uid: Option<u32>,
}

/// What a look at one pid showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It is there.
    Alive(Process),
    /// It has ended; only its parent has not asked yet. It holds nothing any more.
    Exited(Process),
    /// There is none, and there would be an entry if there were one.
    Missing,
    /// It cannot be told, and why.
    Unknown(&'static str),
}

/// How much of the processes can be seen here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// All of them.
    Whole,
    /// `/proc` is mounted with `hidepid`: those of others are hidden.
    Hidden,
    /// There is no `/proc` of this kind (macOS, a jail).
    None,
}

/// A `/proc`, with what is the same for all of its processes. Make one per pass.
#[derive(Debug, Clone)]
pub struct Proc {
    root: PathBuf,
    ticks_per_second: u64,
    boot_ms: Option<i64>,
    sight: Sight,
    scope: Scope,
}

impl Proc {
    /// The one of this system.
    pub fn system() -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let machine = read_text(Path::new("/etc/machine-id"), FILE_BYTES_MAX).ok();
        let machine = machine.map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
        let uid = rustix::process::getuid().as_raw();
        let ticks = rustix::param::clock_ticks_per_second();
        Self::at(Path::new("/proc"), ticks, Scope { host, machine, uid, ..Scope::default() })
    }

    /// A tree of that form. Of `scope`, host, machine and user are taken; boot and namespace are
    /// read from the tree.
    pub fn at(root: &Path, ticks_per_second: u64, scope: Scope) -> Self {
        let text = |name: &str| read_text(&root.join(name), FILE_BYTES_MAX).ok();
        let boot_id = text("sys/kernel/random/boot_id").map(|id| id.trim().to_owned());
        let link = fs::read_link(root.join("self/ns/pid")).ok();
        let pid_ns = link.and_then(|link| namespace_inode(link.to_str()?));
        let boot_ms = value_of(&root.join("stat"), "btime ")
            .and_then(|seconds| seconds.trim().parse::<i64>().ok()?.checked_mul(1000));
        let sight = if text("self/stat").is_none() {
            Sight::None
        } else if hides(&root.join("self/mounts")).unwrap_or(true) {
            Sight::Hidden
        } else {
            Sight::Whole
        };
        let scope = Scope { boot_id, pid_ns, ..scope };
        Self { root: root.to_owned(), ticks_per_second, boot_ms, sight, scope }
    }

    /// Where and as whom we look.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// How much can be seen.
    pub fn sight(&self) -> Sight {
        self.sight
    }

    /// Looks at a pid. `owner` is the user whose process it is or was, as far as known.
    pub fn look(&self, pid: u32, owner: Option<u32>) -> Seen {
        if self.sight == Sight::None {
            return Seen::Unknown("there is no /proc here");
        }
        match read_text(&self.root.join(format!("{pid}/stat")), FILE_BYTES_MAX) {
            Ok(text) => self.read_stat(pid, &text),
            Err(error) if is_gone(&error) => self.missing(owner),
            Err(_) => Seen::Unknown("its entry in /proc cannot be read"),
        }
    }

    fn missing(&self, owner: Option<u32>) -> Seen {
        if self.sight != Sight::Whole {
            return Seen::Unknown("/proc hides the processes of others");
        }
        if self.scope.uid != 0 && owner != Some(self.scope.uid) {
            return Seen::Unknown("it is the process of another user");
        }
        Seen::Missing
    }

    fn read_stat(&self, pid: u32, text: &str) -> Seen {
        let Some((run, threads, start_ticks)) = parse_stat(text) else {
            return Seen::Unknown("its entry in /proc cannot be understood");
        };
        let process = Process {
            id: ProcessId { pid, start_ticks: Some(start_ticks) },
            started_ms: self.started_ms(start_ticks),
            run,
            uid: self.uid_of(pid),
        };
        // A main thread may end before the others: then the process lives on.
        if run == Run::Zombie && threads <= 1 {
            return Seen::Exited(process);
        }
        Seen::Alive(process)
    }

    /// Whether a process that was listed, or read of, a moment ago has ended since: what one could see
    /// of it nobody hides now.
    pub fn has_ended_since(&self, pid: u32) -> bool {
        match read_text(&self.root.join(format!("{pid}/stat")), FILE_BYTES_MAX) {
            Ok(text) => matches!(self.read_stat(pid, &text), Seen::Exited(_)),
            Err(error) => is_gone(&error),
        }
    }

    /// Start of a process, in clock ticks since boot; `None` if it cannot be read.
    pub fn start_ticks(&self, pid: u32) -> Option<u64> {
        let text = read_text(&self.root.join(format!("{pid}/stat")), FILE_BYTES_MAX).ok()?;
        parse_stat(&text).map(|(_, _, start_ticks)| start_ticks)
    }

    /// Clock ticks in one second.
    pub fn ticks_per_second(&self) -> u64 {
        self.ticks_per_second
    }

    /// When a process with this start began, ms since 1970 UTC.
    pub fn started_ms(&self, start_ticks: u64) -> Option<i64> {
        let ms = start_ticks.checked_mul(1000)?.checked_div(self.ticks_per_second)?;
        self.boot_ms?.checked_add(i64::try_from(ms).ok()?)
    }

    fn uid_of(&self, pid: u32) -> Option<u32> {
        let uids = value_of(&self.root.join(format!("{pid}/status")), "Uid:")?;
        uids.split_whitespace().next()?.parse().ok()
    }

    /// The parent of a process; `None` if it cannot be read.
    pub fn parent(&self, pid: u32) -> Option<u32> {
        let text = read_text(&self.root.join(format!("{pid}/stat")), FILE_BYTES_MAX).ok()?;
        let (_, rest) = text.rsplit_once(')')?;
        rest.split_whitespace().nth(1)?.parse().ok()
    }

    /// The arguments of a process; `None` if they cannot be read.
    pub fn argv(&self, pid: u32) -> Option<Vec<String>> {
        let bytes = read_bounded(&self.root.join(format!("{pid}/cmdline")), ARGV_BYTES_MAX).ok()?;
        let parts = bytes.split(|byte| *byte == 0);
        let mut argv: Vec<String> =
            parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect();
        if argv.last().is_some_and(String::is_empty) {
            argv.pop();
        }
        Some(argv)
    }

    /// The lock files that a process has open, by name `*.lock`; `None` if its files cannot be
    /// listed, or are more than `fds_max`. Only these are looked at, for a file of a hung network
    /// mount would hang us too.
    pub fn lock_files(&self, pid: u32, fds_max: usize) -> Option<Vec<OpenFile>> {
        let folder = self.root.join(format!("{pid}/fd"));
        let mut found = Vec::new();
        for (count, entry) in fs::read_dir(folder).ok()?.enumerate() {
            if count >= fds_max {
                return None;
            }
            let Ok(entry) = entry else { continue };
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            if target.extension().is_none_or(|extension| extension != "lock") {
                continue;
            }
            if let Ok(meta) = fs::metadata(entry.path()) {
                found.push(OpenFile { path: target, dev: meta.dev(), ino: meta.ino() });
            }
        }
        Some(found)
    }

    /// The pids that are there, at most `max`, and whether that is all.
    pub fn pids(&self, max: usize) -> Option<(Vec<u32>, bool)> {
        let mut pids = Vec::new();
        for entry in fs::read_dir(&self.root).ok()?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if pids.len() >= max {
                return Some((pids, false));
            }
            pids.push(pid);
        }
        Some((pids, true))
    }

    /// The table of locks. A long one comes in several reads, between which the kernel may skip a
    /// line; it is gone through again, for who wants to know that a lock is free must miss it in
    /// every one.
    pub fn locks(&self) -> Option<String> {
        let path = self.root.join("locks");
        // One that is cut short would say that locks are free.
        let look = || {
            let text = read_in_pages(&path).ok()?;
            (u64::try_from(text.len()).ok()? < LOCKS_BYTES_MAX).then_some(text)
        };
        let mut text = look()?;
        if text.len() > LOCKS_ONE_READ_BYTES {
            for _ in 1..LOCKS_LONG_LOOKS {
                text.push_str(&look()?);
            }
        }
        Some(text)
    }
}

/// A generated file, in reads as large as the kernel fills at once: what one read shows is of one
/// moment. The standard library begins with a small read to see whether there is anything at all.
fn read_in_pages(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    let mut page = vec![0; READ_BYTES];
    loop {
        let count = match file.read(&mut page) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        bytes.extend(page.iter().take(count));
        if u64::try_from(bytes.len()).is_ok_and(|length| length >= LOCKS_BYTES_MAX) {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A file that a process has open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// Its path.
    pub path: PathBuf,
    /// Device, as `stat` says it.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
}

/// State, number of threads and start ticks in the text of `/proc/<pid>/stat`. The name in it is in
/// parentheses and may itself hold any, so the fields begin behind the last one.
fn parse_stat(text: &str) -> Option<(Run, u64, u64)> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let run = match fields.next()? {
        "R" => Run::Running,
        "T" | "t" => Run::Stopped,
        "Z" | "X" | "x" => Run::Zombie,
        _ => Run::Sleeping,
    };
    // From field 3, the state, on: field 20 is 16 behind it, field 22 one more after the next.
    let threads = fields.nth(16)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    Some((run, threads, start))
}

/// Whether the newest mount on `/proc` hides processes.
fn hides(mounts: &Path) -> io::Result<bool> {
    let mut hides = false;
    each_line(mounts, |line| {
        let mut parts = line.split_whitespace().skip(1);
        if let (Some("/proc"), Some("proc"), Some(options)) =
            (parts.next(), parts.next(), parts.next())
        {
            let value = options.split(',').find_map(|option| option.strip_prefix("hidepid="));
            hides = value.is_some_and(|value| value != "0" && value != "off");
        }
        true
    })?;
    Ok(hides)
}

/// What stands behind `name` in the first line that begins with it.
fn value_of(path: &Path, name: &str) -> Option<String> {
    let mut found = None;
    let _cut = each_line(path, |line| {
        found = line.strip_prefix(name).map(str::to_owned);
        found.is_none()
    });
    found
}

/// Goes through the lines of a generated file, each cut to [`LINE_BYTES_MAX`], while `go_on` says
/// so. A line may be longer than any sensible buffer: on a big server that of the interrupts is.
fn each_line(path: &Path, mut go_on: impl FnMut(&str) -> bool) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(READ_BYTES, File::open(path)?.take(LINES_BYTES_MAX));
    let mut line = Vec::new();
    loop {
        let chunk = reader.fill_buf()?;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(chunk.len(), |end| end + 1);
        let room = LINE_BYTES_MAX.saturating_sub(line.len());
        line.extend(chunk.iter().take(end.unwrap_or(taken).min(room)));
        reader.consume(taken);
        if end.is_some() || taken == 0 {
            if !go_on(&String::from_utf8_lossy(&line)) {
                return Ok(());
            }
            line.clear();
        }
        if taken == 0 {
            let whole = reader.get_ref().limit() > 0;
            return if whole { Ok(()) } else { Err(io::Error::other("longer than is read")) };
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    const ESRCH: i32 = rustix::io::Errno::SRCH.raw_os_error();
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ESRCH)
}

/// At most that many bytes of a file.
fn read_bounded(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_text(path: &Path, max: u64) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read_bounded(path, max)?).into_owned())
}

#[cfg(test)]
mod tests;
