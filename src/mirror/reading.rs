//! One file in the middle of being read: where to begin, and the next batch of it.

use std::io;
use std::os::unix::ffi::OsStrExt;

use super::commit::Batch;
use super::discover::Found;
use super::place::Encoding;
use super::plan::{self, Cursor, Plan, Stat};
use super::read::{self, Chunks, Opened, hash};
use super::split::{Line, Splitter, has_newline};
use super::{Known, STEP_BYTES_MAX, STEP_RECORDS_MAX, Work};
use crate::source::{Flaws, Record, Span, State, What, read_line, read_oversized};

/// A document (sidecar) beyond this size is not read, bytes.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// Where the reading of a file begins.
#[derive(Debug)]
pub(super) enum Start {
    /// Its last line is unfinished still: nothing to read. Remembered so that a line of gigabytes
    /// is not searched from its start at every event.
    Unfinished {
        /// Where the line begins.
        position: u64,
        /// How far it has been searched for its end.
        searched: u64,
    },
    /// Here.
    At {
        /// The file.
        opened: Opened,
        /// Where we were, or the start.
        cursor: Cursor,
        /// The generation that goes on.
        generation: Option<i64>,
        /// The generation whose place a new one takes.
        replaces: Option<i64>,
    },
}

impl Start {
    /// Opens a file and decides.
    pub(super) fn look(
        found: &Found,
        known: Option<&Known>,
        searched: Option<(u64, u64)>,
    ) -> io::Result<Self> {
        let opened = read::open(&found.path, found.encoding)?;
        let goes_on = match known {
            Some(known) => {
                !found.hint.place.is_document()
                    && plan::plan(&known.cursor, &opened.stat) != Plan::Restart
                    && opened.matches(&known.cursor)?
            }
            None => false,
        };
        let Some(known) = known.filter(|_| goes_on) else {
            let replaces = known.map(|known| known.generation);
            return Ok(Self::At { opened, cursor: Cursor::default(), generation: None, replaces });
        };
        let cursor = known.cursor;
        if let Some((position, to)) = searched.filter(|_| found.encoding == Encoding::Plain)
            && position == cursor.position
        {
            let (searched, ended) = search(&opened, to)?;
            if !ended {
                return Ok(Self::Unfinished { position, searched });
            }
        }
        Ok(Self::At { opened, cursor, generation: Some(known.generation), replaces: None })
    }
}

/// Looks for a newline from an offset on; where it stopped, and whether it found one.
fn search(opened: &Opened, from: u64) -> io::Result<(u64, bool)> {
    let mut at = from;
    loop {
        let chunk = opened.read_chunk(at)?;
        if has_newline(&chunk) {
            return Ok((at, true));
        }
        if chunk.is_empty() {
            return Ok((at, false));
        }
        at += chunk.len() as u64;
    }
}

/// A file in the middle of being read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) found: Found,
    pub(super) generation: Option<i64>,
    pub(super) replaces: Option<i64>,
    /// Bytes read in a row, for fairness.
    pub(super) turn_bytes: u64,
    from: u64,
    /// The frame that holds the last complete line: (start in the file, decoded start).
    frame: (u64, u64),
    state: State,
    chunks: Chunks,
    splitter: Splitter,
    damaged_before: u64,
}

impl Reading {
    pub(super) fn new(
        found: Found,
        opened: Opened,
        cursor: &Cursor,
        generation: Option<i64>,
        replaces: Option<i64>,
        state: State,
    ) -> io::Result<Self> {
        Ok(Self {
            found,
            generation,
            replaces,
            turn_bytes: 0,
            from: cursor.position,
            frame: (cursor.frame_at, cursor.frame_position),
            state,
            chunks: opened.into_chunks(cursor)?,
            splitter: Splitter::new(cursor.position),
            damaged_before: 0,
        })
    }

