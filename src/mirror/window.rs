//! What was read, remembered by its two ends: the bytes at the head of a file, and those just before
//! the place where reading goes on.
//!
//! Both are hashed as they were *read*, never read again for the purpose: a file that is rewritten
//! while it is being read then differs from what is remembered, and is found out at the next look.

use super::plan::WINDOW_BYTES;
use super::read::hash;

/// A window as a cursor keeps it: its length in bytes, and their hash.
pub type Window = (u64, i64);

/// The two ends of what was read so far.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Seen {
    /// The two ends of a part that was read before; both windows of its [`Seen::windows`].
    pub fn resumed(head: Vec<u8>, tail: Vec<u8>) -> Self {
        Self { head, tail }
    }

    /// Takes in the bytes that follow.
    pub fn pass(&mut self, bytes: &[u8]) {
        let max = usize::try_from(WINDOW_BYTES).unwrap_or(usize::MAX);
        let room = max.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(bytes.get(..room).unwrap_or_default());
        let fresh = bytes.get(bytes.len().saturating_sub(max)..).unwrap_or_default();
        let keep = self.tail.len().min(max - fresh.len());
        self.tail.drain(..self.tail.len() - keep);
        self.tail.extend_from_slice(fresh);
    }

    /// The window at the head, and the one before the end of what was read.
    pub fn windows(&self) -> (Window, Window) {
        let window = |bytes: &[u8]| (bytes.len() as u64, hash(bytes));
        (window(&self.head), window(&self.tail))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_ends_do_not_depend_on_the_pieces(
            bytes in prop::collection::vec(any::<u8>(), 0..5000),
            size in 1_usize..3000,
        ) {
            let mut seen = Seen::default();
            for piece in bytes.chunks(size) {
                seen.pass(piece);
            }
            let length = bytes.len().min(1024);
            prop_assert_eq!(&seen.head, &bytes[..length]);
            prop_assert_eq!(&seen.tail, &bytes[bytes.len() - length..]);
        }
    }
}
