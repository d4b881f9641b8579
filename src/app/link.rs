//! Which session a run has opened. `docs/runs.md` says the same in words; the first rule that finds
//! one holds, and a link once made stays.
//!
//! 1. Claude's registry: a proven entry of the child, or of a process below it.
//! 2. A session lock that the child, or a process below it, holds.
//! 3. Once the child has ended: the one run of an agent in a directory, and the first session of
//!    that agent that began there while it ran.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::liveness::family::family;
use crate::liveness::locks::{Locks, Observed};
use crate::liveness::proc::{Proc, ProcessId};
use crate::liveness::registry::{self, Claim};
use crate::liveness::scope::Scope;
use crate::liveness::{Limits, Probe, probe};
use crate::mirror::discover::Root;
use crate::source::Agent;
use crate::store::runs::RunRow;
use crate::store::runs::links::{self, Among, Candidate};
use crate::store::{Result, Tx};

/// A session may be stamped this much before the run that opened it, ms: clocks are read in turn.
const SLACK_MS: i64 = 2_000;
/// Runs looked at in one pass, newest first.
const RUNS_MAX: i64 = 100;

/// Where a run was started.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Place {
    #[serde(flatten)]
    scope: Scope,
    cwd: Option<String>,
}

/// This process's place, as a run keeps it.
pub fn place_here(proc: &Proc) -> String {
    let cwd = std::env::current_dir().ok().map(|path| path.to_string_lossy().into_owned());
    let place = Place { scope: proc.scope().clone(), cwd };
    serde_json::to_string(&place).unwrap_or_else(|_| "{}".to_owned())
}

/// The scope in which a run was recorded.
pub fn scope_of(run: &RunRow) -> Scope {
    serde_json::from_str::<Place>(&run.scope).unwrap_or_default().scope
}

/// The process of a row, as it is looked for.
pub fn process_of((pid, start): &(i64, Option<String>)) -> Option<ProcessId> {
    let start_ticks = start.as_deref().and_then(|start| start.parse().ok());
    Some(ProcessId { pid: u32::try_from(*pid).ok()?, start_ticks })
}

/// A link that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The run's row id.
    pub run: i64,
    /// The session's agent.
    pub agent: String,
    /// Its native id.
    pub native_id: String,
}

/// The runs that have no session yet and may still get one, newest first.
pub fn open(tx: &Tx<'_>, host: &str) -> Result<Vec<RunRow>> {
    links::unlinked(tx, host, RUNS_MAX)
}

/// Rules 1 and 2, for a run whose child lives.
pub fn by_process(tx: &Tx<'_>, row: &RunRow, roots: &[Root], proc: &Proc) -> Result<Option<Link>> {
    let Some(child) = row.child.as_ref().and_then(process_of) else { return Ok(None) };
    let scope = scope_of(row);
    if !matches!(probe(child, Some(scope.uid), &scope, proc), Probe::Alive(_)) {
        return Ok(None);
    }
    let limits = Limits::default();
    let members = family(proc, child.pid, limits.processes_max);
    let found = match in_registry(&members, child.pid, roots, proc, &limits) {
        Some(native) => Some((Agent::Claude.word().to_owned(), native)),
        None => by_lock(tx, &row.host, &members, proc, &limits)?,
    };
    Ok(found.map(|(agent, native_id)| Link { run: row.id, agent, native_id }))
}

/// The session that an entry of one of these processes names: the child's own before another's.
fn in_registry(
    members: &BTreeSet<u32>,
    child: u32,
    roots: &[Root],
    proc: &Proc,
    limits: &Limits,
) -> Option<String> {
    let claude = roots.iter().filter(|root| root.agent == Agent::Claude);
    let folders: Vec<PathBuf> = claude.map(|root| registry::folder_of(&root.path)).collect();
    let entries = registry::read(&folders, limits.entries_max).entries;
    let own = entries.iter().filter(|entry| members.contains(&entry.pid)).filter(|entry| {
        matches!(registry::judge(entry, proc).claim, Claim::Proven(_)) && entry.session_id.is_some()
    });
    own.min_by_key(|entry| entry.pid != child)?.session_id.clone()
}

