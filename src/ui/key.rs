//! What comes from the keyboard and the mouse, as plain values: no terminal library, no bytes.

/// One key with what was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// The key.
    pub code: Code,
    /// What was held with it. Shift is in the character.
    pub held: Held,
}

/// A key, by what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Esc,
    /// Tab.
    Tab,
    /// Shift and Tab.
    BackTab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// A function key.
    F(u8),
}

/// A modifier held with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Held {
    /// None.
    Nothing,
    /// Control.
    Control,
}

impl Key {
    /// A character, nothing held.
    pub const fn char(letter: char) -> Self {
        Self::plain(Code::Char(letter))
    }

    /// A key, nothing held.
    pub const fn plain(code: Code) -> Self {
        Self { code, held: Held::Nothing }
    }

    /// Control and a letter, in lower case.
    pub const fn control(letter: char) -> Self {
        Self { code: Code::Char(letter), held: Held::Control }
    }

    /// How help and footer write it.
    pub fn label(self) -> String {
        let name = match self.code {
            Code::Char(' ') => "Space".to_owned(),
            Code::Char(letter) => letter.to_string(),
            Code::Enter => "Enter".to_owned(),
            Code::Esc => "Esc".to_owned(),
            Code::Tab => "Tab".to_owned(),
            Code::BackTab => "S-Tab".to_owned(),
            Code::Backspace => "Bksp".to_owned(),
            Code::Delete => "Del".to_owned(),
            Code::Up => "Up".to_owned(),
            Code::Down => "Down".to_owned(),
            Code::Left => "Left".to_owned(),
            Code::Right => "Right".to_owned(),
            Code::Home => "Home".to_owned(),
            Code::End => "End".to_owned(),
            Code::PageUp => "PgUp".to_owned(),
            Code::PageDown => "PgDn".to_owned(),
            Code::F(number) => format!("F{number}"),
        };
        match self.held {
            Held::Nothing => name,
            Held::Control => format!("^{name}"),
        }
    }
}

/// What the mouse did, when it is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mouse {
    /// What.
    pub kind: MouseKind,
    /// Column, from 0.
    pub column: u16,
    /// Row, from 0.
    pub row: u16,
}

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MouseKind {
    /// The left button went down.
    Press,
    /// The wheel turned away from the user.
    WheelUp,
    /// The wheel turned towards the user.
    WheelDown,
}
