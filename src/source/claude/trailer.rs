//! The metadata trailer of Claude versions without an end marker (≈ 2.1.98 to 2.1.246).
//!
//! On exit the program appends a block of metadata with `last-prompt` in it. From ≈ 2.1.143 it
//! appends the same block whenever 32 KiB were written since the last one, so a block says *left*
//! only when less than that lies before it. A resume appends a short form of it; a type that
//! stands twice in one run of metadata therefore says *resumed, not yet prompted*. It is a hint for
//! the phase, never a status.

use serde::{Deserialize, Serialize};

use super::super::Span;
use super::super::json::Value;

/// A block written for its size has at least this much before it, bytes.
const PERIOD_BYTES: u64 = 32_768;

/// Types that are written as a block; `last-prompt` is the first, so that its bit is known.
const BLOCK: [&str; 13] = [
    "last-prompt",
    "ai-title",
    "custom-title",
    "agent-name",
    "agent-setting",
    "agent-color",
    "tag",
    "mode",
    "permission-mode",
    "pr-link",
    "bridge-session",
    "worktree-state",
    "atis-latch",
];
const LAST_PROMPT: u16 = 1;

/// What the tail of the file looks like so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Trailer {
    /// End of the last block with a `last-prompt`, bytes; 0 before the first.
    block_end: u64,
    /// The run of block metadata that the file ends with.
    run: Option<Run>,
    /// What was said last.
    said: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    /// First byte.
    start: u64,
    /// One past its last line.
    end: u64,
    /// Types in it, by their place in [`BLOCK`].
    types: u16,
    /// A type stood twice.
    repeated: bool,
}

impl Trailer {
    /// Takes in a metadata record; the new verdict, if it changed.
    pub(super) fn metadata(&mut self, kind: Option<Value<'_>>, span: Span) -> Option<bool> {
        let place = kind.and_then(|kind| BLOCK.iter().position(|name| kind.is(name)));
        let Some(place) = place else { return self.other() };
        let bit = LAST_PROMPT << place;
        let run = self.run.get_or_insert(Run {
            start: span.offset,
            end: span.offset,
            types: 0,
            repeated: false,
        });
        run.repeated |= run.types & bit != 0;
        run.types |= bit;
        run.end = span.offset.saturating_add(span.len).saturating_add(1);
        let near = run.start.saturating_sub(self.block_end) < PERIOD_BYTES;
        let left = near && !run.repeated && run.types & LAST_PROMPT != 0;
        self.say(left)
    }

    /// Takes in any other record: it ends the run.
    pub(super) fn other(&mut self) -> Option<bool> {
        let run = self.run.take()?;
        if run.types & LAST_PROMPT != 0 {
            self.block_end = run.end;
        }
        self.say(false)
    }

    fn say(&mut self, left: bool) -> Option<bool> {
        let changed = self.said != left;
        self.said = left;
        changed.then_some(left)
    }
}
