//! Tokens of a dsh log: per (turn, step) the last sample counts.
//!
//! The same request may be reported by a stream chunk, by a failed attempt and by the message that
//! ends it; summing them would count it several times. The fields are disjoint: input is uncached
//! input; reasoning is part of the output. A compaction's own request is not among them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::super::Tokens;
use super::super::json::Value;

/// Steps remembered; a correction comes within its own step, so a few are plenty.
const SAMPLES_MAX: usize = 8;

/// Samples of the newest steps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Samples(VecDeque<Sample>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Sample {
    turn: i64,
    step: i64,
    tokens: Tokens,
}

impl Samples {
    /// What this sample of the event's step adds to the sum so far.
    pub(super) fn take(&mut self, data: Value<'_>, tokens: Tokens) -> Tokens {
        let [turn, step] = data.pick(["turn", "step"]);
        let (Some(turn), Some(step)) = (turn.and_then(Value::int), step.and_then(Value::int))
        else {
            // Before turns and steps were written every sample was one request.
            return tokens;
        };
        if let Some(old) = self.0.iter_mut().find(|old| old.turn == turn && old.step == step) {
            let change = tokens.minus(old.tokens);
            old.tokens = tokens;
            return change;
        }
        if self.0.len() >= SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Sample { turn, step, tokens });
        tokens
    }
}

/// The usage that an assistant event reports: its own, its chunk's, or (format 4) that of the last
/// usage chunk in the stream it carries.
pub(super) fn of(data: Value<'_>) -> Option<Tokens> {
    let [own, chunk, stream] = data.pick(["usage", "chunk", "stream"]);
    let streamed = || {
        let chunks = stream.into_iter().flat_map(Value::items);
        chunks.filter_map(|item| item.get("chunk").and_then(in_chunk)).last()
    };
    own.and_then(counters).or_else(|| chunk.and_then(in_chunk)).or_else(streamed)
}

/// Context that the request used: all of its input.
pub(super) fn context(tokens: Tokens) -> u64 {
    let used = tokens.total().saturating_sub(tokens.output);
    u64::try_from(used).unwrap_or(0)
}

fn in_chunk(chunk: Value<'_>) -> Option<Tokens> {
    let [kind, usage] = chunk.pick(["type", "usage"]);
    kind.filter(|kind| kind.is("usage"))?;
    counters(usage?)
}

fn counters(usage: Value<'_>) -> Option<Tokens> {
    let found = usage.pick(["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"]);
    if found.iter().all(Option::is_none) {
        return None;
    }
    let [input, output, cache_read, cache_write] = found
        .map(|value| value.and_then(Value::int).filter(|count| *count >= 0).unwrap_or_default());
    Some(Tokens { input, cache_read, cache_write, output })
}
