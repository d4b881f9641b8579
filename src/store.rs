//! The store: one SQLite file, and the only SQL of the program.
//!
//! It keeps what it is told and says what it keeps; it knows neither the agents' formats, nor the
//! clock, nor *why* a row changes. One connection writes, in short `BEGIN IMMEDIATE` transactions;
//! readers open the file read-only and see whole transactions. After a failed write the connection
//! is checked: a failed `ROLLBACK` may leave it inside the transaction, so it is then replaced, and
//! nothing remembered from before the failure is trusted.

pub mod evidence;
pub mod files;
pub mod health;
pub mod ingest;
pub mod ledger;
pub mod meta;
pub mod query;
pub mod runs;
pub mod schema;
pub mod sessions;
pub mod transitions;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

/// A transaction on the writing connection, or a read transaction of a [`Reader`].
///
/// Every function that changes rows takes one, so that the caller says what commits together.
#[derive(Debug)]
pub struct Tx<'a>(pub(crate) &'a Connection);

impl Tx<'_> {
    /// The rows of some queries as text, columns joined by `|`: for tests that compare whole
    /// stores. No command prints this.
    pub fn dump(&self, queries: &[&str]) -> Result<String> {
        use rusqlite::types::ValueRef;
        use std::fmt::Write;
        let mut text = String::new();
        for sql in queries {
            let mut statement = self.0.prepare(sql)?;
            let columns = statement.column_count();
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                for column in 0..columns {
                    let gap = if column == 0 { "" } else { "|" };
                    let _ = match row.get_ref(column)? {
                        ValueRef::Null => write!(text, "{gap}"),
                        ValueRef::Integer(number) => write!(text, "{gap}{number}"),
                        ValueRef::Real(number) => write!(text, "{gap}{number}"),
                        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                            write!(text, "{gap}{}", String::from_utf8_lossy(bytes))
                        }
                    };
                }
                text.push('\n');
            }
        }
        Ok(text)
    }
}

/// The branches that a caller can take after a failed call.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another connection holds the write lock for longer than the time-out.
    #[error("the database {path} is locked by another program")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The disk (or the quota) is full.
    #[error("no space left on the disk that holds {path}")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file, its folder or its file system cannot be written.
    #[error("the database {path} cannot be written")]
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
    #[error("the database {path} is damaged")]
    Corrupt {
        /// The file.
        path: PathBuf,
    },
    /// A newer lullwatch wrote it.
    #[error("the database {path} has version {found}; this lullwatch knows {known}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: i64,
        /// Newest version known.
        known: i64,
    },
    /// The file or its folder cannot be opened.
    #[error("cannot open the database {path}: {why}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// Anything else SQLite says.
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
}

/// A read-only connection.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens (or creates, 0600 in a 0700 folder) the file for writing and brings it up to date.
    ///
    /// `busy` is how long a write waits for another connection's lock. `now_ms` is the store's
    /// birth if it is created.
    pub fn open(path: &Path, busy: Duration, now_ms: i64) -> Result<Self> {
        schema::prepare_folder(path)?;
        let connection = connect(path, busy)?;
        schema::migrate(&connection, path, now_ms)?;
        Ok(Self { connection, path: path.to_owned(), busy, rows_written: 0 })
    }

    /// A store in memory, for tests.
    pub fn in_memory(now_ms: i64) -> Result<Self> {
        let path = PathBuf::from(":memory:");
        #[expect(clippy::disallowed_methods, reason = "this is the place that may")]
        let connection = Connection::open_in_memory()?;
        schema::migrate(&connection, &path, now_ms)?;
        Ok(Self { connection, path, busy: Duration::ZERO, rows_written: 0 })
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
        let outcome = (|| {
            let transaction =
                self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&Tx(&transaction))?;
            transaction.commit()?;
            Ok(value)
        })();
        outcome.map_err(|error| {
            if !self.connection.is_autocommit() && self.path != Path::new(":memory:") {
                self.rows_written += self.connection.total_changes();
                if let Ok(fresh) = connect(&self.path, self.busy) {
                    self.connection = fresh;
                }
            }
            explain(error, &self.path)
        })
    }

    /// Runs `work` on one consistent state without the write lock.
    pub fn read<T>(&mut self, work: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        read(&self.connection, &self.path, work)
    }
}

impl Reader {
    /// Opens an existing store read-only.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_as(path, path, OpenFlags::empty())
    }

    fn open_as(path: &Path, name: &Path, more: OpenFlags) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
        #[expect(clippy::disallowed_methods, reason = "this is the place that may")]
        let connection = Connection::open_with_flags(name, flags)
            .map_err(|error| explain(error.into(), path))?;
        let prepare = || -> rusqlite::Result<()> {
            connection.busy_timeout(Duration::from_millis(250))?;
            connection.pragma_update(None, "query_only", true)?;
            connection.pragma_update(None, "cache_size", -4096)?;
            connection.pragma_update(None, "trusted_schema", false)?;
            connection.set_prepared_statement_cache_capacity(64);
            Ok(())
        };
        prepare().map_err(|error| explain(error.into(), path))?;
        schema::check_version(&connection, path)?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// The same without so much as a side file: what lies in a log that nobody has open is not
    /// seen then.
    pub fn inspect(path: &Path) -> Result<Self> {
        let beside = |ending: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            std::fs::metadata(PathBuf::from(name)).is_ok_and(|meta| meta.len() > 0)
        };
        if beside("-wal") && beside("-shm") {
            return Self::open(path);
        }
        // A missing file and one that cannot be read are told as such, not by what SQLite makes of
        // them.
        std::fs::File::open(path)
            .map_err(|why| StoreError::Open { path: path.to_owned(), why: why.to_string() })?;
        let mut uri = String::from("file:");
        for byte in path.as_os_str().as_encoded_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                    uri.push(char::from(*byte));
                }
                other => {
                    let _ = write!(uri, "%{other:02X}");
                }
            }
        }
        uri.push_str("?immutable=1");
        Self::open_as(path, Path::new(&uri), OpenFlags::SQLITE_OPEN_URI)
    }

    /// Runs `work` on one consistent state.
    pub fn read<T>(&mut self, work: impl FnOnce(&Tx<'_>) -> Result<T>) -> Result<T> {
        read(&self.connection, &self.path, work)
    }

    /// A number that changes whenever another connection has committed.
    pub fn data_version(&self) -> Result<i64> {
        self.connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(|error| explain(error.into(), &self.path))
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
        _ => StoreError::Sqlite(inner),
    }
}
