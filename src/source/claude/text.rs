//! What a text is: typed by somebody, or written by the program in somebody's name; and how a
//! content block looks in one line.

use super::super::PREVIEW_CHARS;
use super::super::json::{Shape, Value};

/// Blocks of one record that are looked at; a record of real use has a few dozen at most.
pub(super) const BLOCKS_MAX: usize = 256;
/// Characters of a command line that are looked at.
const COMMAND_CHARS: usize = 4096;
/// Characters that tell a tag.
const TAG_CHARS: usize = 40;

/// What a text starts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// Like something typed.
    Plain,
    /// The sentinel of a turn that the human broke off.
    Interrupt,
    /// A slash command.
    Command,
    /// Output of a slash command.
    Output,
    /// The caveat before a slash command.
    Local,
    /// A shell command typed at the prompt, or its output.
    Bash,
    /// Context or a message that the program put in.
    Injected,
}

const TAGS: [(&str, Tag); 15] = [
    ("[Request interrupted", Tag::Interrupt),
    ("<command-name>", Tag::Command),
    ("<command-message>", Tag::Command),
    ("<local-command-stdout", Tag::Output),
    ("<local-command-stderr", Tag::Output),
    ("<local-command-", Tag::Local),
    ("Caveat: The messages below", Tag::Local),
    ("<bash-", Tag::Bash),
    ("<task-notification", Tag::Injected),
    ("<system-reminder", Tag::Injected),
    ("<teammate-message", Tag::Injected),
    ("<ide_", Tag::Injected),
    ("<user-prompt-submit-hook", Tag::Injected),
    ("<session-start-hook", Tag::Injected),
    ("<new-diagnostics", Tag::Injected),
];

/// The tag of a string value.
pub(super) fn tag(text: Value<'_>) -> Tag {
    // Decoding the head of every text is not free; most texts start with none of these.
    if !matches!(text.raw().get(1), Some(b'<' | b'[' | b'C' | b'\\' | b' ')) {
        return Tag::Plain;
    }
    let head = text.text_up_to(TAG_CHARS).unwrap_or_default();
    let head = head.trim_start();
    TAGS.iter().find(|(prefix, _)| head.starts_with(prefix)).map_or(Tag::Plain, |(_, tag)| *tag)
}

/// Whether a text begins with these words, which no tag stands around.
pub(super) fn begins(text: Value<'_>, words: &str) -> bool {
    let head = text.text_up_to(words.len()).unwrap_or_default();
    head.starts_with(words)
}

/// A slash command with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    name: String,
    arguments: String,
}

impl Command {
    /// The command of a command line.
    pub(super) fn read(text: Value<'_>) -> Self {
        let text = text.text_up_to(COMMAND_CHARS).unwrap_or_default();
        let inside = |name: &str| -> Option<&str> {
            let (_, rest) = text.split_once(&format!("<{name}>"))?;
            let (inner, _) = rest.split_once("</").unwrap_or((rest, ""));
            Some(inner.trim()).filter(|inner| !inner.is_empty())
        };
        // Old versions said `foo is running…` in the message; its first word is the name.
        let spoken = || inside("command-message").and_then(|said| said.split_whitespace().next());
        let name = inside("command-name").or_else(spoken).unwrap_or_default();
        Self {
            name: name.trim_start_matches('/').to_owned(),
            arguments: inside("command-args").unwrap_or_default().to_owned(),
        }
    }

    /// `/compact`, the one command that is work of its own.
    pub(super) fn is_compact(&self) -> bool {
        self.name == "compact"
    }

    /// Whether a prompt may stand behind it. These are the program's own and never start a turn,
    /// so that a meta record after a resume is not taken for their expansion.
    pub(super) fn may_expand(&self) -> bool {
        !matches!(self.name.as_str(), "compact" | "exit" | "quit" | "clear")
    }

    /// As typed; `None` where no name was found.
    pub(super) fn line(&self) -> Option<String> {
        if self.name.is_empty() {
            return None;
        }
        let line = format!("/{} {}", self.name, self.arguments);
        Some(line.trim_end().chars().take(PREVIEW_CHARS).collect())
    }
}

/// The items of a content array, or the one block that a content is.
pub(super) fn blocks(content: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let alone = matches!(content.shape(), Shape::String | Shape::Object).then_some(content);
    alone.into_iter().chain(content.items()).take(BLOCKS_MAX)
}

/// The text of a block that is a text: a plain string, or a `text` block.
pub(super) fn block_text(block: Value<'_>) -> Option<Value<'_>> {
    if block.shape() == Shape::String {
        return Some(block);
    }
    let [kind, text] = block.pick(["type", "text"]);
    kind.filter(|kind| kind.is("text"))?;
    text.filter(|text| text.shape() == Shape::String)
}

/// A content in one line: its texts, and notes for what is no text.
pub(super) fn preview(content: Option<Value<'_>>, oversized: Option<u64>) -> String {
    let Some(content) = content else {
        return oversized.map_or_else(String::new, |bytes| size_note("oversized", bytes));
    };
    let mut line = String::new();
    let mut left = PREVIEW_CHARS;
    for block in blocks(content) {
        if !line.is_empty() && left > 0 {
            line.push(' ');
            left -= 1;
        }
        if left == 0 {
            break;
        }
        let part = block_preview(block, left, oversized);
        left = left.saturating_sub(part.chars().count());
        line.push_str(&part);
    }
    line
}

fn block_preview(block: Value<'_>, chars: usize, oversized: Option<u64>) -> String {
    if let Some(text) = block_text(block) {
        return text.text_up_to(chars).unwrap_or_default();
    }
    note(block, oversized).unwrap_or_default().chars().take(chars).collect()
}

/// What to say of a block that is not a text: images and documents by size, never by content.
pub(super) fn note(block: Value<'_>, oversized: Option<u64>) -> Option<String> {
    let [kind, source, cut] = block.pick(["type", "source", "cut"]);
    if let (Some(_), Some(bytes)) = (cut, oversized) {
        return Some(size_note("oversized", bytes));
    }
    let name = match kind?.raw() {
        b"\"image\"" => "image",
        b"\"document\"" => "document",
        _ => return None,
    };
    let data = source.and_then(|source| source.get("data")).and_then(Value::string_bytes);
    Some(data.map_or_else(|| format!("[{name}]"), |bytes| size_note(name, bytes as u64)))
}

/// `[image 12.0 MiB]`.
fn size_note(name: &str, bytes: u64) -> String {
    let (unit, word) = match bytes {
        0..0x400 => return format!("[{name} {bytes} B]"),
        0x400..0x10_0000 => (0x400, "KiB"),
        0x10_0000.. => (0x10_0000, "MiB"),
    };
    let tenths = (u128::from(bytes) * 10 + unit / 2) / unit;
    format!("[{name} {}.{} {word}]", tenths / 10, tenths % 10)
}
