//! Terminal transitions per consumer, acknowledgements, and the audit's events.
//!
//! The ledger stores no entries: they are the terminal transitions minus what a consumer has
//! acknowledged, an anti-join over a set. A cursor would skip a transition that commits late.

use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

use super::{Result, StoreError, Tx, transitions};
use crate::lifecycle::{Basis, Entity, Status};

/// One terminal transition, as a consumer of the ledger sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Transition id: what is acknowledged.
    pub id: i64,
    /// When it was written, ms.
    pub at_ms: i64,
    /// Of what.
    pub entity: Entity,
    /// `agent:native_id`, or the run's name; the row id if the row is gone.
    pub name: String,
    /// Status before; `None` only in a history, for an admission.
    pub from: Option<Status>,
    /// Status after.
    pub to: Status,
    /// Reason code.
    pub reason: String,
    /// Seen or concluded.
    pub basis: Basis,
    /// End, ms.
    pub ended_ms: Option<i64>,
    /// The row has since been reactivated or migrated.
    pub superseded: bool,
    /// When the consumer acknowledged it, ms.
    pub acked_ms: Option<i64>,
    /// Attempts to deliver it that failed; in the operator's ledger, those of the command.
    pub attempts: u64,
    /// Error of the last of them, while it is not delivered.
    pub last_error: Option<String>,
    /// Of a run: the session it opened, `agent:native_id`.
    pub session: Option<String>,
}

/// Whether an end of a session is the end of the run that opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsEnd {
    /// No run has anything to do with it.
    No,
    /// A run that opened it, or may have, is not over: it may turn out to be.
    Open,
    /// It is.
    Yes,
}

/// What an audit event says. Serialized as the event's details.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// Status before, a word.
    pub from: Option<String>,
    /// Status after, or attempted; a word.
    pub to: String,
    /// Reason code.
    pub reason: String,
    /// Why, in words.
    pub why: String,
    /// Between the end that was taken back and the new activity, ms.
    pub gap_ms: Option<i64>,
    /// What it rests on.
    pub evidence: Vec<String>,
}

/// An audit event to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewEvent<'a> {
    /// `status_transition_override`, `status_transition_rejected`, `status_migrated`.
    pub(crate) action: &'static str,
    /// Of what.
    pub(crate) entity: Entity,
    /// The transition it belongs to; `None` for a rejection.
    pub(crate) transition_id: Option<i64>,
    /// Who.
    pub(crate) actor: &'a str,
    /// `silence` or `exit`: what an override took back.
    pub(crate) after: Option<&'static str>,
    /// The rest.
    pub(crate) details: &'a Details,
    /// When, ms.
    pub(crate) at_ms: i64,
}

/// An audit event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    /// Event id.
    pub id: i64,
    /// `status_transition_override`, `status_transition_rejected`, `status_migrated`.
    pub action: String,
    /// Of what.
    pub entity: Entity,
    /// `agent:native_id`, or the run's name; the row id if the row is gone.
    pub name: String,
    /// The transition it belongs to.
    pub transition_id: Option<i64>,
    /// Who.
    pub actor: String,
    /// `silence` or `exit`: what an override took back.
    pub after: Option<String>,
    /// The rest.
    pub details: Details,
    /// When first, ms.
    pub created_ms: i64,
    /// When last, ms.
    pub last_ms: i64,
    /// Times it happened.
    pub repeats: u64,
}

/// Audit events over the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AuditTotals {
    /// Overrides of a completion by silence.
    pub overrides: u64,
    /// Overrides of a completion by end evidence.
    pub overrides_after_exit: u64,
    /// Rejections, repeats counted.
    pub rejections: u64,
    /// Rows moved by the migration.
    pub migrations: u64,
}

/// A consumer of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// Its name.
    pub name: String,
    /// It gets the transitions after this one.
    pub since_seq: i64,
    /// When it was registered, ms.
    pub created_ms: i64,
}

