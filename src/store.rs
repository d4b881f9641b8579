//! The store: one SQLite file, and the only SQL of the program.
//!
//! It keeps what it is told and says what it keeps; it knows neither the agents' formats, nor the
//! clock, nor *why* a row changes. One connection writes, in short `BEGIN IMMEDIATE` transactions;
//! readers open the file read-only and see whole transactions. After a failed write the connection
//! is checked: a failed `ROLLBACK` may leave it inside the transaction, so it is then replaced, and
//! nothing remembered from before the failure is trusted.

mod dump;
pub mod evidence;
pub mod files;
pub mod findings;
pub mod health;
mod identity;
pub mod ingest;
pub mod ledger;
pub mod merge;
pub mod meta;
pub mod query;
pub mod returns;
pub mod runs;
pub mod schema;
pub mod sessions;
pub mod transitions;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use identity::{Identity, Lost};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

/// A transaction on the writing connection, or a read transaction of a [`Reader`].
///
/// Every function that changes rows takes one, so that the caller says what commits together.
#[derive(Debug)]
pub struct Tx<'a>(pub(crate) &'a Connection);

impl Tx<'_> {
    /// Work that stands or falls as one inside the transaction: what it wrote before it failed is
    /// undone, and the transaction goes on.
    pub fn whole<T>(&self, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        self.0.prepare_cached("SAVEPOINT whole")?.execute([])?;
        let outcome = work(self);
        if outcome.is_err() {
            self.0.prepare_cached("ROLLBACK TO whole")?.execute([])?;
        }
        self.0.prepare_cached("RELEASE whole")?.execute([])?;
        outcome
    }
}

/// The branches that a caller can take after a failed call. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another connection holds the write lock for longer than the time-out.
    #[error("the database {path} is locked by another program; hint: `fuser {path}` names it")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The disk (or the quota) is full.
    #[error(
        "no space left on the disk that holds {path}; hint: free some, or name another place \
         with --db"
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file, its folder or its file system cannot be written.
    #[error("the database {path} cannot be written; hint: name another place with --db")]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// It is no database, or another program's.
    #[error(
        "{path} is not a database of lullwatch, or its head is damaged; it is left as it is\n\
        hint: name another place with --db"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It is a damaged database.
    #[error(
        "the database {path} is damaged; hint: move it away, with its -wal and -shm, and it is \
         made anew from the transcripts"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
    },
    /// The file at the path is not the one that was opened: the database, its log or the writer's
    /// lock was deleted, moved or replaced.
    #[error("{path} was deleted or replaced while it was open; the database is opened again")]
    Replaced {
        /// The file that shows it.
        path: PathBuf,
    },
    /// The file has several names, and each of them would get a log of its own.
    #[error(
        "the database {path} has several names (hard links), and to write under one damages it \
         for the others; hint: `find -samefile {path}` names them; copy it instead, or name \
         another place with --db"
    )]
    Linked {
        /// The file.
        path: PathBuf,
    },
    /// The disk or its file system fails; it may pass.
    #[error(
        "the disk that holds {path} fails ({why}); hint: it is tried again; see `dmesg`, and name \
         another place with --db if it stays"
    )]
    Disk {
        /// The file.
        path: PathBuf,
        /// What SQLite was about.
        why: String,
    },
    /// A newer lullwatch wrote it.
    #[error(
        "the database {path} has version {found}, and this lullwatch knows {known}; hint: update \
         lullwatch, or name another place with --db"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: i64,
        /// Newest version known.
        known: i64,
    },
    /// The file or its folder cannot be opened.
    #[error("cannot open the database {path}: {why}; hint: name another place with --db")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// Anything else SQLite says of the file.
    #[error("the database {path} failed: {error}; hint: `lullwatch doctor` looks at it")]
    Failed {
        /// The file.
        path: PathBuf,
        /// What it says.
        error: rusqlite::Error,
    },
    /// What SQLite says before the file is known.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// A stored value that this version cannot read.
    #[error("unreadable value in the database: {0}")]
    Value(String),
}

