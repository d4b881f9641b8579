//! The one integration binary: the real program and the rooms together.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that cannot be set up has failed"
)]

mod bed;
mod brackets;
mod deliver;
mod doctor;
mod home;
mod lifecycle;
mod liveness;
mod machine;
mod mirror;
mod pty;
mod reconcile;
mod report;
mod run;
mod stage;
mod tidy;
mod ui;
