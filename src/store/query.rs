//! What a snapshot reads: plain rows, by read-only SQL.
//!
//! One statement per table and no statement per row: a list of thousands of sessions costs as many
//! statements as a list of one. A value that this version cannot read spoils its own row only. The
//! words in which facts are kept are passed on from here, so that whoever reads rows need not know
//! the rooms that wrote them.

mod messages;
mod names;
mod sessions;

pub use super::findings::findings;
pub use messages::{MessageRow, messages};
pub use names::{names, titles};
pub use sessions::{
    IdRow, KinRow, SessionRow, VerdictRow, Wanted, damaged, each_session, ended_among, ids, kin,
    sessions, unacknowledged_ends, with_open_children,
};

pub use crate::source::facts::{Amounts, Facts, OpenCall};
pub use crate::source::{Agent, Kind, MessageKind, Notice, Outcome, TitleKind, Tokens, Turn};

use super::{Result, Tx};

/// Whether the store holds a session that has a status.
pub fn any_session(tx: &Tx<'_>) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sessions WHERE nested = 0 AND status IS NOT NULL)";
    Ok(tx.0.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Totals over the files that are read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileTotals {
    /// Files that are there.
    pub files: u64,
    /// Their size, bytes.
    pub bytes: u64,
    /// Skipped lines, those of files that are gone included: their rows still count.
    pub skipped_lines: u64,
}

/// Totals over the live generations.
pub fn file_totals(tx: &Tx<'_>) -> Result<FileTotals> {
    let mut statement = tx.0.prepare_cached(
        "SELECT COUNT(*) FILTER (WHERE gone_ms IS NULL),
                COALESCE(SUM(size) FILTER (WHERE gone_ms IS NULL), 0),
                COALESCE(SUM(skipped_lines), 0)
         FROM source_files WHERE live = 1",
    )?;
    let totals = statement.query_row([], |row| {
        Ok(FileTotals {
            files: unsigned(row.get(0)?),
            bytes: unsigned(row.get(1)?),
            skipped_lines: unsigned(row.get(2)?),
        })
    })?;
    Ok(totals)
}

/// A count or size, which SQLite keeps signed.
fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Evidence as stored: a JSON list of phrases. Whatever else stands there is shown as it is.
fn phrases(stored: &str) -> Vec<String> {
    match serde_json::from_str(stored) {
        Ok(serde_json::Value::Array(items)) => items.into_iter().map(phrase).collect(),
        Ok(serde_json::Value::Null) => Vec::new(),
        Ok(other) => vec![phrase(other)],
        Err(_) if stored.trim().is_empty() => Vec::new(),
        Err(_) => vec![stored.to_owned()],
    }
}

fn phrase(value: serde_json::Value) -> String {
    if let serde_json::Value::String(text) = value { text } else { value.to_string() }
}
