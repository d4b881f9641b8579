//! What the terminal sends, as keys: our own reader, because the event reader of the terminal
//! library never returns once the terminal is gone, and a monitor that outlives its terminal burns
//! a core. Here an end of input is an end.
//!
//! A sequence may come in pieces. An escape that nothing follows is the Esc key only after a
//! moment; the loop waits for it and calls [`Decoder::flush`].

use std::io::{self, Read as _};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::ui::key::{Code, Held, Key, Mouse, MouseKind};

/// Bytes read at a time.
const READ_BYTES_MAX: usize = 4_096;
/// Reads that may wait.
const READS_MAX: usize = 16;
/// A sequence longer than this is none.
const SEQUENCE_BYTES_MAX: usize = 256;
/// Pasted bytes beyond this are dropped.
const PASTE_BYTES_MAX: usize = 64 * 1024;
const PASTE_END: &[u8] = b"\x1b[201~";

/// Reads the terminal in a thread of its own, until it ends: the channel closes then.
pub fn reader() -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel(READS_MAX);
    thread::Builder::new().name("input".to_owned()).spawn(move || {
        let mut buffer = vec![0; READ_BYTES_MAX];
        loop {
            match io::stdin().lock().read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => {
                    let bytes = buffer.iter().take(read).copied().collect();
                    if sender.blocking_send(bytes).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Somebody made the terminal non-blocking; it must not make us spin.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    thread::park_timeout(Duration::from_millis(20));
                }
                Err(_) => return,
            }
        }
    })?;
    Ok(receiver)
}

/// Something that came from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A key.
    Key(Key),
    /// Pasted text.
    Paste(String),
    /// The mouse.
    Mouse(Mouse),
}

/// Bytes to keys, across reads.
#[derive(Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
}

/// What stands at the front of the bytes.
enum Front {
    /// So many bytes, which mean this or nothing.
    Whole(usize, Option<Input>),
    /// A paste begins behind so many bytes.
    Paste(usize),
    /// More is needed.
    Part,
}

