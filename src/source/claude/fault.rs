//! The code of an API error. What was said, [`super::super::errors`] puts in words.

use super::super::json::{Shape, Value};
use super::envelope::{Envelope, word};
use super::line::ID_CHARS;

/// The status with which the server answered; else what `error` names, else its type.
pub(super) fn code_of(envelope: &Envelope<'_>) -> String {
    let status = envelope.error_status.and_then(Value::uint).filter(|status| *status < 1000);
    status
        .map(|status| status.to_string())
        .or_else(|| named(envelope.error).filter(|code| code != "unknown"))
        .or_else(|| named(envelope.error_type))
        .or_else(|| named(envelope.error))
        .unwrap_or_else(|| "error".to_owned())
}

/// One word, or the type of an object.
fn named(error: Option<Value<'_>>) -> Option<String> {
    let error = error?;
    let code = match error.shape() {
        Shape::Object => word(error.get("type"), ID_CHARS),
        Shape::String => word(Some(error), ID_CHARS),
        Shape::Array | Shape::Number | Shape::Bool | Shape::Null => None,
    };
    code.filter(|code| !code.contains(char::is_whitespace))
}
