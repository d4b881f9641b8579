//! Sequences for the terminal that are no drawing: the clipboard, and the call for a human. What
//! goes into them is clean already; what could end them early is taken out once more.

use std::fmt::Write as _;

/// How to reach somebody who is not looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notify {
    /// Not at all.
    #[default]
    Off,
    /// The bell.
    Bell,
    /// OSC 9, as iTerm2, kitty, Windows Terminal and others know it.
    Osc9,
    /// OSC 777, as foot, urxvt and others know it.
    Osc777,
}

/// Puts text on the clipboard. tmux takes it for its own or passes it on, as it is configured; it
/// gets both forms, because each alone is ignored by one of the two configurations.
pub(super) fn copy(text: &str, tmux: bool) -> String {
    let sequence = format!("\x1b]52;c;{}\x07", base64(text.as_bytes()));
    if tmux { format!("{sequence}{}", passed_on(&sequence)) } else { sequence }
}

/// Calls for a human.
pub(super) fn notify(text: &str, how: Notify, tmux: bool) -> String {
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    let sequence = match how {
        Notify::Off => return String::new(),
        // tmux rings the bell of a pane by itself.
        Notify::Bell => return "\x07".to_owned(),
        Notify::Osc9 => format!("\x1b]9;{text}\x07"),
        Notify::Osc777 => format!("\x1b]777;notify;lullwatch;{text}\x07"),
    };
    if tmux { passed_on(&sequence) } else { sequence }
}

/// Wrapped for tmux to pass on to the terminal around it.
fn passed_on(sequence: &str) -> String {
    format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"))
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |index: u32| {
        let index = usize::try_from(index & 63).unwrap_or_default();
        ALPHABET.get(index).map_or('A', |byte| char::from(*byte))
    };
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| group.get(at).copied().map_or(0, u32::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let four = [bits >> 18, bits >> 12, bits >> 6, bits].map(letter);
        for (at, letter) in four.into_iter().enumerate() {
            let _ = text.write_char(if at <= group.len() { letter } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_remainder() {
        for (text, want) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(text.as_bytes()), want);
        }
    }

    #[test]
    fn a_notification_cannot_end_early_and_tmux_gets_it_wrapped() {
        let text = "needs you: a\u{7}b\u{1b}";
        assert_eq!(notify(text, Notify::Osc9, false), "\x1b]9;needs you: ab\x07");
        assert_eq!(
            notify(text, Notify::Osc777, true),
            "\x1bPtmux;\x1b\x1b]777;notify;lullwatch;needs you: ab\x07\x1b\\"
        );
        assert_eq!(notify(text, Notify::Bell, true), "\x07");
        assert_eq!(notify(text, Notify::Off, true), "");
    }
}
