//! Compaction brackets, one row a session: open ones first.
//!
//! ```text
//!   STATE                   AGE TRIGGER PHASE      TOKENS         SESSION
//! ▲ compacting               12m auto    summarized 180k → ─       Rework the parser
//! ```

use ratatui::layout::Rect;

use crate::snapshot::CompactionRow;
use crate::ui::age;
use crate::ui::model::{Model, Pane};
use crate::ui::piece::{Piece, dim, plain};
use crate::ui::theme::Role;
use crate::ui::view::canvas::Canvas;
use crate::ui::view::empty;
use crate::ui::view::table::{Cells, Column, Table};
use crate::ui::words;

const COLUMNS: &[Column<CompactionRow>] = &[
    Column {
        title: "STATE",
        cells: Cells::Left(19),
        from: 0,
        cell: |_, row, _| words::bracket(&row.compaction, row.attention),
    },
    Column {
        title: "AGE",
        cells: Cells::Right(4),
        from: 0,
        cell: |model, row, _| dim(&age::age_or_unknown(model.since(row.since_ms))),
    },
    Column {
        title: "TRIGGER",
        cells: Cells::Left(7),
        from: 70,
        cell: |_, row, _| dim(row.compaction.trigger.unwrap_or(age::UNKNOWN)),
    },
    Column {
        title: "PHASE",
        cells: Cells::Left(10),
        from: 84,
        cell: |_, row, _| dim(row.compaction.phase.unwrap_or(age::UNKNOWN)),
    },
    Column {
        title: "TOKENS",
        cells: Cells::Left(12),
        from: 0,
        cell: |_, row, _| plain(&words::shrink(&row.compaction)),
    },
    Column {
        title: "DONE",
        cells: Cells::Right(4),
        from: 78,
        cell: |_, row, _| dim(&row.compaction.count.to_string()),
    },
    Column {
        title: "SESSION",
        cells: Cells::Fill,
        from: 0,
        cell: |_, row, _| match &row.title {
            Some(title) => plain(title),
            None => dim(&row.session),
        },
    },
];

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, model: &Model, area: Rect) {
    let Some(picture) = model.picture.as_ref().filter(|_| !model.compactions.rows.is_empty())
    else {
        return empty::draw_pane(canvas, model, area, Pane::Compactions);
    };
    let table = Table {
        columns: COLUMNS,
        list: &model.compactions,
        rows: &picture.compactions,
        mark: |_, row| {
            if row.attention { Piece::new(Role::Attention, "▲ ") } else { plain("  ") }
        },
        across: |_, _| None,
    };
    table.draw(canvas, model, area);
}
