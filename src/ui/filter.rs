//! What a list is narrowed to: words typed after `/`, and one status at a time with `f`.

use crate::snapshot::sort::Group;
use crate::snapshot::{AuditRow, CompactionRow, LedgerRow, Session};

/// Whether a row whose searched texts are `texts` passes.
///
/// Every word must be found in one of them, whatever the case; a leading `!` turns it round.
pub fn passes(filter: &str, texts: &[&str]) -> bool {
    let (wanted, words) = match filter.strip_prefix('!') {
        Some(rest) => (false, rest),
        None => (true, filter),
    };
    let mut words = words.split_whitespace().map(str::to_lowercase).peekable();
    if words.peek().is_none() {
        return true;
    }
    let texts: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
    words.all(|word| texts.iter().any(|text| text.contains(&word))) == wanted
}

/// Whether a session passes.
pub fn session(filter: &str, session: &Session) -> bool {
    filter.is_empty()
        || passes(
            filter,
            &[
                session.title.as_deref().unwrap_or_default(),
                session.cwd.as_deref().unwrap_or_default(),
                session.branch.as_deref().unwrap_or_default(),
                session.id.as_str(),
            ],
        )
}

/// Whether an audit row passes.
pub fn audit(filter: &str, row: &AuditRow) -> bool {
    let title = row.title.as_deref().unwrap_or_default();
    passes(filter, &[title, &row.entity, &row.action, &row.reason, &row.actor, &row.why])
}

/// Whether a ledger row passes.
pub fn ledger(filter: &str, row: &LedgerRow) -> bool {
    let title = row.title.as_deref().unwrap_or_default();
    let superseded = if row.superseded { "superseded" } else { "" };
    passes(filter, &[title, &row.entity, &row.to, &row.reason, superseded])
}

/// Whether a row of the compactions pane passes.
pub fn compaction(filter: &str, row: &CompactionRow) -> bool {
    let title = row.title.as_deref().unwrap_or_default();
    let state = row.compaction.state.as_deref().unwrap_or_default();
    passes(filter, &[title, &row.session, row.compaction.bracket, state])
}

/// Which sessions `f` leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatusFilter {
    /// All.
    #[default]
    All,
    /// Those that need a human.
    NeedsYou,
    /// Running.
    Running,
    /// Idle.
    Idle,
    /// Completed.
    Completed,
    /// Ended otherwise.
    Ended,
}

impl StatusFilter {
    /// The next in the cycle.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::All => Self::NeedsYou,
            Self::NeedsYou => Self::Running,
            Self::Running => Self::Idle,
            Self::Idle => Self::Completed,
            Self::Completed => Self::Ended,
            Self::Ended => Self::All,
        }
    }

    /// Its word on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::NeedsYou => "needs you",
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Completed => "completed",
            Self::Ended => "ended otherwise",
        }
    }

    /// Whether it leaves this session.
    pub fn leaves(self, session: &Session) -> bool {
        match self {
            Self::All => true,
            Self::NeedsYou => session.attention,
            Self::Running => Group::of(session.status) == Group::Running,
            Self::Idle => Group::of(session.status) == Group::Idle,
            Self::Completed => Group::of(session.status) == Group::Completed,
            Self::Ended => Group::of(session.status) == Group::Ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_must_be_somewhere_and_a_bang_turns_it_round() {
        for (filter, want) in [
            ("", true),
            ("  ", true),
            ("deploy", true),
            ("DEPLOY main", true),
            ("deploy other", false),
            ("!", true),
            ("!deploy", false),
            ("!other", true),
        ] {
            assert_eq!(passes(filter, &["Deploy notes", "main"]), want, "{filter:?}");
        }
    }

    #[test]
    fn the_cycle_of_statuses_comes_back() {
        let mut filter = StatusFilter::All;
        let mut seen = Vec::new();
        loop {
            seen.push(filter.word());
            filter = filter.next();
            if filter == StatusFilter::All {
                break;
            }
        }
        assert_eq!(seen.len(), 6);
    }
}
