//! Moving in an opened session, opening and leaving it.

use std::collections::BTreeMap;

use crate::snapshot::MessageRow;
use crate::ui::layout;
use crate::ui::model::{Focus, Full, Model, Tab};
use crate::ui::msg::Effect;
use crate::ui::page::{self, Owner};
use crate::ui::scroll;

/// Opens a session by row id.
pub(super) fn open(model: &mut Model, row_id: i64) {
    if model.focus == Focus::List {
        model.detail.stack.clear();
    }
    model.focus = Focus::Detail;
    model.detail.stack.push(row_id);
    start(model);
}

/// Goes back one layer: to the parent, or to the list.
pub(super) fn back(model: &mut Model) {
    model.detail.stack.pop();
    if model.detail.stack.is_empty() {
        leave(model);
    }
    start(model);
}

/// Leaves the opened session for the list.
pub(super) fn leave(model: &mut Model) {
    model.focus = Focus::List;
    model.detail.stack.clear();
    model.detail.unfolded.clear();
    model.detail.full = BTreeMap::new();
}

/// Shows another tab.
pub(super) fn turn(model: &mut Model, tab: Tab) {
    model.detail.tab = tab;
    start(model);
}

/// To the beginning of what is shown now; a transcript is followed.
fn start(model: &mut Model) {
    let detail = &mut model.detail;
    (detail.at, detail.offset, detail.anchor) = (0, 0, (Owner::Nothing, 0));
    detail.follow = true;
}

/// Moves the cursor by so many lines.
pub(super) fn step(model: &mut Model, by: isize) {
    let detail = &mut model.detail;
    let last = detail.lines.len().saturating_sub(1);
    if by < 0 {
        detail.follow = false;
    }
    detail.at = detail.at.saturating_add_signed(by).min(last);
    keep_anchor(model);
}

/// The message under the cursor.
pub(super) fn message(model: &Model) -> Option<&MessageRow> {
    let Owner::Message(id) = model.detail.lines.get(model.detail.at)?.owner else { return None };
    model.shown_detail()?.messages.iter().find(|message| message.id == id)
}

/// Enter: unfolds or folds a message, or opens a sub-agent.
pub(super) fn enter(model: &mut Model, effects: &mut Vec<Effect>) {
    let owner = model.detail.lines.get(model.detail.at).map(|line| line.owner);
    match owner {
        Some(Owner::Child(row_id)) => open(model, row_id),
        Some(Owner::Message(id)) => {
            let pointer = message(model).map(|message| message.pointer.clone());
            model.detail.follow = false;
            keep_anchor(model);
            if model.detail.unfolded.remove(&id) {
                return;
            }
            model.detail.unfolded.insert(id);
            let known = matches!(model.detail.full.get(&id), Some(Full::Text(_) | Full::Asked));
            if let Some(pointer) = pointer.filter(|_| !known) {
                model.detail.full.insert(id, Full::Asked);
                effects.push(Effect::ReadMessage { id, pointer });
            }
        }
        Some(Owner::Nothing | Owner::Block(_)) | None => {}
    }
}

/// Lays the tab out anew and finds the cursor's line again.
pub(super) fn settle(model: &mut Model) {
    let Some(area) = model.areas().detail.map(layout::detail) else { return };
    let lines = match model.shown_detail() {
        Some(detail) => page::lines(model, detail, usize::from(area.page.width.saturating_sub(1))),
        None => Vec::new(),
    };
    let detail = &mut model.detail;
    let last = lines.len().saturating_sub(1);
    let (owner, part) = detail.anchor;
    detail.at = if detail.follow && detail.tab == Tab::Transcript {
        last
    } else if owner == Owner::Nothing {
        detail.at.min(last)
    } else {
        let of_owner = |line: &page::PageLine| line.owner == owner && line.part <= part;
        lines.iter().rposition(of_owner).unwrap_or(detail.at.min(last))
    };
    detail.lines = lines;
    scroll(model);
}

/// Brings the cursor's line onto the screen.
pub(super) fn scroll(model: &mut Model) {
    let Some(area) = model.areas().detail.map(layout::detail) else { return };
    let detail = &mut model.detail;
    let height = usize::from(area.page.height);
    detail.offset = scroll::follow(detail.at, detail.offset, height, detail.lines.len());
}

fn keep_anchor(model: &mut Model) {
    let detail = &mut model.detail;
    detail.anchor =
        detail.lines.get(detail.at).map_or((Owner::Nothing, 0), |line| (line.owner, line.part));
}