/// Version of the SQLite inside.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// Makes the folder of a database and the file itself, private both, if they are not there.
pub fn prepare_folder(path: &Path) -> Result<()> {
    schema::prepare_folder(path)
}

/// Result of a call to the store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// The writing connection.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    busy: Duration,
    rows_written: u64,
    /// The files that were opened; `None` in memory.
    files: Option<Identity>,
}

/// A read-only connection.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    path: PathBuf,
    files: Identity,
}

impl Store {
    /// Opens (or creates, 0600 in a 0700 folder) the file for writing and brings it up to date.
    ///
    /// `busy` is how long a write waits for another connection's lock. `now_ms` is the store's
    /// birth if it is created.
    pub fn open(path: &Path, busy: Duration, now_ms: i64) -> Result<Self> {
        schema::prepare_folder(path)?;
        identity::await_others(path)?;
        let connection = connect(path, busy)?;
        schema::migrate(&connection, path, now_ms)?;
        let files = Some(Identity::of(path));
        Ok(Self { connection, path: path.to_owned(), busy, rows_written: 0, files })
    }

    /// A store in memory, for tests.
    pub fn in_memory(now_ms: i64) -> Result<Self> {
        let path = PathBuf::from(":memory:");
        #[expect(clippy::disallowed_methods, reason = "this is the place that may")]
        let connection = Connection::open_in_memory()?;
        schema::migrate(&connection, &path, now_ms)?;
        Ok(Self { connection, path, busy: Duration::ZERO, rows_written: 0, files: None })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Rows inserted, updated or deleted by this connection so far.
    pub fn rows_written(&self) -> u64 {
        self.rows_written + self.connection.total_changes()
    }

    /// A number that changes whenever another connection has committed.
    pub fn data_version(&self) -> Result<i64> {
        self.connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(|error| explain(error.into(), &self.path))
    }

    /// Runs `work` in one `BEGIN IMMEDIATE` transaction; commits if it returns `Ok`.
    ///
    /// After an `Err`, all or nothing of it may have happened: read again before going on.
    pub fn write<T>(&mut self, work: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        self.check()?;
        let outcome = (|| {
            let transaction =
                self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&Tx(&transaction))?;
            transaction.commit()?;
            Ok(value)
        })();
        outcome.map_err(|error| {
            // If the file cannot be opened now, the next call tries again.
            let _ = self.leave_transaction();
            explain(error, &self.path)
        })
    }

    /// Runs `work` on one consistent state without the write lock.
    pub fn read<T>(&mut self, work: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        self.check()?;
        read(&self.connection, &self.path, work)
    }

    /// Before each use, and now and then without one: nothing is left open of a failed write, and the
    /// files are still ours. If not, this connection is done with, and what can be saved is.
    pub fn check(&mut self) -> Result<()> {
        self.leave_transaction()?;
        let Some(files) = &mut self.files else { return Ok(()) };
        let Some((lost, path)) = files.lost(&self.path) else { return Ok(()) };
        match lost {
            // What lies in the log that we still hold goes to where everybody sees it. While we have
            // the database open nobody else can have emptied a log into it, and there is none.
            Lost::LogDeleted => drop(self.checkpoint()),
            Lost::LogReplaced => {}
            Lost::Database => files.delete_log(&self.path),
        }
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Err(StoreError::Replaced { path })
    }

    /// Moves what lies in the log into the file itself, as far as no reader is in the way.
    pub fn checkpoint(&self) -> Result<()> {
        self.connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            .map_err(|error| explain(error.into(), &self.path))
    }

    /// Whether the file is whole, read through; an error says what is not.
    pub fn read_through(&mut self) -> Result<()> {
        let damage = self.read(|tx| health::quick_check(tx, 1))?;
        if damage.is_empty() {
            Ok(())
        } else {
            Err(StoreError::Corrupt { path: self.path.clone() })
        }
    }

    /// A failed `ROLLBACK` leaves the connection inside its transaction, where it sees rows that are
    /// not there: it is replaced.
    fn leave_transaction(&mut self) -> Result<()> {
        if self.connection.is_autocommit() || self.files.is_none() {
            return Ok(());
        }
        let fresh = connect(&self.path, self.busy)?;
        self.rows_written += self.connection.total_changes();
        self.connection = fresh;
        Ok(())
    }

