//! API errors in people's words: a code, and what was said, without the body of a response.

use super::super::json::{Shape, Value};
use super::envelope::{Envelope, word};
use super::line::ID_CHARS;

/// How the program begins the text of an error.
const LEAD: &str = "API Error:";

/// Code and text of an error record. The code is what `error` names; where that names nothing, the
/// status of HTTP, which the text then does not repeat.
pub(super) fn words(envelope: &Envelope<'_>, said: &str) -> (String, String) {
    let text = without_body(said);
    let named = code(envelope.error).filter(|code| code != "unknown");
    if let Some(code) = named {
        return (code, text);
    }
    let status = envelope.error_status.and_then(Value::uint).filter(|status| *status < 1000);
    if let Some(status) = status.map(|status| status.to_string()) {
        let rest = text.strip_prefix(LEAD).unwrap_or(&text).trim_start();
        let rest = rest.strip_prefix(status.as_str()).unwrap_or(rest).trim_start().to_owned();
        return (status, rest);
    }
    let code = code(envelope.error_type).or_else(|| code(envelope.error));
    (code.unwrap_or_else(|| "error".to_owned()), text)
}

/// One word, or the type of an object.
fn code(error: Option<Value<'_>>) -> Option<String> {
    let error = error?;
    let code = match error.shape() {
        Shape::Object => word(error.get("type"), ID_CHARS),
        Shape::String => word(Some(error), ID_CHARS),
        Shape::Array | Shape::Number | Shape::Bool | Shape::Null => None,
    };
    code.filter(|code| !code.contains(char::is_whitespace))
}

/// The text with what a JSON body at its end says in place of the body.
fn without_body(said: &str) -> String {
    let Some((before, body)) = said.split_once('{') else { return said.to_owned() };
    let body = format!("{{{body}");
    let body = Value::new(body.as_bytes());
    if body.fields().next().is_none() {
        return said.to_owned();
    }
    let [error, message] = body.pick(["error", "message"]);
    let message = error.and_then(|error| error.get("message")).or(message);
    let message = message.and_then(Value::text).unwrap_or_default();
    format!("{} {message}", before.trim_end()).trim().to_owned()
}
