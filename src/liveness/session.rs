//! One look at one session: its earlier records and what is claimed now become its records.
//!
//! First the claims of this look are held against `/proc` (registry, lock, run), each with the
//! earlier record of the same process. Then the earlier records that no claim named: only those of
//! a process once verified here can say anything, and it must be proven gone, or twice seen
//! elsewhere, before they say that it left.

use super::locks::{Observed, file_ids, is_codex_lock};
use super::proc::{Process, ProcessId, Run, Seen};
use super::programs::is_server;
use super::record::{Fate, Record, Source};
use super::registry::{Claim, Entry, Judged, Says};
use super::{Child, Look, Observation, Probe, Session, Waiting, Working, probe};
use crate::lifecycle::work::{WORKING_MAX_MS, Written};

/// An entry must have named another session for this long, in two looks, ms.
const MOVED_AFTER_MS: i64 = 2_000;
/// A process that ends within this after it let go of a lock was on its way out, ms: Codex frees
/// its lock some seconds before it ends.
const EXIT_AFTER_FREE_MS: i64 = 60_000;

/// Looks at one session.
pub(super) fn observe(session: &Session, look: &Look<'_>) -> Observation {
    let locks = look.locks.as_ref().filter(|_| !session.locks.is_empty());
    let lock_seen = locks.map(|locks| locks.observe(&session.locks));
    let mut records = registry_records(session, look);
    records.extend(lock_records(session, lock_seen.as_ref(), look));
    records.extend(session.children.iter().map(|child| child_record(session, child, look)));
    for earlier in &session.earlier {
        let key = |record: &Record| (record.source, record.process);
        if !records.iter().any(|record| key(record) == key(earlier)) {
            records.extend(unclaimed(session, earlier, lock_seen.as_ref(), look));
        }
    }
    // A child that went on to another session holds this one no longer either.
    let moved: Vec<ProcessId> = records
        .iter()
        .filter(|record| record.fate == Fate::Moved)
        .map(|record| record.process)
        .collect();
    records.retain(|record| record.source != Source::Run || !moved.contains(&record.process));
    // The newest stay; of those that have left, an older one adds nothing.
    records.sort_by_key(|record| (record.fate.is_end(), -record.last_alive_ms.unwrap_or(0)));
    records.truncate(look.records_max);
    Observation {
        id: session.id,
        working: working(session, &records, look.now_ms),
        waiting: waiting(&records),
        sole: sole_holder(session, lock_seen.as_ref(), look),
        records,
        lock: lock_seen,
    }
}

fn sole_holder(session: &Session, lock_seen: Option<&Observed>, look: &Look<'_>) -> Option<u32> {
    let Some(Observed::Held(pids)) = lock_seen else { return None };
    let pid = *pids.first().filter(|_| pids.len() == 1)?;
    let own = file_ids(session.locks.iter().chain(&session.family_locks));
    (look.locks.as_ref()?.others_held(pid, &own) == Some(0)).then_some(pid)
}

fn earlier_of(session: &Session, source: Source, process: ProcessId) -> Option<&Record> {
    session.earlier.iter().find(|record| record.source == source && record.process == process)
}

/// A record in its first look.
fn fresh(source: Source, process: ProcessId, look: &Look<'_>) -> Record {
    Record {
        process,
        uid: None,
        source,
        fate: Fate::Unknown,
        fate_since_ms: look.now_ms,
        why: String::new(),
        scope: look.proc.scope().clone(),
        first_alive_ms: None,
        last_alive_ms: None,
        ended_ms: None,
        names_other_since_ms: None,
        started_ms: None,
        run: None,
        says: None,
        waiting_for: None,
        says_since_ms: None,
        ever_said: false,
        entrypoint: None,
        server: false,
    }
}

/// The record with what this look says of it; since when holds on while the fate is the same.
fn says(record: &Record, fate: Fate, why: String, now_ms: i64) -> Record {
    let fate_since_ms = if record.fate == fate { record.fate_since_ms } else { now_ms };
    Record {
        fate,
        fate_since_ms,
        why,
        names_other_since_ms: None,
        ended_ms: None,
        ..record.clone()
    }
}

/// The process has left: its time here ended when it was last seen here.
fn left(record: &Record, fate: Fate, why: String, now_ms: i64) -> Record {
    let ended_ms = record.last_alive_ms;
    Record { ended_ms, run: None, says: None, ..says(record, fate, why, now_ms) }
}

