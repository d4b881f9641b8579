//! The database: its folder and file system, the file itself, who writes it, what waits in it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::bytes;
use crate::app::{Setting, lock};
use crate::clock::Clock;
use crate::delivery::{self, on_terminal};
use crate::lifecycle::windows;
use crate::liveness::file_system::FileSystem;
use crate::report::doctor::{Finding, Level};
use crate::snapshot::age;
use crate::store::{self, Reader, StoreError, health, schema};

/// A database larger than this is not read through, bytes.
const CHECK_BYTES_MAX: u64 = 2 << 30;
/// Lines of damage shown.
const DAMAGE_MAX: u32 = 3;
/// A write-ahead log larger than this is held open by some reader, bytes.
const WAL_BYTES_MAX: u64 = 128 << 20;
/// Less space than this is little, bytes.
const SPACE_BYTES_MIN: u64 = 200 << 20;

/// All of it.
pub(super) fn checks(setting: &Setting, reader: &mut store::Result<Reader>) -> Vec<Finding> {
    let db = &setting.config.db;
    let mut findings = vec![place(db)];
    if db.exists() {
        findings.push(match reader {
            Ok(reader) => sound(db, reader),
            Err(error) => broken(db, error),
        });
        findings.extend(private(db));
        if let Ok(reader) = reader {
            findings.extend(contents(setting, reader));
        }
    } else {
        let found = "not there yet; the first run makes it";
        findings.push(Finding::fine("database", db.display().to_string(), found).at(Level::Note));
    }
    findings.push(writer(setting));
    findings
}

/// The file system that it lies on.
fn place(db: &Path) -> Finding {
    let folder = db.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
    let subject = folder.display().to_string();
    let kind = FileSystem::of(folder);
    let space = rustix::fs::statvfs(folder).map(|stat| stat.f_bavail * stat.f_frsize).ok();
    let free = space.map_or("unknown".to_owned(), |free| bytes(free.cast_signed()));
    let found = format!("{}, {free} free", kind.name);
    let finding = Finding::fine("disk", subject, found);
    let finding = match space {
        Some(free) => finding.with("free_bytes", free.cast_signed()),
        None => finding,
    };
    if kind.network == Some(true) {
        let advice = "SQLite is not safe on a network file system: give --db a local path";
        return finding.at(Level::Warning).advise(advice);
    }
    if space.is_some_and(|free| free < SPACE_BYTES_MIN) {
        return finding.at(Level::Warning).advise("make room: without it nothing new is mirrored");
    }
    if !is_writable(folder) {
        return finding.at(Level::Fault).advise("it cannot be written by this user: give --db");
    }
    finding
}

fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

fn sound(db: &Path, reader: &mut Reader) -> Finding {
    let size = fs::metadata(db).map_or(0, |meta| meta.len());
    let looked = reader.read(|tx| {
        let version = health::version(tx)?;
        let journal = health::journal_mode(tx)?;
        let damage =
            if size <= CHECK_BYTES_MAX { health::quick_check(tx, DAMAGE_MAX)? } else { Vec::new() };
        Ok((version, journal, damage))
    });
    let (version, journal, damage) = match looked {
        Ok(looked) => looked,
        Err(error) => return broken(db, &error),
    };
    let checked = if size <= CHECK_BYTES_MAX { "sound" } else { "too large to be read through" };
    let size_words = bytes(size.cast_signed());
    let found = format!("version {version}, {size_words}, journal {journal}, {checked}");
    let wal = fs::metadata(beside(db, "-wal")).map_or(0, |meta| meta.len());
    let finding = Finding::fine("database", db.display().to_string(), found)
        .with("version", version)
        .with("bytes", size.cast_signed())
        .with("wal_bytes", wal.cast_signed());
    if let Some(first) = damage.first() {
        return broken(db, &StoreError::Value(first.clone()));
    }
    if version > schema::VERSION {
        let known = schema::VERSION;
        let advice = format!("a newer lullwatch wrote it, this one knows version {known}: update");
        return finding.at(Level::Fault).advise(advice);
    }
    if version < schema::VERSION {
        return finding.at(Level::Note).advise("the next run brings it up to date");
    }
    if wal > WAL_BYTES_MAX {
        let advice = format!("its log has {}: some reader keeps it open", bytes(wal.cast_signed()));
        return finding.at(Level::Warning).advise(advice);
    }
    finding
}

fn broken(db: &Path, error: &StoreError) -> Finding {
    let finding = Finding::fine("database", db.display().to_string(), error.to_string());
    let advice = match error {
        StoreError::Busy { .. } => "another program keeps it locked: end it, or wait",
        StoreError::Open { .. } | StoreError::ReadOnly { .. } => {
            "see who owns the file and its folder, or give --db another path"
        }
        StoreError::Newer { .. } => "update lullwatch",
        StoreError::Replaced { .. } => "it was replaced under us: look again",
        StoreError::Foreign { .. } => "give --db another path, or move the file away",
        StoreError::Full { .. } => "make room",
        StoreError::Linked { .. } => "keep one of its names and copy it to where the others are",
        StoreError::Disk { .. } => {
            "see `dmesg` and the health of the disk; nothing is wrong with the database itself"
        }
        StoreError::Corrupt { .. }
        | StoreError::Failed { .. }
        | StoreError::Value(_)
        | StoreError::Sqlite(_) => {
            "move it away: the next run makes a new one from the transcripts; acknowledgements, \
             history and runs are lost with it"
        }
    };
    finding.at(Level::Fault).advise(advice)
}

