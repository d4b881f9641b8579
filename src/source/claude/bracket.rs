//! Claude's compactions: nothing is written while one runs; then a boundary and a summary land
//! together, old versions one of the two alone.
//!
//! A pair counts once, at whichever half comes first, so a boundary torn from its summary by a kill
//! counts too. A half waits for the other only until work goes on. The same record written twice
//! (whole stretches of a file are, sometimes) counts once.

use serde::{Deserialize, Serialize};

use super::super::json::Value;
use super::line::Line;
use super::ring::{self, Ring};
use crate::compaction::{Event, Trigger};

/// Compaction records remembered, to see a repeated one.
const RECORDS_MAX: usize = 32;

/// Which half of a pair was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Half {
    /// `compact_boundary`.
    Boundary,
    /// `isCompactSummary`.
    Summary,
}

/// What is carried from record to record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Brackets {
    /// The half whose other half may come.
    half: Option<Half>,
    /// Records already taken in.
    records: Ring<RECORDS_MAX>,
    /// Stamp of a `/compact` that no compaction has used, ms.
    command_ms: Option<i64>,
    /// Stamp of the last compaction, ms.
    ended_ms: Option<i64>,
}

impl Brackets {
    /// A `/compact` line. It carries the start's stamp but is often written behind the boundary;
    /// then it belongs to the compaction before it, not to the next one.
    pub(super) fn command(&mut self, at_ms: Option<i64>) {
        let Some(at_ms) = at_ms else { return };
        if self.ended_ms.is_none_or(|ended_ms| ended_ms < at_ms) {
            self.command_ms = Some(at_ms);
        }
    }

    /// Work goes on: a half that still waits is alone.
    pub(super) fn work(&mut self) {
        self.half = None;
    }

    /// One half; the finished compaction, if it is the first half of one.
    pub(super) fn half(&mut self, half: Half, line: &Line<'_, '_>) -> Option<Event> {
        if line.envelope.uuid.is_some_and(|uuid| !self.records.add(ring::hash(uuid))) {
            return None;
        }
        if self.half.is_some_and(|waiting| waiting != half) {
            self.half = None;
            return None;
        }
        self.half = Some(half);
        let at_ms = line.carried_ms;
        self.ended_ms = at_ms.or(self.ended_ms);
        let command_ms = self.command_ms.take();
        let [trigger, before, after, duration] = line.envelope.compact.map_or([None; 4], |said| {
            said.pick(["trigger", "preTokens", "postTokens", "durationMs"])
        });
        let trigger = match trigger.map(Value::raw) {
            Some(b"\"manual\"") => Some(Trigger::Manual),
            Some(b"\"auto\"") => Some(Trigger::Auto),
            _ => command_ms.map(|_| Trigger::Manual),
        };
        let duration = duration.and_then(Value::int).filter(|duration| *duration >= 0);
        let measured = at_ms.zip(duration).map(|(at, duration)| at.saturating_sub(duration));
        let asked = command_ms.filter(|_| trigger == Some(Trigger::Manual));
        Some(Event::Finished {
            seq: line.span.offset,
            at_ms,
            started_ms: measured.or(asked),
            trigger,
            before_tokens: before.and_then(Value::uint),
            after_tokens: after.and_then(Value::uint),
        })
    }
}
