//! How what happens changes the model: the only function that does.
//!
//! Every message ends in `settle`, which brings what follows from the rest up to date: the query,
//! where lists are scrolled to, the lines of the opened session. So no action has to remember it.

use std::sync::Arc;

use crate::snapshot::{Picture, Query};
use crate::text;
use crate::ui::attention;
use crate::ui::key::{Code, Held, Key, Mouse, MouseKind};
use crate::ui::keymap::{self, Action, Mode};
use crate::ui::layout;
use crate::ui::model::{Full, Model, Notice, Overlay, Pane, Rate, Stays};
use crate::ui::msg::{Effect, Msg, Reply, Switch};
use crate::ui::rows;

mod act;
mod detail;

/// How long a notice stays, ms.
const NOTICE_MS: i64 = 4_000;
/// Full texts kept at a time.
const FULL_TEXTS_MAX: usize = 64;
/// Characters of one of them: it is laid out anew whenever something changes.
const FULL_TEXT_CHARS_MAX: usize = 100_000;
/// Letters of a filter or a name.
const TYPED_CHARS_MAX: usize = 100;
/// Below this a measured rate says nothing yet, ms.
const RATE_AFTER_MS: i64 = 500;

/// Takes one message in; what has to be done outside comes out.
pub fn update(model: &mut Model, msg: Msg) -> Vec<Effect> {
    let mut effects = Vec::new();
    match msg {
        Msg::Key(key) => match pressed(model, key, &mut effects) {
            Follows::Nothing => return effects,
            Follows::Scrolling => {
                detail::scroll(model);
                return effects;
            }
            Follows::Everything => {}
        },
        Msg::Paste(text) => pasted(model, &text),
        Msg::Mouse(mouse) => pointed(model, mouse),
        Msg::Resize { width, height } => {
            (model.width, model.height) = layout::known_size(width, height);
        }
        Msg::Picture(picture) => arrived(model, picture, &mut effects),
        Msg::Now(now_ms) => clock(model, now_ms),
        Msg::Reply(reply) => replied(model, reply),
        Msg::Resumed => {}
    }
    settle(model, &mut effects);
    effects
}

/// What has to be brought up to date after a key. A key that is held down, or ten thousand that mean
/// nothing, must not each lay out an opened session anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    Nothing,
    /// Where the opened session is scrolled to.
    Scrolling,
    Everything,
}

fn pressed(model: &mut Model, key: Key, effects: &mut Vec<Effect>) -> Follows {
    model.notice = None;
    let mode = model.mode();
    if let Some(action) = keymap::action(mode, key) {
        act::act(model, action, effects);
        let moves = matches!(action, Action::Down | Action::Up | Action::PageDown | Action::PageUp);
        let scrolls = moves && mode == Mode::Detail;
        return if scrolls { Follows::Scrolling } else { Follows::Everything };
    }
    let is_text = mode == Mode::Typing && key.held == Held::Nothing;
    if let (true, Code::Char(letter)) = (is_text, key.code)
        && typed(model, letter.encode_utf8(&mut [0; 4])) == Follows::Everything
    {
        return Follows::Everything;
    }
    Follows::Nothing
}

/// Pasted text is text: it never works as keys.
fn pasted(model: &mut Model, pasted: &str) {
    if model.mode() == Mode::Typing {
        typed(model, &text::line_up_to(pasted, TYPED_CHARS_MAX));
    }
}

fn typed(model: &mut Model, text: &str) -> Follows {
    let room = TYPED_CHARS_MAX.saturating_sub(field(model).chars().count());
    if room == 0 {
        return Follows::Nothing;
    }
    edit(model, |field| field.extend(text.chars().take(room)));
    Follows::Everything
}

/// The text that is being typed.
fn field(model: &Model) -> &str {
    match &model.overlay {
        Some(Overlay::Consumer(name)) => name,
        Some(Overlay::Filter) => &model.list(model.pane).filter,
        Some(
            Overlay::Help(_)
            | Overlay::Warnings(_)
            | Overlay::Sort(_)
            | Overlay::Resume(_)
            | Overlay::Acknowledge(_),
        )
        | None => "",
    }
}

/// Changes the text that is being typed.
fn edit(model: &mut Model, change: impl FnOnce(&mut String)) {
    let pane = model.pane;
    match &mut model.overlay {
        Some(Overlay::Consumer(name)) => change(name),
        Some(Overlay::Filter) => {
            change(&mut model.list_mut(pane).filter);
            rows::rebuild_pane(model, pane);
        }
        Some(
            Overlay::Help(_)
            | Overlay::Warnings(_)
            | Overlay::Sort(_)
            | Overlay::Resume(_)
            | Overlay::Acknowledge(_),
        )
        | None => {}
    }
}

/// A press selects; it never opens anything.
fn pointed(model: &mut Model, mouse: Mouse) {
    let by = match mouse.kind {
        MouseKind::WheelUp => -3,
        MouseKind::WheelDown => 3,
        MouseKind::Press => 0,
    };
    if by != 0 {
        act::step(model, by);
        return;
    }
    let Some(area) = model.areas().list.map(layout::rows) else { return };
    let inside = (area.left()..area.right()).contains(&mouse.column)
        && (area.top()..area.bottom()).contains(&mouse.row);
    if inside && model.overlay.is_none() {
        let line = usize::from(mouse.row - area.y);
        let list = model.list_mut(model.pane);
        list.click(list.offset + line);
    }
}

