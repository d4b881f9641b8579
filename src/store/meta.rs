//! Single values of the whole store, by key.

use rusqlite::OptionalExtension;

use super::{Result, StoreError, Tx};
use crate::lifecycle::Windows;

const LIVE: &str = "live_window_ms";
const ENDED: &str = "ended_window_ms";
const CLOCK_STEPPED: &str = "clock_stepped_ms";

/// The value of a key.
pub fn get(tx: &Tx<'_>, key: &str) -> Result<Option<String>> {
    let mut statement = tx.0.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    Ok(statement.query_row([key], |row| row.get(0)).optional()?)
}

/// Sets a key.
pub fn set(tx: &Tx<'_>, key: &str, value: &str) -> Result<()> {
    let sql = "INSERT INTO meta (key, value) VALUES (?1, ?2)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    tx.0.prepare_cached(sql)?.execute([key, value])?;
    Ok(())
}

/// Forgets a key.
pub fn remove(tx: &Tx<'_>, key: &str) -> Result<()> {
    tx.0.prepare_cached("DELETE FROM meta WHERE key = ?1")?.execute([key])?;
    Ok(())
}

/// The windows, once they are fixed.
pub fn windows(tx: &Tx<'_>) -> Result<Option<Windows>> {
    Ok(match (number(tx, LIVE)?, number(tx, ENDED)?) {
        (Some(live_ms), Some(ended_ms)) => Some(Windows { live_ms, ended_ms }),
        (None | Some(_), None) | (None, Some(_)) => None,
    })
}

/// Fixes the windows.
pub fn set_windows(tx: &Tx<'_>, windows: Windows) -> Result<()> {
    set(tx, LIVE, &windows.live_ms.to_string())?;
    set(tx, ENDED, &windows.ended_ms.to_string())
}

/// When the wall clock was last seen to jump, ms.
pub fn clock_stepped_ms(tx: &Tx<'_>) -> Result<Option<i64>> {
    number(tx, CLOCK_STEPPED)
}

/// Notes that the wall clock has just jumped.
pub fn set_clock_stepped(tx: &Tx<'_>, at_ms: i64) -> Result<()> {
    set(tx, CLOCK_STEPPED, &at_ms.to_string())
}

fn number(tx: &Tx<'_>, key: &str) -> Result<Option<i64>> {
    let Some(text) = get(tx, key)? else { return Ok(None) };
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(StoreError::Value(format!("meta `{key}` is `{text}`, not a number"))),
    }
}
