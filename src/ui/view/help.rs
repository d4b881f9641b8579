//! Every key with what it does, from the key table: what works where one stands comes first.
//!
//! ```text
//! ┌─ keys ────────────────────────────────────────────┐
//! │ Sessions                                          │
//! │   f              only one status: cycle           │
//! ```

use ratatui::layout::Rect;

use crate::ui::keymap::{BINDINGS, Binding, Section};
use crate::ui::layout;
use crate::ui::model::Model;
use crate::ui::piece::{Piece, dim, plain};
use crate::ui::theme::Role;
use crate::ui::view::canvas::Canvas;

/// Widest a column of it gets.
const COLUMN_CELLS: u16 = 70;
/// Cells for the keys.
const KEYS_CELLS: usize = 16;

/// Draws it, scrolled by so many lines.
pub(super) fn draw(canvas: &mut Canvas<'_>, model: &Model, screen: Rect, scrolled: usize) {
    let lines = lines(model);
    let two = screen.width >= 2 * COLUMN_CELLS + 6;
    let rows = if two { lines.len().div_ceil(2) } else { lines.len() };
    let rows = u16::try_from(rows).unwrap_or(u16::MAX);
    let width = if two { 2 * COLUMN_CELLS + 6 } else { COLUMN_CELLS + 4 };
    let area = layout::centred(screen, width, rows.saturating_add(2).min(screen.height - 2));
    let inside = canvas.boxed(area, "keys");
    let height = usize::from(inside.height);
    let first = scrolled.min(usize::from(rows).saturating_sub(height));
    for row in 0..inside.height {
        let at = first + usize::from(row);
        if let Some(line) = lines.get(at).filter(|_| at < usize::from(rows)) {
            canvas.line(inside, row, line);
        }
        if let Some(line) = lines.get(at + usize::from(rows)).filter(|_| two) {
            let right = Rect { x: inside.x + COLUMN_CELLS + 2, width: COLUMN_CELLS, ..inside };
            canvas.line(right, row, line);
        }
    }
    if first + height < usize::from(rows) {
        let below = usize::from(rows) - first - height;
        let corner = Rect { width: area.width.saturating_sub(2), ..area };
        canvas.sides(corner, area.height - 1, &[], &[dim(&format!(" {below} more: j "))]);
    }
}

fn lines(model: &Model) -> Vec<Vec<Piece>> {
    let mode = model.base_mode();
    let (here, elsewhere): (Vec<Section>, Vec<Section>) =
        Section::ALL.into_iter().partition(|section| section.modes().contains(&mode));
    let mut lines = Vec::new();
    for section in here.into_iter().chain(elsewhere) {
        lines.push(vec![Piece::new(Role::Strong, section.title())]);
        let rows = BINDINGS.iter().filter(|binding| binding.section == section);
        lines.extend(rows.map(binding_line));
    }
    lines
}

fn binding_line(binding: &Binding) -> Vec<Piece> {
    let keys: Vec<String> = binding.keys.iter().map(|key| key.label()).collect();
    vec![
        plain("  "),
        Piece::new(Role::Accent, &keys.join(" ")).fit(KEYS_CELLS),
        plain(&format!(" {}", binding.help)),
    ]
}