impl Decoder {
    /// Takes bytes in; what is complete comes out.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        self.pending.extend_from_slice(bytes);
        let mut inputs = Vec::new();
        while !self.pending.is_empty() {
            if self.paste.is_some() {
                let Some(text) = self.pasted() else { break };
                inputs.push(Input::Paste(text));
                continue;
            }
            match front(&self.pending) {
                Front::Whole(len, input) => {
                    self.drop_front(len);
                    inputs.extend(input);
                }
                Front::Paste(len) => {
                    self.drop_front(len);
                    self.paste = Some(Vec::new());
                }
                Front::Part if self.pending.len() > SEQUENCE_BYTES_MAX => self.pending.clear(),
                Front::Part => break,
            }
        }
        inputs
    }

    /// Whether something is incomplete that [`Decoder::flush`] would settle.
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty() && self.paste.is_none()
    }

    /// Nothing more came: an escape alone was the Esc key, and other beginnings were nothing.
    pub fn flush(&mut self) -> Vec<Input> {
        let pending = std::mem::take(&mut self.pending);
        match pending.as_slice() {
            [0x1b] => vec![Input::Key(Key::plain(Code::Esc))],
            [0x1b, letter @ (b'[' | b'O' | b']' | b'P')] => {
                let letter = Key::char(char::from(*letter));
                vec![Input::Key(Key::plain(Code::Esc)), Input::Key(letter)]
            }
            _ => Vec::new(),
        }
    }

    fn drop_front(&mut self, len: usize) {
        self.pending.drain(..len.min(self.pending.len()));
    }

    /// The pasted text, once its end is here.
    fn pasted(&mut self) -> Option<String> {
        let paste = self.paste.as_mut()?;
        let found = self.pending.windows(PASTE_END.len()).position(|window| window == PASTE_END);
        // Without an end, the last bytes may be the beginning of one.
        let keep = PASTE_END.len() - 1;
        let text_len = found.unwrap_or_else(|| self.pending.len().saturating_sub(keep));
        let room = PASTE_BYTES_MAX.saturating_sub(paste.len());
        paste.extend(self.pending.drain(..text_len).take(room));
        found?;
        self.drop_front(PASTE_END.len());
        self.paste.take().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn whole(len: usize, code: Code) -> Front {
    Front::Whole(len, Some(Input::Key(Key::plain(code))))
}

fn front(bytes: &[u8]) -> Front {
    match bytes {
        [] => Front::Part,
        [0x1b, rest @ ..] => escape(rest),
        [b'\r' | b'\n', ..] => whole(1, Code::Enter),
        [b'\t', ..] => whole(1, Code::Tab),
        [0x7f | 0x08, ..] => whole(1, Code::Backspace),
        [byte @ 1..=26, ..] => {
            let key = Key::control(char::from(byte - 1 + b'a'));
            Front::Whole(1, Some(Input::Key(key)))
        }
        [0..0x20, ..] => Front::Whole(1, None),
        _ => match letter(bytes) {
            Some((len, Some(letter))) => whole(len, Code::Char(letter)),
            Some((len, None)) => Front::Whole(len, None),
            None => Front::Part,
        },
    }
}

/// The character at the front: its bytes, and what it is if it is one. `None`: more is needed.
fn letter(bytes: &[u8]) -> Option<(usize, Option<char>)> {
    let first = bytes.first()?;
    let len = match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    let whole = bytes.get(..len)?;
    match std::str::from_utf8(whole) {
        Ok(text) => Some((len, text.chars().next().filter(|letter| !letter.is_control()))),
        Err(_) => Some((1, None)),
    }
}

/// Behind an escape.
fn escape(rest: &[u8]) -> Front {
    match rest {
        [] | [b'O'] => Front::Part,
        [b'[', rest @ ..] => control_sequence(rest),
        [b'O', third, ..] => match cursor(*third) {
            Some(code) => whole(3, code),
            None => Front::Whole(3, None),
        },
        [b']' | b'P', rest @ ..] => control_string(rest),
        // No key of ours is held with Alt, so this is Esc and another key, typed fast.
        _ => whole(1, Code::Esc),
    }
}

/// An answer of the terminal that nobody asked for: skipped up to its end.
fn control_string(rest: &[u8]) -> Front {
    let bell = rest.iter().position(|byte| *byte == 0x07).map(|at| at + 1);
    let string_end = rest.windows(2).position(|pair| pair == b"\x1b\\").map(|at| at + 2);
    match bell.into_iter().chain(string_end).min() {
        Some(len) => Front::Whole(len + 2, None),
        None => Front::Part,
    }
}

/// Behind `ESC [`.
fn control_sequence(rest: &[u8]) -> Front {
    // The console of Linux writes its function keys with a second bracket.
    match rest {
        [b'['] => return Front::Part,
        [b'[', third @ b'A'..=b'E', ..] => return whole(4, Code::F(third - b'A' + 1)),
        [b'[', _, ..] => return Front::Whole(4, None),
        _ => {}
    }
    let parameters = rest.iter().take_while(|byte| (0x20..0x40).contains(*byte)).count();
    let Some((parameters, behind)) = rest.split_at_checked(parameters) else { return Front::Part };
    let Some(last) = behind.first() else { return Front::Part };
    let len = parameters.len() + 3;
    if !(0x40..=0x7e).contains(last) {
        // Not a control sequence after all; what broke it may be a key of its own.
        return Front::Whole(len - 1, None);
    }
    if let (b'M' | b'm', Some(report)) = (last, parameters.strip_prefix(b"<")) {
        return Front::Whole(len, mouse(report, *last).map(Input::Mouse));
    }
    let numbers = numbers(parameters);
    let first = numbers.first().copied().unwrap_or_default();
    match last {
        b'~' if first == 200 => Front::Paste(len),
        b'~' => Front::Whole(len, numbered(first).map(|code| Input::Key(Key::plain(code)))),
        b'u' => Front::Whole(len, unicode_key(&numbers).map(Input::Key)),
        b'Z' => whole(len, Code::BackTab),
        // With parameters, this is a report of the cursor's place.
        b'R' if !numbers.is_empty() => Front::Whole(len, None),
        other => Front::Whole(len, cursor(*other).map(|code| Input::Key(Key::plain(code)))),
    }
}

fn numbers(parameters: &[u8]) -> Vec<u32> {
    if parameters.is_empty() {
        return Vec::new();
    }
    parameters
        .split(|byte| *byte == b';')
        .map(|part| std::str::from_utf8(part).ok().and_then(|text| text.parse().ok()).unwrap_or(0))
        .collect()
}

/// Keys that end in a letter.
fn cursor(last: u8) -> Option<Code> {
    match last {
        b'A' => Some(Code::Up),
        b'B' => Some(Code::Down),
        b'C' => Some(Code::Right),
        b'D' => Some(Code::Left),
        b'H' => Some(Code::Home),
        b'F' => Some(Code::End),
        b'M' => Some(Code::Enter),
        b'P' => Some(Code::F(1)),
        b'Q' => Some(Code::F(2)),
        b'R' => Some(Code::F(3)),
        b'S' => Some(Code::F(4)),
        _ => None,
    }
}

/// Keys that end in a tilde.
fn numbered(number: u32) -> Option<Code> {
    let function = |number: u32| u8::try_from(number).ok().map(Code::F);
    match number {
        1 | 7 => Some(Code::Home),
        4 | 8 => Some(Code::End),
        3 => Some(Code::Delete),
        5 => Some(Code::PageUp),
        6 => Some(Code::PageDown),
        11..=15 => function(number - 10),
        17..=21 => function(number - 11),
        23..=24 => function(number - 12),
        _ => None,
    }
}

/// A key as the newer protocols write it: its code point, then what was held plus one.
fn unicode_key(numbers: &[u32]) -> Option<Key> {
    let held = match numbers.get(1).map_or(0, |held| held.saturating_sub(1)) {
        bits if bits & 4 != 0 => Held::Control,
        _ => Held::Nothing,
    };
    let code = match char::from_u32(*numbers.first()?)? {
        '\r' => Code::Enter,
        '\t' => Code::Tab,
        '\u{1b}' => Code::Esc,
        '\u{7f}' | '\u{8}' => Code::Backspace,
        letter if letter.is_control() => return None,
        letter => Code::Char(letter),
    };
    Some(Key { code, held })
}

fn mouse(report: &[u8], last: u8) -> Option<Mouse> {
    let numbers = numbers(report);
    let [button, column, row] = numbers.as_slice() else { return None };
    let kind = match (button, last) {
        (0, b'M') => MouseKind::Press,
        (64, b'M') => MouseKind::WheelUp,
        (65, b'M') => MouseKind::WheelDown,
        _ => return None,
    };
    let cell = |number: &u32| u16::try_from(number.saturating_sub(1)).unwrap_or(u16::MAX);
    Some(Mouse { kind, column: cell(column), row: cell(row) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(inputs: &[Input]) -> String {
        let label = |input: &Input| match input {
            Input::Key(key) => key.label(),
            Input::Paste(text) => format!("paste {text:?}"),
            Input::Mouse(mouse) => format!("{:?} {},{}", mouse.kind, mouse.column, mouse.row),
        };
        inputs.iter().map(label).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn keys_of_every_kind() {
        for (bytes, want) in [
            ("jG /", "j G Space /"),
            ("\r\n\t\u{7f}", "Enter Enter Tab Bksp"),
            ("\u{3}\u{1a}\u{c}", "^c ^z ^l"),
            ("\u{1b}[A\u{1b}[B\u{1b}OA", "Up Down Up"),
            ("\u{1b}[5~\u{1b}[6~\u{1b}[1~\u{1b}[4~", "PgUp PgDn Home End"),
            ("\u{1b}[Z\u{1b}[1;5A", "S-Tab Up"),
            ("\u{1b}OP\u{1b}[11~\u{1b}[21~\u{1b}[[A", "F1 F1 F10 F1"),
            ("修é", "修 é"),
            ("\u{1b}x\u{1b}\u{1b}[A", "Esc x Esc Up"),
            ("\u{1b}[200~q\u{3}\u{1b}[201~j", "paste \"q\\u{3}\" j"),
            ("\u{1b}[<0;3;4M\u{1b}[<64;1;1M\u{1b}[<0;3;4m", "Press 2,3 WheelUp 0,0"),
            ("\u{1b}[1;1R\u{1b}]11;rgb:0/0/0\u{7}\u{1b}[?1;2cj", "j"),
            ("\u{1b}[27u\u{1b}[99;5u", "Esc ^c"),
        ] {
            assert_eq!(labels(&Decoder::default().feed(bytes.as_bytes())), want, "{bytes:?}");
        }
    }

    #[test]
    fn an_escape_alone_is_a_key_only_when_nothing_follows() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(b"\x1b"), []);
        assert!(decoder.is_waiting());
        assert_eq!(labels(&decoder.feed(b"[A")), "Up");
        assert!(!decoder.is_waiting());
        decoder.feed(b"\x1b");
        assert_eq!(labels(&decoder.flush()), "Esc");
        assert_eq!(labels(&decoder.feed(b"\x1b\x1b[B")), "Esc Down");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_in_any_pieces_mean_the_same(
            bytes in prop::collection::vec(prop_oneof![
                Just(0x1b_u8), Just(b'['), Just(b'O'), Just(b'~'), Just(b'2'), Just(b'0'), Just(b';'),
                any::<u8>(),
            ], 0..80),
            at in 0_usize..80,
        ) {
            let whole = Decoder::default().feed(&bytes);
            let mut decoder = Decoder::default();
            let (front, back) = bytes.split_at(at.min(bytes.len()));
            let mut pieces = decoder.feed(front);
            pieces.extend(decoder.feed(back));
            prop_assert_eq!(pieces, whole);
        }
    }
}
