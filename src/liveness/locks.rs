//! Who holds the lock file of a Codex or dsh session, seen from outside.
//!
//! An agent's lock is never taken: not shared, not for an instant, for the agent would find it
//! taken and refuse its own session. The file is only `stat`ed; who holds it stands in the kernel's
//! table of locks, by device and inode, and where that names another device (overlay, btrfs) or a
//! process that is gone (a child inherited the lock), in the open files of the processes.
//! Formats: formats/claude-and-codex.md section 3.5, formats/dsh.md section 3.2.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::file_system::FileSystem;
use super::proc::{OpenFile, Proc, Seen, Sight};

/// What was seen of one lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed {
    /// Held, by these processes; none if the holder itself cannot be seen.
    Held(BTreeSet<u32>),
    /// The file is there, and nobody that we can see holds it.
    Free,
    /// It cannot be told, and why. Never the same as free.
    Unknown(&'static str),
    /// There is no such file, where such files are.
    NoFile,
    /// Not even their folder is there.
    NoFolder,
}

/// Where the lock of a Codex thread may lie, given a Codex home or its folder of rollouts.
pub fn codex_lock(root: &Path, thread_id: &str) -> PathBuf {
    let named = root.file_name().and_then(OsStr::to_str);
    let bare =
        matches!(named, Some("sessions" | "archived_sessions")) && !root.join("sessions").is_dir();
    let home = if bare { root.parent().unwrap_or(root) } else { root };
    home.join("thread-writer-locks").join(format!("{thread_id}.lock"))
}

/// The lock of a dsh session, given its log.
pub fn dsh_lock(log: &Path) -> PathBuf {
    log.with_file_name("session.lock")
}

/// Whether those who write this dsh log hold its lock meanwhile. Writers of format 0, whose log has
/// the bare name, take none; a later dsh may still have left one beside it (formats/dsh.md 1.7, and
/// its last part).
pub fn dsh_takes_lock(log: &Path) -> bool {
    let name = log.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    !matches!(&*name, "session.jsonl" | "session.jsonl.zstd")
}

/// A file by its device and inode.
pub type FileId = (u64, u64);

/// One look at the locks: the kernel's table, and the open files where the table does not do.
#[derive(Debug)]
pub struct Locks<'a> {
    proc: &'a Proc,
    /// Exclusive locks by inode: device as the kernel says it, and the process that took it.
    /// `None`: there is no table.
    table: Option<HashMap<u64, Vec<Line>>>,
    processes_max: usize,
    fds_max: usize,
    /// Lock files that any process has open, read only when needed.
    open: OnceCell<OpenFiles>,
    /// Of the processes asked about so far; a server is asked about once for each of its sessions.
    files: RefCell<HashMap<u32, Option<Rc<[OpenFile]>>>>,
}

/// One lock in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    major: u32,
    minor: u32,
    inode: u64,
    /// `None`: the kernel names nobody.
    pid: Option<u32>,
}

#[derive(Debug, Default)]
struct OpenFiles {
    pids: HashMap<FileId, BTreeSet<u32>>,
    /// Every process was listed, and its files too.
    whole: bool,
}

impl<'a> Locks<'a> {
    /// Looks. At most `processes_max` processes, and `fds_max` files of each, are gone through.
    pub fn look(proc: &'a Proc, processes_max: usize, fds_max: usize) -> Self {
        let table = proc.locks().map(|text| {
            let mut table: HashMap<u64, Vec<Line>> = HashMap::new();
            for line in text.lines().filter_map(parse_line) {
                let lines = table.entry(line.inode).or_default();
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
            table
        });
        Self {
            proc,
            table,
            processes_max,
            fds_max,
            open: OnceCell::new(),
            files: RefCell::default(),
        }
    }

    /// What is seen of a lock that may lie at any of these places.
    pub fn observe(&self, candidates: &[PathBuf]) -> Observed {
        let mut best = Observed::NoFolder;
        for path in candidates {
            let seen = self.observe_one(path);
            if rank(&seen) > rank(&best) {
                best = seen;
            }
        }
        best
    }

    fn observe_one(&self, path: &Path) -> Observed {
        let meta = match fs::metadata(path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let there = path.parent().is_some_and(Path::is_dir);
                return if there { Observed::NoFile } else { Observed::NoFolder };
            }
            Err(_) => return Observed::Unknown("its lock file cannot be looked at"),
        };
        if self.proc.sight() == Sight::None {
            return Observed::Unknown("there is no /proc here");
        }
        let seen = self.holders((meta.dev(), meta.ino()), meta.uid());
        // The table of locks has only those of this machine.
        if seen == Observed::Free && FileSystem::of(path).network != Some(false) {
            return Observed::Unknown("a network file system: a holder elsewhere is not seen");
        }
        seen
    }

    fn holders(&self, file: FileId, user: u32) -> Observed {
        let Some(table) = &self.table else { return self.holders_by_files(file) };
        let mut pids = BTreeSet::new();
        let mut held = false;
        let mut doubt = None;
        for line in table.get(&file.1).into_iter().flatten() {
            let exact = (line.major, line.minor) == device(file.0);
            match self.owner(*line, file, user) {
                Owner::Has(pid) => _ = pids.insert(pid),
                Owner::Hidden(pid) if exact => _ = pids.insert(pid),
                Owner::Hidden(_) => {
                    doubt = Some("the device of the lock cannot be told from another");
                }
                Owner::HasNot if exact => {
                    let heirs = self.open_files().pids.get(&file);
                    pids.extend(heirs.into_iter().flatten());
                }
                Owner::HasNot => {}
            }
            held |= exact;
        }
        match doubt {
            _ if held || !pids.is_empty() => Observed::Held(pids),
            Some(why) => Observed::Unknown(why),
            None => Observed::Free,
        }
    }

