//! Compaction brackets: what a log says of them, and what the evidence beside it says.
//!
//! Position decides, never time and never ids (`formats/dsh.md` sections 2 and 3). This is the only
//! home of the end-seed predicate. It knows no SQL, no files and no screen; adapters hand it
//! positions, in file order.
//!
//! - [`fold`] takes the events in and says what the log alone says: a [`LogVerdict`];
//! - [`evidence`] adds what is known of processes: a [`BracketState`] with its reason;
//! - [`writer`] is the other side: how a new lifecycle marks that it does not own its seed.

pub mod evidence;
pub mod fold;
pub mod writer;

use serde::{Deserialize, Serialize};

pub use evidence::{Announced, BracketEvidence, BracketState, Lock, State, announced, state};
pub use fold::{Attempt, Fold, LogVerdict};

/// What started a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// A human asked for it.
    Manual,
    /// The agent did it by itself.
    Auto,
}

impl Trigger {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Auto => "auto",
        }
    }
}

/// What the log alone says of the newest bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bracket {
    /// No compaction in the log.
    #[default]
    None,
    /// A start without an end, in the lifecycle that the log is in: its owner refuses to compact.
    Open,
    /// Ended well.
    Closed,
    /// Ended with an error.
    Failed,
    /// A start that the lifecycle after it does not own. Calm: it blocks nothing.
    Stale,
}

impl Bracket {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Failed => "failed",
            Self::Stale => "stale",
        }
    }
}

/// How far a compaction got; each phase includes the ones before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The start stands in the log; the summary is being asked for.
    Started,
    /// The summary stands in the log.
    Summarized,
    /// The old messages are replaced: the context is smaller, whatever becomes of the close.
    Replaced,
}

impl Phase {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Summarized => "summarized",
            Self::Replaced => "replaced",
        }
    }
}

/// To what a compaction belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// A turn, by its number: over when any turn begins or ends after the start.
    Turn(i64),
    /// No turn: asked for between turns. The agent is *idle* by its own account meanwhile.
    Standalone,
}

/// One bracket event at its position (`seq` in dsh; the file offset elsewhere).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// dsh: the events below this seq were copied from the source of a fork (header `seedLength`).
    /// Lineage is no boundary: it decides whose compactions they are, never whether one is open.
    Lineage {
        /// The first seq of the session's own.
        until_seq: u64,
    },
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
        /// Tokens of the summary that takes their place.
        summary_tokens: Option<u64>,
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