    /// The next part of the file, parsed; with its bytes, and whether the file has no more now.
    pub(super) fn batch(
        &mut self,
        root_id: i64,
        first_seen_ms: i64,
        work: &mut Work,
    ) -> io::Result<(Batch, usize, bool)> {
        let mut records = Vec::new();
        let mut flaws = Flaws::default();
        let mut bytes = 0;
        let mut end = false;
        if self.found.hint.place.is_document() {
            bytes = self.document(&mut records, &mut flaws)?;
            end = true;
        }
        let mut chunk = Vec::new();
        while !end && bytes < STEP_BYTES_MAX && records.len() < STEP_RECORDS_MAX {
            if !self.chunks.next_into(&mut chunk)? {
                end = true;
                break;
            }
            bytes += chunk.len();
            let state = &mut self.state;
            self.splitter.feed(&chunk, |line| {
                work.lines_parsed += 1;
                parse(state, line, &mut records, &mut flaws);
            });
            if let Some(frame) = self.chunks.frame()
                && self.splitter.pending_bytes() == 0
            {
                self.frame = frame;
            }
        }
        work.bytes_parsed += bytes as u64;
        self.turn_bytes += bytes as u64;
        let to = self.cursor(end)?;
        let damaged = self.chunks.damaged - self.damaged_before;
        self.damaged_before = self.chunks.damaged;
        let batch = Batch {
            generation: self.generation,
            replaces: self.replaces,
            root_id,
            first_seen_ms,
            agent: self.found.agent,
            place: self.found.hint.place,
            path: self.found.path.as_os_str().as_bytes().to_vec(),
            stem: self.found.hint.stem.clone(),
            from: self.from,
            state: serde_json::to_string(&self.state).map_err(io::Error::other)?,
            key: self.state.key(),
            records,
            flaws,
            damaged,
            to,
        };
        self.from = to.position;
        Ok((batch, bytes, end))
    }

    /// The cursor behind what has been read. What the file was is noted only at its end, so that a
    /// kill before leaves it looking changed.
    fn cursor(&self, end: bool) -> io::Result<Cursor> {
        let position = self.splitter.position();
        let (frame_at, frame_position) = match self.found.encoding {
            Encoding::Plain => (position, position),
            Encoding::ZstdFrames if end => self.chunks.frame().unwrap_or(self.frame),
            Encoding::ZstdFrames => self.frame,
            Encoding::ZstdStream => (0, 0),
        };
        // A line that goes over the end of its frame is begun again from that frame.
        let (frame_at, frame_position) =
            if frame_position > position { self.frame } else { (frame_at, frame_position) };
        let (head, tail) = self.chunks.opened.windows(position, frame_at)?;
        let stat = if end { self.chunks.opened.stat } else { Stat::default() };
        Ok(Cursor { stat, position, frame_at, frame_position, head, tail })
    }

    /// A whole document as one line; its length.
    fn document(
        &mut self,
        records: &mut Vec<(Record, i64)>,
        flaws: &mut Flaws,
    ) -> io::Result<usize> {
        let (mut whole, mut chunk) = (Vec::new(), Vec::new());
        while self.chunks.next_into(&mut chunk)? && whole.len() <= DOCUMENT_BYTES_MAX {
            whole.extend_from_slice(&chunk);
        }
        if whole.len() <= DOCUMENT_BYTES_MAX {
            for byte in whole.iter_mut().filter(|byte| **byte == b'\n') {
                *byte = b' ';
            }
            let line = Line::Whole { bytes: &whole, offset: 0 };
            parse(&mut self.state, line, records, flaws);
        }
        self.splitter = Splitter::new(whole.len() as u64);
        Ok(whole.len())
    }
}

/// One line's records, each message with the hash of its object's bytes.
fn parse(state: &mut State, line: Line<'_>, records: &mut Vec<(Record, i64)>, flaws: &mut Flaws) {
    let mut found = Vec::new();
    let (bytes, offset) = match line {
        Line::Whole { bytes, offset } => {
            flaws.add(read_line(state, bytes, offset, &mut found));
            (bytes, offset)
        }
        Line::Oversized { head, tail, span } => {
            flaws.add(read_oversized(state, head, tail, span, &mut found));
            (&[][..], span.offset)
        }
    };
    let mut last: Option<(Span, i64)> = None;
    for record in found {
        let hash = match (&record.what, last) {
            (What::Message(_), Some((span, hash))) if span == record.span => hash,
            (What::Message(_), _) => {
                let hash = object_hash(bytes, offset, record.span);
                last = Some((record.span, hash));
                hash
            }
            _ => 0,
        };
        records.push((record, hash));
    }
}

/// Zero for an object whose bytes are not all here: its text cannot be verified.
fn object_hash(line: &[u8], offset: u64, span: Span) -> i64 {
    let start = usize::try_from(span.offset.saturating_sub(offset)).unwrap_or(usize::MAX);
    let length = usize::try_from(span.len).unwrap_or(usize::MAX);
    let object = start.checked_add(length).and_then(|end| line.get(start..end));
    object.map_or(0, hash)
}
