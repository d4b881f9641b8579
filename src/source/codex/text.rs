//! Previews: what of a message, a call or a result is worth a row, at most [`PREVIEW_CHARS`].
//!
//! Pictures and lines too long to read become size notes. This file also knows which user-role
//! texts are not the human's: Codex speaks to the model in the same role.

use std::borrow::Cow;

use super::super::PREVIEW_CHARS;
use super::super::json::{Shape, Value};
use super::Entry;

/// Size notes kept of one message.
const NOTES_MAX: usize = 8;
/// Arguments longer than this are previewed as they stand; bytes.
const ARGUMENTS_BYTES_MAX: usize = 4096;
/// Words of a command line, or queries of a search, that are looked at.
const WORDS_MAX: usize = 64;

/// Tags that open text which Codex puts into the user's role.
const INJECTED_TAGS: [&str; 14] = [
    "environment_context",
    "user_instructions",
    "turn_aborted",
    "recommended_plugins",
    "hook_prompt",
    "codex_internal_context",
    "goal_context",
    "user_action",
    "realtime_delegation",
    "send_user_message_question_reply",
    "skill",
    "user_shell_command",
    "subagent_notification",
    "INSTRUCTIONS",
];
/// A heading of the same kind.
const INJECTED_HEADING: &str = "# AGENTS.md instructions";
/// Headings of what an editor adds; the human's own words follow [`REQUEST`].
const EDITOR_HEADINGS: [&str; 2] = ["# Files mentioned by the user", "# Context from my IDE setup"];
const REQUEST: &str = "## My request for Codex:";

/// The inside of a plain string, to be matched against known words; empty for anything else.
pub(super) fn word(value: Option<Value<'_>>) -> &str {
    match value.map(Value::raw) {
        Some([b'"', inner @ .., b'"']) => std::str::from_utf8(inner).unwrap_or_default(),
        Some(_) | None => "",
    }
}

/// A string that is not empty, cut to `chars`.
pub(super) fn capped(value: Option<Value<'_>>, chars: usize) -> Option<String> {
    value?.text_up_to(chars).filter(|text| !text.is_empty())
}

/// Text, and size notes of what is no text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Preview {
    pub(super) text: String,
    notes: Vec<String>,
}

impl Preview {
    /// Takes in a content: a string, or parts. Of a `user` role only what is the human's.
    pub(super) fn content(value: Option<Value<'_>>, human: Human) -> Self {
        let mut preview = Self::default();
        let Some(value) = value else { return preview };
        if value.shape() == Shape::String {
            preview.push_text(value, human);
        }
        for part in value.items() {
            preview.push_part(part, human);
        }
        preview
    }

    /// Takes in a list of pictures: data, links or paths.
    pub(super) fn pictures(&mut self, list: Option<Value<'_>>) {
        for picture in list.into_iter().flat_map(Value::items) {
            self.push_note("image", Some(picture));
        }
    }

    fn push_part(&mut self, part: Value<'_>, human: Human) {
        let (mut text, mut data, mut kind) = (None, None, None);
        for (key, value) in part.fields() {
            match key.bytes() {
                b"type" => kind = Some(value),
                b"text" => text = Some(value),
                b"image_url" | b"input_audio" | b"audio_url" | b"data" => data = Some(value),
                _ => {}
            }
        }
        let kind = word(kind);
        if let Some(text) = text.filter(|text| text.shape() == Shape::String) {
            self.push_text(text, human);
        } else if kind.ends_with("image") {
            self.push_note("image", data);
        } else if kind.ends_with("audio") {
            self.push_note("audio", data);
        }
    }

    fn push_text(&mut self, value: Value<'_>, human: Human) {
        if self.text.len() >= PREVIEW_CHARS * 4 {
            return;
        }
        let Some(text) = value.text_up_to(PREVIEW_CHARS) else { return };
        let text = match human {
            Human::Everything => Some(text),
            Human::Event => words_of_editor(&text, value).or_else(|| without_tags(text)),
            Human::Item => match words_of_editor(&text, value) {
                Some(request) => Some(request),
                None => without_tags(text).filter(|text| !has_injected_heading(text)),
            },
        };
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str(&text);
        }
    }

    fn push_note(&mut self, what: &str, data: Option<Value<'_>>) {
        if self.notes.len() < NOTES_MAX {
            let data = data.filter(|data| data.starts_with("data:"));
            self.notes.push(match data.and_then(Value::string_bytes) {
                Some(bytes) => size_note(what, bytes as u64),
                None => format!("[{what}]"),
            });
        }
    }

    /// The words; the notes only where there are none, so that a title is made of words.
    pub(super) fn words(self) -> Option<String> {
        let text = if self.text.trim().is_empty() { self.notes.join(" ") } else { self.text };
        cut(&text)
    }

    /// Words and notes.
    pub(super) fn all(mut self) -> Option<String> {
        if !self.text.is_empty() && !self.notes.is_empty() {
            self.text = self.text.chars().take(PREVIEW_CHARS / 2).collect();
            self.text.push('\n');
        }
        self.text.push_str(&self.notes.join(" "));
        cut(&self.text)
    }
}