    /// Whether the process that a line names has the file open.
    fn owner(&self, line: Line, file: FileId, user: u32) -> Owner {
        let Some(pid) = line.pid else { return Owner::HasNot };
        let same = |open: &OpenFile| (open.dev, open.ino) == file;
        match self.files_of(pid) {
            Some(files) if files.iter().any(same) => Owner::Has(pid),
            Some(_) => Owner::HasNot,
            None => match self.proc.look(pid, Some(user)) {
                Seen::Alive(_) | Seen::Unknown(_) => Owner::Hidden(pid),
                Seen::Exited(_) | Seen::Missing => Owner::HasNot,
            },
        }
    }

    fn files_of(&self, pid: u32) -> Option<Rc<[OpenFile]>> {
        let mut known = self.files.borrow_mut();
        let listed = || self.proc.lock_files(pid, self.fds_max).map(Rc::from);
        known.entry(pid).or_insert_with(listed).clone()
    }

    /// Without a table: a process that has the file open is taken to hold it.
    fn holders_by_files(&self, file: FileId) -> Observed {
        let open = self.open_files();
        match open.pids.get(&file) {
            Some(pids) => Observed::Held(pids.clone()),
            None if open.whole => Observed::Free,
            None => Observed::Unknown("no table of locks, and not all processes can be seen"),
        }
    }

    fn open_files(&self) -> &OpenFiles {
        self.open.get_or_init(|| {
            let Some((pids, all)) = self.proc.pids(self.processes_max) else {
                return OpenFiles::default();
            };
            let mut open = OpenFiles {
                whole: all && self.proc.sight() == Sight::Whole,
                ..OpenFiles::default()
            };
            for pid in pids {
                match self.files_of(pid) {
                    Some(files) => {
                        for file in files.iter() {
                            open.pids.entry((file.dev, file.ino)).or_default().insert(pid);
                        }
                    }
                    None => open.whole &= self.proc.has_ended_since(pid),
                }
            }
            open
        })
    }

    /// The sessions' lock files that processes which hold a lock have open: which sessions may be
    /// held, found from the side of the holders, however many sessions there are.
    pub fn held_files(&self) -> BTreeSet<PathBuf> {
        let lines = self.table.iter().flat_map(HashMap::values).flatten();
        let pids: BTreeSet<u32> = lines.filter_map(|line| line.pid).collect();
        let files = pids.into_iter().filter_map(|pid| self.files_of(pid));
        let paths =
            files.flat_map(|files| files.iter().map(|file| file.path.clone()).collect::<Vec<_>>());
        paths.filter(|path| is_session_lock(path)).collect()
    }

    /// How many sessions' locks a process holds beside those in `own`: by its open files, where
    /// they can be listed.
    pub fn others_held(&self, pid: u32, own: &BTreeSet<FileId>) -> Option<usize> {
        let files = self.files_of(pid)?;
        let mut others = BTreeSet::new();
        for file in files.iter().filter(|file| is_session_lock(&file.path)) {
            let id = (file.dev, file.ino);
            let held = self.table.as_ref().is_none_or(|table| {
                table.get(&file.ino).is_some_and(|lines| lines.iter().any(|l| l.pid == Some(pid)))
            });
            if held && !own.contains(&id) {
                others.insert(id);
            }
        }
        Some(others.len())
    }
}

/// Device and inode of the lock files that exist among these.
pub fn file_ids<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> BTreeSet<FileId> {
    paths.filter_map(|path| fs::metadata(path).ok()).map(|meta| (meta.dev(), meta.ino())).collect()
}

enum Owner {
    Has(u32),
    HasNot,
    /// Its open files cannot be listed.
    Hidden(u32),
}

/// What says more comes first: a lock held anywhere is held.
fn rank(seen: &Observed) -> u8 {
    match seen {
        Observed::Held(_) => 4,
        Observed::Unknown(_) => 3,
        Observed::Free => 2,
        Observed::NoFile => 1,
        Observed::NoFolder => 0,
    }
}

/// `1: FLOCK  ADVISORY  WRITE 4242 08:01:1234 0 EOF`; a waiter has `->` behind the number, and
/// holds nothing. A shared lock is nobody's who writes.
fn parse_line(line: &str) -> Option<Line> {
    let mut fields = line.split_whitespace().skip(1);
    let kind = fields.next()?;
    if !matches!(kind, "FLOCK" | "OFDLCK" | "POSIX") {
        return None;
    }
    let _advisory = fields.next()?;
    if fields.next()? != "WRITE" {
        return None;
    }
    let pid = fields.next()?.parse().ok().filter(|pid| *pid > 0);
    let mut file = fields.next()?.split(':');
    let major = u32::from_str_radix(file.next()?, 16).ok()?;
    let minor = u32::from_str_radix(file.next()?, 16).ok()?;
    let inode = file.next()?.parse().ok()?;
    Some(Line { major, minor, inode, pid })
}

/// The numbers of a device, as the table has them.
#[cfg(target_os = "linux")]
pub(crate) fn device(dev: u64) -> (u32, u32) {
    (rustix::fs::major(dev), rustix::fs::minor(dev))
}

/// Elsewhere there is no such table.
#[cfg(not(target_os = "linux"))]
pub(crate) fn device(_dev: u64) -> (u32, u32) {
    (0, 0)
}

fn is_session_lock(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new("session.lock")) || is_codex_lock(path)
}

/// Codex deletes its lock when it unloads a thread; a dsh lock is only let go of.
pub(super) fn is_codex_lock(path: &Path) -> bool {
    path.parent().and_then(Path::file_name) == Some(OsStr::new("thread-writer-locks"))
}

#[cfg(test)]
mod tests;
