//! Session rows: whole ones, kinship alone, ids alone.

use std::collections::HashSet;

use rusqlite::{Row, params_from_iter};

use super::super::{Result, Tx};
use super::{Agent, Facts, Kind, phrases};
use crate::lifecycle::{Basis, Status};

/// A session as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    /// Row id.
    pub id: i64,
    /// Agent.
    pub agent: Agent,
    /// Native id.
    pub native_id: String,
    /// Native id of the parent, of a sub-agent.
    pub parent: Option<String>,
    /// What kind it is.
    pub kind: Kind,
    /// Without a lifecycle row: a sub-agent or an internal thread.
    pub nested: bool,
    /// The merge of its live generations, as stored: see [`SessionRow::facts`].
    pub facts: String,
    /// A file of it is there.
    pub transcript_present: bool,
    /// Its own clock, ms.
    pub own_clock_ms: Option<i64>,
    /// Its newest activity, ms.
    pub last_activity_ms: Option<i64>,
    /// Its sub-agents' newest activity, ms.
    pub child_activity_ms: Option<i64>,
    /// See `lifecycle::sign_of_life_ms`.
    pub sign_of_life_ms: Option<i64>,
    /// See `lifecycle::sign_of_life_ms`.
    pub anchored_ms: Option<i64>,
    /// A stamp lay ahead of the clock.
    pub clock_ahead: bool,
    /// Its status and all that belongs to it; `None` until it is admitted, and of nested rows.
    pub verdict: Option<VerdictRow>,
    /// When it must be decided on again, ms.
    pub deadline_ms: Option<i64>,
    /// When it was last decided on, ms.
    pub checked_ms: Option<i64>,
}

impl SessionRow {
    /// The merge of its live generations; `None` where this version cannot read it. Reading it costs
    /// more than all the rest of the row, so it is left to whoever needs it.
    pub fn facts(&self) -> Option<Facts> {
        serde_json::from_str(&self.facts).ok()
    }
}

/// A stored status with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictRow {
    /// Status.
    pub status: Status,
    /// Time of the transition, ms.
    pub since_ms: Option<i64>,
    /// Reason code; empty where none was given.
    pub code: String,
    /// One sentence.
    pub summary: String,
    /// Seen or concluded.
    pub basis: Basis,
    /// Rule of `decide`.
    pub rule: String,
    /// What it rests on.
    pub evidence: Vec<String>,
    /// End, ms.
    pub ended_ms: Option<i64>,
    /// The end is not exact.
    pub ended_approximate: bool,
}

/// Which sessions are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// Those of the top level that have a status.
    Top,
    /// Sub-agents and internal threads.
    Nested,
    /// These.
    Ids(&'a [i64]),
}

/// Reads whole rows.
pub fn sessions(tx: &Tx<'_>, wanted: Wanted<'_>) -> Result<Vec<SessionRow>> {
    let mut found = Vec::new();
    each_session(tx, wanted, |row| found.push(row))?;
    Ok(found)
}

/// Hands out whole rows in the order of their ids, one at a time: their facts are long, and nobody
/// wants those of a whole house at once. How many rows this version cannot read, for their agent or
/// their status.
pub fn each_session(
    tx: &Tx<'_>,
    wanted: Wanted<'_>,
    mut take: impl FnMut(SessionRow),
) -> Result<u64> {
    let (clause, argument) = match wanted {
        Wanted::Top => ("nested = 0 AND status IS NOT NULL", None),
        Wanted::Nested => ("nested = 1", None),
        Wanted::Ids(ids) => {
            let list = serde_json::Value::from(ids).to_string();
            ("id IN (SELECT value FROM json_each(?1))", Some(list))
        }
    };
    let mut statement = tx.0.prepare_cached(&format!(
        "SELECT id, agent, native_id, parent_native_id, kind, nested, facts, transcript,
                own_clock_ms, last_activity_ms, child_activity_ms, sign_of_life_ms, clock_ahead,
                deadline_ms, checked_ms, status, status_since_ms, reason_code, reason_summary,
                basis, rule, evidence, ended_ms, ended_approx, anchored_ms
         FROM sessions WHERE {clause} ORDER BY id"
    ))?;
    let mut unreadable = 0;
    let mut rows = statement.query(params_from_iter(argument))?;
    while let Some(row) = rows.next()? {
        match session(row)? {
            Some(session) => take(session),
            None => unreadable += 1,
        }
    }
    Ok(unreadable)
}

fn session(row: &Row<'_>) -> rusqlite::Result<Option<SessionRow>> {
    let Some(agent) = Agent::from_word(row.get_ref(1)?.as_str()?) else { return Ok(None) };
    let verdict = match row.get_ref(15)?.as_str_or_null()? {
        None => None,
        Some(word) => match Status::from_word(word) {
            None => return Ok(None),
            Some(status) => Some(verdict(row, status)?),
        },
    };
    let parent: String = row.get(3)?;
    Ok(Some(SessionRow {
        id: row.get(0)?,
        agent,
        native_id: row.get(2)?,
        parent: Some(parent).filter(|parent| !parent.is_empty()),
        kind: kind(row.get_ref(4)?.as_str()?),
        nested: row.get(5)?,
        facts: row.get(6)?,
        transcript_present: row.get_ref(7)?.as_str()? != "missing",
        own_clock_ms: row.get(8)?,
        last_activity_ms: row.get(9)?,
        child_activity_ms: row.get(10)?,
        sign_of_life_ms: row.get(11)?,
        anchored_ms: row.get(24)?,
        clock_ahead: row.get(12)?,
        deadline_ms: row.get(13)?,
        checked_ms: row.get(14)?,
        verdict,
    }))
}

