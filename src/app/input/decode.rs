//! Bytes to keys, across reads, one byte at a time.
//!
//! A sequence may come in pieces, and its rest belongs to it however late it comes: a slow line must
//! not turn the answer to somebody else's question into keys. Only an escape that nothing follows is
//! given up after a moment, because that is the Esc key. What is not a key of ours (answers of the
//! terminal, mouse reports of the old kinds, keys let go) is read to its end and dropped.
//!
//! Nothing here keeps more than a bound, and ^C leads out of everything.

use std::mem;
use std::time::Duration;

use crate::ui::key::{Code, Held, Key, Mouse, MouseKind};

/// What may pass between an escape and the rest of its sequence.
const ESCAPE: Duration = Duration::from_millis(25);
/// A paste to which nothing is added for so long is over, without its end.
const PASTE_SILENCE: Duration = Duration::from_secs(2);
/// Pasted bytes beyond this are dropped.
pub(super) const PASTE_BYTES_MAX: usize = 64 * 1024;
/// Beyond this much, or this long, nobody pastes; every ^C ends it.
const RUNAWAY_BYTES: usize = 1024 * 1024;
const RUNAWAY_MS: i64 = 5_000;
/// A ^C that comes so long after the bytes before it was typed, not pasted.
const TYPED_AFTER_MS: i64 = 200;
/// Parameters longer than this belong to no key.
const PARAMETERS_MAX: usize = 64;
const PASTE_END: &[u8] = b"\x1b[201~";
const INTERRUPT: u8 = 0x03;

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

impl Input {
    /// The key that ends the program, whatever else is on the screen.
    pub fn is_interrupt(&self) -> bool {
        *self == Self::Key(Key::control('c'))
    }
}

/// Bytes to keys.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
}

/// Where in a sequence the next byte stands.
#[derive(Debug, Default)]
enum State {
    #[default]
    Ground,
    /// Behind an escape that was given up: its rest may come all the same.
    AfterEscape,
    /// In a character of several bytes.
    Letter(Vec<u8>),
    Escape,
    /// Behind `ESC O`.
    SingleShift,
    /// Behind `ESC [`, with the parameters so far, one more than their bound at most.
    Control(Vec<u8>),
    /// Behind `ESC [ [`, which is how the console of Linux writes its function keys.
    Console,
    /// In a report without a final byte: so many characters are left, the last byte began one.
    Report {
        left: u8,
        lead: bool,
    },
    /// Behind a report: a byte that continues its last character belongs to it.
    ReportOver,
    /// In a control string; whether it began with a control of eight bits and may so end.
    Text {
        eight_bit: bool,
    },
    /// Behind an escape in a control string.
    TextEscape,
    /// The control string was given up at an escape: the second half of its end may still come.
    TextOver,
    Paste(Paste),
}

/// A bracketed paste.
#[derive(Debug, Default)]
struct Paste {
    bytes: Vec<u8>,
    /// Bytes that came, the dropped ones too.
    taken: usize,
    /// How much of its end has been seen.
    end_seen: usize,
    began_ms: i64,
    last_ms: i64,
}

impl Decoder {
    /// Takes one read in; what is complete comes out. `now_ms` is any clock that does not step.
    pub fn feed(&mut self, bytes: &[u8], now_ms: i64) -> Vec<Input> {
        let mut inputs = Vec::new();
        if matches!(self.state, State::AfterEscape) {
            // In one read, this was not typed.
            let rest = matches!(bytes, [b'[', b'0'..=b'?' | b'A'..=b'D' | b'F' | b'H', ..]);
            self.state = if rest { State::Escape } else { State::Ground };
        } else if let State::Paste(paste) = &self.state {
            let typed = now_ms.saturating_sub(paste.last_ms) >= TYPED_AFTER_MS;
            if typed && bytes.first() == Some(&INTERRUPT) {
                self.state = State::Ground;
            }
        }
        for byte in bytes {
            let mut byte = Some(*byte);
            // A byte that ends a sequence without belonging to it is looked at again, from the ground.
            while let Some(now) = byte {
                byte = self.step(now, now_ms, &mut inputs);
            }
        }
        inputs
    }

