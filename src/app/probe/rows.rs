//! From what a look says of a session to the rows that are stored of it, and back; pure.

use crate::liveness::Observation;
use crate::liveness::locks::Observed;
use crate::liveness::programs::Programs;
use crate::liveness::record::{Record, Source, standing};
use crate::liveness::scope::Scope;
use crate::store::evidence::{Candidate, Evidence};

/// Two reckonings of one start may differ by this, ms.
const START_SLACK_MS: u64 = 2_000;

/// A child of `lullwatch run` that its wrapper saw end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exited {
    /// Pid and start, as records have them.
    pub(super) subject: String,
    /// Its pid.
    pub(super) pid: u32,
    /// When it ended, ms.
    pub(super) ended_ms: i64,
    /// How, in words.
    pub(super) how: String,
    /// Where it ran (JSON).
    pub(super) scope: String,
}

/// Who can be at the log of a dsh session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Writer {
    /// It has a lock.
    Lock(Observed),
    /// It has none that its writers take: any dsh process can be.
    Programs(Programs),
}

/// The rows of a session, which replace those before.
pub(super) fn rows(
    seen: &Observation,
    exited: &[Exited],
    writer: Option<&Writer>,
    scope: &Scope,
    now_ms: i64,
) -> Vec<Evidence> {
    // All processes that were ever here have left, or none of this is an end.
    let ends = standing(&seen.records).end.is_some();
    let nobody_left = seen.records.is_empty() || ends;
    let mut rows: Vec<Evidence> = seen
        .records
        .iter()
        .filter(|record| !exited.iter().any(|exited| exited.subject == record.subject()))
        .map(|record| Evidence {
            ended_ms: record.ended_ms.filter(|_| ends && record.fate.is_end()),
            ..of_record(record, now_ms)
        })
        .collect();
    rows.extend(exited.iter().map(|exited| Evidence {
        ended_ms: nobody_left.then_some(exited.ended_ms),
        ..of_exited(exited)
    }));
    rows.extend(writer.map(|writer| of_writer(writer, scope, now_ms)));
    rows
}

/// The first Codex that locks every thread; formats/claude-and-codex.md section 3.5.
const FIRST_WITH_LOCKS: (u32, u32) = (0, 147);

/// Whether it is of `codex exec`, which runs one turn, with that turn over, and of a version that
/// would hold a lock.
pub(super) fn is_command_done(candidate: &Candidate) -> bool {
    let over = matches!(candidate.turn.as_deref(), Some("closed" | "interrupted"));
    let mut numbers = candidate.version.as_deref().unwrap_or_default().split('.').map(str::parse);
    let version = (numbers.next().and_then(Result::ok), numbers.next().and_then(Result::ok));
    let locks = match version {
        (Some(major), Some(minor)) => (major, minor) >= FIRST_WITH_LOCKS,
        (None, _) | (_, None) => false,
    };
    over && locks && candidate.started_by.as_deref() == Some("exec")
}

/// That a command which runs one turn is done: its turn is over, and it has no lock where one would
/// lie. `done_ms` is its newest activity.
pub(super) fn command_done(
    seen: &Observation,
    done_ms: i64,
    stored: &[Evidence],
    scope: &Scope,
    now_ms: i64,
) -> Option<Evidence> {
    let nobody = seen.records.is_empty() || standing(&seen.records).end.is_some();
    if seen.lock != Some(Observed::NoFile) || !nobody {
        return None;
    }
    let known = |row: &&Evidence| {
        (row.source.as_str(), row.says.as_str()) == ("lock", "exited")
            && row.ended_ms == Some(done_ms)
    };
    let since_ms = stored.iter().find(known).map_or(now_ms, |row| row.since_ms);
    Some(Evidence {
        source: Source::Lock.word().to_owned(),
        subject: "exec".to_owned(),
        says: "exited".to_owned(),
        scope: json(scope),
        since_ms,
        first_ms: since_ms,
        last_ms: since_ms,
        ended_ms: Some(done_ms),
        why: "its only turn is over, and it has no lock although Codex keeps locks here".to_owned(),
        body: "{}".to_owned(),
        ..Evidence::default()
    })
}

fn of_record(record: &Record, now_ms: i64) -> Evidence {
    let last_ms = record.last_alive_ms.unwrap_or(record.fate_since_ms).min(now_ms);
    let state = record.state_word().map(str::to_owned);
    Evidence {
        source: record.source.word().to_owned(),
        subject: record.subject(),
        says: record.fate.word().to_owned(),
        scope: json(&record.scope),
        since_ms: record.fate_since_ms,
        first_ms: record.first_alive_ms.unwrap_or(record.fate_since_ms),
        last_ms,
        ended_ms: None,
        pid: Some(record.process.pid),
        started_ms: record.started_ms,
        state_ms: record.says_since_ms.filter(|_| state.is_some()),
        state,
        waits_for: record.waiting_for.clone(),
        why: record.why.clone(),
        body: json(record),
    }
}

