//! The status of a row and its history.
//!
//! `set_status` is what `lifecycle::apply` writes with, and nothing else may: the columns it sets
//! and the row that [`append`] adds to the history belong together.

use rusqlite::{OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::{Result, StoreError, Tx};
use crate::lifecycle::{Basis, EndStamp, Entity, EntityType, Status, Windows};

/// What a write of a status is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Current {
    /// Status; `None`: not admitted.
    pub(crate) status: Option<Status>,
    /// Moves with status and activity.
    pub(crate) version: i64,
    /// Whose session; `None` for a run.
    pub(crate) agent: Option<String>,
    /// Sub-agents and internal threads have no lifecycle.
    pub(crate) nested: bool,
    /// What the status rests on (JSON).
    pub(crate) evidence: String,
}

/// The columns of a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusWrite<'a> {
    /// The status.
    pub(crate) status: Status,
    /// Since when, ms.
    pub(crate) since_ms: i64,
    /// Reason code.
    pub(crate) reason: &'a str,
    /// One sentence.
    pub(crate) summary: &'a str,
    /// Seen or concluded.
    pub(crate) basis: Basis,
    /// The rule that held.
    pub(crate) rule: &'a str,
    /// What it rests on (JSON).
    pub(crate) evidence: &'a str,
    /// The end; `Some` exactly for a terminal status.
    pub(crate) end: Option<EndStamp>,
}

/// One row of the history, to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTransition<'a> {
    /// Of what.
    pub entity: Entity,
    /// Status before.
    pub previous: Option<Status>,
    /// Status after.
    pub status: Status,
    /// Reason code.
    pub reason: &'a str,
    /// One sentence.
    pub summary: &'a str,
    /// Seen or concluded.
    pub basis: Basis,
    /// The rule that held.
    pub rule: &'a str,
    /// What it rests on (JSON).
    pub evidence: &'a str,
    /// Kind of actor, a word.
    pub actor_type: &'a str,
    /// Actor id.
    pub actor_id: &'a str,
    /// When, ms.
    pub created_ms: i64,
    /// The end, ms.
    pub ended_ms: Option<i64>,
    /// `mirror`: written here; anything else was imported from there.
    pub origin: &'a str,
    /// More (JSON); of a verdict by silence the windows: see [`windows`].
    pub metadata: &'a str,
}

/// What the metadata of a transition may say.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    live_window_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_window_ms: Option<i64>,
}

/// Metadata that keeps the windows under which a verdict by silence was made.
pub fn metadata(windows: Option<Windows>) -> String {
    let said = Metadata {
        live_window_ms: windows.map(|windows| windows.live_ms),
        ended_window_ms: windows.map(|windows| windows.ended_ms),
    };
    serde_json::to_string(&said).unwrap_or_else(|_| "{}".to_owned())
}

/// The windows that metadata keeps.
pub fn windows(metadata: &str) -> Option<Windows> {
    let said: Metadata = serde_json::from_str(metadata).ok()?;
    Some(Windows { live_ms: said.live_window_ms?, ended_ms: said.ended_window_ms? })
}

/// One row of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionRow {
    /// Sequence number.
    pub id: i64,
    /// Of what.
    pub entity: Entity,
    /// Status before.
    pub previous: Option<Status>,
    /// Status after.
    pub status: Status,
    /// Reason code.
    pub reason: String,
    /// One sentence.
    pub summary: String,
    /// Seen or concluded.
    pub basis: Basis,
    /// The rule that held.
    pub rule: String,
    /// What it rests on.
    pub evidence: Vec<String>,
    /// Kind of actor, a word.
    pub actor_type: String,
    /// Actor id.
    pub actor_id: String,
    /// When it was written, ms.
    pub created_ms: i64,
    /// The end, ms.
    pub ended_ms: Option<i64>,
    /// `mirror`, or where it was imported from.
    pub origin: String,
}

