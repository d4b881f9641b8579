//! Bytes of a terminal, in pieces and at any pace: they mean what they mean in one piece, and the
//! interrupt key works whatever came before it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lullwatch::app::input::{Decoder, Input};

fuzz_target!(|data: (Vec<u8>, Vec<u8>)| {
    let (front, back) = data;
    let mut decoder = Decoder::default();
    let mut pieces = decoder.feed(&front, 0);
    pieces.extend(decoder.feed(&back, 1));
    let whole = Decoder::default().feed(&[front.clone(), back.clone()].concat(), 0);
    assert_eq!(pieces, whole);

    let mut decoder = Decoder::default();
    decoder.feed(&front, 0);
    decoder.flush();
    decoder.feed(&back, 3_000);
    assert!(decoder.feed(b"\x03", 60_000).iter().any(Input::is_interrupt), "deaf");
});
