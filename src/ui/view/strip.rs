//! The selected row in words: below the list, or beside it when there is room.
//!
//! ```text
//! ─────────────────────────────────────────────────────────
//! Deploy the notes, and then tell everybody · ~/demo · main
//! ● running · needs approval · quiet 12s · pid 4242
//! since 09:00: active 2s ago, within the live window of 5m · observed · live_window
//! ```

use ratatui::layout::Rect;

use crate::snapshot::age as exact;
use crate::snapshot::{AuditRow, CompactionRow, LedgerRow, Picture, Session};
use crate::ui::age;
use crate::ui::layout::STRIP_ROWS;
use crate::ui::model::{Model, Pane};
use crate::ui::page;
use crate::ui::piece::{Piece, dim, plain, wrap};
use crate::ui::theme::Role;
use crate::ui::view::audit;
use crate::ui::view::canvas::Canvas;
use crate::ui::words;

/// Draws it below a list.
pub(super) fn draw(canvas: &mut Canvas<'_>, model: &Model, area: Rect) {
    if model.list(model.pane).selected().is_none() {
        return;
    }
    canvas.line(area, 0, &[dim(&"─".repeat(usize::from(area.width)))]);
    let mut lines = selected_lines(model);
    // The list has room for the beginning of a title only.
    let whole = model.selected_session().filter(|_| model.pane == Pane::Sessions);
    if let Some(session) = whole.filter(|_| area.height > STRIP_ROWS) {
        lines.insert(0, title_line(model, session));
    }
    for (row, line) in (1..area.height).zip(&lines) {
        canvas.line(area, row, line);
    }
}

/// Draws it beside a list of another pane than the sessions'.
pub(super) fn draw_side(canvas: &mut Canvas<'_>, model: &Model, area: Rect) {
    let room = usize::from(area.width);
    let mut row = 0;
    for line in selected_lines(model) {
        let role = line.first().map_or(Role::Text, |piece| piece.role);
        let whole = crate::ui::piece::width(&line) <= room;
        if whole {
            canvas.line(area, row, &line);
            row += 1;
            continue;
        }
        let text: String = line.iter().map(Piece::text).collect();
        for part in wrap(&text, room) {
            canvas.line(area, row, &[Piece::new(role, &part)]);
            row += 1;
        }
    }
}

fn title_line(model: &Model, session: &Session) -> Vec<Piece> {
    let mut line = vec![Piece::new(Role::Strong, words::title(session).text())];
    let cwd = session.cwd.as_deref().map(|cwd| words::path(cwd, model.options.home.as_deref()));
    for part in [cwd, session.branch.clone()].into_iter().flatten() {
        line.extend([dim(" · "), dim(&part)]);
    }
    line
}

fn session_lines(model: &Model, session: &Session) -> Vec<Vec<Piece>> {
    let mut lines = vec![words::status_line(model, session)];
    if let Some(error) = session.last_error.as_ref().filter(|_| session.attention) {
        lines.push(vec![Piece::new(Role::Error, error)]);
    }
    lines.push(words::why_line(model, session));
    if let Some(text) = &session.last_text {
        lines.push(vec![dim("said: "), plain(text)]);
    }
    lines
}

/// What is to be known of the selected row of a pane, the most telling first.
fn selected_lines(model: &Model) -> Vec<Vec<Piece>> {
    let Some(picture) = &model.picture else { return Vec::new() };
    let Some(item) = model.list(model.pane).selected() else { return Vec::new() };
    let lines = match model.pane {
        Pane::Sessions => {
            picture.snapshot.sessions.get(item.index).map(|session| session_lines(model, session))
        }
        Pane::Audit => picture.audit.get(item.index).map(|row| audit_lines(model, row)),
        Pane::Ledger => picture.ledger.get(item.index).map(|row| ledger_lines(model, picture, row)),
        Pane::Compactions => {
            picture.compactions.get(item.index).map(|row| compaction_lines(model, row))
        }
    };
    lines.unwrap_or_default()
}

fn audit_lines(model: &Model, row: &AuditRow) -> Vec<Vec<Piece>> {
    let at = model.options.zone.stamp(row.at_ms);
    let from = row.from.as_deref().unwrap_or("none");
    let mut change = vec![audit::event(row), dim(&format!(" · {from} → "))];
    change.push(page::words_of(&row.to));
    if let Some(gap_ms) = row.gap_ms {
        change.push(dim(&format!(" · {} after the end", exact::span(gap_ms))));
    }
    if row.repeats > 1 {
        change.push(dim(&format!(" · {} times", row.repeats)));
    }
    let mut lines = vec![
        change,
        vec![plain(&model.options.zone.told(&row.why))],
        vec![dim(&format!("{at} by {} · {}", row.actor, row.reason))],
        vec![dim(&row.entity)],
    ];
    lines.extend(
        row.evidence
            .iter()
            .map(|evidence| vec![dim("└ "), plain(&model.options.zone.told(evidence))]),
    );
    lines
}

fn ledger_lines(model: &Model, picture: &Picture, row: &LedgerRow) -> Vec<Vec<Piece>> {
    let at = model.options.zone.stamp(row.at_ms);
    let mut first = vec![page::words_of(&row.to)];
    first.push(dim(&format!(" · from {} · {} · {at}", row.from, row.basis)));
    if row.superseded {
        first.push(plain(" · superseded: it has been active since"));
    }
    let mut lines = vec![first];
    if let Some(error) = &row.last_error {
        let text = format!("on_terminal failed {} times: {error}", row.attempts);
        lines.push(vec![Piece::new(Role::Warning, &text)]);
    }
    lines.push(vec![dim(&format!("{} · {} {}", row.reason, row.entity_type, row.entity))]);
    if let Some(ended_ms) = row.ended_ms {
        let text = format!("ended {}", model.options.zone.stamp(ended_ms));
        lines.push(vec![dim(&text)]);
    }
    let now = picture.snapshot.sessions.iter().find(|session| session.id == row.entity);
    if let Some(session) = now {
        let mut line = vec![dim("now ")];
        line.extend(words::status_line(model, session));
        lines.push(line);
    }
    lines
}

fn compaction_lines(model: &Model, row: &CompactionRow) -> Vec<Vec<Piece>> {
    let compaction = &row.compaction;
    let blocking = if compaction.blocking { " · the owner refuses to compact" } else { "" };
    let running = match compaction.running {
        Some(true) => " · runs",
        Some(false) => " · does not run",
        None => "",
    };
    let mut lines = vec![vec![
        words::bracket(compaction, row.attention),
        dim(&format!(" · bracket {}{blocking}{running}", compaction.bracket)),
    ]];
    lines.push(vec![plain(
        &model.options.zone.told(compaction.why.as_deref().unwrap_or(age::UNKNOWN)),
    )]);
    if let Some(error) = &compaction.error {
        lines.push(vec![Piece::new(Role::Error, error)]);
    }
    let number = |seq: Option<u64>| seq.map_or_else(|| age::UNKNOWN.to_owned(), |n| n.to_string());
    lines.push(vec![dim(&format!(
        "seq {} · end-seed {} · {} orphans · {} done",
        number(compaction.seq),
        number(compaction.end_seed_seq),
        compaction.orphans,
        compaction.count
    ))]);
    if let Some(at_ms) = compaction.started_ms {
        let text = format!("started {}", model.options.zone.stamp(at_ms));
        lines.push(vec![dim(&text)]);
    }
    lines.push(vec![dim(&row.session)]);
    lines
}
