//! The rows of the audit, ledger and compactions panes.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::session::clean;
use super::{AuditRow, CompactionRow, LedgerRow, LedgerWhich, Narrow, Snapshot};
use crate::lifecycle::{Entity, EntityType, Status};
use crate::store::{Result, Tx, ledger as stored, query};

/// Audit events, newest first, at most `limit`.
pub fn audit(tx: &Tx<'_>, narrow: Narrow<'_>, limit: usize) -> Result<Vec<AuditRow>> {
    let events = stored::audit(tx, narrow, rows_max(limit))?;
    let titles = Titles::of(tx, events.iter().map(|event| event.entity))?;
    let shown = events.into_iter().map(|event| AuditRow {
        id: event.id,
        action: event.action,
        at_ms: event.last_ms,
        entity_type: event.entity.kind.word().to_owned(),
        entity: event.name,
        title: titles.title(event.entity),
        from: event.details.from,
        to: event.details.to,
        reason: event.details.reason,
        actor: event.actor,
        why: event.details.why,
        after: event.after,
        gap_ms: event.details.gap_ms,
        repeats: event.repeats,
        evidence: event.details.evidence,
    });
    Ok(shown.collect())
}

/// The ledger of a consumer, oldest first, at most `limit`.
pub fn ledger(
    tx: &Tx<'_>,
    consumer: &str,
    span: LedgerWhich,
    narrow: Narrow<'_>,
    limit: usize,
) -> Result<Vec<LedgerRow>> {
    let entries = stored::deliveries(tx, consumer, span, narrow, rows_max(limit))?;
    let titles = Titles::of(tx, entries.iter().map(|entry| entry.entity))?;
    let shown = entries.into_iter().map(|entry| LedgerRow {
        id: entry.id,
        at_ms: entry.at_ms,
        entity_type: entry.entity.kind.word().to_owned(),
        entity: entry.name,
        title: titles.title(entry.entity),
        from: entry.from.map_or_else(String::new, |from| Status::word(from).to_owned()),
        to: entry.to.word().to_owned(),
        reason: entry.reason,
        basis: entry.basis.word().to_owned(),
        ended_ms: entry.ended_ms,
        superseded: entry.superseded,
        acked_ms: entry.acked_ms,
        last_error: entry.last_error,
        attempts: entry.attempts,
    });
    Ok(shown.collect())
}

fn rows_max(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Titles of the sessions that rows are about; a run has none.
struct Titles(HashMap<i64, String>);

impl Titles {
    fn of(tx: &Tx<'_>, entities: impl Iterator<Item = Entity>) -> Result<Self> {
        let mut ids: Vec<i64> = entities.filter_map(session_of).collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(Self(query::titles(tx, &ids)?))
    }

    fn title(&self, entity: Entity) -> Option<String> {
        clean(self.0.get(&session_of(entity)?)?)
    }
}

fn session_of(entity: Entity) -> Option<i64> {
    match entity.kind {
        EntityType::Session => Some(entity.id),
        EntityType::Run => None,
    }
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
