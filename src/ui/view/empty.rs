//! What stands where a list would: why it is empty, and the next step.

use ratatui::layout::Rect;

use crate::snapshot::{Root, RootState};
use crate::ui::filter::StatusFilter;
use crate::ui::model::{Model, Pane};
use crate::ui::piece::{Piece, dim, plain, wrap};
use crate::ui::theme::Role;
use crate::ui::view::canvas::Canvas;
use crate::ui::words;

/// Draws it for the list of sessions.
pub(super) fn draw(canvas: &mut Canvas<'_>, model: &Model, area: Rect) {
    let Some(picture) = &model.picture else {
        return sentences(canvas, area, "reading the store…", &[]);
    };
    let mirror = &picture.snapshot.mirror;
    if model.sessions.total > 0 {
        let filtered = model.status_filter != StatusFilter::All;
        let what = match (model.sessions.filter.as_str(), filtered) {
            ("", _) => format!("no session {}", narrowed(model.status_filter)),
            (typed, false) => format!("nothing matches /{typed}"),
            (typed, true) => format!("nothing {} matches /{typed}", model.status_filter.word()),
        };
        let hidden = format!("{} hidden. Esc shows them all again.", count(model.sessions.total));
        return sentences(canvas, area, &what, &[hidden]);
    }
    let hidden = &picture.snapshot.hidden;
    if hidden.sessions > 0 {
        let hidden = format!(
            "{} hidden by {}; they were given when lullwatch was started.",
            count(usize::try_from(hidden.sessions).unwrap_or(usize::MAX)),
            hidden.filters
        );
        return sentences(canvas, area, "no session is left by the filters", &[hidden]);
    }
    if mirror.backlog_bytes > 0 || (!mirror.complete && mirror.files > 0) {
        let next = "The newest sessions appear first; the rest follows.".to_owned();
        return sentences(canvas, area, "reading transcripts…", &[next]);
    }
    let present = mirror.roots.iter().any(|root| root.state == RootState::Present);
    if present || mirror.roots.is_empty() {
        let next = [
            "Start claude, codex or dsh: the session appears here by itself.".to_owned(),
            "Sessions elsewhere? lullwatch --root claude=PATH".to_owned(),
        ];
        sentences(canvas, area, "no sessions yet", &next);
    } else {
        let next = [
            "Start one, and its sessions appear here by themselves.".to_owned(),
            "Its files lie elsewhere? lullwatch --root claude=PATH".to_owned(),
            "lullwatch doctor says what was looked at, and what was found.".to_owned(),
        ];
        sentences(canvas, area, "no coding agent has left anything here", &next);
    }
    let below = Rect { y: area.y.saturating_add(7), height: area.height.saturating_sub(7), ..area };
    for (row, line) in (0..below.height).zip(root_lines(model, &mirror.roots)) {
        canvas.line(below, row, &line);
    }
}

/// Draws it for another pane.
pub(super) fn draw_pane(canvas: &mut Canvas<'_>, model: &Model, area: Rect, pane: Pane) {
    let list = model.list(pane);
    if model.picture.is_none() {
        return sentences(canvas, area, "reading the store…", &[]);
    }
    if list.total > 0 {
        let what = format!("nothing matches /{}", list.filter);
        return sentences(canvas, area, &what, &["Esc shows them all again.".to_owned()]);
    }
    let (what, why) = match pane {
        Pane::Sessions => ("no sessions yet".to_owned(), ""),
        Pane::Audit => (
            "nothing to audit".to_owned(),
            "No end had to be taken back, no change was refused, nothing was migrated.",
        ),
        Pane::Ledger => (
            format!("nothing unacknowledged for {}", model.consumer_name()),
            "Ends appear here until you acknowledge them. Going idle is no end.",
        ),
        Pane::Compactions => (
            "no compaction seen".to_owned(),
            "Sessions that have compacted their context appear here, open brackets first.",
        ),
    };
    sentences(canvas, area, &what, &[why.to_owned()]);
}

/// The roots and what was found there, one below the other.
pub(super) fn root_lines(model: &Model, roots: &[Root]) -> Vec<Vec<Piece>> {
    let path = |root: &Root| plain(&words::path(&root.path, model.options.home.as_deref()));
    let cells = roots.iter().map(|root| path(root).width()).max().unwrap_or_default();
    roots
        .iter()
        .map(|root| {
            let (word, role) = match root.state {
                RootState::Present => ("there", Role::Running),
                RootState::Missing => ("not there", Role::Dim),
                RootState::Vanished => ("gone since the start", Role::Warning),
                RootState::Unreadable => ("cannot be read", Role::Error),
            };
            let agent = dim(&format!("  {:7}", root.agent));
            vec![agent, path(root).fit(cells), plain("  "), Piece::new(role, word)]
        })
        .collect()
}

fn narrowed(filter: StatusFilter) -> &'static str {
    match filter {
        StatusFilter::All => "",
        StatusFilter::NeedsYou => "needs you",
        StatusFilter::Running => "is running",
        StatusFilter::Idle => "is idle",
        StatusFilter::Completed => "is completed",
        StatusFilter::Ended => "ended otherwise",
    }
}

fn count(number: usize) -> String {
    if number == 1 { "1 session is".to_owned() } else { format!("{number} sessions are") }
}

fn sentences(canvas: &mut Canvas<'_>, area: Rect, what: &str, next: &[String]) {
    canvas.line(area, 1, &[plain("  "), Piece::new(Role::Strong, what)]);
    let room = usize::from(area.width.saturating_sub(4));
    let lines = next.iter().flat_map(|sentence| wrap(sentence, room));
    for (row, line) in (3..area.height).zip(lines) {
        canvas.line(area, row, &[plain("  "), dim(&line)]);
    }
}
