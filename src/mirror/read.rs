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

use memchr::memmem;
use rustix::fs::OFlags;
use xxhash_rust::xxh3::xxh3_64;

use super::discover;
use super::place::Encoding;
use super::plan::{Cursor, Stat, WINDOW_BYTES};
use crate::source::zframe::{FrameEnd, MAGIC, frame_end};

/// Bytes of one read.
pub const CHUNK_BYTES: usize = 1 << 20;
/// A compressed frame longer than this is not read.
const FRAME_BYTES_MAX: usize = 64 << 20;
/// The largest window a frame may ask for, as a power of two: 128 MiB.
const WINDOW_LOG_MAX: u32 = 27;

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
    /// Whether the bytes we have read before are still there.
    pub fn matches(&self, cursor: &Cursor) -> io::Result<bool> {
        let (head, tail) = self.windows(cursor.position, cursor.frame_at)?;
        Ok(head == cursor.head && tail == cursor.tail)
    }

    /// Hashes of the windows at the head and before the place where reading goes on.
    pub fn windows(&self, position: u64, frame_at: u64) -> io::Result<((u64, i64), (u64, i64))> {
        let end = match self.encoding {
            Encoding::Plain => position,
            Encoding::ZstdFrames => frame_at,
            Encoding::ZstdStream => return self.stream_windows(position),
        };
        let length = end.min(WINDOW_BYTES);
        Ok((self.window(0, length)?, self.window(end - length, length)?))
    }

    /// Raw bytes from an offset on; empty at the end.
    pub fn read_chunk(&self, at: u64) -> io::Result<Vec<u8>> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let got = read_at(&self.file, &mut chunk, at)?;
        chunk.truncate(got);
        Ok(chunk)
    }

    fn window(&self, at: u64, length: u64) -> io::Result<(u64, i64)> {
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        match self.file.read_exact_at(&mut bytes, at) {
            Ok(()) => Ok((length, hash(&bytes))),
            // Shorter than what we read: another content, and no error.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok((0, -1)),
            Err(error) => Err(error),
        }
    }

    /// The same windows over the decoded stream, so that a file keeps its rows when it is packed.
    fn stream_windows(&self, position: u64) -> io::Result<((u64, i64), (u64, i64))> {
        let length = usize::try_from(position.min(WINDOW_BYTES)).unwrap_or(0);
        let mut decoder = self.decoder(0)?;
        let mut head = vec![0; length];
        let mut kept: Vec<u8> = Vec::new();
        if decoder.read_exact(&mut head).is_err() {
            return Ok(((0, -1), (0, -1)));
        }
        kept.extend_from_slice(&head);
        let mut left = position - length as u64;
        let mut chunk = vec![0; CHUNK_BYTES];
        while left > 0 {
            let want = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let got = decoder.read(chunk.get_mut(..want).unwrap_or_default()).unwrap_or(0);
            if got == 0 {
                return Ok(((0, -1), (0, -1)));
            }
            kept.extend_from_slice(chunk.get(..got).unwrap_or_default());
            kept.drain(..kept.len().saturating_sub(length));
            left -= got as u64;
        }
        Ok(((length as u64, hash(&head)), (length as u64, hash(&kept))))
    }

    fn decoder(&self, at: u64) -> io::Result<Decoder> {
        let mut file = self.file.try_clone()?;
        io::Seek::seek(&mut file, io::SeekFrom::Start(at))?;
        let mut decoder = zstd::stream::read::Decoder::new(file)?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        Ok(decoder)
    }

    /// Chunks from a cursor on.
    pub fn into_chunks(self, cursor: &Cursor) -> io::Result<Chunks> {
        let inner = match self.encoding {
            Encoding::Plain => Inner::Plain { at: cursor.position },
            Encoding::ZstdFrames => Inner::Frames(Frames {
                raw: Vec::new(),
                used: 0,
                raw_at: cursor.frame_at,
                decoded: cursor.frame_position,
                skip: cursor.position - cursor.frame_position,
                end: false,
            }),
            Encoding::ZstdStream => {
                let mut decoder = self.decoder(0)?;
                let skipped = skip(&mut decoder, cursor.position);
                Inner::Stream { decoder: skipped.then(|| StreamDecoder(Box::new(decoder))) }
            }
        };
        Ok(Chunks { opened: self, inner, damaged: 0 })
    }

    /// Exactly `bytes` decoded bytes at a decoded offset, starting the decoding at a frame.
    pub fn read_span(&self, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        let mut span = vec![0; length];
        match self.encoding {
            Encoding::Plain => self.file.read_exact_at(&mut span, offset)?,
            Encoding::ZstdFrames | Encoding::ZstdStream => {
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
    /// Damaged frames stepped over so far.
    pub damaged: u64,
}

#[derive(Debug)]
enum Inner {
    Plain { at: u64 },
    Frames(Frames),
    Stream { decoder: Option<StreamDecoder> },
}

/// A walk over the frames of a dsh log.
#[derive(Debug)]
struct Frames {
    /// Bytes of the file; those before `used` are done with.
    raw: Vec<u8>,
    used: usize,
    /// Offset in the file of `raw[used]`.
    raw_at: u64,
    /// Decoded offset of `raw_at`.
    decoded: u64,
    /// Decoded bytes of the first frame that have been read before.
    skip: u64,
    end: bool,
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
        chunk.clear();
        match &mut self.inner {
            Inner::Plain { at } => {
                chunk.resize(CHUNK_BYTES, 0);
                let got = read_at(&self.opened.file, chunk, *at)?;
                chunk.truncate(got);
                *at += got as u64;
                Ok(got > 0)
            }
            Inner::Frames(frames) => {
                let more = frames.next_frame(&self.opened.file, chunk, &mut self.damaged)?;
                Ok(more)
            }
            Inner::Stream { decoder } => {
                let Some(open) = decoder else {
                    self.damaged += 1;
                    return Ok(false);
                };
                chunk.resize(CHUNK_BYTES, 0);
                if let Ok(got) = open.0.read(chunk) {
                    chunk.truncate(got);
                    return Ok(got > 0);
                }
                // What was decoded before the damage counts; what lies behind it cannot be reached.
                *decoder = None;
                chunk.clear();
                self.damaged += 1;
                Ok(false)
            }
        }
    }

    /// The frame behind everything handed out: (offset in the file, decoded offset).
    pub fn frame(&self) -> Option<(u64, u64)> {
        match &self.inner {
            Inner::Plain { .. } => None,
            Inner::Frames(frames) => Some((frames.raw_at, frames.decoded)),
            Inner::Stream { .. } => Some((0, 0)),
        }
    }
}

impl Frames {
    /// Decodes the next whole frame; steps over damaged ones.
    fn next_frame(
        &mut self,
        file: &File,
        chunk: &mut Vec<u8>,
        damaged: &mut u64,
    ) -> io::Result<bool> {
        loop {
            let left = self.raw.len() - self.used;
            match frame_end(&self.raw, self.used) {
                FrameEnd::Complete(end) => {
                    let frame = self.raw.get(self.used..end).unwrap_or_default();
                    let whole = decode_frame(frame, chunk);
                    self.pass(end - self.used);
                    self.decoded += chunk.len() as u64;
                    let skip = usize::try_from(self.skip).unwrap_or(usize::MAX).min(chunk.len());
                    chunk.drain(..skip);
                    self.skip = 0;
                    if !whole {
                        *damaged += 1;
                    }
                    if !chunk.is_empty() {
                        return Ok(true);
                    }
                }
                FrameEnd::Incomplete if !self.end && left < FRAME_BYTES_MAX => self.fill(file)?,
                FrameEnd::Incomplete if left < FRAME_BYTES_MAX => return Ok(false),
                FrameEnd::Incomplete | FrameEnd::Corrupt => {
                    *damaged += 1;
                    if !self.resync(file)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Done with that many bytes.
    fn pass(&mut self, bytes: usize) {
        self.used += bytes;
        self.raw_at += bytes as u64;
    }

    fn fill(&mut self, file: &File) -> io::Result<()> {
        self.raw.drain(..self.used);
        self.used = 0;
        let have = self.raw.len();
        self.raw.resize(have + CHUNK_BYTES, 0);
        let into = self.raw.get_mut(have..).unwrap_or_default();
        let got = read_at(file, into, self.raw_at + have as u64)?;
        self.raw.truncate(have + got);
        self.end = got == 0;
        Ok(())
    }

    /// Past a broken frame to the next magic number, or to the end of the file.
    fn resync(&mut self, file: &File) -> io::Result<bool> {
        self.pass(1);
        loop {
            let rest = self.raw.get(self.used..).unwrap_or_default();
            if let Some(found) = memmem::find(rest, &MAGIC) {
                self.pass(found);
                return Ok(true);
            }
            let keep = rest.len().min(MAGIC.len() - 1);
            self.pass(rest.len() - keep);
            if self.end {
                self.pass(keep);
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
        decoder.take(DECODED_FRAME_BYTES_MAX).read_to_end(into)
    });
    let whole = decoded.is_ok_and(|bytes| (bytes as u64) < DECODED_FRAME_BYTES_MAX);
    if !whole {
        into.clear();
    }
    whole
}

/// A frame that decodes to more than this is taken for damaged: memory is bounded.
const DECODED_FRAME_BYTES_MAX: u64 = 256 << 20;

fn read_at(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match file.read_at(into, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
