//! The shell: what touches the world, and the only asynchronous code.

pub mod input;
pub mod painter;
pub mod terminal;
pub mod tui;
