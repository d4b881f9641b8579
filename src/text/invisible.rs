//! What a text holds and nobody sees: characters without width that hide words in words, smuggle data
//! past a reader, or pile up over the lines above.
//!
//! Dropped: zero-width spaces and joiners of words, soft hyphens, fillers, invisible operators, tags
//! (so the flags of England, Scotland and Wales show as the black flag they are made of), and every
//! variation selector but those two that choose between text and picture. What writing and emoji need
//! stays where it means something: a joiner or a non-joiner between two characters beyond ASCII, one
//! of the two selectors behind a character that has a picture, and some marks on a letter.

use unicode_width::UnicodeWidthChar;

use super::Filter;

/// Characters without a width that may follow each other.
const MARKS_MAX: usize = 6;
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];
const SELECTORS: [char; 2] = ['\u{fe0e}', '\u{fe0f}'];

/// The characters of a text that a reader sees, or that change what is seen; breaks stay.
#[derive(Clone)]
pub(super) struct Visible<'a> {
    filter: Filter<'a>,
    before: Option<char>,
    /// How many without a width came last.
    marks: usize,
}

impl<'a> Visible<'a> {
    pub(super) fn of(raw: &'a str) -> Self {
        Self { filter: Filter::new(raw), before: None, marks: 0 }
    }

    fn keeps(&self, letter: char) -> bool {
        if is_never_seen(letter) || (has_no_width(letter) && self.marks >= MARKS_MAX) {
            return false;
        }
        if JOINERS.contains(&letter) {
            // The next one must have room too, or a second filter would find nothing to join.
            let next = self.filter.clone().next();
            return self.marks + 1 < MARKS_MAX
                && self.before.is_some_and(is_joined)
                && next.is_some_and(|next| is_joined(next) && !SELECTORS.contains(&next));
        }
        if SELECTORS.contains(&letter) {
            let has_picture = |before: char| {
                let beyond = !before.is_ascii() && !super::is_break(before);
                beyond || before.is_ascii_digit() || matches!(before, '#' | '*')
            };
            return self.before.is_some_and(|before| {
                has_picture(before) && !JOINERS.contains(&before) && !SELECTORS.contains(&before)
            });
        }
        true
    }
}

impl Iterator for Visible<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        loop {
            let letter = self.filter.next()?;
            if self.keeps(letter) {
                self.marks = if has_no_width(letter) { self.marks + 1 } else { 0 };
                self.before = Some(letter);
                return Some(letter);
            }
        }
    }
}

fn has_no_width(letter: char) -> bool {
    letter.width() == Some(0)
}

/// Whether a joiner may stand beside it.
fn is_joined(letter: char) -> bool {
    !letter.is_ascii()
        && !is_never_seen(letter)
        && !JOINERS.contains(&letter)
        && !super::is_break(letter)
}

/// The characters that Unicode calls default-ignorable, without joiners and the two selectors; and
/// the marks of annotations.
fn is_never_seen(letter: char) -> bool {
    matches!(letter,
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0d}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}
