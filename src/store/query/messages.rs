//! The last rows of a transcript.

use std::collections::HashSet;

use rusqlite::{Row, params};

use super::super::{Result, Tx};
use super::{Facts, MessageKind, unsigned};

/// A message's preview and where its record lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// Id.
    pub id: i64,
    /// What it is.
    pub kind: MessageKind,
    /// When, ms.
    pub at_ms: Option<i64>,
    /// Tool name of a call.
    pub name: Option<String>,
    /// Preview, unfiltered.
    pub text: String,
    /// Path of its file, raw bytes.
    pub path: Vec<u8>,
    /// Offset in the decoded file, bytes.
    pub position: u64,
    /// Length, bytes.
    pub bytes: u64,
    /// 64-bit hash of those bytes.
    pub hash: i64,
    /// Of a file of frames, the frame in which reading goes on: where it starts in the file, and at
    /// which decoded offset; the start of the file for what lies before it.
    pub frame: (u64, u64),
}

/// The newest rows of session `?1` with ids from `?2` to below `?3`.
const LAST: &str = "
    SELECT id, kind, at_ms, name, text, position, bytes, hash, native, fallback
    FROM messages WHERE id >= ?2 AND id < ?3 AND session_id = ?1
      AND NOT (fallback = 1 AND kind = 'prompt' AND ?4)
      AND NOT (fallback = 1 AND kind = 'answer' AND ?5)
      AND NOT (fallback = 1 AND kind IN ('tool_call', 'tool_result') AND ?6)
    ORDER BY id DESC LIMIT ?7";

/// The last messages of a session, oldest first, at most `limit`.
///
/// Each live generation is read backwards along its own range of ids, so the cost does not grow
/// with the store. Rows that only repeat what a file says better (Codex) or what another generation
/// says too are left out.
pub fn messages(tx: &Tx<'_>, session: i64, limit: usize) -> Result<Vec<MessageRow>> {
    let mut generations = tx.0.prepare_cached(
        "SELECT f.generation, f.body, s.path, s.frame_at, s.frame_position
         FROM facts f JOIN source_files s ON s.id = f.generation
         WHERE f.session_id = ?1 AND s.live = 1 ORDER BY f.generation",
    )?;
    let generations = generations
        .query_map([session], |row| {
            let frame = (unsigned(row.get(3)?), unsigned(row.get(4)?));
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, frame))
        })?
        .collect::<rusqlite::Result<Vec<(i64, String, Vec<u8>, (u64, u64))>>>()?;
    let mut statement = tx.0.prepare_cached(LAST)?;
    let mut found = Vec::new();
    let mut natives = HashSet::new();
    for (generation, body, path, frame) in generations {
        let facts: Facts = serde_json::from_str(&body).unwrap_or_default();
        let mut rows = statement.query(params![
            session,
            generation << 40,
            (generation + 1) << 40,
            facts.prompts.primary > 0,
            facts.answers.primary > 0,
            facts.tool_calls.primary > 0,
            i64::try_from(limit).unwrap_or(i64::MAX),
        ])?;
        while let Some(row) = rows.next()? {
            let native: Option<i64> = row.get(8)?;
            if native.is_none_or(|native| natives.insert(native)) {
                found.extend(message(row, &path, frame)?);
            }
        }
    }
    // Only rows before the first stamp of a file have none.
    found.sort_by_key(|row: &MessageRow| (row.at_ms.unwrap_or(i64::MIN), row.id));
    let surplus = found.len().saturating_sub(limit);
    found.drain(..surplus);
    Ok(found)
}

/// `None` for a kind that this version does not know.
fn message(row: &Row<'_>, path: &[u8], frame: (u64, u64)) -> rusqlite::Result<Option<MessageRow>> {
    let position = unsigned(row.get(5)?);
    let Some(kind) = MessageKind::from_word(row.get_ref(1)?.as_str()?) else { return Ok(None) };
    Ok(Some(MessageRow {
        id: row.get(0)?,
        kind,
        at_ms: row.get(2)?,
        name: row.get(3)?,
        text: row.get(4)?,
        path: path.to_owned(),
        position,
        bytes: unsigned(row.get(6)?),
        hash: row.get(7)?,
        frame: if frame.1 <= position { frame } else { (0, 0) },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn the_last_messages_are_read_along_the_ids_of_their_generation_alone() {
        let mut store = Store::in_memory(0).unwrap();
        let plan: Vec<String> = store
            .read(|tx| {
                let mut statement = tx.0.prepare(&format!("EXPLAIN QUERY PLAN {LAST}"))?;
                let arguments = params![1, 0, 1_i64 << 40, false, false, false, 10];
                let rows = statement.query_map(arguments, |row| row.get(3))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .unwrap();
        assert_eq!(plan, ["SEARCH messages USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]);
    }
}
