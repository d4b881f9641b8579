//! The one integration binary: the real program and the rooms together.

mod bed;
mod brackets;
mod liveness;
mod mirror;
