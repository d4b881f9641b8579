//! What comes into the model and what goes out of it.

use std::sync::Arc;

use crate::snapshot::{Picture, Pointer, Query};
use crate::ui::key::{Key, Mouse};

/// Something happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Msg {
    /// A key.
    Key(Key),
    /// Text was pasted.
    Paste(String),
    /// The mouse did something.
    Mouse(Mouse),
    /// The terminal has this size now, in cells; zero means unknown.
    Resize {
        /// Columns.
        width: u16,
        /// Rows.
        height: u16,
    },
    /// A newer picture of the store.
    Picture(Arc<Picture>),
    /// It is this late, ms.
    Now(i64),
    /// An answer to an effect, or news from the other threads.
    Reply(Reply),
    /// The program is back after a stop.
    Resumed,
}

/// An answer to an effect, or news from the other threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// These entries are acknowledged.
    Acknowledged {
        /// Transition ids.
        ids: Vec<i64>,
        /// By whom.
        consumer: String,
    },
    /// These could not be acknowledged.
    NotAcknowledged {
        /// Transition ids.
        ids: Vec<i64>,
        /// Why, one sentence.
        why: String,
    },
    /// The full text of a message, or why it cannot be had.
    Message {
        /// Its id.
        id: i64,
        /// The text, or one sentence.
        text: Result<String, String>,
    },
    /// Something worth a line for a moment.
    Notice(String),
    /// Something failed: a line that stays until a key.
    Failed(String),
    /// A lasting trouble with its next step, or that it is over.
    Trouble(Option<String>),
}

/// What the shell is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Leave.
    Quit,
    /// Stop, as ^Z does everywhere.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Look with this query from now on.
    Query(Query),
    /// Acknowledge these entries for this consumer.
    Acknowledge {
        /// Transition ids.
        ids: Vec<i64>,
        /// By whom.
        consumer: String,
    },
    /// Read a message's full text.
    ReadMessage {
        /// Its id.
        id: i64,
        /// Where it lies.
        pointer: Pointer,
    },
    /// Look at every file now.
    Rescan,
    /// Put this on the clipboard. It is clean.
    Copy(String),
    /// Tell a human who is not looking. It is clean.
    Notify(String),
    /// Mouse reports on or off.
    Mouse(Switch),
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    #[default]
    Off,
}

impl Switch {
    /// The other.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::On => Self::Off,
            Self::Off => Self::On,
        }
    }
}
