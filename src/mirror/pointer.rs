//! A message read back from its transcript, by pointer, and verified: the bytes must be those that
//! were mirrored, else they are not shown.

use std::io;
use std::path::Path;

use super::place::Encoding;
use super::read::{self, hash};
use crate::source::LINE_BYTES_MAX;

/// Why a message cannot be read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The file is not there.
    Gone,
    /// Other bytes lie there now.
    Changed,
    /// Longer than a line that is read whole.
    TooLong,
    /// The system will not give it.
    Unreadable,
}

/// The bytes of the object at `offset` of the decoded file. `frame` is where decoding may begin: a place
/// in the file, and the decoded bytes before it.
pub fn read(
    path: &Path,
    frame: (u64, u64),
    (offset, bytes): (u64, u64),
    want: i64,
) -> Result<Vec<u8>, Lost> {
    if bytes > LINE_BYTES_MAX as u64 || want == 0 {
        return Err(Lost::TooLong);
    }
    let encoding = match path.extension().and_then(std::ffi::OsStr::to_str) {
        Some("zst") => Encoding::ZstdStream,
        Some("zstd") => Encoding::ZstdFrames,
        Some(_) | None => Encoding::Plain,
    };
    let found =
        read::open(path, encoding).and_then(|opened| opened.read_span(frame, offset, bytes));
    match found {
        Ok(object) if hash(&object) == want => Ok(object),
        Ok(_) => Err(Lost::Changed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Lost::Gone),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Lost::Changed),
        Err(_) => Err(Lost::Unreadable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_bytes_are_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let packed = folder.path().join("x.jsonl.zst");
        std::fs::write(&path, b"{\"a\":1}\n{\"b\":2}\n").unwrap();
        std::fs::write(
            &packed,
            zstd::stream::encode_all(&b"{\"a\":1}\n{\"b\":2}\n"[..], 1).unwrap(),
        )
        .unwrap();
        let want = hash(b"{\"b\":2}");
        assert_eq!(read(&path, (0, 0), (8, 7), want).as_deref(), Ok(&b"{\"b\":2}"[..]));
        assert_eq!(read(&packed, (0, 0), (8, 7), want).as_deref(), Ok(&b"{\"b\":2}"[..]));
        assert_eq!(read(&path, (0, 0), (0, 7), want), Err(Lost::Changed));
        assert_eq!(read(&path, (0, 0), (12, 7), want), Err(Lost::Changed));
        assert_eq!(read(&path, (0, 0), (8, 7), 0), Err(Lost::TooLong));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&path, (0, 0), (8, 7), want), Err(Lost::Gone));
    }

    #[test]
    fn a_log_of_frames_is_decoded_from_the_frame_that_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl.zstd");
        let frame = |text: &[u8]| zstd::stream::encode_all(text, 1).unwrap();
        let first = frame(b"{\"a\":1}\n");
        let damage = [0x55; 40];
        let all = [&first[..], &damage, &frame(b"{\"b\":2}\n"), &frame(b"{\"c\":3}\n")].concat();
        std::fs::write(&path, &all).unwrap();
        let want = hash(b"{\"c\":3}");
        // Damage before it is passed over, as the mirror does.
        assert_eq!(read(&path, (0, 0), (16, 7), want).as_deref(), Ok(&b"{\"c\":3}"[..]));
        // Of what lies before the frame nothing is read.
        let second = first.len() + damage.len();
        std::fs::write(&path, [&vec![0; second][..], &all[second..]].concat()).unwrap();
        let second = second as u64;
        assert_eq!(read(&path, (second, 8), (16, 7), want).as_deref(), Ok(&b"{\"c\":3}"[..]));
        assert_eq!(read(&path, (second, 8), (16, 99), want), Err(Lost::Changed));
    }
}
