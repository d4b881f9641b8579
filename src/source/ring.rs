//! A short memory: which of the last few ids were seen.
//!
//! Ids are kept as 64-bit hashes, so the memory has a size whatever a transcript calls its records.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::json::Value;

/// The last `N` ids.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Ring<const N: usize> {
    seen: VecDeque<u64>,
}

impl<const N: usize> Ring<N> {
    /// Whether it is among the last ones.
    pub(super) fn has(&self, id: u64) -> bool {
        self.seen.contains(&id)
    }

    /// Remembers it; whether it was new.
    pub(super) fn add(&mut self, id: u64) -> bool {
        if self.has(id) {
            return false;
        }
        if self.seen.len() >= N {
            self.seen.pop_front();
        }
        self.seen.push_back(id);
        true
    }
}

/// The hash of an id as it is written.
pub(super) fn hash(id: Value<'_>) -> u64 {
    hash_bytes(id.raw())
}

/// The hash of what makes up an id (FNV-1a).
pub(super) fn hash_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
