//! The last row: the keys of what has the keyboard, from the key table; or a notice; or what is
//! being typed.
//!
//! ```text
//! Enter open  / filter  f status  s sort  r resume  y copy  ? help  q quit
//! ```

use ratatui::layout::Rect;

use crate::ui::keymap::{self, Mode};
use crate::ui::model::{Focus, Model, Overlay, Stays, Tab};
use crate::ui::piece::{self, Piece, dim, plain};
use crate::ui::theme::Role;
use crate::ui::view::canvas::Canvas;

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, model: &Model, area: Rect) {
    let mode = model.mode();
    let room = usize::from(area.width);
    if let Some(notice) = &model.notice {
        let (role, hint) = match notice.stays {
            Stays::Until(_) => (Role::Strong, ""),
            Stays::UntilKey => (Role::Error, "any key"),
        };
        canvas.sides(area, 0, &[Piece::new(role, &notice.text)], &[dim(hint)]);
        return;
    }
    match &model.overlay {
        Some(Overlay::Filter) => {
            let list = model.list(model.pane);
            let listed = list.items().filter(|item| item.depth == 0).count();
            let typed = format!("/{}▌", list.filter);
            let count = plain(&format!("  {listed} of {}  ", list.total));
            let left = [Piece::new(Role::Accent, &typed), count];
            let keys = keys(mode, room.saturating_sub(piece::width(&left)));
            canvas.sides(area, 0, &left, &keys);
        }
        Some(_) => canvas.line(area, 0, &keys(mode, room)),
        None => {
            let follows = model.focus == Focus::Detail
                && model.detail.tab == Tab::Transcript
                && model.detail.follow;
            let right = if follows { vec![Piece::new(Role::Accent, "FOLLOW")] } else { Vec::new() };
            let room = room.saturating_sub(piece::width(&right) + 1);
            canvas.sides(area, 0, &keys(mode, room), &right);
        }
    }
}

/// Keys with their words, as many as there is room for; the last two, help and quit, always.
fn keys(mode: Mode, room: usize) -> Vec<Piece> {
    let mut all: Vec<[Piece; 2]> = keymap::footer(mode)
        .map(|(binding, word)| {
            let key = binding.keys.first().map_or_else(String::new, |key| key.label());
            [Piece::new(Role::Accent, &key), dim(&format!(" {word}"))]
        })
        .collect();
    let cells = |all: &[[Piece; 2]]| all.iter().map(|pair| piece::width(pair) + 2).sum::<usize>();
    while all.len() > 2 && cells(&all) > room + 2 {
        all.remove(all.len() - 3);
    }
    let mut line = Vec::new();
    for pair in all {
        if !line.is_empty() {
            line.push(plain("  "));
        }
        line.extend(pair);
    }
    line
}
