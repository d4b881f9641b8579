//! An error in people's words: one string for every agent and every surface.
//!
//! Providers answer with a status and a body, and the agents pass them on as they came: a status in
//! the middle of a sentence, a body as JSON, a web address behind it. What a person wants is the
//! status, or the agent's own word where there is none, and what was said (design section 2,
//! `last_error`).

use super::json::{Shape, Value};

/// Characters of an error, its code included.
pub const ERROR_CHARS: usize = 200;

/// What stands before a status in the agents' sentences.
const STATUS_MARKS: [&str; 5] =
    ["API Error: ", "unexpected status ", "last status: ", "status code ", "HTTP "];
/// Where a sentence of Codex goes over to what only its makers need.
const BEHIND: [&str; 4] = [", url: ", ", cf-ray: ", ", request id: ", ", auth error: "];
/// Where a body keeps what it says, the first that is there.
const SAID: [&[&str]; 7] = [
    &["error", "message"],
    &["message"],
    &["error", "error", "message"],
    &["detail"],
    &["error_description"],
    &["error"],
    &["error", "type"],
];
/// What HTTP calls a status.
const PHRASES: [&str; 9] = [
    "Bad Request",
    "Not Found",
    "Payload Too Large",
    "Too Many Requests",
    "Internal Server Error",
    "Not Implemented",
    "Bad Gateway",
    "Service Unavailable",
    "Gateway Timeout",
];
/// A message may be a body itself, once.
const BODIES_MAX: usize = 2;

/// Code, one space, text; at most [`ERROR_CHARS`] characters, and never a body as it came.
pub fn in_words(code: &str, text: &str) -> String {
    let told = status_of(code);
    let (status, said) = match split_status(text) {
        Some((status, said)) => (Some(status), said),
        None => (told, text.to_owned()),
    };
    let said = without_body(&said, BODIES_MAX);
    let whole = match status {
        None => format!("{code} {said}"),
        Some(status) if said.is_empty() => format!("{status} {}", name_of(status, code)),
        Some(status) => format!("{status} {}", lower_first(&said)),
    };
    let words: Vec<&str> = whole.split_whitespace().collect();
    words.join(" ").chars().take(ERROR_CHARS).collect()
}

fn status_of(code: &str) -> Option<u16> {
    let number = (code.len() == 3).then(|| code.parse::<u16>().ok()).flatten();
    number.filter(|status| (400..600).contains(status))
}

/// The status in a sentence, and the sentence without it.
fn split_status(text: &str) -> Option<(u16, String)> {
    let leading = |text: &str| Some((status_of(text.get(..3)?)?, text.get(3..)?.to_owned()));
    if let Some((status, rest)) = leading(text).filter(|(_, rest)| ends_word(rest)) {
        return Some((status, rest.trim_start_matches([':', ' ']).to_owned()));
    }
    STATUS_MARKS.iter().find_map(|mark| {
        let (before, rest) = text.split_once(mark)?;
        let (status, rest) = leading(rest).filter(|(_, rest)| ends_word(rest))?;
        let before = before.trim_end_matches([' ', '.', ',', ':', '(']);
        let rest = rest.trim_start_matches([':', ' ', ')']);
        Some((status, joined(before, rest)))
    })
}

fn ends_word(rest: &str) -> bool {
    !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_')
}

fn joined(before: &str, rest: &str) -> String {
    if before.is_empty() || rest.is_empty() {
        format!("{before}{rest}")
    } else {
        format!("{before}: {rest}")
    }
}

/// The sentence with what a body in it says in the body's place, and nothing behind it.
fn without_body(text: &str, bodies: usize) -> String {
    let text = BEHIND
        .iter()
        .filter_map(|mark| text.find(mark))
        .min()
        .map_or(text, |end| text.get(..end).unwrap_or(text));
    let Some(at) = text.find(['{', '<']) else { return text.trim().to_owned() };
    let (before, body) = text.split_at_checked(at).unwrap_or((text, ""));
    let said = if is_json(body) {
        message_of(body, bodies)
    } else if is_page(body) {
        None
    } else {
        return text.trim().to_owned();
    };
    let before = before.trim_end_matches([' ', '[', ':', '-', '.']);
    match said {
        Some(said) if said.eq_ignore_ascii_case(before) => said,
        Some(said) => joined(before, &said),
        None => before.to_owned(),
    }
}

fn message_of(body: &str, bodies: usize) -> Option<String> {
    let body = Value::new(body.as_bytes());
    let said = SAID.iter().find_map(|path| {
        let value = body.at(path).filter(|value| value.shape() == Shape::String)?;
        value.text_up_to(ERROR_CHARS * 4).filter(|text| !text.trim().is_empty())
    })?;
    match bodies.checked_sub(1) {
        Some(bodies) => Some(without_body(&said, bodies)).filter(|said| !said.is_empty()),
        None => Some(said).filter(|said| !said.contains('{')),
    }
}

