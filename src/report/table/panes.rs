//! The audit, ledger and compactions panes as tables.

use std::io;

use super::super::grid::{Cell, Column, Line, Paint, Side, render};
use super::super::{Glyphs, Style, words};
use super::TITLE_CELLS;
use crate::snapshot::{AuditRow, Compaction, CompactionRow, LedgerRow, Transition, age};
use crate::text;

const AUDIT: [Column; 8] = [
    Column { head: "WHEN", rank: 2, least: 17, most: 22, side: Side::Left },
    Column { head: "WHAT", rank: 0, least: 14, most: 14, side: Side::Left },
    Column { head: "CHANGE", rank: 1, least: 19, most: 26, side: Side::Left },
    Column { head: "AFTER", rank: 4, least: 15, most: 20, side: Side::Left },
    Column { head: "SESSION", rank: 3, least: 14, most: 24, side: Side::Left },
    Column { head: "REASON", rank: 6, least: 12, most: 32, side: Side::Left },
    Column { head: "WHO", rank: 5, least: 12, most: 26, side: Side::Left },
    Column { head: "WHY", rank: 0, least: 0, most: TITLE_CELLS, side: Side::Left },
];

/// Writes audit events, newest first.
pub fn audit(
    out: &mut dyn io::Write,
    rows: &[AuditRow],
    filters: &str,
    style: Style,
) -> io::Result<()> {
    if rows.is_empty() {
        let text = match filters {
            "" => "Nothing to audit: no override, no rejected transition, no migration.".to_owned(),
            filters => format!("Nothing to audit with {filters}."),
        };
        return out.write_all(super::super::show::told(&text, style).as_bytes());
    }
    let mut lines: Vec<Line> = rows.iter().map(|row| Line::Row(audit_row(row, style))).collect();
    narrowed(&mut lines, filters);
    out.write_all(render(&AUDIT, &lines, style).as_bytes())
}

fn audit_row(row: &AuditRow, style: Style) -> Vec<Cell> {
    let glyphs = style.glyphs;
    let (what, paint) = match row.action.as_str() {
        "status_transition_override" => ("override", Paint::Alert),
        "status_transition_rejected" => ("rejected", Paint::Bad),
        "status_migrated" => ("migrated", Paint::Plain),
        other => (other, Paint::Plain),
    };
    let times = if row.repeats > 1 { format!(" x{}", row.repeats) } else { String::new() };
    let after = match (&row.after, row.gap_ms) {
        (Some(after), Some(gap)) => format!("{after}, {}", age::span(gap)),
        (Some(after), None) => after.clone(),
        (None, Some(gap)) => age::span(gap),
        (None, None) => String::new(),
    };
    let why = if row.why.is_empty() { row.evidence.join("; ") } else { row.why.clone() };
    vec![
        Cell::plain(style.zone.minute(row.at_ms)),
        Cell::new(format!("{}{times}", text::line(what)), paint),
        // What was asked for and refused has no status before it where the asker named none.
        Cell::plain(match (&row.from, row.to.as_str()) {
            (None, "") => String::new(),
            (None, to) => format!("{} {}", glyphs.arrow(), text::line(to)),
            (Some(from), to) => change(Some(from), to, glyphs),
        }),
        Cell::plain(text::line(&after)),
        Cell::plain(entity(&row.entity)),
        Cell::plain(text::line(&row.reason)),
        Cell::plain(text::line(&row.actor)),
        Cell::plain(style.zone.told(&text::line(&why))),
    ]
}

/// Writes one transition as a line: when, of what, from → to, why.
pub fn transition(
    out: &mut dyn io::Write,
    entity: &str,
    row: &Transition,
    style: Style,
) -> io::Result<()> {
    let change = change(row.from.as_deref(), &row.to, style.glyphs);
    writeln!(
        out,
        "{}  {}  {change}  {} ({})",
        style.zone.second(row.at_ms),
        text::line(entity),
        text::line(&row.reason),
        text::line(&row.basis)
    )
}

const LEDGER: [Column; 9] = [
    Column { head: "ID", rank: 0, least: 8, most: 8, side: Side::Right },
    Column { head: "WHEN", rank: 3, least: 17, most: 22, side: Side::Left },
    Column { head: "CHANGE", rank: 1, least: 19, most: 26, side: Side::Left },
    Column { head: "BASIS", rank: 4, least: 8, most: 8, side: Side::Left },
    Column { head: "STATE", rank: 2, least: 12, most: 24, side: Side::Left },
    Column { head: "SESSION", rank: 5, least: 14, most: 24, side: Side::Left },
    Column { head: "REASON", rank: 7, least: 12, most: 32, side: Side::Left },
    Column { head: "LAST ERROR", rank: 6, least: 12, most: 40, side: Side::Left },
    Column { head: "TITLE", rank: 0, least: 0, most: TITLE_CELLS, side: Side::Left },
];

/// Writes the ledger of `consumer`, oldest first.
pub fn ledger(
    out: &mut dyn io::Write,
    rows: &[LedgerRow],
    consumer: &str,
    filters: &str,
    style: Style,
) -> io::Result<()> {
    let consumer = text::line(consumer);
    if rows.is_empty() {
        let text = match filters {
            "" => format!("Nothing pending: {consumer} has acknowledged every end."),
            filters => format!("Nothing pending for {consumer} with {filters}."),
        };
        return out.write_all(super::super::show::told(&text, style).as_bytes());
    }
    let mut lines: Vec<Line> = rows.iter().map(|row| Line::Row(ledger_row(row, style))).collect();
    if rows.iter().any(|row| row.acked_ms.is_none()) {
        let text = format!("acknowledge with `lullwatch ledger ack ID... --consumer {consumer}`");
        lines.extend([Line::Blank, Line::Title(Cell::new(text, Paint::Dim))]);
    }
    narrowed(&mut lines, filters);
    out.write_all(render(&LEDGER, &lines, style).as_bytes())
}

