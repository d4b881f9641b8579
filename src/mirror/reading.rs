//! One file in the middle of being read: where to begin, and the next batch of it.

use std::io;
use std::os::unix::ffi::OsStrExt;

use super::commit::{Batch, Part, Replaces, Rereading};
use super::discover::Found;
use super::frames::Mark;
use super::place::Encoding;
use super::plan::{self, Cursor, Plan, Stat};
use super::read::{self, Chunks, Opened, hash};
use super::split::{Line, Splitter, has_newline};
use super::window::Seen;
use super::{Known, Limits, Work};
use crate::source::{Span, State, What, read_line, read_oversized};

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
        cursor: Box<Cursor>,
        /// The ends of what was read before it.
        seen: Seen,
        /// The generation that goes on.
        generation: Option<i64>,
        /// Whose place it takes.
        replaces: Replaces,
        /// Behind it nothing is read for now, decoded bytes.
        until: Option<u64>,
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
        let seen = match known {
            Some(_) if found.hint.place.is_document() => None,
            Some(known) if plan::plan(&known.cursor, &opened.stat) == Plan::Restart => None,
            Some(known) => opened.resume(&known.cursor)?,
            None => None,
        };
        let (Some(known), Some(seen)) = (known, seen) else {
            let replaces =
                known.map_or(Replaces::Nothing, |known| Replaces::AtOnce(known.generation));
            return Ok(Self::afresh(opened, replaces));
        };
        // The two ends are the same; that it changed without growing is told by its times alone.
        let rewritten = plan::is_rewritten(&known.cursor.stat, &opened.stat);
        if known.is_outdated() || known.again.is_some() || rewritten {
            return Self::again(opened, known, known.again);
        }
        let cursor = known.cursor;
        if let Some((position, to)) = searched.filter(|_| found.encoding == Encoding::Plain)
            && position == cursor.position
            && !known.gone
        {
            let (searched, ended) = search(&opened, to)?;
            if !ended {
                return Ok(Self::Unfinished { position, searched });
            }
        }
        let generation = Some(known.generation);
        let cursor = Box::new(cursor);
        let replaces = Replaces::Nothing;
        Ok(Self::At { opened, cursor, seen, generation, replaces, until: None })
    }

    /// The generation that goes on.
    pub(super) fn generation(&self) -> Option<i64> {
        match self {
            Self::At { generation, .. } => *generation,
            Self::Unfinished { .. } => None,
        }
    }

    /// From the first byte.
    fn afresh(opened: Opened, replaces: Replaces) -> Self {
        let (cursor, seen) = (Box::default(), Seen::default());
        Self::At { opened, cursor, seen, generation: None, replaces, until: None }
    }

    /// The same bytes anew, since the adapter has learnt something: what they said stands until all
    /// of them have been read. `begun` is how far that has come.
    pub(super) fn again(
        opened: Opened,
        known: &Known,
        begun: Option<(i64, Cursor)>,
    ) -> io::Result<Self> {
        let position = known.cursor.position;
        let rereading = Rereading { old: known.generation, position, done: false };
        let replaces = Replaces::WhenRead(rereading);
        // What lies behind is news, which is told as such when this is done. A compressed file that
        // has not changed is read to its end, where its damage is counted.
        let whole = plan::plan(&known.cursor, &opened.stat) == Plan::Unchanged
            && opened.encoding() != Encoding::Plain;
        let until = (!whole).then_some(position);
        if let Some((generation, cursor)) = begun
            && cursor.position <= position
            && let Some(seen) = opened.resume(&cursor)?
        {
            let (cursor, generation) = (Box::new(cursor), Some(generation));
            return Ok(Self::At { opened, cursor, seen, generation, replaces, until });
        }
        let (cursor, seen) = (Box::default(), Seen::default());
        Ok(Self::At { opened, cursor, seen, generation: None, replaces, until })
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

/// Where a file belongs, and since when it has been there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub(super) root_id: i64,
    pub(super) first_seen_ms: i64,
}

