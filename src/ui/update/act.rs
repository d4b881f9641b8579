//! What each action does. One arm for each row of the key table.

use crate::snapshot::Session;
use crate::text;
use crate::ui::keymap::{Action, Mode};
use crate::ui::layout;
use crate::ui::model::{Focus, Full, Model, Overlay, Pane, Tab};
use crate::ui::msg::{Effect, Switch};
use crate::ui::resume;
use crate::ui::rows;
use crate::ui::sort::{Direction, SortKey};
use crate::ui::update::{detail, edit, notice};

/// What is put on a clipboard at most, characters: terminals refuse more.
const COPY_CHARS_MAX: usize = 20_000;

/// Does it.
pub(super) fn act(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    match action {
        Action::Quit | Action::QuitNow => effects.push(Effect::Quit),
        Action::Suspend => effects.push(Effect::Suspend),
        Action::Redraw => effects.push(Effect::Redraw),
        Action::Rescan => {
            effects.push(Effect::Rescan);
            notice(model, "looking at every file");
        }
        Action::Mouse => {
            model.mouse = model.mouse.other();
            effects.push(Effect::Mouse(model.mouse));
            let state = if model.mouse == Switch::On { "on" } else { "off" };
            notice(model, &format!("mouse {state}"));
        }
        Action::Help => model.overlay = Some(Overlay::Help(0)),
        Action::Warnings => model.overlay = Some(Overlay::Warnings(0)),
        Action::Sort => {
            let at = SortKey::ALL.iter().position(|key| *key == model.sort).unwrap_or_default();
            model.overlay = Some(Overlay::Sort(at));
        }
        Action::Filter => model.overlay = Some(Overlay::Filter),
        Action::Consumer => model.overlay = Some(Overlay::Consumer(String::new())),
        Action::Close | Action::No => close(model),
        Action::Accept => accept(model),
        Action::Yes => yes(model, effects),
        Action::Erase => edit(model, |field| {
            field.pop();
        }),
        Action::EraseAll => edit(model, String::clear),
        Action::Down => step(model, 1),
        Action::Up => step(model, -1),
        Action::PageDown => step(model, page_rows(model)),
        Action::PageUp => step(model, -page_rows(model)),
        Action::First => step(model, -isize::MAX),
        Action::Last => last(model),
        Action::Open => open(model, effects),
        Action::NextPane => turn_to(model, model.pane.next()),
        Action::PreviousPane => turn_to(model, model.pane.previous()),
        Action::PaneSessions => turn_to(model, Pane::Sessions),
        Action::PaneAudit => turn_to(model, Pane::Audit),
        Action::PaneLedger => turn_to(model, Pane::Ledger),
        Action::PaneCompactions => turn_to(model, Pane::Compactions),
        Action::StatusFilter => {
            model.status_filter = model.status_filter.next();
            rows::rebuild_pane(model, Pane::Sessions);
        }
        Action::Unfold => {
            model.unfolded.extend(model.sessions.selected().map(|item| item.id));
            rows::rebuild_pane(model, Pane::Sessions);
        }
        Action::Fold => fold(model),
        Action::Tree => {
            model.tree = !model.tree;
            model.unfolded.clear();
            rows::rebuild_pane(model, Pane::Sessions);
        }
        Action::Follow => follow(model),
        Action::Freeze => freeze(model),
        Action::Copy => copy(model, effects),
        Action::Resume => show_resume(model),
        Action::Acknowledge => ask_to_acknowledge(model),
        Action::Mark => mark(model),
        Action::MarkAll => mark_all(model),
        Action::NextTab => detail::turn(model, model.detail.tab.next()),
        Action::PreviousTab => detail::turn(model, model.detail.tab.previous()),
    }
}

