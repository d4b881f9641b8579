//! lullwatch: a monitor for coding-agent sessions. A lull is not an end.

pub mod app;
pub mod cli;
pub mod clock;
pub mod compaction;
pub mod config;
pub mod delivery;
pub mod lifecycle;
pub mod liveness;
pub mod mirror;
pub mod reconcile;
pub mod report;
pub mod snapshot;
pub mod source;
pub mod store;
pub mod text;
pub mod ui;
