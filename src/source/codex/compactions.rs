//! Compactions: up to three records tell of one, and it counts once.
//!
//! `compacted` comes first, then perhaps an estimate of the tokens, then `context_compacted`
//! (legacy) or a `ContextCompaction` item (paginated), in one read or in several. Records of
//! different kinds with no work between them are one compaction. Only the item knows when it
//! began, so in a paginated rollout the count waits for it, at most until the turn goes on.

use serde::{Deserialize, Serialize};

use super::super::What;
use super::super::json::Value;
use super::text::{oversized_note, plain};
use super::turns::Room;
use super::{Entry, State};
use crate::compaction::{Event, Trigger};

/// A record that tells of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Witness {
    /// `compacted`.
    Record,
    /// `context_compacted`.
    Event,
    /// A `ContextCompaction` item.
    Item,
}

/// A compaction that waits for its item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    seq: u64,
    at_ms: Option<i64>,
    started_ms: Option<i64>,
    trigger: Option<Trigger>,
    before_tokens: Option<u64>,
    after_tokens: Option<u64>,
}

/// What is carried of the newest compaction.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Compactions {
    /// Who has told of it so far; each at most once.
    seen: Vec<Witness>,
    held: Option<Held>,
    /// When each was last written; the same one at the same moment is written twice. ms.
    written: Vec<(Witness, i64)>,
}

/// When a compaction ran by its item's account; ms.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) started_ms: Option<i64>,
    pub(super) completed_ms: Option<i64>,
}

impl Compactions {
    /// The turn goes on, or another begins: what tells of a compaction now tells of a new one.
    pub(super) fn over(&mut self, entry: &mut Entry<'_>) {
        self.release(entry);
        self.seen.clear();
    }

    /// A turn with another id begins: what is told in it at the same moment is another compaction.
    pub(super) fn another_turn(&mut self) {
        self.written.clear();
    }

    /// Counts a compaction that waits.
    pub(super) fn release(&mut self, entry: &mut Entry<'_>) {
        let Some(held) = self.held.take() else { return };
        entry.say_at(
            held.at_ms,
            What::Compaction(Event::Finished {
                seq: held.seq,
                at_ms: held.at_ms,
                started_ms: held.started_ms,
                trigger: held.trigger,
                before_tokens: held.before_tokens,
                after_tokens: held.after_tokens,
            }),
        );
    }

    /// The estimate behind a compaction: tokens after it.
    pub(super) fn estimate(&mut self, tokens: Option<u64>) {
        if let Some(held) = &mut self.held {
            held.after_tokens = tokens.or(held.after_tokens);
        }
    }

    /// Whether this very record has been read; of each kind the last one is remembered.
    fn is_written(&mut self, witness: Witness, at_ms: Option<i64>) -> bool {
        let Some(record) = at_ms.map(|at| (witness, at)) else { return false };
        if self.written.contains(&record) {
            return true;
        }
        self.written.retain(|(other, _)| *other != witness);
        self.written.push(record);
        false
    }

    fn is_same(&self, witness: Witness) -> bool {
        !self.seen.is_empty() && !self.seen.contains(&witness)
    }

    /// A further record of the compaction at hand.
    fn confirm(&mut self, witness: Witness, times: Times, entry: &mut Entry<'_>) {
        self.seen.push(witness);
        if let Some(held) = &mut self.held {
            held.started_ms = times.started_ms.or(held.started_ms);
            held.at_ms = times.completed_ms.or(held.at_ms);
        }
        self.release(entry);
    }
}

impl State {
    /// `compacted`. Its replacement history is never read: it repeats what the file has told.
    pub(super) fn compacted(&mut self, payload: Value<'_>, entry: &mut Entry<'_>) {
        entry.say(What::Activity);
        let text = payload.get("message").and_then(plain).or_else(|| oversized_note(entry));
        self.compaction(Witness::Record, Times::default(), text, entry);
    }

    /// One record of a compaction, the first or a further one.
    pub(super) fn compaction(
        &mut self,
        witness: Witness,
        times: Times,
        text: Option<String>,
        entry: &mut Entry<'_>,
    ) {
        if self.compactions.is_written(witness, entry.at_ms) {
            return;
        }
        if self.compactions.is_same(witness) {
            return self.compactions.confirm(witness, times, entry);
        }
        self.compactions.over(entry);
        let (trigger, began_ms) = match self.turns.compaction() {
            Room::Outside => (None, None),
            Room::Empty(started_ms) => (Some(Trigger::Manual), started_ms),
            Room::Busy => (Some(Trigger::Auto), None),
        };
        entry.note(text.unwrap_or_else(|| "context compacted".to_owned()));
        self.compactions.held = Some(Held {
            seq: entry.offset,
            at_ms: times.completed_ms.or(entry.row_ms),
            started_ms: times.started_ms.or(began_ms),
            trigger,
            before_tokens: self.meter.compacted(entry),
            after_tokens: None,
        });
        self.compactions.seen.push(witness);
        if witness != Witness::Record || entry.ordinal.is_none() {
            self.compactions.release(entry);
        }
    }
}