    /// For tests of what a fault does: of the steps that SQLite takes on this connection, the one
    /// after `steps` more fails, and with `lasting` all after it too. A replaced connection is whole
    /// again. `None` lifts it.
    pub fn fail_after(&mut self, steps: Option<u64>, lasting: bool) -> Result<()> {
        let Some(mut left) = steps else {
            return Ok(self.connection.progress_handler(1, None::<fn() -> bool>)?);
        };
        let mut failed = false;
        let countdown = move || {
            let fails = left == 0 && (lasting || !failed);
            failed |= fails;
            left = left.saturating_sub(1);
            fails
        };
        Ok(self.connection.progress_handler(1, Some(countdown))?)
    }
}

impl Reader {
    /// Opens an existing store read-only.
    pub fn open(path: &Path) -> Result<Self> {
        schema::admit(path)?;
        identity::await_others(path)?;
        let outcome = Self::connect(path, path.as_os_str());
        let connection = match outcome {
            // A reader makes shared memory beside the database, where it can.
            Err(
                StoreError::Open { .. }
                | StoreError::ReadOnly { .. }
                | StoreError::Full { .. }
                | StoreError::Disk { .. },
            ) if schema::is_settled(path) => return Self::alone(path),
            other => other?,
        };
        schema::check_version(&connection, path)?;
        Ok(Self { connection, path: path.to_owned(), files: Identity::of(path) })
    }

    /// Reads the database alone, as if nobody could write it.
    fn alone(path: &Path) -> Result<Self> {
        let connection = Self::connect(path, &schema::immutable_uri(path))?;
        schema::check_version(&connection, path)?;
        Ok(Self { connection, path: path.to_owned(), files: Identity::of_database(path) })
    }

    /// Opens `name`, which is the path or a URI of it, and reads from it once.
    fn connect(path: &Path, name: &OsStr) -> Result<Connection> {
        let prepare = || -> rusqlite::Result<Connection> {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_URI;
            #[expect(clippy::disallowed_methods, reason = "this is the place that may")]
            let connection = Connection::open_with_flags(name, flags)?;
            connection.busy_timeout(Duration::from_millis(250))?;
            connection.pragma_update(None, "query_only", true)?;
            connection.pragma_update(None, "cache_size", -4096)?;
            connection.pragma_update(None, "trusted_schema", false)?;
            schema::stable_plans(&connection)?;
            connection.set_prepared_statement_cache_capacity(64);
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
            Ok(connection)
        };
        prepare().map_err(|error| explain(error.into(), path))
    }

    /// The same without so much as a side file: what lies in a log that nobody has open is not
    /// seen then.
    pub fn inspect(path: &Path) -> Result<Self> {
        let beside = |ending: &str| {
            std::fs::metadata(identity::beside(path, ending)).is_ok_and(|meta| meta.len() > 0)
        };
        schema::admit(path)?;
        if beside("-wal") && beside("-shm") {
            return Self::open(path);
        }
        // A missing file and one that cannot be read are told as such, not by what SQLite makes of
        // them.
        std::fs::File::open(path)
            .map_err(|why| StoreError::Open { path: path.to_owned(), why: why.to_string() })?;
        Self::alone(path)
    }

    /// Runs `work` on one consistent state.
    pub fn read<T>(&mut self, work: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        identity::replaced(self.files.lost(&self.path))?;
        read(&self.connection, &self.path, work)
    }

    /// A number that changes whenever another connection has committed.
    pub fn data_version(&mut self) -> Result<i64> {
        identity::replaced(self.files.lost(&self.path))?;
        self.connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(|error| explain(error.into(), &self.path))
    }
}

/// Whether a log lies beside the database: somebody has it open, or was killed.
pub fn has_log(path: &Path) -> bool {
    identity::beside(path, "-wal").exists()
}

