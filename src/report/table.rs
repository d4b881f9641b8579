//! The list of sessions as a table, for `--once` and for whatever is not a terminal.
//!
//! ```text
//! 1 running · 2 idle · 1 completed · 1 needs you      what there is, in one line
//!                                                     what an operator should know beside it
//!    STATUS     QUIET  DOING      AGENT   PROJECT …   a status is a word, never a colour alone
//! ! idle           7m  question   claude  src/web …   who needs a human, first
//!
//!   running       <1m  tool Bash  codex   src/api …   then by status, newest first
//! ```
//!
//! Nothing in it differs between two runs of the same minute in which nothing happened: ages are
//! whole minutes, seen from the begin of the minute.

mod panes;

use std::io;

use super::grid::{Cell, Column, Line, Paint, Side, across, render};
use super::{Glyphs, Style, words};
use crate::snapshot::sort::{Group, group};
use crate::snapshot::{EndedIn, Phase, RootState, Session, Snapshot, Windows, age};
use crate::text;

pub use panes::{audit, compactions, ledger, transition};
pub(super) use panes::{change, tokens};

/// Cells of a title in a table without a width.
const TITLE_CELLS: usize = 80;
/// Cells of a project.
const PROJECT_CELLS: usize = 24;

const COLUMNS: [Column; 11] = [
    Column { head: "", rank: 0, least: 1, most: 1, side: Side::Left },
    Column { head: "STATUS", rank: 0, least: 20, most: 20, side: Side::Left },
    Column { head: "QUIET", rank: 1, least: 6, most: 6, side: Side::Right },
    Column { head: "DOING", rank: 2, least: 16, most: 42, side: Side::Left },
    Column { head: "AGENT", rank: 3, least: 6, most: 6, side: Side::Left },
    Column { head: "PROJECT", rank: 4, least: 14, most: PROJECT_CELLS, side: Side::Left },
    Column { head: "BRANCH", rank: 7, least: 6, most: 20, side: Side::Left },
    Column { head: "CTX", rank: 6, least: 6, most: 6, side: Side::Right },
    Column { head: "TOKENS", rank: 8, least: 6, most: 6, side: Side::Right },
    Column { head: "ID", rank: 5, least: 13, most: 13, side: Side::Left },
    Column { head: "TITLE", rank: 0, least: 0, most: TITLE_CELLS, side: Side::Left },
];

/// Writes the list; when there is nothing to list, where it was looked.
pub fn sessions(out: &mut dyn io::Write, snapshot: &Snapshot, style: Style) -> io::Result<()> {
    if snapshot.sessions.is_empty() {
        return out.write_all(nothing(snapshot, style).as_bytes());
    }
    let mut lines = Vec::with_capacity(snapshot.sessions.len() + 4);
    let mut last = None;
    for session in &snapshot.sessions {
        let group = group(session);
        if last.is_some_and(|last| last != group) {
            lines.push(Line::Blank);
        }
        last = Some(group);
        lines.push(Line::Row(row(session, snapshot.at_ms, snapshot.windows, style.glyphs)));
    }
    let head = head(snapshot, style);
    let table = render(&COLUMNS, &lines, style);
    out.write_all(format!("{head}\n{table}").as_bytes())
}

