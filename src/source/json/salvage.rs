//! The objects of a physical line, whole ones and those beside damage.
//!
//! Real transcripts hold records cut short with the next one glued on, two records on a line, and
//! runs of NULs (`performance.md` 3.5). Every intact record is found; what lies between is counted.

use memchr::memmem;

use super::{Value, object_end};

/// A part of a physical line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// A complete object.
    Object {
        /// First byte in the line.
        start: usize,
        /// One past its last byte.
        end: usize,
    },
    /// Something that is no object: a torn part, NULs alone, another JSON value.
    Damage,
}

/// Attempts to find a record behind a torn part; bounds the work on a hostile line.
const SALVAGE_TRIES_MAX: usize = 64;

/// How the records of the three agents begin.
const OPENERS: [&[u8]; 6] = [
    b"{\"parentUuid\":",
    b"{\"type\":\"",
    b"{\"timestamp\":\"",
    b"{\"sessionId\":\"",
    b"{\"isSidechain\":",
    b"{\"record_type\":\"",
];

/// Fields of which a record has at least one and a content block inside a record has none.
const RECORD_FIELDS: [&str; 9] = [
    "sessionId",
    "timestamp",
    "uuid",
    "seq",
    "seq0",
    "payload",
    "leafUuid",
    "messageId",
    "parentUuid",
];

/// The objects of a physical line, and what lies between them.
///
/// An empty line, or white space alone, has no pieces. NULs count as damage only when nothing else
/// is on the line.
pub fn pieces(line: &[u8]) -> Vec<Piece> {
    let line_start = if line.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut at = skip_blank(line, line_start);
    if at == line.len() {
        let blank = line.iter().all(u8::is_ascii_whitespace) || line.len() == line_start;
        return if blank { Vec::new() } else { vec![Piece::Damage] };
    }
    let mut found = Vec::with_capacity(1);
    let mut openers = Openers::default();
    while at < line.len() {
        if let Some(end) = object_end(line, at) {
            found.push(Piece::Object { start: at, end });
            at = skip_blank(line, end);
            continue;
        }
        found.push(Piece::Damage);
        match resync(line, at + 1, &mut openers) {
            Some(next) => at = next,
            None => break,
        }
    }
    found
}

/// Where the openers are found next in a line, so that one that does not occur is not looked for over
/// and over in a line of megabytes.
#[derive(Default)]
struct Openers {
    tries: usize,
    /// First place at or behind where it was last looked for; the line's length: nowhere.
    next: [Option<usize>; OPENERS.len()],
}

impl Openers {
    fn find(&mut self, line: &[u8], from: usize) -> Option<usize> {
        for (opener, next) in OPENERS.iter().zip(&mut self.next) {
            if next.is_none_or(|next| next < from) {
                let found = line.get(from..).and_then(|rest| memmem::find(rest, opener));
                *next = Some(found.map_or(line.len(), |found| from + found));
            }
        }
        self.next.iter().flatten().copied().min().filter(|next| *next < line.len())
    }
}

/// The start of the next whole record at or after `from`: one that reaches the end of the line, or
/// stands before another object or a run of NULs.
fn resync(line: &[u8], mut from: usize, openers: &mut Openers) -> Option<usize> {
    while openers.tries < SALVAGE_TRIES_MAX {
        openers.tries += 1;
        let start = openers.find(line, from)?;
        if let Some(end) = object_end(line, start) {
            let behind = line.get(end..)?.trim_ascii_start().first();
            let object = Value::new(line.get(start..end)?);
            if matches!(behind, None | Some(b'{' | 0)) && is_record(object) {
                return Some(start);
            }
        }
        from = start + 1;
    }
    None
}

fn is_record(object: Value<'_>) -> bool {
    object.fields().any(|(key, _)| RECORD_FIELDS.iter().any(|name| key.is(name)))
}

/// Past white space and NULs.
fn skip_blank(raw: &[u8], mut at: usize) -> usize {
    while raw.get(at).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == 0) {
        at += 1;
    }
    at
}