    /// How long to wait for more before [`Decoder::flush`]; `None`: nothing is given up.
    pub fn patience(&self) -> Option<Duration> {
        match self.state {
            State::Escape | State::TextEscape => Some(ESCAPE),
            State::Paste(_) => Some(PASTE_SILENCE),
            State::Ground
            | State::AfterEscape
            | State::Letter(_)
            | State::SingleShift
            | State::Control(_)
            | State::Console
            | State::Report { .. }
            | State::ReportOver
            | State::Text { .. }
            | State::TextOver => None,
        }
    }

    /// Nothing more came in time.
    pub fn flush(&mut self) -> Vec<Input> {
        if let State::Escape = self.state {
            self.state = State::AfterEscape;
            return vec![plain(Code::Esc)];
        }
        if let State::TextEscape = self.state {
            self.state = State::TextOver;
        } else if let State::Paste(paste) = &mut self.state {
            let paste = mem::take(paste);
            self.state = State::Ground;
            return vec![paste.over()];
        }
        Vec::new()
    }

    /// Whether a paste has begun and not ended.
    pub fn is_pasting(&self) -> bool {
        matches!(self.state, State::Paste(_))
    }

    /// Takes one byte. What comes back did not belong to what came before it.
    fn step(&mut self, byte: u8, now_ms: i64, inputs: &mut Vec<Input>) -> Option<u8> {
        let state = mem::take(&mut self.state);
        let (next, again) = match state {
            State::Ground | State::AfterEscape => (ground(byte, inputs), None),
            State::Letter(bytes) => letter(bytes, byte, inputs),
            State::Escape => escape(byte, inputs),
            State::SingleShift => single_shift(byte, inputs),
            State::Control(parameters) => control(parameters, byte, now_ms, inputs),
            State::Console => {
                let known = (b'A'..=b'E').contains(&byte);
                inputs.extend(known.then(|| plain(Code::F(byte.wrapping_sub(b'A') + 1))));
                unless_control(byte)
            }
            State::Report { left, lead } => report(left, lead, byte),
            State::ReportOver if is_continuation(byte) => (State::Ground, None),
            State::Text { eight_bit } => text(eight_bit, byte),
            State::TextEscape => match byte {
                b'\\' | 0x07 => (State::Ground, None),
                _ => (State::Escape, Some(byte)),
            },
            State::TextOver if byte == b'\\' => (State::Ground, None),
            State::ReportOver | State::TextOver => (State::Ground, Some(byte)),
            State::Paste(paste) => (paste.take(byte, now_ms, inputs), None),
        };
        self.state = next;
        again
    }
}

fn plain(code: Code) -> Input {
    Input::Key(Key::plain(code))
}

fn is_continuation(byte: u8) -> bool {
    (0x80..=0xbf).contains(&byte)
}

/// A control in a sequence breaks it and means itself; anything else was its last byte.
fn unless_control(byte: u8) -> (State, Option<u8>) {
    let broken = !(0x20..0x7f).contains(&byte);
    (State::Ground, broken.then_some(byte))
}

fn ground(byte: u8, inputs: &mut Vec<Input>) -> State {
    let input = match byte {
        0x1b => return State::Escape,
        b'\r' | b'\n' => plain(Code::Enter),
        b'\t' => plain(Code::Tab),
        0x7f | 0x08 => plain(Code::Backspace),
        1..=26 => Input::Key(Key::control(char::from(byte - 1 + b'a'))),
        0x20..=0x7e => plain(Code::Char(char::from(byte))),
        0xc2..=0xf4 => return State::Letter(vec![byte]),
        0..=0x1f => return State::Ground,
        0x80..=0xff => return eight_bit(byte),
    };
    inputs.push(input);
    State::Ground
}

/// Behind a control of eight bits, which is an escape and a letter in one.
fn eight_bit(byte: u8) -> State {
    match byte {
        0x8f => State::SingleShift,
        0x9b => State::Control(Vec::new()),
        0x90 | 0x98 | 0x9d..=0x9f => State::Text { eight_bit: true },
        _ => State::Ground,
    }
}

