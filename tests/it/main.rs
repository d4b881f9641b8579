//! The one integration binary: the real program and the rooms together.

mod bed;
mod brackets;
mod home;
mod lifecycle;
mod liveness;
mod machine;
mod mirror;
mod pty;
mod reconcile;
mod report;
mod tidy;
mod ui;
