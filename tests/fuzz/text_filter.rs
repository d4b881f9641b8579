//! Untrusted text through the filter: nothing harmful is left, and widths are what they claim.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lullwatch::text;

fuzz_target!(|data: (u8, &str)| {
    let (cells, raw) = data;
    let cells = usize::from(cells);
    let clean = text::line(raw);
    assert!(text::is_clean(&clean), "{clean:?}");
    assert_eq!(text::line(&clean), clean);
    assert_eq!(text::width(&text::fit(&clean, cells)), cells);
    assert!(text::line_up_to(raw, cells.max(1)).chars().count() <= cells.max(1));
    assert!(text::wrap(&clean, cells).iter().all(|part| text::width(part) <= cells.max(1)));
    let block = text::block(raw);
    assert!(block.split('\n').all(text::is_clean), "{block:?}");
});
