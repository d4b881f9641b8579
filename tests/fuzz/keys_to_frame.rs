//! Bytes of a terminal to keys, to the model, to a frame: no panic at any size, no control in any
//! frame, and the selection is on the screen.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use lullwatch::app::input::{Decoder, Input};
use lullwatch::text;
use lullwatch::ui::{Model, Msg, Options, update, view};

#[path = "../it/ui/fixture.rs"]
#[allow(dead_code)]
mod fixture;

/// More is only slower.
const SIZE_MAX: u16 = 300;

fuzz_target!(|data: (u16, u16, Vec<u8>, u16, u16, Vec<u8>)| {
    let (width, height, front, later_width, later_height, back) = data;
    let size = |cells: u16| if cells == u16::MAX { cells } else { cells % SIZE_MAX };
    let mut model =
        Model::new(Options::default(), size(width), size(height), fixture::NOW_MS);
    let mut picture = fixture::many();
    picture.detail = Some(fixture::detail());
    update(&mut model, Msg::Picture(Arc::new(picture)));
    let mut decoder = Decoder::default();
    for (bytes, now_ms) in [(front, 0), (back, 500)] {
        let mut inputs = decoder.feed(&bytes, now_ms);
        inputs.extend(decoder.flush());
        for input in inputs {
            update(&mut model, match input {
                Input::Key(key) => Msg::Key(key),
                Input::Paste(text) => Msg::Paste(text),
                Input::Mouse(mouse) => Msg::Mouse(mouse),
            });
        }
        let frame = view(&model);
        for cell in frame.content() {
            assert!(text::is_clean(cell.symbol()), "{:?}", cell.symbol());
        }
        update(&mut model, Msg::Resize { width: size(later_width), height: size(later_height) });
    }
    view(&model);
});
