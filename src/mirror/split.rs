//! Bytes into lines, without knowing where the bytes come from.
//!
//! Only complete lines come out; the unfinished rest waits and is not counted as read. Memory is
//! bounded whatever the line: of one longer than [`LINE_BYTES_MAX`] only the two ends are kept.

use memchr::{memchr, memrchr};

use crate::source::{LINE_BYTES_MAX, OVERSIZED_ENDS_BYTES, Span};

/// One complete line, without its newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// All of it.
    Whole {
        /// Its bytes.
        bytes: &'a [u8],
        /// Where it starts, bytes.
        offset: u64,
    },
    /// Only its ends.
    Oversized {
        /// First bytes.
        head: &'a [u8],
        /// Last bytes.
        tail: &'a [u8],
        /// Where it lies.
        span: Span,
    },
}

/// Splits a stream of chunks into lines.
#[derive(Debug, Default)]
pub struct Splitter {
    /// The beginning of a line that has not ended yet; at most [`LINE_BYTES_MAX`] bytes.
    pending: Vec<u8>,
    /// For a line beyond the limit: its last bytes, and its length so far.
    over: Option<(Vec<u8>, u64)>,
    /// Offset of the first byte that belongs to no complete line yet.
    position: u64,
}

impl Splitter {
    /// Starts at an offset that begins a line.
    pub fn new(position: u64) -> Self {
        Self { position, ..Self::default() }
    }

    /// Offset just behind the last complete line.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes of the unfinished line so far.
    pub fn pending_bytes(&self) -> u64 {
        self.pending.len() as u64 + self.over.as_ref().map_or(0, |(_, beyond)| *beyond)
    }

    /// Takes the next chunk; calls `each` for every line that it completes.
    pub fn feed(&mut self, chunk: &[u8], mut each: impl FnMut(Line<'_>)) {
        let mut rest = chunk;
        while let Some(newline) = memchr(b'\n', rest) {
            let (part, behind) = rest.split_at(newline);
            if self.pending.is_empty() && part.len() <= LINE_BYTES_MAX {
                each(Line::Whole { bytes: part, offset: self.position });
                self.position += part.len() as u64 + 1;
            } else {
                self.hold(part);
                self.finish(&mut each);
            }
            rest = behind.get(1..).unwrap_or_default();
        }
        self.hold(rest);
    }

    /// Keeps a part of an unfinished line.
    fn hold(&mut self, part: &[u8]) {
        let room = LINE_BYTES_MAX - self.pending.len();
        let (fits, beyond) = part.split_at(part.len().min(room));
        self.pending.extend_from_slice(fits);
        if beyond.is_empty() {
            return;
        }
        let (tail, length) = self.over.get_or_insert_with(|| {
            let from = self.pending.len().saturating_sub(OVERSIZED_ENDS_BYTES);
            (self.pending.get(from..).unwrap_or_default().to_vec(), 0)
        });
        *length += beyond.len() as u64;
        let keep = beyond.len().saturating_sub(OVERSIZED_ENDS_BYTES);
        tail.extend_from_slice(beyond.get(keep..).unwrap_or_default());
        let excess = tail.len().saturating_sub(OVERSIZED_ENDS_BYTES);
        tail.drain(..excess);
    }

    /// The held line is complete.
    fn finish(&mut self, each: &mut impl FnMut(Line<'_>)) {
        let offset = self.position;
        let len = self.pending_bytes();
        self.position += len + 1;
        match self.over.take() {
            None => each(Line::Whole { bytes: &self.pending, offset }),
            Some((tail, _)) => {
                let head = self.pending.get(..OVERSIZED_ENDS_BYTES).unwrap_or(&self.pending);
                each(Line::Oversized { head, tail: &tail, span: Span { offset, len } });
            }
        }
        self.pending.clear();
        // One giant line must not keep its buffer for ever.
        self.pending.shrink_to(4 << 20);
    }
}

/// Whether a piece of a file completes any line.
pub fn has_newline(chunk: &[u8]) -> bool {
    memrchr(b'\n', chunk).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Lines = Vec<(u64, Vec<u8>)>;

    fn lines(chunks: &[&[u8]]) -> (Lines, u64) {
        let mut splitter = Splitter::new(0);
        let mut found = Vec::new();
        for chunk in chunks {
            splitter.feed(chunk, |line| match line {
                Line::Whole { bytes, offset } => found.push((offset, bytes.to_vec())),
                Line::Oversized { span, .. } => found.push((span.offset, Vec::new())),
            });
        }
        (found, splitter.position())
    }

    #[test]
    fn a_line_beyond_the_limit_keeps_its_ends_only() {
        let mut big = b"head".to_vec();
        big.resize(LINE_BYTES_MAX + 5_000_000, b'x');
        big.extend_from_slice(b"tail\nnext\n");
        let mut splitter = Splitter::new(7);
        let mut seen = Vec::new();
        for chunk in big.chunks(1 << 20) {
            splitter.feed(chunk, |line| match line {
                Line::Whole { bytes, offset } => seen.push((offset, bytes.len(), String::new())),
                Line::Oversized { head, tail, span } => {
                    assert!(head.starts_with(b"head"));
                    assert!(tail.ends_with(b"tail"));
                    assert!(head.len() + tail.len() <= 2 * OVERSIZED_ENDS_BYTES);
                    seen.push((span.offset, span.len as usize, "over".to_owned()));
                }
            });
        }
        let length = LINE_BYTES_MAX + 5_000_004;
        assert_eq!(seen, [(7, length, "over".to_owned()), (8 + length as u64, 4, String::new())]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_chunking_of_the_same_bytes_gives_the_same_lines(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
            size in 1_usize..50,
        ) {
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(lines(&chunks), lines(&[&bytes]));
            let (found, position) = lines(&[&bytes]);
            let complete: usize = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            prop_assert_eq!(position, complete as u64);
            prop_assert_eq!(found.len(), bytes.iter().filter(|b| **b == b'\n').count());
        }
    }
}