/// The process is verified on the session, now.
fn verified(record: &Record, process: &Process, look: &Look<'_>) -> Record {
    Record {
        uid: process.uid.or(record.uid),
        scope: look.proc.scope().clone(),
        first_alive_ms: record.first_alive_ms.or(Some(look.now_ms)),
        last_alive_ms: Some(look.now_ms),
        // The first reckoning stays: the next may differ by a second, or by a step of the clock.
        started_ms: record.started_ms.or(process.started_ms),
        run: Some(process.run),
        ..record.clone()
    }
}

fn registry_records(session: &Session, look: &Look<'_>) -> Vec<Record> {
    if !session.in_registry {
        return Vec::new();
    }
    let named = look.by_session.get(session.native_id.as_str());
    let named = named.into_iter().flatten();
    named.map(|judged| registry_record(session, judged, look)).collect()
}

fn registry_record(session: &Session, judged: &Judged, look: &Look<'_>) -> Record {
    let entry = &judged.entry;
    let start_ticks = entry.proc_start.as_deref().and_then(|text| text.parse().ok());
    let process = ProcessId { pid: entry.pid, start_ticks };
    let known = earlier_of(session, Source::Registry, process);
    let record = known.cloned().unwrap_or_else(|| fresh(Source::Registry, process, look));
    let why = judged.why.clone();
    match &judged.claim {
        Claim::Unknown => {
            let record = Record { run: None, says: None, ..record };
            says(&record, Fate::Unknown, why, look.now_ms)
        }
        Claim::Disproved if record.was_verified() => gone(session, &record, look),
        Claim::Disproved => says(&record, Fate::Disproved, why, look.now_ms),
        Claim::Proven(process) => {
            let record = with_entry(&record, entry);
            if let Some(rival) = rival(session, entry, look) {
                let why = format!(
                    "pid {} says busy, but the turn here is not open, and session {rival} of the \
                     same directory went on without an entry",
                    entry.pid
                );
                let doubted = Record { run: Some(process.run), ..record };
                return says(&doubted, Fate::Suspect, why, look.now_ms);
            }
            let record = verified(&record, process, look);
            says(&record, Fate::Dedicated, why, look.now_ms)
        }
    }
}

fn with_entry(record: &Record, entry: &Entry) -> Record {
    Record {
        says: entry.status,
        waiting_for: entry.waiting_for.clone().filter(|_| entry.status == Some(Says::Waiting)),
        says_since_ms: entry.status_updated_ms,
        ever_said: record.ever_said || entry.status.is_some(),
        entrypoint: entry.entrypoint.clone(),
        uid: record.uid.or(entry.owner),
        ..record.clone()
    }
}

/// The session that a busy entry may be working on instead of the one it names: after a `/resume`
/// some versions do not rewrite it. No rival where an entry could not be read: it may name it.
fn rival<'a>(session: &Session, entry: &Entry, look: &Look<'a>) -> Option<&'a str> {
    let since_ms = entry.status_updated_ms?;
    let went_on = |at_ms: Option<i64>| at_ms.is_some_and(|at_ms| at_ms > since_ms);
    let doubted = entry.status == Some(Says::Busy)
        && !session.written.turn_open
        && !went_on(session.last_activity_ms)
        && look.registry.is_whole();
    let cwd = entry.cwd.as_deref().or(session.cwd.as_deref()).filter(|_| doubted)?;
    let neighbours = look.by_cwd.get(cwd)?;
    let rival = neighbours.iter().find(|other| {
        other.id != session.id
            && went_on(other.last_activity_ms)
            && !look.by_session.contains_key(other.native_id.as_str())
    });
    rival.map(|other| other.native_id.as_str())
}