/// The top-level session whose lock one of these processes holds; none if they hold several, for
/// then they are a server.
fn by_lock(
    tx: &Tx<'_>,
    host: &str,
    members: &BTreeSet<u32>,
    proc: &Proc,
    limits: &Limits,
) -> Result<Option<(String, String)>> {
    let open = members.iter().filter_map(|pid| proc.lock_files(*pid, limits.fds_max)).flatten();
    let paths: BTreeSet<PathBuf> = open.map(|file| file.path).collect();
    if paths.is_empty() {
        return Ok(None);
    }
    let locks = Locks::look(proc, limits.processes_max, limits.fds_max);
    let mut found = BTreeSet::new();
    for path in paths {
        let held = match locks.observe(std::slice::from_ref(&path)) {
            Observed::Held(pids) => !pids.is_disjoint(members),
            Observed::Free | Observed::Unknown(_) | Observed::NoFile => false,
        };
        if held {
            found.extend(session_of_lock(tx, host, &path)?);
        }
    }
    Ok(if found.len() == 1 { found.pop_first() } else { None })
}

/// The session that a lock file is of, once it is mirrored; a sub-agent's is nobody's.
fn session_of_lock(tx: &Tx<'_>, host: &str, path: &Path) -> Result<Vec<(String, String)>> {
    let Some(folder) = path.parent() else { return Ok(Vec::new()) };
    if path.file_name() == Some(OsStr::new("session.lock")) {
        return links::in_folder(tx, host, folder.as_os_str().as_bytes());
    }
    let thread = path.file_stem().and_then(OsStr::to_str);
    let Some(thread) = thread.filter(|_| folder.ends_with("thread-writer-locks")) else {
        return Ok(Vec::new());
    };
    let codex = Agent::Codex.word();
    let known = links::is_top_level(tx, host, codex, thread)?;
    Ok(if known { vec![(codex.to_owned(), thread.to_owned())] } else { Vec::new() })
}

/// Rule 3, for all of these runs. Where several could claim a session, none does.
pub fn by_place(
    tx: &Tx<'_>,
    host: &str,
    runs: &[RunRow],
    among: Among,
    now_ms: i64,
) -> Result<Vec<Link>> {
    let open: Vec<Claimant> = runs.iter().filter_map(|row| claimant(row, now_ms)).collect();
    let Some(from_ms) = open.iter().map(|run| run.from_ms).min() else { return Ok(Vec::new()) };
    let mut taken = BTreeSet::new();
    let mut found = Vec::new();
    for candidate in links::candidates(tx, host, among, from_ms)? {
        let mut claims = open.iter().filter(|run| run.may_have_opened(&candidate));
        let (Some(first), None) = (claims.next(), claims.next()) else { continue };
        if taken.insert(first.id) {
            let Candidate { agent, native_id, .. } = candidate;
            found.push(Link { run: first.id, agent, native_id });
        }
    }
    Ok(found)
}

/// A run that may claim a session by its place.
struct Claimant {
    id: i64,
    agent: String,
    cwd: String,
    from_ms: i64,
    to_ms: i64,
}

impl Claimant {
    fn may_have_opened(&self, session: &Candidate) -> bool {
        session.agent == self.agent
            && session.cwd.as_deref() == Some(self.cwd.as_str())
            && (self.from_ms..=self.to_ms).contains(&session.began_ms)
    }
}

fn claimant(row: &RunRow, now_ms: i64) -> Option<Claimant> {
    let place: Place = serde_json::from_str(&row.scope).ok()?;
    Some(Claimant {
        id: row.id,
        agent: row.agent.clone()?,
        cwd: place.cwd?,
        from_ms: row.started_ms?.saturating_sub(SLACK_MS),
        to_ms: row.ended_ms.unwrap_or(now_ms).saturating_add(SLACK_MS),
    })
}
