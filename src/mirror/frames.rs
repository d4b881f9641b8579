//! A walk over the frames of a dsh log: each whole frame is decoded, handed out in bounded pieces,
//! and what is broken between two of them is stepped over and counted once.
//!
//! Where reading may begin again is a [`Mark`]: a place between two frames, or inside a broken part
//! whose end has not been seen. That such a part was counted already is in the mark, so neither the
//! number of looks nor where they fell changes the count.

use std::fs::File;
use std::io::{self, Read};

use memchr::memmem;

use super::read::{WINDOW_LOG_MAX, read_at};
use super::window::Seen;
use crate::source::zframe::{FrameEnd, MAGIC, frame_end};

/// A compressed frame longer than this is not read.
const FRAME_BYTES_MAX: usize = 64 << 20;
/// A frame that decodes to more than this is taken for damaged: memory is bounded.
const DECODED_FRAME_BYTES_MAX: usize = 64 << 20;

/// A place where the walk may begin again.
#[derive(Debug, Clone, Default)]
pub struct Mark {
    /// Offset in the file.
    pub at: u64,
    /// Decoded bytes before it.
    pub decoded: u64,
    /// Inside a broken part that has been counted.
    pub in_damage: bool,
    /// Broken parts counted so far by this walk.
    pub damaged: u64,
    /// The raw bytes before it.
    pub seen: Seen,
}

/// A walk over the frames of one file.
#[derive(Debug)]
pub struct Frames {
    /// Bytes of the file; those before `used` are done with.
    raw: Vec<u8>,
    used: usize,
    /// Bytes read in one go.
    chunk_bytes: usize,
    /// Before the frame that is being handed out.
    before: Mark,
    /// Behind it.
    behind: Mark,
    /// The frame that is being handed out, and how much of it has been.
    frame: Vec<u8>,
    given: usize,
    /// Decoded bytes of the first frame that have been read before.
    skip: u64,
    end: bool,
}

impl Frames {
    /// Begins at a mark; of the first frame `skip` decoded bytes have been read before.
    pub fn new(mark: Mark, skip: u64, chunk_bytes: usize) -> Self {
        Self {
            raw: Vec::new(),
            used: 0,
            chunk_bytes,
            before: mark.clone(),
            behind: mark,
            frame: Vec::new(),
            given: 0,
            skip,
            end: false,
        }
    }

    /// Where to begin again so that all handed out so far, and nothing else, has been read.
    pub fn mark(&self) -> &Mark {
        if self.given < self.frame.len() { &self.before } else { &self.behind }
    }

    /// The next decoded piece into `chunk`; false at the end of what is readable now.
    pub fn next_into(&mut self, file: &File, chunk: &mut Vec<u8>) -> io::Result<bool> {
        chunk.clear();
        if self.given >= self.frame.len() && !self.next_frame(file)? {
            return Ok(false);
        }
        let rest = self.frame.get(self.given..).unwrap_or_default();
        chunk.extend_from_slice(rest.get(..self.chunk_bytes).unwrap_or(rest));
        self.given += chunk.len();
        if self.given >= self.frame.len() {
            // One giant frame must not keep its buffer for ever.
            self.frame.clear();
            self.frame.shrink_to(4 << 20);
            self.given = 0;
        }
        Ok(true)
    }

    /// Decodes the next whole frame with something new in it; steps over damaged ones.
    fn next_frame(&mut self, file: &File) -> io::Result<bool> {
        if self.behind.in_damage && !self.resync(file)? {
            return Ok(false);
        }
        loop {
            let left = self.raw.len() - self.used;
            match frame_end(&self.raw, self.used) {
                FrameEnd::Complete(end) => {
                    if self.decode(end) {
                        return Ok(true);
                    }
                }
                FrameEnd::Incomplete if !self.end && left < FRAME_BYTES_MAX => self.fill(file)?,
                FrameEnd::Incomplete if left < FRAME_BYTES_MAX => return Ok(false),
                FrameEnd::Incomplete | FrameEnd::Corrupt => {
                    self.behind.damaged += 1;
                    self.behind.in_damage = true;
                    self.pass(1);
                    if !self.resync(file)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Decodes the frame that ends at `end` of `raw`; false if it holds nothing new.
    fn decode(&mut self, end: usize) -> bool {
        self.before = self.behind.clone();
        let frame = self.raw.get(self.used..end).unwrap_or_default();
        if !decode_frame(frame, &mut self.frame) {
            self.behind.damaged += 1;
        }
        self.pass(end - self.used);
        self.behind.decoded += self.frame.len() as u64;
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX).min(self.frame.len());
        self.given = skip;
        self.skip = 0;
        self.given < self.frame.len()
    }

    /// Done with that many bytes.
    fn pass(&mut self, bytes: usize) {
        let done = self.raw.get(self.used..self.used + bytes).unwrap_or_default();
        self.behind.seen.pass(done);
        self.used += bytes;
        self.behind.at += bytes as u64;
    }

    fn fill(&mut self, file: &File) -> io::Result<()> {
        self.raw.drain(..self.used);
        self.used = 0;
        let have = self.raw.len();
        self.raw.resize(have + self.chunk_bytes, 0);
        let into = self.raw.get_mut(have..).unwrap_or_default();
        let got = read_at(file, into, self.behind.at + have as u64)?;
        self.raw.truncate(have + got);
        self.end = got == 0;
        Ok(())
    }

    /// Out of a broken part: to the next magic number; false when the file ends before. What could
    /// be the beginning of one stays unread.
    fn resync(&mut self, file: &File) -> io::Result<bool> {
        loop {
            let rest = self.raw.get(self.used..).unwrap_or_default();
            if let Some(found) = memmem::find(rest, &MAGIC) {
                self.pass(found);
                self.behind.in_damage = false;
                return Ok(true);
            }
            let keep = rest.len().min(MAGIC.len() - 1);
            self.pass(rest.len() - keep);
            if self.end {
                return Ok(false);
            }
            self.fill(file)?;
        }
    }
}

/// Decodes one whole frame; of a damaged one nothing is kept.
fn decode_frame(frame: &[u8], into: &mut Vec<u8>) -> bool {
    into.clear();
    let decoded = zstd::stream::read::Decoder::new(frame).and_then(|mut decoder| {
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        decoder.take(DECODED_FRAME_BYTES_MAX as u64 + 1).read_to_end(into)
    });
    let whole = decoded.is_ok_and(|bytes| bytes <= DECODED_FRAME_BYTES_MAX);
    if !whole {
        into.clear();
        into.shrink_to(4 << 20);
    }
    whole
}
