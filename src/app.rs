//! The shell.

pub mod lock;
