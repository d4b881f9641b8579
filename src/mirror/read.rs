//! Reads what is new in one file: opens it safely, checks that it still is what we read before, and
//! hands out decoded chunks from there on.
//!
//! A plain file is read with `pread`; no mapping, since a truncation under a mapping is a signal. A
//! dsh log is decoded frame by frame, and only whole frames count. A Codex `.zst` is one stream,
//! decoded from its start. Memory is bounded by the chunk and the largest frame taken.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use xxhash_rust::xxh3::xxh3_64;

use super::discover;
use super::frames::{Frames, Mark};
use super::place::Encoding;
use super::plan::{self, Cursor, Plan, Stat, WINDOW_BYTES};
use super::window::Seen;

/// Bytes of one read.
pub const CHUNK_BYTES: usize = 1 << 20;
/// The largest window a frame may ask for, as a power of two: 128 MiB.
pub const WINDOW_LOG_MAX: u32 = 27;

/// An open transcript.
#[derive(Debug)]
pub struct Opened {
    file: File,
    /// What it was when it was opened; any later write looks changed next time.
    pub stat: Stat,
    encoding: Encoding,
}

/// A 64-bit hash as SQLite keeps it.
pub fn hash(bytes: &[u8]) -> i64 {
    xxh3_64(bytes).cast_signed()
}

/// What the system says of a failure, without its number.
pub fn words(error: &io::Error) -> String {
    let said = error.to_string();
    match said.find(" (os error ") {
        Some(end) => said.get(..end).unwrap_or(&said).to_lowercase(),
        None => said,
    }
}

/// Opens a regular file without ever blocking on it.
pub fn open(path: &Path, encoding: Encoding) -> io::Result<Opened> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::CLOEXEC).bits()).unwrap_or(0);
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(Opened { file, stat: discover::stat(&meta), encoding })
}

impl Opened {
    /// The ends of what has been read before, if they are still there; `None`: another content.
    pub fn resume(&self, cursor: &Cursor) -> io::Result<Option<Seen>> {
        let found = match self.encoding {
            Encoding::Plain => self.seen(cursor.position)?,
            Encoding::ZstdFrames => self.seen(cursor.frame_at)?,
            // It was broken, or not yet written to its end, and has changed: what was told of that
            // is of a content that is no more.
            Encoding::ZstdStream
                if cursor.in_damage && plan::plan(cursor, &self.stat) != Plan::Unchanged =>
            {
                None
            }
            Encoding::ZstdStream => self.stream_seen(cursor.position)?,
        };
        Ok(found.filter(|seen| seen.windows() == (cursor.head, cursor.tail)))
    }

