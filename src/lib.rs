//! lullwatch: a monitor for coding-agent sessions. A lull is not an end.

pub mod app;
pub mod compaction;
pub mod lifecycle;
pub mod snapshot;
pub mod source;
pub mod store;
pub mod text;
pub mod ui;
