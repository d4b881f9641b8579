//! Tokens: differences of cumulative totals, and how full the context is.
//!
//! Codex repeats an unchanged `token_count`, so its `last_token_usage` must never be summed. The
//! totals are those of the whole thread: what a fork replays, and what a rollout that goes on with
//! another file has inherited, is where counting starts.

use serde::{Deserialize, Serialize};

use super::super::json::Value;
use super::super::{Tokens, Usage, What};
use super::Entry;

/// Counters of a thread as Codex writes them; input holds both cache counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Totals {
    input: i64,
    cached: i64,
    cache_write: i64,
    output: i64,
    reasoning: i64,
}

impl Totals {
    fn read(value: Value<'_>) -> Self {
        let [input, cached, cache_write, output, reasoning] = value
            .pick([
                "input_tokens",
                "cached_input_tokens",
                "cache_write_input_tokens",
                "output_tokens",
                "reasoning_output_tokens",
            ])
            .map(|field| field.and_then(Value::int).unwrap_or(0).max(0));
        Self { input, cached, cache_write, output, reasoning }
    }

    fn counters(self) -> [i64; 5] {
        [self.input, self.cached, self.cache_write, self.output, self.reasoning]
    }

    /// A new count began: some counter fell.
    fn restarted_since(self, base: Self) -> bool {
        self.counters().iter().zip(base.counters()).any(|(new, old)| *new < old)
    }

    fn minus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_sub(other.input).max(0),
            cached: self.cached.saturating_sub(other.cached).max(0),
            cache_write: self.cache_write.saturating_sub(other.cache_write).max(0),
            output: self.output.saturating_sub(other.output).max(0),
            reasoning: self.reasoning.saturating_sub(other.reasoning).max(0),
        }
    }

    fn tokens(self) -> Tokens {
        let cache = self.cached.saturating_add(self.cache_write);
        Tokens {
            input: self.input.saturating_sub(cache).max(0),
            cache_read: self.cached,
            cache_write: self.cache_write,
            output: self.output,
        }
    }
}

/// What is carried between two counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Meter {
    /// Totals of the last count, replayed ones included.
    base: Option<Totals>,
    /// The first total holds what another file counts.
    inherits: bool,
    /// Context used by the last request, tokens.
    used: Option<u64>,
    window: Option<u64>,
}

impl Meter {
    /// A meter for a rollout; `inherits`: it goes on with another file.
    pub(super) fn new(inherits: bool) -> Self {
        Self { inherits, ..Self::default() }
    }

    /// The rollout builds on a history elsewhere.
    pub(super) fn inherit(&mut self) {
        self.inherits = true;
    }

    /// A replayed `token_count`: only where counting starts.
    pub(super) fn replay(&mut self, payload: Value<'_>) {
        if let Some(total) = payload.at(&["info", "total_token_usage"]) {
            self.base = Some(Totals::read(total));
        }
    }

    /// An own `token_count`. Answers the estimate of the context, if it is no request but one.
    pub(super) fn count(&mut self, info: Option<Value<'_>>, entry: &mut Entry<'_>) -> Option<u64> {
        let [total, last, window] =
            info?.pick(["total_token_usage", "last_token_usage", "model_context_window"]);
        if let Some(total) = total.filter(|total| total.fields().next().is_some()) {
            self.add(Totals::read(total), last, entry);
        }
        self.window(window, entry);
        let last = last?;
        let used = last.get("total_tokens").and_then(Value::uint)?;
        // After a compaction all counters are zero and the total is a guess: not a request.
        if Totals::read(last) == Totals::default() {
            return Some(used);
        }
        if self.used != Some(used) {
            self.used = Some(used);
            entry.say(What::Context(self.used));
        }
        None
    }

    fn add(&mut self, total: Totals, last: Option<Value<'_>>, entry: &mut Entry<'_>) {
        let base = match self.base {
            Some(base) => base,
            None if self.inherits => last.map_or(total, |last| total.minus(Totals::read(last))),
            None => Totals::default(),
        };
        self.base = Some(total);
        let base = if total.restarted_since(base) { Totals::default() } else { base };
        let tokens = total.tokens().minus(base.tokens());
        if tokens != Tokens::default() {
            entry.say(What::Usage(Usage { key: None, tokens }));
        }
    }

    /// The context window, told by a count or by the start of a turn.
    pub(super) fn window(&mut self, window: Option<Value<'_>>, entry: &mut Entry<'_>) {
        let window = window.and_then(Value::uint);
        if window.is_some() && window != self.window {
            self.window = window;
            entry.say(What::Window(window));
        }
    }

    /// A compaction empties the context; answers what was in it.
    pub(super) fn compacted(&mut self, entry: &mut Entry<'_>) -> Option<u64> {
        entry.say(What::Context(None));
        self.used.take()
    }
}