fn lock_records(session: &Session, lock_seen: Option<&Observed>, look: &Look<'_>) -> Vec<Record> {
    let (Some(Observed::Held(pids)), Some(locks)) = (lock_seen, &look.locks) else {
        return Vec::new();
    };
    let own = file_ids(session.locks.iter().chain(&session.family_locks));
    let record = |pid: u32| {
        let process = match look.proc.look(pid, Some(look.proc.scope().uid)) {
            Seen::Alive(process) => process,
            // It holds the lock, so it is there, whoever may see it.
            Seen::Unknown(_) => Process {
                id: ProcessId { pid, start_ticks: None },
                started_ms: None,
                run: Run::Sleeping,
                uid: None,
            },
            // It ended between the two looks.
            Seen::Exited(_) | Seen::Missing => return None,
        };
        let known = earlier_of(session, Source::Lock, process.id);
        let known = known.cloned().unwrap_or_else(|| fresh(Source::Lock, process.id, look));
        let record = verified(&known, &process, look);
        let others = locks.others_held(pid, &own);
        let named = look.proc.argv(pid).is_some_and(|argv| is_server(&argv));
        let server = record.server || named || others.is_some_and(|others| others > 0);
        let record = Record { server, ..record };
        let (fate, why) = match others {
            Some(0) if named => (Fate::Shared, format!("loaded by pid {pid}, a server")),
            Some(0) => (Fate::Dedicated, format!("pid {pid} holds its lock, and no other")),
            Some(others) => {
                (Fate::Shared, format!("loaded by pid {pid}, which holds {others} more"))
            }
            None => (Fate::Shared, format!("pid {pid} holds its lock, what else is unknown")),
        };
        Some(says(&record, fate, why, look.now_ms))
    };
    pids.iter().filter_map(|pid| record(*pid)).collect()
}

fn child_record(session: &Session, child: &Child, look: &Look<'_>) -> Record {
    let known = earlier_of(session, Source::Run, child.process);
    let record = known.cloned().unwrap_or_else(|| Record {
        uid: child.uid,
        scope: child.scope.clone(),
        // The wrapper saw it.
        first_alive_ms: Some(child.seen_ms),
        last_alive_ms: Some(child.seen_ms),
        ..fresh(Source::Run, child.process, look)
    });
    if record.fate.is_end() {
        return record;
    }
    let pid = child.process.pid;
    match probe(child.process, record.uid, &record.scope, look.proc) {
        Probe::Alive(process) => {
            let record = verified(&record, &process, look);
            let why = format!("pid {pid} runs under `lullwatch run`");
            says(&record, Fate::Dedicated, why, look.now_ms)
        }
        Probe::Gone(why) => left(&record, Fate::Gone, why, look.now_ms),
        Probe::Unknown(why) => unknown(&record, why, look),
    }
}

fn unknown(record: &Record, why: &str, look: &Look<'_>) -> Record {
    let why = format!("pid {}: {why}", record.process.pid);
    let record = Record { run: None, says: None, ..record.clone() };
    says(&record, Fate::Unknown, why, look.now_ms)
}

/// A process once verified, whose entry is disproved now: gone, if it was seen in our scope.
fn gone(session: &Session, record: &Record, look: &Look<'_>) -> Record {
    if record.fate.is_end() {
        return record.clone();
    }
    match probe(record.process, record.uid, &record.scope, look.proc) {
        Probe::Gone(why) => left(record, Fate::Gone, why, look.now_ms),
        Probe::Unknown(why) => unknown(record, why, look),
        Probe::Alive(process) => elsewhere(session, record, &process, look),
    }
}

/// An earlier record that no claim of this look named.
fn unclaimed(
    session: &Session,
    earlier: &Record,
    lock_seen: Option<&Observed>,
    look: &Look<'_>,
) -> Option<Record> {
    if !earlier.was_verified() {
        return None;
    }
    if earlier.fate.is_end() {
        return Some(earlier.clone());
    }
    match probe(earlier.process, earlier.uid, &earlier.scope, look.proc) {
        Probe::Gone(why) => {
            let free_ms = look.now_ms.saturating_sub(earlier.fate_since_ms);
            let let_go = earlier.fate == Fate::Unloaded && free_ms > EXIT_AFTER_FREE_MS;
            (!let_go).then(|| left(earlier, Fate::Gone, why, look.now_ms))
        }
        Probe::Unknown(_) if earlier.fate == Fate::Unloaded => Some(earlier.clone()),
        Probe::Unknown(why) => Some(unknown(earlier, why, look)),
        Probe::Alive(process) => Some(match earlier.source {
            Source::Registry => elsewhere(session, earlier, &process, look),
            Source::Lock => without_lock(session, earlier, &process, lock_seen, look),
            Source::Run => {
                let record = verified(earlier, &process, look);
                says(&record, Fate::Dedicated, earlier.why.clone(), look.now_ms)
            }
        }),
    }
}