/// Says that filters may hide rows.
fn narrowed(lines: &mut Vec<Line>, filters: &str) {
    if !filters.is_empty() {
        lines.push(Line::Title(Cell::new(format!("only what {filters} leaves"), Paint::Dim)));
    }
}

fn ledger_row(row: &LedgerRow, style: Style) -> Vec<Cell> {
    let glyphs = style.glyphs;
    let mut state = Vec::new();
    if row.acked_ms.is_some() {
        state.push("acknowledged".to_owned());
    }
    if row.superseded {
        state.push("superseded".to_owned());
    }
    if row.attempts > 0 {
        state.push(format!("{} tried", row.attempts));
    }
    let from = Some(row.from.as_str()).filter(|from| !from.is_empty());
    vec![
        Cell::plain(row.id.to_string()),
        Cell::plain(style.zone.minute(row.at_ms)),
        Cell::plain(change(from, &row.to, glyphs)),
        Cell::plain(text::line(&row.basis)),
        Cell::new(state.join(", "), Paint::Dim),
        Cell::plain(entity(&row.entity)),
        Cell::plain(text::line(&row.reason)),
        Cell::new(text::line(row.last_error.as_deref().unwrap_or_default()), Paint::Bad),
        Cell::plain(text::line(row.title.as_deref().unwrap_or_default())),
    ]
}

const COMPACTIONS: [Column; 10] = [
    Column { head: "", rank: 0, least: 1, most: 1, side: Side::Left },
    Column { head: "BRACKET", rank: 0, least: 8, most: 8, side: Side::Left },
    Column { head: "STATE", rank: 1, least: 12, most: 28, side: Side::Left },
    Column { head: "SINCE", rank: 2, least: 6, most: 6, side: Side::Right },
    Column { head: "COUNT", rank: 3, least: 5, most: 5, side: Side::Right },
    Column { head: "TRIGGER", rank: 7, least: 7, most: 7, side: Side::Left },
    Column { head: "TOKENS", rank: 6, least: 18, most: 18, side: Side::Left },
    Column { head: "SESSION", rank: 4, least: 14, most: 24, side: Side::Left },
    Column { head: "STATUS", rank: 5, least: 9, most: 15, side: Side::Left },
    Column { head: "WHY", rank: 0, least: 0, most: TITLE_CELLS, side: Side::Left },
];

/// Writes brackets, open ones first.
pub fn compactions(
    out: &mut dyn io::Write,
    rows: &[CompactionRow],
    now_ms: i64,
    style: Style,
) -> io::Result<()> {
    if rows.is_empty() {
        let text = "No listed session has been compacted.";
        return out.write_all(super::super::show::told(text, style).as_bytes());
    }
    let line = |row| Line::Row(compaction_row(row, now_ms, style));
    let lines: Vec<Line> = rows.iter().map(line).collect();
    out.write_all(render(&COMPACTIONS, &lines, style).as_bytes())
}

fn compaction_row(row: &CompactionRow, now_ms: i64, style: Style) -> Vec<Cell> {
    let glyphs = style.glyphs;
    let bracket = &row.compaction;
    let paint = match bracket.bracket {
        "open" => Paint::Calm,
        "failed" => Paint::Bad,
        _ => Paint::Plain,
    };
    let why = [bracket.error.as_deref(), bracket.why.as_deref(), row.title.as_deref()];
    vec![
        Cell::new(if row.attention { "!" } else { "" }, Paint::Alert),
        Cell::new(bracket.bracket, paint),
        Cell::plain(text::line(bracket.state.as_deref().or(bracket.phase).unwrap_or_default())),
        Cell::plain(row.since_ms.map_or_else(String::new, |since| age::ago(now_ms, since))),
        Cell::plain(bracket.count.to_string()),
        Cell::plain(bracket.trigger.unwrap_or_default()),
        Cell::plain(tokens(bracket, glyphs)),
        Cell::plain(entity(&row.session)),
        Cell::plain(row.status.word()),
        Cell::plain(
            style.zone.told(&text::line(why.into_iter().flatten().next().unwrap_or_default())),
        ),
    ]
}

/// Tokens before and after; both are estimates, hence the sign.
pub(in super::super) fn tokens(bracket: &Compaction, glyphs: Glyphs) -> String {
    let amount = |tokens: Option<u64>| {
        tokens.map_or_else(
            || glyphs.unknown().to_owned(),
            |tokens| format!("~{}", words::amount(i64::try_from(tokens).unwrap_or(i64::MAX))),
        )
    };
    match (bracket.before_tokens, bracket.after_tokens) {
        (None, None) => String::new(),
        (before, after) => format!("{} {} {}", amount(before), glyphs.arrow(), amount(after)),
    }
}

/// `idle → completed`; an admission has nothing before it.
pub(in super::super) fn change(from: Option<&str>, to: &str, glyphs: Glyphs) -> String {
    let to = text::line(to);
    match from {
        Some(from) => format!("{} {} {to}", text::line(from), glyphs.arrow()),
        None => format!("admitted {to}"),
    }
}

/// `agent:id` with a short id; a run's name as it is.
fn entity(name: &str) -> String {
    match name.split_once(':') {
        Some((agent, native)) => {
            let own = native.rsplit('/').next().unwrap_or(native);
            format!("{}:{}", text::line(agent), words::short_id(own))
        }
        None => text::line(name).into_owned(),
    }
}
