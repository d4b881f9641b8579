//! File generations and roots: rows, cursors, moves, ends.

use rusqlite::{OptionalExtension, Row, params};

use super::{Result, Tx};

/// A live generation as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRow {
    /// Generation id.
    pub id: i64,
    /// Root id.
    pub root_id: i64,
    /// The agent's word.
    pub agent: String,
    /// Raw bytes of the path.
    pub path: Vec<u8>,
    /// The place's word.
    pub place: String,
    /// Stem of its name.
    pub stem: String,
    /// Device, inode, size, ctime (ns), mtime (ms).
    pub stat: [i64; 5],
    /// Decoded offset behind the last complete line.
    pub position: i64,
    /// Start in the file, and decoded offset, of the frame in which reading goes on.
    pub frame: (i64, i64),
    /// That place lies inside a broken compressed part, which has been counted.
    pub in_damage: bool,
    /// Length and hash of the head window.
    pub head: (i64, i64),
    /// Length and hash of the tail window.
    pub tail: (i64, i64),
    /// When the file was found gone, ms.
    pub gone_ms: Option<i64>,
    /// By which version of the adapter it was read.
    pub reading: i64,
}

/// What a step of reading has changed of a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advance {
    /// As in [`FileRow`].
    pub stat: [i64; 5],
    /// As in [`FileRow`].
    pub position: i64,
    /// As in [`FileRow`].
    pub frame: (i64, i64),
    /// As in [`FileRow`].
    pub in_damage: bool,
    /// As in [`FileRow`].
    pub head: (i64, i64),
    /// As in [`FileRow`].
    pub tail: (i64, i64),
    /// Adapter state, JSON.
    pub state: String,
    /// Skipped lines to add.
    pub skipped: i64,
    /// Damaged frames to add.
    pub damaged: i64,
}

/// A generation to insert, before its first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile<'a> {
    /// Root id.
    pub root_id: i64,
    /// The host on which its path leads to it.
    pub host: &'a str,
    /// The agent's word.
    pub agent: &'a str,
    /// The place's word.
    pub place: &'a str,
    /// Raw bytes of the path.
    pub path: &'a [u8],
    /// Stem of its name.
    pub stem: &'a str,
    /// When it was first seen, ms; of one that takes another's place, when that one was.
    pub first_seen_ms: i64,
    /// The generation whose place it takes, now or later.
    pub replaces: Option<i64>,
    /// Whether it counts.
    pub counts: Counts,
    /// By which version of the adapter it is read.
    pub reading: i64,
}

/// Whether what a new generation says counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// From its first line on.
    AtOnce,
    /// When it has been read as far as the one whose place it takes: see [`change_places`].
    Later,
}

impl Counts {
    fn live(self) -> i64 {
        match self {
            Self::AtOnce => 1,
            Self::Later => 2,
        }
    }
}

const COLUMNS: &str = "id, root_id, agent, path, stem, dev, ino, size, ctime_ns, mtime_ms,
    position, frame_at, frame_position, head_len, head_hash, tail_len, tail_hash, gone_ms,
    in_damage, place, reading";

fn file_row(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    Ok(FileRow {
        id: row.get(0)?,
        root_id: row.get(1)?,
        agent: row.get(2)?,
        path: row.get(3)?,
        stem: row.get(4)?,
        stat: [row.get(5)?, row.get(6)?, row.get(7)?, row.get(8)?, row.get(9)?],
        position: row.get(10)?,
        frame: (row.get(11)?, row.get(12)?),
        head: (row.get(13)?, row.get(14)?),
        tail: (row.get(15)?, row.get(16)?),
        gone_ms: row.get(17)?,
        in_damage: row.get(18)?,
        place: row.get(19)?,
        reading: row.get(20)?,
    })
}