fn verdict(row: &Row<'_>, status: Status) -> rusqlite::Result<VerdictRow> {
    let text = |at: usize| -> rusqlite::Result<String> {
        Ok(row.get::<_, Option<String>>(at)?.unwrap_or_default())
    };
    Ok(VerdictRow {
        status,
        since_ms: row.get(16)?,
        code: text(17)?,
        summary: text(18)?,
        // What does not say that it was seen is treated as concluded: the weaker claim.
        basis: Basis::from_word(&text(19)?).unwrap_or(Basis::Inferred),
        rule: text(20)?,
        evidence: phrases(row.get_ref(21)?.as_str()?),
        ended_ms: row.get(22)?,
        ended_approximate: row.get(23)?,
    })
}

fn kind(word: &str) -> Kind {
    [Kind::SubAgent, Kind::Internal, Kind::Fork, Kind::Team, Kind::Background, Kind::Sdk]
        .into_iter()
        .find(|kind| kind.word() == word)
        .unwrap_or(Kind::Main)
}

/// What is known of one nested row without reading its facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KinRow {
    /// Row id.
    pub id: i64,
    /// Row of its parent, if the store has one.
    pub parent: Option<i64>,
    /// A sub-agent; else an internal thread, which is nobody's child.
    pub subagent: bool,
    /// Its turn is open and its own silence is within the live window.
    pub active: bool,
}

