//! Compaction brackets: what a log says of them, and what the evidence beside it says.
//!
//! Position decides, never time and never ids (`formats/dsh.md` sections 2 and 3). This is the only
//! home of the end-seed predicate. It knows no SQL, no files and no screen; adapters hand it
//! positions, in file order.

use serde::{Deserialize, Serialize};

/// What started a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// A human asked for it.
    Manual,
    /// The agent did it by itself.
    Auto,
}

/// One bracket event at its position (`seq` in dsh; the file offset elsewhere).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// dsh `compaction/start`.
    Start {
        /// Its seq.
        seq: u64,
        /// Its stamp, ms.
        at_ms: Option<i64>,
        /// The owner turn; `None` for a standalone (manual) one.
        turn: Option<i64>,
        /// `sourceCommandId`.
        command: Option<String>,
    },
    /// dsh `compaction/summary`.
    Summary {
        /// Its seq.
        seq: u64,
        /// Tokens shadowed (an estimate).
        shadowed_tokens: Option<u64>,
    },
    /// dsh: the checkpoint `user/message` that replaces the shadowed range.
    Replaced {
        /// Its seq.
        seq: u64,
    },
    /// dsh `compaction/end`.
    End {
        /// Its seq.
        seq: u64,
        /// Its stamp, ms.
        at_ms: Option<i64>,
        /// The error chain, when it failed.
        error: Option<String>,
    },
    /// dsh `session/end-seed`, whatever its payload.
    Boundary {
        /// Its seq.
        seq: u64,
        /// `{inherited:true}`: a lineage cut, not a pick-up.
        inherited: bool,
    },
    /// dsh `turn/start` and `turn/end`.
    TurnEdge {
        /// Its seq.
        seq: u64,
    },
    /// dsh `command/done` of this command id.
    CommandDone {
        /// Its seq.
        seq: u64,
        /// The command's id.
        command: String,
    },
    /// Claude and Codex: one compaction that has finished, counted once by the adapter.
    Finished {
        /// File offset of the record that closed it, bytes.
        seq: u64,
        /// When it ended, ms.
        at_ms: Option<i64>,
        /// When it began, ms; derived.
        started_ms: Option<i64>,
        /// What started it.
        trigger: Option<Trigger>,
        /// Tokens before.
        before_tokens: Option<u64>,
        /// Tokens after.
        after_tokens: Option<u64>,
    },
}

/// What the records of one log say, folded in their order. Bounded, whatever the log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Fold {
    /// Completed, successful compactions.
    pub count: u64,
}

impl Fold {
    /// Takes in the next event.
    pub fn fold(&mut self, event: &Event) {
        if let Event::Finished { .. } = event {
            self.count += 1;
        }
    }

    /// Adds the fold of an older log of the same session: counts add up, the newer has the word.
    pub fn add_older(&mut self, older: &Self) {
        self.count += older.count;
    }
}
