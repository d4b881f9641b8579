//! Observations of processes, hooks and children, one row per session, source and subject.
//!
//! What an observation proves, and in which scope, is decided by those who make it; here a row with
//! `ended_ms` says that its subject is over since then.

use super::{Result, Tx};

/// One observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// `hook`, `child`, `process`, `registry`.
    pub source: String,
    /// Which one: a pid and its start, an event's id.
    pub subject: String,
    /// What it says, in its source's own word.
    pub says: String,
    /// Host, boot, pid namespace and uid of the observer (JSON).
    pub scope: String,
    /// First seen, ms.
    pub first_ms: i64,
    /// Last seen, ms.
    pub last_ms: i64,
    /// Over since, ms.
    pub ended_ms: Option<i64>,
}

/// Keeps an observation; a repeated one moves its end and its last moment, never its first.
pub fn record(tx: &Tx<'_>, session_id: i64, evidence: &Evidence) -> Result<()> {
    let sql = "INSERT INTO evidence
            (session_id, source, subject, says, scope, first_ms, last_ms, ended_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
        ON CONFLICT (session_id, source, subject) DO UPDATE SET
            says = excluded.says, scope = excluded.scope,
            last_ms = excluded.last_ms, ended_ms = excluded.ended_ms";
    tx.0.prepare_cached(sql)?.execute(rusqlite::params![
        session_id,
        evidence.source,
        evidence.subject,
        evidence.says,
        evidence.scope,
        evidence.first_ms,
        evidence.last_ms,
        evidence.ended_ms,
    ])?;
    Ok(())
}

/// Every observation of a session, in the order in which they were first made.
pub fn of_session(tx: &Tx<'_>, session_id: i64) -> Result<Vec<Evidence>> {
    let sql = "SELECT source, subject, says, scope, first_ms, last_ms, ended_ms
        FROM evidence WHERE session_id = ?1 ORDER BY first_ms, id";
    let mut statement = tx.0.prepare_cached(sql)?;
    let rows = statement.query_map([session_id], |row| {
        Ok(Evidence {
            source: row.get(0)?,
            subject: row.get(1)?,
            says: row.get(2)?,
            scope: row.get(3)?,
            first_ms: row.get(4)?,
            last_ms: row.get(5)?,
            ended_ms: row.get(6)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
