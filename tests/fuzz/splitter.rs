//! Bytes of a file in pieces: the lines of the whole, at the same offsets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lullwatch::mirror::split::{Line, Splitter};

fuzz_target!(|pieces: Vec<Vec<u8>>| {
    let mut splitter = Splitter::new(7);
    let mut got: Vec<(u64, Vec<u8>)> = Vec::new();
    for piece in &pieces {
        splitter.feed(piece, |line| match line {
            Line::Whole { bytes, offset } => got.push((offset, bytes.to_vec())),
            Line::Oversized { .. } => unreachable!("no line here is that long"),
        });
    }
    let whole = pieces.concat();
    let mut want = Vec::new();
    let mut offset = 7;
    for line in whole.split_inclusive(|byte| *byte == b'\n') {
        if let Some(line) = line.strip_suffix(b"\n") {
            want.push((offset, line.to_vec()));
            offset += line.len() as u64 + 1;
        }
    }
    assert_eq!(got, want);
    assert_eq!(splitter.position(), offset);
    assert_eq!(splitter.pending_bytes(), 7 + whole.len() as u64 - offset);
});
