//! From a frame to the bytes that bring the screen there. The same frame again costs no byte: not a
//! cursor move, not even the brackets of a synchronized update.
//!
//! The encoder is our own: the library's writes colours in the form of 256, which is longer and
//! which a terminal of sixteen need not know, and it asks the environment about colours a second
//! time, while here the theme alone decides.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

const SYNCHRONIZED_BEGIN: &str = "\x1b[?2026h";
const SYNCHRONIZED_END: &str = "\x1b[?2026l";
const CLEAR: &str = "\x1b[0m\x1b[2J";

/// What is on the screen, as far as we wrote it.
#[derive(Debug, Default)]
pub struct Painter {
    shown: Option<Buffer>,
}

impl Painter {
    /// The bytes that make `frame` what is on the screen. Empty: it is already.
    pub fn paint(&mut self, frame: Buffer) -> String {
        let mut bytes = String::new();
        let before = self.shown.take().filter(|shown| shown.area == frame.area);
        let (before, clear) = match before {
            Some(before) => (before, false),
            None => (Buffer::empty(frame.area), true),
        };
        let changes = before.diff(&frame);
        if clear || !changes.is_empty() {
            bytes.push_str(SYNCHRONIZED_BEGIN);
            if clear {
                bytes.push_str(CLEAR);
            }
            encode(&frame, &changes, &mut bytes);
            bytes.push_str(SYNCHRONIZED_END);
        }
        self.shown = Some(frame);
        bytes
    }

    /// Forgets the screen, so that the next frame is drawn whole.
    pub fn forget(&mut self) {
        self.shown = None;
    }
}

/// Unchanged cells between two changed ones that are written again rather than jumped over: up to
/// so many, a jump is no shorter. It also leaves words whole in a recording.
const BRIDGE_CELLS_MAX: u16 = 6;

type Look = (Color, Color, Modifier);

fn look(cell: &Cell) -> Look {
    (cell.fg, cell.bg, cell.modifier)
}

/// Cells as moves, styles and text. It begins and ends in the terminal's plain style.
fn encode(frame: &Buffer, changes: &[(u16, u16, &Cell)], bytes: &mut String) {
    let plain = (Color::Reset, Color::Reset, Modifier::empty());
    let mut style = plain;
    let mut next = None;
    for (x, y, cell) in changes {
        // After a wide character the place is given anew: terminals differ in how wide it is.
        if next != Some((*x, *y)) && !bridge(frame, next, (*x, *y), style, bytes) {
            let _ = write!(bytes, "\x1b[{};{}H", y + 1, x + 1);
        }
        if look(cell) != style {
            style = look(cell);
            push_style(style, bytes);
        }
        bytes.push_str(cell.symbol());
        next = Some((x + 1, *y));
    }
    if style != plain {
        bytes.push_str("\x1b[0m");
    }
}

/// Writes the cells between, if they are few, narrow and in the style that is on.
fn bridge(
    frame: &Buffer,
    from: Option<(u16, u16)>,
    to: (u16, u16),
    style: Look,
    bytes: &mut String,
) -> bool {
    let Some((begin, row)) = from.filter(|(begin, row)| *row == to.1 && *begin < to.0) else {
        return false;
    };
    let gap = begin..to.0;
    let fits = |cell: &Cell| look(cell) == style && cell.symbol().is_ascii();
    let all_fit = gap.clone().all(|x| frame.cell((x, row)).is_some_and(fits));
    // A wide character before the gap leaves its second cell in it.
    let wide_before = begin.checked_sub(1).and_then(|x| frame.cell((x, row)));
    let wide_before = wide_before.is_some_and(|cell| !cell.symbol().is_ascii());
    if gap.len() > usize::from(BRIDGE_CELLS_MAX) || !all_fit || wide_before {
        return false;
    }
    for x in gap {
        bytes.push_str(frame.cell((x, row)).map_or(" ", Cell::symbol));
    }
    true
}

fn push_style((fg, bg, modifier): Look, bytes: &mut String) {
    bytes.push_str("\x1b[0");
    for (flag, code) in [
        (Modifier::BOLD, ";1"),
        (Modifier::DIM, ";2"),
        (Modifier::UNDERLINED, ";4"),
        (Modifier::REVERSED, ";7"),
    ] {
        if modifier.contains(flag) {
            bytes.push_str(code);
        }
    }
    for (colour, shift) in [(fg, 0), (bg, 10)] {
        if let Some(code) = code(colour) {
            let _ = write!(bytes, ";{}", code + shift);
        }
    }
    bytes.push('m');
}

/// The number of a colour as a foreground; `None`: the terminal's own.
fn code(colour: Color) -> Option<u8> {
    match colour {
        // The theme has none beyond the sixteen.
        Color::Reset | Color::Rgb(..) | Color::Indexed(_) => None,
        Color::Black => Some(30),
        Color::Red => Some(31),
        Color::Green => Some(32),
        Color::Yellow => Some(33),
        Color::Blue => Some(34),
        Color::Magenta => Some(35),
        Color::Cyan => Some(36),
        Color::Gray => Some(37),
        Color::DarkGray => Some(90),
        Color::LightRed => Some(91),
        Color::LightGreen => Some(92),
        Color::LightYellow => Some(93),
        Color::LightBlue => Some(94),
        Color::LightMagenta => Some(95),
        Color::LightCyan => Some(96),
        Color::White => Some(97),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn a_frame_that_is_shown_already_costs_no_byte() {
        let mut frame = Buffer::empty(Rect::new(0, 0, 20, 2));
        frame.set_string(0, 0, "quiet 3m", Style::new());
        let mut painter = Painter::default();
        assert!(!painter.paint(frame.clone()).is_empty());
        assert_eq!(painter.paint(frame.clone()), "");
        frame.set_string(6, 0, "4m", Style::new());
        let bytes = painter.paint(frame.clone());
        assert_eq!(bytes, "\x1b[?2026h\x1b[1;7H4\x1b[?2026l");
        painter.forget();
        assert!(painter.paint(frame).starts_with("\x1b[?2026h\x1b[0m\x1b[2J\x1b[1;1Hquiet"));
    }

    #[test]
    fn a_short_way_is_written_and_a_long_one_jumped() {
        let mut frame = Buffer::empty(Rect::new(0, 0, 30, 1));
        frame.set_string(0, 0, "ab       cd ef 修 x", Style::new());
        let bytes = Painter::default().paint(frame);
        let drawn = "\x1b[1;1Hab\x1b[1;10Hcd ef 修\x1b[1;19Hx";
        assert_eq!(bytes, format!("{SYNCHRONIZED_BEGIN}{CLEAR}{drawn}{SYNCHRONIZED_END}"));
    }

    #[test]
    fn styles_are_of_the_sixteen_and_end_plain() {
        let mut frame = Buffer::empty(Rect::new(0, 0, 8, 1));
        let alert = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
        frame.set_string(0, 0, "修", alert);
        frame.set_string(2, 0, "ab", Style::new().fg(Color::LightBlue).bg(Color::Black));
        let bytes = Painter::default().paint(frame);
        let drawn = "\x1b[1;1H\x1b[0;1;33m修\x1b[1;3H\x1b[0;94;40mab\x1b[0m";
        assert_eq!(bytes, format!("{SYNCHRONIZED_BEGIN}{CLEAR}{drawn}{SYNCHRONIZED_END}"));
    }
}
