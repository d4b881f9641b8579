//! Roles and what they look like. Sixteen colours at most, the terminal's own palette, so that an
//! operator's colour scheme wins; no backgrounds, so that both schemes work. Meaning never hangs on
//! colour alone: the mono theme uses none, and `--ascii` swaps the glyphs afterwards.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use crate::lifecycle::Status;

/// What a piece of text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Ordinary.
    Text,
    /// Secondary.
    Dim,
    /// Titles and names.
    Strong,
    /// Keys, the focused pane, what can be acted on.
    Accent,
    /// Needs a human.
    Attention,
    /// Something is not as it should be.
    Warning,
    /// Something failed.
    Error,
    /// Status running.
    Running,
    /// Status idle.
    Idle,
    /// Status completed.
    Completed,
    /// Any other status of an end.
    Ended,
    /// A run that has not begun.
    Starting,
    /// What the selection is drawn with, over everything else.
    Selected,
    /// The selection in a pane that is not focused.
    SelectedAway,
}

/// Which set of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// For a dark background.
    #[default]
    Dark,
    /// For a light one.
    Light,
    /// No colours.
    Mono,
}

impl Theme {
    /// What a role looks like.
    pub fn style(self, role: Role) -> Style {
        let colour = match self {
            Self::Dark => dark(role),
            Self::Light => light(role),
            Self::Mono => None,
        };
        let style = Style::new().add_modifier(self.modifier(role));
        colour.map_or(style, |colour| style.fg(colour))
    }

    fn modifier(self, role: Role) -> Modifier {
        match role {
            Role::Text | Role::Running | Role::Idle | Role::Completed | Role::Starting => {
                Modifier::empty()
            }
            Role::Dim => Modifier::DIM,
            Role::Strong | Role::Accent | Role::Attention | Role::SelectedAway => Modifier::BOLD,
            Role::Ended | Role::Warning | Role::Error if self == Self::Mono => Modifier::BOLD,
            Role::Ended | Role::Warning | Role::Error => Modifier::empty(),
            Role::Selected => Modifier::REVERSED,
        }
    }
}

fn dark(role: Role) -> Option<Color> {
    match role {
        Role::Text | Role::Dim | Role::Strong | Role::Selected | Role::SelectedAway => None,
        Role::Accent | Role::Idle => Some(Color::Cyan),
        Role::Attention | Role::Warning => Some(Color::Yellow),
        Role::Error | Role::Ended => Some(Color::Red),
        Role::Running => Some(Color::Green),
        Role::Completed | Role::Starting => Some(Color::LightBlue),
    }
}

fn light(role: Role) -> Option<Color> {
    match role {
        Role::Text | Role::Dim | Role::Strong | Role::Selected | Role::SelectedAway => None,
        Role::Accent | Role::Idle => Some(Color::Cyan),
        // Yellow cannot be read on white.
        Role::Attention | Role::Warning => Some(Color::Magenta),
        Role::Error | Role::Ended => Some(Color::Red),
        Role::Running => Some(Color::Green),
        Role::Completed | Role::Starting => Some(Color::Blue),
    }
}

/// The role of a status.
pub fn role(status: Status) -> Role {
    match status {
        Status::Starting => Role::Starting,
        Status::Running => Role::Running,
        Status::Idle => Role::Idle,
        Status::Completed => Role::Completed,
        Status::CompletedEmpty
        | Status::Failed
        | Status::TimedOut
        | Status::Aborted
        | Status::Cancelled => Role::Ended,
    }
}

/// The glyph of a status.
pub fn glyph(status: Status) -> &'static str {
    match status {
        Status::Starting => "◌",
        Status::Running => "●",
        Status::Idle => "◐",
        Status::Completed => "✓",
        Status::CompletedEmpty => "○",
        Status::Failed | Status::TimedOut | Status::Aborted | Status::Cancelled => "✗",
    }
}

/// Our own glyphs and what stands for them under `--ascii`, each one cell.
const ASCII: [(&str, &str); 27] = [
    ("◌", "."),
    ("●", "*"),
    ("◐", "~"),
    ("✓", "+"),
    ("○", "o"),
    ("✗", "x"),
    ("▲", "!"),
    ("─", "-"),
    ("│", "|"),
    ("┌", "+"),
    ("┐", "+"),
    ("└", "+"),
    ("┘", "+"),
    ("├", "+"),
    ("┤", "+"),
    ("▌", ">"),
    ("▸", ">"),
    ("▾", "v"),
    ("·", "."),
    ("…", "~"),
    ("→", ">"),
    ("█", "#"),
    ("░", "."),
    ("≤", "<"),
    ("↑", "^"),
    ("↓", "v"),
    ("×", "x"),
];

/// Swaps our glyphs in a finished frame. Words of a transcript in other scripts stay.
pub fn to_ascii(frame: &mut Buffer) {
    for cell in &mut frame.content {
        if cell.symbol().is_ascii() {
            continue;
        }
        if let Some((_, plain)) = ASCII.iter().find(|(glyph, _)| *glyph == cell.symbol()) {
            cell.set_symbol(plain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_glyph_of_a_status_has_an_ascii_one_and_one_cell() {
        for status in Status::ALL {
            let glyph = glyph(status);
            assert!(ASCII.iter().any(|(ours, _)| *ours == glyph), "{glyph}");
        }
        for (ours, plain) in ASCII {
            assert_eq!((crate::text::width(ours), plain.len()), (1, 1), "{ours}");
        }
    }

    #[test]
    fn a_colour_theme_uses_the_palette_and_mono_none() {
        for status in Status::ALL {
            assert!(Theme::Dark.style(role(status)).fg.is_some());
            assert!(Theme::Light.style(role(status)).fg.is_some());
            assert!(Theme::Mono.style(role(status)).fg.is_none());
        }
    }
}
