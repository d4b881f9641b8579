//! An opened session: what it is, then one of its tabs.
//!
//! ```text
//! Deploy the notes
//! ● running · needs approval · quiet 12s · pid 4242
//! since 09:00: active 2s ago, within the live window of 5m · observed · live_window
//! ~/demo · main · claude 2.1.300 · opus
//! 120k tokens · in 2k · cache 100k/10k · out 8k · 3 prompts 12 answers 40 calls
//! context ███████░░░░░░░░░ 45% · 90k of 200k · 1 of 3 sub-agents active
//! Transcript  Why  Timeline 4  Brackets 1  Agents 3
//! 09:00 you   Deploy the notes, and then
//! ```

use ratatui::layout::Rect;

use crate::snapshot::Session;
use crate::ui::layout;
use crate::ui::model::{Focus, Model, Tab};
use crate::ui::piece::{Piece, dim, plain};
use crate::ui::theme::Role;
use crate::ui::view::canvas::Canvas;
use crate::ui::words;

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, model: &Model, area: Rect) {
    let areas = layout::detail(area);
    let Some(session) = model.shown_session() else {
        if model.wanted().is_some() {
            canvas.line(area, 0, &[dim("reading the session…")]);
        }
        return;
    };
    for (row, line) in (0..areas.head.height).zip(head(model, session, areas.head.height)) {
        canvas.line(areas.head, row, &line);
    }
    canvas.line(areas.tabs, 0, &tabs(model));
    if model.shown_detail().is_none() {
        canvas.line(areas.page, 0, &[dim("reading…")]);
        return;
    }
    let focused = model.focus == Focus::Detail && model.overlay.is_none();
    let text = Rect {
        x: areas.page.x.saturating_add(1),
        width: areas.page.width.saturating_sub(1),
        ..areas.page
    };
    for row in 0..areas.page.height {
        let at = model.detail.offset + usize::from(row);
        let Some(line) = model.detail.lines.get(at) else { break };
        canvas.line(text, row, &line.pieces);
        if at == model.detail.at && focused {
            canvas.line(areas.page, row, &[Piece::new(Role::Accent, "▌")]);
        }
    }
}

/// The most telling lines first: a low screen has room for two or three of them.
fn head(model: &Model, session: &Session, rows: u16) -> Vec<Vec<Piece>> {
    let mut title = vec![Piece::new(Role::Strong, words::title(session).text())];
    for notice in &session.notices {
        title.push(Piece::new(Role::Warning, &format!("  {}", notice.code)));
    }
    let mut lines =
        vec![title, words::status_line(model, session), words::why_line(model, session)];
    if rows > 3 {
        lines.push(words::place_line(model, session));
        lines.push(words::tokens_line(session));
        lines.push(words::context_line(session));
    }
    lines
}

fn tabs(model: &Model) -> Vec<Piece> {
    let detail = model.shown_detail();
    let mut line = Vec::new();
    for tab in Tab::ALL {
        let count = detail.and_then(|detail| match tab {
            Tab::Transcript | Tab::Why => None,
            Tab::Timeline => Some(detail.transitions.len()),
            Tab::Brackets => Some(detail.brackets.len()),
            Tab::Agents => Some(detail.children.len()),
        });
        if !line.is_empty() {
            line.push(plain("  "));
        }
        let text = match count {
            Some(count) if count > 0 => format!("{} {count}", tab.title()),
            Some(_) | None => tab.title().to_owned(),
        };
        let current = tab == model.detail.tab;
        line.push(if current { Piece::new(Role::Accent, &text) } else { dim(&text) });
    }
    line
}