/// Action of an override.
pub const OVERRIDE: &str = "status_transition_override";
/// Action of a rejection.
pub const REJECTED: &str = "status_transition_rejected";
/// Action of the migration.
pub const MIGRATED: &str = "status_migrated";

const TERMINALS: &str =
    "('completed', 'completed_empty', 'failed', 'timed_out', 'aborted', 'cancelled')";
/// What is news of an end: word for word the condition of index `status_transitions_terminal`.
const POPULATION: &str = "t.previous_status IS NOT NULL AND t.previous_status <> t.status \
    AND t.origin = 'mirror' AND t.status IN \
    ('completed', 'completed_empty', 'failed', 'timed_out', 'aborted', 'cancelled')";
/// The row's name, however it is called.
const NAME: &str = "coalesce( \
    CASE e.entity_type WHEN 'session' \
        THEN (SELECT agent || ':' || native_id FROM sessions WHERE id = e.entity_id) \
        ELSE (SELECT name FROM runs WHERE id = e.entity_id) END, \
    e.entity_type || ' ' || e.entity_id)";

/// Which entries of the ledger are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// What the consumer has not acknowledged.
    Pending,
    /// Of that, what is to be tried by this moment, ms.
    Due(i64),
    /// Every terminal transition there is: acknowledged, imported, admitted, older than the
    /// consumer.
    History,
}

/// Of whom and since when rows are asked for: what is said with `--agent` and `--since`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Narrow<'a> {
    /// Only of this agent's sessions and runs.
    pub agent: Option<&'a str>,
    /// Only what was written at or after this moment, ms.
    pub since_ms: Option<i64>,
}

impl Narrow<'_> {
    /// Everything.
    pub const NOTHING: Self = Self { agent: None, since_ms: None };
}

/// A row's agent, however the row is called.
const AGENT: &str = "CASE e.entity_type WHEN 'session' \
    THEN (SELECT agent FROM sessions WHERE id = e.entity_id) \
    ELSE (SELECT agent FROM runs WHERE id = e.entity_id) END";

/// Entries of a consumer, oldest first.
pub fn deliveries(
    tx: &Tx<'_>,
    consumer: &str,
    span: Span,
    narrow: Narrow<'_>,
    rows_max: i64,
) -> Result<Vec<Delivery>> {
    let pending = || {
        format!(
            "WHERE {POPULATION} AND t.id > c.since_seq AND d.acked_ms IS NULL
                AND coalesce(a.next_ms, ?3) <= ?3"
        )
    };
    let (from, due_ms) = match span {
        Span::Pending => (pending(), i64::MAX),
        Span::Due(now_ms) => (pending(), now_ms),
        Span::History => (format!("WHERE t.status IN {TERMINALS} AND ?3 IS NOT NULL"), 0),
    };
    let [name, agent] = [NAME, AGENT].map(|row| row.replace("e.entity", "t.entity"));
    // Our rows are ordered by sequence; against an imported row only its own time can be compared.
    let sql = format!(
        "SELECT t.id, t.created_ms, t.entity_type, t.entity_id, {name}, t.previous_status,
            t.status, t.reason_code, t.basis, t.ended_ms, EXISTS (
                SELECT 1 FROM status_transitions s
                WHERE s.entity_type = t.entity_type AND s.entity_id = t.entity_id
                    AND s.previous_status IN {TERMINALS} AND s.status NOT IN {TERMINALS}
                    AND CASE WHEN s.origin = t.origin THEN s.id > t.id
                        ELSE s.created_ms > t.created_ms END),
            d.acked_ms, coalesce(a.attempts, o.attempts, 0),
            nullif(coalesce(a.last_error, o.last_error), ''),
            CASE t.entity_type WHEN 'run' THEN (SELECT agent || ':' || native_id FROM runs
                WHERE id = t.entity_id) END
        FROM status_transitions t JOIN consumers c ON c.name = ?1
            LEFT JOIN terminal_deliveries d ON d.transition_id = t.id AND d.consumer = c.name
            LEFT JOIN delivery_attempts a ON a.transition_id = t.id AND a.consumer = c.name
            LEFT JOIN delivery_attempts o ON o.transition_id = t.id AND c.name = 'operator'
                AND o.consumer = 'on_terminal'
        {from} AND (?4 IS NULL OR {agent} = ?4) AND (?5 IS NULL OR t.created_ms >= ?5)
        ORDER BY t.id LIMIT ?2"
    );
    let mut statement = tx.0.prepare_cached(&sql)?;
    let mut rows =
        statement.query(params![consumer, rows_max, due_ms, narrow.agent, narrow.since_ms])?;
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        list.push(delivery(row)?);
    }
    Ok(list)
}

