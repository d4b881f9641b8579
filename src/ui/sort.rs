//! The orders in which sessions can stand. Those that need a human come first in each of them.

use std::cmp::Ordering;

use crate::snapshot::Session;

/// What sessions are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortKey {
    /// By status, in groups, as the snapshot has them.
    #[default]
    Status,
    /// Shortest silence first.
    Quiet,
    /// Newest start first.
    Started,
    /// By title.
    Title,
    /// By project.
    Project,
    /// By agent.
    Agent,
    /// Most tokens first.
    Tokens,
    /// Fullest context first.
    Context,
}

impl SortKey {
    /// In the order of the menu.
    pub const ALL: [Self; 8] = [
        Self::Status,
        Self::Quiet,
        Self::Started,
        Self::Title,
        Self::Project,
        Self::Agent,
        Self::Tokens,
        Self::Context,
    ];

    /// Its word on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Quiet => "quiet",
            Self::Started => "started",
            Self::Title => "title",
            Self::Project => "project",
            Self::Agent => "agent",
            Self::Tokens => "tokens",
            Self::Context => "context",
        }
    }
}

/// Which way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// As the key says.
    #[default]
    Forward,
    /// Turned round.
    Backward,
}

/// Sorts positions of `sessions`. Equal ones keep the snapshot's order.
pub fn sort(order: &mut [usize], sessions: &[Session], key: SortKey, direction: Direction) {
    order.sort_by(|left, right| {
        let (Some(left), Some(right)) = (sessions.get(*left), sessions.get(*right)) else {
            return Ordering::Equal;
        };
        let ordering = compare(left, right, key);
        let ordering = match direction {
            Direction::Forward => ordering,
            Direction::Backward => ordering.reverse(),
        };
        right.attention.cmp(&left.attention).then(ordering)
    });
}

fn compare(left: &Session, right: &Session, key: SortKey) -> Ordering {
    match key {
        SortKey::Status => Ordering::Equal,
        SortKey::Quiet => known_first(left.quiet_ms, right.quiet_ms),
        SortKey::Started => right.started_ms.cmp(&left.started_ms),
        SortKey::Title => folded(left.title.as_ref()).cmp(&folded(right.title.as_ref())),
        SortKey::Project => folded(left.cwd.as_ref()).cmp(&folded(right.cwd.as_ref())),
        SortKey::Agent => left.agent.cmp(right.agent),
        SortKey::Tokens => right.tokens.total.cmp(&left.tokens.total),
        SortKey::Context => right.context_used.cmp(&left.context_used),
    }
}

fn known_first(left: Option<i64>, right: Option<i64>) -> Ordering {
    left.is_none().cmp(&right.is_none()).then(left.cmp(&right))
}

/// For comparing: the unknown last, case aside.
fn folded(text: Option<&String>) -> (bool, String) {
    text.map_or((true, String::new()), |text| (false, text.to_lowercase()))
}