    /// How it is read.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Raw bytes from an offset on; empty at the end.
    pub fn read_chunk(&self, at: u64) -> io::Result<Vec<u8>> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let got = read_at(&self.file, &mut chunk, at)?;
        chunk.truncate(got);
        Ok(chunk)
    }

    /// The ends of the first `end` raw bytes; `None` if there are not that many.
    fn seen(&self, end: u64) -> io::Result<Option<Seen>> {
        let length = end.min(WINDOW_BYTES);
        let mut windows = Vec::with_capacity(2);
        for at in [0, end - length] {
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
            match self.file.read_exact_at(&mut bytes, at) {
                Ok(()) => windows.push(bytes),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let tail = windows.pop().unwrap_or_default();
        Ok(Some(Seen::resumed(windows.pop().unwrap_or_default(), tail)))
    }

    /// The same over the decoded stream, so that a file keeps its rows when it is packed.
    fn stream_seen(&self, end: u64) -> io::Result<Option<Seen>> {
        let mut seen = Seen::default();
        if end == 0 {
            return Ok(Some(seen));
        }
        let mut decoder = self.decoder(0)?.take(end);
        let mut left = end;
        let mut chunk = vec![0; CHUNK_BYTES];
        while left > 0 {
            match decoder.read(&mut chunk) {
                Ok(got @ 1..) => {
                    seen.pass(chunk.get(..got).unwrap_or_default());
                    left -= got as u64;
                }
                // Broken or ended before: another content, unless the disk failed.
                Err(error) if error.raw_os_error().is_some() => return Err(error),
                Ok(_) | Err(_) => return Ok(None),
            }
        }
        Ok(Some(seen))
    }

    fn decoder(&self, at: u64) -> io::Result<Decoder> {
        let mut file = self.file.try_clone()?;
        io::Seek::seek(&mut file, io::SeekFrom::Start(at))?;
        let mut decoder = zstd::stream::read::Decoder::new(file)?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        Ok(decoder)
    }

    /// Chunks of about `chunk_bytes` from a cursor on; `seen` is what its `resume` gave.
    pub fn into_chunks(
        self,
        cursor: &Cursor,
        seen: Seen,
        chunk_bytes: usize,
    ) -> io::Result<Chunks> {
        let mut mark = Mark { in_damage: cursor.in_damage, ..Mark::default() };
        let inner = match self.encoding {
            Encoding::Plain => Inner::Plain { at: cursor.position },
            Encoding::ZstdFrames => {
                mark.at = cursor.frame_at;
                mark.decoded = cursor.frame_position;
                mark.seen = seen;
                let skip = cursor.position.saturating_sub(cursor.frame_position);
                Inner::Frames(Box::new(Frames::new(mark.clone(), skip, chunk_bytes)))
            }
            Encoding::ZstdStream => {
                let mut decoder = self.decoder(0)?;
                let skipped = skip(&mut decoder, cursor.position);
                Inner::Stream(skipped.then(|| StreamDecoder(Box::new(decoder))))
            }
        };
        Ok(Chunks { opened: self, inner, stream: mark, chunk_bytes })
    }

    /// Exactly `bytes` decoded bytes at a decoded offset. In a file of frames decoding begins at `frame`:
    /// a place in the file, and the decoded bytes before it.
    pub fn read_span(&self, frame: (u64, u64), offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        let mut span = vec![0; length];
        match self.encoding {
            Encoding::Plain => self.file.read_exact_at(&mut span, offset)?,
            Encoding::ZstdFrames => return self.span_of_frames(frame, offset, length),
            Encoding::ZstdStream => {
                let mut decoder = self.decoder(0)?;
                if !skip(&mut decoder, offset) {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                decoder.read_exact(&mut span)?;
            }
        }
        Ok(span)
    }
}

impl Opened {
    fn span_of_frames(
        &self,
        (at, decoded): (u64, u64),
        offset: u64,
        length: usize,
    ) -> io::Result<Vec<u8>> {
        let (at, decoded) = if decoded <= offset { (at, decoded) } else { (0, 0) };
        let mut frames = Frames::new(Mark { at, decoded, ..Mark::default() }, 0, CHUNK_BYTES);
        let (mut before, mut chunk) = (decoded, Vec::new());
        let mut span = Vec::with_capacity(length);
        while span.len() < length && frames.next_into(&self.file, &mut chunk)? {
            let from = usize::try_from(offset.saturating_sub(before)).unwrap_or(usize::MAX);
            let wanted = chunk.get(from..).unwrap_or_default();
            span.extend_from_slice(wanted.get(..length - span.len()).unwrap_or(wanted));
            before = before.saturating_add(chunk.len() as u64);
        }
        if span.len() < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(span) }
    }
}

type Decoder = zstd::stream::read::Decoder<'static, io::BufReader<File>>;

/// Reads and forgets; false when the stream ends (or breaks) before.
fn skip(decoder: &mut impl Read, bytes: u64) -> bool {
    io::copy(&mut decoder.take(bytes), &mut io::sink()).is_ok_and(|got| got == bytes)
}

/// Decoded chunks of a file, in order.
#[derive(Debug)]
pub struct Chunks {
    /// The file.
    pub opened: Opened,
    inner: Inner,
    /// What a [`Mark`] says of a file that is no walk over frames.
    stream: Mark,
    chunk_bytes: usize,
}

#[derive(Debug)]
enum Inner {
    Plain { at: u64 },
    Frames(Box<Frames>),
    Stream(Option<StreamDecoder>),
}

/// A decoder, which has nothing to show of itself.
struct StreamDecoder(Box<Decoder>);

impl std::fmt::Debug for StreamDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamDecoder")
    }
}

impl Chunks {
    /// The next decoded bytes into `chunk` (replaced); false at the end of what is readable now.
    pub fn next_into(&mut self, chunk: &mut Vec<u8>) -> io::Result<bool> {
        match &mut self.inner {
            Inner::Plain { at } => {
                // No larger than the file: a thousand small ones would clear a gigabyte.
                let left = self.opened.stat.size.cast_unsigned().saturating_sub(*at);
                let want = usize::try_from(left.saturating_add(1)).unwrap_or(usize::MAX);
                chunk.resize(want.min(self.chunk_bytes), 0);
                let got = read_at(&self.opened.file, chunk, *at)?;
                chunk.truncate(got);
                *at += got as u64;
                Ok(got > 0)
            }
            Inner::Frames(frames) => frames.next_into(&self.opened.file, chunk),
            Inner::Stream(decoder) => {
                chunk.clear();
                if self.opened.stat.size == 0 {
                    // Nothing has been written yet, which is no damage.
                    return Ok(false);
                }
                chunk.resize(self.chunk_bytes, 0);
                match decoder.as_mut().map(|open| open.0.read(chunk)) {
                    Some(Ok(got)) => {
                        chunk.truncate(got);
                        self.stream.in_damage &= got > 0;
                        return Ok(got > 0);
                    }
                    Some(Err(error)) if error.raw_os_error().is_some() => return Err(error),
                    Some(Err(_)) | None => {}
                }
                // What was decoded before the damage counts; what lies behind it cannot be reached.
                *decoder = None;
                chunk.clear();
                self.stream.damaged += u64::from(!self.stream.in_damage);
                self.stream.in_damage = true;
                Ok(false)
            }
        }
    }

    /// Where to begin again after everything handed out so far. Of a file without frames it tells
    /// the damage only.
    pub fn mark(&self) -> &Mark {
        match &self.inner {
            Inner::Frames(frames) => frames.mark(),
            Inner::Plain { .. } | Inner::Stream(_) => &self.stream,
        }
    }
}

/// Reads at an offset, again if a signal came between.
pub(super) fn read_at(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match file.read_at(into, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
