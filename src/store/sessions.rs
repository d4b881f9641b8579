//! Sessions as the reconciler needs them: which are due, what is known of one, what it noted.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, Row, params};
use serde::Deserialize;

use super::{Result, StoreError, Tx, meta, transitions};
use crate::lifecycle::{Basis, Ending, Status, Windows};
use crate::source::{EndKind, EndMark};

/// One session of the top level, without what only surfaces show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Row id.
    pub id: i64,
    /// `claude`, `codex`, `dsh`.
    pub agent: String,
    /// Native id.
    pub native_id: String,
    /// `mirror`, or where it was imported from.
    pub origin: String,
    /// Begin of its root's first pass, ms; `None` for a row without a root.
    pub epoch_ms: Option<i64>,
    /// Something new was written about it since it was last decided on.
    pub dirty: bool,
    /// Moves with status and activity.
    pub version: i64,
    /// Newest own activity, else its start, ms.
    pub own_clock_ms: Option<i64>,
    /// Earliest own activity, ms.
    pub first_activity_ms: Option<i64>,
    /// Newest activity, sub-agents' too, ms.
    pub last_activity_ms: Option<i64>,
    /// Newest activity of its sub-agents, ms.
    pub child_activity_ms: Option<i64>,
    /// See `lifecycle::sign_of_life_ms`.
    pub sign_of_life_ms: Option<i64>,
    /// See `lifecycle::sign_of_life_ms`.
    pub anchored_ms: Option<i64>,
    /// Newest activity that was in its files all along and that only a newer reading told, ms.
    pub reread_ms: Option<i64>,
    /// Status; `None`: not admitted yet.
    pub status: Option<Status>,
    /// Since when, ms.
    pub status_since_ms: Option<i64>,
    /// Seen or concluded.
    pub basis: Option<Basis>,
    /// The rule that held.
    pub rule: Option<String>,
    /// End, ms.
    pub ended_ms: Option<i64>,
    /// When time alone may change its status, ms.
    pub deadline_ms: Option<i64>,
    /// The end marker that stands in its transcript, with the end's time by its own account, ms.
    pub marker: Option<(Ending, Option<i64>)>,
    /// Its own start stamp, ms.
    pub started_ms: Option<i64>,
    /// Its facts cannot be read: there is no marker, and only the columns speak.
    pub facts_unreadable: bool,
}

/// What the reconciler notes when it has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// When time alone may change the status, ms.
    pub deadline_ms: Option<i64>,
    /// When it decided, ms.
    pub checked_ms: i64,
    /// See `lifecycle::sign_of_life_ms`.
    pub sign_of_life_ms: Option<i64>,
    /// See `lifecycle::sign_of_life_ms`.
    pub anchored_ms: Option<i64>,
}

const DUE: &str = "SELECT id FROM sessions WHERE dirty = 1 AND nested = 0
        UNION
        SELECT id FROM sessions WHERE deadline_ms IS NOT NULL AND nested = 0
            AND status = 'running' AND deadline_ms <= ?1
        UNION
        SELECT id FROM sessions WHERE deadline_ms IS NOT NULL AND nested = 0
            AND status = 'running' AND deadline_ms > ?2
        UNION
        SELECT id FROM sessions WHERE deadline_ms IS NOT NULL AND nested = 0
            AND status = 'idle' AND deadline_ms <= ?1
        UNION
        SELECT id FROM sessions WHERE deadline_ms IS NOT NULL AND nested = 0
            AND status = 'idle' AND deadline_ms > ?3
        ORDER BY 1";

