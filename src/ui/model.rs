//! Everything the screen depends on, as plain data. `update` is the only one to change it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::snapshot::{Detail, Picture, Query, Session};
use crate::text::Zone;
use crate::ui::filter::StatusFilter;
use crate::ui::keymap::Mode;
use crate::ui::layout::{self, Areas};
use crate::ui::list::List;
use crate::ui::msg::Switch;
use crate::ui::page::{Owner, PageLine};
use crate::ui::sort::{Direction, SortKey};
use crate::ui::theme::Theme;
use crate::ui::words::Tally;

/// What was asked for at the start and does not change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Colours.
    pub theme: Theme,
    /// Which glyphs.
    pub glyphs: Glyphs,
    /// Mouse at the start.
    pub mouse: Switch,
    /// Whether to make [`Effect::Notify`](crate::ui::msg::Effect::Notify).
    pub notify: Switch,
    /// Where the user is.
    pub zone: Zone,
    /// The home folder, to shorten paths.
    pub home: Option<String>,
    /// The query to begin with.
    pub query: Query,
}

/// Which glyphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Glyphs {
    /// Signs beyond ASCII.
    #[default]
    Unicode,
    /// ASCII alone, for our own signs.
    Ascii,
}

/// The four panes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Pane {
    /// Sessions.
    #[default]
    Sessions,
    /// Audit events.
    Audit,
    /// Unacknowledged ends.
    Ledger,
    /// Compaction brackets.
    Compactions,
}

impl Pane {
    /// In their order.
    pub const ALL: [Self; 4] = [Self::Sessions, Self::Audit, Self::Ledger, Self::Compactions];

    /// Its name on the screen.
    pub fn title(self) -> &'static str {
        match self {
            Self::Sessions => "Sessions",
            Self::Audit => "Audit",
            Self::Ledger => "Ledger",
            Self::Compactions => "Compactions",
        }
    }

    /// The one after it, and round.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Sessions => Self::Audit,
            Self::Audit => Self::Ledger,
            Self::Ledger => Self::Compactions,
            Self::Compactions => Self::Sessions,
        }
    }

    /// The one before it, and round.
    #[must_use]
    pub fn previous(self) -> Self {
        Self::ALL.into_iter().find(|pane| pane.next() == self).unwrap_or(self)
    }
}

/// The parts of an opened session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tab {
    /// What was said and done.
    #[default]
    Transcript,
    /// Every rule tried.
    Why,
    /// Its transitions.
    Timeline,
    /// Its compaction brackets.
    Brackets,
    /// Its sub-agents.
    Agents,
}

impl Tab {
    /// In their order.
    pub const ALL: [Self; 5] =
        [Self::Transcript, Self::Why, Self::Timeline, Self::Brackets, Self::Agents];

    /// Its name on the screen.
    pub fn title(self) -> &'static str {
        match self {
            Self::Transcript => "Transcript",
            Self::Why => "Why",
            Self::Timeline => "Timeline",
            Self::Brackets => "Brackets",
            Self::Agents => "Agents",
        }
    }

    /// The one after it, and round.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Transcript => Self::Why,
            Self::Why => Self::Timeline,
            Self::Timeline => Self::Brackets,
            Self::Brackets => Self::Agents,
            Self::Agents => Self::Transcript,
        }
    }

    /// The one before it, and round.
    #[must_use]
    pub fn previous(self) -> Self {
        Self::ALL.into_iter().find(|tab| tab.next() == self).unwrap_or(self)
    }
}

/// What has the keyboard when nothing lies over the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Focus {
    /// The list of the pane.
    #[default]
    List,
    /// The opened session.
    Detail,
}

/// What lies over the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlay {
    /// Every key; scrolled by so many lines.
    Help(usize),
    /// Warnings and roots; scrolled by so many lines.
    Warnings(usize),
    /// The sort menu, at this entry.
    Sort(usize),
    /// How to resume this session.
    Resume(i64),
    /// Whether to acknowledge these entries.
    Acknowledge(Vec<i64>),
    /// A consumer's name is being typed.
    Consumer(String),
    /// The filter is being typed; its text is in the list.
    Filter,
}

/// A line for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it says.
    pub text: String,
    /// How long it stays.
    pub stays: Stays,
}

