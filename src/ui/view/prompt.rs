//! What lies over the screen, the help aside: the sort menu, a question, a name being typed, the
//! resume command, warnings.
//!
//! ```text
//! ┌─ acknowledge ──────────────────────┐
//! │ Acknowledge 3 entries for operator?│
//! │ y yes  n no                        │
//! └────────────────────────────────────┘
//! ```

use ratatui::layout::Rect;

use crate::ui::layout;
use crate::ui::model::{Model, Overlay};
use crate::ui::piece::{Piece, dim, plain, wrap};
use crate::ui::resume;
use crate::ui::sort::{Direction, SortKey};
use crate::ui::theme::Role;
use crate::ui::view::canvas::Canvas;
use crate::ui::view::empty;

const WIDTH: u16 = 70;

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, model: &Model, screen: Rect, overlay: &Overlay) {
    let room = usize::from(WIDTH.min(screen.width).saturating_sub(4));
    let (title, lines, scrolled) = match overlay {
        // The help has its own file; the filter is typed in the footer.
        Overlay::Help(_) | Overlay::Filter => return,
        Overlay::Sort(at) => ("sort by", sort_lines(model, *at), 0),
        Overlay::Acknowledge(ids) => ("acknowledge", question(model, ids.len()), 0),
        Overlay::Consumer(name) => ("consumer", consumer_lines(model, name), 0),
        Overlay::Resume(row_id) => ("resume", resume_lines(model, *row_id, room), 0),
        Overlay::Warnings(line) => ("warnings and roots", warning_lines(model, room), *line),
    };
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let height = rows.saturating_add(2).min(screen.height.saturating_sub(2));
    let inside = canvas.boxed(layout::centred(screen, WIDTH, height), title);
    let first = scrolled.min(lines.len().saturating_sub(usize::from(inside.height)));
    for (row, line) in (0..inside.height).zip(lines.iter().skip(first)) {
        canvas.line(inside, row, line);
    }
    if let Overlay::Sort(at) = overlay {
        canvas.select(inside, u16::try_from(*at).unwrap_or(u16::MAX), 0);
    }
}

fn sort_lines(model: &Model, _: usize) -> Vec<Vec<Piece>> {
    let arrow = match model.direction {
        Direction::Forward => "↓",
        Direction::Backward => "↑",
    };
    SortKey::ALL
        .into_iter()
        .map(|key| {
            let mark = if key == model.sort { arrow } else { " " };
            let name = plain(&format!("{mark} {}", key.word())).fit(usize::from(WIDTH - 4));
            vec![name]
        })
        .collect()
}

fn question(model: &Model, count: usize) -> Vec<Vec<Piece>> {
    let entries = if count == 1 { "this entry" } else { "entries" };
    let what = if count == 1 { entries.to_owned() } else { format!("{count} {entries}") };
    let text = format!("Acknowledge {what} for {}?", model.consumer_name());
    vec![
        vec![Piece::new(Role::Strong, &text)],
        vec![dim("It leaves this consumer's ledger; other consumers keep theirs.")],
        Vec::new(),
        vec![
            Piece::new(Role::Accent, "y"),
            dim(" yes   "),
            Piece::new(Role::Accent, "n"),
            dim(" no"),
        ],
    ]
}

fn consumer_lines(model: &Model, name: &str) -> Vec<Vec<Piece>> {
    vec![
        vec![dim(&format!("Now: {}. Whose ledger instead?", model.consumer_name()))],
        vec![Piece::new(Role::Accent, &format!("{name}▌"))],
    ]
}

fn resume_lines(model: &Model, row_id: i64, room: usize) -> Vec<Vec<Piece>> {
    let Some(session) = model.session(row_id) else {
        return vec![vec![plain("the session is not listed any more")]];
    };
    let Some(resume) = resume::resume(session) else {
        return vec![vec![plain("a sub-agent has no command of its own: resume its parent")]];
    };
    let mut lines: Vec<Vec<Piece>> = wrap(&resume.command, room)
        .into_iter()
        .map(|line| vec![Piece::new(Role::Strong, &line)])
        .collect();
    let role = if session.process.alive == Some(true) { Role::Warning } else { Role::Text };
    lines.push(Vec::new());
    lines.extend(wrap(&resume.gate, room).into_iter().map(|line| vec![Piece::new(role, &line)]));
    lines.push(vec![dim("Shown, never run: y copies it.")]);
    lines
}

fn warning_lines(model: &Model, room: usize) -> Vec<Vec<Piece>> {
    let mut lines = Vec::new();
    let mut add = |role: Role, text: &str| {
        for (number, line) in wrap(text, room.saturating_sub(2)).iter().enumerate() {
            let mark = if number == 0 { "! " } else { "  " };
            lines.push(vec![Piece::new(role, mark), plain(line)]);
        }
    };
    if let Some(trouble) = &model.trouble {
        add(Role::Error, trouble);
    }
    if let Some(picture) = &model.picture {
        let mirror = &picture.snapshot.mirror;
        for warning in &mirror.warnings {
            add(Role::Warning, warning);
        }
        if lines.is_empty() {
            lines.push(vec![plain("no warnings")]);
        }
        if mirror.skipped_lines > 0 {
            let text = format!("{} damaged lines were skipped", mirror.skipped_lines);
            lines.push(vec![dim(&text)]);
        }
        lines.push(Vec::new());
        lines.extend(empty::root_lines(model, &mirror.roots));
    }
    lines
}
