//! Finds the transcripts below the roots: the only place that walks directories.
//!
//! Links are followed, each folder and file once by (device, inode); only what was entered as a
//! place of the layout counts as visited, so a link that leads nowhere hides nothing. A folder that
//! cannot be read is reported, and is never the same as an empty one.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::place::{self, Encoding, Named};
use super::plan::Stat;
use super::read::words;
use crate::source::{Agent, Hint};

/// A place where one agent keeps its transcripts: its home, or the folder of transcripts itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Root {
    /// The agent.
    pub agent: Agent,
    /// Absolute path.
    pub path: PathBuf,
}

/// A file of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Index of its root.
    pub root: usize,
    /// Its agent.
    pub agent: Agent,
    /// Where it lies, as reached from the root.
    pub path: PathBuf,
    /// What its name tells.
    pub hint: Hint,
    /// How it is read.
    pub encoding: Encoding,
    /// What it is now.
    pub stat: Stat,
}

/// State of a root in one scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootState {
    /// Walked.
    Present,
    /// Not there.
    Missing,
    /// There, and cannot be read.
    Unreadable,
}

/// What one walk over the roots found.
#[derive(Debug, Default)]
pub struct Scan {
    /// The files that count, newest first.
    pub files: Vec<Found>,
    /// Files passed over because a better twin lies beside them.
    pub shadowed: HashSet<PathBuf>,
    /// Folders and files that could not be read, with what the system said.
    pub unreadable: Vec<(PathBuf, String)>,
    /// State of each root, in the roots' order.
    pub roots: Vec<RootState>,
}

impl Scan {
    /// Whether this walk can tell that a file is gone: its parent was read, or is itself gone below
    /// a root that was read.
    pub fn saw_absent(&self, roots: &[Root], path: &Path) -> bool {
        let mut known_root = false;
        for (root, state) in roots.iter().zip(&self.roots) {
            if path.starts_with(&root.path) {
                known_root = true;
                if *state != RootState::Present {
                    return false;
                }
            }
        }
        known_root && !self.unreadable.iter().any(|(bad, _)| path.starts_with(bad))
    }
}

/// Walks the roots.
pub fn scan(roots: &[Root]) -> Scan {
    let mut walk = Walk { scan: Scan::default(), visited: HashSet::new(), twins: HashMap::new() };
    for (index, root) in roots.iter().enumerate() {
        let state = walk.root(index, root);
        walk.scan.roots.push(state);
    }
    let mut scan = walk.scan;
    let order = |file: &Found| (std::cmp::Reverse(file.stat.mtime_ms), file.path.clone());
    scan.files.sort_by_cached_key(order);
    scan
}

struct Walk {
    scan: Scan,
    visited: HashSet<(u64, u64)>,
    /// Best file so far of each twin: its index in `scan.files`, and its rank.
    twins: HashMap<(Agent, String), (usize, u32)>,
}