/// Row ids of the sessions that a pass has to look at, ascending.
///
/// Those with news, those whose deadline is past, and those whose deadline is further ahead than
/// their window allows: the clock has been set back since it was noted.
pub fn due(tx: &Tx<'_>, windows: Windows, now_ms: i64) -> Result<Vec<i64>> {
    let mut statement = tx.0.prepare_cached(DUE)?;
    let ahead = |window: i64| now_ms.saturating_add(window).saturating_add(1);
    let bounds = [now_ms, ahead(windows.live_ms), ahead(windows.ended_ms)];
    let rows = statement.query_map(bounds, |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The next moment after this one at which time alone makes a session due, ms.
///
/// A deadline that was past when its row was last decided on says nothing more: a process holds
/// the row, or it could not be observed, and time alone will not change that.
pub fn next_deadline(tx: &Tx<'_>, after_ms: i64) -> Result<Option<i64>> {
    let sql = "SELECT min(deadline_ms) FROM (
        SELECT min(deadline_ms) AS deadline_ms FROM sessions
            WHERE deadline_ms > ?1 AND nested = 0 AND status = 'running'
        UNION ALL
        SELECT min(deadline_ms) FROM sessions
            WHERE deadline_ms > ?1 AND nested = 0 AND status = 'idle')";
    Ok(tx.0.prepare_cached(sql)?.query_row([after_ms], |row| row.get(0))?)
}

/// One session of the top level; `None` if there is none with that row id.
pub fn load(tx: &Tx<'_>, id: i64) -> Result<Option<SessionRow>> {
    let sql = "SELECT s.agent, s.native_id, s.origin, r.epoch_ms, s.dirty, s.version,
            s.own_clock_ms, s.first_activity_ms, s.last_activity_ms, s.child_activity_ms,
            s.sign_of_life_ms, s.anchored_ms, s.status, s.status_since_ms, s.basis, s.rule,
            s.ended_ms, s.deadline_ms, s.facts, s.reread_ms
        FROM sessions s LEFT JOIN roots r ON r.id = s.root_id WHERE s.id = ?1 AND s.nested = 0";
    let mut statement = tx.0.prepare_cached(sql)?;
    let read = |row: &Row<'_>| Ok(session(id, row));
    statement.query_row([id], read).optional()?.transpose()
}

fn session(id: i64, row: &Row<'_>) -> Result<SessionRow> {
    let status: Option<String> = row.get(12)?;
    let basis: Option<String> = row.get(14)?;
    let facts: Option<Decisive> =
        serde_json::from_str(row.get_ref(18)?.as_str().unwrap_or("")).ok();
    let facts_unreadable = facts.is_none();
    let facts = facts.unwrap_or_default();
    Ok(SessionRow {
        id,
        agent: row.get(0)?,
        native_id: row.get(1)?,
        origin: row.get(2)?,
        epoch_ms: row.get(3)?,
        dirty: row.get(4)?,
        version: row.get(5)?,
        own_clock_ms: row.get(6)?,
        first_activity_ms: row.get(7)?,
        last_activity_ms: row.get(8)?,
        child_activity_ms: row.get(9)?,
        sign_of_life_ms: row.get(10)?,
        anchored_ms: row.get(11)?,
        reread_ms: row.get(19)?,
        status: status.map(|word| transitions::status(&word)).transpose()?,
        status_since_ms: row.get(13)?,
        basis: basis.map(|word| transitions::basis(&word)).transpose()?,
        rule: row.get(15)?,
        ended_ms: row.get(16)?,
        deadline_ms: row.get(17)?,
        marker: facts.end.map(|mark| (ending(&mark), mark.at_ms)),
        started_ms: facts.started_ms,
        facts_unreadable,
    })
}

/// The part of `source::facts::Facts` that bears on a status; the rest is skipped unread.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Decisive {
    end: Option<EndMark>,
    started_ms: Option<i64>,
}

fn ending(mark: &EndMark) -> Ending {
    match mark.kind {
        EndKind::CostState if mark.approximate => Ending::LaterCostState,
        EndKind::CostState => Ending::CostState,
        EndKind::ContinuedIn => Ending::ContinuedIn,
        EndKind::EndedByModel => Ending::EndedByModel,
    }
}

/// Notes that a session has been decided on.
pub fn note(tx: &Tx<'_>, id: i64, note: &Note) -> Result<()> {
    let sql = "UPDATE sessions SET dirty = 0, deadline_ms = ?2, checked_ms = ?3,
            sign_of_life_ms = ?4, anchored_ms = ?5,
            clock_ahead = max(clock_ahead, ?5 IS NOT NULL)
        WHERE id = ?1";
    tx.0.prepare_cached(sql)?.execute(params![
        id,
        note.deadline_ms,
        note.checked_ms,
        note.sign_of_life_ms,
        note.anchored_ms,
    ])?;
    Ok(())
}

/// Brings the signs of life of all live sessions from the time of a clock that showed `old_ms` to
/// that of one that shows `now_ms` at the same moment, and makes them due. See
/// `reconcile::take_step`.
pub fn shift_signs(tx: &Tx<'_>, (old_ms, now_ms): (i64, i64), by_ms: i64) -> Result<()> {
    let sql = "UPDATE sessions SET
            sign_of_life_ms = CASE
                WHEN last_activity_ms > ?1 AND last_activity_ms <= ?2 THEN NULL
                WHEN last_activity_ms <= ?2 THEN max(last_activity_ms, min(?1,
                    CASE WHEN anchored_ms = last_activity_ms
                        THEN coalesce(sign_of_life_ms, last_activity_ms)
                        ELSE max(last_activity_ms, coalesce(sign_of_life_ms, last_activity_ms))
                    END) + ?3)
                ELSE min(?1,
                    CASE WHEN anchored_ms = last_activity_ms
                        THEN coalesce(sign_of_life_ms, last_activity_ms)
                        ELSE max(last_activity_ms, coalesce(sign_of_life_ms, last_activity_ms))
                    END) + ?3
                END,
            anchored_ms = CASE WHEN last_activity_ms > ?2 THEN last_activity_ms END,
            deadline_ms = ?2
        WHERE nested = 0 AND status IN ('running', 'idle') AND last_activity_ms IS NOT NULL";
    tx.0.prepare_cached(sql)?.execute([old_ms, now_ms, by_ms])?;
    Ok(())
}

/// Sessions of which something cannot be seen: row ids, each with since when, ms (JSON).
const UNSEEN: &str = "unseen_since_ms";