/// The id of a root, and its epoch if it has one, ms; `None` if it has had no pass.
pub fn root(
    tx: &Tx<'_>,
    host: &str,
    agent: &str,
    path: &[u8],
) -> Result<Option<(i64, Option<i64>)>> {
    let sql = "SELECT id, epoch_ms FROM roots WHERE host = ?1 AND agent = ?2 AND path = ?3";
    let mut statement = tx.0.prepare_cached(sql)?;
    let found =
        statement.query_row(params![host, agent, path], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(found.optional()?)
}

/// Notes a root's first pass, ms, and its id; an epoch once set never changes after.
pub fn add_root(
    tx: &Tx<'_>,
    host: &str,
    agent: &str,
    path: &[u8],
    epoch_ms: Option<i64>,
) -> Result<i64> {
    tx.0.prepare_cached(
        "INSERT INTO roots (host, agent, path, epoch_ms) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (host, agent, path)
             DO UPDATE SET epoch_ms = coalesce(epoch_ms, excluded.epoch_ms)",
    )?
    .execute(params![host, agent, path, epoch_ms])?;
    let id = tx.0.query_row(
        "SELECT id FROM roots WHERE host = ?1 AND agent = ?2 AND path = ?3",
        params![host, agent, path],
        |row| row.get(0),
    )?;
    Ok(id)
}

/// Moves the epochs between these moments by so much, ms: they were set by a clock that was wrong.
pub fn shift_epochs(tx: &Tx<'_>, (from_ms, to_ms): (i64, i64), by_ms: i64) -> Result<()> {
    let sql = "UPDATE roots SET epoch_ms = epoch_ms + ?3 WHERE epoch_ms BETWEEN ?1 AND ?2";
    tx.0.prepare_cached(sql)?.execute([from_ms, to_ms, by_ms])?;
    Ok(())
}

/// Every live generation of a host.
pub fn live_files(tx: &Tx<'_>, host: &str) -> Result<Vec<FileRow>> {
    let sql = format!("SELECT {COLUMNS} FROM source_files WHERE live = 1 AND host = ?1");
    let mut statement = tx.0.prepare_cached(&sql)?;
    let rows = statement.query_map([host], file_row)?.collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// The live generation of a path on a host.
pub fn live_file(tx: &Tx<'_>, host: &str, path: &[u8]) -> Result<Option<FileRow>> {
    let sql =
        format!("SELECT {COLUMNS} FROM source_files WHERE live = 1 AND path = ?1 AND host = ?2");
    Ok(tx.0.prepare_cached(&sql)?.query_row(params![path, host], file_row).optional()?)
}

/// Every generation of a host that is being read anew in place of a live one.
pub fn rereadings(tx: &Tx<'_>, host: &str) -> Result<Vec<FileRow>> {
    let sql = format!("SELECT {COLUMNS} FROM source_files WHERE live = 2 AND host = ?1");
    let mut statement = tx.0.prepare_cached(&sql)?;
    let rows = statement.query_map([host], file_row)?.collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// The generation of a path on a host that is being read anew.
pub fn rereading(tx: &Tx<'_>, host: &str, path: &[u8]) -> Result<Option<FileRow>> {
    let sql =
        format!("SELECT {COLUMNS} FROM source_files WHERE live = 2 AND path = ?1 AND host = ?2");
    Ok(tx.0.prepare_cached(&sql)?.query_row(params![path, host], file_row).optional()?)
}

/// The adapter state of a generation, JSON.
pub fn state(tx: &Tx<'_>, id: i64) -> Result<Option<String>> {
    let sql = "SELECT state FROM source_files WHERE id = ?1";
    Ok(tx.0.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?)
}

/// Begins a generation; `None` when another one of that path counts already, or is read anew:
/// somebody was faster.
pub fn insert(tx: &Tx<'_>, new: &NewFile<'_>) -> Result<Option<i64>> {
    let changed =
        tx.0.prepare_cached(
            "INSERT INTO source_files (root_id, agent, place, path, stem, dev, ino, size, ctime_ns,
                 mtime_ms, state, first_seen_ms, live, reading, host)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, 0, 0, 0, '',
                 coalesce((SELECT first_seen_ms FROM source_files WHERE id = ?7), ?6), ?8, ?9, ?10)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            new.root_id,
            new.agent,
            new.place,
            new.path,
            new.stem,
            new.first_seen_ms,
            new.replaces,
            new.counts.live(),
            new.reading,
            new.host
        ])?;
    Ok((changed == 1).then(|| tx.0.last_insert_rowid()))
}

