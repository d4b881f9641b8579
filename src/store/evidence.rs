//! Observations of processes, locks, children and hooks, one row per session, source and subject;
//! and which sessions the next look at processes is about.
//!
//! What an observation proves, and in which scope, is decided by those who make it; here a row with
//! `ended_ms` says that its subject is over since then, and that this ends the session.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Row, params};

use super::{Result, Tx};

/// One observation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// `registry`, `lock`, `run`, `hook`; `writer`: whether anybody can be at a log.
    pub source: String,
    /// Which one: a pid and its start, an event's name.
    pub subject: String,
    /// What it says, in its source's own word.
    pub says: String,
    /// Host, boot, pid namespace and uid of the observer (JSON).
    pub scope: String,
    /// Since when it has said that, ms.
    pub since_ms: i64,
    /// First seen, ms.
    pub first_ms: i64,
    /// Last seen, ms.
    pub last_ms: i64,
    /// Over since, ms: it ends the session.
    pub ended_ms: Option<i64>,
    /// The process.
    pub pid: Option<u32>,
    /// When that started, ms.
    pub started_ms: Option<i64>,
    /// What the process says of itself: `busy`, `idle`, `waiting`, …; of a compaction what
    /// triggered it.
    pub state: Option<String>,
    /// Since when, ms.
    pub state_ms: Option<i64>,
    /// What it waits for.
    pub waits_for: Option<String>,
    /// One sentence.
    pub why: String,
    /// The observer's own memory (JSON); empty where it was not asked for.
    pub body: String,
}

const COLUMNS: &str = "session_id, source, subject, says, scope, since_ms, first_ms, last_ms, \
    ended_ms, pid, started_ms, state, state_ms, waits_for, why";

/// Keeps an observation; a repeated one changes all but its first moment, and an older one nothing.
pub fn record(tx: &Tx<'_>, session_id: i64, evidence: &Evidence) -> Result<()> {
    let sql = format!(
        "INSERT INTO evidence ({COLUMNS}, body)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
        ON CONFLICT (session_id, source, subject) DO UPDATE SET
            says = excluded.says, scope = excluded.scope, since_ms = excluded.since_ms,
            last_ms = excluded.last_ms, ended_ms = excluded.ended_ms, pid = excluded.pid,
            started_ms = excluded.started_ms, state = excluded.state,
            state_ms = excluded.state_ms, waits_for = excluded.waits_for, why = excluded.why,
            body = excluded.body
        WHERE source <> 'hook' OR excluded.last_ms > last_ms"
    );
    tx.0.prepare_cached(&sql)?.execute(params![
        session_id,
        evidence.source,
        evidence.subject,
        evidence.says,
        evidence.scope,
        evidence.since_ms,
        evidence.first_ms,
        evidence.last_ms,
        evidence.ended_ms,
        evidence.pid,
        evidence.started_ms,
        evidence.state,
        evidence.state_ms,
        evidence.waits_for,
        evidence.why,
        evidence.body,
    ])?;
    Ok(())
}

/// Keeps these observations of processes and no others: what a look no longer says is gone. Hooks
/// are events, and stay.
pub fn replace(tx: &Tx<'_>, session_id: i64, rows: &[Evidence]) -> Result<()> {
    for old in of_session(tx, session_id)? {
        let kept = |row: &Evidence| (&row.source, &row.subject) == (&old.source, &old.subject);
        if old.source != "hook" && !rows.iter().any(kept) {
            let sql = "DELETE FROM evidence
                WHERE session_id = ?1 AND source = ?2 AND subject = ?3";
            tx.0.prepare_cached(sql)?.execute(params![session_id, old.source, old.subject])?;
        }
    }
    for row in rows {
        record(tx, session_id, row)?;
    }
    Ok(())
}