/// Moves in whatever has the keyboard.
pub(super) fn step(model: &mut Model, by: isize) {
    match &mut model.overlay {
        // The view knows how long the page is and shows its end for anything beyond it.
        Some(Overlay::Help(line) | Overlay::Warnings(line)) => {
            *line = line.saturating_add_signed(by).min(PAGE_LINES_MAX);
        }
        Some(Overlay::Sort(at)) => {
            *at = at.saturating_add_signed(by).min(SortKey::ALL.len() - 1);
        }
        Some(Overlay::Filter) | None => match model.focus {
            Focus::Detail => detail::step(model, by),
            Focus::List => model.list_mut(model.pane).step(by),
        },
        Some(Overlay::Resume(_) | Overlay::Acknowledge(_) | Overlay::Consumer(_)) => {}
    }
}

/// Lines of the longest page, generously.
const PAGE_LINES_MAX: usize = 500;

fn page_rows(model: &Model) -> isize {
    let areas = model.areas();
    let rows = match (model.focus, areas.list, areas.detail) {
        (Focus::Detail, _, Some(area)) => layout::detail(area).page.height,
        (Focus::Detail, _, None) | (Focus::List, None, _) => 1,
        (Focus::List, Some(area), _) => layout::rows(area).height,
    };
    // One row stays in sight, so that nobody loses the place.
    isize::try_from(rows.saturating_sub(1).max(1)).unwrap_or(1)
}

fn last(model: &mut Model) {
    step(model, isize::MAX);
    if model.overlay.is_none() && model.focus == Focus::Detail {
        model.detail.follow = true;
    }
}

fn turn_to(model: &mut Model, pane: Pane) {
    model.pane = pane;
    detail::leave(model);
}

fn close(model: &mut Model) {
    let pane = model.pane;
    match model.overlay.take() {
        Some(Overlay::Filter) => clear_filter(model, pane),
        Some(
            Overlay::Help(_)
            | Overlay::Warnings(_)
            | Overlay::Sort(_)
            | Overlay::Resume(_)
            | Overlay::Acknowledge(_)
            | Overlay::Consumer(_),
        ) => {}
        None => match model.focus {
            Focus::Detail => detail::back(model),
            Focus::List => clear_filter(model, pane),
        },
    }
}

fn clear_filter(model: &mut Model, pane: Pane) {
    model.list_mut(pane).filter.clear();
    if pane == Pane::Sessions {
        model.status_filter = crate::ui::filter::StatusFilter::All;
    }
    rows::rebuild_pane(model, pane);
}

fn accept(model: &mut Model) {
    match model.overlay.take() {
        Some(Overlay::Sort(at)) => {
            let key = SortKey::ALL.get(at).copied().unwrap_or_default();
            model.direction = match model.direction {
                Direction::Forward if key == model.sort && key != SortKey::Status => {
                    Direction::Backward
                }
                Direction::Forward | Direction::Backward => Direction::Forward,
            };
            model.sort = key;
            rows::rebuild_pane(model, Pane::Sessions);
        }
        Some(Overlay::Consumer(name)) => {
            let name = text::line_up_to(&name, 64);
            if !name.is_empty() {
                notice(model, &format!("ledger of {name}"));
                model.consumer = Some(name);
                model.marked.clear();
            }
        }
        Some(
            Overlay::Filter
            | Overlay::Help(_)
            | Overlay::Warnings(_)
            | Overlay::Resume(_)
            | Overlay::Acknowledge(_),
        )
        | None => {}
    }
}

fn open(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.focus == Focus::Detail {
        detail::enter(model, effects);
    } else if let Some(row_id) = selected_session(model).map(|session| session.row_id) {
        detail::open(model, row_id);
    } else if model.list(model.pane).selected().is_some() {
        notice(model, "its session is not listed here");
    }
}

/// The session that the selection is about, in any pane.
fn selected_session(model: &Model) -> Option<&Session> {
    let picture = model.picture.as_ref()?;
    let item = model.list(model.pane).selected()?;
    let sessions = &picture.snapshot.sessions;
    let by_id = |id: &str| sessions.iter().find(|session| session.id == id);
    match model.pane {
        Pane::Sessions => sessions.get(item.index),
        Pane::Audit => by_id(&picture.audit.get(item.index)?.entity),
        Pane::Ledger => by_id(&picture.ledger.get(item.index)?.entity),
        Pane::Compactions => {
            let row = picture.compactions.get(item.index)?;
            sessions.iter().find(|session| session.row_id == row.row_id)
        }
    }
}