/// Moves a cursor on, if it still stands where the reader found it. False: somebody was faster,
/// and what was read must be dropped.
pub fn advance(tx: &Tx<'_>, id: i64, path: &[u8], from: i64, to: &Advance) -> Result<bool> {
    let [dev, ino, size, ctime_ns, mtime_ms] = to.stat;
    let changed =
        tx.0.prepare_cached(
            "UPDATE source_files SET dev = ?3, ino = ?4, size = ?5, ctime_ns = ?6, mtime_ms = ?7,
                 position = ?8, frame_at = ?9, frame_position = ?10, head_len = ?11,
                 head_hash = ?12, tail_len = ?13, tail_hash = ?14, state = ?15,
                 skipped_lines = skipped_lines + ?16, damaged = damaged + ?17, in_damage = ?18,
                 gone_ms = NULL
             WHERE id = ?1 AND position = ?2 AND live <> 0 AND path = ?19",
        )?
        .execute(params![
            id,
            from,
            dev,
            ino,
            size,
            ctime_ns,
            mtime_ms,
            to.position,
            to.frame.0,
            to.frame.1,
            to.head.0,
            to.head.1,
            to.tail.0,
            to.tail.1,
            to.state,
            to.skipped,
            to.damaged,
            to.in_damage,
            path
        ])?;
    Ok(changed == 1)
}

/// The same content under another path: renamed, archived, packed or unpacked. The place where
/// reading goes on is given anew, since a packed file counts it otherwise.
pub fn moved(tx: &Tx<'_>, id: i64, root_id: i64, path: &[u8], frame: (i64, i64)) -> Result<()> {
    drop_rereading(tx, id)?;
    tx.0.prepare_cached(
        "UPDATE source_files SET root_id = ?2, path = ?3, frame_at = ?4, frame_position = ?5,
             size = 0, ctime_ns = 0, gone_ms = NULL
         WHERE id = ?1",
    )?
    .execute(params![id, root_id, path, frame.0, frame.1])?;
    Ok(())
}

/// Whether a generation's file was found gone.
pub fn is_gone(tx: &Tx<'_>, id: i64) -> Result<bool> {
    let sql = "SELECT gone_ms IS NOT NULL FROM source_files WHERE id = ?1";
    let gone = tx.0.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?;
    Ok(gone.unwrap_or(false))
}

/// Notes that a file is gone (`Some`) or back.
pub fn set_gone(tx: &Tx<'_>, id: i64, gone_ms: Option<i64>) -> Result<()> {
    drop_rereading(tx, id)?;
    tx.0.prepare_cached("UPDATE source_files SET gone_ms = ?2 WHERE id = ?1")?
        .execute(params![id, gone_ms])?;
    Ok(())
}

/// Ends a generation: its rows stop counting now and are deleted later ([`delete_dead`]).
pub fn retire(tx: &Tx<'_>, id: i64) -> Result<()> {
    drop_rereading(tx, id)?;
    tx.0.prepare_cached("UPDATE source_files SET live = 0 WHERE id = ?1")?.execute([id])?;
    Ok(())
}

/// Drops what has been read anew in place of a generation so far.
pub fn drop_rereading(tx: &Tx<'_>, id: i64) -> Result<()> {
    let sql = "UPDATE source_files SET live = 0 WHERE live = 2
        AND (path, host) = (SELECT path, host FROM source_files WHERE id = ?1)";
    tx.0.prepare_cached(sql)?.execute([id])?;
    Ok(())
}

/// Whether a generation counts and was read so far, under that path.
pub fn stands_at(tx: &Tx<'_>, id: i64, path: &[u8], position: i64) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM source_files
        WHERE id = ?1 AND path = ?2 AND position = ?3 AND live = 1)";
    let mut statement = tx.0.prepare_cached(sql)?;
    Ok(statement.query_row(params![id, path, position], |row| row.get(0))?)
}

/// Ends a generation and lets the one count that was read anew in its place.
pub fn change_places(tx: &Tx<'_>, old: i64, new: i64) -> Result<()> {
    tx.0.prepare_cached("UPDATE source_files SET live = 0 WHERE id = ?1")?.execute([old])?;
    tx.0.prepare_cached("UPDATE source_files SET live = 1 WHERE id = ?1")?.execute([new])?;
    Ok(())
}