/// Whether an entry, of a session, is the end of a run that opened it and that the consumer is told
/// of: both ends, or the moments at
/// which they were written, lie within so many ms. A run that is not linked yet may have opened a
/// session of its agent in its folder.
pub fn is_runs_end(
    tx: &Tx<'_>,
    consumer: &str,
    entry: &Delivery,
    within_ms: i64,
) -> Result<RunsEnd> {
    let over = format!(
        "SELECT EXISTS (SELECT 1 FROM sessions s JOIN runs r
                ON r.agent = s.agent AND r.native_id = s.native_id AND r.native_id IS NOT NULL
                JOIN consumers c ON c.name = ?5 AND r.transition_id > c.since_seq
            WHERE s.id = ?1 AND r.host = s.host AND r.status IN {TERMINALS}
                AND (abs(r.ended_ms - ?2) <= ?4 OR abs(r.status_since_ms - ?3) <= ?4))"
    );
    let open = "SELECT EXISTS (SELECT 1 FROM sessions s JOIN runs r ON r.host = s.host
            WHERE s.id = ?1 AND r.status IN ('starting', 'running') AND r.started_ms <= ?2
                AND r.agent = s.agent AND (r.native_id = s.native_id OR r.native_id IS NULL
                    AND json_valid(r.scope) AND json_valid(s.facts)
                    AND json_extract(r.scope, '$.cwd') = json_extract(s.facts, '$.cwd')))";
    let ended_ms = entry.ended_ms.unwrap_or(entry.at_ms);
    let mut statement = tx.0.prepare_cached(&over)?;
    let ends = params![entry.entity.id, ended_ms, entry.at_ms, within_ms, consumer];
    if statement.query_row(ends, |row| row.get(0))? {
        return Ok(RunsEnd::Yes);
    }
    let mut statement = tx.0.prepare_cached(open)?;
    let open = statement.query_row(params![entry.entity.id, entry.at_ms], |row| row.get(0))?;
    Ok(if open { RunsEnd::Open } else { RunsEnd::No })
}

/// How many entries a consumer has not acknowledged.
pub fn pending_count(tx: &Tx<'_>, consumer: &str) -> Result<u64> {
    let sql = format!(
        "SELECT count(*) FROM status_transitions t JOIN consumers c ON c.name = ?1
        WHERE {POPULATION} AND t.id > c.since_seq AND NOT EXISTS (
            SELECT 1 FROM terminal_deliveries d
            WHERE d.transition_id = t.id AND d.consumer = c.name)"
    );
    let count: i64 = tx.0.prepare_cached(&sql)?.query_row([consumer], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// Whether that transition is one the consumer has to acknowledge or has acknowledged.
pub fn is_for(tx: &Tx<'_>, consumer: &str, transition_id: i64) -> Result<bool> {
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM status_transitions t JOIN consumers c ON c.name = ?1
            WHERE {POPULATION} AND t.id > c.since_seq AND t.id = ?2)"
    );
    let mut statement = tx.0.prepare_cached(&sql)?;
    Ok(statement.query_row(params![consumer, transition_id], |row| row.get(0))?)
}

