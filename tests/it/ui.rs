//! The screen: what it shows, what keys do to it, and what it never does.

use std::sync::Arc;

use lullwatch::snapshot::Picture;
use lullwatch::ui::key::{Code, Key};
use lullwatch::ui::{Effect, Model, Msg, Options, update, view};

pub(crate) mod fixture;
mod frames;
mod keys;
mod properties;

/// A model that shows a picture.
pub(crate) fn showing(picture: Picture, width: u16, height: u16) -> Model {
    showing_with(Options::default(), picture, width, height)
}

pub(crate) fn showing_with(options: Options, picture: Picture, width: u16, height: u16) -> Model {
    let home = Some("/home/ada".to_owned());
    let mut model = Model::new(Options { home, ..options }, width, height, fixture::NOW_MS);
    tell(&mut model, Msg::Picture(Arc::new(picture)));
    model
}

/// One message, and the picture's answer to a query for an opened session.
pub(crate) fn tell(model: &mut Model, msg: Msg) -> Vec<Effect> {
    update(model, msg)
}

/// A frame as text, trailing spaces cut, between bars.
pub(crate) fn screen(model: &Model) -> String {
    let frame = view(model);
    let mut text = String::new();
    for y in 0..frame.area.height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..frame.area.width {
            let symbol = frame[(x, y)].symbol();
            if skip == 0 {
                line.push_str(symbol);
                skip = lullwatch::text::width(symbol).saturating_sub(1);
            } else {
                skip -= 1;
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A frame as text with its colours: `[green]● running[/]`.
pub(crate) fn styled(model: &Model) -> String {
    let frame = view(model);
    let mut text = String::new();
    for y in 0..frame.area.height {
        let mut line = String::new();
        let mut last = String::new();
        for x in 0..frame.area.width {
            let cell = &frame[(x, y)];
            let mut tags = Vec::new();
            if cell.fg != ratatui::style::Color::Reset {
                tags.push(cell.fg.to_string().to_lowercase());
            }
            if !cell.modifier.is_empty() {
                tags.push(format!("{:?}", cell.modifier).to_lowercase());
            }
            let tag = tags.join("+");
            if tag != last {
                if !last.is_empty() {
                    line.push_str("[/]");
                }
                if !tag.is_empty() {
                    line.extend(["[", &tag, "]"]);
                }
                last = tag;
            }
            line.push_str(cell.symbol());
        }
        if !last.is_empty() {
            line.push_str("[/]");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Keys as one writes them: `jj<enter>/foo<esc>`.
pub(crate) fn keys(script: &str) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = script.chars();
    while let Some(letter) = rest.next() {
        match rest.as_str().split_once('>') {
            Some((name, after)) if letter == '<' => {
                keys.push(named(name));
                rest = after.chars();
            }
            Some(_) | None => keys.push(Key::char(letter)),
        }
    }
    keys
}

fn named(name: &str) -> Key {
    let code = match name {
        "enter" => Code::Enter,
        "esc" => Code::Esc,
        "tab" => Code::Tab,
        "s-tab" => Code::BackTab,
        "bksp" => Code::Backspace,
        "up" => Code::Up,
        "down" => Code::Down,
        "left" => Code::Left,
        "right" => Code::Right,
        "pgup" => Code::PageUp,
        "pgdn" => Code::PageDown,
        "home" => Code::Home,
        "end" => Code::End,
        "space" => Code::Char(' '),
        _ => match name.strip_prefix("c-").and_then(|letter| letter.chars().next()) {
            Some(letter) => return Key::control(letter),
            None => panic!("no key <{name}>"),
        },
    };
    Key::plain(code)
}

/// Presses keys; the effects of all of them. Queries for an opened session are answered with the
/// fixture's.
pub(crate) fn press(model: &mut Model, script: &str) -> Vec<Effect> {
    let mut all = Vec::new();
    for key in keys(script) {
        let effects = tell(model, Msg::Key(key));
        for effect in &effects {
            if let (Effect::Query(query), Some(picture)) = (effect, model.picture.clone()) {
                let mut detail = fixture::detail();
                let wanted = query.open.and_then(|id| model.session(id).cloned());
                let detail = wanted.map(|session| {
                    if session.row_id != detail.session.row_id {
                        detail.session = session;
                    }
                    detail
                });
                let picture = Picture { detail, ..(*picture).clone() };
                tell(model, Msg::Picture(Arc::new(picture)));
            }
        }
        all.extend(effects);
    }
    all
}
