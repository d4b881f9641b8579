//! Claude's registry: one small file per process, `<home>/sessions/<pid>.json`.
//!
//! The file is keyed by process, so the session it names changes over time (`/clear`, `/resume`),
//! two files may name one session, and a file may outlive its process. An entry is therefore only a
//! claim; [`judge`] holds it against `/proc`. Other files of that folder are never opened: `.key`
//! files are secrets, `pid-<n>.json` is an older format, `<pid>.waiting.json` is not Claude's.
//! Format: formats/claude-and-codex.md section 3.1.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::proc::{Proc, Process, Seen};
use super::scope::namespace_inode;

/// An entry longer than this is not one.
const ENTRY_BYTES_MAX: u64 = 256 << 10;

/// What a process says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Says {
    /// At work: the model or a tool runs.
    Busy,
    /// The turn is over, a background shell still runs.
    Shell,
    /// Nothing to do.
    Idle,
    /// It waits for the user; what for is in `waiting_for`.
    Waiting,
    /// A word we do not know.
    Other,
}

impl Says {
    /// The word shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Shell => "shell",
            Self::Idle => "idle",
            Self::Waiting => "waiting",
            Self::Other => "other",
        }
    }

    fn from_word(word: &str) -> Self {
        [Self::Busy, Self::Shell, Self::Idle, Self::Waiting]
            .into_iter()
            .find(|says| says.word() == word)
            .unwrap_or(Self::Other)
    }
}

/// One entry. Whatever a field's type is, what cannot be used is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// Where it was read.
    pub path: PathBuf,
    /// Owner of the file, who is the user of the process.
    pub owner: Option<u32>,
    /// The process; the same in the file's name.
    pub pid: u32,
    /// Its start: ticks since boot on Linux, other text elsewhere.
    pub proc_start: Option<String>,
    /// The session it names now.
    pub session_id: Option<String>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// What it says of itself; headless ones often say nothing.
    pub status: Option<Says>,
    /// What it waits for: `permission prompt`, `input needed`, …
    pub waiting_for: Option<String>,
    /// `interactive`, `background`, `bg`.
    pub kind: Option<String>,
    /// `cli`, `sdk-cli`, `sdk-ts`, `claude-vscode`, …
    pub entrypoint: Option<String>,
    /// When the status changed last, ms.
    pub status_updated_ms: Option<i64>,
    /// When the file was written last, ms.
    pub updated_ms: Option<i64>,
    /// Where its pid is one: `linux:<machine-id>:pid:[<namespace>]`, `darwin`, `win32:<host>`.
    pub pid_domain: Option<String>,
}

impl Entry {
    /// Whether it belongs to a program that drives Claude without a terminal.
    pub fn is_sdk(&self) -> bool {
        self.entrypoint.as_deref().is_some_and(|entrypoint| entrypoint.starts_with("sdk-"))
    }
}

/// A file of the registry that says nothing: half-written, too long, not readable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// The process by its name.
    pub pid: u32,
    /// What was wrong.
    pub why: String,
}

/// A folder of the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderState {
    /// Read.
    Present,
    /// Not there: nothing was started with this home, or by an old version.
    Missing,
    /// There, and cannot be read.
    Unreadable,
}

/// What the registries say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Registry {
    /// The entries that could be read.
    pub entries: Vec<Entry>,
    /// The others.
    pub unreadable: Vec<Unreadable>,
    /// The folders, in the order asked.
    pub folders: Vec<(PathBuf, FolderState)>,
    /// There were more files than the limit.
    pub truncated: bool,
}

impl Registry {
    /// Whether every entry that there is was read.
    pub fn is_whole(&self) -> bool {
        let readable = |state| match state {
            FolderState::Present | FolderState::Missing => true,
            FolderState::Unreadable => false,
        };
        self.unreadable.is_empty()
            && !self.truncated
            && self.folders.iter().all(|(_, state)| readable(*state))
    }
}

/// The registry of a Claude home, or of its folder of transcripts.
pub fn folder_of(root: &Path) -> PathBuf {
    let bare = root.file_name() == Some(OsStr::new("projects")) && !root.join("projects").is_dir();
    let home = if bare { root.parent().unwrap_or(root) } else { root };
    home.join("sessions")
}

/// Reads the registries in these folders, at most `entries_max` files. A folder or file reached in
/// two ways is read once.
pub fn read(folders: &[PathBuf], entries_max: usize) -> Registry {
    let mut registry = Registry::default();
    let mut visited = HashSet::new();
    for folder in folders {
        let state = match fs::read_dir(folder) {
            Ok(entries) => {
                let names = entries.flatten().map(|entry| entry.path());
                read_folder(&mut registry, &mut visited, names, entries_max);
                FolderState::Present
            }
            Err(error) if is_absent(&error) => FolderState::Missing,
            Err(_) => FolderState::Unreadable,
        };
        registry.folders.push((folder.clone(), state));
    }
    registry.entries.sort_by(|a, b| (a.pid, &a.path).cmp(&(b.pid, &b.path)));
    registry
}

fn read_folder(
    registry: &mut Registry,
    visited: &mut HashSet<(u64, u64)>,
    paths: impl Iterator<Item = PathBuf>,
    entries_max: usize,
) {
    for path in paths {
        let Some(pid) = pid_in_name(&path) else { continue };
        if visited.len() >= entries_max {
            registry.truncated = true;
            return;
        }
        match read_entry(&path, pid, visited) {
            Ok(Some(entry)) => registry.entries.push(entry),
            // Gone between the listing and the reading, or read already.
            Ok(None) => {}
            Err(why) => registry.unreadable.push(Unreadable { path, pid, why }),
        }
    }
}

