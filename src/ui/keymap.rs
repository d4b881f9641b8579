//! Every key there is, in one table. It drives `update`, makes the help and fills the footer, so
//! none of them can say anything else. A new key is one row here and one arm in `update/act.rs`.

use crate::ui::key::{Code, Key};

/// What has the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The list of sessions.
    Sessions,
    /// The audit pane.
    Audit,
    /// The ledger.
    Ledger,
    /// The compactions pane.
    Compactions,
    /// An opened session.
    Detail,
    /// Text is being typed: the filter, or a consumer's name.
    Typing,
    /// A menu.
    Menu,
    /// A question that wants yes or no.
    Question,
    /// Something to read: help, warnings, the resume command.
    Page,
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is explained by its row in BINDINGS")]
pub enum Action {
    Quit,
    QuitNow,
    Suspend,
    Redraw,
    Help,
    Warnings,
    Close,
    Down,
    Up,
    PageDown,
    PageUp,
    First,
    Last,
    Open,
    NextPane,
    PreviousPane,
    PaneSessions,
    PaneAudit,
    PaneLedger,
    PaneCompactions,
    Filter,
    StatusFilter,
    Sort,
    Unfold,
    Fold,
    Tree,
    Follow,
    Freeze,
    Copy,
    Resume,
    Rescan,
    Mouse,
    Acknowledge,
    Mark,
    MarkAll,
    Consumer,
    NextTab,
    PreviousTab,
    Accept,
    Erase,
    EraseAll,
    Yes,
    No,
}

/// Where a key works; a heading of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Section {
    /// In every mode.
    Everywhere,
    /// In lists, in an opened session, in menus and pages.
    Moving,
    /// In lists and in an opened session.
    Screen,
    /// In the four lists.
    Lists,
    /// In the list of sessions.
    Sessions,
    /// In the ledger.
    Ledger,
    /// In an opened session.
    Detail,
    /// While typing.
    Typing,
    /// In a menu.
    Menu,
    /// At a question.
    Question,
    /// In something to read.
    Page,
}

impl Section {
    /// In the order of the help.
    pub const ALL: [Self; 11] = [
        Self::Sessions,
        Self::Lists,
        Self::Ledger,
        Self::Detail,
        Self::Moving,
        Self::Screen,
        Self::Typing,
        Self::Menu,
        Self::Question,
        Self::Page,
        Self::Everywhere,
    ];

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Everywhere => "Everywhere",
            Self::Moving => "Moving",
            Self::Screen => "Screen",
            Self::Lists => "Lists",
            Self::Sessions => "Sessions",
            Self::Ledger => "Ledger",
            Self::Detail => "Opened session",
            Self::Typing => "While typing",
            Self::Menu => "In a menu",
            Self::Question => "At a question",
            Self::Page => "In a page like this",
        }
    }

    /// Where it works.
    pub fn modes(self) -> &'static [Mode] {
        use Mode::{Audit, Compactions, Detail, Ledger, Menu, Page, Question, Sessions, Typing};
        match self {
            Self::Everywhere => {
                &[Sessions, Audit, Ledger, Compactions, Detail, Typing, Menu, Question, Page]
            }
            Self::Moving => &[Sessions, Audit, Ledger, Compactions, Detail, Menu, Page],
            Self::Screen => &[Sessions, Audit, Ledger, Compactions, Detail],
            Self::Lists => &[Sessions, Audit, Ledger, Compactions],
            Self::Sessions => &[Sessions],
            Self::Ledger => &[Ledger],
            Self::Detail => &[Detail],
            Self::Typing => &[Typing],
            Self::Menu => &[Menu],
            Self::Question => &[Question],
            Self::Page => &[Page],
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// Where it works.
    pub section: Section,
    /// Any of these keys.
    pub keys: &'static [Key],
    /// Does this.
    pub action: Action,
    /// As the help says.
    pub help: &'static str,
    /// The word in the footer, if it stands there.
    pub footer: Option<&'static str>,
}

