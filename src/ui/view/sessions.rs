//! The list of sessions: who needs me, what is it doing, since when is it quiet.
//!
//! ```text
//!   STATUS      PHASE          QUIET TITLE                     AGENT  PROJECT
//! needs you 1 ─────────────────────────────────────────────────────────────────
//! ▲ ● running   needs approval   12s Deploy the notes          claude demo
//! running 1 ───────────────────────────────────────────────────────────────────
//!   ● running   tool Bash         4m Rework the parser         codex  parser
//!   ● running   working         <10s └ look at the tests       codex  parser
//! ```

use ratatui::layout::Rect;

use crate::snapshot::Session;
use crate::ui::age;
use crate::ui::list::Item;
use crate::ui::model::Model;
use crate::ui::piece::{Piece, dim, plain};
use crate::ui::theme::Role;
use crate::ui::view::canvas::Canvas;
use crate::ui::view::empty;
use crate::ui::view::table::{Cells, Column, Table};
use crate::ui::words;

const COLUMNS: &[Column<Session>] = &[
    Column {
        title: "STATUS",
        cells: Cells::Left(11),
        from: 0,
        cell: |_, session, _| words::status(session),
    },
    Column {
        title: "PHASE",
        cells: Cells::Left(14),
        from: 0,
        cell: |_, session, _| words::phase(session),
    },
    Column { title: "QUIET", cells: Cells::Right(5), from: 0, cell: quiet },
    Column { title: "TITLE", cells: Cells::Fill, from: 0, cell: title },
    Column { title: "SUB", cells: Cells::Right(4), from: 90, cell: children },
    Column {
        title: "AGENT",
        cells: Cells::Left(6),
        from: 66,
        cell: |_, session, _| dim(session.agent),
    },
    Column {
        title: "PROJECT",
        cells: Cells::Left(12),
        from: 76,
        cell: |_, session, _| dim(&words::project(session.cwd.as_deref())),
    },
    Column {
        title: "BRANCH",
        cells: Cells::Left(14),
        from: 124,
        cell: |_, session, _| dim(session.branch.as_deref().unwrap_or(age::UNKNOWN)),
    },
    Column { title: "TOKENS", cells: Cells::Right(6), from: 112, cell: tokens },
    Column { title: "CTX", cells: Cells::Right(4), from: 100, cell: context },
    Column {
        title: "MODEL",
        cells: Cells::Left(18),
        from: 140,
        cell: |_, session, _| dim(session.model.as_deref().unwrap_or(age::UNKNOWN)),
    },
    Column {
        title: "ID",
        cells: Cells::Left(13),
        from: 164,
        cell: |_, session, _| dim(&words::short_id(&session.native_id)),
    },
];

/// Draws it.
pub(super) fn draw(canvas: &mut Canvas<'_>, model: &Model, area: Rect) {
    let Some(picture) = &model.picture else { return empty::draw(canvas, model, area) };
    if model.sessions.rows.is_empty() {
        return empty::draw(canvas, model, area);
    }
    let rows = &picture.snapshot.sessions;
    let table = Table { columns: COLUMNS, list: &model.sessions, rows, mark, across };
    table.draw(canvas, model, area);
}

fn mark(_: &Model, session: &Session) -> Piece {
    if session.attention { Piece::new(Role::Attention, "▲ ") } else { plain("  ") }
}

/// Stale truth is never shown as truth.
fn across(model: &Model, session: &Session) -> Option<Piece> {
    session.unchecked.then(|| {
        let quiet = age::age_or_unknown(model.quiet_ms(session));
        let unseen = session.notices.iter().any(|notice| notice.code == "unobserved");
        let why = if unseen { " · cannot be read" } else { "" };
        dim(&format!("? was {} · {quiet} ago{why}", session.status.word()))
    })
}

fn quiet(model: &Model, session: &Session, _: Item) -> Piece {
    let text = age::age_or_unknown(model.quiet_ms(session));
    if session.attention { plain(&text) } else { dim(&text) }
}

fn title(model: &Model, session: &Session, item: Item) -> Piece {
    let title = words::title(session);
    let role = if session.attention { Role::Strong } else { title.role };
    if item.depth > 0 {
        let indent = "  ".repeat(item.depth - 1);
        return Piece::new(role, &format!("{indent}└ {}", title.text()));
    }
    if session.children > 0 && (model.tree || model.unfolded.contains(&session.row_id)) {
        return Piece::new(role, &format!("▾ {}", title.text()));
    }
    Piece::new(role, title.text())
}

/// Active sub-agents of all.
fn children(_: &Model, session: &Session, _: Item) -> Piece {
    match (session.active_children, session.children) {
        (_, 0) => plain(""),
        (0, all) => dim(&all.to_string()),
        (active, all) => plain(&format!("{active}/{all}")),
    }
}

fn tokens(_: &Model, session: &Session, _: Item) -> Piece {
    let total = u64::try_from(session.tokens.total).unwrap_or_default();
    dim(&if total == 0 { age::UNKNOWN.to_owned() } else { age::count(total) })
}

fn context(_: &Model, session: &Session, _: Item) -> Piece {
    match words::context_percent(session) {
        Some(percent) if percent >= 90 => Piece::new(Role::Warning, &format!("{percent}%")),
        Some(percent) => dim(&format!("{percent}%")),
        None => dim(age::UNKNOWN),
    }
}