/// Every nested row that has a clock. Active is whose turn is open and whose own clock is not
/// before `live_from_ms`; of one that is stamped later than `now_ms` counts when that was read.
pub fn kin(tx: &Tx<'_>, live_from_ms: i64, now_ms: i64) -> Result<Vec<KinRow>> {
    let mut statement = tx.0.prepare_cached(KIN)?;
    let mut rows: Vec<KinRow> = statement
        .query_map([], |row| {
            Ok(KinRow {
                id: row.get(0)?,
                parent: row.get(1)?,
                subagent: row.get(2)?,
                active: false,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    rows.sort_unstable_by_key(|row| row.id);
    let mut statement = tx.0.prepare_cached(
        "SELECT id FROM sessions
         WHERE nested = 1 AND COALESCE(own_clock_ms, last_activity_ms) >= ?1
           AND json_valid(facts) AND json_extract(facts, '$.turn') = 'open'
           AND (COALESCE(own_clock_ms, last_activity_ms) <= ?2
               OR COALESCE(json_extract(facts, '$.read_ahead_ms'), ?2) >= ?1)",
    )?;
    let moments = [live_from_ms, now_ms];
    for active in statement.query_map(moments, |row| row.get::<_, i64>(0))? {
        let at = active.map(|id| rows.binary_search_by_key(&id, |row| row.id))?;
        if let Some(row) = at.ok().and_then(|at| rows.get_mut(at)) {
            row.active = true;
        }
    }
    Ok(rows)
}

/// Those of these sessions whose status is terminal.
pub fn ended_among(tx: &Tx<'_>, ids: &[i64]) -> Result<HashSet<i64>> {
    let mut statement = tx.0.prepare_cached(
        "SELECT id, status FROM sessions
         WHERE id IN (SELECT value FROM json_each(?1)) AND status IS NOT NULL",
    )?;
    let mut rows = statement.query([serde_json::Value::from(ids).to_string()])?;
    let mut ended = HashSet::new();
    while let Some(row) = rows.next()? {
        let status: String = row.get(1)?;
        if Status::from_word(&status).is_some_and(Status::is_terminal) {
            ended.insert(row.get(0)?);
        }
    }
    Ok(ended)
}

/// Those of these sessions of which a sub-agent, at any depth, has an open turn.
pub fn with_open_children(tx: &Tx<'_>, ids: &[i64]) -> Result<HashSet<i64>> {
    let mut statement = tx.0.prepare_cached(OPEN_CHILDREN)?;
    let ids = serde_json::Value::from(ids).to_string();
    let rows = statement.query_map([ids], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// By the index of parents; the depth is bounded, for a chain of parents may be a circle.
const OPEN_CHILDREN: &str = "WITH RECURSIVE below(root, agent, host, native, id, depth) AS (
        SELECT id, agent, host, native_id, id, 0 FROM sessions
            WHERE id IN (SELECT value FROM json_each(?1))
        UNION
        SELECT b.root, c.agent, c.host, c.native_id, c.id, b.depth + 1
            FROM below b JOIN sessions c INDEXED BY sessions_parent
                ON c.agent = b.agent AND c.parent_native_id = b.native AND c.host = b.host
                AND c.parent_native_id <> ''
            WHERE b.depth < 32)
    SELECT DISTINCT b.root FROM below b JOIN sessions s ON s.id = b.id
    WHERE b.depth > 0 AND s.kind = 'subagent'
        AND json_valid(s.facts) AND json_extract(s.facts, '$.turn') = 'open'";

/// Answered from one index alone: a parent of the top level first, else a nested one.
const KIN: &str = "SELECT c.id,
        COALESCE(
            (SELECT MIN(p.id) FROM sessions p
             WHERE p.nested = 0 AND p.agent = c.agent AND p.native_id = c.parent_native_id
               AND p.host = c.host),
            (SELECT MIN(p.id) FROM sessions p
             WHERE p.nested = 1 AND p.agent = c.agent AND p.native_id = c.parent_native_id
               AND p.host = c.host AND p.id <> c.id)),
        c.kind = 'subagent'
    FROM sessions c
    WHERE c.nested = 1 AND COALESCE(c.own_clock_ms, c.last_activity_ms) IS NOT NULL";

/// What a session is called by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdRow {
    /// Row id.
    pub id: i64,
    /// The agent's word.
    pub agent: String,
    /// Native id.
    pub native_id: String,
    /// Native id of its parent.
    pub parent: Option<String>,
    /// Not of the top level.
    pub nested: bool,
    /// Where its transcript lies.
    pub host: String,
}

/// Every session's names.
pub fn ids(tx: &Tx<'_>) -> Result<Vec<IdRow>> {
    let mut statement = tx.0.prepare_cached(
        "SELECT id, agent, native_id, NULLIF(parent_native_id, ''), nested, host
         FROM sessions ORDER BY id",
    )?;
    let rows = statement
        .query_map([], |row| {
            Ok(IdRow {
                id: row.get(0)?,
                agent: row.get(1)?,
                native_id: row.get(2)?,
                parent: row.get(3)?,
                nested: row.get(4)?,
                host: row.get(5)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// Sessions of which a live generation has a damaged part.
pub fn damaged(tx: &Tx<'_>) -> Result<HashSet<i64>> {
    let mut statement = tx.0.prepare_cached(
        "SELECT f.session_id FROM source_files s JOIN facts f ON f.generation = s.id
         WHERE s.live = 1 AND s.damaged > 0",
    )?;
    let rows = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// Sessions whose standing end is news that `consumer` has not acknowledged, written by this program:
/// a transition at or after `from_ms`, or an admission, which is history, of what ended since then.
pub fn unacknowledged_ends(tx: &Tx<'_>, consumer: &str, from_ms: i64) -> Result<HashSet<i64>> {
    let mut statement = tx.0.prepare_cached(
        "SELECT s.id FROM sessions s JOIN status_transitions t ON t.id = s.transition_id
         WHERE s.ended_ms IS NOT NULL AND t.created_ms >= ?2 AND t.origin = 'mirror'
           AND (t.previous_status IS NOT NULL OR s.ended_ms >= ?2)
           AND NOT EXISTS (SELECT 1 FROM terminal_deliveries d
                           WHERE d.transition_id = t.id AND d.consumer = ?1)",
    )?;
    let rows = statement
        .query_map(rusqlite::params![consumer, from_ms], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn kinship_is_answered_from_indexes_that_hold_no_facts() {
        let mut store = Store::in_memory(1).unwrap();
        let steps = store
            .read(|tx| {
                let mut statement = tx.0.prepare(&format!("EXPLAIN QUERY PLAN {KIN}"))?;
                let rows = statement.query_map([], |row| row.get::<_, String>(3))?;
                Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
            })
            .unwrap();
        for step in steps.iter().filter(|step| !step.starts_with("CORRELATED")) {
            let indexed = step.contains("sessions_nested") || step.contains("sessions_top");
            assert!(indexed, "{steps:?}");
        }
    }

    #[test]
    fn a_sub_agents_open_turn_is_found_at_any_depth_and_through_a_circle() {
        let mut store = Store::in_memory(1).unwrap();
        let rows = [
            (1, "a", "", "main", "closed"),
            (2, "b", "a", "subagent", "closed"),
            (3, "c", "b", "subagent", "open"),
            (4, "d", "", "main", "open"),
            (5, "e", "d", "subagent", "closed"),
            (6, "f", "g", "subagent", "closed"),
            (7, "g", "f", "subagent", "open"),
            (8, "h", "", "main", "closed"),
            (9, "i", "h", "internal", "open"),
        ];
        store
            .write(|tx| {
                for (id, native, parent, kind, turn) in rows {
                    tx.0.execute(
                        "INSERT INTO sessions (id, root_id, agent, native_id, parent_native_id, kind, nested,
                            host, facts)
                         VALUES (?1, 1, 'claude', ?2, ?3, ?4, ?3 <> '', 'here',
                            json_object('turn', ?5))",
                        (id, native, parent, kind, turn),
                    )?;
                }
                Ok(())
            })
            .unwrap();
        let found = store.read(|tx| with_open_children(tx, &[1, 4, 6, 8])).unwrap();
        assert_eq!(found, HashSet::from([1, 6]));
    }
}
