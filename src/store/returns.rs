//! What one file says of the end of a sub-agent that lies in another.
//!
//! The word holds for what the sub-agent did until then: one that was sent on afterwards works again,
//! until the next word.

use rusqlite::{OptionalExtension, params};

use super::{Result, Tx};
use crate::source::{Outcome, Returned};

/// The newest word on the end of a sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// When it was said, ms; `None`: it holds whenever the sub-agent worked.
    pub at_ms: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
}

/// Keeps what a generation says: its newest word on each.
pub fn add(
    tx: &Tx<'_>,
    generation: i64,
    agent: &str,
    returned: &Returned,
    at_ms: Option<i64>,
) -> Result<()> {
    tx.0.prepare_cached(
        "INSERT INTO returns (generation, agent, native_id, parent_native_id, at_ms, outcome)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (generation, native_id, parent_native_id) DO UPDATE SET
             at_ms = excluded.at_ms, outcome = excluded.outcome
         WHERE excluded.at_ms IS NULL OR excluded.at_ms >= at_ms",
    )?
    .execute(params![
        generation,
        agent,
        returned.to.native,
        returned.to.parent.as_deref().unwrap_or(""),
        at_ms,
        returned.outcome.word()
    ])?;
    Ok(())
}

/// The newest word of all live files on one sub-agent.
pub fn newest(
    tx: &Tx<'_>,
    host: &str,
    agent: &str,
    (native, parent): (&str, &str),
) -> Result<Option<Word>> {
    let sql = "SELECT r.at_ms, r.outcome
        FROM returns r JOIN source_files g ON g.id = r.generation AND g.live = 1
        WHERE r.agent = ?1 AND r.native_id = ?2 AND r.parent_native_id = ?3
            AND g.host = ?4
        ORDER BY r.at_ms IS NULL DESC, r.at_ms DESC, r.outcome LIMIT 1";
    let mut statement = tx.0.prepare_cached(sql)?;
    let found: Option<(Option<i64>, String)> = statement
        .query_row(params![agent, native, parent, host], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.and_then(|(at_ms, word)| Some(Word { at_ms, outcome: Outcome::from_word(&word)? })))
}

/// Sub-agents of whose end a generation tells.
pub fn told_by(tx: &Tx<'_>, generation: i64) -> Result<Vec<i64>> {
    let sql = "SELECT DISTINCT s.id FROM returns r JOIN source_files g ON g.id = r.generation
            JOIN sessions s ON s.agent = r.agent AND s.native_id = r.native_id
                AND s.parent_native_id = r.parent_native_id AND s.host = g.host
        WHERE r.generation = ?1";
    let mut statement = tx.0.prepare_cached(sql)?;
    let rows =
        statement.query_map([generation], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}
