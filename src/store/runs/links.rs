//! What joins a run and the session it opened: who has none yet, which sessions it may be, what the
//! linked one says.

use rusqlite::{OptionalExtension, params};
use serde::Deserialize;

use super::{COLUMNS, RunRow, run};
use crate::source::{Outcome, Turn, facts::Counts};
use crate::store::{Result, Tx};

/// What a run's session says, as far as the run's end depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Linked {
    /// Its row id.
    pub session_id: i64,
    /// Its end, ms, and whether that is approximate.
    pub end: Option<(i64, bool)>,
    /// Its last error, if the turn that is its last word ended in it.
    pub last_word: Option<String>,
    /// Answers and tool calls.
    pub work: u64,
    /// Whether its own turn is open.
    pub turn_open: bool,
}

/// A session that a run may have opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its agent.
    pub agent: String,
    /// Its native id.
    pub native_id: String,
    /// Its working directory.
    pub cwd: Option<String>,
    /// Its first activity, else its start, ms.
    pub began_ms: i64,
}

/// Which sessions are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// Those with news and those that are live: what a pass can ask for each time.
    Fresh,
    /// Every one.
    All,
}

/// The session that a run is linked to; `None` if it is not mirrored.
pub fn linked(tx: &Tx<'_>, run_id: i64) -> Result<Option<Linked>> {
    let sql = "SELECT s.id, s.ended_ms, s.ended_approx, s.facts
        FROM runs r JOIN sessions s
            ON s.agent = r.agent AND s.native_id = r.native_id
            AND s.parent_native_id = '' AND s.host = r.host
        WHERE r.id = ?1";
    let mut statement = tx.0.prepare_cached(sql)?;
    let read = |row: &rusqlite::Row<'_>| {
        let facts: Option<Decisive> =
            serde_json::from_str(row.get_ref(3)?.as_str().unwrap_or("")).ok();
        let facts = facts.unwrap_or_default();
        let (ended, approximate): (Option<i64>, bool) = (row.get(1)?, row.get(2)?);
        Ok(Linked {
            session_id: row.get(0)?,
            end: ended.map(|at| (at, approximate)),
            work: facts.answers.chosen() + facts.tool_calls.chosen(),
            turn_open: facts.turn == Turn::Open,
            last_word: facts.last_word(),
        })
    };
    Ok(statement.query_row([run_id], read).optional()?)
}

/// The part of `source::facts::Facts` that bears on a run's end; the rest is skipped unread.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Decisive {
    turn: Turn,
    last_turn: Option<Outcome>,
    last_error: Option<String>,
    answers: Counts,
    tool_calls: Counts,
}

impl Decisive {
    fn last_word(self) -> Option<String> {
        let failed = self.turn != Turn::Open && self.last_turn == Some(Outcome::Error);
        self.last_error.filter(|_| failed)
    }
}

/// Runs of that host without a session, newest first: those at work, and those of an agent that
/// ended.
pub fn unlinked(tx: &Tx<'_>, host: &str, rows_max: i64) -> Result<Vec<RunRow>> {
    let mut statement = tx.0.prepare_cached(&unlinked_sql())?;
    let mut rows = statement.query(params![host, rows_max])?;
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        list.push(run(row)?);
    }
    Ok(list)
}

pub(super) fn unlinked_sql() -> String {
    format!(
        "SELECT {COLUMNS} FROM runs WHERE host = ?1 AND native_id IS NULL
            AND child_pid IS NOT NULL AND (ended_ms IS NULL OR agent IS NOT NULL)
        ORDER BY id DESC LIMIT ?2"
    )
}

const FREE: &str = "nested = 0 AND host = ?1 AND coalesce(first_activity_ms, own_clock_ms) >= ?2
    AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.agent = sessions.agent
        AND r.native_id = sessions.native_id AND r.host = sessions.host)";

