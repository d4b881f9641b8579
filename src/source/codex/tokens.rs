//! Tokens: what each request cost, and how full the context is.
//!
//! Codex repeats an unchanged `token_count`, so a request counts where the cumulative total changes,
//! also where it goes back, and what counts is the request and never the total: another process may
//! have begun to count anew, or from an earlier value. Since 0.153 a `token_usage_record` tells of
//! the same response before its count (formats, *Seen on 2026-11-30*); Codex Desktop writes records
//! alone. The totals are those of the whole thread: what a fork replays, and what a rollout that goes
//! on with another file has inherited, is where counting starts.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::super::json::{Shape, Value};
use super::super::ring::{self, Ring};
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

/// Responses told by a record whose count has not come; there is one at a time.
const TOLD_MAX: usize = 8;
/// Counts and records remembered, so that one written twice counts once.
const SEEN_MAX: usize = 16;

/// A response that a record told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    used: Totals,
    /// The thread's total with it, where the record says so.
    total: Option<Totals>,
}

/// What is carried between two counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Meter {
    /// Totals of the last count, replayed ones included.
    base: Option<Totals>,
    /// The first total holds what another file counts.
    inherits: bool,
    /// The model has said something in this file.
    spoken: bool,
    /// Records without their count, oldest first.
    told: VecDeque<Told>,
    seen: Ring<SEEN_MAX>,
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

    /// The model has answered: a count that follows is of a request of this file.
    pub(super) fn spoke(&mut self) {
        self.spoken = true;
    }

    /// A replayed `token_count`: only where counting starts.
    pub(super) fn replay(&mut self, payload: Value<'_>) {
        if let Some(total) = payload.at(&["info", "total_token_usage"]) {
            self.base = Some(Totals::read(total));
        }
    }

    /// An own `token_usage_record`: one response by its own id.
    pub(super) fn record(&mut self, payload: Value<'_>, entry: &mut Entry<'_>) {
        let [id, usage, total] = payload.pick(["response_id", "usage", "thread_token_usage"]);
        let Some(usage) = usage.filter(|usage| usage.fields().next().is_some()) else { return };
        let used = Totals::read(usage);
        let name = match id.filter(|id| id.shape() == Shape::String) {
            Some(id) => ring::hash(id),
            None => moment(entry.at_ms, used),
        };
        if !self.seen.add(name) {
            return;
        }
        self.spoken = true;
        spend(used, entry);
        let total = total.filter(|total| total.fields().next().is_some()).map(Totals::read);
        if self.told.len() >= TOLD_MAX {
            self.told.pop_front();
        }
        self.told.push_back(Told { used, total });
        self.context(usage.get("total_tokens").and_then(Value::uint), entry);
    }

    /// An own `token_count`. Answers the estimate of the context, if it is no request but one.
    pub(super) fn count(&mut self, info: Option<Value<'_>>, entry: &mut Entry<'_>) -> Option<u64> {
        let [total, last, window] =
            info?.pick(["total_token_usage", "last_token_usage", "model_context_window"]);
        let last = last.filter(|last| last.fields().next().is_some());
        if let Some(total) = total.filter(|total| total.fields().next().is_some()) {
            self.add(Totals::read(total), last.map(Totals::read), entry);
        }
        self.window(window, entry);
        let last = last?;
        let used = last.get("total_tokens").and_then(Value::uint)?;
        // After a compaction all counters are zero and the total is a guess: not a request.
        if Totals::read(last) == Totals::default() {
            return Some(used);
        }
        self.context(Some(used), entry);
        None
    }

    fn add(&mut self, total: Totals, last: Option<Totals>, entry: &mut Entry<'_>) {
        let base = match self.base {
            Some(base) => base,
            // The total was carried over, and is told again before the first request.
            None if self.inherits && !self.spoken => total,
            None if self.inherits => last.map_or(total, |last| total.minus(last)),
            None => Totals::default(),
        };
        if total == base {
            self.base = Some(total);
            return;
        }
        if entry.at_ms.is_some() && !self.seen.add(moment(entry.at_ms, total)) {
            return;
        }
        self.base = Some(total);
        let is_told = |told: &Told| Some(told.used) == last || told.total == Some(total);
        if let Some(at) = self.told.iter().position(is_told) {
            self.told.remove(at);
            return;
        }
        let difference = if total.restarted_since(base) { total } else { total.minus(base) };
        spend(last.unwrap_or(difference), entry);
    }

    fn context(&mut self, used: Option<u64>, entry: &mut Entry<'_>) {
        if used.is_some() && self.used != used {
            self.used = used;
            entry.say(What::Context(used));
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

    /// The context is again what it was earlier; what the next request says of it is news.
    pub(super) fn rolled_back(&mut self) {
        self.used = None;
    }

    /// A compaction empties the context; answers what was in it.
    pub(super) fn compacted(&mut self, entry: &mut Entry<'_>) -> Option<u64> {
        entry.say(What::Context(None));
        self.used.take()
    }
}

fn spend(used: Totals, entry: &mut Entry<'_>) {
    let tokens = used.tokens();
    if tokens != Tokens::default() {
        entry.say(What::Usage(Usage { key: None, tokens }));
    }
}

/// What makes a count one: its stamp and its counters.
fn moment(at_ms: Option<i64>, counters: Totals) -> u64 {
    let parts = [at_ms.unwrap_or(0)].into_iter().chain(counters.counters());
    let bytes: Vec<u8> = parts.flat_map(i64::to_le_bytes).collect();
    ring::hash_bytes(&bytes)
}
