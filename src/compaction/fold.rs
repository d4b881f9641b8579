//! What the log alone says: bracket events folded in their order, bounded whatever the log.
//!
//! The predicate is one of position. Of the starts and ends only the newest counts; a start is
//! stale once a boundary (`session/end-seed`) stands behind it, and open otherwise. Ids, owners,
//! stamps, summaries and replacements decide nothing; they are kept for display and the evidence.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Bracket, Event, Owner, Phase, Trigger};

/// Attempts kept for a pane; older ones are forgotten first, and stay counted.
pub const ATTEMPTS_MAX: usize = 32;
/// Characters kept of an error chain or of a command id.
const TEXT_CHARS_MAX: usize = 500;

/// One compaction at its place in the log, as far as the log tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Position of its start; `None` where only its end was written.
    pub start_seq: Option<u64>,
    /// Position of its end.
    pub end_seq: Option<u64>,
    /// What the log says of it.
    pub bracket: Bracket,
    /// How far it got.
    pub phase: Phase,
    /// What started it.
    pub trigger: Option<Trigger>,
    /// To what it belongs; `None` outside dsh.
    pub owner: Option<Owner>,
    /// When it began, ms.
    pub started_ms: Option<i64>,
    /// When it ended, ms.
    pub ended_ms: Option<i64>,
    /// Why it failed.
    pub error: Option<String>,
    /// Tokens before.
    pub before_tokens: Option<u64>,
    /// Tokens after.
    pub after_tokens: Option<u64>,
    /// The tokens are estimates (dsh), of what was replaced and of what took its place.
    pub estimated: bool,
    /// It happened in the session this one was forked from.
    pub inherited: bool,
    /// The boundary that made it stale.
    pub boundary_seq: Option<u64>,
    /// A later start that took its place without a boundary between them.
    pub superseded_seq: Option<u64>,
    /// First turn start or end after its start: its owner cannot be at it any more.
    pub turn_over_seq: Option<u64>,
    /// The command that asked for it.
    pub command: Option<String>,
    /// That command's `command/done`.
    pub command_done_seq: Option<u64>,
}

/// What the log alone says of the newest bracket.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogVerdict {
    /// The verdict.
    pub bracket: Bracket,
    /// Position of the start or end that decides it.
    pub decisive_seq: Option<u64>,
    /// Position of the newest boundary.
    pub end_seed_seq: Option<u64>,
    /// How far an open or stale one got; `None` when it has ended.
    pub phase: Option<Phase>,
    /// Starts in the whole log that no end ever answered, an open one not included.
    pub orphans: u64,
    /// Completed, successful ones of this session's own.
    pub count: u64,
    /// The attempt it is about.
    pub attempt: Option<Attempt>,
}

/// What the records of one log say, folded in their order. Bounded, whatever the log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Fold {
    /// Completed, successful compactions of this session's own, lineage not included.
    pub count: u64,
    /// See [`LogVerdict::orphans`].
    orphans: u64,
    /// Newest boundary, whatever its payload.
    end_seed_seq: Option<u64>,
    /// What lies below was copied from the source of a fork.
    own_from_seq: u64,
    /// Newest last; only the last one can be open.
    attempts: VecDeque<Attempt>,
}

