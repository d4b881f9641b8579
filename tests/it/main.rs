//! The one integration binary: the real program and the rooms together.

mod pty;
mod ui;
