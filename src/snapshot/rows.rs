//! The rows of the audit, ledger and compactions panes.

use std::cmp::Reverse;

use serde_json::Value;

use super::{AuditRow, CompactionRow, LedgerRow, LedgerWhich, Snapshot};
use crate::store::query::{self, AdminEventRow};
use crate::store::{Result, Tx};

/// Audit events, newest first, at most `limit`.
pub fn audit(tx: &Tx<'_>, limit: usize) -> Result<Vec<AuditRow>> {
    Ok(query::admin_events(tx, limit)?.into_iter().map(audit_row).collect())
}

/// What an event says of itself stands in its details; where these are silent (an imported event
/// has another shape), the transition it stands beside has the word.
fn audit_row(row: AdminEventRow) -> AuditRow {
    let text = |names: &[&str]| -> Option<String> {
        names.iter().find_map(|name| row.details.get(name)?.as_str().map(str::to_owned))
    };
    let (before, after, reason) = match &row.transition {
        Some((before, after, reason)) => (before.clone(), Some(after.clone()), reason.clone()),
        None => (None, None, String::new()),
    };
    AuditRow {
        from: text(&["from", "previous_status", "from_status"]).or(before),
        to: text(&["to", "status", "to_status"]).or(after).unwrap_or_default(),
        reason: text(&["reason", "reason_code"]).unwrap_or(reason),
        why: text(&["why", "justification", "message"]).unwrap_or_default(),
        after: text(&["after"]),
        gap_ms: row.details.get("gap_ms").and_then(Value::as_i64),
        evidence: match row.details.get("evidence") {
            Some(Value::Array(items)) => items.iter().map(phrase).collect(),
            Some(Value::Null) | None => Vec::new(),
            Some(other) => vec![phrase(other)],
        },
        id: row.id,
        action: row.action,
        at_ms: row.last_ms,
        entity_type: row.entity_type,
        entity: row.entity,
        title: row.title,
        actor: row.actor,
        repeats: row.repeats,
    }
}

fn phrase(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The ledger of a consumer, oldest first, at most `limit`.
pub fn ledger(
    tx: &Tx<'_>,
    consumer: &str,
    which: LedgerWhich,
    limit: usize,
) -> Result<Vec<LedgerRow>> {
    let rows = query::terminal_transitions(tx, consumer, which, limit)?;
    let shown = rows.into_iter().map(|row| LedgerRow {
        id: row.id,
        at_ms: row.at_ms,
        entity_type: row.entity_type,
        entity: row.entity,
        title: row.title,
        from: row.from.unwrap_or_default(),
        to: row.to,
        reason: row.reason,
        basis: row.basis,
        ended_ms: row.ended_ms,
        superseded: row.superseded,
        acked_ms: row.acked_ms,
        last_error: row.last_error,
        attempts: row.attempts,
    });
    Ok(shown.collect())
}

/// The listed sessions that have a bracket: those that need a human first, then open ones, then
/// newest first.
pub fn compactions(snapshot: &Snapshot) -> Vec<CompactionRow> {
    let mut rows: Vec<CompactionRow> = snapshot
        .sessions
        .iter()
        .filter(|session| session.compaction.bracket != "none")
        .map(|session| {
            let stuck = session.compaction.state.as_deref().is_some_and(|state| state == "stuck?");
            CompactionRow {
                session: session.id.clone(),
                row_id: session.row_id,
                title: session.title.clone(),
                status: session.status,
                since_ms: session.compaction.ended_ms.or(session.compaction.started_ms),
                attention: session.attention && stuck,
                compaction: session.compaction.clone(),
            }
        })
        .collect();
    rows.sort_by(|one, other| {
        let key = |row: &CompactionRow| {
            let calm = row.compaction.bracket != "open";
            (!row.attention, calm, Reverse(row.since_ms))
        };
        key(one).cmp(&key(other)).then_with(|| one.session.cmp(&other.session))
    });
    rows
}