impl Fold {
    /// Takes in the next event.
    pub fn fold(&mut self, event: &Event) {
        match event {
            Event::Lineage { until_seq } => self.own_from_seq = *until_seq,
            Event::Start { seq, at_ms, turn, command } => {
                self.supersede(Some(*seq));
                let attempt = Attempt::started(*seq, *at_ms, *turn, command.as_deref());
                self.push(attempt);
            }
            Event::Summary { seq: _, shadowed_tokens, summary_tokens } => {
                if let Some(open) = self.open() {
                    open.phase = open.phase.max(Phase::Summarized);
                    open.before_tokens = *shadowed_tokens;
                    open.after_tokens = *summary_tokens;
                }
            }
            Event::Replaced { seq: _ } => {
                if let Some(open) = self.open() {
                    open.phase = Phase::Replaced;
                }
            }
            Event::End { seq, at_ms, error } => self.end(*seq, *at_ms, error.as_deref()),
            Event::Boundary { seq, inherited } => self.boundary(*seq, *inherited),
            Event::TurnEdge { seq } => {
                if let Some(open) = self.open() {
                    open.turn_over_seq.get_or_insert(*seq);
                }
            }
            Event::CommandDone { seq, command } => {
                let id = cut(command);
                if let Some(open) = self.open()
                    && open.command.as_ref() == Some(&id)
                {
                    open.command_done_seq.get_or_insert(*seq);
                }
            }
            Event::Finished { seq, at_ms, started_ms, trigger, before_tokens, after_tokens } => {
                self.count = self.count.saturating_add(1);
                let mut attempt = Attempt::ended(*seq, *at_ms);
                attempt.phase = Phase::Replaced;
                attempt.trigger = *trigger;
                attempt.started_ms = *started_ms;
                attempt.before_tokens = *before_tokens;
                attempt.after_tokens = *after_tokens;
                self.push(attempt);
            }
        }
    }

    /// Adds the fold of an older log of the same session: counts add up, the newer has the word. What
    /// stands in both, as in a copy, counts once.
    ///
    /// Positions of two logs do not compare, so the older one counts as lying wholly before: its
    /// open bracket is stale once the newer log holds a boundary, superseded once it holds a
    /// bracket of its own.
    pub fn add_older(&mut self, older: &Self) {
        let mut joined = older.clone();
        match (self.end_seed_seq, self.attempts.front()) {
            (Some(seq), _) => joined.boundary(seq, false),
            (None, Some(first)) => joined.supersede(first.start_seq),
            (None, None) => {}
        }
        let shared = self.shared_with(older);
        joined.count = joined.count.saturating_add(self.count).saturating_sub(shared);
        joined.attempts.retain(|attempt| !self.holds(attempt));
        joined.orphans = joined.orphans.saturating_add(self.orphans);
        joined.own_from_seq = self.own_from_seq;
        for attempt in &self.attempts {
            joined.keep(attempt.clone());
        }
        *self = joined;
    }

    /// Whether this very compaction stands in this log too, wherever in it.
    fn holds(&self, attempt: &Attempt) -> bool {
        self.attempts.iter().any(|own| own.is_same(attempt))
    }

    /// How many compactions stand in both logs. Copies share their beginning, so where they already
    /// do with the oldest that one of them remembers, they do with those before it.
    fn shared_with(&self, older: &Self) -> u64 {
        let pairs = older.attempts.iter().enumerate().filter_map(|(at, attempt)| {
            Some((at, self.attempts.iter().position(|own| own.is_same(attempt))?))
        });
        let pairs: Vec<(usize, usize)> = pairs.collect();
        let Some((in_older, in_own)) = pairs.first().copied() else { return 0 };
        let before = |fold: &Self, at: usize| {
            let after = u64::try_from(fold.attempts.len() - at).unwrap_or(u64::MAX);
            fold.count.saturating_sub(after)
        };
        let forgotten = if in_older == 0 || in_own == 0 {
            before(older, in_older).min(before(self, in_own))
        } else {
            0
        };
        u64::try_from(pairs.len()).unwrap_or(u64::MAX).saturating_add(forgotten)
    }

    /// What the log alone says.
    pub fn verdict(&self) -> LogVerdict {
        let newest = self.attempts.back();
        let bracket = newest.map_or(Bracket::None, |attempt| attempt.bracket);
        let phase = match bracket {
            Bracket::Open | Bracket::Stale => newest.map(|attempt| attempt.phase),
            Bracket::None | Bracket::Closed | Bracket::Failed => None,
        };
        LogVerdict {
            bracket,
            decisive_seq: newest.and_then(|attempt| attempt.end_seq.or(attempt.start_seq)),
            end_seed_seq: self.end_seed_seq,
            phase,
            orphans: self.orphans,
            count: self.count,
            attempt: newest.cloned(),
        }
    }