fn of_exited(exited: &Exited) -> Evidence {
    Evidence {
        source: Source::Run.word().to_owned(),
        subject: exited.subject.clone(),
        says: "exited".to_owned(),
        scope: exited.scope.clone(),
        since_ms: exited.ended_ms,
        first_ms: exited.ended_ms,
        last_ms: exited.ended_ms,
        pid: Some(exited.pid),
        why: format!("the child of `lullwatch run`, pid {}, {}", exited.pid, exited.how),
        body: "{}".to_owned(),
        ..Evidence::default()
    }
}

fn of_writer(writer: &Writer, scope: &Scope, now_ms: i64) -> Evidence {
    let (subject, says, why) = match writer {
        Writer::Lock(Observed::Held(_)) => ("lock", "held", "its lock is held"),
        Writer::Lock(Observed::Free) => ("lock", "free", "nobody holds its lock"),
        Writer::Lock(Observed::Unknown(why)) => ("lock", "unknown", *why),
        Writer::Lock(Observed::NoFile | Observed::NoFolder) => {
            ("lock", "unknown", "it has no lock")
        }
        Writer::Programs(programs) if !programs.found.is_empty() => {
            ("programs", "some", "its format has no lock, and dsh runs here")
        }
        Writer::Programs(programs) if programs.whole => {
            ("programs", "none", "its format has no lock, and no dsh runs here")
        }
        Writer::Programs(_) => ("programs", "unknown", "not every process can be seen"),
    };
    let oldest = match writer {
        Writer::Lock(_) => None,
        Writer::Programs(programs) => programs
            .found
            .iter()
            .min_by_key(|process| process.started_ms.unwrap_or(i64::MIN))
            .copied(),
    };
    Evidence {
        source: "writer".to_owned(),
        subject: subject.to_owned(),
        says: says.to_owned(),
        scope: json(scope),
        since_ms: now_ms,
        first_ms: now_ms,
        last_ms: now_ms,
        pid: oldest.map(|process| process.id.pid),
        started_ms: oldest.and_then(|process| process.started_ms),
        why: why.to_owned(),
        body: "{}".to_owned(),
        ..Evidence::default()
    }
}

/// The records in the rows of a session, as they were stored.
pub(super) fn records(rows: &[Evidence]) -> Vec<Record> {
    let of_look = |row: &&Evidence| matches!(row.source.as_str(), "registry" | "lock" | "run");
    // What this version cannot read it has never seen.
    rows.iter().filter(of_look).filter_map(|row| serde_json::from_str(&row.body).ok()).collect()
}

/// How new rows differ from the stored ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum News {
    /// In nothing worth a write.
    None,
    /// In when a process was last seen, for so long that it is worth one.
    Seen,
    /// In what they say: the session is to be decided on again.
    Said,
}

/// How the rows of a look differ from the stored ones; hooks are no look's.
pub(super) fn news(new: &[Evidence], old: &[Evidence]) -> News {
    let old: Vec<&Evidence> = old.iter().filter(|row| row.source != "hook").collect();
    if new.len() != old.len() {
        return News::Said;
    }
    let mut news = News::None;
    for row in new {
        let same = |old: &&&Evidence| (&old.source, &old.subject) == (&row.source, &row.subject);
        let Some(old) = old.iter().find(same) else { return News::Said };
        news = news.max(row_news(row, old));
    }
    news
}

fn row_news(new: &Evidence, old: &Evidence) -> News {
    // What the scheduler does with a process, and when it was seen, lies in the body alone; who
    // made a record says whether that is worth a write.
    let said = |row: &Evidence| {
        let since_ms = if row.source == "writer" { 0 } else { row.since_ms };
        let bare = Evidence { body: String::new(), scope: String::new(), ..row.clone() };
        // When it was first seen, the store keeps from its first row on.
        Evidence { since_ms, first_ms: 0, last_ms: 0, started_ms: None, ..bare }
    };
    // When a process started is reckoned anew each time, and may differ by a second.
    let apart = match (new.started_ms, old.started_ms) {
        (Some(new), Some(old)) => new.abs_diff(old) > START_SLACK_MS,
        (new, old) => new != old,
    };
    if apart || said(new) != said(old) {
        return News::Said;
    }
    let read = |row: &Evidence| serde_json::from_str::<Record>(&row.body).ok();
    match (read(new), read(old)) {
        (Some(new), Some(old)) if new.is_news(&old) => News::Seen,
        (Some(_), None) => News::Seen,
        (Some(_) | None, _) => News::None,
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned())
}

#[cfg(test)]
mod tests;
