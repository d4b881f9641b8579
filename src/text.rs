//! Untrusted text made fit for a terminal: filtered, measured and cut by display cells.
//!
//! Every string of a transcript, of a path or of an error passes here before it reaches a terminal
//! or JSON. Complete control sequences go, an unterminated one goes with the rest of the field;
//! line breaks and tabs become a space; other C0, C1 and bidi controls are dropped, and so is what
//! nobody sees (see [`invisible`]); runs of spaces become one. Width is counted in cells, by grapheme,
//! so that a wide character is never halved.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use invisible::Visible;

mod invisible;
mod zone;

pub use zone::Zone;

/// One line of clean text: see the module.
pub fn line(raw: &str) -> Cow<'_, str> {
    let plain = |letter: char| letter.is_ascii_graphic() || letter == ' ';
    if raw.chars().all(plain) && !raw.contains("  ") && raw.trim() == raw {
        return Cow::Borrowed(raw);
    }
    let mut clean = String::with_capacity(raw.len());
    for letter in Visible::of(raw) {
        let letter = if is_break(letter) { ' ' } else { letter };
        if letter != ' ' || !(clean.is_empty() || clean.ends_with(' ')) {
            clean.push(letter);
        }
    }
    clean.truncate(clean.trim_end().len());
    Cow::Owned(clean)
}

/// Whether a text holds nothing that [`line()`] would drop or turn into a space, repeated spaces aside.
pub fn is_clean(text: &str) -> bool {
    Visible::of(text).eq(text.chars()) && !text.chars().any(is_break)
}

/// Clean text that keeps its line breaks (LF alone); tabs become a space.
pub fn block(raw: &str) -> String {
    let mut clean = String::with_capacity(raw.len());
    for letter in Visible::of(&raw.replace("\r\n", "\n")) {
        match letter {
            '\n' => clean.push('\n'),
            other if is_break(other) => clean.push(' '),
            other => clean.push(other),
        }
    }
    clean
}

/// One clean line of at most `chars` characters, an ellipsis as the last of a longer one.
pub fn line_up_to(raw: &str, chars: usize) -> String {
    // Filtering only shortens, and what is far behind the cut cannot reach it except through
    // dropped sequences; eight times is room enough without reading megabytes.
    let head: String = raw.chars().take(chars.saturating_mul(8).max(64)).collect();
    let clean = line(&head);
    if clean.chars().count() <= chars {
        return clean.into_owned();
    }
    let mut cut: String = clean.chars().take(chars.saturating_sub(1)).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

/// Display width in cells.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// Text cut to at most `cells`, an ellipsis in the last one when something is cut.
pub fn cut(text: &str, cells: usize) -> Cow<'_, str> {
    cut_with(text, cells, '…')
}

/// Text cut to at most `cells`, `mark` (one cell wide) in the last one when something is cut.
pub fn cut_with(text: &str, cells: usize, mark: char) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    if cells == 0 {
        return Cow::Borrowed("");
    }
    let mut kept = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        let more = width(grapheme);
        if used + more > cells - 1 {
            break;
        }
        kept.push_str(grapheme);
        used += more;
    }
    kept.push(mark);
    Cow::Owned(kept)
}

/// Text in exactly `cells`: cut if longer, filled with spaces on the right if shorter.
pub fn fit(text: &str, cells: usize) -> String {
    fit_with(text, cells, '…')
}

/// [`fit`] with another mark (one cell wide) than the ellipsis.
pub fn fit_with(text: &str, cells: usize, mark: char) -> String {
    let mut fitted = cut_with(text, cells, mark).into_owned();
    let used = width(&fitted);
    fitted.extend(std::iter::repeat_n(' ', cells.saturating_sub(used)));
    fitted
}

/// Text in lines of at most `cells`, broken at spaces where there are any, never inside a grapheme.
///
/// At least one line, however empty the text; a grapheme wider than a line becomes an ellipsis.
pub fn wrap(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let Some(last) = lines.last_mut() else { break };
        let joined = if last.is_empty() { word.to_owned() } else { format!("{last} {word}") };
        if width(&joined) <= cells {
            *last = joined;
            continue;
        }
        if !last.is_empty() {
            lines.push(String::new());
        }
        break_word(&mut lines, word, cells);
    }
    lines
}