/// How long a notice stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// Until this moment, ms, or a key.
    Until(i64),
    /// Until a key.
    UntilKey,
}

/// A message's full text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Full {
    /// Asked for.
    Asked,
    /// Here it is.
    Text(String),
    /// It cannot be had, and why.
    Missing(String),
}

/// An opened session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DetailPane {
    /// What was opened, row ids, the sub-agents behind their parents.
    pub stack: Vec<i64>,
    /// Which part.
    pub tab: Tab,
    /// The lines of that part, laid out for the width there is.
    pub lines: Vec<PageLine>,
    /// The line the cursor is on.
    pub at: usize,
    /// The first line on the screen.
    pub offset: usize,
    /// What the cursor's line belongs to, and which of its lines it is.
    pub anchor: (Owner, usize),
    /// Keep to the end as it grows.
    pub follow: bool,
    /// Messages that are unfolded.
    pub unfolded: BTreeSet<i64>,
    /// Full texts, by message id.
    pub full: BTreeMap<i64, Full>,
}

/// How fast a backlog shrinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Where the measurement began, ms.
    pub since_ms: i64,
    /// What was left then, bytes.
    pub backlog_then: u64,
    /// Bytes a second since; 0 until known.
    pub bytes_per_s: u64,
}

/// Everything the screen depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// What was asked for at the start.
    pub options: Options,
    /// Columns; never 0.
    pub width: u16,
    /// Rows; never 0.
    pub height: u16,
    /// It is this late, ms.
    pub now_ms: i64,
    /// What is shown; `None` until the first arrives.
    pub picture: Option<Arc<Picture>>,
    /// While frozen: the newest that arrived.
    pub behind: Option<Arc<Picture>>,
    /// The picture stands still.
    pub paused: bool,
    /// Which pane.
    pub pane: Pane,
    /// List or opened session.
    pub focus: Focus,
    /// How many sessions stand in each group; the list before any filter.
    pub tally: Tally,
    /// The list of sessions.
    pub sessions: List,
    /// The audit list.
    pub audit: List,
    /// The ledger list.
    pub ledger: List,
    /// The list of compactions.
    pub compactions: List,
    /// Which statuses are listed.
    pub status_filter: StatusFilter,
    /// What sessions are sorted by.
    pub sort: SortKey,
    /// Which way round.
    pub direction: Direction,
    /// Sessions whose sub-agents are shown, by row id.
    pub unfolded: BTreeSet<i64>,
    /// All sub-agents are shown.
    pub tree: bool,
    /// Marked entries of the ledger.
    pub marked: BTreeSet<i64>,
    /// Entries whose acknowledgement is under way.
    pub acknowledging: BTreeSet<i64>,
    /// Whose ledger.
    pub consumer: Option<String>,
    /// The opened session.
    pub detail: DetailPane,
    /// What lies over the screen.
    pub overlay: Option<Overlay>,
    /// A line for the user.
    pub notice: Option<Notice>,
    /// A trouble that lasts.
    pub trouble: Option<String>,
    /// Mouse reports.
    pub mouse: Switch,
    /// How fast the backlog shrinks.
    pub rate: Option<Rate>,
    /// The query that was sent last.
    pub query: Query,
}

impl Model {
    /// A model before anything has happened.
    pub fn new(options: Options, width: u16, height: u16, now_ms: i64) -> Self {
        let (width, height) = layout::known_size(width, height);
        Self {
            mouse: options.mouse,
            query: options.query.clone(),
            consumer: options.query.consumer.clone(),
            options,
            width,
            height,
            now_ms,
            picture: None,
            behind: None,
            paused: false,
            pane: Pane::default(),
            focus: Focus::default(),
            tally: Tally::default(),
            sessions: List::default(),
            audit: List::default(),
            ledger: List::default(),
            compactions: List::default(),
            status_filter: StatusFilter::default(),
            sort: SortKey::default(),
            direction: Direction::default(),
            unfolded: BTreeSet::new(),
            tree: false,
            marked: BTreeSet::new(),
            acknowledging: BTreeSet::new(),
            detail: DetailPane { follow: true, ..DetailPane::default() },
            overlay: None,
            notice: None,
            trouble: None,
            rate: None,
        }
    }

