//! Audit events: every status that was taken back, refused or migrated, newest first.
//!
//! ```text
//!    AGO EVENT      CHANGE                 GAP SESSION                  WHO
//!     3m override   completed → running   1d   Deploy the notes         claude-mirror-…
//! ```

use ratatui::layout::Rect;

use crate::snapshot::AuditRow;
use crate::snapshot::age as exact;
use crate::ui::age;
use crate::ui::model::{Model, Pane};
use crate::ui::piece::{Piece, dim, plain};
use crate::ui::theme::Role;
use crate::ui::view::canvas::Canvas;
use crate::ui::view::empty;
use crate::ui::view::table::{Cells, Column, Table};

const COLUMNS: &[Column<AuditRow>] = &[
    Column {
        title: "AGO",
        cells: Cells::Right(4),
        from: 0,
        cell: |model, row, _| dim(&age::age_or_unknown(model.since(Some(row.at_ms)))),
    },
    Column { title: "EVENT", cells: Cells::Left(14), from: 0, cell: |_, row, _| event(row) },
    Column {
        title: "CHANGE",
        cells: Cells::Left(20),
        from: 0,
        cell: |_, row, _| plain(&format!("{} → {}", row.from.as_deref().unwrap_or("none"), row.to)),
    },
    Column {
        title: "GAP",
        cells: Cells::Right(7),
        from: 90,
        cell: |_, row, _| dim(&row.gap_ms.map_or_else(|| age::UNKNOWN.to_owned(), exact::span)),
    },
    Column { title: "SESSION", cells: Cells::Fill, from: 0, cell: |_, row, _| name(row) },
    Column {
        title: "TIMES",
        cells: Cells::Right(5),
        from: 84,
        cell: |_, row, _| {
            plain(&if row.repeats > 1 { format!("×{}", row.repeats) } else { String::new() })
        },
    },
    Column {
        title: "WHO",
        cells: Cells::Left(18),
        from: 78,
        cell: |_, row, _| dim(row.actor.strip_suffix("-mirror-reconcile").unwrap_or(&row.actor)),
    },
];

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, model: &Model, area: Rect) {
    let Some(picture) = model.picture.as_ref().filter(|_| !model.audit.rows.is_empty()) else {
        return empty::draw_pane(canvas, model, area, Pane::Audit);
    };
    let table = Table {
        columns: COLUMNS,
        list: &model.audit,
        rows: &picture.audit,
        mark: |_, row| match row.after.as_deref() {
            Some("silence") => Piece::new(Role::Attention, "▲ "),
            _ => plain("  "),
        },
        across: |_, _| None,
    };
    table.draw(canvas, model, area);
}

/// What happened, and after what kind of end.
pub(super) fn event(row: &AuditRow) -> Piece {
    match (row.action.as_str(), row.after.as_deref()) {
        ("status_transition_override", Some("silence")) => {
            Piece::new(Role::Attention, "after silence")
        }
        ("status_transition_override", Some("exit")) => plain("after exit"),
        ("status_transition_override", _) => plain("override"),
        ("status_transition_rejected", _) => Piece::new(Role::Error, "rejected"),
        ("status_migrated", _) => dim("migrated"),
        (other, _) => plain(other),
    }
}

fn name(row: &AuditRow) -> Piece {
    match &row.title {
        Some(title) => plain(title),
        None => dim(&row.entity),
    }
}
