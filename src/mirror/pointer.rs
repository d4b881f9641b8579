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

/// The bytes of the object at `offset` of the decoded file.
pub fn read(path: &Path, offset: u64, bytes: u64, want: i64) -> Result<Vec<u8>, Lost> {
    if bytes > LINE_BYTES_MAX as u64 || want == 0 {
        return Err(Lost::TooLong);
    }
    let encoding = match path.extension().and_then(std::ffi::OsStr::to_str) {
        Some("zst") => Encoding::ZstdStream,
        Some("zstd") => Encoding::ZstdFrames,
        Some(_) | None => Encoding::Plain,
    };
    let found = read::open(path, encoding).and_then(|opened| opened.read_span(offset, bytes));
    match found {
        Ok(object) if hash(&object) == want => Ok(object),
        Ok(_) => Err(Lost::Changed),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound => Lost::Gone,
            io::ErrorKind::UnexpectedEof => Lost::Changed,
            _ => Lost::Unreadable,
        }),
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
        assert_eq!(read(&path, 8, 7, want).as_deref(), Ok(&b"{\"b\":2}"[..]));
        assert_eq!(read(&packed, 8, 7, want).as_deref(), Ok(&b"{\"b\":2}"[..]));
        assert_eq!(read(&path, 0, 7, want), Err(Lost::Changed));
        assert_eq!(read(&path, 12, 7, want), Err(Lost::Changed));
        assert_eq!(read(&path, 8, 7, 0), Err(Lost::TooLong));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&path, 8, 7, want), Err(Lost::Gone));
    }
}
