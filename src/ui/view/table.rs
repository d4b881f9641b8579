//! The frame of every list: a line of column names, then rows, each exactly as wide as its area.
//!
//! A column is one row of a pane's `COLUMNS`. Columns appear from a width of the list on, so the
//! least telling ones go first; the one that fills takes what the others leave.

use ratatui::layout::Rect;

use crate::ui::layout;
use crate::ui::list::{Heading, Item, List, Row};
use crate::ui::model::{Focus, Model};
use crate::ui::piece::{Piece, dim, plain};
use crate::ui::theme::Role;
use crate::ui::view::canvas::Canvas;

/// A column of rows of type `R`.
pub(super) struct Column<R> {
    /// Its name.
    pub(super) title: &'static str,
    /// How wide.
    pub(super) cells: Cells,
    /// From which width of the list on.
    pub(super) from: u16,
    /// Its text in a row.
    pub(super) cell: fn(&Model, &R, Item) -> Piece,
}

/// How wide a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cells {
    /// So many cells, text at the left.
    Left(usize),
    /// So many cells, text at the right.
    Right(usize),
    /// What the others leave.
    Fill,
}

/// A list and how to draw it.
pub(super) struct Table<'a, R> {
    /// Its columns.
    pub(super) columns: &'a [Column<R>],
    /// Its rows and selection.
    pub(super) list: &'a List,
    /// What the rows are about.
    pub(super) rows: &'a [R],
    /// Two cells in front of a row.
    pub(super) mark: fn(&Model, &R) -> Piece,
    /// What stands across the first three columns instead of them, if anything.
    pub(super) across: fn(&Model, &R) -> Option<Piece>,
}

/// Cells of the mark in front of a row.
const MARK_CELLS: usize = 2;
/// Columns that [`Table::across`] replaces.
const ACROSS_COLUMNS: usize = 3;

impl<R> Table<'_, R> {
    /// Draws it.
    pub(super) fn draw(&self, canvas: &mut Canvas<'_>, model: &Model, area: Rect) {
        let columns = self.columns_in(area.width);
        let mut names = vec![plain("  ")];
        for (column, cells) in &columns {
            names.push(fitted(dim(column.title), column.cells, *cells));
            names.push(plain(" "));
        }
        canvas.line(area, 0, &names);
        let area = layout::rows(area);
        let first_cells = columns.first().map_or(0, |(_, cells)| *cells);
        for line in 0..area.height {
            let at = self.list.offset + usize::from(line);
            match self.list.rows.get(at) {
                Some(Row::Heading(heading)) => {
                    canvas.line(area, line, &heading_line(*heading, usize::from(area.width)));
                }
                Some(Row::Item(item)) => {
                    let Some(row) = self.rows.get(item.index) else { continue };
                    canvas.line(area, line, &self.cells(model, &columns, row, *item));
                    if at == self.list.at {
                        match model.focus {
                            Focus::List => canvas.select(area, line, MARK_CELLS + first_cells),
                            Focus::Detail => canvas.paint(area, line, Role::SelectedAway),
                        }
                    }
                }
                None => break,
            }
        }
    }

    fn columns_in(&self, width: u16) -> Vec<(&Column<R>, usize)> {
        let shown = self.columns.iter().filter(|column| column.from <= width);
        let fixed: usize = shown
            .clone()
            .map(|column| match column.cells {
                Cells::Left(cells) | Cells::Right(cells) => cells + 1,
                Cells::Fill => 1,
            })
            .sum();
        let rest = (usize::from(width) + 1).saturating_sub(MARK_CELLS + fixed);
        shown
            .map(|column| match column.cells {
                Cells::Left(cells) | Cells::Right(cells) => (column, cells),
                Cells::Fill => (column, rest),
            })
            .collect()
    }

    fn cells(
        &self,
        model: &Model,
        columns: &[(&Column<R>, usize)],
        row: &R,
        item: Item,
    ) -> Vec<Piece> {
        let mut pieces = vec![(self.mark)(model, row).fit(MARK_CELLS)];
        let mut rest = columns;
        if let Some(across) = (self.across)(model, row)
            && let Some((replaced, after)) = columns.split_at_checked(ACROSS_COLUMNS)
        {
            let cells: usize = replaced.iter().map(|(_, cells)| cells + 1).sum();
            pieces.push(across.fit(cells.saturating_sub(1)));
            pieces.push(plain(" "));
            rest = after;
        }
        for (column, cells) in rest {
            pieces.push(fitted((column.cell)(model, row, item), column.cells, *cells));
            pieces.push(plain(" "));
        }
        pieces.pop();
        pieces
    }
}

fn fitted(piece: Piece, how: Cells, cells: usize) -> Piece {
    match how {
        Cells::Left(_) | Cells::Fill => piece.fit(cells),
        Cells::Right(_) => piece.fit_right(cells),
    }
}

/// `needs you 2 ─────`; of a status that has rows further up: `running 3 · 2 above ─────`.
fn heading_line(heading: Heading, width: usize) -> Vec<Piece> {
    let role = if heading.urgent { Role::Attention } else { Role::Strong };
    let mut line = vec![Piece::new(role, &format!("{} {} ", heading.label, heading.shown))];
    if heading.above > 0 {
        line.push(dim(&format!("· {} above ", heading.above)));
    }
    if heading.unchecked > 0 {
        line.push(dim(&format!("· {} unchecked ", heading.unchecked)));
    }
    let used = crate::ui::piece::width(&line);
    line.push(dim(&"─".repeat(width.saturating_sub(used))));
    line
}
