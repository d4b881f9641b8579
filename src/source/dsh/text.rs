//! Previews of dsh messages: text blocks joined, other blocks as size notes.

use super::super::PREVIEW_CHARS;
use super::super::json::{Shape, Value};
use super::{ID_CHARS_MAX, TEXT_CHARS_MAX};

/// Blocks looked at for a preview; a message of more has text enough.
const BLOCKS_MAX: usize = 64;

/// The text of a message's content. Calls and reasoning are not text.
pub(super) fn preview(content: Option<Value<'_>>) -> String {
    let Some(content) = content else { return String::new() };
    if content.shape() == Shape::String {
        return scalar(Some(content));
    }
    let mut parts: Vec<String> = Vec::new();
    let mut left = PREVIEW_CHARS;
    for block in content.items().take(BLOCKS_MAX) {
        let [kind, text] = block.pick(["type", "text"]);
        let part = match kind.and_then(|kind| kind.text_up_to(ID_CHARS_MAX)).as_deref() {
            Some("text") => text.and_then(|text| text.text_up_to(left)),
            Some("image" | "file") => Some(format!("[attachment, {} bytes]", block.raw().len())),
            Some(_) | None => None,
        };
        let Some(part) = part.filter(|part| !part.is_empty()) else { continue };
        left = left.saturating_sub(part.chars().count() + 1);
        parts.push(part);
        if left == 0 {
            break;
        }
    }
    parts.join("\n").chars().take(PREVIEW_CHARS).collect()
}

/// A preview of one string.
pub(super) fn scalar(value: Option<Value<'_>>) -> String {
    value.and_then(|value| value.text_up_to(PREVIEW_CHARS)).unwrap_or_default()
}

/// The call that a `tool/result` answers, and a preview of what it says. Since format 4 the result
/// is a message of its own role instead of a block inside one.
pub(super) fn result(data: Value<'_>) -> (Option<String>, String) {
    let [message, call] = data.pick(["message", "callId"]);
    let message = message.unwrap_or(Value::new(b""));
    let [source, content, inner] = message.pick(["source", "content", "toolCallId"]);
    let block = content.and_then(|content| content.items().next());
    let [block_call, block_content] =
        block.map_or([None; 2], |block| block.pick(["toolCallId", "content"]));
    let call = [source.and_then(|source| source.get("callId")), inner, call, block_call]
        .into_iter()
        .flatten()
        .find_map(|id| id.text_up_to(ID_CHARS_MAX));
    (call, preview(block_content.or(content)))
}

/// Code and text of a turn's failure.
pub(super) fn failure(error: Option<Value<'_>>) -> (String, String) {
    let Some(error) = error else { return ("error".to_owned(), String::new()) };
    let [code, message] = error.pick(["code", "message"]);
    let code: String = code
        .and_then(|code| code.text_up_to(64))
        .unwrap_or_default()
        .chars()
        .map(|letter| if letter.is_whitespace() { '_' } else { letter })
        .collect();
    let text = message.unwrap_or(error).text_up_to(TEXT_CHARS_MAX).unwrap_or_default();
    (if code.is_empty() { "error".to_owned() } else { code }, text)
}

/// The text of a `compaction/end`'s error; an empty one is none, as the harness has it.
pub(super) fn problem(error: Value<'_>) -> Option<String> {
    match error.shape() {
        Shape::Null => None,
        Shape::Bool => (error.bool() == Some(true)).then(|| "true".to_owned()),
        Shape::String => error.text_up_to(TEXT_CHARS_MAX).filter(|text| !text.is_empty()),
        Shape::Object | Shape::Array | Shape::Number => {
            Some(String::from_utf8_lossy(error.raw()).chars().take(TEXT_CHARS_MAX).collect())
        }
    }
}
