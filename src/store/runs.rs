//! Commands under `lullwatch run`: rows of their own, linked to the session each opens.
//!
//! Their status is written as a session's is, by `lifecycle` alone. `links` has what a run is linked
//! by, and what its session says.

pub mod links;

use rusqlite::{OptionalExtension, Row, params};

use super::{Result, Tx, transitions};
use crate::lifecycle::Status;

/// A run to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun<'a> {
    /// Its name, unique.
    pub name: &'a str,
    /// Host it runs on.
    pub host: &'a str,
    /// The agent that the command is, as far as it can be told.
    pub agent: Option<&'a str>,
    /// The command (JSON list).
    pub argv: &'a str,
    /// Where it runs (JSON): host, boot, pid namespace, uid, and the working directory.
    pub scope: &'a str,
    /// Pid of `lullwatch run`.
    pub wrapper_pid: Option<i64>,
    /// Its start time, as the system tells it.
    pub wrapper_start: Option<&'a str>,
    /// When it was started, ms.
    pub started_ms: i64,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Row id.
    pub id: i64,
    /// Name.
    pub name: String,
    /// Host.
    pub host: String,
    /// The agent that the command is, as far as it can be told.
    pub agent: Option<String>,
    /// Agent and native id of the session it opened, once known.
    pub session: Option<(String, String)>,
    /// Where it runs (JSON): host, boot, pid namespace, uid, and the working directory.
    pub scope: String,
    /// Pid and start time of `lullwatch run`.
    pub wrapper: Option<(i64, Option<String>)>,
    /// Pid and start time of its child.
    pub child: Option<(i64, Option<String>)>,
    /// Exit code of the child.
    pub exit_code: Option<i64>,
    /// Signal that ended the child.
    pub exit_signal: Option<i64>,
    /// When the child ended, ms: a run that waits for its session ends later.
    pub exit_ms: Option<i64>,
    /// Moves with status and activity.
    pub version: i64,
    /// Status.
    pub status: Option<Status>,
    /// Start, ms.
    pub started_ms: Option<i64>,
    /// End, ms.
    pub ended_ms: Option<i64>,
}

const COLUMNS: &str = "id, name, host, agent, native_id, scope, wrapper_pid, wrapper_start, \
    child_pid, child_start, exit_code, exit_signal, version, status, started_ms, ended_ms, \
    exit_ms";

/// Word for word the condition of index `runs_open`, for one host.
const OPEN: &str = "host = ?1 AND status IN ('starting', 'running')";

/// Keeps a new run, not admitted yet, and returns its row id.
pub fn insert(tx: &Tx<'_>, run: &NewRun<'_>) -> Result<i64> {
    let sql = "INSERT INTO runs
            (name, host, agent, argv, scope, wrapper_pid, wrapper_start, started_ms,
             last_activity_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)";
    tx.0.prepare_cached(sql)?.execute(params![
        run.name,
        run.host,
        run.agent,
        run.argv,
        run.scope,
        run.wrapper_pid,
        run.wrapper_start,
        run.started_ms,
    ])?;
    Ok(tx.0.last_insert_rowid())
}

/// That name, or the first of `name-2`, `name-3`, … that no run has yet.
pub fn free_name(tx: &Tx<'_>, name: &str) -> Result<String> {
    let mut statement = tx.0.prepare_cached("SELECT 1 FROM runs WHERE name = ?1")?;
    let mut free = name.to_owned();
    let mut number = 1_u64;
    while statement.exists([&free])? {
        number += 1;
        free = format!("{name}-{number}");
    }
    Ok(free)
}

/// One run; `None` if there is none with that row id.
pub fn load(tx: &Tx<'_>, id: i64) -> Result<Option<RunRow>> {
    let sql = format!("SELECT {COLUMNS} FROM runs WHERE id = ?1");
    let mut statement = tx.0.prepare_cached(&sql)?;
    statement.query_row([id], |row| Ok(run(row))).optional()?.transpose()
}

/// The runs of that host that are not over, oldest first.
pub fn open(tx: &Tx<'_>, host: &str) -> Result<Vec<RunRow>> {
    let sql = format!("SELECT {COLUMNS} FROM runs WHERE {OPEN} ORDER BY id");
    let mut statement = tx.0.prepare_cached(&sql)?;
    let mut rows = statement.query([host])?;
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        list.push(run(row)?);
    }
    Ok(list)
}

/// Notes the child that was started.
pub fn set_child(tx: &Tx<'_>, id: i64, pid: i64, start: Option<&str>) -> Result<()> {
    let sql = "UPDATE runs SET child_pid = ?2, child_start = ?3, version = version + 1
        WHERE id = ?1";
    tx.0.prepare_cached(sql)?.execute(params![id, pid, start])?;
    Ok(())
}