/// Sessions of which something cannot be seen, each with since when, ms.
pub fn unseen(tx: &Tx<'_>) -> Result<BTreeMap<i64, i64>> {
    // What cannot be read marks nobody, and is written anew at the next change.
    let kept = meta::get(tx, UNSEEN)?.and_then(|json| serde_json::from_str(&json).ok());
    Ok(kept.unwrap_or_default())
}

/// Marks these, and no others.
pub fn set_unseen(tx: &Tx<'_>, sessions: &BTreeMap<i64, i64>) -> Result<()> {
    if sessions.is_empty() {
        return meta::remove(tx, UNSEEN);
    }
    let json = serde_json::to_string(sessions).map_err(|why| StoreError::Value(why.to_string()))?;
    meta::set(tx, UNSEEN, &json)
}

/// Takes a session out of every pass until something new is written about it.
pub fn set_aside(tx: &Tx<'_>, id: i64) -> Result<()> {
    let sql = "UPDATE sessions SET dirty = 0, deadline_ms = NULL WHERE id = ?1";
    tx.0.prepare_cached(sql)?.execute([id])?;
    Ok(())
}

/// Makes a session due at the next pass: evidence beside its transcript has changed.
pub fn mark_dirty(tx: &Tx<'_>, id: i64) -> Result<()> {
    let sql = "UPDATE sessions SET dirty = 1 WHERE id = ?1 AND dirty = 0";
    tx.0.prepare_cached(sql)?.execute([id])?;
    Ok(())
}

/// Makes every live session due at the next pass: the windows have changed.
pub fn mark_live_dirty(tx: &Tx<'_>) -> Result<()> {
    let sql = "UPDATE sessions SET dirty = 1
        WHERE nested = 0 AND dirty = 0 AND status IN ('running', 'idle')";
    tx.0.prepare_cached(sql)?.execute([])?;
    Ok(())
}

/// A session whose completion may have been inferred too early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Row id.
    pub id: i64,
    /// Newest activity, ms.
    pub last_activity_ms: Option<i64>,
    /// Version.
    pub version: i64,
    /// Sequence number of its last transition.
    pub transition_id: i64,
    /// Who wrote that.
    pub actor_id: String,
    /// `mirror`, or where it was imported from.
    pub origin: String,
    /// When it was written, ms.
    pub created_ms: i64,
    /// The rule that it names.
    pub rule: String,
    /// The windows it names; `None` of one that is older than this note.
    pub windows: Option<Windows>,
}

/// Completed sessions beyond a row id, with their last transition, by time and then by sequence,
/// if it led to `completed`; ascending by row id.
pub fn completions(tx: &Tx<'_>, beyond: i64, rows_max: i64) -> Result<Vec<Candidate>> {
    let sql = "SELECT s.id, s.last_activity_ms, s.version, t.id, t.actor_id, t.origin,
            t.created_ms, t.rule, t.metadata
        FROM sessions s JOIN status_transitions t ON t.id = (
            SELECT id FROM status_transitions
            WHERE entity_type = 'session' AND entity_id = s.id
            ORDER BY created_ms DESC, id DESC LIMIT 1)
        WHERE s.id > ?1 AND s.nested = 0 AND s.status = 'completed' AND t.status = s.status
            AND (t.origin <> 'mirror' OR t.rule = 'silence')
        ORDER BY s.id LIMIT ?2";
    let mut statement = tx.0.prepare_cached(sql)?;
    let rows = statement.query_map([beyond, rows_max], |row| {
        Ok(Candidate {
            id: row.get(0)?,
            last_activity_ms: row.get(1)?,
            version: row.get(2)?,
            transition_id: row.get(3)?,
            actor_id: row.get(4)?,
            origin: row.get(5)?,
            created_ms: row.get(6)?,
            rule: row.get(7)?,
            windows: transitions::windows(row.get_ref(8)?.as_str()?),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::facts::Facts;
    use crate::store::Store;

    #[test]
    fn asking_what_is_due_reads_no_row_that_is_not() {
        let mut store = Store::in_memory(1).unwrap();
        let steps = store
            .read(|tx| {
                let mut statement = tx.0.prepare(&format!("EXPLAIN QUERY PLAN {DUE}"))?;
                let rows = statement.query_map([0, 0, 0], |row| row.get::<_, String>(3))?;
                Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
            })
            .unwrap();
        let touching: Vec<&String> =
            steps.iter().filter(|step| step.contains("sessions")).collect();
        assert_eq!(touching.len(), 5, "{steps:?}");
        for step in touching {
            let indexed = step.contains("sessions_due") || step.contains("sessions_dirty");
            assert!(indexed, "{step}");
        }
    }

    #[test]
    fn the_decisive_part_of_the_facts_is_read_as_it_is_written() {
        let end = Some(EndMark { kind: EndKind::ContinuedIn, at_ms: Some(7), approximate: false });
        let facts = Facts { end, started_ms: Some(5), ..Facts::default() };
        let json = serde_json::to_string(&facts).unwrap();
        let read: Decisive = serde_json::from_str(&json).unwrap();
        assert_eq!((read.end, read.started_ms), (facts.end, facts.started_ms));
    }
}