/// Which folder of a layout a walk stands in.
#[derive(Clone, Copy)]
enum Level<'a> {
    ClaudeProjects,
    ClaudeProject,
    ClaudeSession(&'a str),
    ClaudeAgents(&'a str),
    CodexSessions(u8),
    DshSessions,
    DshProject,
    DshSession(&'a str),
}

impl Walk {
    fn root(&mut self, index: usize, root: &Root) -> RootState {
        match fs::metadata(&root.path) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return RootState::Missing,
            Err(error) if is_absent(&error) => return RootState::Missing,
            Err(error) => {
                self.unreadable(&root.path, &error);
                return RootState::Unreadable;
            }
        }
        let bad_before = self.scan.unreadable.len();
        let inner = |name: &str| root.path.join(name);
        let named = root.path.file_name();
        match root.agent {
            Agent::Claude => {
                let bare = named == Some(OsStr::new("projects")) && !inner("projects").is_dir();
                let folder = if bare { root.path.clone() } else { inner("projects") };
                self.folder(index, root.agent, &folder, Level::ClaudeProjects);
            }
            Agent::Codex => {
                let bare =
                    matches!(named.and_then(OsStr::to_str), Some("sessions" | "archived_sessions"))
                        && !inner("sessions").is_dir();
                if bare {
                    self.folder(index, root.agent, &root.path, Level::CodexSessions(0));
                } else {
                    self.folder(index, root.agent, &inner("sessions"), Level::CodexSessions(0));
                    let archive = inner("archived_sessions");
                    self.folder(index, root.agent, &archive, Level::CodexSessions(3));
                    self.single(
                        index,
                        root.agent,
                        &root.path,
                        "session_index.jsonl",
                        place::codex_index,
                    );
                }
            }
            Agent::Dsh => {
                let bare = named == Some(OsStr::new("sessions")) && !inner("sessions").is_dir();
                let folder = if bare { root.path.clone() } else { inner("sessions") };
                self.folder(index, root.agent, &folder, Level::DshSessions);
                let storages = inner("storages");
                self.single(index, root.agent, &storages, "workspace.json", place::dsh_workspace);
            }
        }
        let own = self.scan.unreadable.iter().skip(bad_before).any(|(path, _)| *path == root.path);
        if own { RootState::Unreadable } else { RootState::Present }
    }

    /// A file at a fixed place.
    fn single(
        &mut self,
        root: usize,
        agent: Agent,
        folder: &Path,
        name: &str,
        named: fn(&str) -> Option<Named>,
    ) {
        if let Some(named) = named(name) {
            self.file(root, agent, &folder.join(name), named);
        }
    }

    fn folder(&mut self, root: usize, agent: Agent, folder: &Path, level: Level<'_>) {
        let entries = match fs::metadata(folder).and_then(|meta| {
            // Visited only when entered as a place of the layout; a second way in adds nothing.
            if meta.is_dir() && !self.visited.insert((meta.dev(), meta.ino())) {
                return Ok(None);
            }
            fs::read_dir(folder).map(Some)
        }) {
            Ok(Some(entries)) => entries,
            Ok(None) => return,
            Err(error) => return self.unreadable(folder, &error),
        };
        for entry in entries {
            match entry {
                Ok(entry) => {
                    let path = entry.path();
                    let is_dir = entry.file_type().and_then(|kind| {
                        if !kind.is_symlink() {
                            return Ok(kind.is_dir());
                        }
                        fs::metadata(&path).map(|meta| meta.is_dir())
                    });
                    match is_dir {
                        Ok(is_dir) => self.entry(root, agent, &path, is_dir, level),
                        // A folder, for all we know.
                        Err(error) => self.unreadable(&path, &error),
                    }
                }
                Err(error) => self.unreadable(folder, &error),
            }
        }
    }

    fn entry(&mut self, root: usize, agent: Agent, path: &Path, is_dir: bool, level: Level<'_>) {
        // A name that is not UTF-8 is none that an agent writes; folders of projects may be any.
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or("");
        if is_dir {
            let next = match level {
                Level::ClaudeProjects if name != "memory" => Level::ClaudeProject,
                Level::ClaudeProject if place::is_uuid(name) => Level::ClaudeSession(name),
                Level::ClaudeSession(session) if name == "subagents" => {
                    Level::ClaudeAgents(session)
                }
                Level::ClaudeAgents(session) => Level::ClaudeAgents(session),
                Level::CodexSessions(depth) if depth < 3 => Level::CodexSessions(depth + 1),
                Level::DshSessions => Level::DshProject,
                Level::DshProject if !name.starts_with(".dsh-mkdir-") => Level::DshSession(name),
                Level::ClaudeProjects
                | Level::ClaudeProject
                | Level::ClaudeSession(_)
                | Level::CodexSessions(_)
                | Level::DshProject
                | Level::DshSession(_) => return,
            };
            return self.folder(root, agent, path, next);
        }
        let named = match level {
            Level::ClaudeProject => place::claude_project_file(name),
            Level::ClaudeSession(session) => place::claude_session_file(name, session),
            Level::ClaudeAgents(session) => place::claude_agent_file(name, session),
            Level::CodexSessions(_) => place::codex_rollout(name),
            Level::DshSession(id) => place::dsh_log(name, id),
            Level::ClaudeProjects | Level::DshSessions | Level::DshProject => None,
        };
        if let Some(named) = named {
            self.file(root, agent, path, named);
        }
    }

    fn file(&mut self, root: usize, agent: Agent, path: &Path, named: Named) {
        let meta = match fs::metadata(path) {
            Ok(meta) if meta.is_file() => meta,
            Ok(_) => return,
            Err(error) => return self.unreadable(path, &error),
        };
        if !self.visited.insert((meta.dev(), meta.ino())) {
            return;
        }
        let found = Found {
            root,
            agent,
            path: path.to_owned(),
            hint: named.hint,
            encoding: named.encoding,
            stat: stat(&meta),
        };
        match named.twin {
            Some(twin) => self.twin(found, (agent, twin), named.rank),
            None => self.scan.files.push(found),
        }
    }

    /// Of several files that stand for one log one counts: the higher rank, then the longer file,
    /// then the smaller path, so that the order of the walk does not matter.
    fn twin(&mut self, found: Found, key: (Agent, String), rank: u32) {
        let Some((slot, old_rank)) = self.twins.get(&key).copied() else {
            self.twins.insert(key, (self.scan.files.len(), rank));
            self.scan.files.push(found);
            return;
        };
        let Some(old) = self.scan.files.get_mut(slot) else { return };
        let order =
            |rank: u32, file: &Found| (rank, file.stat.size, std::cmp::Reverse(file.path.clone()));
        if order(rank, &found) > order(old_rank, old) {
            let loser = std::mem::replace(old, found);
            self.twins.insert(key, (slot, rank));
            self.scan.shadowed.insert(loser.path);
        } else {
            self.scan.shadowed.insert(found.path);
        }
    }

    fn unreadable(&mut self, path: &Path, error: &io::Error) {
        if !is_absent(error) {
            self.scan.unreadable.push((path.to_owned(), words(error)));
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The parts of a file's metadata that we compare.
pub fn stat(meta: &Metadata) -> Stat {
    Stat {
        dev: meta.dev().cast_signed(),
        ino: meta.ino().cast_signed(),
        size: meta.size().cast_signed(),
        ctime_ns: meta.ctime().saturating_mul(1_000_000_000).saturating_add(meta.ctime_nsec()),
        mtime_ms: meta.mtime().saturating_mul(1000).saturating_add(meta.mtime_nsec() / 1_000_000),
    }
}