/// Acknowledges one entry; `false` if it was acknowledged before.
pub fn acknowledge(
    tx: &Tx<'_>,
    consumer: &str,
    transition_id: i64,
    now_ms: i64,
    how: &str,
) -> Result<bool> {
    let sql = "INSERT INTO terminal_deliveries (transition_id, consumer, acked_ms, how)
        VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
    let mut statement = tx.0.prepare_cached(sql)?;
    Ok(statement.execute(params![transition_id, consumer, now_ms, how])? == 1)
}

/// Keeps that an attempt to deliver failed, and when the next one is due, ms.
pub fn attempt_failed(
    tx: &Tx<'_>,
    consumer: &str,
    transition_id: i64,
    error: &str,
    (now_ms, next_ms): (i64, i64),
) -> Result<()> {
    let sql = "INSERT INTO delivery_attempts
            (transition_id, consumer, attempts, last_ms, next_ms, last_error)
        VALUES (?1, ?2, 1, ?3, ?4, ?5)
        ON CONFLICT (transition_id, consumer) DO UPDATE SET attempts = attempts + 1,
            last_ms = excluded.last_ms, next_ms = excluded.next_ms,
            last_error = excluded.last_error";
    let mut statement = tx.0.prepare_cached(sql)?;
    statement.execute(params![transition_id, consumer, now_ms, next_ms, error])?;
    Ok(())
}

/// Forgets the last error of what is delivered now.
pub fn clear_error(tx: &Tx<'_>, consumer: &str, transition_id: i64) -> Result<()> {
    let sql = "UPDATE delivery_attempts SET last_error = ''
        WHERE transition_id = ?1 AND consumer = ?2";
    tx.0.prepare_cached(sql)?.execute(params![transition_id, consumer])?;
    Ok(())
}

/// When the next attempt is due for a consumer, ms; `None`: nothing that failed is pending.
pub fn next_attempt_ms(tx: &Tx<'_>, consumer: &str) -> Result<Option<i64>> {
    let sql = "SELECT min(a.next_ms) FROM delivery_attempts a WHERE a.consumer = ?1
        AND NOT EXISTS (SELECT 1 FROM terminal_deliveries d
            WHERE d.transition_id = a.transition_id AND d.consumer = a.consumer)";
    Ok(tx.0.prepare_cached(sql)?.query_row([consumer], |row| row.get(0))?)
}

/// Registers a consumer from the newest transition on; one that is known keeps what it has.
pub fn register(tx: &Tx<'_>, name: &str, now_ms: i64) -> Result<()> {
    let since = transitions::newest_id(tx)?;
    let sql = "INSERT INTO consumers (name, since_seq, created_ms) VALUES (?1, ?2, ?3)
        ON CONFLICT DO NOTHING";
    tx.0.prepare_cached(sql)?.execute(params![name, since, now_ms])?;
    Ok(())
}

/// Every consumer, by name.
pub fn consumers(tx: &Tx<'_>) -> Result<Vec<Consumer>> {
    let sql = "SELECT name, since_seq, created_ms FROM consumers ORDER BY name";
    let mut statement = tx.0.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        Ok(Consumer { name: row.get(0)?, since_seq: row.get(1)?, created_ms: row.get(2)? })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Keeps an audit event.
pub(crate) fn record(tx: &Tx<'_>, event: &NewEvent<'_>) -> Result<()> {
    let sql = "INSERT INTO admin_events (action, entity_type, entity_id, transition_id, actor,
            after_end, details, created_ms, last_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)";
    tx.0.prepare_cached(sql)?.execute(params![
        event.action,
        event.entity.kind.word(),
        event.entity.id,
        event.transition_id,
        event.actor,
        event.after,
        json(event.details)?,
        event.at_ms,
    ])?;
    Ok(())
}