const fn quiet(
    section: Section,
    keys: &'static [Key],
    action: Action,
    help: &'static str,
) -> Binding {
    Binding { section, keys, action, help, footer: None }
}

const fn shown(
    section: Section,
    keys: &'static [Key],
    action: Action,
    help: &'static str,
    footer: &'static str,
) -> Binding {
    Binding { section, keys, action, help, footer: Some(footer) }
}

const fn ch(letter: char) -> Key {
    Key::char(letter)
}

const fn on(code: Code) -> Key {
    Key::plain(code)
}

const fn ctrl(letter: char) -> Key {
    Key::control(letter)
}

/// The table. Of two rows that fit, the first counts, so the narrow sections come first.
pub const BINDINGS: &[Binding] = {
    use Section::{
        Detail, Everywhere, Ledger, Lists, Menu, Moving, Page, Question, Screen, Sessions, Typing,
    };
    &[
        shown(Lists, &[on(Code::Enter)], Action::Open, "open the session", "open"),
        shown(Lists, &[ch('/')], Action::Filter, "filter while typing; ! turns it round", "filter"),
        shown(Sessions, &[ch('f')], Action::StatusFilter, "only one status: cycle", "status"),
        shown(Sessions, &[ch('s')], Action::Sort, "sort", "sort"),
        quiet(Sessions, &[ch('l'), on(Code::Right)], Action::Unfold, "show its sub-agents"),
        quiet(Sessions, &[ch('h'), on(Code::Left)], Action::Fold, "hide its sub-agents"),
        quiet(Sessions, &[ch('t')], Action::Tree, "all sub-agents: show or hide"),
        shown(
            Ledger,
            &[ch('a')],
            Action::Acknowledge,
            "acknowledge this or the marked (asks)",
            "ack",
        ),
        shown(Ledger, &[ch('x')], Action::Mark, "mark or unmark, and go on", "mark"),
        quiet(Ledger, &[ch('X')], Action::MarkAll, "mark all listed, or none"),
        shown(
            Ledger,
            &[ch('c')],
            Action::Consumer,
            "whose ledger: change the consumer",
            "consumer",
        ),
        quiet(Lists, &[on(Code::Esc)], Action::Close, "clear the filter"),
        shown(
            Detail,
            &[on(Code::Esc), on(Code::Backspace)],
            Action::Close,
            "back one layer",
            "back",
        ),
        shown(
            Detail,
            &[on(Code::Enter)],
            Action::Open,
            "full text, or fold; open a sub-agent",
            "full text",
        ),
        shown(
            Detail,
            &[ch('l'), on(Code::Right), ch(']')],
            Action::NextTab,
            "next: transcript, why, timeline, brackets, agents",
            "next tab",
        ),
        quiet(Detail, &[ch('h'), on(Code::Left), ch('[')], Action::PreviousTab, "the one before"),
        quiet(Moving, &[ch('j'), on(Code::Down), ctrl('n')], Action::Down, "down"),
        quiet(Moving, &[ch('k'), on(Code::Up), ctrl('p')], Action::Up, "up"),
        quiet(Moving, &[on(Code::PageDown), ctrl('d'), ctrl('f')], Action::PageDown, "a page down"),
        quiet(Moving, &[on(Code::PageUp), ctrl('u'), ctrl('b')], Action::PageUp, "a page up"),
        quiet(Moving, &[ch('g'), on(Code::Home)], Action::First, "to the first"),
        quiet(Moving, &[ch('G'), on(Code::End)], Action::Last, "to the last"),
        shown(Screen, &[on(Code::Tab)], Action::NextPane, "next pane", "pane"),
        quiet(Screen, &[on(Code::BackTab)], Action::PreviousPane, "previous pane"),
        quiet(Screen, &[ch('1')], Action::PaneSessions, "sessions"),
        quiet(Screen, &[ch('2')], Action::PaneAudit, "audit: overrides, rejections, migrations"),
        quiet(Screen, &[ch('3')], Action::PaneLedger, "ledger: ends nobody has acknowledged"),
        quiet(Screen, &[ch('4')], Action::PaneCompactions, "compactions"),
        shown(Screen, &[ch('r')], Action::Resume, "the command that resumes it", "resume"),
        shown(Screen, &[ch('y')], Action::Copy, "copy: id, line or full text", "copy"),
        shown(Screen, &[ch('F')], Action::Follow, "follow the transcript", "follow"),
        quiet(Screen, &[ch(' ')], Action::Freeze, "freeze the picture, or go on"),
        quiet(Screen, &[ch('R')], Action::Rescan, "look at every file now"),
        quiet(Screen, &[ch('w')], Action::Warnings, "warnings and roots"),
        quiet(Screen, &[ch('M')], Action::Mouse, "mouse on or off"),
        shown(Screen, &[ch('?'), on(Code::F(1))], Action::Help, "this help", "help"),
        shown(Screen, &[ch('q'), on(Code::F(10))], Action::Quit, "quit", "quit"),
        shown(Typing, &[on(Code::Enter)], Action::Accept, "keep it", "keep"),
        shown(Typing, &[on(Code::Esc)], Action::Close, "leave, and clear a filter", "clear"),
        quiet(Typing, &[on(Code::Backspace), ctrl('h')], Action::Erase, "erase a letter"),
        shown(Typing, &[ctrl('u'), ctrl('w')], Action::EraseAll, "erase all", "erase"),
        quiet(Typing, &[on(Code::Down)], Action::Down, "down in the list"),
        quiet(Typing, &[on(Code::Up)], Action::Up, "up in the list"),
        shown(Menu, &[on(Code::Enter)], Action::Accept, "choose; again turns it round", "choose"),
        shown(Menu, &[on(Code::Esc), ch('q'), ch('s')], Action::Close, "leave it", "leave"),
        shown(Question, &[ch('y'), ch('Y')], Action::Yes, "yes", "yes"),
        shown(
            Question,
            &[ch('n'), ch('N'), on(Code::Enter), on(Code::Esc), ch('q')],
            Action::No,
            "no",
            "no",
        ),
        shown(
            Page,
            &[on(Code::Esc), ch('q'), ch('?'), on(Code::Enter)],
            Action::Close,
            "close it",
            "close",
        ),
        quiet(Page, &[ch('y')], Action::Copy, "copy the resume command"),
        quiet(Everywhere, &[ctrl('c')], Action::QuitNow, "quit at once"),
        quiet(Everywhere, &[ctrl('z')], Action::Suspend, "stop; `fg` comes back"),
        quiet(Everywhere, &[ctrl('l')], Action::Redraw, "draw everything anew"),
    ]
};

