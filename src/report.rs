//! The snapshot for people and programs: tables, and JSON.
//!
//! It reads what `snapshot` loaded and writes to what it is given; it knows neither the store, nor
//! the clock, nor the terminal. How wide, in which colours and with which glyphs is an argument.
//! Every string that did not originate here passes the text filter on its way out, in both forms.
//!
//! - [`json`]: the wire types, apart from the inner ones, so that a rename inside changes no output;
//! - [`table`]: the list of sessions and the tables of the panes;
//! - [`show`]: one session;
//! - [`doctor`]: what the doctor found.

pub mod doctor;
mod grid;
pub mod json;
pub mod show;
pub mod table;
mod words;

use crate::text::Zone;

/// How a report looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// How wide.
    pub width: Width,
    /// In which colours.
    pub colour: Colour,
    /// With which glyphs.
    pub glyphs: Glyphs,
    /// Whose clock moments are told by.
    pub zone: Zone,
}

/// How wide a report is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Exactly as many cells as a terminal has; columns that do not fit are left out.
    Cells(usize),
    /// As wide as its content, for a file or a pipe; only titles are cut, at a sane length.
    Free,
}

/// In which colours a report is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// None: not one control byte.
    Plain,
    /// The terminal's own sixteen.
    Ansi,
}

/// Which glyphs a report draws with. Text of a transcript stays what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    /// `·`, `→`, `…`, `─`.
    Unicode,
    /// ASCII only.
    Ascii,
}

impl Glyphs {
    /// Between parts of a line.
    fn dot(self) -> &'static str {
        match self {
            Self::Unicode => " · ",
            Self::Ascii => " | ",
        }
    }

    /// From one status to another.
    fn arrow(self) -> &'static str {
        match self {
            Self::Unicode => "→",
            Self::Ascii => "->",
        }
    }

    /// Where something was cut.
    fn cut(self) -> char {
        match self {
            Self::Unicode => '…',
            Self::Ascii => '~',
        }
    }

    /// A text of our own, in which the rules are told.
    fn own(self, text: &str) -> String {
        match self {
            Self::Unicode => text.to_owned(),
            Self::Ascii => text.replace('≤', "<="),
        }
    }

    /// What is not known.
    fn unknown(self) -> &'static str {
        match self {
            Self::Unicode => "─",
            Self::Ascii => "-",
        }
    }
}