/// The counts, and what an operator should know beside them.
fn head(snapshot: &Snapshot, style: Style) -> String {
    let dot = style.glyphs.dot();
    let counts = &snapshot.counts;
    let mut parts = vec![
        format!("{} running", counts.running),
        format!("{} idle", counts.idle),
        format!("{} completed", counts.completed),
    ];
    for (count, word) in [(counts.other, "ended otherwise"), (counts.unchecked, "unchecked")] {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    let (first, paint) = match counts.attention {
        0 => (parts.join(dot), Paint::Strong),
        1 => (format!("{}{dot}1 needs you", parts.join(dot)), Paint::Alert),
        more => (format!("{}{dot}{more} need you", parts.join(dot)), Paint::Alert),
    };
    let mut lines = vec![across(&first, paint, style)];
    let beside = beside(snapshot);
    if !beside.is_empty() {
        lines.push(across(&beside.join(dot), Paint::Dim, style));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn beside(snapshot: &Snapshot) -> Vec<String> {
    let mut beside = Vec::new();
    let ledger = &snapshot.ledger;
    if ledger.pending > 0 {
        beside.push(format!("{} not acknowledged", words::plural(ledger.pending, "end")));
    }
    let audit = &snapshot.audit;
    if audit.overrides > 0 {
        beside.push(format!("{} after silence", words::plural(audit.overrides, "override")));
    }
    if audit.rejections > 0 {
        beside.push(words::plural(audit.rejections, "rejected transition"));
    }
    let hidden = &snapshot.hidden;
    if hidden.sessions > 0 {
        beside.push(format!(
            "{} hidden by {}",
            words::plural(hidden.sessions, "session"),
            text::line(&hidden.filters)
        ));
    }
    let windows = snapshot.windows;
    if windows != Windows::default() {
        let (live, ended) = (age::span(windows.live_ms), age::span(windows.ended_ms));
        beside.push(format!("windows {live} and {ended}"));
    }
    let mirror = &snapshot.mirror;
    if !mirror.complete {
        beside.push("not all transcripts are read yet".to_owned());
    }
    // One at work is told on stderr: here its pid would differ from run to run.
    if let Some(pid) = mirror.writer_pid.filter(|_| !mirror.writer && mirror.writer_stalled) {
        beside.push(format!("writer stalled, pid {pid}"));
    }
    // A pass of this minute is now, and naming it would differ from run to run.
    if let Some(as_of) = snapshot.as_of_ms {
        let minutes = age::minutes_since(snapshot.at_ms, as_of);
        if minutes > 0 {
            beside.push(format!("as of {} ago", age::coarse(minutes)));
        }
    }
    beside
}

fn row(session: &Session, now_ms: i64, windows: Windows, glyphs: Glyphs) -> Vec<Cell> {
    let unknown = || Cell::unknown(glyphs);
    let (mark, doing_paint) =
        if session.attention { ("!", Paint::Alert) } else { ("", Paint::Plain) };
    let branch = session.branch.as_deref().map(text::line).filter(|branch| !branch.is_empty());
    let project = session.cwd.as_deref().map(|cwd| words::project(cwd, PROJECT_CELLS));
    let total = Some(session.tokens.total).filter(|total| *total != 0);
    vec![
        Cell::new(mark, Paint::Alert),
        status(session, now_ms, glyphs),
        quiet(session, now_ms, windows).map_or_else(unknown, Cell::plain),
        Cell::new(doing(session, now_ms, glyphs), doing_paint),
        Cell::plain(session.agent),
        project.map_or_else(unknown, Cell::plain),
        branch.map_or_else(unknown, Cell::plain),
        context(session).map_or_else(unknown, Cell::plain),
        total.map_or_else(unknown, |total| Cell::plain(words::amount(total))),
        Cell::new(words::short_id(&session.native_id), Paint::Dim),
        match session.title.as_deref() {
            Some(title) => Cell::plain(text::line(title)),
            None => Cell::new(words::short_id(&session.native_id), Paint::Dim),
        },
    ]
}

/// The status as a word; of an unchecked row what it was, and how long ago that was so.
pub(super) fn status(session: &Session, now_ms: i64, glyphs: Glyphs) -> Cell {
    let word = session.status.word();
    if session.unchecked {
        let ago = last_sign_ms(session, now_ms).map_or_else(String::new, |then| {
            format!("{}{} ago", glyphs.dot(), age::ago(now_ms, then))
        });
        return Cell::new(format!("was {word}{ago}"), Paint::Dim);
    }
    let paint = match Group::of(session.status) {
        Group::Running => Paint::Good,
        Group::Idle => Paint::Calm,
        Group::Completed => Paint::Dim,
        Group::Ended => Paint::Bad,
    };
    Cell::new(word, paint)
}

fn last_sign_ms(session: &Session, now_ms: i64) -> Option<i64> {
    session.quiet_ms.map(|quiet| now_ms.saturating_sub(quiet))
}

/// How long it is quiet, never less than a window that it is beyond: the begin of the minute must not
/// put an idle session back among those that run.
fn quiet(session: &Session, now_ms: i64, windows: Windows) -> Option<String> {
    if session.unchecked {
        return Some(String::new());
    }
    let quiet_ms = session.quiet_ms?;
    let minutes = age::minutes_since(now_ms, now_ms.saturating_sub(quiet_ms));
    let beyond =
        [windows.live_ms, windows.ended_ms].into_iter().filter(|window| quiet_ms > *window);
    Some(age::coarse(beyond.map(|window| window / 60_000).max().unwrap_or(0).max(minutes)))
}

/// What it is doing or waiting for; of an ended one how that is known.
pub(super) fn doing(session: &Session, now_ms: i64, glyphs: Glyphs) -> String {
    if session.unchecked {
        let unseen = session.notices.iter().any(|notice| notice.code == "unobserved");
        let word = if unseen { "cannot be read" } else { glyphs.unknown() };
        return word.to_owned();
    }
    let mut parts = vec![match session.phase {
        None => glyphs.unknown().to_owned(),
        Some(Phase::Ended) => return ended(session),
        Some(Phase::Tool) => tool(session, now_ms),
        Some(Phase::ToolGone) => format!("{}, process gone", tool(session, now_ms)),
        Some(
            phase @ (Phase::Compacting
            | Phase::NeedsApproval
            | Phase::Question
            | Phase::Error
            | Phase::Working
            | Phase::WorkingGone
            | Phase::ProbablyLeft
            | Phase::YourTurn
            | Phase::Returned),
        ) => phase.word().to_owned(),
    }];
    let compaction = &session.compaction;
    if compaction.bracket == "open" && session.phase != Some(Phase::Compacting) {
        parts.push("compaction open".to_owned());
    }
    if session.process.alive == Some(true) && Group::of(session.status) == Group::Idle {
        parts.push("process alive".to_owned());
    }
    parts.extend(session.behind.clone());
    if session.active_children > 0 {
        parts.push(words::plural(session.active_children, "sub-agent"));
    }
    parts.join(", ")
}

fn tool(session: &Session, now_ms: i64) -> String {
    let Some((name, since_ms)) = &session.tool else { return Phase::Tool.word().to_owned() };
    let minutes = since_ms.map_or(0, |since| age::minutes_since(now_ms, since));
    let name = text::line(name);
    let age = if minutes > 0 { format!(" {}", age::coarse(minutes)) } else { String::new() };
    format!("tool {name}{age}")
}

/// An end by silence is an inference and says so.
fn ended(session: &Session) -> String {
    let basis = session.reason.basis.word();
    if session.process.alive == Some(true) {
        let pid = session.process.pid.map_or_else(String::new, |pid| format!(" in pid {pid}"));
        return format!("open again{pid}, nothing said yet");
    }
    match session.ended_in {
        Some(EndedIn::Turn) => format!("ended in turn, {basis}"),
        Some(EndedIn::Error) => format!("ended in error, {basis}"),
        None => format!("ended, {basis}"),
    }
}

/// Context used: a share where the window is known, else tokens.
fn context(session: &Session) -> Option<String> {
    let used = session.context_used?;
    match session.context_window {
        Some(window) if window > 0 => {
            Some(format!("{}%", used.saturating_mul(100).saturating_add(window / 2) / window))
        }
        Some(_) | None => Some(words::amount(i64::try_from(used).unwrap_or(i64::MAX))),
    }
}

/// No session to show: where it was looked, and what to do.
fn nothing(snapshot: &Snapshot, style: Style) -> String {
    let plain = |text: &str| (String::new(), text.to_owned());
    let mut lines = vec![plain("No sessions to show."), plain("")];
    let hidden = &snapshot.hidden;
    if hidden.sessions > 0 {
        let sessions = words::plural(hidden.sessions, "session");
        lines.push(plain(&format!("{sessions} hidden by {}.", text::line(&hidden.filters))));
        return super::show::wrapped(&lines, style);
    }
    let roots = &snapshot.mirror.roots;
    lines.push(plain(if roots.is_empty() { "No folder was looked at." } else { "Looked at:" }));
    for root in roots {
        let found = match root.state {
            RootState::Present if snapshot.mirror.files > 0 => "read",
            RootState::Present => "no transcript yet",
            RootState::Missing => "not there",
            RootState::Vanished => "gone",
            RootState::Unreadable => "cannot be read",
        };
        let path = text::line(&root.path);
        lines.push((format!("  {}  ", text::fit(root.agent, 6)), format!("{path} ({found})")));
    }
    lines.push(plain(""));
    lines.push(plain(match snapshot.mirror.files {
        0 => {
            "Start claude, codex or dsh and run this again, or name another folder with \
             --root AGENT=PATH."
        }
        _ if snapshot.mirror.complete => "Transcripts were read, and none of them holds a session.",
        _ => "Not all transcripts are read yet.",
    }));
    super::show::wrapped(&lines, style)
}
