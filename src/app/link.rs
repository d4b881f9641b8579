//! Which session a run has opened. `docs/runs.md` says the same in words; the first rule that finds
//! one holds, and a link once made stays.
//!
//! 1. Claude's registry: a proven entry of the child, or of a process below it.
//! 2. A session lock that the child, or a process below it, holds.
//! 3. Once the child has ended: the one run of an agent in a directory, and the first session of
//!    that agent that began there while it ran; or else one that is stamped a moment before.

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

/// A session may be stamped this much before the run that opened it, ms: some stamps are cut to the
/// second, and clocks are read in turn.
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
            Observed::Free | Observed::Unknown(_) | Observed::NoFile | Observed::NoFolder => false,
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
///
/// A session that began at or after a run's start goes before one that is stamped before it: that
/// one may well be another's. So it is taken only for a run that ended before `read_ms`, up to
/// which everything that was written has been read.
pub fn by_place(
    tx: &Tx<'_>,
    host: &str,
    runs: &[RunRow],
    among: Among,
    now_ms: i64,
    read_ms: Option<i64>,
) -> Result<Vec<Link>> {
    let open: Vec<Claimant> = runs.iter().filter_map(|row| claimant(row, now_ms)).collect();
    let Some(start_ms) = open.iter().map(|run| run.start_ms).min() else { return Ok(Vec::new()) };
    let candidates = links::candidates(tx, host, among, start_ms.saturating_sub(SLACK_MS))?;
    Ok(claims(&open, candidates, read_ms))
}

fn claims(open: &[Claimant], candidates: Vec<Candidate>, read_ms: Option<i64>) -> Vec<Link> {
    let mut served = BTreeSet::new();
    let mut found = Vec::new();
    let mut left = candidates;
    for began in [Began::Since, Began::Before] {
        let mut rest = Vec::new();
        for candidate in left {
            let may = |run: &&Claimant| {
                let whole = began == Began::Since || read_ms.is_some_and(|at| at > run.end_ms);
                whole && !served.contains(&run.id) && run.may_have_opened(&candidate, began)
            };
            let mut claims = open.iter().filter(may);
            let (Some(first), None) = (claims.next(), claims.next()) else {
                rest.push(candidate);
                continue;
            };
            served.insert(first.id);
            let Candidate { agent, native_id, .. } = candidate;
            found.push(Link { run: first.id, agent, native_id });
        }
        left = rest;
    }
    found
}

/// When a session began, by its first stamp, beside the start of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Began {
    Since,
    Before,
}

/// A run that may claim a session by its place.
struct Claimant {
    id: i64,
    agent: String,
    cwd: String,
    start_ms: i64,
    end_ms: i64,
}

impl Claimant {
    fn may_have_opened(&self, session: &Candidate, began: Began) -> bool {
        let span = match began {
            Began::Since => self.start_ms..self.end_ms.saturating_add(SLACK_MS + 1),
            Began::Before => self.start_ms.saturating_sub(SLACK_MS)..self.start_ms,
        };
        session.agent == self.agent
            && session.cwd.as_deref() == Some(self.cwd.as_str())
            && span.contains(&session.began_ms)
    }
}

fn claimant(row: &RunRow, now_ms: i64) -> Option<Claimant> {
    let place: Place = serde_json::from_str(&row.scope).ok()?;
    Some(Claimant {
        id: row.id,
        agent: row.agent.clone()?,
        cwd: place.cwd?,
        start_ms: row.started_ms?,
        end_ms: row.exit_ms.or(row.ended_ms).unwrap_or(now_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: i64, start_ms: i64, end_ms: i64) -> Claimant {
        Claimant { id, agent: "codex".to_owned(), cwd: "/w".to_owned(), start_ms, end_ms }
    }

    /// Which run claims which session, of sessions that began then.
    fn linked(open: &[Claimant], began_ms: &[i64], read_ms: Option<i64>) -> Vec<(i64, i64)> {
        let session = |at: &i64| Candidate {
            agent: "codex".to_owned(),
            native_id: at.to_string(),
            cwd: Some("/w".to_owned()),
            began_ms: *at,
        };
        let found = claims(open, began_ms.iter().map(session).collect(), read_ms);
        found.into_iter().map(|link| (link.run, link.native_id.parse().unwrap())).collect()
    }

    #[test]
    fn a_session_since_the_start_goes_before_one_from_a_moment_earlier() {
        let one = [run(1, 10_000, 20_000)];
        let read = Some(20_001);
        assert_eq!(linked(&one, &[9_700, 10_300, 11_000], read), [(1, 10_300)]);
        assert_eq!(linked(&one, &[9_700, 10_000], read), [(1, 10_000)]);
        assert_eq!(linked(&one, &[7_999, 22_001], read), []);
        assert_eq!(linked(&one, &[8_000], read), [(1, 8_000)]);
        assert_eq!(linked(&one, &[22_000], read), [(1, 22_000)]);
    }

    #[test]
    fn one_from_before_is_taken_only_when_all_of_the_run_has_been_read() {
        let one = [run(1, 10_000, 20_000)];
        assert_eq!(linked(&one, &[9_700], None), []);
        assert_eq!(linked(&one, &[9_700], Some(20_000)), []);
        assert_eq!(linked(&one, &[9_700], Some(20_001)), [(1, 9_700)]);
    }

    #[test]
    fn of_several_runs_that_could_claim_a_session_none_does() {
        let two = [run(1, 10_000, 20_000), run(2, 10_500, 20_500)];
        let read = Some(30_000);
        assert_eq!(linked(&two, &[11_000, 11_500], read), []);
        // Who has one makes no further claim.
        assert_eq!(linked(&two, &[10_100, 11_000], read), [(1, 10_100), (2, 11_000)]);
    }
}