/// Every observation of a session, in the order in which they were first made.
pub fn of_session(tx: &Tx<'_>, session_id: i64) -> Result<Vec<Evidence>> {
    let sql =
        format!("SELECT {COLUMNS}, body FROM evidence WHERE session_id = ?1 ORDER BY first_ms, id");
    let mut statement = tx.0.prepare_cached(&sql)?;
    let rows = statement
        .query_map([session_id], |row| Ok(Evidence { body: row.get(15)?, ..evidence(row)? }))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Every observation of these sessions, as of one.
pub fn of_sessions(tx: &Tx<'_>, ids: &[i64]) -> Result<HashMap<i64, Vec<Evidence>>> {
    let sql = format!(
        "SELECT {COLUMNS}, body FROM evidence
        WHERE session_id IN (SELECT value FROM json_each(?1)) ORDER BY first_ms, id"
    );
    let mut statement = tx.0.prepare_cached(&sql)?;
    let mut rows = statement.query([serde_json::Value::from(ids).to_string()])?;
    let mut found: HashMap<i64, Vec<Evidence>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let evidence = Evidence { body: row.get(15)?, ..evidence(row)? };
        found.entry(row.get(0)?).or_default().push(evidence);
    }
    Ok(found)
}

/// Every observation by session, each in the order in which they were first made; without bodies.
pub fn all(tx: &Tx<'_>) -> Result<HashMap<i64, Vec<Evidence>>> {
    let sql = format!("SELECT {COLUMNS} FROM evidence ORDER BY first_ms, id");
    let mut statement = tx.0.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    let mut found: HashMap<i64, Vec<Evidence>> = HashMap::new();
    while let Some(row) = rows.next()? {
        found.entry(row.get(0)?).or_default().push(evidence(row)?);
    }
    Ok(found)
}

fn evidence(row: &Row<'_>) -> rusqlite::Result<Evidence> {
    Ok(Evidence {
        source: row.get(1)?,
        subject: row.get(2)?,
        says: row.get(3)?,
        scope: row.get(4)?,
        since_ms: row.get(5)?,
        first_ms: row.get(6)?,
        last_ms: row.get(7)?,
        ended_ms: row.get(8)?,
        pid: row.get(9)?,
        started_ms: row.get(10)?,
        state: row.get(11)?,
        state_ms: row.get(12)?,
        waits_for: row.get(13)?,
        why: row.get(14)?,
        body: String::new(),
    })
}

/// A session that the next look at processes is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Row id.
    pub id: i64,
    /// `claude`, `codex`, `dsh`.
    pub agent: String,
    /// Native id.
    pub native_id: String,
    /// State of its own turn, in the word of the facts.
    pub turn: Option<String>,
    /// What started it, of Codex: `exec`, `cli`.
    pub started_by: Option<String>,
    /// Version of the agent.
    pub version: Option<String>,
    /// Working directory.
    pub cwd: Option<String>,
    /// Newest activity, sub-agents' too, ms.
    pub last_activity_ms: Option<i64>,
    /// Its own newest activity, else its start, ms.
    pub own_activity_ms: Option<i64>,
    /// When nothing was left to ask leave for, ms.
    pub settled_ms: Option<i64>,
    /// What its log says of its brackets (JSON of `compaction::Fold`), of agents that have any.
    pub brackets: Option<String>,
}

/// Whom else a look is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Named {
    /// Native ids that entries of Claude's registry name.
    pub claude: Vec<String>,
    /// Those of them of which an entry says or may mean that it is at work.
    pub claude_working: Vec<String>,
    /// Native ids of Codex threads whose locks are held.
    pub codex: Vec<String>,
    /// Row ids.
    pub rows: Vec<i64>,
    /// Claude sessions active after this moment, ms.
    pub claude_active_after_ms: Option<i64>,
}