/// A file in the middle of being read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) found: Found,
    pub(super) generation: Option<i64>,
    pub(super) replaces: Replaces,
    /// Behind it nothing is read for now, decoded bytes.
    until: Option<u64>,
    /// It is what it was when it was last read to its end.
    unchanged: bool,
    /// Bytes read in a row, for fairness.
    pub(super) turn_bytes: u64,
    began: u64,
    from: u64,
    state: State,
    chunks: Chunks,
    splitter: Splitter,
    /// The last place to begin again at that lies at or before the last complete line.
    mark: Mark,
    /// Damage that has been told in a batch.
    damaged_told: u64,
    /// The ends of all that was read, and of all up to the last complete line.
    read: Seen,
    done: Seen,
}

impl Reading {
    /// Goes on where `start` says, with the adapter in `state`; `None`: there is nothing to read.
    pub(super) fn new(
        found: Found,
        start: Start,
        state: State,
        known: Option<&Known>,
        limits: Limits,
    ) -> io::Result<Option<Self>> {
        let Start::At { opened, cursor, seen, generation, replaces, until } = start else {
            return Ok(None);
        };
        let unchanged =
            known.is_some_and(|known| plan::plan(&known.cursor, &opened.stat) == Plan::Unchanged);
        let chunks = opened.into_chunks(&cursor, seen.clone(), limits.chunk_bytes)?;
        Ok(Some(Self {
            found,
            generation,
            replaces,
            until,
            unchanged,
            turn_bytes: 0,
            began: cursor.position,
            from: cursor.position,
            state,
            mark: chunks.mark().clone(),
            chunks,
            splitter: Splitter::new(cursor.position),
            damaged_told: 0,
            read: seen.clone(),
            done: seen,
        }))
    }

    /// Goes on with what a batch has begun or continued.
    pub(super) fn goes_on(&mut self, generation: i64) {
        self.generation = Some(generation);
        if let Replaces::AtOnce(_) = self.replaces {
            self.replaces = Replaces::Nothing;
        }
    }

    /// Whether a line was completed since it was taken up. Before that it must not give way: what was
    /// read would be read again, and two files with giant lines would hinder each other for ever.
    pub(super) fn has_advanced(&self) -> bool {
        self.from > self.began
    }

    /// How far the unfinished last line of a plain file has been read: where it begins, and to where.
    pub(super) fn unfinished(&self) -> Option<(u64, u64)> {
        let pending = self.splitter.pending_bytes();
        let position = self.splitter.position();
        (pending > 0).then_some((position, position.saturating_add(pending)))
    }

    /// The next part of the file, parsed; with its bytes, and whether the file has no more now.
    pub(super) fn batch(
        &mut self,
        origin: Origin,
        limits: Limits,
        work: &mut Work,
    ) -> io::Result<(Batch, usize, bool)> {
        let mut parts = Parts::default();
        let mut bytes = 0;
        let mut end = false;
        if self.found.hint.place.is_document() {
            bytes = self.document(&mut parts)?;
            end = true;
        }
        let mut chunk = Vec::new();
        while !end && bytes < limits.step_bytes && parts.records < limits.step_records {
            end = !self.chunks.next_into(&mut chunk)?;
            let before = self.splitter.position() + self.splitter.pending_bytes();
            if let Some(until) = self.until {
                let left = usize::try_from(until.saturating_sub(before)).unwrap_or(usize::MAX);
                end |= chunk.len() >= left;
                chunk.truncate(left);
            }
            bytes += chunk.len();
            let state = &mut self.state;
            self.splitter.feed(&chunk, |line| {
                work.lines_parsed += 1;
                parts.take(state, line);
            });
            self.follow(&chunk, before);
        }
        work.bytes_parsed += bytes as u64;
        self.turn_bytes += bytes as u64;
        let to = self.cursor(end);
        let damaged = self.mark.damaged - self.damaged_told;
        if let Replaces::WhenRead(rereading) = &mut self.replaces {
            rereading.done = end;
        }
        self.damaged_told = self.mark.damaged;
        let batch = Batch {
            generation: self.generation,
            replaces: self.replaces,
            root_id: origin.root_id,
            first_seen_ms: origin.first_seen_ms,
            agent: self.found.agent,
            place: self.found.hint.place,
            path: self.found.path.as_os_str().as_bytes().to_vec(),
            stem: self.found.hint.stem.clone(),
            from: self.from,
            state: serde_json::to_string(&self.state).map_err(io::Error::other)?,
            parts: parts.all_of(&self.state),
            damaged,
            to,
        };
        self.from = to.position;
        Ok((batch, bytes, end))
    }

