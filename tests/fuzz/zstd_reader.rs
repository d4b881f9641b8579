//! A compressed file that grows: what is read of it in two goes is what is read in one.
#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use lullwatch::mirror::place::Encoding;
use lullwatch::mirror::plan::Cursor;
use lullwatch::mirror::read;

fuzz_target!(|data: (bool, usize, &[u8])| {
    let (frames, cut, bytes) = data;
    let encoding = if frames { Encoding::ZstdFrames } else { Encoding::ZstdStream };
    let path = format!("/dev/shm/lullwatch-fuzz-{}", std::process::id());
    let path = Path::new(&path);
    let whole = decoded(path, encoding, bytes);
    let part = decoded(path, encoding, &bytes[..cut % (bytes.len() + 1)]);
    fs::remove_file(path).unwrap();
    assert!(whole.starts_with(&part), "what could be read before can be read still");
});

fn decoded(path: &Path, encoding: Encoding, bytes: &[u8]) -> Vec<u8> {
    fs::write(path, bytes).unwrap();
    let opened = read::open(path, encoding).unwrap();
    let cursor = Cursor::default();
    let Some(seen) = opened.resume(&cursor).unwrap() else { return Vec::new() };
    let Ok(mut chunks) = opened.into_chunks(&cursor, seen, 4_096) else { return Vec::new() };
    let (mut all, mut chunk) = (Vec::new(), Vec::new());
    while chunks.next_into(&mut chunk).unwrap() && all.len() < 16 << 20 {
        all.extend_from_slice(&chunk);
    }
    all
}
