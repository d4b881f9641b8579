//! Where a zstd frame ends, without decompressing it.
//!
//! dsh writes one independent frame per durable append (`formats/dsh.md` 1.6) and nothing that
//! lists them. Looking for the next magic number would be wrong, since those four bytes may occur
//! inside a frame; so this walks a frame's structure as RFC 8878 lays it down: magic, descriptor,
//! blocks, checksum. A half frame is not an error, it is a writer at work.

/// Where the frame that starts somewhere ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameEnd {
    /// One past its last byte.
    Complete(usize),
    /// The bytes end inside it (or before it): wait for more.
    Incomplete,
    /// No frame starts there, or its structure is broken: more bytes will not help.
    Corrupt,
}

/// First four bytes of a frame.
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// First four bytes of a skippable frame; the low half of the first byte is free.
const SKIPPABLE: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];
/// A block is never larger, compressed or not, bytes.
const BLOCK_BYTES_MAX: usize = 128 << 10;

/// The end of the frame that starts at `at`, bytes.
pub fn frame_end(bytes: &[u8], at: usize) -> FrameEnd {
    let rest = bytes.get(at..).unwrap_or_default();
    match frame_bytes(rest) {
        Ok(length) => FrameEnd::Complete(at + length),
        Err(end) => end,
    }
}

/// Length of the frame at the start of `rest`.
fn frame_bytes(rest: &[u8]) -> Result<usize, FrameEnd> {
    let known = rest.get(..rest.len().min(4)).unwrap_or_default();
    if !MAGIC.starts_with(known) {
        return skippable_bytes(rest, known);
    }
    let descriptor = *rest.get(4).ok_or(FrameEnd::Incomplete)?;
    // Bit 4 is unused and bit 3 reserved; dsh sets neither.
    if descriptor & 0b1_1000 != 0 {
        return Err(FrameEnd::Corrupt);
    }
    let single_segment = descriptor & 0b10_0000 != 0;
    let window_bytes = usize::from(!single_segment);
    let dictionary_bytes = match descriptor & 0b11 {
        3 => 4,
        size => usize::from(size),
    };
    let content_size_bytes = match descriptor >> 6 {
        0 => usize::from(single_segment),
        flag => 1 << flag,
    };
    let mut at = 5 + window_bytes + dictionary_bytes + content_size_bytes;
    loop {
        let Some(&[low, middle, high]) = rest.get(at..at + 3) else {
            return Err(FrameEnd::Incomplete);
        };
        let header = u32::from_le_bytes([low, middle, high, 0]);
        let size = (header >> 3) as usize;
        let content = match (header >> 1) & 0b11 {
            1 => 1,
            0 | 2 => size,
            _ => return Err(FrameEnd::Corrupt),
        };
        if size > BLOCK_BYTES_MAX {
            return Err(FrameEnd::Corrupt);
        }
        at += 3 + content;
        if header & 1 != 0 {
            break;
        }
    }
    let checksum_bytes = if descriptor & 0b100 == 0 { 0 } else { 4 };
    whole(rest, at + checksum_bytes)
}

/// A frame without content for us; dsh writes none, other writers may.
fn skippable_bytes(rest: &[u8], known: &[u8]) -> Result<usize, FrameEnd> {
    let mut masked = known.to_vec();
    if let Some(first) = masked.first_mut() {
        *first &= 0xf0;
    }
    if !SKIPPABLE.starts_with(&masked) {
        return Err(FrameEnd::Corrupt);
    }
    let Some(&[a, b, c, d]) = rest.get(4..8) else { return Err(FrameEnd::Incomplete) };
    whole(rest, 8_usize.saturating_add(u32::from_le_bytes([a, b, c, d]) as usize))
}

fn whole(rest: &[u8], length: usize) -> Result<usize, FrameEnd> {
    if rest.len() < length { Err(FrameEnd::Incomplete) } else { Ok(length) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn frame(text: &[u8], level: i32, checksum: bool, sized: bool) -> Vec<u8> {
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), level).unwrap();
        encoder.include_checksum(checksum).unwrap();
        encoder.include_contentsize(sized).unwrap();
        if sized {
            encoder.set_pledged_src_size(Some(text.len() as u64)).unwrap();
        }
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Text that compresses badly, so that blocks of every kind occur.
    fn noise(length: usize) -> Vec<u8> {
        let mut seed = 0x9e37_79b9_u32;
        (0..length)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                seed.to_le_bytes()[3]
            })
            .collect()
    }

    #[rstest]
    #[case::empty(Vec::new())]
    #[case::line(b"{\"type\":\"session\"}\n".to_vec())]
    #[case::run_length(vec![b'a'; 300_000])]
    #[case::raw_blocks(noise(300_000))]
    fn a_frame_ends_where_its_encoder_stopped(
        #[case] text: Vec<u8>,
        #[values(true, false)] checksum: bool,
        #[values(true, false)] sized: bool,
    ) {
        let mut bytes = frame(&text, 3, checksum, sized);
        let end = bytes.len();
        bytes.extend(frame(b"next", 3, checksum, sized));
        assert_eq!(frame_end(&bytes, 0), FrameEnd::Complete(end));
        assert_eq!(frame_end(&bytes, end), FrameEnd::Complete(bytes.len()));
        assert_eq!(frame_end(&bytes, bytes.len()), FrameEnd::Incomplete);
        assert_eq!(frame_end(&bytes, bytes.len() + 1), FrameEnd::Incomplete);
    }

    #[test]
    fn a_frame_cut_anywhere_is_incomplete_never_corrupt() {
        let bytes = frame(&noise(2_000), 3, true, true);
        for cut in 0..bytes.len() {
            assert_eq!(frame_end(&bytes[..cut], 0), FrameEnd::Incomplete, "cut at {cut}");
        }
    }

    #[test]
    fn a_magic_number_inside_a_frame_starts_nothing() {
        let mut text = noise(500);
        text.extend(MAGIC);
        text.extend(noise(500));
        let bytes = frame(&text, 3, true, true);
        assert!(memchr::memmem::find(&bytes[4..], &MAGIC).is_some());
        assert_eq!(frame_end(&bytes, 0), FrameEnd::Complete(bytes.len()));
    }

    #[rstest]
    #[case::text(b"{\"type\":")]
    #[case::magic_off_by_one(b"\x28\xb5\x2f\xfe\x00\x00\x00\x00")]
    #[case::reserved_bit(b"\x28\xb5\x2f\xfd\x08\x00\x00\x00")]
    #[case::reserved_block(b"\x28\xb5\x2f\xfd\x20\x00\x07\x00\x00")]
    #[case::block_too_large(b"\x28\xb5\x2f\xfd\x20\x00\xff\xff\xff")]
    fn what_is_no_frame_is_corrupt(#[case] bytes: &[u8]) {
        assert_eq!(frame_end(bytes, 0), FrameEnd::Corrupt);
    }

    #[test]
    fn a_skippable_frame_is_stepped_over() {
        let mut bytes = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc".to_vec();
        assert_eq!(frame_end(&bytes, 0), FrameEnd::Complete(11));
        bytes.truncate(10);
        assert_eq!(frame_end(&bytes, 0), FrameEnd::Incomplete);
        assert_eq!(frame_end(&bytes[..2], 0), FrameEnd::Incomplete);
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = frame_end(&bytes, 0);
            let mut framed = MAGIC.to_vec();
            framed.extend(&bytes);
            if let FrameEnd::Complete(end) = frame_end(&framed, 0) {
                prop_assert!(end <= framed.len());
            }
        }
    }
}
