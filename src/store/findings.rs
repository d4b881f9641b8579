//! Warnings of the writer, kept so that those who only look see them too.

use std::collections::BTreeSet;

use super::{Result, Store, Tx};

/// The warnings that every process on this store sees, oldest first.
pub fn findings(tx: &Tx<'_>) -> Result<Vec<String>> {
    let mut statement = tx.0.prepare_cached("SELECT text FROM findings ORDER BY first_ms, id")?;
    let texts = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(texts)
}

/// Keeps these warnings and no others; writes nothing if they are those that are kept.
pub fn keep(store: &mut Store, warnings: &[String], now_ms: i64) -> Result<()> {
    let kept: BTreeSet<String> = store.read(findings)?.into_iter().collect();
    let wanted: BTreeSet<&String> = warnings.iter().collect();
    if wanted.len() == kept.len() && wanted.iter().all(|warning| kept.contains(*warning)) {
        return Ok(());
    }
    store.write(|tx| {
        let mut add = tx.0.prepare_cached(
            "INSERT INTO findings (code, subject, text, first_ms, last_ms)
             VALUES ('mirror', ?1, ?1, ?2, ?2) ON CONFLICT (code, subject) DO NOTHING",
        )?;
        for warning in wanted.iter().filter(|warning| !kept.contains(**warning)) {
            add.execute(rusqlite::params![warning, now_ms])?;
        }
        let mut drop =
            tx.0.prepare_cached("DELETE FROM findings WHERE code = 'mirror' AND subject = ?1")?;
        for warning in kept.iter().filter(|warning| !wanted.contains(warning)) {
            drop.execute([warning])?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_goes_and_what_stands_is_not_written_again() {
        let mut store = Store::in_memory(1).unwrap();
        let words = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        keep(&mut store, &words(&["a", "b"]), 5).unwrap();
        let written = store.rows_written();
        keep(&mut store, &words(&["b", "a"]), 6).unwrap();
        assert_eq!(store.rows_written(), written);
        keep(&mut store, &words(&["b", "c"]), 7).unwrap();
        assert_eq!(store.read(findings).unwrap(), ["b", "c"]);
    }
}
