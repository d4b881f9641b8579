//! lullwatch: a monitor for coding-agent sessions. A lull is not an end.

pub mod compaction;
pub mod delivery;
pub mod lifecycle;
pub mod reconcile;
pub mod snapshot;
pub mod source;
pub mod store;
pub mod text;
