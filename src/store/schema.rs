//! How the store's file comes to be: folder, pragmas, and migrations by `user_version`.
//!
//! Migrations only go forward and are never edited once landed. A file of a newer version is
//! refused, untouched.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::identity::beside;
use super::{Result, StoreError, explain};

/// Every migration, oldest first; the version of a file is how many it has had.
const MIGRATIONS: [&str; 8] = [
    include_str!("migrations/0001_init.sql"),
    include_str!("migrations/0002_pictures.sql"),
    include_str!("migrations/0003_readings.sql"),
    include_str!("migrations/0004_application.sql"),
    include_str!("migrations/0005_compactions.sql"),
    include_str!("migrations/0006_hosts.sql"),
    include_str!("migrations/0007_runs.sql"),
    include_str!("migrations/0008_returns.sql"),
];

/// The version this program writes.
pub const VERSION: i64 = 8;

/// What a file of ours says of itself in its head: `lull`.
const APPLICATION: i64 = 0x6c75_6c6c;

/// Makes the file's folder (0700) and the file (0600) if they are not there: transcripts are
/// private, and so is what we keep of them.
pub(super) fn prepare_folder(path: &Path) -> Result<()> {
    admit(path)?;
    let failed =
        |why: std::io::Error| StoreError::Open { path: path.to_owned(), why: why.to_string() };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    if !path.exists() {
        fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(failed)?;
    }
    narrow(path);
    Ok(())
}

/// Takes from others what older versions, or a copy, have given them: of the file, and of the folder if
/// it bears our name. Where that cannot be, doctor tells it.
fn narrow(path: &Path) {
    let take = |path: &Path, mode: u32| {
        let wide = |meta: &fs::Metadata| meta.mode() & 0o077 != 0;
        let own = rustix::process::geteuid().as_raw();
        if fs::metadata(path).is_ok_and(|meta| wide(&meta) && meta.uid() == own) {
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode));
        }
    };
    take(path, 0o600);
    for ending in ["-wal", "-shm", ".lock"] {
        take(&beside(path, ending), 0o600);
    }
    if let Some(folder) = path.parent().filter(|folder| folder.ends_with("lullwatch")) {
        take(folder, 0o700);
    }
}

/// Refuses what is not ours before a byte is written anywhere, a lock file and a log included.
///
/// It is read as a file that nobody can write: a head is whole whatever somebody writes behind it,
/// and what cannot be read now is told when it is opened.
pub(super) fn admit(path: &Path) -> Result<()> {
    let owned = || path.to_owned();
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => {
            let why = "it is no regular file".to_owned();
            return Err(StoreError::Open { path: owned(), why });
        }
        Ok(meta) if meta.nlink() > 1 => return Err(StoreError::Linked { path: owned() }),
        Ok(meta) if meta.len() > 0 => {}
        Ok(_) | Err(_) => return Ok(()),
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    #[expect(clippy::disallowed_methods, reason = "it makes no file and takes no lock")]
    let Ok(connection) = Connection::open_with_flags(immutable_uri(path), flags) else {
        return Ok(());
    };
    let looked = is_ours(&connection).and_then(|ours| Ok((ours, version(&connection)?)));
    match looked.map_err(|error| explain(error.into(), path)) {
        Ok((false, _)) | Err(StoreError::Foreign { .. }) => {
            Err(StoreError::Foreign { path: owned() })
        }
        Ok((true, found)) if found > VERSION => {
            Err(StoreError::Newer { path: owned(), found, known: VERSION })
        }
        Ok((true, _)) | Err(_) => Ok(()),
    }
}

/// Whether all commits lie in the file itself, as after a writer's orderly end.
pub(super) fn is_settled(path: &Path) -> bool {
    let wal = beside(path, "-wal");
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
        if version(connection)? == 0 {
            // Before anything that goes to a log: whoever looks at the file alone sees whose it is.
            connection.pragma_update(None, "application_id", APPLICATION)?;
        }
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

/// Tables that every version of ours has, since before it said so in its head.
const TABLES: &str = "'meta', 'roots', 'source_files', 'sessions', 'facts', 'titles', 'messages',
    'usage', 'evidence', 'runs', 'status_transitions', 'terminal_deliveries'";

/// Whether its head says that it is ours; or it says nothing, and it is empty or has our tables.
fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if id != 0 {
        return Ok(id == APPLICATION);
    }
    let sql = format!(
        "SELECT count(*) = 0 OR count(*) FILTER (WHERE type = 'table' AND name IN ({TABLES})) = 12
         FROM sqlite_schema"
    );
    connection.query_row(&sql, [], |row| row.get(0))
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

    #[test]
    fn runs_of_an_older_file_say_when_their_child_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let old = super::super::connect(&path, Duration::ZERO).unwrap();
        for step in &MIGRATIONS[..2] {
            old.execute_batch(step).unwrap();
        }
        old.execute_batch(
            "PRAGMA user_version = 2;
            INSERT INTO evidence (session_id, source, subject, says, since_ms, first_ms, last_ms)
                VALUES (1, 'run', '7:70', 'exited', 400, 100, 400);
            INSERT INTO runs (name, host, child_pid, child_start, exit_code, exit_signal, status,
                    status_since_ms, ended_ms)
                VALUES ('over', 'h', 5, '50', 1, NULL, 'failed', 300, 300),
                    ('waits', 'h', 7, '70', NULL, 9, 'running', 100, NULL),
                    ('waits untold', 'h', 8, NULL, 1, NULL, 'running', 200, NULL),
                    ('at work', 'h', 9, '90', NULL, NULL, 'running', 100, NULL);",
        )
        .unwrap();
        drop(old);
        let mut store = super::super::Store::open(&path, Duration::ZERO, 1_000).unwrap();
        let rows = store.read(|tx| tx.dump(&["SELECT exit_ms FROM runs ORDER BY id"])).unwrap();
        assert_eq!(rows, "300\n400\n200\n\n");
    }
}
