//! What records say of work that goes on behind a conversation, and of its end.

use super::{Outcome, SessionKey};

/// What a record says of work that goes on behind the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Background {
    /// A shell with this id was started.
    Shell(String),
    /// A sub-agent or a workflow with this id was started.
    Agent(String),
    /// A monitor with this id was armed, until this moment (ms) where it ends by itself.
    Monitor {
        /// Its id.
        id: String,
        /// ms; `None`: for as long as the session lives.
        until_ms: Option<i64>,
    },
    /// A timer with this id was set.
    Timer {
        /// Its id.
        id: String,
        /// It goes off again and again; else once.
        recurring: bool,
    },
    /// The session wakes itself at this moment, ms, and at no other; `None`: it does not.
    Wakeup(Option<i64>),
    /// The timer with this id went off.
    Fired(String),
    /// The timer with this id was taken back.
    Unset(String),
    /// What has this id is over.
    Over(String),
    /// The turn is over, and so many sub-agents and workflows are still at work.
    Left(u64),
}

/// The end of a sub-agent, as its parent or a document beside it tells it. It holds for what the
/// sub-agent did until then: one that is sent on works again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    /// The sub-agent.
    pub to: SessionKey,
    /// How it ended.
    pub outcome: Outcome,
}