/// What the row holds now; `None` if there is no such row.
pub(crate) fn current(tx: &Tx<'_>, entity: Entity) -> Result<Option<Current>> {
    let sql = match entity.kind {
        EntityType::Session => {
            "SELECT status, version, agent, nested, evidence FROM sessions WHERE id = ?1"
        }
        EntityType::Run => "SELECT status, version, NULL, 0, evidence FROM runs WHERE id = ?1",
    };
    let mut statement = tx.0.prepare_cached(sql)?;
    let read = |row: &Row<'_>| {
        let word: Option<String> = row.get(0)?;
        Ok((word, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    };
    let Some((word, version, agent, nested, evidence)) =
        statement.query_row([entity.id], read).optional()?
    else {
        return Ok(None);
    };
    let status = word.map(|word| status(&word)).transpose()?;
    Ok(Some(Current { status, version, agent, nested, evidence }))
}

/// Writes a status over exactly the one and the version that were read; `false` if they are gone.
pub(crate) fn set_status(
    tx: &Tx<'_>,
    entity: Entity,
    over: &Current,
    write: &StatusWrite<'_>,
) -> Result<bool> {
    let sql = match entity.kind {
        EntityType::Session => {
            "UPDATE sessions SET status = ?4, status_since_ms = ?5, reason_code = ?6,
                reason_summary = ?7, basis = ?8, rule = ?9, evidence = ?10, ended_ms = ?11,
                ended_approx = ?12, duration_ms = ?13, version = version + 1
            WHERE id = ?1 AND status IS ?2 AND version = ?3"
        }
        EntityType::Run => {
            "UPDATE runs SET status = ?4, status_since_ms = ?5, reason_code = ?6,
                reason_summary = ?7, basis = ?8, rule = ?9, evidence = ?10, ended_ms = ?11,
                ended_approx = ?12, duration_ms = ?13, version = version + 1
            WHERE id = ?1 AND status IS ?2 AND version = ?3"
        }
    };
    let changed = tx.0.prepare_cached(sql)?.execute(params![
        entity.id,
        over.status.map(Status::word),
        over.version,
        write.status.word(),
        write.since_ms,
        write.reason,
        write.summary,
        write.basis.word(),
        write.rule,
        write.evidence,
        write.end.map(|end| end.at_ms),
        write.end.is_some_and(|end| end.approximate),
        write.end.and_then(|end| end.duration_ms),
    ])?;
    Ok(changed == 1)
}

/// Keeps fresh evidence for a status that stays as it is.
pub(crate) fn set_evidence(tx: &Tx<'_>, entity: Entity, evidence: &str) -> Result<()> {
    let sql = match entity.kind {
        EntityType::Session => "UPDATE sessions SET evidence = ?2 WHERE id = ?1",
        EntityType::Run => "UPDATE runs SET evidence = ?2 WHERE id = ?1",
    };
    tx.0.prepare_cached(sql)?.execute(params![entity.id, evidence])?;
    Ok(())
}

/// Names the row of the history that the status comes from.
pub(crate) fn set_transition(tx: &Tx<'_>, entity: Entity, transition_id: i64) -> Result<()> {
    let sql = match entity.kind {
        EntityType::Session => "UPDATE sessions SET transition_id = ?2 WHERE id = ?1",
        EntityType::Run => "UPDATE runs SET transition_id = ?2 WHERE id = ?1",
    };
    tx.0.prepare_cached(sql)?.execute([entity.id, transition_id])?;
    Ok(())
}

/// Adds a row to the history and returns its sequence number.
///
/// An import brings others' rows with their own times and origin; a change of status made here goes
/// through `lifecycle::apply`.
pub fn append(tx: &Tx<'_>, row: &NewTransition<'_>) -> Result<i64> {
    let sql = "INSERT INTO status_transitions
            (entity_type, entity_id, previous_status, status, reason_code, reason_summary, basis,
             rule, evidence, actor_type, actor_id, created_ms, ended_ms, origin, metadata)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    tx.0.prepare_cached(sql)?.execute(params![
        row.entity.kind.word(),
        row.entity.id,
        row.previous.map(Status::word),
        row.status.word(),
        row.reason,
        row.summary,
        row.basis.word(),
        row.rule,
        row.evidence,
        row.actor_type,
        row.actor_id,
        row.created_ms,
        row.ended_ms,
        row.origin,
        row.metadata,
    ])?;
    Ok(tx.0.last_insert_rowid())
}

const COLUMNS: &str = "id, entity_type, entity_id, previous_status, status, reason_code, \
    reason_summary, basis, rule, evidence, actor_type, actor_id, created_ms, ended_ms, origin";

/// The history of a row, oldest first.
pub fn of_entity(tx: &Tx<'_>, entity: Entity) -> Result<Vec<TransitionRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM status_transitions
        WHERE entity_type = ?1 AND entity_id = ?2 ORDER BY id"
    );
    let mut statement = tx.0.prepare_cached(&sql)?;
    let mut rows = statement.query(params![entity.kind.word(), entity.id])?;
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        list.push(transition(row)?);
    }
    Ok(list)
}

/// Rows of the history after a sequence number, oldest first: what `watch` prints.
pub fn after(tx: &Tx<'_>, id: i64, rows_max: i64) -> Result<Vec<TransitionRow>> {
    let sql =
        format!("SELECT {COLUMNS} FROM status_transitions WHERE id > ?1 ORDER BY id LIMIT ?2");
    let mut statement = tx.0.prepare_cached(&sql)?;
    let mut rows = statement.query([id, rows_max])?;
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        list.push(transition(row)?);
    }
    Ok(list)
}

/// The newest sequence number; 0 before the first row.
pub fn newest_id(tx: &Tx<'_>) -> Result<i64> {
    let sql = "SELECT coalesce(max(id), 0) FROM status_transitions";
    Ok(tx.0.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

fn transition(row: &Row<'_>) -> Result<TransitionRow> {
    let previous: Option<String> = row.get(3)?;
    Ok(TransitionRow {
        id: row.get(0)?,
        entity: Entity { kind: entity_type(&row.get::<_, String>(1)?)?, id: row.get(2)? },
        previous: previous.map(|word| status(&word)).transpose()?,
        status: status(&row.get::<_, String>(4)?)?,
        reason: row.get(5)?,
        summary: row.get(6)?,
        basis: basis(&row.get::<_, String>(7)?)?,
        rule: row.get(8)?,
        evidence: lines(&row.get::<_, String>(9)?),
        actor_type: row.get(10)?,
        actor_id: row.get(11)?,
        created_ms: row.get(12)?,
        ended_ms: row.get(13)?,
        origin: row.get(14)?,
    })
}

/// A status as stored.
pub(super) fn status(word: &str) -> Result<Status> {
    Status::from_word(word).ok_or_else(|| StoreError::Value(format!("status `{word}`")))
}

/// A basis as stored.
pub(super) fn basis(word: &str) -> Result<Basis> {
    Basis::from_word(word).ok_or_else(|| StoreError::Value(format!("basis `{word}`")))
}

/// An entity type as stored.
pub(super) fn entity_type(word: &str) -> Result<EntityType> {
    EntityType::from_word(word).ok_or_else(|| StoreError::Value(format!("entity type `{word}`")))
}

/// Evidence as stored; what is no list of strings is shown as it stands.
pub(super) fn lines(json: &str) -> Vec<String> {
    serde_json::from_str(json).unwrap_or_else(|_| vec![json.to_owned()])
}