/// Puts a word into the empty last line, and where it is too long for one into more lines.
fn break_word(lines: &mut Vec<String>, word: &str, cells: usize) {
    for grapheme in word.graphemes(true) {
        let grapheme = if width(grapheme) > cells { "…" } else { grapheme };
        match lines.last_mut() {
            Some(last) if width(last) + width(grapheme) <= cells => last.push_str(grapheme),
            Some(_) | None => lines.push(grapheme.to_owned()),
        }
    }
}

/// The parts of a path, of this system or written the Windows way, from its end.
pub fn path_parts(path: &str) -> impl Iterator<Item = &str> {
    let drive =
        matches!(path.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    // Elsewhere a folder may have a backslash in its name.
    let windows = drive || path.starts_with(r"\\");
    let between = move |letter| letter == '/' || (windows && letter == '\\');
    path.rsplit(between).filter(|part| !part.is_empty())
}

fn is_break(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Characters that reorder or hide what follows them on a line.
fn is_bidi_control(letter: char) -> bool {
    matches!(letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The characters of a text without control sequences and controls; breaks stay.
#[derive(Clone)]
struct Filter<'a> {
    rest: std::str::Chars<'a>,
}

impl<'a> Filter<'a> {
    fn new(raw: &'a str) -> Self {
        Self { rest: raw.chars() }
    }

    /// Past an escape sequence whose ESC has been read.
    fn escape(&mut self) {
        match self.rest.clone().next() {
            Some('[') => {
                self.rest.next();
                self.csi();
            }
            Some(']' | 'P' | 'X' | '^' | '_') => {
                self.rest.next();
                self.string();
            }
            Some(' '..='/') => {
                while matches!(self.rest.clone().next(), Some(' '..='/')) {
                    self.rest.next();
                }
                self.rest.next();
            }
            Some('0'..='~') => {
                self.rest.next();
            }
            _ => {}
        }
    }

    /// Past parameters and the final character of a control sequence.
    fn csi(&mut self) {
        loop {
            let before = self.rest.clone();
            match self.rest.next() {
                Some('\u{20}'..='\u{3f}') => {}
                Some('\u{40}'..='\u{7e}') | None => return,
                Some(_) => {
                    // Not a control sequence after all: go on behind what was read of it.
                    self.rest = before;
                    return;
                }
            }
        }
    }

    /// Past a control string: up to BEL, ST, or the end of the field.
    fn string(&mut self) {
        while let Some(letter) = self.rest.next() {
            match letter {
                '\u{7}' | '\u{9c}' => return,
                '\u{1b}' if self.rest.clone().next() == Some('\\') => {
                    self.rest.next();
                    return;
                }
                _ => {}
            }
        }
    }
}

impl Iterator for Filter<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        loop {
            let letter = self.rest.next()?;
            match letter {
                '\u{1b}' => self.escape(),
                '\u{9b}' => self.csi(),
                '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.string(),
                other if is_break(other) => return Some(other),
                other if other.is_control() || is_bidi_control(other) => {}
                other => return Some(other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sequences_go_whole_and_breaks_become_one_space() {
        for (raw, want) in [
            ("Copy \u{1b}[31mthis\u{1b}[0m red word", "Copy this red word"),
            ("a\u{1b}]0;pwn\u{7}b", "ab"),
            ("a\u{1b}]8;;http://x\u{1b}\\b", "ab"),
            ("Tail\u{1b}]52;c;aaaa", "Tail"),
            ("tab\there\r\n\nnow", "tab here now"),
            ("\u{202e}gnp.exe\u{202c} done", "gnp.exe done"),
            ("a\u{9b}2Jb\u{85}c", "ab c"),
            ("a\u{1b}cb\u{1b}(Bd", "abd"),
            ("a\u{1b}Ptmux;\u{1b}\\b", "ab"),
            ("bell\u{7} nul\u{0}", "bell nul"),
            ("  two   spaces ", "two spaces"),
            ("pay\u{200b}pal \u{feff}x\u{2060}y\u{ad}z", "paypal xyz"),
            ("tags\u{e0068}\u{e0069}\u{e007f}!", "tags!"),
            ("a\u{fe0f}\u{e0100}\u{200d}b\u{200c}", "ab"),
            ("\u{3164}\u{115f}x\u{ffa0}\u{34f}", "x"),
            (
                "👩\u{200d}💻 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3}",
                "👩\u{200d}💻 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3}",
            ),
            ("👩\u{200d}\u{200d}\u{200b}x", "👩x"),
            ("می\u{200c}خواهم র\u{200d}্য", "می\u{200c}خواهم র\u{200d}্য"),
            ("❤\u{fe0f}\u{fe0f}\u{fe0e}\u{fe01}", "❤\u{fe0f}"),
        ] {
            assert_eq!(line(raw), want, "{raw:?}");
        }
    }

    #[test]
    fn marks_on_one_letter_are_bounded() {
        let heap = format!("Z{}e\u{301}", "\u{316}".repeat(500));
        assert_eq!(line(&heap).chars().count(), 9);
    }

    #[test]
    fn a_path_is_parted_the_way_it_is_written() {
        for (path, want) in [
            ("/home/ann/linux-app", "linux-app ann home"),
            (r"C:\Users\Ann Smith\my-app", "my-app Ann Smith Users C:"),
            ("C:/mixed\\slashes/app/", "app slashes mixed C:"),
            (r"\\wsl.localhost\Ubuntu\proj", "proj Ubuntu wsl.localhost"),
            (r"/srv/odd\name", r"odd\name srv"),
            ("/", ""),
            ("", ""),
        ] {
            assert_eq!(path_parts(path).collect::<Vec<_>>().join(" "), want, "{path}");
        }
    }

    #[test]
    fn cutting_by_cells_never_halves_a_wide_character() {
        let title = "修正支付服务的重试逻辑🙏并补充测试";
        for (cells, want) in [
            (1, "…"),
            (2, "… "),
            (3, "修…"),
            (8, "修正支… "),
            (10, "修正支付… "),
            (11, "修正支付服…"),
            (12, "修正支付服… "),
            (24, "修正支付服务的重试逻辑… "),
        ] {
            assert_eq!(fit(title, cells), want);
        }
        assert_eq!(fit("Réécrire l’analyseur", 12), "Réécrire l’…");
        assert_eq!(fit("ab", 4), "ab  ");
        assert_eq!(fit("ab", 0), "");
    }

    #[test]
    fn wrapping_breaks_at_spaces_and_only_long_words_elsewhere() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("a /a/long/path b", 6), ["a", "/a/lon", "g/path", "b"]);
        assert_eq!(wrap("修正支付", 5), ["修正", "支付"]);
        assert_eq!(wrap("修", 1), ["…"]);
        assert_eq!(wrap("", 5), [""]);
    }

    /// Any text, rich in what is to be filtered.
    fn hostile() -> impl Strategy<Value = String> {
        let odd = prop::sample::select(vec![
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{fe0f}',
            '\u{fe0e}',
            '\u{feff}',
            '\u{301}',
            '\u{316}',
            '\u{e0061}',
            '\u{e0100}',
            '\u{1f469}',
            '\u{1f4bb}',
            '\u{9cd}',
            '\u{1b}',
            '[',
            '\u{9b}',
            '1',
            ' ',
            '\u{202e}',
            '\u{2028}',
            '\u{20e3}',
        ]);
        prop::collection::vec(prop_oneof![odd, any::<char>()], 0..40)
            .prop_map(|letters| letters.into_iter().collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_harmful_survives(raw in hostile(), cells in 0_usize..90) {
            for clean in [line(&raw).into_owned(), line_up_to(&raw, 20), fit(&line(&raw), cells)] {
                prop_assert!(!clean.chars().any(|c| c.is_control() || is_bidi_control(c)));
                prop_assert!(is_clean(&clean), "{clean:?}");
            }
            prop_assert_eq!(width(&fit(&line(&raw), cells)), cells);
            for part in wrap(&line(&raw), cells) {
                prop_assert!(width(&part) <= cells.max(1), "{part:?} in {cells}");
            }
            prop_assert!(!block(&raw).chars().any(|c| (c.is_control() && c != '\n') || is_bidi_control(c)));
            let once = line(&raw).into_owned();
            prop_assert_eq!(line(&once), once.as_str());
        }
    }
}
