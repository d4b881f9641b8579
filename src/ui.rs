//! The screen, as a pure function of a model.
//!
//! ```text
//! Msg ──update(&mut Model, Msg)──▶ Model ──view(&Model)──▶ frame
//!                │
//!                └──▶ Effects, which the shell (`app::tui`) carries out
//! ```
//!
//! Nothing here opens a file, asks the clock, waits, or knows of threads: `now` is a message, and
//! whatever has to be done outside is an [`Effect`]. What the store has comes as one
//! [`Picture`](crate::snapshot::Picture); no pane derives a verdict of its own.
//!
//! - `key`, `keymap`: what was pressed, and the one table that says what it does
//! - `msg`, `model`, `update`: what happens, what is, and how the one changes the other
//! - `list`, `rows`, `filter`, `sort`, `scroll`, `page`, `layout`: which rows and lines, and where
//! - `piece`, `words`, `age`, `theme`: text made clean, what things are called, how they look
//! - `view`: one file per pane
//!
//! A new pane: its rows in `Picture`, a variant of `Pane` (the compiler then names every place), a
//! file under `view`. A new key: one row of `keymap::BINDINGS`, one arm in `update/act.rs`. A new
//! column: one row of the pane's `COLUMNS`.

pub mod age;
pub mod attention;
pub mod filter;
pub mod key;
pub mod keymap;
pub mod layout;
pub mod list;
pub mod model;
pub mod msg;
pub mod page;
pub mod piece;
pub mod resume;
pub mod rows;
pub mod scroll;
pub mod sort;
pub mod theme;
pub mod update;
pub mod view;
pub mod words;

pub use model::{Glyphs, Model, Options};
pub use msg::{Effect, Msg, Reply, Switch};
pub use update::update;
pub use view::view;
