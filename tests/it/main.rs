//! The one integration binary: the real program and the rooms together.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that cannot be set up has failed"
)]

mod bed;
mod brackets;
mod cli;
mod clocks;
mod crash;
mod deliver;
mod doctor;
#[cfg(target_os = "linux")]
mod evidence;
mod family;
mod faults;
mod home;
mod hook;
mod hostile;
#[cfg(target_os = "linux")]
mod life;
mod lifecycle;
mod liveness;
mod machine;
mod mirror;
#[cfg(target_os = "linux")]
mod monitor;
mod order;
#[cfg(target_os = "linux")]
mod presence;
mod pty;
mod readings;
mod reconcile;
mod report;
mod run;
mod stage;
mod store_files;
mod tidy;
mod ui;
mod unseen;
#[cfg(target_os = "linux")]
mod watch;