    /// Remembers the ends of what was read, and where to begin again. `at` is the chunk's offset.
    fn follow(&mut self, chunk: &[u8], at: u64) {
        let complete = self.splitter.position().saturating_sub(at);
        let complete = usize::try_from(complete).unwrap_or(usize::MAX).min(chunk.len());
        if complete > 0 {
            self.done = self.read.clone();
            self.done.pass(chunk.get(..complete).unwrap_or_default());
        }
        self.read.pass(chunk);
        // A line that goes over the end of its frame is begun again from that frame.
        if self.chunks.mark().decoded <= self.splitter.position() {
            self.mark = self.chunks.mark().clone();
        }
    }

    /// The cursor behind what has been read. What the file was is noted only at its end, so that a
    /// kill before leaves it looking changed.
    fn cursor(&self, end: bool) -> Cursor {
        let position = self.splitter.position();
        let (frame_at, frame_position, seen) = match self.found.encoding {
            Encoding::Plain => (position, position, &self.done),
            Encoding::ZstdFrames => (self.mark.at, self.mark.decoded, &self.mark.seen),
            Encoding::ZstdStream => (0, 0, &self.done),
        };
        let (head, tail) = seen.windows();
        let to_its_end = end && (self.until.is_none() || self.unchanged);
        let stat = if to_its_end { self.chunks.opened.stat } else { Stat::default() };
        let in_damage = self.mark.in_damage;
        Cursor { stat, position, frame_at, frame_position, in_damage, head, tail }
    }

    /// A whole document as one line; its length.
    fn document(&mut self, parts: &mut Parts) -> io::Result<usize> {
        let (mut whole, mut chunk) = (Vec::new(), Vec::new());
        while whole.len() <= DOCUMENT_BYTES_MAX && self.chunks.next_into(&mut chunk)? {
            whole.extend_from_slice(&chunk);
        }
        self.done.pass(&whole);
        if whole.len() <= DOCUMENT_BYTES_MAX {
            for byte in whole.iter_mut().filter(|byte| **byte == b'\n') {
                *byte = b' ';
            }
            let line = Line::Whole { bytes: &whole, offset: 0 };
            parts.take(&mut self.state, line);
        }
        self.splitter = Splitter::new(whole.len() as u64);
        Ok(whole.len())
    }
}

/// What lines say, by the session that the file tells with them.
#[derive(Debug, Default)]
struct Parts {
    parts: Vec<Part>,
    /// Records in all of them.
    records: usize,
}

impl Parts {
    /// One line's records, each message with the hash of its object's bytes.
    fn take(&mut self, state: &mut State, line: Line<'_>) {
        let mut found = Vec::new();
        let (bytes, offset, flaws) = match line {
            Line::Whole { bytes, offset } => {
                (bytes, offset, read_line(state, bytes, offset, &mut found))
            }
            Line::Oversized { head, tail, span } => {
                (&[][..], span.offset, read_oversized(state, head, tail, span, &mut found))
            }
        };
        let Some(part) = self.of(state) else { return };
        part.flaws.add(flaws);
        let before = part.records.len();
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
            part.records.push((record, hash));
        }
        let taken = part.records.len() - before;
        self.records += taken;
    }

    /// The part of the session that the file tells now.
    fn of(&mut self, state: &State) -> Option<&mut Part> {
        let same = self.parts.last().is_some_and(|part| part.key == state.key());
        if !same {
            self.parts.push(Part { key: state.key(), ..Part::default() });
        }
        self.parts.last_mut()
    }

    /// All of them; the last one is that of the session told at the end.
    fn all_of(mut self, state: &State) -> Vec<Part> {
        self.of(state);
        self.parts
    }
}

/// Zero for an object whose bytes are not all here: its text cannot be verified.
fn object_hash(line: &[u8], offset: u64, span: Span) -> i64 {
    let start = usize::try_from(span.offset.saturating_sub(offset)).unwrap_or(usize::MAX);
    let length = usize::try_from(span.len).unwrap_or(usize::MAX);
    let object = start.checked_add(length).and_then(|end| line.get(start..end));
    object.map_or(0, hash)
}