/// `4242.json` names a process; no other name is opened.
fn pid_in_name(path: &Path) -> Option<u32> {
    let digits = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if all_digits { digits.parse().ok() } else { None }
}

fn read_entry(
    path: &Path,
    pid: u32,
    visited: &mut HashSet<(u64, u64)>,
) -> Result<Option<Entry>, String> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error.kind().to_string()),
    };
    if !visited.insert((meta.dev(), meta.ino())) {
        return Ok(None);
    }
    if !meta.is_file() {
        return Err("not a regular file".to_owned());
    }
    let bytes = match read_file(path) {
        Ok(bytes) => bytes,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error.kind().to_string()),
    };
    let mut entry = parse(&bytes, pid)?;
    path.clone_into(&mut entry.path);
    entry.owner = Some(meta.uid());
    Ok(Some(entry))
}

/// Opened without waiting: should the file have become a pipe, nobody is kept.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mut bytes = Vec::new();
    file.take(ENTRY_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The entry of process `pid` in these bytes, or why there is none.
pub fn parse(bytes: &[u8], pid: u32) -> Result<Entry, String> {
    if u64::try_from(bytes.len()).is_ok_and(|length| length > ENTRY_BYTES_MAX) {
        return Err("longer than any entry".to_owned());
    }
    let Ok(Value::Object(fields)) = serde_json::from_slice(bytes) else {
        return Err("no JSON object, or half of one".to_owned());
    };
    let said = number(&fields, "pid");
    if said != Some(i64::from(pid)) {
        return Err("the pid inside is not the one of its name".to_owned());
    }
    Ok(Entry {
        path: PathBuf::new(),
        owner: None,
        pid,
        proc_start: text(&fields, "procStart"),
        session_id: text(&fields, "sessionId"),
        cwd: text(&fields, "cwd"),
        status: text(&fields, "status").map(|word| Says::from_word(&word)),
        waiting_for: text(&fields, "waitingFor"),
        kind: text(&fields, "kind"),
        entrypoint: text(&fields, "entrypoint"),
        status_updated_ms: number(&fields, "statusUpdatedAt"),
        updated_ms: number(&fields, "updatedAt"),
        pid_domain: text(&fields, "pidDomain"),
    })
}

fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    match fields.get(name)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

fn number(fields: &Map<String, Value>, name: &str) -> Option<i64> {
    match fields.get(name)? {
        Value::Number(number) => number.as_i64().or_else(|| {
            let whole = number.as_f64()?.trunc();
            format!("{whole:.0}").parse().ok()
        }),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What became of an entry's claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The process is there, and is the one that wrote the entry.
    Proven(Process),
    /// It is not: ended, or its pid belongs to another process now.
    Disproved,
    /// It cannot be told.
    Unknown,
}

/// An entry with what `/proc` says to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The entry.
    pub entry: Entry,
    /// What became of its claim.
    pub claim: Claim,
    /// One sentence that says why.
    pub why: String,
}

/// Holds an entry against `/proc`. How old it is does not matter, nor what its process was started
/// as: a spare (`--bg-spare`) that was claimed is the session of its entry, and one that was not
/// writes none (formats/claude-and-codex.md, Claude Code 2.1.332).
pub fn judge(entry: &Entry, proc: &Proc) -> Judged {
    let (claim, why) = claim(entry, proc);
    Judged { entry: entry.clone(), claim, why: format!("entry of pid {}: {why}", entry.pid) }
}

fn claim(entry: &Entry, proc: &Proc) -> (Claim, String) {
    let domain = domain(entry, proc);
    if domain == Domain::Other {
        let named = entry.pid_domain.as_deref().unwrap_or_default();
        return (Claim::Unknown, format!("its pid is one of another domain, {named}"));
    }
    let Some(start) = entry.proc_start.as_deref().and_then(|text| text.parse::<u64>().ok()) else {
        return (Claim::Unknown, "it has no start time to tell its process by".to_owned());
    };
    // The same pid with the same start is the process, whatever the machine is called.
    let (claim, why) = match proc.look(entry.pid, entry.owner) {
        Seen::Unknown(why) => (Claim::Unknown, why.to_owned()),
        Seen::Missing => (Claim::Disproved, "there is no such process".to_owned()),
        Seen::Alive(process) | Seen::Exited(process) if process.id.start_ticks != Some(start) => {
            (Claim::Disproved, "the pid was given to another process since".to_owned())
        }
        Seen::Exited(_) => (Claim::Disproved, "the process has ended".to_owned()),
        Seen::Alive(process) => {
            return (Claim::Proven(process), "the process is there, same start".to_owned());
        }
    };
    if claim == Claim::Disproved && domain == Domain::OtherMachine {
        return (Claim::Unknown, "it was written on another machine".to_owned());
    }
    (claim, why)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Domain {
    /// Ours, or nothing speaks against it.
    Ours,
    /// Our namespace by number, but the first namespace has one number on every machine.
    OtherMachine,
    /// Not a pid of ours.
    Other,
}

fn domain(entry: &Entry, proc: &Proc) -> Domain {
    let Some(named) = entry.pid_domain.as_deref() else { return Domain::Ours };
    let Some((machine, namespace)) =
        named.strip_prefix("linux:").and_then(|rest| rest.split_once(':'))
    else {
        return Domain::Other;
    };
    let inode = namespace_inode(namespace);
    if inode.is_none() || inode != proc.scope().pid_ns {
        return Domain::Other;
    }
    match proc.scope().machine.as_deref() {
        Some(ours) if !machine.is_empty() && machine != ours => Domain::OtherMachine,
        Some(_) | None => Domain::Ours,
    }
}

#[cfg(test)]
mod tests;