/// Sessions that a generation says something of.
pub fn sessions_of(tx: &Tx<'_>, generation: i64) -> Result<Vec<i64>> {
    let mut statement =
        tx.0.prepare_cached("SELECT session_id FROM facts WHERE generation = ?1")?;
    let rows =
        statement.query_map([generation], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// How many lines and broken frames of this generation were skipped.
pub fn skipped(tx: &Tx<'_>, generation: i64) -> Result<i64> {
    let sql = "SELECT skipped_lines FROM source_files WHERE id = ?1";
    Ok(tx.0.prepare_cached(sql)?.query_row([generation], |row| row.get(0))?)
}

/// Sessions of the files between these paths.
pub fn sessions_between(tx: &Tx<'_>, from: &[u8], to: &[u8]) -> Result<Vec<i64>> {
    let sql = "SELECT DISTINCT f.session_id FROM source_files g JOIN facts f ON f.generation = g.id
        WHERE g.path >= ?1 AND g.path < ?2 AND g.live = 1";
    let mut statement = tx.0.prepare_cached(sql)?;
    let rows = statement
        .query_map(params![from, to], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// Whether dead generations wait to be deleted.
pub fn any_dead(tx: &Tx<'_>) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM source_files WHERE live = 0)";
    Ok(tx.0.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Deletes rows of dead generations, at most about `rows_max`; returns how many went.
pub fn delete_dead(tx: &Tx<'_>, rows_max: i64) -> Result<usize> {
    let sql = "SELECT id FROM source_files WHERE live = 0 ORDER BY id LIMIT 1";
    let dead: Option<i64> = tx.0.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?;
    let Some(id) = dead else { return Ok(0) };
    let mut gone =
        tx.0.prepare_cached(
            "DELETE FROM messages WHERE id IN (
                 SELECT id FROM messages WHERE id >= ?1 << 40 AND id < (?1 + 1) << 40 LIMIT ?2)",
        )?
        .execute([id, rows_max])?;
    if i64::try_from(gone).unwrap_or(i64::MAX) >= rows_max {
        return Ok(gone);
    }
    let sessions = sessions_of(tx, id)?;
    for sql in [
        "DELETE FROM usage WHERE generation = ?1 AND session_id IN
             (SELECT session_id FROM facts WHERE generation = ?1)",
        "DELETE FROM titles WHERE generation = ?1",
        "DELETE FROM returns WHERE generation = ?1",
        "DELETE FROM facts WHERE generation = ?1",
        "DELETE FROM source_files WHERE id = ?1",
    ] {
        gone += tx.0.prepare_cached(sql)?.execute([id])?;
    }
    for session in sessions {
        gone += forget(tx, session)?;
    }
    Ok(gone)
}

/// Deletes a session of which nothing is left: no generation names it and it never had a status.
fn forget(tx: &Tx<'_>, session: i64) -> Result<usize> {
    let unnamed = "DELETE FROM sessions WHERE id = ?1 AND status IS NULL AND origin = 'mirror'
        AND NOT EXISTS (SELECT 1 FROM facts WHERE session_id = ?1)
        AND NOT EXISTS (SELECT 1 FROM status_transitions
            WHERE entity_type = 'session' AND entity_id = ?1)";
    let mut gone = tx.0.prepare_cached(unnamed)?.execute([session])?;
    if gone > 0 {
        let sql = "DELETE FROM evidence WHERE session_id = ?1";
        gone += tx.0.prepare_cached(sql)?.execute([session])?;
    }
    Ok(gone)
}

/// Live files with damaged compressed parts, worst first: path and how many.
pub fn damaged(tx: &Tx<'_>, rows_max: i64) -> Result<Vec<(Vec<u8>, i64)>> {
    let sql = "SELECT path, damaged FROM source_files WHERE live = 1 AND damaged > 0
        ORDER BY damaged DESC, path LIMIT ?1";
    let mut statement = tx.0.prepare_cached(sql)?;
    let rows = statement
        .query_map([rows_max], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}
