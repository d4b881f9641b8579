//! Where a list is scrolled to, as a pure function, so that the view never has to decide it.

/// The first row to show, so that row `at` is visible, moving as little as possible.
///
/// `height` rows fit, `len` exist. The offset never leaves rows empty that could be filled.
pub fn follow(at: usize, offset: usize, height: usize, len: usize) -> usize {
    if height == 0 {
        return 0;
    }
    let last = len.saturating_sub(height);
    let highest = at.saturating_sub(height - 1);
    offset.max(highest).min(at).min(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_row_is_visible_and_no_line_is_wasted(
            len in 1_usize..500, at in 0_usize..500, offset in 0_usize..900, height in 1_usize..80,
        ) {
            let at = at.min(len - 1);
            let first = follow(at, offset, height, len);
            prop_assert!(first <= at && at < first + height);
            prop_assert!(first + height <= len.max(height));
            prop_assert_eq!(follow(at, first, height, len), first, "at rest it rests");
        }
    }
}