/// Leaves one file behind: if nobody has the store open any more, what lies in its log goes into it and
/// the log goes. Of a store that somebody uses, or that is not ours, everything stays as it is.
pub fn settle(path: &Path) {
    if schema::is_settled(path) && !has_log(path) {
        return;
    }
    if schema::admit(path).is_err() || !path.exists() {
        return;
    }
    // Where it cannot be, it is for whoever comes next.
    if let Ok(connection) = connect(path, Duration::ZERO) {
        let _ = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    }
}

fn read<T>(
    connection: &Connection,
    path: &Path,
    work: impl FnOnce(&Tx<'_>) -> Result<T>,
) -> Result<T> {
    let outcome = (|| {
        let transaction = connection.unchecked_transaction()?;
        work(&Tx(&transaction))
    })();
    outcome.map_err(|error| explain(error, path))
}

fn connect(path: &Path, busy: Duration) -> Result<Connection> {
    #[expect(clippy::disallowed_methods, reason = "this is the place that may")]
    let connection = Connection::open(path).map_err(|error| explain(error.into(), path))?;
    schema::set_pragmas(&connection, busy).map_err(|error| explain(error.into(), path))?;
    Ok(connection)
}

/// Turns what SQLite says into the branch a caller can take.
pub(crate) fn explain(error: StoreError, path: &Path) -> StoreError {
    let StoreError::Sqlite(inner) = error else { return error };
    let full = || rustix::fs::statvfs(path).is_ok_and(|stat| stat.f_bavail == 0);
    let path = path.to_owned();
    match inner.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path },
        Some(ErrorCode::DiskFull) => StoreError::Full { path },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Corrupt { path },
        Some(ErrorCode::NotADatabase) => StoreError::Foreign { path },
        Some(ErrorCode::CannotOpen) => {
            let why = "its file or folder cannot be opened".to_owned();
            StoreError::Open { path, why }
        }
        // No room for the memory that readers share is told as a failure of the disk.
        Some(ErrorCode::SystemIoFailure) if full() => StoreError::Full { path },
        Some(ErrorCode::SystemIoFailure) => {
            let code = inner.sqlite_error().map_or(0, |error| error.extended_code);
            StoreError::Disk { path, why: disk_words(code).to_owned() }
        }
        _ => StoreError::Failed { path, error: inner },
    }
}

/// What SQLite was about when the disk failed, by its extended code.
fn disk_words(code: i32) -> &'static str {
    use rusqlite::ffi;
    match code {
        ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_SHORT_READ => "it could not be read",
        ffi::SQLITE_IOERR_WRITE => "it could not be written",
        ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC => {
            "nothing is sure to be on the disk"
        }
        ffi::SQLITE_IOERR_SHMOPEN
        | ffi::SQLITE_IOERR_SHMSIZE
        | ffi::SQLITE_IOERR_SHMLOCK
        | ffi::SQLITE_IOERR_SHMMAP => "the memory that its readers share could not be had",
        ffi::SQLITE_IOERR_LOCK | ffi::SQLITE_IOERR_UNLOCK | ffi::SQLITE_IOERR_RDLOCK => {
            "it could not be locked; is it on a network file system?"
        }
        _ => "input or output error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_disk_is_told_once_and_is_no_damage() {
        let path = Path::new("/dev/shm/x.db");
        let told = |code: i32| {
            let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            explain(error.into(), path)
        };
        for code in [rusqlite::ffi::SQLITE_IOERR_READ, rusqlite::ffi::SQLITE_IOERR_SHMSIZE, 10] {
            let error = anyhow::Error::from(told(code));
            assert!(matches!(error.downcast_ref(), Some(StoreError::Disk { .. })), "{code}");
            let said = format!("{error:#}");
            assert!(said.contains("hint:") && !said.contains("damaged"), "{said}");
            assert_eq!(said.matches("fails").count(), 1, "{said}");
        }
        // Every error says what to do next, and none tells its cause twice.
        let other = anyhow::Error::from(told(rusqlite::ffi::SQLITE_TOOBIG));
        assert_eq!(other.chain().count(), 1);
        assert!(other.to_string().contains("hint:"));
        assert!(matches!(told(rusqlite::ffi::SQLITE_FULL), StoreError::Full { .. }));
    }
}
