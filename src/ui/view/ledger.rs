//! The ledger: ends that a consumer has not acknowledged, oldest first.
//!
//! ```text
//!    AGO STATUS      BASIS    SESSION                     REASON           NOTE
//!     3m ✓ completed inferred Deploy the notes            …completed.silence
//! x   1h ✗ failed    observed nightly run                 run.failed.…     superseded
//! ```

use ratatui::layout::Rect;

use crate::snapshot::LedgerRow;
use crate::ui::age;
use crate::ui::list::Item;
use crate::ui::model::{Model, Pane};
use crate::ui::page;
use crate::ui::piece::{Piece, dim, plain};
use crate::ui::theme::Role;
use crate::ui::view::canvas::Canvas;
use crate::ui::view::empty;
use crate::ui::view::table::{Cells, Column, Table};

const COLUMNS: &[Column<LedgerRow>] = &[
    Column {
        title: "AGO",
        cells: Cells::Right(4),
        from: 0,
        cell: |model, row, _| dim(&age::age_or_unknown(model.since(Some(row.at_ms)))),
    },
    Column {
        title: "STATUS",
        cells: Cells::Left(11),
        from: 0,
        cell: |_, row, _| {
            let status = page::words_of(&row.to);
            if row.superseded { dim(status.text()) } else { status }
        },
    },
    Column { title: "BASIS", cells: Cells::Left(8), from: 70, cell: |_, row, _| dim(&row.basis) },
    Column { title: "SESSION", cells: Cells::Fill, from: 0, cell: name },
    Column {
        title: "REASON",
        cells: Cells::Left(25),
        from: 96,
        cell: |_, row, _| dim(row.reason.strip_prefix("session.").unwrap_or(&row.reason)),
    },
    Column { title: "NOTE", cells: Cells::Left(15), from: 0, cell: note },
];

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, model: &Model, area: Rect) {
    let Some(picture) = model.picture.as_ref().filter(|_| !model.ledger.rows.is_empty()) else {
        return empty::draw_pane(canvas, model, area, Pane::Ledger);
    };
    let table = Table {
        columns: COLUMNS,
        list: &model.ledger,
        rows: &picture.ledger,
        mark: |model, row| {
            if model.marked.contains(&row.id) {
                Piece::new(Role::Accent, "x ")
            } else {
                plain("  ")
            }
        },
        across: |_, _| None,
    };
    table.draw(canvas, model, area);
}

fn name(_: &Model, row: &LedgerRow, _: Item) -> Piece {
    match &row.title {
        Some(title) if row.superseded => dim(title),
        Some(title) => plain(title),
        None => dim(&row.entity),
    }
}

fn note(model: &Model, row: &LedgerRow, _: Item) -> Piece {
    if model.acknowledging.contains(&row.id) {
        Piece::new(Role::Accent, "acknowledging…")
    } else if row.superseded {
        dim("superseded")
    } else if row.last_error.is_some() {
        Piece::new(Role::Warning, &format!("not told, {}×", row.attempts))
    } else {
        plain("")
    }
}