/// A process of the registry that is alive, and that no entry puts on this session any more.
fn elsewhere(session: &Session, record: &Record, process: &Process, look: &Look<'_>) -> Record {
    let is_its_own = |judged: &&&Judged| match &judged.claim {
        Claim::Proven(proven) => proven.id == process.id,
        Claim::Disproved | Claim::Unknown => false,
    };
    let mut entries = look.by_pid.get(&process.id.pid).into_iter().flatten();
    let Some(judged) = entries.find(is_its_own) else {
        return unknown(record, "alive, but its entry is missing or cannot be read", look);
    };
    let Some(other) = judged.entry.session_id.as_deref().filter(|id| *id != session.native_id)
    else {
        return unknown(record, "alive, but its entry names no session", look);
    };
    if session.written.turn_open {
        return unknown(record, "its entry names another session, but the turn is open", look);
    }
    let doubted = |other: &&Session| rival(other, &judged.entry, look).is_some();
    if look.by_native.get(other).is_some_and(doubted) {
        return unknown(record, "its entry names another session, which is doubted", look);
    }
    let since_ms = record.names_other_since_ms.unwrap_or(look.now_ms);
    if look.now_ms.saturating_sub(since_ms) < MOVED_AFTER_MS {
        let waits = unknown(record, "its entry names another session, seen once so far", look);
        return Record { names_other_since_ms: Some(since_ms), ..waits };
    }
    let why = format!("pid {} went on to session {other}", process.id.pid);
    left(record, Fate::Moved, why, look.now_ms)
}

/// A process that is alive, and does not hold the lock it held.
fn without_lock(
    session: &Session,
    record: &Record,
    process: &Process,
    lock_seen: Option<&Observed>,
    look: &Look<'_>,
) -> Record {
    let pid = process.id.pid;
    let freed = match lock_seen {
        Some(Observed::Free | Observed::NoFile) => true,
        Some(Observed::Held(pids)) => !pids.is_empty() && !pids.contains(&pid),
        Some(Observed::NoFolder | Observed::Unknown(_)) | None => false,
    };
    if !freed {
        return unknown(record, "alive, but who holds the lock is unknown", look);
    }
    let of_codex = session.locks.iter().any(|lock| is_codex_lock(lock));
    let held = matches!(lock_seen, Some(Observed::Held(_)));
    if record.server && of_codex && !held && !session.written.turn_open {
        let why = format!("pid {pid}, a server, has unloaded it and lives on");
        return left(record, Fate::Moved, why, look.now_ms);
    }
    let why = format!("pid {pid} let go of the lock and lives on: unloaded, which is no end");
    says(record, Fate::Unloaded, why, look.now_ms)
}

/// A sign of life: a verified process that says it is at work on this session.
fn working(session: &Session, records: &[Record], now_ms: i64) -> Option<Working> {
    let quiet_ms = now_ms.saturating_sub(session.last_activity_ms?);
    if quiet_ms > WORKING_MAX_MS {
        return None;
    }
    let holds = |record: &&Record| record.source == Source::Registry && record.fate.holds();
    let several_writers = records.iter().filter(holds).count() > 1;
    let written = Written { several_writers, ..session.written };
    records.iter().filter(holds).find_map(|record| {
        let pid = record.process.pid;
        if !record.run.is_some_and(Run::can_work) {
            return None;
        }
        let sdk = record.entrypoint.as_deref().filter(|name| name.starts_with("sdk-"));
        let (who, since_ms) = match (record.says, sdk) {
            (Some(Says::Busy), _) => ("says busy".to_owned(), record.says_since_ms),
            (None, Some(name)) if !record.ever_said => (format!("({name}) is alive"), None),
            (Some(Says::Shell | Says::Idle | Says::Waiting | Says::Other) | None, _) => {
                return None;
            }
        };
        let on = match (written.turn_open, written.child_turn_open, several_writers) {
            (true, _, _) => "and the turn is open",
            (false, true, _) => "and a sub-agent's turn is open",
            (false, false, true) => "and another process writes here too",
            (false, false, false) => "since after the last record",
        };
        let why = format!("pid {pid} {who}, {on}");
        written.busy_is_work(since_ms).then_some(Working { pid, why })
    })
}

fn waiting(records: &[Record]) -> Option<Waiting> {
    let waits = |record: &&Record| record.fate.holds() && record.says == Some(Says::Waiting);
    records.iter().find(waits).map(|record| Waiting {
        pid: record.process.pid,
        what: record.waiting_for.clone(),
        since_ms: record.says_since_ms,
    })
}
