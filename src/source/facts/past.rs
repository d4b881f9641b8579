//! What was known before each of the last turns, so that a conversation taken back to one of them
//! says again what it said then.
//!
//! Codex takes turns back in two ways: `thread_rolled_back` in the same rollout, and since 0.171 a new
//! rollout whose `history_base` names the one it goes on with and the place from which that one no
//! longer counts (formats, *Seen on 2026-11-30*). Tokens stay spent, and what was done stays done:
//! only what is said of the session now is taken back.

use serde::{Deserialize, Serialize};

use super::super::{Outcome, Turn};
use super::{Facts, Stamped};

/// Turns remembered. Of a conversation taken back behind them all nothing is known.
const TURNS_MAX: usize = 16;
/// Characters kept of an answer's text: as many as a surface shows.
const TEXT_CHARS: usize = 200;

/// Where a Codex rollout goes on with another one: what that holds from there on is taken back
/// (`history_base`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// The other rollout, by the id at the end of its name.
    pub rollout: String,
    /// The first ordinal that no longer counts.
    pub end_ordinal: Option<u64>,
    /// The first byte that no longer counts.
    pub end_offset: Option<u64>,
}

/// The last turns, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Past {
    turns: Vec<Before>,
    /// Where the newest turn began that is no longer remembered.
    forgotten: Option<Place>,
}

/// Where a turn began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Place {
    /// The ordinal of its record, where the rollout has such.
    ordinal: Option<u64>,
    /// Offset in the file, bytes.
    offset: u64,
}

impl Place {
    /// Whether it lies at or behind the end of what a later rollout took over.
    fn is_past(self, base: &Base) -> bool {
        match (self.ordinal, base.end_ordinal, base.end_offset) {
            (Some(ordinal), Some(end), _) => ordinal >= end,
            (_, _, Some(end)) => self.offset >= end,
            (_, _, None) => false,
        }
    }
}

/// What was known before a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Before {
    place: Place,
    /// A human asked for it.
    users: bool,
    last_turn: Option<Outcome>,
    last_error: Option<String>,
    last_text: Option<Stamped>,
    context_used: Option<u64>,
}

impl Past {
    /// Nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.forgotten.is_none()
    }
}

impl Facts {
    /// A turn that may be taken back begins.
    pub(super) fn turn_began(&mut self, ordinal: Option<u64>, offset: u64, users: bool) {
        let text = self.newest_stamped().map(|said| Stamped {
            at_ms: said.at_ms,
            text: said.text.chars().take(TEXT_CHARS).collect(),
        });
        if self.past.turns.len() >= TURNS_MAX {
            self.past.forgotten = Some(self.past.turns.remove(0).place);
        }
        self.past.turns.push(Before {
            place: Place { ordinal, offset },
            users,
            last_turn: self.last_turn,
            last_error: self.last_error.clone(),
            last_text: text,
            context_used: self.context_used,
        });
    }

    /// The turn that began last is one that a human asked for.
    pub(super) fn turn_is_users(&mut self) {
        if let Some(turn) = self.past.turns.last_mut() {
            turn.users = true;
        }
    }

    /// The last `count` turns that a human asked for are taken back, and what followed them.
    pub(super) fn rolled_back(&mut self, count: u64) {
        let Some(before) = count.checked_sub(1) else { return };
        let users = self.past.turns.iter().enumerate().filter(|(_, turn)| turn.users);
        let nth = usize::try_from(before).unwrap_or(usize::MAX);
        match users.rev().nth(nth).map(|(at, _)| at) {
            Some(at) => self.back_to(Some(at)),
            None if self.past.forgotten.is_none() => self.back_to(Some(0)),
            None => self.back_to(None),
        }
    }

    /// A later rollout took over what lies before this place, and what follows is taken back.
    pub(super) fn cut(&mut self, base: &Base) {
        if self.past.forgotten.is_some_and(|place| place.is_past(base)) {
            return self.back_to(None);
        }
        if let Some(at) = self.past.turns.iter().position(|turn| turn.place.is_past(base)) {
            self.back_to(Some(at));
        }
    }

    /// All of it was taken back, and says nothing of what is.
    pub(super) fn void(&mut self) {
        self.back_to(None);
        self.turn = Turn::None;
    }

    /// What was known before that turn is known again; `None`: nothing is.
    fn back_to(&mut self, at: Option<usize>) {
        let kept = at.unwrap_or(0);
        let before = at.and_then(|at| self.past.turns.get(at)).cloned().unwrap_or_default();
        self.past.turns.truncate(kept);
        if at.is_none() {
            self.past.forgotten = None;
        }
        self.turn = Turn::Closed;
        self.last_turn = before.last_turn;
        self.last_error = before.last_error;
        self.last_text.clone_from(&before.last_text);
        self.last_text_fallback = before.last_text;
        self.context_used = before.context_used;
        self.plan = None;
        self.open_calls.clear();
        self.approvals.clear();
    }
}