/// What a key does in a mode.
pub fn action(mode: Mode, key: Key) -> Option<Action> {
    BINDINGS
        .iter()
        .find(|binding| binding.section.modes().contains(&mode) && binding.keys.contains(&key))
        .map(|binding| binding.action)
}

/// The rows whose word stands in the footer of a mode, in order.
pub fn footer(mode: Mode) -> impl Iterator<Item = (&'static Binding, &'static str)> {
    BINDINGS
        .iter()
        .filter(move |binding| binding.section.modes().contains(&mode))
        .filter_map(|binding| binding.footer.map(|word| (binding, word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_in_one_section() {
        for (at, binding) in BINDINGS.iter().enumerate() {
            for other in &BINDINGS[at + 1..] {
                let same = binding.section == other.section;
                let clash = binding.keys.iter().any(|key| other.keys.contains(key));
                assert!(!(same && clash), "{binding:?} and {other:?}");
            }
        }
    }

    #[test]
    fn every_row_is_reachable_in_some_mode() {
        for binding in BINDINGS {
            let reached = binding
                .section
                .modes()
                .iter()
                .any(|mode| action(*mode, binding.keys[0]) == Some(binding.action));
            assert!(reached, "{binding:?} is shadowed everywhere");
        }
    }

    #[test]
    fn letters_are_text_while_typing() {
        for letter in ('a'..='z').chain('A'..='Z').chain('0'..='9') {
            assert_eq!(action(Mode::Typing, Key::char(letter)), None, "{letter}");
        }
    }
}