/// Keeps an audit event, or counts up the one that says the same.
pub(crate) fn record_or_repeat(tx: &Tx<'_>, event: &NewEvent<'_>) -> Result<()> {
    let sql = "UPDATE admin_events SET repeats = repeats + 1, last_ms = max(last_ms, ?6)
        WHERE entity_type = ?1 AND entity_id = ?2 AND action = ?3 AND actor = ?4 AND details = ?5";
    let repeated = tx.0.prepare_cached(sql)?.execute(params![
        event.entity.kind.word(),
        event.entity.id,
        event.action,
        event.actor,
        json(event.details)?,
        event.at_ms,
    ])?;
    if repeated == 0 { record(tx, event) } else { Ok(()) }
}

/// Audit events, newest first.
pub fn audit(tx: &Tx<'_>, narrow: Narrow<'_>, rows_max: i64) -> Result<Vec<AuditEvent>> {
    let sql = format!(
        "SELECT e.id, e.action, e.entity_type, e.entity_id, {NAME}, e.transition_id, e.actor,
            e.after_end, e.details, e.created_ms, e.last_ms, e.repeats
        FROM admin_events e
        WHERE (?2 IS NULL OR {AGENT} = ?2) AND (?3 IS NULL OR e.last_ms >= ?3)
        ORDER BY e.last_ms DESC, e.id DESC LIMIT ?1"
    );
    let mut statement = tx.0.prepare_cached(&sql)?;
    let mut rows = statement.query(params![rows_max, narrow.agent, narrow.since_ms])?;
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        list.push(event(row)?);
    }
    Ok(list)
}

/// Audit events by kind.
pub fn audit_totals(tx: &Tx<'_>) -> Result<AuditTotals> {
    let sql = "SELECT action, after_end, count(*), sum(repeats) FROM admin_events
        GROUP BY action, after_end";
    let mut statement = tx.0.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut totals = AuditTotals::default();
    while let Some(row) = rows.next()? {
        let (action, after): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        let (events, repeats): (i64, i64) = (row.get(2)?, row.get(3)?);
        match (action.as_str(), after.as_deref()) {
            (OVERRIDE, Some("exit")) => totals.overrides_after_exit += events.unsigned_abs(),
            (OVERRIDE, _) => totals.overrides += events.unsigned_abs(),
            (REJECTED, _) => totals.rejections += repeats.unsigned_abs(),
            (MIGRATED, _) => totals.migrations += events.unsigned_abs(),
            (_, _) => {}
        }
    }
    Ok(totals)
}

fn json(details: &Details) -> Result<String> {
    serde_json::to_string(details).map_err(|why| StoreError::Value(why.to_string()))
}

fn entity(row: &Row<'_>, kind: usize, id: usize) -> Result<Entity> {
    let word: String = row.get(kind)?;
    Ok(Entity { kind: transitions::entity_type(&word)?, id: row.get(id)? })
}

fn delivery(row: &Row<'_>) -> Result<Delivery> {
    let from: Option<String> = row.get(5)?;
    let attempts: i64 = row.get(12)?;
    Ok(Delivery {
        id: row.get(0)?,
        at_ms: row.get(1)?,
        entity: entity(row, 2, 3)?,
        name: row.get(4)?,
        from: from.map(|word| transitions::status(&word)).transpose()?,
        to: transitions::status(&row.get::<_, String>(6)?)?,
        reason: row.get(7)?,
        basis: transitions::basis(&row.get::<_, String>(8)?)?,
        ended_ms: row.get(9)?,
        superseded: row.get(10)?,
        acked_ms: row.get(11)?,
        attempts: attempts.unsigned_abs(),
        last_error: row.get(13)?,
        session: row.get(14)?,
    })
}