    /// The newest attempts, at most [`ATTEMPTS_MAX`], oldest first.
    pub fn attempts(&self) -> impl DoubleEndedIterator<Item = &Attempt> {
        self.attempts.iter()
    }

    fn open(&mut self) -> Option<&mut Attempt> {
        self.attempts.back_mut().filter(|attempt| attempt.bracket == Bracket::Open)
    }

    fn end(&mut self, seq: u64, at_ms: Option<i64>, error: Option<&str>) {
        if error.is_none() && seq >= self.own_from_seq {
            self.count = self.count.saturating_add(1);
        }
        if self.open().is_none() {
            // By position this is the newest of starts and ends, so it decides all the same.
            self.push(Attempt::ended(seq, at_ms));
        }
        if let Some(attempt) = self.attempts.back_mut() {
            attempt.end_seq = Some(seq);
            attempt.ended_ms = at_ms;
            attempt.error = error.map(cut);
            attempt.bracket = if error.is_some() { Bracket::Failed } else { Bracket::Closed };
        }
    }

    /// The end-seed predicate: what is open before a boundary is not owned by what comes after it.
    fn boundary(&mut self, seq: u64, inherited: bool) {
        self.end_seed_seq = Some(seq);
        if let Some(open) = self.open() {
            open.bracket = Bracket::Stale;
            open.boundary_seq = Some(seq);
            self.orphans = self.orphans.saturating_add(1);
        }
        if inherited {
            self.own_from_seq = seq.saturating_add(1);
            self.count = 0;
            self.attempts.iter_mut().for_each(|attempt| attempt.inherited = true);
        }
    }

    /// A start after an unanswered start: only the newest can be live.
    fn supersede(&mut self, by_seq: Option<u64>) {
        if let Some(open) = self.open() {
            open.bracket = Bracket::Stale;
            open.superseded_seq = by_seq;
            self.orphans = self.orphans.saturating_add(1);
        }
    }

    fn push(&mut self, mut attempt: Attempt) {
        attempt.inherited =
            attempt.start_seq.or(attempt.end_seq).is_some_and(|seq| seq < self.own_from_seq);
        self.keep(attempt);
    }

    fn keep(&mut self, attempt: Attempt) {
        if self.attempts.len() >= ATTEMPTS_MAX {
            self.attempts.pop_front();
        }
        self.attempts.push_back(attempt);
    }
}

impl Attempt {
    fn started(seq: u64, at_ms: Option<i64>, turn: Option<i64>, command: Option<&str>) -> Self {
        let manual = turn.is_none() || command.is_some();
        Self {
            start_seq: Some(seq),
            end_seq: None,
            bracket: Bracket::Open,
            trigger: Some(if manual { Trigger::Manual } else { Trigger::Auto }),
            owner: Some(turn.map_or(Owner::Standalone, Owner::Turn)),
            started_ms: at_ms,
            ended_ms: None,
            estimated: true,
            command: command.map(cut),
            ..Self::ended(seq, None)
        }
    }

    /// The same compaction, as its whole record tells it: known to the millisecond, and by its tokens.
    fn is_same(&self, other: &Self) -> bool {
        let whole = |attempt: &Self| attempt.start_seq.is_none() && attempt.ended_ms.is_some();
        let told = |attempt: &Self| {
            (attempt.started_ms, attempt.ended_ms, attempt.before_tokens, attempt.after_tokens)
        };
        whole(self) && whole(other) && told(self) == told(other)
    }

    fn ended(seq: u64, at_ms: Option<i64>) -> Self {
        Self {
            start_seq: None,
            end_seq: Some(seq),
            bracket: Bracket::Closed,
            phase: Phase::Started,
            trigger: None,
            owner: None,
            started_ms: None,
            ended_ms: at_ms,
            error: None,
            before_tokens: None,
            after_tokens: None,
            estimated: false,
            inherited: false,
            boundary_seq: None,
            superseded_seq: None,
            turn_over_seq: None,
            command: None,
            command_done_seq: None,
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
