//! A small object that stands for a line too long to read whole, made of its two ends.

use memchr::memmem;

use super::{Fields, Items, skip, string_end, value_end};

/// The field a [`skeleton`] adds: the length of the line it stands for, bytes.
pub const OVERSIZED_FIELD: &str = "lullwatchOversizedBytes";

/// Top-level fields that follow the payload in Claude's lines, so that the tail tells them.
const TAIL_FIELDS: [&str; 12] = [
    "type",
    "uuid",
    "timestamp",
    "sessionId",
    "cwd",
    "version",
    "gitBranch",
    "requestId",
    "isSidechain",
    "agentId",
    "isMeta",
    "isCompactSummary",
];
/// Longest scalar kept, bytes.
const SCALAR_BYTES_MAX: usize = 1024;
/// Longest whole object or array kept, bytes.
const CONTAINER_BYTES_MAX: usize = 16 << 10;
/// Containers one inside the other that are looked into where the head is cut: line, message,
/// content, block, and one more.
const CUT_DEPTH_MAX: usize = 5;

/// A small object that stands for a line too long to read: the fields that its head shows, as far
/// as they are small, down to those of the content block that the head is cut in, and the top-level
/// ones that its tail shows. What is cut says `"cut":true`.
///
/// `None` when the line is no object at all.
pub fn skeleton(head: &[u8], tail: &[u8], line_bytes: u64) -> Option<Vec<u8>> {
    let head = head.trim_ascii_start();
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if head.first() != Some(&b'{') || tail.trim_ascii_end().last() != Some(&b'}') {
        return None;
    }
    let mut object = format!("{{\"{OVERSIZED_FIELD}\":{line_bytes}").into_bytes();
    let mut seen: Vec<Vec<u8>> = Vec::new();
    copy_fields(head, CUT_DEPTH_MAX, &mut object, &mut seen);
    for name in TAIL_FIELDS {
        if seen.iter().any(|key| key == name.as_bytes()) {
            continue;
        }
        let needle = format!(",\"{name}\":");
        if let Some(found) = memmem::rfind(tail, needle.as_bytes()) {
            let at = found + needle.len();
            if let Some(value) = value_end(tail, at).and_then(|end| tail.get(at..end)) {
                copy_field(name.as_bytes(), value, &mut object);
            }
        }
    }
    object.push(b'}');
    Some(object)
}

/// Copies the small fields of a possibly cut object; of the value it is cut in, what that shows.
fn copy_fields(raw: &[u8], depth: usize, into: &mut Vec<u8>, seen: &mut Vec<Vec<u8>>) {
    let mut fields = Fields { raw, at: 1 };
    for (key, value) in fields.by_ref() {
        copy_field(key.0, value.raw, into);
        seen.push(key.0.to_vec());
    }
    let at = skip(raw, fields.at, b',');
    let Some(key_end) = string_end(raw, at) else { return };
    let start = skip(raw, key_end, b':');
    let (Some(key), Some(cut)) = (raw.get(at + 1..key_end - 1), raw.get(start..)) else { return };
    let mut nested = Vec::new();
    if copy_cut(cut, depth - 1, &mut nested) {
        push_field(key, &nested, into);
        seen.push(key.to_vec());
    }
}

/// Copies what a cut container shows; whether there was anything to look into.
fn copy_cut(cut: &[u8], depth: usize, into: &mut Vec<u8>) -> bool {
    match cut.first() {
        Some(b'{') if depth > 0 => {
            into.extend_from_slice(b"{\"cut\":true");
            copy_fields(cut, depth, into, &mut Vec::new());
            into.push(b'}');
            true
        }
        Some(b'[') if depth > 0 => {
            let mut items = Items { raw: cut, at: 1 };
            while items.next().is_some() {}
            let whole = cut.get(1..items.at).unwrap_or_default();
            // Those before the cut one may be a whole history.
            let whole = if whole.len() <= CONTAINER_BYTES_MAX { whole } else { b"" };
            let rest = cut.get(skip(cut, items.at, b',')..).unwrap_or_default();
            let mut last = Vec::new();
            let found = copy_cut(rest, depth - 1, &mut last);
            into.push(b'[');
            into.extend_from_slice(whole);
            if found {
                into.extend_from_slice(if whole.is_empty() { b"" } else { b"," });
                into.extend_from_slice(&last);
            }
            into.push(b']');
            found || !whole.is_empty()
        }
        _ => false,
    }
}

fn copy_field(key: &[u8], value: &[u8], into: &mut Vec<u8>) {
    let bytes_max = match value.first() {
        Some(b'{' | b'[') => CONTAINER_BYTES_MAX,
        Some(_) => SCALAR_BYTES_MAX,
        None => return,
    };
    if value.len() <= bytes_max {
        push_field(key, value, into);
    }
}

fn push_field(key: &[u8], value: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(b",\"");
    into.extend_from_slice(key);
    into.extend_from_slice(b"\":");
    into.extend_from_slice(value);
}