    /// What has the keyboard.
    pub fn mode(&self) -> Mode {
        match &self.overlay {
            Some(Overlay::Help(_) | Overlay::Warnings(_) | Overlay::Resume(_)) => Mode::Page,
            Some(Overlay::Sort(_)) => Mode::Menu,
            Some(Overlay::Acknowledge(_)) => Mode::Question,
            Some(Overlay::Consumer(_) | Overlay::Filter) => Mode::Typing,
            None => self.base_mode(),
        }
    }

    /// What has the keyboard when nothing lies over the screen.
    pub fn base_mode(&self) -> Mode {
        match (self.focus, self.pane) {
            (Focus::Detail, _) => Mode::Detail,
            (Focus::List, Pane::Sessions) => Mode::Sessions,
            (Focus::List, Pane::Audit) => Mode::Audit,
            (Focus::List, Pane::Ledger) => Mode::Ledger,
            (Focus::List, Pane::Compactions) => Mode::Compactions,
        }
    }

    /// The list of a pane.
    pub fn list(&self, pane: Pane) -> &List {
        match pane {
            Pane::Sessions => &self.sessions,
            Pane::Audit => &self.audit,
            Pane::Ledger => &self.ledger,
            Pane::Compactions => &self.compactions,
        }
    }

    /// The list of a pane, to change.
    pub fn list_mut(&mut self, pane: Pane) -> &mut List {
        match pane {
            Pane::Sessions => &mut self.sessions,
            Pane::Audit => &mut self.audit,
            Pane::Ledger => &mut self.ledger,
            Pane::Compactions => &mut self.compactions,
        }
    }

    /// Where everything is on the screen.
    pub fn areas(&self) -> Areas {
        layout::areas(self)
    }

    /// The selected session of the list.
    pub fn selected_session(&self) -> Option<&Session> {
        let index = self.sessions.selected()?.index;
        self.picture.as_ref()?.snapshot.sessions.get(index)
    }

    /// The session whose details are wanted, by row id.
    pub fn wanted(&self) -> Option<i64> {
        match self.focus {
            Focus::Detail => self.detail.stack.last().copied(),
            Focus::List if self.pane == Pane::Sessions && layout::is_wide(self) => {
                self.sessions.selected().map(|item| item.id)
            }
            Focus::List => None,
        }
    }

    /// The wanted details, once they are here.
    pub fn shown_detail(&self) -> Option<&Detail> {
        let wanted = self.wanted()?;
        let detail = self.picture.as_ref()?.detail.as_ref()?;
        (detail.session.row_id == wanted).then_some(detail)
    }

    /// The wanted session: from the details, or until they are here from the list.
    pub fn shown_session(&self) -> Option<&Session> {
        if let Some(detail) = self.shown_detail() {
            return Some(&detail.session);
        }
        self.session(self.wanted()?)
    }

    /// A session by row id, from the list or from the details.
    pub fn session(&self, row_id: i64) -> Option<&Session> {
        let picture = self.picture.as_ref()?;
        let opened = picture.detail.as_ref();
        let below = opened.into_iter().flat_map(|detail| &detail.children);
        let listed = picture.snapshot.sessions.iter();
        let all = listed.chain(opened.map(|detail| &detail.session)).chain(below);
        all.into_iter().find(|session| session.row_id == row_id)
    }

    /// Whose ledger is shown. While another one is on its way: still the old one's, because its
    /// entries are what is seen and acknowledged.
    pub fn consumer_name(&self) -> &str {
        let shown = self.picture.as_ref().map(|picture| picture.snapshot.ledger.consumer.as_str());
        shown.filter(|name| !name.is_empty()).or(self.consumer.as_deref()).unwrap_or("operator")
    }

    /// A session's silence by now, ms.
    pub fn quiet_ms(&self, session: &Session) -> Option<i64> {
        let made = self.picture.as_ref().map_or(self.now_ms, |picture| picture.snapshot.at_ms);
        session.quiet_ms.map(|quiet| quiet + (self.now_ms - made).max(0))
    }

    /// How long ago a moment is, ms; `None` stays `None`.
    pub fn since(&self, at_ms: Option<i64>) -> Option<i64> {
        at_ms.map(|at| (self.now_ms - at).max(0))
    }
}