fn letter(mut bytes: Vec<u8>, byte: u8, inputs: &mut Vec<Input>) -> (State, Option<u8>) {
    if !is_continuation(byte) {
        return (State::Ground, Some(byte));
    }
    bytes.push(byte);
    let len = match bytes.first() {
        Some(0xf0..) => 4,
        Some(0xe0..) => 3,
        Some(_) | None => 2,
    };
    if bytes.len() < len {
        return (State::Letter(bytes), None);
    }
    if let [0xc2, control @ 0x80..=0x9f] = *bytes.as_slice() {
        return (eight_bit(control), None);
    }
    let letter = std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next());
    inputs.extend(letter.map(|letter| plain(Code::Char(letter))));
    (State::Ground, None)
}

fn escape(byte: u8, inputs: &mut Vec<Input>) -> (State, Option<u8>) {
    let next = match byte {
        b'[' => State::Control(Vec::new()),
        b'O' => State::SingleShift,
        b']' | b'P' | b'X' | b'^' | b'_' => State::Text { eight_bit: false },
        // No key of ours is held with Alt, so this is Esc and another key, typed fast.
        _ => {
            inputs.push(plain(Code::Esc));
            return (State::Ground, Some(byte));
        }
    };
    (next, None)
}

fn single_shift(byte: u8, inputs: &mut Vec<Input>) -> (State, Option<u8>) {
    if byte.is_ascii_digit() || byte == b';' {
        // Some write here what was held.
        return (State::SingleShift, None);
    }
    inputs.extend(cursor(byte).map(plain));
    unless_control(byte)
}

/// Behind `ESC [`.
fn control(
    mut parameters: Vec<u8>,
    byte: u8,
    now_ms: i64,
    inputs: &mut Vec<Input>,
) -> (State, Option<u8>) {
    let next = match (byte, parameters.as_slice()) {
        (0x20..=0x3f, _) => {
            if parameters.len() <= PARAMETERS_MAX {
                parameters.push(byte);
            }
            State::Control(parameters)
        }
        (b'[', []) => State::Console,
        // Reports of the mouse from before there were better ones: bytes of any kind follow.
        (b'M', []) => State::Report { left: 3, lead: false },
        (b't', []) => State::Report { left: 2, lead: false },
        (b'T', []) => State::Report { left: 6, lead: false },
        (b'~', b"200") => {
            State::Paste(Paste { began_ms: now_ms, last_ms: now_ms, ..Paste::default() })
        }
        (0x40..=0x7e, known) => {
            if known.len() <= PARAMETERS_MAX {
                inputs.extend(meaning(known, byte));
            }
            State::Ground
        }
        _ => return (State::Ground, Some(byte)),
    };
    (next, None)
}

/// What a whole control sequence means.
fn meaning(parameters: &[u8], last: u8) -> Option<Input> {
    if let (b'M' | b'm', Some(report)) = (last, parameters.strip_prefix(b"<")) {
        return mouse(report, last).map(Input::Mouse);
    }
    // A private mark, or bytes between parameters and end: an answer, no key.
    if !parameters.iter().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')) {
        return None;
    }
    let numbers = Numbers::of(parameters);
    if numbers.is_let_go() {
        return None;
    }
    let code = match last {
        b'~' => numbered(numbers.first()),
        b'u' => return unicode_key(&numbers).map(Input::Key),
        b'Z' => Some(Code::BackTab),
        // With parameters, these are a report of the cursor's place and one of the mouse.
        b'R' | b'M' if !parameters.is_empty() => None,
        other => cursor(other),
    };
    code.map(plain)
}

fn report(left: u8, lead: bool, byte: u8) -> (State, Option<u8>) {
    let next = match byte {
        0x1b | INTERRUPT => return (State::Ground, Some(byte)),
        // Wide terminals write a place as a character, in two bytes.
        _ if lead && is_continuation(byte) => State::Report { left, lead: false },
        _ if left > 1 => State::Report { left: left - 1, lead: matches!(byte, 0xc2..=0xdf) },
        0xc2..=0xdf => State::ReportOver,
        _ => State::Ground,
    };
    (next, None)
}

