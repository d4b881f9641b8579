//! JSON: one object per command, in a stable field order, `null` for what is not known.
//!
//! These types are the contract (`docs`, design section 8) and are apart from the snapshot's own, so
//! that a rename inside changes no output. Times are RFC 3339 UTC with milliseconds; every string
//! passes the text filter.

mod rows;
mod session;

use std::borrow::Cow;
use std::io;

use serde::{Serialize, Serializer};

use super::words;
use crate::snapshot::{
    AuditRow, CompactionRow, Detail, LedgerRow, Session, Snapshot, Transition, Windows,
};
use crate::text;

/// A string as it is written: filtered.
type Clean<'a> = Cow<'a, str>;

/// A moment as it is written.
type Moment = Option<String>;

#[derive(Serialize)]
struct SnapshotOut<'a> {
    schema: &'static str,
    generated_at: Moment,
    as_of: Moment,
    host: Clean<'a>,
    windows: WindowsOut,
    counts: CountsOut,
    hidden: u64,
    mirror: MirrorOut<'a>,
    audit: AuditCountsOut,
    ledger: LedgerCountOut<'a>,
    sessions: Listed<'a>,
}

/// Sessions that become JSON one at a time: of a house of 100,000 their text alone is 150 MB.
struct Listed<'a>(&'a [Session]);

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(session::session))
    }
}

#[derive(Serialize)]
struct WindowsOut {
    live_ms: i64,
    ended_ms: i64,
}

#[derive(Serialize)]
struct CountsOut {
    running: u64,
    idle: u64,
    completed: u64,
    other: u64,
    unchecked: u64,
    attention: u64,
    at_work: u64,
    your_turn: u64,
}

#[derive(Serialize)]
struct MirrorOut<'a> {
    writer: bool,
    files: u64,
    bytes: u64,
    skipped_lines: u64,
    complete: bool,
    warnings: Vec<Clean<'a>>,
}

#[derive(Serialize)]
struct AuditCountsOut {
    overrides: u64,
    overrides_after_exit: u64,
    rejections: u64,
    migrations: u64,
}

#[derive(Serialize)]
struct LedgerCountOut<'a> {
    consumer: Clean<'a>,
    pending: u64,
}

#[derive(Serialize)]
struct ItemsOut<T> {
    schema: &'static str,
    generated_at: Moment,
    items: Vec<T>,
}

#[derive(Serialize)]
struct ShowOut<'a> {
    schema: &'static str,
    generated_at: Moment,
    windows: WindowsOut,
    session: session::SessionOut<'a>,
    why: Vec<rows::TriedOut<'a>>,
    transitions: Vec<rows::TransitionOut<'a>>,
    brackets: Vec<session::CompactionOut<'a>>,
    messages: Vec<rows::MessageOut<'a>>,
    children: Vec<session::SessionOut<'a>>,
}

/// Writes `lullwatch.snapshot.v1`.
pub fn snapshot(out: &mut dyn io::Write, snapshot: &Snapshot) -> io::Result<()> {
    let (counts, mirror, audit) = (snapshot.counts, &snapshot.mirror, snapshot.audit);
    let value = SnapshotOut {
        schema: "lullwatch.snapshot.v1",
        generated_at: words::rfc3339(snapshot.at_ms),
        as_of: moment(snapshot.as_of_ms),
        host: text::line(&snapshot.host),
        windows: windows_out(snapshot.windows),
        counts: CountsOut {
            running: counts.running,
            idle: counts.idle,
            completed: counts.completed,
            other: counts.other,
            unchecked: counts.unchecked,
            attention: counts.attention,
            at_work: counts.at_work,
            your_turn: counts.your_turn,
        },
        hidden: snapshot.hidden.sessions,
        mirror: MirrorOut {
            writer: mirror.writer,
            files: mirror.files,
            bytes: mirror.bytes,
            skipped_lines: mirror.skipped_lines,
            complete: mirror.complete,
            warnings: cleans(&mirror.warnings),
        },
        audit: AuditCountsOut {
            overrides: audit.overrides,
            overrides_after_exit: audit.overrides_after_exit,
            rejections: audit.rejections,
            migrations: audit.migrations,
        },
        ledger: LedgerCountOut {
            consumer: text::line(&snapshot.ledger.consumer),
            pending: snapshot.ledger.pending,
        },
        sessions: Listed(&snapshot.sessions),
    };
    serde_json::to_writer(&mut *out, &value)?;
    out.write_all(b"\n")
}

/// Writes `lullwatch.show.v1`.
pub fn show(
    out: &mut dyn io::Write,
    detail: &Detail,
    windows: Windows,
    now_ms: i64,
) -> io::Result<()> {
    let value = ShowOut {
        schema: "lullwatch.show.v1",
        generated_at: words::rfc3339(now_ms),
        windows: windows_out(windows),
        session: session::session(&detail.session),
        why: detail.why.iter().map(rows::tried).collect(),
        transitions: detail.transitions.iter().map(rows::transition).collect(),
        brackets: detail.brackets.iter().map(session::compaction).collect(),
        messages: detail.messages.iter().map(rows::message).collect(),
        children: detail.children.iter().map(session::session).collect(),
    };
    write(out, &value)
}

/// Writes `lullwatch.audit.v1`.
pub fn audit(out: &mut dyn io::Write, rows: &[AuditRow], now_ms: i64) -> io::Result<()> {
    items(out, "lullwatch.audit.v1", rows.iter().map(rows::audit).collect(), now_ms)
}

/// Writes `lullwatch.ledger.v1`.
pub fn ledger(out: &mut dyn io::Write, rows: &[LedgerRow], now_ms: i64) -> io::Result<()> {
    items(out, "lullwatch.ledger.v1", rows.iter().map(rows::ledger).collect(), now_ms)
}

/// Writes `lullwatch.compactions.v1`.
pub fn compactions(out: &mut dyn io::Write, rows: &[CompactionRow], now_ms: i64) -> io::Result<()> {
    items(out, "lullwatch.compactions.v1", rows.iter().map(rows::compaction).collect(), now_ms)
}

/// Writes one transition of an entity as a line of its own: `lullwatch.transition.v1`.
pub fn transition(out: &mut dyn io::Write, entity: &str, row: &Transition) -> io::Result<()> {
    write(out, &rows::stamped(entity, row))
}

fn items<T: Serialize>(
    out: &mut dyn io::Write,
    schema: &'static str,
    items: Vec<T>,
    now_ms: i64,
) -> io::Result<()> {
    write(out, &ItemsOut { schema, generated_at: words::rfc3339(now_ms), items })
}

/// One line, in one write, so that a reader never sees half of it.
fn write(out: &mut dyn io::Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    out.write_all(&line)
}

fn windows_out(windows: Windows) -> WindowsOut {
    WindowsOut { live_ms: windows.live_ms, ended_ms: windows.ended_ms }
}

fn moment(ms: Option<i64>) -> Moment {
    ms.and_then(words::rfc3339)
}

fn clean(text: Option<&str>) -> Option<Clean<'_>> {
    text.map(text::line)
}

/// A string that is empty where nothing is known.
fn known(text: &str) -> Option<Clean<'_>> {
    Some(text::line(text)).filter(|clean| !clean.is_empty())
}

fn cleans(texts: &[String]) -> Vec<Clean<'_>> {
    texts.iter().map(|text| text::line(text)).collect()
}
