//! Rows of the history: transitions, audit events, the ledger.

use rusqlite::{OptionalExtension, Row, params};

use super::super::{Result, Tx};
use super::{phrases, unsigned};

/// One row of a session's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionRow {
    /// Sequence number.
    pub id: i64,
    /// When it was written, ms.
    pub at_ms: i64,
    /// Status before.
    pub from: Option<String>,
    /// Status after.
    pub to: String,
    /// Reason code.
    pub reason: String,
    /// One sentence.
    pub summary: String,
    /// Seen or concluded.
    pub basis: String,
    /// Rule of `decide`.
    pub rule: String,
    /// Actor id.
    pub actor: String,
    /// What it rests on.
    pub evidence: Vec<String>,
}

/// The history of one session, oldest first: imported rows are where their times put them.
pub fn transitions(tx: &Tx<'_>, session: i64) -> Result<Vec<TransitionRow>> {
    let mut statement = tx.0.prepare_cached(
        "SELECT id, created_ms, previous_status, status, reason_code, reason_summary, basis, rule,
                actor_id, evidence
         FROM status_transitions WHERE entity_type = 'session' AND entity_id = ?1
         ORDER BY created_ms, id",
    )?;
    let rows = statement.query_map([session], transition)?.collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// Transitions by their ids, each with the name of what it is about, in the order of their ids.
pub fn transitions_by_id(tx: &Tx<'_>, ids: &[i64]) -> Result<Vec<(String, TransitionRow)>> {
    let mut found = Vec::with_capacity(ids.len());
    let mut statement = tx.0.prepare_cached(&format!(
        "SELECT t.id, t.created_ms, t.previous_status, t.status, t.reason_code, t.reason_summary,
                t.basis, t.rule, t.actor_id, t.evidence, {ENTITY}
         FROM status_transitions t {ENTITY_JOIN} WHERE t.id = ?1"
    ))?;
    for id in ids {
        let row = statement.query_row([id], |row| Ok((row.get(10)?, transition(row)?)));
        found.extend(row.optional()?);
    }
    Ok(found)
}

fn transition(row: &Row<'_>) -> rusqlite::Result<TransitionRow> {
    Ok(TransitionRow {
        id: row.get(0)?,
        at_ms: row.get(1)?,
        from: row.get(2)?,
        to: row.get(3)?,
        reason: row.get(4)?,
        summary: row.get(5)?,
        basis: row.get(6)?,
        rule: row.get(7)?,
        actor: row.get(8)?,
        evidence: phrases(row.get_ref(9)?.as_str()?),
    })
}

/// Name (`agent:native_id`, or the run's) and title now of what a row `t` is about.
const ENTITY: &str = "
    COALESCE(s.agent || ':' || s.native_id, r.name, t.entity_type || ' ' || t.entity_id),
    CASE WHEN json_valid(s.facts) THEN json_extract(s.facts, '$.title') END";
const ENTITY_JOIN: &str = "
    LEFT JOIN sessions s ON t.entity_type = 'session' AND s.id = t.entity_id
    LEFT JOIN runs r ON t.entity_type = 'run' AND r.id = t.entity_id";

/// An audit event.
#[derive(Debug, Clone, PartialEq)]
pub struct AdminEventRow {
    /// Event id.
    pub id: i64,
    /// What it is.
    pub action: String,
    /// `session` or `run`.
    pub entity_type: String,
    /// Its name.
    pub entity: String,
    /// Its title now.
    pub title: Option<String>,
    /// Who.
    pub actor: String,
    /// What the writer said of it; null where it cannot be read.
    pub details: serde_json::Value,
    /// The last time it happened, ms.
    pub last_ms: i64,
    /// How often.
    pub repeats: u64,
    /// The transition it stands beside, if there is one: before, after, reason code.
    pub transition: Option<(Option<String>, String, String)>,
}

/// Audit events, newest first, at most `limit`.
pub fn admin_events(tx: &Tx<'_>, limit: usize) -> Result<Vec<AdminEventRow>> {
    let mut statement = tx.0.prepare_cached(&format!(
        "SELECT t.id, t.action, t.entity_type, {ENTITY}, t.actor, t.details, t.last_ms, t.repeats,
                n.previous_status, n.status, n.reason_code
         FROM admin_events t {ENTITY_JOIN}
         LEFT JOIN status_transitions n ON n.id = t.transition_id
         ORDER BY t.last_ms DESC, t.id DESC LIMIT ?1"
    ))?;
    let rows = statement
        .query_map([i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
            let details: String = row.get(6)?;
            let before: Option<String> = row.get(9)?;
            let after: Option<String> = row.get(10)?;
            let reason: Option<String> = row.get(11)?;
            Ok(AdminEventRow {
                id: row.get(0)?,
                action: row.get(1)?,
                entity_type: row.get(2)?,
                entity: row.get(3)?,
                title: row.get(4)?,
                actor: row.get(5)?,
                details: serde_json::from_str(&details).unwrap_or_default(),
                last_ms: row.get(7)?,
                repeats: unsigned(row.get(8)?),
                transition: after.map(|after| (before, after, reason.unwrap_or_default())),
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// How often an action was audited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCount {
    /// What it is.
    pub action: String,
    /// What an override took back: `silence` or `exit`.
    pub after: Option<String>,
    /// Rows.
    pub events: u64,
    /// Times, repeats counted.
    pub times: u64,
}

/// Audit events over the store, by action and by what they took back.
pub fn event_counts(tx: &Tx<'_>) -> Result<Vec<EventCount>> {
    let mut statement = tx.0.prepare_cached(
        "SELECT action, CASE WHEN json_valid(details) THEN json_extract(details, '$.after') END,
                COUNT(*), SUM(repeats)
         FROM admin_events GROUP BY 1, 2 ORDER BY 1, 2",
    )?;
    let rows = statement
        .query_map([], |row| {
            Ok(EventCount {
                action: row.get(0)?,
                after: row.get(1)?,
                events: unsigned(row.get(2)?),
                times: unsigned(row.get(3)?),
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// A terminal transition as the ledger shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalRow {
    /// Transition id.
    pub id: i64,
    /// When it was written, ms.
    pub at_ms: i64,
    /// `session` or `run`.
    pub entity_type: String,
    /// Its name.
    pub entity: String,
    /// Its title now.
    pub title: Option<String>,
    /// Status before; `None`: an admission, which is never pending.
    pub from: Option<String>,
    /// Status after.
    pub to: String,
    /// Reason code.
    pub reason: String,
    /// Seen or concluded.
    pub basis: String,
    /// End, ms.
    pub ended_ms: Option<i64>,
    /// The entity lives again by a later transition.
    pub superseded: bool,
    /// When the consumer acknowledged it, ms.
    pub acked_ms: Option<i64>,
    /// Attempts to deliver it.
    pub attempts: u64,
    /// What the last attempt said.
    pub last_error: Option<String>,
}

/// Which part of the ledger is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerWhich {
    /// What the consumer has not acknowledged.
    Pending,
    /// Every terminal transition: also acknowledged ones, admissions, imports, and what came before
    /// the consumer.
    History,
}

/// A transition `t` that is in the ledger of consumer `?1`: changed, terminal, not imported, after
/// the consumer's registration, and not acknowledged. An anti-join over a set, never a cursor.
const PENDING: &str = "
    t.previous_status IS NOT NULL AND t.previous_status <> t.status
    AND t.origin = 'mirror'
    AND t.id > COALESCE((SELECT c.since_seq FROM consumers c WHERE c.name = ?1), 0)
    AND NOT EXISTS (SELECT 1 FROM terminal_deliveries x
                    WHERE x.transition_id = t.id AND x.consumer = ?1)";
const TERMINAL: &str = "
    t.status IN ('completed', 'completed_empty', 'failed', 'timed_out', 'aborted', 'cancelled')";

/// The ledger of a consumer, oldest first, at most `limit`; of a longer history its newest part.
pub fn terminal_transitions(
    tx: &Tx<'_>,
    consumer: &str,
    which: LedgerWhich,
    limit: usize,
) -> Result<Vec<TerminalRow>> {
    let (clause, order) = match which {
        LedgerWhich::Pending => (PENDING, "ASC"),
        LedgerWhich::History => ("1", "DESC"),
    };
    let mut statement = tx.0.prepare_cached(&format!(
        "SELECT t.id, t.created_ms, t.entity_type, {ENTITY}, t.previous_status, t.status,
                t.reason_code, t.basis, t.ended_ms,
                EXISTS (SELECT 1 FROM status_transitions n
                        WHERE n.entity_type = t.entity_type AND n.entity_id = t.entity_id
                          AND CASE WHEN n.origin = t.origin THEN n.id > t.id
                              ELSE n.created_ms > t.created_ms END
                          AND n.status IN ('starting', 'running', 'idle')),
                d.acked_ms, a.attempts, a.last_error
         FROM status_transitions t {ENTITY_JOIN}
         LEFT JOIN terminal_deliveries d ON d.transition_id = t.id AND d.consumer = ?1
         LEFT JOIN delivery_attempts a ON a.transition_id = t.id AND a.consumer = ?1
         WHERE {TERMINAL} AND {clause} ORDER BY t.id {order} LIMIT ?2"
    ))?;
    let mut rows = statement
        .query_map(params![consumer, i64::try_from(limit).unwrap_or(i64::MAX)], terminal)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    rows.sort_by_key(|row| row.id);
    Ok(rows)
}

fn terminal(row: &Row<'_>) -> rusqlite::Result<TerminalRow> {
    let last_error: Option<String> = row.get(13)?;
    Ok(TerminalRow {
        id: row.get(0)?,
        at_ms: row.get(1)?,
        entity_type: row.get(2)?,
        entity: row.get(3)?,
        title: row.get(4)?,
        from: row.get(5)?,
        to: row.get(6)?,
        reason: row.get(7)?,
        basis: row.get(8)?,
        ended_ms: row.get(9)?,
        superseded: row.get(10)?,
        acked_ms: row.get(11)?,
        attempts: unsigned(row.get::<_, Option<i64>>(12)?.unwrap_or(0)),
        last_error: last_error.filter(|error| !error.is_empty()),
    })
}

/// How many deliveries of a consumer are pending, superseded ones included.
pub fn pending_count(tx: &Tx<'_>, consumer: &str) -> Result<u64> {
    let mut statement = tx.0.prepare_cached(&format!(
        "SELECT COUNT(*) FROM status_transitions t WHERE {TERMINAL} AND {PENDING}"
    ))?;
    let count = statement.query_row([consumer], |row| row.get(0))?;
    Ok(unsigned(count))
}