/// In a control string: an answer of the terminal, skipped up to its end.
fn text(eight_bit: bool, byte: u8) -> (State, Option<u8>) {
    match byte {
        0x07 | 0x18 => (State::Ground, None),
        0x9c if eight_bit => (State::Ground, None),
        0x1b => (State::TextEscape, None),
        // Whoever got here by an unlucky key must get out again.
        INTERRUPT | 0x1a => (State::Ground, Some(byte)),
        _ => (State::Text { eight_bit }, None),
    }
}

impl Paste {
    fn take(mut self, byte: u8, now_ms: i64, inputs: &mut Vec<Input>) -> State {
        let runs_away =
            self.taken > RUNAWAY_BYTES || now_ms.saturating_sub(self.began_ms) > RUNAWAY_MS;
        if runs_away && byte == INTERRUPT {
            inputs.push(Input::Key(Key::control('c')));
            return State::Ground;
        }
        self.taken = self.taken.saturating_add(1);
        self.last_ms = now_ms;
        if PASTE_END.get(self.end_seen) == Some(&byte) {
            self.end_seen += 1;
            if self.end_seen == PASTE_END.len() {
                self.end_seen = 0;
                inputs.push(self.over());
                return State::Ground;
            }
            return State::Paste(self);
        }
        // Not its end after all; of the end only the first byte can begin another.
        self.keep_seen();
        if PASTE_END.first() == Some(&byte) {
            self.end_seen = 1;
        } else {
            self.keep(byte);
        }
        State::Paste(self)
    }

    fn keep_seen(&mut self) {
        for byte in PASTE_END.iter().take(mem::take(&mut self.end_seen)) {
            self.keep(*byte);
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.bytes.len() < PASTE_BYTES_MAX {
            self.bytes.push(byte);
        }
    }

    fn over(self) -> Input {
        Input::Paste(String::from_utf8_lossy(&self.bytes).into_owned())
    }
}

/// The parameters of a control sequence; each may have parts of its own.
struct Numbers(Vec<Vec<u32>>);

impl Numbers {
    fn of(parameters: &[u8]) -> Self {
        let number =
            |part: &[u8]| std::str::from_utf8(part).ok().and_then(|text| text.parse().ok());
        let parts = |parameter: &[u8]| {
            parameter.split(|byte| *byte == b':').map(|part| number(part).unwrap_or(0)).collect()
        };
        Self(parameters.split(|byte| *byte == b';').map(parts).collect())
    }

    fn part(&self, parameter: usize, part: usize) -> Option<u32> {
        self.0.get(parameter).and_then(|parts| parts.get(part)).copied()
    }

    fn first(&self) -> u32 {
        self.part(0, 0).unwrap_or(0)
    }

    /// The newer protocols also tell when a key is let go.
    fn is_let_go(&self) -> bool {
        self.part(1, 1) == Some(3)
    }
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
fn unicode_key(numbers: &Numbers) -> Option<Key> {
    const CONTROL: u32 = 4;
    /// Shift is in the character; the two locks change nothing.
    const NO_MATTER: u32 = 1 | 64 | 128;
    let held = match numbers.part(1, 0).unwrap_or(1).saturating_sub(1) & !NO_MATTER {
        0 => Held::Nothing,
        CONTROL => Held::Control,
        _ => return None,
    };
    let code = match char::from_u32(numbers.first())? {
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
    let numbers = Numbers::of(report);
    let [button, column, row] = numbers.0.as_slice() else { return None };
    let kind = match (button.first()?, last) {
        (0, b'M') => MouseKind::Press,
        (64, b'M') => MouseKind::WheelUp,
        (65, b'M') => MouseKind::WheelDown,
        _ => return None,
    };
    let cell = |number: &u32| u16::try_from(number.saturating_sub(1)).unwrap_or(u16::MAX);
    Some(Mouse { kind, column: cell(column.first()?), row: cell(row.first()?) })
}

#[cfg(test)]
mod tests;
