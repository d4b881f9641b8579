//! What can be told of a store without trusting it: its version, its pages, its totals.

use super::{Result, Tx};

/// Version of the file.
pub fn version(tx: &Tx<'_>) -> Result<i64> {
    Ok(tx.0.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// How it keeps what is being written.
pub fn journal_mode(tx: &Tx<'_>) -> Result<String> {
    Ok(tx.0.pragma_query_value(None, "journal_mode", |row| row.get(0))?)
}

/// Damage found, a line each, at most `lines_max`; none in a sound file.
pub fn quick_check(tx: &Tx<'_>, lines_max: u32) -> Result<Vec<String>> {
    let mut statement = tx.0.prepare(&format!("PRAGMA quick_check({lines_max})"))?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let lines: Vec<String> = lines.collect::<rusqlite::Result<_>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// What there is of one agent below one root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RootTotals {
    /// Transcripts.
    pub files: i64,
    /// Sessions of the top level with a status.
    pub sessions: i64,
    /// Transcripts without a single stamped record: no session.
    pub no_session: i64,
    /// Bytes behind the last complete line.
    pub unread_bytes: i64,
}

/// Totals of a root; `None` if no pass has seen it.
pub fn root_totals(
    tx: &Tx<'_>,
    host: &str,
    agent: &str,
    path: &[u8],
) -> Result<Option<RootTotals>> {
    let Some((root, _)) = super::files::root(tx, host, agent, path)? else { return Ok(None) };
    let sql = "SELECT
        (SELECT count(*) FROM source_files WHERE root_id = ?1 AND live = 1 AND gone_ms IS NULL),
        (SELECT count(*) FROM sessions WHERE root_id = ?1 AND nested = 0 AND status IS NOT NULL),
        (SELECT count(*) FROM source_files f WHERE f.root_id = ?1 AND f.live = 1
            AND f.gone_ms IS NULL AND f.place = 'transcript' AND NOT EXISTS (
                SELECT 1 FROM facts g JOIN sessions s ON s.id = g.session_id
                WHERE g.generation = f.id AND s.last_activity_ms IS NOT NULL)),
        (SELECT coalesce(sum(max(size - frame_at, 0)), 0) FROM source_files
            WHERE root_id = ?1 AND live = 1 AND gone_ms IS NULL
                AND place IN ('transcript', 'sub_agent', 'session_index')
                AND frame_at = position)";
    let totals = tx.0.query_row(sql, [root], |row| {
        Ok(RootTotals {
            files: row.get(0)?,
            sessions: row.get(1)?,
            no_session: row.get(2)?,
            unread_bytes: row.get(3)?,
        })
    })?;
    Ok(Some(totals))
}

/// Sessions whose stamps lay ahead of the clock, and the newest activity there is, ms.
pub fn clocks(tx: &Tx<'_>) -> Result<(i64, Option<i64>)> {
    let sql = "SELECT count(*) FILTER (WHERE clock_ahead = 1), max(last_activity_ms) FROM sessions";
    Ok(tx.0.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// Entries of a consumer that failed and are pending, and the newest error among them.
pub fn failing(tx: &Tx<'_>, consumer: &str) -> Result<(i64, Option<String>)> {
    let sql = "SELECT count(*), (SELECT last_error FROM delivery_attempts
            WHERE consumer = ?1 AND last_error <> '' ORDER BY last_ms DESC LIMIT 1)
        FROM delivery_attempts a WHERE a.consumer = ?1 AND NOT EXISTS (
            SELECT 1 FROM terminal_deliveries d
            WHERE d.transition_id = a.transition_id AND d.consumer = a.consumer)";
    Ok(tx.0.query_row(sql, [consumer], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// Runs that are not over: starting, at work, waiting for their session.
pub fn open_runs(tx: &Tx<'_>, host: &str) -> Result<(i64, i64, i64)> {
    let sql = "SELECT count(*) FILTER (WHERE status = 'starting'),
            count(*) FILTER (WHERE status = 'running' AND exit_code IS NULL AND exit_signal IS NULL),
            count(*) FILTER (WHERE status = 'running'
                AND (exit_code IS NOT NULL OR exit_signal IS NOT NULL))
        FROM runs WHERE host = ?1";
    Ok(tx.0.query_row(sql, [host], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?)
}