const CANDIDATES: &str = "WITH wanted(id) AS (
            SELECT id FROM sessions WHERE dirty = 1 AND nested = 0
            UNION
            SELECT id FROM sessions
                WHERE deadline_ms IS NOT NULL AND nested = 0 AND status = 'running'
            UNION
            SELECT id FROM sessions
                WHERE deadline_ms IS NOT NULL AND nested = 0 AND status = 'idle'
            UNION
            SELECT session_id FROM evidence
                WHERE source <> 'hook' AND says NOT IN ('gone', 'moved', 'exited')
            UNION
            SELECT id FROM sessions WHERE agent = 'claude' AND parent_native_id = ''
                AND native_id IN (SELECT value FROM json_each(?1))
            UNION
            SELECT id FROM sessions WHERE agent = 'codex' AND parent_native_id = ''
                AND native_id IN (SELECT value FROM json_each(?2))
            UNION
            SELECT value FROM json_each(?3)
            UNION
            SELECT id FROM sessions
                WHERE nested = 0 AND agent = 'claude' AND last_activity_ms > ?4)
        SELECT s.id, s.agent, s.native_id, s.last_activity_ms,
            CASE WHEN json_valid(s.facts) THEN json_extract(s.facts, '$.turn') END,
            CASE WHEN json_valid(s.facts) THEN json_extract(s.facts, '$.cwd') END,
            CASE WHEN s.agent = 'dsh' AND json_valid(s.facts)
                THEN json_extract(s.facts, '$.compaction') END,
            s.own_clock_ms,
            CASE WHEN json_valid(s.facts) THEN json_extract(s.facts, '$.source') END,
            CASE WHEN json_valid(s.facts) THEN json_extract(s.facts, '$.version') END,
            CASE WHEN json_valid(s.facts) THEN json_extract(s.facts, '$.settled_ms') END
        FROM wanted w JOIN sessions s ON s.id = w.id
        WHERE s.nested = 0 AND s.host = ?5 ORDER BY s.id";