fn private(db: &Path) -> impl Iterator<Item = Finding> {
    let folder = db.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mode_of = |path: &Path| fs::metadata(path).ok().map(|meta| meta.mode() & 0o7777);
    let told = |path: &Path, mode: u32, narrow: &str, what: &str| {
        let found = format!("mode {mode:o}: {what}");
        Finding::fine("database", path.display().to_string(), found)
            .at(Level::Warning)
            .advise(format!("chmod {narrow} {}", path.display()))
    };
    let file = mode_of(db)
        .filter(|mode| mode & 0o077 != 0)
        .map(|mode| told(db, mode, "600", "others may read what is kept of your transcripts"));
    // Where others can put files beside it, and no sticky bit keeps them from ours.
    let open = |mode: &u32| mode & 0o022 != 0 && mode & 0o1000 == 0;
    let folder = folder.and_then(|folder| {
        let mode = mode_of(folder).filter(open)?;
        Some(told(folder, mode, "go-w", "others may replace the database"))
    });
    file.into_iter().chain(folder)
}

fn beside(db: &Path, ending: &str) -> std::path::PathBuf {
    let mut name = db.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// What it holds that somebody may have to act on.
fn contents(setting: &Setting, reader: &mut Reader) -> Vec<Finding> {
    let host = setting.host.clone();
    let looked = reader.read(|tx| {
        let pending = delivery::pending_count(tx, &setting.config.consumer)?;
        Ok((
            windows::windows_of(tx)?,
            pending,
            health::failing(tx, on_terminal::CONSUMER)?,
            health::open_runs(tx, &host)?,
        ))
    });
    // An older file lacks what is asked for; that is told already.
    let Ok((windows, pending, (failing, error), (starting, at_work, waiting))) = looked else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let (live, ended) = (age::span(windows.live_ms), age::span(windows.ended_ms));
    let asked = setting.config.windows;
    let others = asked.0.is_some_and(|ms| ms != windows.live_ms)
        || asked.1.is_some_and(|ms| ms != windows.ended_ms);
    let finding = Finding::fine("windows", "", format!("live {live}, ended {ended}"))
        .with("live_ms", windows.live_ms)
        .with("ended_ms", windows.ended_ms);
    findings.push(if others {
        let advice = "others are asked for: see `lullwatch config --set-windows LIVE ENDED`";
        finding.at(Level::Fault).advise(advice)
    } else {
        finding
    });
    let found = format!("{pending} pending for {}", setting.config.consumer);
    let pending = i64::try_from(pending).unwrap_or(i64::MAX);
    findings.push(Finding::fine("ledger", "", found).with("pending", pending));
    if failing > 0 {
        let error = error.unwrap_or_default();
        let found = format!("{failing} could not be delivered yet; the last error: {error}");
        let finding = Finding::fine("ledger", on_terminal::CONSUMER, found);
        let advice = "see `lullwatch ledger`; it is tried again with back-off";
        findings.push(finding.at(Level::Warning).with("failing", failing).advise(advice));
    }
    let found = format!("{at_work} at work, {waiting} awaiting their session, {starting} starting");
    findings.push(
        Finding::fine("runs", "", found)
            .with("at_work", at_work)
            .with("awaiting", waiting)
            .with("starting", starting),
    );
    findings
}

fn writer(setting: &Setting) -> Finding {
    let db = &setting.config.db;
    let path = lock::path_for(db).display().to_string();
    if let Err(error) = lock::look(db) {
        return Finding::fine("writer", path, error.to_string())
            .at(Level::Fault)
            .advise("nothing can be written until it is gone: see what it is, and move it away");
    }
    if !lock::is_held(db) {
        return Finding::fine("writer", path, "nobody writes now");
    }
    let holder = lock::read(db).unwrap_or_default();
    if lock::lost_log(db) {
        let found = format!("pid {} writes, and the log of the database is gone", holder.pid);
        let advice = "it is repaired within a second, else end that process; do not delete -wal";
        return Finding::fine("writer", path, found).at(Level::Fault).advise(advice);
    }
    let beat_ms = Clock::default().now_ms() - holder.heartbeat_ms;
    let finding = Finding::fine(
        "writer",
        path,
        format!("pid {} writes, last sign {} ago", holder.pid, age::span(beat_ms.max(0))),
    );
    let finding = finding.with("pid", i64::from(holder.pid)).with("heartbeat_age_ms", beat_ms);
    if beat_ms > lock::STALLED_MS {
        let advice = format!("it is stalled: look at pid {}, or end it", holder.pid);
        return finding.at(Level::Warning).advise(advice);
    }
    finding
}
