//! From a frame to the bytes that bring the screen there. The same frame again costs no byte: not a
//! cursor move, not even the brackets of a synchronized update.

use std::io;

use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::buffer::Buffer;

const SYNCHRONIZED_BEGIN: &[u8] = b"\x1b[?2026h";
const SYNCHRONIZED_END: &[u8] = b"\x1b[?2026l";
const CLEAR: &[u8] = b"\x1b[0m\x1b[2J";

/// What is on the screen, as far as we wrote it.
#[derive(Debug, Default)]
pub struct Painter {
    shown: Option<Buffer>,
}

impl Painter {
    /// The bytes that make `frame` what is on the screen. Empty: it is already.
    pub fn paint(&mut self, frame: Buffer) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let before = self.shown.take().filter(|shown| shown.area == frame.area);
        let (before, clear) = match before {
            Some(before) => (before, false),
            None => (Buffer::empty(frame.area), true),
        };
        let changes = before.diff(&frame);
        if clear || !changes.is_empty() {
            bytes.extend_from_slice(SYNCHRONIZED_BEGIN);
            if clear {
                bytes.extend_from_slice(CLEAR);
            }
            CrosstermBackend::new(&mut bytes).draw(changes.into_iter())?;
            bytes.extend_from_slice(SYNCHRONIZED_END);
        }
        self.shown = Some(frame);
        Ok(bytes)
    }

    /// Forgets the screen, so that the next frame is drawn whole.
    pub fn forget(&mut self) {
        self.shown = None;
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
        assert!(!painter.paint(frame.clone()).unwrap().is_empty());
        assert_eq!(painter.paint(frame.clone()).unwrap(), b"");
        frame.set_string(6, 0, "4m", Style::new());
        let bytes = painter.paint(frame.clone()).unwrap();
        assert!(bytes.len() < 60, "{}", String::from_utf8_lossy(&bytes));
        painter.forget();
        assert!(painter.paint(frame).unwrap().len() > bytes.len());
    }
}
