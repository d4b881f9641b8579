//! A store on disk, a clock that only tests move, and rows as the mirror would write them.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::path::PathBuf;
use std::time::Duration;

use lullwatch::delivery::{self, AuditTotals, OPERATOR};
use lullwatch::lifecycle::apply::{Outcome, Request};
use lullwatch::lifecycle::{self, Actor, Basis, EndStamp, Entity, Status, Windows};
use lullwatch::reconcile::{self, Look, Options, Pass};
use lullwatch::store::Store;
use lullwatch::store::transitions::{self, TransitionRow};
use rusqlite::types::FromSql;
use rusqlite::{Connection, Params};

/// When every test begins, and the epoch of its root.
pub(crate) const T0: i64 = 1_796_029_200_000;
pub(crate) const SECOND: i64 = 1_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;
pub(crate) const LIVE: i64 = 5 * MINUTE;
pub(crate) const ENDED: i64 = DAY;
pub(crate) const WINDOWS: Windows = Windows { live_ms: LIVE, ended_ms: ENDED };

/// One monitor's store, and what a test looks at it with.
#[derive(Debug)]
pub(crate) struct Bed {
    pub(crate) store: Store,
    pub(crate) now: i64,
    pub(crate) look: Look,
    path: PathBuf,
    raw: Connection,
    _folder: tempfile::TempDir,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lullwatch.db");
        let store = Store::open(&path, Duration::from_secs(5), T0).unwrap();
        #[expect(clippy::disallowed_methods, reason = "writes the rows that the mirror would")]
        let raw = Connection::open(&path).unwrap();
        raw.busy_timeout(Duration::from_secs(5)).unwrap();
        let bed = Self { store, now: T0, look: Look::default(), path, raw, _folder: folder };
        bed.sql(
            "INSERT INTO roots (id, host, agent, path, epoch_ms) VALUES (1, 'h', '*', x'2f', ?1)",
            [T0],
        );
        bed
    }

    /// The program was killed and starts again on the same file.
    pub(crate) fn reopen(&mut self) {
        self.store = Store::open(&self.path, Duration::from_secs(5), self.now).unwrap();
    }

    /// The same, with no patience for another connection's lock.
    pub(crate) fn reopen_impatient(&mut self) {
        self.store = Store::open(&self.path, Duration::ZERO, self.now).unwrap();
    }

    pub(crate) fn sql(&self, sql: &str, params: impl Params) {
        self.raw.execute(sql, params).unwrap();
    }

    /// Statements of another kind.
    pub(crate) fn execute(&self, sql: &str) {
        self.raw.execute_batch(sql).unwrap();
    }

    pub(crate) fn deadline(&self, id: i64) -> Option<i64> {
        self.value("SELECT deadline_ms FROM sessions WHERE id = ?1", [id])
    }

    pub(crate) fn value<T: FromSql>(&self, sql: &str, params: impl Params) -> T {
        self.raw.query_row(sql, params, |row| row.get(0)).unwrap()
    }

    /// A session as the mirror first writes it: one record, stamped so.
    pub(crate) fn session(&self, agent: &str, native: &str, at: i64) -> i64 {
        self.sql(
            "INSERT INTO sessions (host, agent, native_id, root_id, own_clock_ms,
                first_activity_ms, last_activity_ms, dirty, version)
            VALUES ('h', ?1, ?2, 1, ?3, ?3, ?3, 1, 1)",
            (agent, native, at),
        );
        self.raw.last_insert_rowid()
    }

    /// A record of its own, stamped so: any end marker lies before it now.
    pub(crate) fn activity(&self, id: i64, at: i64) {
        self.sql(
            "UPDATE sessions SET last_activity_ms = max(last_activity_ms, ?2),
                own_clock_ms = max(own_clock_ms, ?2), facts = '{}', dirty = 1,
                version = version + 1
            WHERE id = ?1",
            [id, at],
        );
    }

    /// A record of a sub-agent, stamped so.
    pub(crate) fn child_activity(&self, id: i64, at: i64) {
        self.sql(
            "UPDATE sessions SET last_activity_ms = max(last_activity_ms, ?2),
                child_activity_ms = max(coalesce(child_activity_ms, 0), ?2), dirty = 1,
                version = version + 1
            WHERE id = ?1",
            [id, at],
        );
    }

    /// A `cost-state` at the end of its transcript, naming that end.
    pub(crate) fn end_marker(&self, id: i64, at: i64) {
        self.sql(
            "UPDATE sessions SET facts = json_object('end',
                json_object('kind', 'cost-state', 'at_ms', ?2)), dirty = 1, version = version + 1
            WHERE id = ?1",
            [id, at],
        );
    }

    /// One pass at the bed's moment.
    pub(crate) fn pass(&mut self) -> Pass {
        reconcile::tick(&mut self.store, &self.look, WINDOWS, self.now, Options::default()).unwrap()
    }

    /// One pass at that moment.
    pub(crate) fn pass_at(&mut self, now: i64) -> Pass {
        self.now = now;
        self.pass()
    }

    pub(crate) fn status(&self, id: i64) -> Option<Status> {
        let word: Option<String> = self.value("SELECT status FROM sessions WHERE id = ?1", [id]);
        word.map(|word| Status::from_word(&word).unwrap())
    }

    pub(crate) fn version(&self, id: i64) -> i64 {
        self.value("SELECT version FROM sessions WHERE id = ?1", [id])
    }

    pub(crate) fn end(&self, id: i64) -> Option<EndStamp> {
        let number = |column: &str| -> Option<i64> {
            self.value(&format!("SELECT {column} FROM sessions WHERE id = ?1"), [id])
        };
        let approximate = number("ended_approx") == Some(1);
        let at_ms = number("ended_ms")?;
        Some(EndStamp { at_ms, approximate, duration_ms: number("duration_ms") })
    }

    pub(crate) fn history(&mut self, entity: Entity) -> Vec<TransitionRow> {
        self.store.read(|tx| transitions::of_entity(tx, entity)).unwrap()
    }

    /// The history of a session as `from>to reason`.
    pub(crate) fn story(&mut self, id: i64) -> Vec<String> {
        self.history(Entity::session(id))
            .into_iter()
            .map(|row| {
                let from = row.previous.map_or("none", Status::word);
                format!("{from}>{} {}", row.status.word(), row.reason)
            })
            .collect()
    }

    pub(crate) fn audit(&mut self) -> AuditTotals {
        self.store.read(delivery::audit_totals).unwrap()
    }

    pub(crate) fn pending(&mut self) -> u64 {
        self.store.read(|tx| delivery::pending_count(tx, OPERATOR)).unwrap()
    }

    pub(crate) fn apply(&mut self, request: Request) -> Outcome {
        let command = request.check().unwrap();
        self.store.write(|tx| lifecycle::apply(tx, &command)).unwrap()
    }

    /// Every row that the lifecycle can write, in order: what two stores are compared by.
    pub(crate) fn dump(&self) -> Vec<String> {
        let tables =
            ["sessions", "runs", "status_transitions", "admin_events", "terminal_deliveries"];
        tables.into_iter().chain(["meta"]).flat_map(|table| self.rows(table)).collect()
    }

    fn rows(&self, table: &str) -> Vec<String> {
        let mut statement = self.raw.prepare(&format!("SELECT * FROM {table} ORDER BY 1")).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            let cell = |column: usize| row.get::<_, rusqlite::types::Value>(column).unwrap();
            let cells = (0..columns).map(|column| format!("{:?}", cell(column)));
            Ok(format!("{table}: {}", cells.collect::<Vec<_>>().join(" ")))
        });
        rows.unwrap().map(Result::unwrap).collect()
    }
}

/// A request for a session, as its current row is; what a test is about it changes.
pub(crate) fn request(bed: &Bed, id: i64, to: Status, reason: &str, actor: Actor) -> Request {
    let end = EndStamp { at_ms: bed.now, approximate: true, duration_ms: None };
    Request {
        entity: Entity::session(id),
        expected_status: bed.status(id),
        expected_version: bed.version(id),
        to,
        reason: reason.to_owned(),
        summary: "a test".to_owned(),
        basis: Basis::Observed,
        rule: "live_window".to_owned(),
        evidence: vec!["seen by a test".to_owned()],
        actor,
        end: to.is_terminal().then_some(end),
        override_by: None,
        windows: None,
        now_ms: bed.now,
    }
}