/// The beginning of an object; a brace alone is a word of the sentence.
fn is_json(body: &str) -> bool {
    body.strip_prefix('{').is_some_and(|inner| inner.trim_start().starts_with(['"', '}']))
}

/// A web page that stands for an answer.
fn is_page(body: &str) -> bool {
    ["<!doctype", "<html", "<head", "<body", "<?xml"]
        .iter()
        .any(|tag| body.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)))
}

/// The phrases that HTTP has for a status, as a sentence says them, and a first letter.
fn lower_first(text: &str) -> String {
    let known = PHRASES.iter().find_map(|phrase| {
        let (before, after) = text.split_once(phrase)?;
        Some(format!("{before}{}{after}", phrase.to_lowercase()))
    });
    let text = known.unwrap_or_else(|| text.to_owned());
    let mut letters = text.chars();
    match (letters.next(), text.chars().nth(1)) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text,
    }
}

/// What a status without a word means; else the agent's own word for it.
fn name_of(status: u16, code: &str) -> String {
    let name = match status {
        400 => "bad request",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not found",
        408 | 504 => "timed out",
        413 => "too large",
        429 => "too many requests",
        500 => "internal server error",
        502 => "bad gateway",
        503 => "unavailable",
        529 => "overloaded",
        _ if status_of(code).is_none() => return code.replace('_', " "),
        _ => "error",
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("overloaded", "API Error: 529 overloaded", "529 overloaded")]
    #[case(
        "overloaded",
        r#"API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        "529 overloaded"
    )]
    #[case(
        "overloaded",
        r#"529 {"type":"error","error":{"type":"overloaded_error"}}"#,
        "529 overloaded_error"
    )]
    #[case(
        "http_connection_failed",
        "unexpected status 401 Unauthorized: x",
        "401 unauthorized: x"
    )]
    #[case("401", "unexpected status 401 Unauthorized", "401 unauthorized")]
    #[case("401", "", "401 unauthorized")]
    #[case(
        "401",
        "unexpected status 401 Unauthorized: {\"error\":{\"message\":\"Incorrect API key\"}}, \
         url: https://example.org/v1, request id: r-1",
        "401 unauthorized: Incorrect API key"
    )]
    #[case(
        "429",
        "exceeded retry limit, last status: 429 Too Many Requests, request id: r-1",
        "429 exceeded retry limit: too many requests"
    )]
    #[case(
        "authentication_failed",
        "Failed to authenticate. API Error: 401 bad",
        "401 failed to authenticate: bad"
    )]
    #[case("unknown", "API Error: 400 bad", "400 bad")]
    #[case(
        "rate_limit",
        "You've hit your limit · resets 5pm",
        "rate_limit You've hit your limit · resets 5pm"
    )]
    #[case("429", "You've hit your limit", "429 you've hit your limit")]
    #[case("error", r#"{"detail":"Not found"}"#, "error Not found")]
    #[case("error", r#"[{"error":{"code":400,"message":"bad key"}}]"#, "error bad key")]
    #[case("error", r#"{"error":{"message":"{\"error\":{\"message\":\"deep\"}}"}}"#, "error deep")]
    #[case("error", r#"{"a":1}"#, "error")]
    #[case("error", r#"stream failed: {"message":"cut he"#, "error stream failed")]
    #[case(
        "502",
        "unexpected status 502 Bad Gateway: <html><h1>502</h1></html>",
        "502 bad gateway"
    )]
    #[case("bad_request", "expected <none> here", "bad_request expected <none> here")]
    #[case("server_error", "no } or { here", "server_error no } or { here")]
    #[case("server_error", "nothing {}", "server_error nothing")]
    #[case("PROVIDER_ERROR", "503 up\u{1b}stream", "503 up\u{1b}stream")]
    #[case("error", "4040 files", "error 4040 files")]
    #[case("error", "got 404 things", "error got 404 things")]
    #[case("usage_limit_exceeded", "too\n  much ", "usage_limit_exceeded too much")]
    #[case("599", "", "599 error")]
    fn people_read(#[case] code: &str, #[case] text: &str, #[case] want: &str) {
        assert_eq!(in_words(code, text), want);
    }

    #[test]
    fn it_is_short_whatever_was_said() {
        let long = "é{".repeat(5000);
        for text in [long.clone(), format!("{{\"message\":\"{long}\"}}"), "x".repeat(900)] {
            let words = in_words("error", &text);
            assert!(words.chars().count() <= ERROR_CHARS, "{}", words.len());
        }
    }
}