/// The sessions of the top level that a look on this host is about: those that are not over or not
/// yet decided on, those of which an observation may change, and those named.
pub fn candidates(tx: &Tx<'_>, host: &str, named: &Named) -> Result<Vec<Candidate>> {
    let mut statement = tx.0.prepare_cached(CANDIDATES)?;
    let list = |ids: &[String]| serde_json::Value::from(ids).to_string();
    let rows = serde_json::Value::from(named.rows.as_slice()).to_string();
    let after_ms = named.claude_active_after_ms.unwrap_or(i64::MAX);
    let (claude, codex) = (list(&named.claude), list(&named.codex));
    let rows = statement
        .query_map(params![claude, codex, rows, after_ms, host], |row| {
            Ok(Candidate {
                id: row.get(0)?,
                agent: row.get(1)?,
                native_id: row.get(2)?,
                last_activity_ms: row.get(3)?,
                turn: row.get(4)?,
                started_by: row.get(8)?,
                version: row.get(9)?,
                settled_ms: row.get(10)?,
                cwd: row.get(5)?,
                brackets: row.get(6)?,
                own_activity_ms: row.get(7)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// Members of a family looked at.
const FAMILY_MAX: i64 = 1_000;

/// Row and native ids of the sub-agents and internal threads below a session.
pub fn family(tx: &Tx<'_>, host: &str, agent: &str, native_id: &str) -> Result<Vec<(i64, String)>> {
    let sql = "WITH RECURSIVE below(id, native) AS (
            SELECT id, native_id FROM sessions
                WHERE agent = ?1 AND parent_native_id = ?2 AND host = ?4
                    AND parent_native_id <> ''
            UNION
            SELECT s.id, s.native_id FROM below b JOIN sessions s
                ON s.agent = ?1 AND s.parent_native_id = b.native AND s.host = ?4
                    AND s.parent_native_id <> '')
        SELECT id, native FROM below LIMIT ?3";
    let mut statement = tx.0.prepare_cached(sql)?;
    let rows = statement
        .query_map(params![agent, native_id, FAMILY_MAX, host], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// Paths of the files that a session lies in now.
pub fn paths(tx: &Tx<'_>, session_id: i64) -> Result<Vec<Vec<u8>>> {
    let sql = "SELECT g.path FROM facts f JOIN source_files g ON g.id = f.generation
        WHERE f.session_id = ?1 AND g.live = 1 ORDER BY g.path";
    let mut statement = tx.0.prepare_cached(sql)?;
    let rows =
        statement.query_map([session_id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// The session of the top level, or else the nested one, that the file at this path is of.
pub fn session_at(tx: &Tx<'_>, host: &str, path: &[u8]) -> Result<Option<(i64, bool)>> {
    let sql = "SELECT s.id, s.nested FROM source_files g JOIN facts f ON f.generation = g.id
            JOIN sessions s ON s.id = f.session_id
        WHERE g.path = ?1 AND g.host = ?2 AND g.live = 1 ORDER BY s.nested, s.id LIMIT 1";
    let mut statement = tx.0.prepare_cached(sql)?;
    Ok(statement.query_row(params![path, host], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

/// The sessions whose files lie in this folder, which ends with its separator.
pub fn sessions_in(tx: &Tx<'_>, host: &str, folder: &[u8]) -> Result<Vec<i64>> {
    let mut end = folder.to_vec();
    end.push(0xff);
    let sql = "SELECT DISTINCT f.session_id FROM source_files g
            JOIN facts f ON f.generation = g.id
        WHERE g.path >= ?1 AND g.path < ?2 AND g.host = ?3 AND g.live = 1";
    let mut statement = tx.0.prepare_cached(sql)?;
    let rows = statement
        .query_map(params![folder, end, host], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// The session, of the top level or not, of that agent and native id.
pub fn session_named(
    tx: &Tx<'_>,
    host: &str,
    agent: &str,
    native_id: &str,
) -> Result<Option<(i64, bool)>> {
    let sql = "SELECT id, nested FROM sessions WHERE agent = ?1 AND native_id = ?2 AND host = ?3
        ORDER BY nested, id LIMIT 1";
    let mut statement = tx.0.prepare_cached(sql)?;
    Ok(statement
        .query_row([agent, native_id, host], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    fn row(source: &str, subject: &str, last_ms: i64) -> Evidence {
        Evidence {
            source: source.to_owned(),
            subject: subject.to_owned(),
            says: "seen".to_owned(),
            last_ms,
            ..Evidence::default()
        }
    }

    fn stored(store: &mut Store) -> Vec<(String, String, i64)> {
        let rows = store.read(|tx| of_session(tx, 7)).unwrap();
        rows.into_iter().map(|row| (row.source, row.subject, row.last_ms)).collect()
    }

    #[test]
    fn a_look_replaces_what_looks_said_and_leaves_the_hooks() {
        let mut store = Store::in_memory(1).unwrap();
        let first = [row("registry", "1:1", 5), row("lock", "2:2", 5)];
        store.write(|tx| record(tx, 7, &row("hook", "Stop", 4))).unwrap();
        store.write(|tx| replace(tx, 7, &first)).unwrap();
        store.write(|tx| replace(tx, 7, &[row("lock", "2:2", 9)])).unwrap();
        let left = [("hook", "Stop", 4), ("lock", "2:2", 9)];
        let left = left.map(|(a, b, at)| (a.to_owned(), b.to_owned(), at));
        assert_eq!(stored(&mut store), left);
    }

    #[test]
    fn of_two_hooks_of_one_kind_the_later_one_stands_whichever_is_absorbed_first() {
        let mut store = Store::in_memory(1).unwrap();
        for at in [5, 3] {
            store.write(|tx| record(tx, 7, &row("hook", "Stop", at))).unwrap();
        }
        assert_eq!(stored(&mut store), [("hook".to_owned(), "Stop".to_owned(), 5)]);
    }

    #[test]
    fn a_look_is_found_by_indexes_alone() {
        let mut store = Store::in_memory(1).unwrap();
        let steps = store
            .read(|tx| {
                let mut statement = tx.0.prepare(&format!("EXPLAIN QUERY PLAN {CANDIDATES}"))?;
                let rows =
                    statement.query_map(params!["[]", "[]", "[]", 0, ""], |row| row.get(3))?;
                Ok(rows.collect::<rusqlite::Result<Vec<String>>>()?)
            })
            .unwrap();
        let whole = |step: &&String| {
            let table = step.contains("sessions") || step.contains("evidence");
            step.starts_with("SCAN") && table && !step.contains("USING") && !step.contains("wanted")
        };
        let whole: Vec<&String> = steps.iter().filter(whole).collect();
        assert!(whole.is_empty(), "{steps:?}");
    }
}