fn fold(model: &mut Model) {
    if let Some(item) = model.sessions.selected() {
        model.unfolded.remove(&item.id);
        rows::rebuild_pane(model, Pane::Sessions);
    }
}

fn follow(model: &mut Model) {
    if model.focus == Focus::Detail && model.detail.tab == Tab::Transcript {
        model.detail.follow = !model.detail.follow;
        return;
    }
    if model.focus == Focus::List {
        open(model, &mut Vec::new());
    }
    detail::turn(model, Tab::Transcript);
}

fn freeze(model: &mut Model) {
    model.paused = !model.paused;
    if let Some(newest) = model.behind.take() {
        super::show(model, newest);
    }
}

fn copy(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(raw) = what_to_copy(model) else {
        notice(model, "nothing to copy here");
        return;
    };
    let clean: String = text::block(&raw).chars().take(COPY_CHARS_MAX).collect();
    notice(model, &format!("copied {}", text::line_up_to(&clean, 50)));
    effects.push(Effect::Copy(clean));
}

fn what_to_copy(model: &Model) -> Option<String> {
    match model.mode() {
        Mode::Page => {
            let Some(Overlay::Resume(row_id)) = &model.overlay else { return None };
            Some(resume::resume(model.session(*row_id)?)?.command)
        }
        Mode::Detail => {
            if let Some(message) = detail::message(model) {
                return Some(match model.detail.full.get(&message.id) {
                    Some(Full::Text(full)) => full.clone(),
                    Some(Full::Asked | Full::Missing(_)) | None => message.text.clone(),
                });
            }
            let line = model.detail.lines.get(model.detail.at)?;
            let text: String = line.pieces.iter().map(crate::ui::piece::Piece::text).collect();
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        }
        Mode::Sessions | Mode::Audit | Mode::Ledger | Mode::Compactions => entity(model),
        Mode::Typing | Mode::Menu | Mode::Question => None,
    }
}

/// The id of what is selected.
fn entity(model: &Model) -> Option<String> {
    let picture = model.picture.as_ref()?;
    let index = model.list(model.pane).selected()?.index;
    match model.pane {
        Pane::Sessions => picture.snapshot.sessions.get(index).map(|row| row.id.clone()),
        Pane::Audit => picture.audit.get(index).map(|row| row.entity.clone()),
        Pane::Ledger => picture.ledger.get(index).map(|row| row.entity.clone()),
        Pane::Compactions => picture.compactions.get(index).map(|row| row.session.clone()),
    }
}

fn show_resume(model: &mut Model) {
    let session = match model.focus {
        Focus::Detail => model.shown_session(),
        Focus::List => selected_session(model),
    };
    match session.map(|session| session.row_id) {
        Some(row_id) => model.overlay = Some(Overlay::Resume(row_id)),
        None => notice(model, "no session here to resume"),
    }
}

fn ask_to_acknowledge(model: &mut Model) {
    let ids: Vec<i64> = if model.marked.is_empty() {
        model.ledger.selected().map(|item| item.id).into_iter().collect()
    } else {
        model.marked.iter().copied().collect()
    };
    if ids.is_empty() {
        notice(model, "nothing to acknowledge");
    } else {
        model.overlay = Some(Overlay::Acknowledge(ids));
    }
}

fn yes(model: &mut Model, effects: &mut Vec<Effect>) {
    if let Some(Overlay::Acknowledge(ids)) = model.overlay.take() {
        model.acknowledging.extend(ids.iter().copied());
        model.marked.clear();
        effects.push(Effect::Acknowledge { ids, consumer: model.consumer_name().to_owned() });
    }
}

fn mark(model: &mut Model) {
    if let Some(item) = model.ledger.selected() {
        if !model.marked.remove(&item.id) {
            model.marked.insert(item.id);
        }
        model.ledger.step(1);
    }
}

fn mark_all(model: &mut Model) {
    let listed: Vec<i64> = model.ledger.items().map(|item| item.id).collect();
    if listed.iter().all(|id| model.marked.contains(id)) {
        model.marked.clear();
    } else {
        model.marked.extend(listed);
    }
}
