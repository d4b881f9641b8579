//! The delivery ledger and the audit: what has ended and who has been told; what was taken back.
//!
//! The ledger is derived from the history, per consumer: terminal transitions of rows that were
//! something else before, written here, after the consumer's registration, minus what it has
//! acknowledged. History is not rewritten: an entry whose session came back stays, *superseded*.

pub mod on_terminal;

use std::collections::HashMap;

use crate::lifecycle::Entity;
use crate::store::ledger::{self, Narrow, Span};
use crate::store::{Result, Store, Tx};

pub use crate::store::ledger::{AuditEvent, AuditTotals, Consumer, Delivery, Details};

/// The consumer that every store has from its birth.
pub const OPERATOR: &str = "operator";

/// Which entries are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which<'a> {
    /// Those with these transition ids.
    Ids(&'a [i64]),
    /// All that are pending and fit.
    All(Narrow<'a>),
}

/// What became of an acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Acked {
    /// Acknowledged now.
    pub acked: Vec<i64>,
    /// Acknowledged before; nothing changed.
    pub already: Vec<i64>,
    /// No entry of this consumer; nothing changed.
    pub unknown: Vec<i64>,
}

/// The consumer's pending entries, oldest first, at most `rows_max`.
pub fn pending(tx: &Tx<'_>, consumer: &str, rows_max: i64) -> Result<Vec<Delivery>> {
    ledger::deliveries(tx, consumer, Span::Pending, Narrow::NOTHING, rows_max)
}

/// Every terminal transition there is, oldest first: also what lies outside the consumer's ledger.
pub fn history(tx: &Tx<'_>, consumer: &str, rows_max: i64) -> Result<Vec<Delivery>> {
    ledger::deliveries(tx, consumer, Span::History, Narrow::NOTHING, rows_max)
}

/// How many entries are pending, superseded ones included.
pub fn pending_count(tx: &Tx<'_>, consumer: &str) -> Result<u64> {
    ledger::pending_count(tx, consumer)
}

/// The entries of one session, by its row id, acknowledged ones included.
pub fn of_session(tx: &Tx<'_>, consumer: &str, session: i64) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    for entry in history(tx, consumer, i64::MAX)? {
        if entry.entity == Entity::session(session) && ledger::is_for(tx, consumer, entry.id)? {
            ids.push(entry.id);
        }
    }
    Ok(ids)
}

/// Acknowledges entries of a consumer. Doing it again, or for an unknown entry, changes nothing.
pub fn ack(tx: &Tx<'_>, consumer: &str, which: Which<'_>, now_ms: i64) -> Result<Acked> {
    let ids = match which {
        Which::Ids(ids) => with_superseded(tx, consumer, ids)?,
        Which::All(narrow) => {
            let entries = ledger::deliveries(tx, consumer, Span::Pending, narrow, i64::MAX)?;
            entries.into_iter().map(|entry| entry.id).collect()
        }
    };
    let mut acked = Acked::default();
    for id in ids {
        if !ledger::is_for(tx, consumer, id)? {
            acked.unknown.push(id);
        } else if ledger::acknowledge(tx, consumer, id, now_ms, "acknowledged")? {
            acked.acked.push(id);
        } else {
            acked.already.push(id);
        }
    }
    Ok(acked)
}

/// These entries, and those that they supersede: whoever knows the last end of a session has nothing
/// left to do about the ends that were taken back before it.
fn with_superseded(tx: &Tx<'_>, consumer: &str, ids: &[i64]) -> Result<Vec<i64>> {
    let entries = pending(tx, consumer, i64::MAX)?;
    let mut last: HashMap<Entity, i64> = HashMap::new();
    for entry in entries.iter().filter(|entry| ids.contains(&entry.id)) {
        let newest = last.entry(entry.entity).or_insert(entry.id);
        *newest = entry.id.max(*newest);
    }
    let mut all = ids.to_vec();
    let superseded = entries.iter().filter(|entry| {
        let before = last.get(&entry.entity).is_some_and(|last| entry.id < *last);
        entry.superseded && before && !ids.contains(&entry.id)
    });
    all.extend(superseded.map(|entry| entry.id));
    Ok(all)
}

/// Registers a consumer, which gets what ends from now on. Doing it again changes nothing.
pub fn register(tx: &Tx<'_>, consumer: &str, now_ms: i64) -> Result<()> {
    ledger::register(tx, consumer, now_ms)
}

/// Registers a consumer that is not known yet; true if it was not. Writes nothing otherwise.
pub fn introduce(store: &mut Store, consumer: &str, now_ms: i64) -> Result<bool> {
    let known = store.read(|tx| is_known(tx, consumer))?;
    if !known {
        store.write(|tx| register(tx, consumer, now_ms))?;
    }
    Ok(!known)
}

/// Whether a consumer is registered.
pub fn is_known(tx: &Tx<'_>, consumer: &str) -> Result<bool> {
    Ok(consumers(tx)?.iter().any(|known| known.name == consumer))
}

/// Whether an entry is one that the consumer has to acknowledge or has acknowledged.
pub fn is_for(tx: &Tx<'_>, consumer: &str, id: i64) -> Result<bool> {
    ledger::is_for(tx, consumer, id)
}

/// Every consumer, by name.
pub fn consumers(tx: &Tx<'_>) -> Result<Vec<Consumer>> {
    ledger::consumers(tx)
}

/// Audit events, newest first, at most `rows_max`.
pub fn audit(tx: &Tx<'_>, rows_max: i64) -> Result<Vec<AuditEvent>> {
    ledger::audit(tx, Narrow::NOTHING, rows_max)
}

/// Audit events by kind.
pub fn audit_totals(tx: &Tx<'_>) -> Result<AuditTotals> {
    ledger::audit_totals(tx)
}

#[cfg(test)]
mod tests;
