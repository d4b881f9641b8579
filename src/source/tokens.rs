//! Token counters, and what a record says of them.

use serde::{Deserialize, Serialize};

/// Tokens of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Claude: `message.id` + NUL + `requestId`, else the line's uuid. The same key counts once,
    /// the maximum of each counter, in whatever sessions it stands. `None`: a difference to add.
    pub key: Option<String>,
    /// The counters.
    pub tokens: Tokens,
}

/// Token counters; signed, since a corrected sample may take some back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tokens {
    /// Uncached input.
    pub input: i64,
    /// Input read from a cache.
    pub cache_read: i64,
    /// Input written to a cache.
    pub cache_write: i64,
    /// Output, reasoning included.
    pub output: i64,
}

impl Tokens {
    /// All four.
    pub fn total(self) -> i64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
            .saturating_add(self.output)
    }

    /// Counter by counter.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
        }
    }

    /// Counter by counter.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_sub(other.input),
            cache_read: self.cache_read.saturating_sub(other.cache_read),
            cache_write: self.cache_write.saturating_sub(other.cache_write),
            output: self.output.saturating_sub(other.output),
        }
    }
}