/// Sessions of that host that began at or after `from_ms` and belong to no run, oldest first.
pub fn candidates(tx: &Tx<'_>, host: &str, among: Among, from_ms: i64) -> Result<Vec<Candidate>> {
    let sql = query(among);
    let mut statement = tx.0.prepare_cached(&sql)?;
    let rows = statement.query_map(params![host, from_ms], |row| {
        Ok(Candidate {
            agent: row.get(0)?,
            native_id: row.get(1)?,
            cwd: row.get(2)?,
            began_ms: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn query(among: Among) -> String {
    let columns = "agent, native_id, CASE WHEN json_valid(facts)
        THEN json_extract(facts, '$.cwd') END, coalesce(first_activity_ms, own_clock_ms) AS began";
    match among {
        Among::All => format!("SELECT {columns} FROM sessions WHERE {FREE} ORDER BY began"),
        Among::Fresh => format!(
            "SELECT {columns} FROM sessions WHERE {FREE} AND id IN (
                SELECT id FROM sessions WHERE dirty = 1 AND nested = 0
                UNION SELECT id FROM sessions WHERE deadline_ms IS NOT NULL AND nested = 0
                    AND status IN ('running', 'idle'))
            ORDER BY began"
        ),
    }
}

/// The top-level sessions whose transcripts lie in a folder: of dsh the one that a lock there is of.
pub fn in_folder(tx: &Tx<'_>, host: &str, folder: &[u8]) -> Result<Vec<(String, String)>> {
    let sql = "SELECT DISTINCT s.agent, s.native_id
        FROM source_files f JOIN facts g ON g.generation = f.id JOIN sessions s ON s.id = g.session_id
        WHERE f.live = 1 AND s.nested = 0 AND f.host = ?2
            AND f.path >= CAST(?1 || x'2f' AS BLOB) AND f.path < CAST(?1 || x'30' AS BLOB)";
    let mut statement = tx.0.prepare_cached(sql)?;
    let rows = statement.query_map(params![folder, host], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Whether that is a session of the top level, as far as it is mirrored.
pub fn is_top_level(tx: &Tx<'_>, host: &str, agent: &str, native_id: &str) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sessions WHERE host = ?1 AND agent = ?2
        AND native_id = ?3 AND parent_native_id = '' AND nested = 0)";
    let mut statement = tx.0.prepare_cached(sql)?;
    Ok(statement.query_row([host, agent, native_id], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn a_pass_asks_for_candidates_by_index() {
        let mut store = Store::in_memory(1).unwrap();
        let sql = format!("EXPLAIN QUERY PLAN {}", query(Among::Fresh));
        let steps: Vec<String> = store
            .read(|tx| {
                let mut statement = tx.0.prepare(&sql)?;
                let rows = statement.query_map(params!["h", 0], |row| row.get(3))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .unwrap();
        let whole = |step: &String| step.starts_with("SCAN sessions") && !step.contains("dirty");
        assert!(!steps.iter().any(whole), "{steps:?}");
    }

    #[test]
    fn a_folder_finds_what_lies_in_it_and_not_beside_it() {
        let mut store = Store::in_memory(1).unwrap();
        let rows = |tx: &Tx<'_>| {
            tx.0.execute_batch(
                "INSERT INTO sessions (id, host, agent, native_id, root_id)
                    VALUES (1, 'h', 'dsh', 'a', 1), (2, 'h', 'dsh', 'b', 1);
                INSERT INTO source_files (id, root_id, agent, place, path, stem, dev, ino, size,
                        ctime_ns, mtime_ms, state, first_seen_ms, host)
                    VALUES (1, 1, 'dsh', 'transcript', CAST('/d/a/session.jsonl' AS BLOB), 's',
                        1, 1, 1, 1, 1, '', 1, 'h'),
                    (2, 1, 'dsh', 'transcript', CAST('/d/a2/session.jsonl' AS BLOB), 's',
                        1, 2, 1, 1, 1, '', 1, 'h');
                INSERT INTO facts VALUES (1, 1, '{}'), (2, 2, '{}');",
            )?;
            Ok(())
        };
        store.write(rows).unwrap();
        let found = store.read(|tx| in_folder(tx, "h", b"/d/a")).unwrap();
        assert_eq!(found, [("dsh".to_owned(), "a".to_owned())]);
    }
}