/// Notes how the child ended, by its exit code or by a signal, and when, ms.
pub fn set_exit(
    tx: &Tx<'_>,
    id: i64,
    (code, signal): (Option<i64>, Option<i64>),
    at_ms: i64,
) -> Result<()> {
    let sql = "UPDATE runs SET exit_code = ?2, exit_signal = ?3, exit_ms = ?4,
            version = version + 1
        WHERE id = ?1";
    tx.0.prepare_cached(sql)?.execute(params![id, code, signal, at_ms])?;
    Ok(())
}

/// Says anew why a run that keeps its status does so.
pub fn set_summary(tx: &Tx<'_>, id: i64, summary: &str) -> Result<()> {
    let sql = "UPDATE runs SET reason_summary = ?2 WHERE id = ?1 AND reason_summary IS NOT ?2";
    tx.0.prepare_cached(sql)?.execute(params![id, summary])?;
    Ok(())
}

/// Links a run to the session it opened.
pub fn link(tx: &Tx<'_>, id: i64, agent: &str, native_id: &str) -> Result<()> {
    let sql = "UPDATE runs SET agent = ?2, native_id = ?3 WHERE id = ?1";
    tx.0.prepare_cached(sql)?.execute(params![id, agent, native_id])?;
    Ok(())
}

/// The runs of these sessions (row ids) that had a child, oldest first, each with its session's.
pub fn of_sessions(tx: &Tx<'_>, host: &str, ids: &[i64]) -> Result<Vec<(i64, RunRow)>> {
    let mut statement = tx.0.prepare_cached(&of_sessions_sql())?;
    let mut rows = statement.query(params![host, serde_json::Value::from(ids).to_string()])?;
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        list.push((row.get(17)?, run(row)?));
    }
    Ok(list)
}

fn of_sessions_sql() -> String {
    let names: Vec<String> = COLUMNS.split(", ").map(|name| format!("r.{name}")).collect();
    format!(
        "SELECT {}, s.id FROM json_each(?2) j CROSS JOIN sessions s ON s.id = j.value
            CROSS JOIN runs r ON r.agent = s.agent AND r.native_id = s.native_id
                AND r.native_id IS NOT NULL
        WHERE r.host = ?1 AND s.host = r.host AND s.parent_native_id = ''
            AND r.child_pid IS NOT NULL
        ORDER BY r.id",
        names.join(", ")
    )
}

fn run(row: &Row<'_>) -> Result<RunRow> {
    let pair = |pid: usize, start: usize| -> rusqlite::Result<Option<(i64, Option<String>)>> {
        let pid: Option<i64> = row.get(pid)?;
        let start: Option<String> = row.get(start)?;
        Ok(pid.map(|pid| (pid, start)))
    };
    let agent: Option<String> = row.get(3)?;
    let native_id: Option<String> = row.get(4)?;
    let status: Option<String> = row.get(13)?;
    Ok(RunRow {
        id: row.get(0)?,
        name: row.get(1)?,
        host: row.get(2)?,
        session: agent.clone().zip(native_id),
        agent,
        scope: row.get(5)?,
        wrapper: pair(6, 7)?,
        child: pair(8, 9)?,
        exit_code: row.get(10)?,
        exit_signal: row.get(11)?,
        version: row.get(12)?,
        status: status.map(|word| transitions::status(&word)).transpose()?,
        started_ms: row.get(14)?,
        ended_ms: row.get(15)?,
        exit_ms: row.get(16)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn what_a_pass_asks_of_runs_is_found_by_indexes() {
        let mut store = Store::in_memory(1).unwrap();
        let plan = |sql: &str| {
            store
                .read(|tx| {
                    let mut statement = tx.0.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                    for parameter in 1..=statement.parameter_count() {
                        statement.raw_bind_parameter(parameter, "[]")?;
                    }
                    let mut steps = Vec::new();
                    let mut rows = statement.raw_query();
                    while let Some(row) = rows.next()? {
                        steps.push(row.get::<_, String>(3)?);
                    }
                    Ok(steps.join("; "))
                })
                .unwrap()
        };
        let mut plan = plan;
        for (sql, index) in [
            (format!("SELECT {COLUMNS} FROM runs WHERE {OPEN} ORDER BY id"), "runs_open"),
            (of_sessions_sql(), "runs_session"),
            (links::unlinked_sql(), "runs_unlinked"),
        ] {
            let plan = plan(&sql);
            assert!(plan.contains(index), "{sql}: {plan}");
        }
    }
}
