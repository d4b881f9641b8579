//! Lines of pieces onto a buffer, cut at the edges of their area. Nothing else writes to a frame.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::text;
use crate::ui::piece::{self, Piece, dim};
use crate::ui::theme::{Role, Theme};

/// A buffer to draw on, with the colours to draw in.
#[derive(Debug)]
pub(super) struct Canvas<'a> {
    frame: &'a mut Buffer,
    theme: Theme,
}

impl<'a> Canvas<'a> {
    pub(super) fn new(frame: &'a mut Buffer, theme: Theme) -> Self {
        Self { frame, theme }
    }

    /// A line at a row of an area; what does not fit is cut with an ellipsis.
    pub(super) fn line(&mut self, area: Rect, row: u16, pieces: &[Piece]) {
        let Some(area) = row_of(area, row) else { return };
        let mut room = usize::from(area.width);
        let mut x = area.x;
        // The last piece that fits at all bears the ellipsis.
        let too_long = piece::width(pieces) > room;
        for (number, piece) in pieces.iter().enumerate() {
            let rest = piece::width(pieces.get(number + 1..).unwrap_or_default());
            let cut = if too_long && piece.width() + rest.min(1) > room {
                text::cut(piece.text(), room)
            } else {
                piece.text().into()
            };
            let style = self.theme.style(piece.role);
            (x, _) = self.frame.set_stringn(x, area.y, &cut, room, style);
            room = usize::from(area.right().saturating_sub(x));
            if room == 0 {
                break;
            }
        }
    }

    /// Two lines in one row, the second at the right edge; the first gives way.
    pub(super) fn sides(&mut self, area: Rect, row: u16, left: &[Piece], right: &[Piece]) {
        let wanted = u16::try_from(piece::width(right)).unwrap_or(u16::MAX);
        let taken = wanted.min(area.width);
        let rest = area.width - taken;
        let gap = u16::from(taken > 0);
        self.line(Rect { width: rest.saturating_sub(gap), ..area }, row, left);
        self.line(Rect { x: area.x + rest, width: taken, ..area }, row, right);
    }

    /// Draws a whole row of an area in a role, over what stands there.
    pub(super) fn paint(&mut self, area: Rect, row: u16, role: Role) {
        if let Some(area) = row_of(area, row) {
            self.frame.set_style(area, self.theme.style(role));
        }
    }

    /// Draws a row as the selected one: reversed, secondary colours gone, so that it reads well in
    /// every palette; the status keeps its colour.
    pub(super) fn select(&mut self, area: Rect, row: u16, status: usize) {
        let Some(area) = row_of(area, row) else { return };
        let keep = u16::try_from(status).unwrap_or(u16::MAX).min(area.width);
        let rest = Rect { x: area.x + keep, width: area.width - keep, ..area };
        self.frame.set_style(rest, Style::reset());
        self.frame.set_style(area, self.theme.style(Role::Selected));
    }

    /// A vertical line down an area.
    pub(super) fn bar(&mut self, area: Rect) {
        for row in 0..area.height {
            self.line(area, row, &[dim("│")]);
        }
    }

    /// An empty box with a frame and a title; the area inside.
    pub(super) fn boxed(&mut self, area: Rect, title: &str) -> Rect {
        let area = area.intersection(self.frame.area);
        for row in 0..area.height {
            let blank = Piece::new(Role::Text, &" ".repeat(usize::from(area.width)));
            if let Some(line) = row_of(area, row) {
                self.frame.set_style(line, Style::reset());
                self.line(line, 0, &[blank]);
            }
        }
        let wide = usize::from(area.width.saturating_sub(2));
        let title = text::cut(title, wide.saturating_sub(4)).into_owned();
        let after = wide.saturating_sub(text::width(&title) + 3);
        let top = [
            dim("┌─ "),
            Piece::new(Role::Strong, &title),
            dim(&format!(" {}┐", "─".repeat(after))),
        ];
        self.line(area, 0, &top);
        for row in 1..area.height.saturating_sub(1) {
            self.sides(area, row, &[dim("│")], &[dim("│")]);
        }
        let bottom = dim(&format!("└{}┘", "─".repeat(wide)));
        self.line(area, area.height.saturating_sub(1), &[bottom]);
        Rect {
            x: area.x + 2.min(area.width),
            y: area.y + 1.min(area.height),
            width: area.width.saturating_sub(4),
            height: area.height.saturating_sub(2),
        }
    }
}

/// One row of an area, if it has that row and any width.
fn row_of(area: Rect, row: u16) -> Option<Rect> {
    (row < area.height && area.width > 0).then(|| Rect { y: area.y + row, height: 1, ..area })
}
