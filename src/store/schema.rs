//! How the store's file comes to be: folder, pragmas, and migrations by `user_version`.
//!
//! Migrations only go forward and are never edited once landed. A file of a newer version is
//! refused, untouched.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};

use super::{Result, StoreError, explain};

/// Every migration, oldest first; the version of a file is how many it has had.
const MIGRATIONS: [&str; 3] = [
    include_str!("migrations/0001_init.sql"),
    include_str!("migrations/0002_pictures.sql"),
    include_str!("migrations/0003_readings.sql"),
];

/// The version this program writes.
pub const VERSION: i64 = 3;

/// Makes the file's folder (0700) and the file (0600) if they are not there: transcripts are
/// private, and so is what we keep of them.
pub(super) fn prepare_folder(path: &Path) -> Result<()> {
    let failed =
        |why: std::io::Error| StoreError::Open { path: path.to_owned(), why: why.to_string() };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    if !path.exists() {
        fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(failed)?;
    }
    Ok(())
}

/// What tells whether a path still leads to the same file.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Whether all commits lie in the file itself, as after a writer's orderly end.
pub(super) fn is_settled(path: &Path) -> bool {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    path.is_file() && fs::metadata(wal).map_or(true, |meta| meta.len() == 0)
}

/// Names a file that nobody can write, so that SQLite wants no `-shm` beside it: a reader of a WAL
/// database makes one, which a read-only file system does not let it.
pub(super) fn immutable_uri(path: &Path) -> OsString {
    let mut uri = OsString::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(OsStr::from_bytes(&[*byte]));
            }
            _ => uri.push(format!("%{byte:02X}")),
        }
    }
    uri.push("?immutable=1");
    uri
}

/// `busy_timeout` first, so that the others wait too. `performance.md` section 4 has the reasons.
pub(super) fn set_pragmas(connection: &Connection, busy: Duration) -> rusqlite::Result<()> {
    connection.busy_timeout(busy)?;
    if is_ours(connection)? {
        connection.pragma_update(None, "journal_mode", "WAL")?; // writes to the file
    }
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", -8192)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "wal_autocheckpoint", 2000)?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    stable_plans(connection)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// A plan never depends on what is bound. Else SQLite compares each bound value with the conditions
/// of partial indexes, and so prepares a statement again whenever another value is bound.
pub(super) fn stable_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(|_| ())
}

/// Brings a file up to [`VERSION`], one transaction per step; does nothing on a current file.
pub(super) fn migrate(connection: &Connection, path: &Path, now_ms: i64) -> Result<()> {
    let step = |error: rusqlite::Error| explain(error.into(), path);
    if !is_ours(connection).map_err(step)? {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    loop {
        let found = version(connection).map_err(step)?;
        if found > VERSION {
            return Err(StoreError::Newer { path: path.to_owned(), found, known: VERSION });
        }
        let Some(sql) = usize::try_from(found).ok().and_then(|next| MIGRATIONS.get(next)) else {
            return Ok(());
        };
        let transaction =
            rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
                .map_err(step)?;
        // Another process may have done this step while we waited for the lock.
        if version(&transaction).map_err(step)? == found {
            transaction.execute_batch(sql).map_err(step)?;
            if found == 0 {
                birth(&transaction, now_ms).map_err(step)?;
            }
            transaction.pragma_update(None, "user_version", found + 1).map_err(step)?;
        }
        transaction.commit().map_err(step)?;
    }
}

/// What every store has from its first moment: its birth, and the operator as a consumer.
fn birth(transaction: &rusqlite::Transaction<'_>, now_ms: i64) -> rusqlite::Result<()> {
    transaction
        .execute("INSERT INTO meta (key, value) VALUES ('born_ms', ?1)", [now_ms.to_string()])?;
    transaction.execute(
        "INSERT INTO consumers (name, since_seq, created_ms) VALUES ('operator', 0, ?1)",
        [now_ms],
    )?;
    Ok(())
}

/// For readers, which cannot bring a file up to date: it is of the version that this program reads.
pub(super) fn check_version(connection: &Connection, path: &Path) -> Result<()> {
    let explained = |error: rusqlite::Error| explain(error.into(), path);
    if !is_ours(connection).map_err(explained)? {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    match version(connection).map_err(explained)? {
        VERSION => Ok(()),
        found if found > VERSION => {
            Err(StoreError::Newer { path: path.to_owned(), found, known: VERSION })
        }
        _ => {
            let why = "no lullwatch has brought it up to date yet".to_owned();
            Err(StoreError::Open { path: path.to_owned(), why })
        }
    }
}

/// Whether it is empty, or has the table that every version of ours has.
fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) = 0 OR max(name = 'status_transitions') FROM sqlite_schema";
    connection.query_row(sql, [], |row| row.get(0))
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_sqlite_has_the_wal_reset_fix() {
        assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
    }

    #[test]
    fn the_version_is_the_number_of_migrations() {
        assert_eq!(usize::try_from(VERSION), Ok(MIGRATIONS.len()));
    }

    #[test]
    fn a_file_of_a_newer_version_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        drop(super::super::Store::open(&path, Duration::ZERO, 1).unwrap());
        let other = super::super::connect(&path, Duration::ZERO).unwrap();
        other.pragma_update(None, "user_version", 999).unwrap();
        drop(other);
        let before = std::fs::read(&path).unwrap();
        let refused = super::super::Store::open(&path, Duration::ZERO, 2).unwrap_err();
        assert!(matches!(refused, StoreError::Newer { found: 999, known: VERSION, .. }));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn the_file_and_its_folder_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/lullwatch/x.db");
        drop(super::super::Store::open(&path, Duration::ZERO, 1).unwrap());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }
}