fn event(row: &Row<'_>) -> Result<AuditEvent> {
    let details: String = row.get(8)?;
    // An imported event has its own keys; what it says is then shown as it stands.
    let details = serde_json::from_str(&details)
        .unwrap_or_else(|_| Details { why: details, ..Details::default() });
    let repeats: i64 = row.get(11)?;
    Ok(AuditEvent {
        id: row.get(0)?,
        action: row.get(1)?,
        entity: entity(row, 2, 3)?,
        name: row.get(4)?,
        transition_id: row.get(5)?,
        actor: row.get(6)?,
        after: row.get(7)?,
        details,
        created_ms: row.get(9)?,
        last_ms: row.get(10)?,
        repeats: repeats.unsigned_abs(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn the_ledger_reads_terminal_transitions_and_no_others() {
        let mut store = Store::in_memory(1).unwrap();
        let sql = format!(
            "EXPLAIN QUERY PLAN SELECT count(*) FROM status_transitions t
            WHERE {POPULATION} AND t.id > 0"
        );
        let plan: String =
            store.read(|tx| Ok(tx.0.query_row(&sql, [], |row| row.get(3))?)).unwrap();
        assert!(plan.contains("status_transitions_terminal"), "{plan}");
    }

    #[test]
    fn what_the_queries_call_terminal_is_what_the_vocabulary_does() {
        for status in Status::ALL {
            let listed = TERMINALS.contains(&format!("'{}'", status.word()));
            assert_eq!(listed, status.is_terminal(), "{status:?}");
        }
        assert!(POPULATION.contains(TERMINALS));
    }

    #[test]
    fn an_end_is_the_runs_if_it_lies_near_it_and_the_consumer_is_told_of_the_run() {
        let mut store = Store::in_memory(1).unwrap();
        let asked = |store: &mut Store, at_ms: i64, ended_ms: Option<i64>| {
            let entry = Delivery {
                id: 9,
                at_ms,
                entity: Entity::session(1),
                name: String::new(),
                from: Some(Status::Idle),
                to: Status::Completed,
                reason: String::new(),
                basis: Basis::Observed,
                ended_ms,
                superseded: false,
                acked_ms: None,
                attempts: 0,
                last_error: None,
                session: None,
            };
            store.read(|tx| is_runs_end(tx, "c", &entry, 10)).unwrap()
        };
        let sql = |store: &mut Store, sql: &str| {
            store.write(|tx| Ok(tx.0.execute_batch(sql)?)).unwrap();
        };
        sql(
            &mut store,
            "INSERT INTO consumers (name, since_seq, created_ms) VALUES ('c', 5, 1);
            INSERT INTO sessions (id, host, agent, native_id, root_id, facts)
                VALUES (1, 'h', 'claude', 'a', 1, '{\"cwd\":\"/w\"}');
            INSERT INTO runs (name, host, agent, native_id, scope, status, started_ms, ended_ms,
                    status_since_ms, transition_id)
                VALUES ('r', 'h', 'claude', 'a', '{\"cwd\":\"/w\"}', 'failed', 100, 500, 600, 6)",
        );
        assert_eq!(asked(&mut store, 9_000, Some(490)), RunsEnd::Yes);
        assert_eq!(asked(&mut store, 610, Some(100)), RunsEnd::Yes);
        assert_eq!(asked(&mut store, 611, Some(489)), RunsEnd::No);
        sql(&mut store, "UPDATE runs SET transition_id = 5");
        assert_eq!(asked(&mut store, 600, Some(500)), RunsEnd::No);
        sql(&mut store, "UPDATE runs SET status = 'running', ended_ms = NULL");
        assert_eq!(asked(&mut store, 600, Some(500)), RunsEnd::Open);
        assert_eq!(asked(&mut store, 99, Some(99)), RunsEnd::No);
        sql(&mut store, "UPDATE runs SET native_id = NULL");
        assert_eq!(asked(&mut store, 600, Some(500)), RunsEnd::Open);
        sql(&mut store, "UPDATE runs SET scope = '{\"cwd\":\"/v\"}'");
        assert_eq!(asked(&mut store, 600, Some(500)), RunsEnd::No);
    }
}
