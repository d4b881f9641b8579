//! Process evidence: which processes are on which session, what they say, and who has left.
//!
//! - `scope`: where an observation holds; `proc`: processes; `registry`: Claude's entries;
//!   `locks`: who holds a lock, without taking it.
//! - `record`: what is kept of a process from look to look, and what records say together.
//! - `session`: one look at one session: earlier records and new claims in, records out.
//! - `hooks`: what the agents' hooks leave in the inbox, and the settings that make them.
//! - `family`: a process and its descendants; `file_system`: whose locks can be seen.
//! - `programs`: running programs by name, for logs that have no lock.
//!
//! All of it is plain data with a sentence that says why; nothing here decides a status, and
//! nothing is written but the inbox. Unknown is a value of its own, and never means gone. The room
//! knows no transcripts, no store and no clock.

pub mod family;
pub mod file_system;
pub mod hooks;
pub mod locks;
pub mod proc;
pub mod programs;
pub mod record;
pub mod registry;
pub mod scope;
mod session;
#[cfg(test)]
mod testing;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use locks::{Locks, Observed};
use proc::{Proc, ProcessId, Seen, Sight};
use record::Record;
use registry::{Claim, FolderState, Judged, Registry};
use scope::{Relation, Scope};

use crate::lifecycle::work::Written;

/// Bounds of one look. Time is bounded by them: nothing here waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Entries of the registries.
    pub entries_max: usize,
    /// Processes gone through where the table of locks does not do.
    pub processes_max: usize,
    /// Open files of one process.
    pub fds_max: usize,
    /// Records kept of one session.
    pub records_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries_max: 4_096, processes_max: 32_768, fds_max: 4_096, records_max: 16 }
    }
}

/// A session that is looked at, with what its transcript says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Session {
    /// The caller's key.
    pub id: i64,
    /// Its id in the registry.
    pub native_id: String,
    /// Its working directory.
    pub cwd: Option<String>,
    /// What its transcript says of the work on it.
    pub written: Written,
    /// Its newest activity, sub-agents' too, ms.
    pub last_activity_ms: Option<i64>,
    /// Its agent keeps the registry.
    pub in_registry: bool,
    /// Where its lock may lie.
    pub locks: Vec<PathBuf>,
    /// Locks of its sub-agents and internal threads: held with its own, they make no server.
    pub family_locks: Vec<PathBuf>,
    /// Children of `lullwatch run` that opened it.
    pub children: Vec<Child>,
    /// What the look before said: all its records.
    pub earlier: Vec<Record>,
}

/// The child of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// The process.
    pub process: ProcessId,
    /// Its user.
    pub uid: Option<u32>,
    /// Where it runs.
    pub scope: Scope,
    /// When the wrapper last saw it alive, ms.
    pub seen_ms: i64,
}

/// What is asked of one look.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The registries, just read.
    pub registry: &'a Registry,
    /// The sessions: every one that is not terminal, that an entry names or that has records, and
    /// of Claude also those lately active, for an entry may name the wrong one of a directory.
    pub sessions: &'a [Session],
}

/// A process says that it works on a session: a sign of life, now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Working {
    /// Its pid.
    pub pid: u32,
    /// One sentence that says why.
    pub why: String,
}

/// A process says that it waits for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its pid.
    pub pid: u32,
    /// What for, in its words; `input needed` is a question, anything else an approval.
    pub what: Option<String>,
    /// Since when, ms.
    pub since_ms: Option<i64>,
}

/// What a look says of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The caller's key.
    pub id: i64,
    /// All its records: they replace the earlier ones.
    pub records: Vec<Record>,
    /// Its lock; `None` if it has no place for one.
    pub lock: Option<Observed>,
    /// A verified process works on it.
    pub working: Option<Working>,
    /// A verified process waits for the user.
    pub waiting: Option<Waiting>,
    /// The one process that holds its lock, and no other session's: what it starts is this one's.
    pub sole: Option<u32>,
}

impl Observation {
    /// The process that holds the lock, and when it started, ms; of several the oldest, for only
    /// one that was there before a bracket can be at it.
    pub fn lock_holder(&self) -> Option<(u32, Option<i64>)> {
        let holders = self
            .records
            .iter()
            .filter(|record| record.source == record::Source::Lock && record.fate.holds());
        let holders = holders.map(|record| (record.process.pid, record.started_ms));
        holders.min_by_key(|(_, started)| started.unwrap_or(i64::MAX))
    }
}

/// Something about the look itself, for `doctor` and the warnings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What kind.
    pub code: &'static str,
    /// Of what.
    pub subject: String,
    /// The sentence.
    pub text: String,
}

/// What a look says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observations {
    /// The sessions about which there is anything to say.
    pub sessions: Vec<Observation>,
    /// Entries of live processes that name a session nobody asked about: it said nothing yet.
    pub strays: Vec<Judged>,
    /// What could not be looked at.
    pub notes: Vec<Note>,
}

