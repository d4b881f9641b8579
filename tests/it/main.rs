//! The one integration binary: the real program and the rooms together.

mod bed;
mod brackets;
mod crash;
mod family;
mod faults;
mod home;
mod hostile;
mod lifecycle;
mod machine;
mod mirror;
mod order;
mod reconcile;
mod report;
mod tidy;
