//! A run of text with a role: the only form in which text gets on the screen.
//!
//! [`Piece::new`] is the one place where text is filtered; the field is private, so there is no way
//! around it. The view measures and cuts pieces, and looks their colours up in the theme.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;

use crate::text;
use crate::ui::theme::Role;

/// A run of clean text with a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// What it means, hence how it looks.
    pub role: Role,
    text: String,
}

impl Piece {
    /// Text as it came, made clean.
    pub fn new(role: Role, raw: &str) -> Self {
        let clean = if text::is_clean(raw) { Cow::Borrowed(raw) } else { text::line(raw) };
        // The emoji variation selector widens a character in some terminals and not in others.
        Self { role, text: clean.replace('\u{fe0f}', "") }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its width in cells.
    pub fn width(&self) -> usize {
        text::width(&self.text)
    }

    /// Cut or padded on the right to exactly `cells`.
    #[must_use]
    pub fn fit(mut self, cells: usize) -> Self {
        self.text = text::fit(&self.text, cells);
        self
    }

    /// Cut or padded on the left to exactly `cells`.
    #[must_use]
    pub fn fit_right(mut self, cells: usize) -> Self {
        let cut = text::cut(&self.text, cells).into_owned();
        let mut padded = " ".repeat(cells.saturating_sub(text::width(&cut)));
        padded.push_str(&cut);
        self.text = padded;
        self
    }
}

/// Text in [`Role::Text`].
pub fn plain(raw: &str) -> Piece {
    Piece::new(Role::Text, raw)
}

/// Text in [`Role::Dim`].
pub fn dim(raw: &str) -> Piece {
    Piece::new(Role::Dim, raw)
}

/// Width of a line in cells.
pub fn width(line: &[Piece]) -> usize {
    line.iter().map(Piece::width).sum()
}

/// Text broken into lines of at most `cells`, at spaces where there are any. Line breaks in it hold.
pub fn wrap(raw: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(2);
    let mut lines = Vec::new();
    for paragraph in text::block(raw).lines() {
        wrap_paragraph(paragraph, cells, &mut lines);
    }
    lines
}

fn wrap_paragraph(paragraph: &str, cells: usize, lines: &mut Vec<String>) {
    let mut current = String::new();
    let mut used = 0;
    for word in paragraph.split_word_bounds() {
        let wide = text::width(word);
        if used + wide > cells && !word.trim().is_empty() {
            if used > 0 {
                lines.push(std::mem::take(&mut current).trim_end().to_owned());
                used = 0;
            }
            if wide > cells {
                used = break_word(word, cells, &mut current, lines);
                continue;
            }
        }
        // A space that would begin a line, or hang over its end, is not worth a cell.
        if word.trim().is_empty() && (used + wide > cells || (used == 0 && !lines.is_empty())) {
            continue;
        }
        current.push_str(word);
        used += wide;
    }
    lines.push(current.trim_end().to_owned());
}

/// Breaks a word longer than a line; what is left over stays in `current`. Its width in cells.
fn break_word(word: &str, cells: usize, current: &mut String, lines: &mut Vec<String>) -> usize {
    let mut used = 0;
    for grapheme in word.graphemes(true) {
        let wide = text::width(grapheme);
        if used + wide > cells {
            lines.push(std::mem::take(current));
            used = 0;
        }
        current.push_str(grapheme);
        used += wide;
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_break_at_spaces_and_long_words_anywhere() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("a\n\nb", 9), ["a", "", "b"]);
        assert_eq!(wrap("", 9), Vec::<String>::new());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_line_is_wider_than_asked_and_no_letter_is_lost(
            raw in "[a-z 修🙏]{0,60}", cells in 2_usize..30,
        ) {
            let lines = wrap(&raw, cells);
            prop_assert!(lines.iter().all(|line| text::width(line) <= cells));
            let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&raw));
        }

        #[test]
        fn a_piece_is_clean_and_fits_whatever_it_is_made_of(raw in any::<String>(), cells in 0_usize..60) {
            let piece = plain(&raw);
            prop_assert!(text::is_clean(piece.text()));
            prop_assert_eq!(piece.clone().fit(cells).width(), cells);
            prop_assert_eq!(piece.fit_right(cells).width(), cells);
        }
    }
}