/// Looks at the processes of these sessions, once.
pub fn observe(request: &Request<'_>, proc: &Proc, now_ms: i64, limits: &Limits) -> Observations {
    let judged: Vec<Judged> =
        request.registry.entries.iter().map(|entry| registry::judge(entry, proc)).collect();
    let asks_locks = request.sessions.iter().any(|session| !session.locks.is_empty());
    let look = Look {
        proc,
        now_ms,
        registry: request.registry,
        by_session: index(&judged, |judged| judged.entry.session_id.as_deref()),
        by_pid: index(&judged, |judged| Some(judged.entry.pid)),
        by_cwd: by_cwd(request.sessions),
        by_native: request
            .sessions
            .iter()
            .filter(|session| session.in_registry)
            .map(|session| (session.native_id.as_str(), session))
            .collect(),
        locks: asks_locks.then(|| Locks::look(proc, limits.processes_max, limits.fds_max)),
        records_max: limits.records_max,
    };
    let sessions = request.sessions.iter().filter_map(|session| {
        let observation = session::observe(session, &look);
        let silent = observation.records.is_empty()
            && observation.lock.is_none()
            && session.earlier.is_empty();
        (!silent).then_some(observation)
    });
    let sessions = sessions.collect();
    let asked: BTreeSet<&str> = request.sessions.iter().map(|s| s.native_id.as_str()).collect();
    let is_stray = |judged: &&Judged| {
        let named = judged.entry.session_id.as_deref();
        matches!(judged.claim, Claim::Proven(_)) && named.is_some_and(|id| !asked.contains(id))
    };
    let strays = judged.iter().filter(is_stray).cloned().collect();
    Observations { sessions, strays, notes: notes(request.registry, proc) }
}

/// What one look at one session may consult.
struct Look<'a> {
    proc: &'a Proc,
    now_ms: i64,
    registry: &'a Registry,
    by_session: HashMap<&'a str, Vec<&'a Judged>>,
    by_pid: HashMap<u32, Vec<&'a Judged>>,
    /// The sessions of a directory, of agents with a registry.
    by_cwd: HashMap<&'a str, Vec<&'a Session>>,
    by_native: HashMap<&'a str, &'a Session>,
    locks: Option<Locks<'a>>,
    records_max: usize,
}

fn index<'a, Key: std::hash::Hash + Eq>(
    judged: &'a [Judged],
    key: impl Fn(&'a Judged) -> Option<Key>,
) -> HashMap<Key, Vec<&'a Judged>> {
    let mut index: HashMap<Key, Vec<&Judged>> = HashMap::new();
    for one in judged {
        if let Some(key) = key(one) {
            index.entry(key).or_default().push(one);
        }
    }
    index
}

fn by_cwd(sessions: &[Session]) -> HashMap<&str, Vec<&Session>> {
    let mut index: HashMap<&str, Vec<&Session>> = HashMap::new();
    for session in sessions.iter().filter(|session| session.in_registry) {
        if let Some(cwd) = session.cwd.as_deref() {
            index.entry(cwd).or_default().push(session);
        }
    }
    index
}

fn notes(registry: &Registry, proc: &Proc) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut add = |code, subject: String, text: &str| {
        notes.push(Note { code, subject, text: text.to_owned() });
    };
    match proc.sight() {
        Sight::Whole => {}
        Sight::Hidden => add(
            "proc_hidden",
            "/proc".to_owned(),
            "/proc hides the processes of others: a process not seen is unknown, not gone",
        ),
        Sight::None => add(
            "proc_missing",
            "/proc".to_owned(),
            "there is no /proc: no process can be looked at, silence alone decides",
        ),
    }
    for (folder, state) in &registry.folders {
        match state {
            FolderState::Unreadable => add(
                "registry_unreadable",
                folder.display().to_string(),
                "the registry cannot be read: what it would say is unknown",
            ),
            FolderState::Present | FolderState::Missing => {}
        }
    }
    if registry.truncated {
        add("registry_truncated", String::new(), "more registry entries than are read in one look");
    }
    notes
}

/// What became of a process that was seen earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// It is still there.
    Alive(proc::Process),
    /// It is gone, and how that is known.
    Gone(String),
    /// It cannot be told, and why.
    Unknown(&'static str),
}

/// Looks for a process that was seen in scope `then`, whose user was `uid`.
pub fn probe(process: ProcessId, uid: Option<u32>, then: &Scope, proc: &Proc) -> Probe {
    let pid = process.pid;
    match proc.scope().relation(then) {
        Relation::Same => {}
        Relation::OtherBoot => {
            return Probe::Gone(format!("pid {pid} is gone: the host was started again since"));
        }
        Relation::Other => {
            return Probe::Unknown(
                "it was seen on another host, in another container or as \
                                   another user",
            );
        }
    }
    match proc.look(pid, uid) {
        Seen::Unknown(why) => Probe::Unknown(why),
        Seen::Missing => Probe::Gone(format!("pid {pid} is gone")),
        Seen::Alive(_) | Seen::Exited(_) if process.start_ticks.is_none() => {
            Probe::Unknown("its start is not known, so its pid proves nothing")
        }
        Seen::Alive(seen) | Seen::Exited(seen) if seen.id != process => {
            Probe::Gone(format!("pid {pid} is gone: its number belongs to another process"))
        }
        Seen::Exited(_) => Probe::Gone(format!("pid {pid} has ended")),
        Seen::Alive(seen) => Probe::Alive(seen),
    }
}

#[cfg(test)]
mod tests;
