//! lullwatch: a monitor for coding-agent sessions. A lull is not an end.

pub mod app;
pub mod cli;
pub mod clock;
pub mod compaction;
pub mod config;
pub mod lifecycle;
pub mod liveness;
pub mod mirror;
pub mod snapshot;
pub mod source;
pub mod store;
pub mod text;
