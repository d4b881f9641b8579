//! The full text of one record, for a reader: every text in it, whatever the agent, with pictures and
//! other long data as size notes. Total; the bytes are those of one object.

use super::json::{Shape, Value};

/// Fields that hold text a person reads, in any of the three formats.
const TEXTS: [&str; 16] = [
    "text",
    "content",
    "message",
    "thinking",
    "input",
    "arguments",
    "output",
    "stdout",
    "stderr",
    "command",
    "summary",
    "result",
    "error",
    "title",
    "content_items",
    "rawOutput",
];
/// Containers that lead to them.
const WAYS: [&str; 8] =
    ["payload", "data", "item", "attachment", "toolUseResult", "chunk", "reason", "action"];
/// Deepest nesting followed.
const DEPTH_MAX: usize = 12;
/// A text without white space longer than this is data, bytes.
const DATA_BYTES_MIN: usize = 4096;

/// The texts of a record, a blank line between them, at most `chars_max` characters.
pub fn text(object: &[u8], chars_max: usize) -> String {
    let mut found = Found { text: String::new(), left: chars_max };
    found.value(Value::new(object), 0);
    found.text
}

struct Found {
    text: String,
    left: usize,
}

impl Found {
    fn value(&mut self, value: Value<'_>, depth: usize) {
        if depth > DEPTH_MAX || self.left == 0 {
            return;
        }
        match value.shape() {
            Shape::String => self.string(value),
            Shape::Array => value.items().for_each(|item| self.value(item, depth + 1)),
            Shape::Object => self.object(value, depth),
            Shape::Number | Shape::Bool | Shape::Null => {}
        }
    }

    fn object(&mut self, object: Value<'_>, depth: usize) {
        for (key, value) in object.fields() {
            let named = |names: &[&str]| names.iter().any(|name| key.is(name));
            if named(&["input", "arguments"]) && value.shape() == Shape::Object {
                self.arguments(value);
            } else if key.is("toolUseResult") && !self.text.is_empty() {
                // Claude keeps a result twice; the message had it already.
            } else if named(&TEXTS) || named(&WAYS) {
                self.value(value, depth + 1);
            } else if key.is("source") && value.get("data").is_some() {
                self.note(value.get("data").and_then(Value::string_bytes).unwrap_or(0));
            }
        }
    }

    /// The arguments of a tool, whatever their names.
    fn arguments(&mut self, arguments: Value<'_>) {
        for (_, value) in arguments.fields() {
            match value.shape() {
                Shape::String => self.string(value),
                Shape::Array | Shape::Object => self.value(value, DEPTH_MAX - 3),
                Shape::Number | Shape::Bool | Shape::Null => {}
            }
        }
    }

    fn string(&mut self, value: Value<'_>) {
        let bytes = value.string_bytes().unwrap_or(0);
        let head = value.text_up_to(self.left.min(DATA_BYTES_MIN)).unwrap_or_default();
        if bytes >= DATA_BYTES_MIN && !head.contains(char::is_whitespace) {
            return self.note(bytes);
        }
        let Some(text) = value.text_up_to(self.left) else { return };
        if text.trim().is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.left = self.left.saturating_sub(text.chars().count());
        self.text.push_str(&text);
    }

    fn note(&mut self, bytes: usize) {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        let tenths = bytes / (1 << 20) * 10 + bytes % (1 << 20) * 10 / (1 << 20);
        self.text.push_str(&format!("[data {}.{} MiB]", tenths / 10, tenths % 10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_each_agent_are_found() {
        for (object, want) in [
            (
                r#"{"type":"user","message":{"role":"user","content":"fix it"},"uuid":"u"}"#,
                "fix it",
            ),
            (
                r#"{"message":{"content":[{"type":"text","text":"a"},{"type":"tool_use","name":"Bash","input":{"command":"ls","description":"list"}}]}}"#,
                "a\n\nls\n\nlist",
            ),
            (
                r#"{"message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]},"toolUseResult":{"stdout":"ok"}}"#,
                "ok",
            ),
            (
                r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"b"}]}}"#,
                "b",
            ),
            (
                r#"{"type":"user/message","seq":1,"data":{"content":[{"type":"text","text":"c"}],"id":"m"}}"#,
                "c",
            ),
        ] {
            assert_eq!(text(object.as_bytes(), 1000), want);
        }
    }

    #[test]
    fn pictures_are_size_notes() {
        let data = "A".repeat(3 << 20);
        let object = format!(
            r#"{{"message":{{"content":[{{"type":"image","source":{{"type":"base64","data":"{data}"}}}}]}}}}"#
        );
        assert_eq!(text(object.as_bytes(), 1000), "[data 3.0 MiB]");
    }

    #[test]
    fn no_more_than_asked_for() {
        let object = format!(r#"{{"content":"{}"}}"#, "ab ".repeat(1000));
        assert_eq!(text(object.as_bytes(), 10).chars().count(), 10);
    }
}