fn clock(model: &mut Model, now_ms: i64) {
    // A picture that stands still keeps its ages: they would claim a silence nobody has checked.
    if !model.paused {
        model.now_ms = now_ms;
    }
    let over = |notice: &Notice| matches!(notice.stays, Stays::Until(at_ms) if at_ms <= now_ms);
    if model.notice.as_ref().is_some_and(over) {
        model.notice = None;
    }
}

fn arrived(model: &mut Model, picture: Arc<Picture>, effects: &mut Vec<Effect>) {
    let newest = model.behind.as_ref().or(model.picture.as_ref());
    if let (Switch::On, Some(before)) = (model.options.notify, newest) {
        effects.extend(attention::news(before, &picture).map(Effect::Notify));
    }
    measure(model, &picture);
    if model.paused {
        keep_aside(model, picture);
    } else {
        show(model, picture);
    }
}

/// While frozen, only the details that were asked for are let through.
fn keep_aside(model: &mut Model, picture: Arc<Picture>) {
    let wanted = model.wanted();
    let brings = |picture: &Picture| {
        wanted.is_some() && picture.detail.as_ref().map(|now| now.session.row_id) == wanted
    };
    if let Some(shown) = &mut model.picture
        && brings(&picture)
        && !brings(shown)
    {
        Arc::make_mut(shown).detail.clone_from(&picture.detail);
    }
    model.behind = Some(picture);
}

/// Shows a picture from now on.
fn show(model: &mut Model, picture: Arc<Picture>) {
    model.now_ms = model.now_ms.max(picture.snapshot.at_ms);
    let pending = |id: &i64| picture.ledger.iter().any(|row| row.id == *id);
    model.marked.retain(pending);
    model.acknowledging.retain(pending);
    model.picture = Some(picture);
    rows::rebuild(model);
}

fn measure(model: &mut Model, picture: &Picture) {
    let (now_ms, backlog) = (picture.snapshot.at_ms, picture.snapshot.mirror.backlog_bytes);
    if backlog == 0 {
        model.rate = None;
        return;
    }
    let start = Rate { since_ms: now_ms, backlog_then: backlog, bytes_per_s: 0 };
    let rate = model.rate.get_or_insert(start);
    if backlog > rate.backlog_then {
        *rate = start;
    }
    let passed_ms = now_ms - rate.since_ms;
    if passed_ms >= RATE_AFTER_MS {
        let done = rate.backlog_then - backlog;
        let passed_ms = u64::try_from(passed_ms).unwrap_or(1);
        rate.bytes_per_s = done.saturating_mul(1_000) / passed_ms;
    }
}

fn replied(model: &mut Model, reply: Reply) {
    match reply {
        Reply::Acknowledged { ids, consumer } => {
            let entries = if ids.len() == 1 { "entry" } else { "entries" };
            notice(model, &format!("{} {entries} acknowledged for {consumer}", ids.len()));
        }
        Reply::NotAcknowledged { ids, why } => {
            model.acknowledging.retain(|id| !ids.contains(id));
            failed(model, why);
        }
        Reply::Message { id, text } => {
            let full = match text {
                Ok(mut text) => {
                    if let Some((end, _)) = text.char_indices().nth(FULL_TEXT_CHARS_MAX) {
                        text.truncate(end);
                        text.push_str("\n[only the beginning is shown here]");
                    }
                    Full::Text(text)
                }
                Err(why) => Full::Missing(why),
            };
            if model.detail.full.len() >= FULL_TEXTS_MAX {
                model.detail.full.clear();
            }
            model.detail.full.insert(id, full);
        }
        Reply::Notice(text) => notice(model, &text),
        Reply::Failed(text) => failed(model, text),
        Reply::Trouble(trouble) => model.trouble = trouble,
    }
}

/// A line that goes by itself.
fn notice(model: &mut Model, text: &str) {
    let stays = Stays::Until(model.now_ms + NOTICE_MS);
    model.notice = Some(Notice { text: text.to_owned(), stays });
}

/// A line that stays until a key.
fn failed(model: &mut Model, text: String) {
    model.notice = Some(Notice { text, stays: Stays::UntilKey });
}

/// Brings up to date what follows from the rest.
fn settle(model: &mut Model, effects: &mut Vec<Effect>) {
    let query = Query {
        children: model.options.query.children || model.tree || !model.unfolded.is_empty(),
        consumer: model.consumer.clone(),
        open: model.wanted(),
        ..model.options.query.clone()
    };
    if query != model.query {
        model.query = query.clone();
        effects.push(Effect::Query(query));
    }
    if let Some(area) = model.areas().list {
        let height = usize::from(layout::rows(area).height);
        for pane in Pane::ALL {
            model.list_mut(pane).place(height);
        }
    }
    detail::settle(model);
}