/// What of a text is taken for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Human {
    /// All of it: the model's words, results.
    Everything,
    /// What an event calls the user's words; only what is tagged is not.
    Event,
    /// A response item of the user's role: much of it is Codex's.
    Item,
}

fn cut(text: &str) -> Option<String> {
    let text: String = text.chars().take(PREVIEW_CHARS).collect();
    (!text.trim().is_empty()).then_some(text)
}

/// The request behind the context that an editor put before it.
fn words_of_editor(preview: &str, value: Value<'_>) -> Option<String> {
    let start = preview.trim_start();
    if !EDITOR_HEADINGS.iter().any(|heading| start.starts_with(heading)) {
        return None;
    }
    let text: Cow<'_, str> = value.text()?;
    let (_, request) = text.split_once(REQUEST)?;
    cut(request.trim_start())
}

/// The plan that a message proposes between tags of that name, at most [`PREVIEW_CHARS`].
pub(super) fn proposed_plan(content: Value<'_>) -> Option<String> {
    let texts = content.items().filter_map(|part| part.get("text")).chain([content]);
    texts.filter(|text| text.shape() == Shape::String).find_map(|text| {
        let text = text.text()?;
        let (_, plan) = text.split_once("<proposed_plan>")?;
        let plan = plan.split_once("</proposed_plan>").map_or(plan, |(plan, _)| plan);
        cut(plan.trim_start())
    })
}

fn has_injected_heading(text: &str) -> bool {
    let start = text.trim_start();
    let [files, _] = EDITOR_HEADINGS;
    start.starts_with(INJECTED_HEADING) || start.starts_with(files)
}

/// The text, unless it opens with a tag of Codex's own, or is the mark-up around a picture.
fn without_tags(text: String) -> Option<String> {
    let Some(inner) = text.trim_start().strip_prefix('<') else { return Some(text) };
    let end = inner.find(|letter: char| letter == '>' || letter.is_whitespace());
    let name = end.and_then(|end| inner.get(..end)).unwrap_or_default();
    let picture = matches!(name, "image" | "/image");
    (!picture && !INJECTED_TAGS.contains(&name)).then_some(text)
}

/// `[image 12.0 MiB]`; of the bytes as written, which is what the file holds.
pub(super) fn size_note(what: &str, bytes: u64) -> String {
    let (unit, word) = match bytes {
        0..1024 => return format!("[{what} {bytes} B]"),
        1024..1_048_576 => (1024, "KiB"),
        _ => (1_048_576, "MiB"),
    };
    let tenths = (bytes.saturating_mul(10).saturating_add(unit / 2)) / unit;
    format!("[{what} {}.{} {word}]", tenths / 10, tenths % 10)
}

/// What stands for the text of a line too long to be read.
pub(super) fn oversized_note(entry: &Entry<'_>) -> Option<String> {
    entry.oversized.map(|bytes| size_note("oversized", bytes))
}

/// Any value as a line of a row: a string decoded, anything else as written.
pub(super) fn plain(value: Value<'_>) -> Option<String> {
    let text = match value.shape() {
        Shape::String => value.text_up_to(PREVIEW_CHARS)?,
        Shape::Object | Shape::Array | Shape::Number | Shape::Bool => {
            let raw = value.raw();
            let head = raw.get(..PREVIEW_CHARS * 4).unwrap_or(raw);
            String::from_utf8_lossy(head).into_owned()
        }
        Shape::Null => return None,
    };
    cut(&text)
}

/// The arguments of a call: the command line where there is one, else as they stand.
pub(super) fn arguments(value: Value<'_>) -> Option<String> {
    let short = value.string_bytes().is_some_and(|bytes| bytes <= ARGUMENTS_BYTES_MAX);
    if short && let Some(text) = value.text() {
        let object = Value::new(text.as_bytes());
        if super::super::json::object_end(object.raw(), 0) == Some(object.raw().len())
            && let Some(line) = command(object)
        {
            return Some(line);
        }
    }
    plain(value)
}

/// The command line in an object: `cmd` or `command`, a string or words.
pub(super) fn command(object: Value<'_>) -> Option<String> {
    let [cmd, command] = object.pick(["cmd", "command"]);
    words(cmd.or(command)?)
}

/// A string, or an array of strings with spaces between.
pub(super) fn words(value: Value<'_>) -> Option<String> {
    if value.shape() == Shape::String {
        return plain(value);
    }
    let list: Vec<String> =
        value.items().take(WORDS_MAX).filter_map(|item| item.text_up_to(PREVIEW_CHARS)).collect();
    cut(&list.join(" "))
}
