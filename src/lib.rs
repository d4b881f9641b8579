//! lullwatch: a monitor for coding-agent sessions. A lull is not an end.

pub mod compaction;
pub mod source;
