//! What a status is, when it changes, who may change it, and how: ADR-0109.
//!
//! - this file: the vocabulary. Three separate predicates, never one defined as the negation of
//!   another: [`Status::is_terminal`], [`Status::is_live`], [`Status::is_sweepable`].
//! - `decide`: facts and a moment in, a verdict out; pure, and blind to the current status.
//! - `policy`: the edges as data, with the exact actors and reasons of each.
//! - `known`: what the store has of one session, as `decide` wants it.
//! - `presence`: what the observations of one session say together of its processes.
//! - `work`: whether it is worked on, where transcript and process say different things.
//! - `apply`: the only writer of a status.
//! - `migrate`: takes back completions that an older reconciler inferred too early.
//! - `run`: the life of a run: its start, its end, its teardown, its sweep.
//! - `windows`: the two windows of a store, fixed at its birth.
//! - `consumers`: what a status means to those who act on it, each for all three kinds.
//!
//! It knows no files, no clock, no agent's format and no screen. This file, `decide`, `policy`,
//! `work` and `consumers` do not know the store either.

pub mod apply;
pub mod consumers;
pub mod decide;
pub mod known;
pub mod migrate;
mod phrase;
pub mod policy;
pub mod presence;
pub mod run;
pub mod windows;
pub mod work;

pub use apply::{apply, update_status};
pub(crate) use phrase::{moment, span};

use serde::{Deserialize, Serialize};

/// A status of a session or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A run that has not begun.
    Starting,
    /// At work, or silent for no longer than the live window.
    Running,
    /// Silent for longer than the live window: a lull, which was observed, and no end.
    Idle,
    /// Over: by evidence, or inferred from silence longer than the ended window.
    Completed,
    /// A run that ended without any result.
    CompletedEmpty,
    /// A run that failed.
    Failed,
    /// A run that took too long.
    TimedOut,
    /// A run that was broken off.
    Aborted,
    /// A run that was called off.
    Cancelled,
}

impl Status {
    /// Every status, in the order in which lists group them.
    pub const ALL: [Self; 9] = [
        Self::Starting,
        Self::Running,
        Self::Idle,
        Self::Completed,
        Self::CompletedEmpty,
        Self::Failed,
        Self::TimedOut,
        Self::Aborted,
        Self::Cancelled,
    ];

    /// The word in the store, in JSON and on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Completed => "completed",
            Self::CompletedEmpty => "completed_empty",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Aborted => "aborted",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status with that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }

    /// A status of the end.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed
            | Self::CompletedEmpty
            | Self::Failed
            | Self::TimedOut
            | Self::Aborted
            | Self::Cancelled => true,
            Self::Starting | Self::Running | Self::Idle => false,
        }
    }

    /// Not over: its stream is open.
    pub fn is_live(self) -> bool {
        match self {
            Self::Running | Self::Idle => true,
            Self::Starting
            | Self::Completed
            | Self::CompletedEmpty
            | Self::Failed
            | Self::TimedOut
            | Self::Aborted
            | Self::Cancelled => false,
        }
    }

    /// A sweep may end it when its process is proven gone.
    pub fn is_sweepable(self) -> bool {
        match self {
            Self::Running => true,
            Self::Starting
            | Self::Idle
            | Self::Completed
            | Self::CompletedEmpty
            | Self::Failed
            | Self::TimedOut
            | Self::Aborted
            | Self::Cancelled => false,
        }
    }
}

/// Whether a verdict was seen or concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Seen.
    Observed,
    /// Concluded, from silence; reversible.
    Inferred,
}

impl Basis {
    /// The word in the store and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Inferred => "inferred",
        }
    }

    /// The basis with that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Observed, Self::Inferred].into_iter().find(|basis| basis.word() == word)
    }
}

/// The two windows of silence, fixed per store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Silent for no longer than this is running, ms.
    pub live_ms: i64,
    /// Silent for no longer than this is idle, ms.
    pub ended_ms: i64,
}

impl Default for Windows {
    fn default() -> Self {
        Self { live_ms: 300_000, ended_ms: 86_400_000 }
    }
}

/// What has a lifecycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntityType {
    /// A mirrored session of the top level.
    Session,
    /// A command under `lullwatch run`.
    Run,
}

impl EntityType {
    /// The word in the store and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Run => "run",
        }
    }

    /// The entity type with that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Session, Self::Run].into_iter().find(|kind| kind.word() == word)
    }
}

/// Who asks for a change of status, by kind.
///
/// A guard against accident, not against impersonation: the caller says who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActorType {
    /// A pass of the program over stored facts.
    System,
    /// A process that runs a command and sees it end.
    Executor,
    /// A human.
    Operator,
}

impl ActorType {
    /// The word in the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Executor => "executor",
            Self::Operator => "operator",
        }
    }
}

/// Who asks for a change of status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Its kind.
    pub kind: ActorType,
    /// Its exact id.
    pub id: String,
}

impl Actor {
    /// An actor of that kind and id.
    pub fn new(kind: ActorType, id: impl Into<String>) -> Self {
        Self { kind, id: id.into() }
    }
}

/// A row with a lifecycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entity {
    /// Which table.
    pub kind: EntityType,
    /// Its row id there.
    pub id: i64,
}

impl Entity {
    /// The session with that row id.
    pub fn session(id: i64) -> Self {
        Self { kind: EntityType::Session, id }
    }

    /// The run with that row id.
    pub fn run(id: i64) -> Self {
        Self { kind: EntityType::Run, id }
    }
}

/// The end of a terminal row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndStamp {
    /// When, ms.
    pub at_ms: i64,
    /// It is not exact.
    pub approximate: bool,
    /// How long it lasted, ms; only of an exact end.
    pub duration_ms: Option<i64>,
}

/// What shows that a session has ended, the most exact first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// Marker: the model ended the conversation for good.
    EndedByModel,
    /// Observed: the agent's own hook said so.
    SessionEndHook,
    /// Observed: the child of `lullwatch run` exited.
    ChildExited,
    /// Marker: the process exited in order.
    CostState,
    /// Marker: the conversation goes on under another id.
    ContinuedIn,
    /// Marker: the process exited in order, in a life after the first: when, it does not tell.
    LaterCostState,
    /// Observed: a process once verified on this session is gone.
    ProcessGone,
    /// Observed: its registry entry names another session.
    RegistryMoved,
    /// Observed: the server that had loaded it has unloaded it, and lives on.
    Unloaded,
    /// Observed: a command that runs one turn has ended it, and holds no lock.
    CommandDone,
}

impl Ending {
    /// Every kind, the most exact first.
    pub const ALL: [Self; 10] = [
        Self::EndedByModel,
        Self::SessionEndHook,
        Self::ChildExited,
        Self::CostState,
        Self::ContinuedIn,
        Self::LaterCostState,
        Self::ProcessGone,
        Self::RegistryMoved,
        Self::Unloaded,
        Self::CommandDone,
    ];

    /// The word in evidence lines.
    pub fn word(self) -> &'static str {
        match self {
            Self::EndedByModel => "ended-by-model",
            Self::SessionEndHook => "SessionEnd hook",
            Self::ChildExited => "child exited",
            Self::CostState | Self::LaterCostState => "cost-state",
            Self::ContinuedIn => "continued-in",
            Self::ProcessGone => "process gone",
            Self::RegistryMoved => "registry names another session",
            Self::Unloaded => "unloaded by its server",
            Self::CommandDone => "`codex exec` is done, and has no lock",
        }
    }

    /// The ending that a stored observation proves, by its source and its word; a marker is no
    /// observation but a place in the transcript.
    pub fn of_observation(source: &str, says: &str) -> Option<Self> {
        match (source, says) {
            ("hook", "SessionEnd") => Some(Self::SessionEndHook),
            ("run", "exited") => Some(Self::ChildExited),
            ("registry" | "lock" | "run", "gone") => Some(Self::ProcessGone),
            ("registry" | "run", "moved") => Some(Self::RegistryMoved),
            ("lock", "moved") => Some(Self::Unloaded),
            ("lock", "exited") => Some(Self::CommandDone),
            _ => None,
        }
    }

    /// It stands in the transcript: position revokes it, not time.
    pub fn is_marker(self) -> bool {
        match self {
            Self::EndedByModel | Self::CostState | Self::LaterCostState | Self::ContinuedIn => true,
            Self::SessionEndHook
            | Self::ChildExited
            | Self::ProcessGone
            | Self::RegistryMoved
            | Self::Unloaded
            | Self::CommandDone => false,
        }
    }

    /// It was found out by looks, and its time is that of the last one that saw the process here.
    pub fn is_last_sight(self) -> bool {
        match self {
            Self::ProcessGone | Self::RegistryMoved | Self::Unloaded => true,
            Self::EndedByModel
            | Self::SessionEndHook
            | Self::ChildExited
            | Self::CostState
            | Self::LaterCostState
            | Self::ContinuedIn
            | Self::CommandDone => false,
        }
    }

    /// Its time is that of the end itself, not of the last look before it.
    pub fn is_exact(self) -> bool {
        match self {
            Self::EndedByModel
            | Self::SessionEndHook
            | Self::ChildExited
            | Self::CostState
            | Self::ContinuedIn => true,
            Self::LaterCostState
            | Self::ProcessGone
            | Self::RegistryMoved
            | Self::Unloaded
            | Self::CommandDone => false,
        }
    }

    /// A live process does not veto it.
    pub fn outlives_a_holder(self) -> bool {
        match self {
            Self::EndedByModel => true,
            Self::SessionEndHook
            | Self::ChildExited
            | Self::CostState
            | Self::LaterCostState
            | Self::ContinuedIn
            | Self::ProcessGone
            | Self::RegistryMoved
            | Self::Unloaded
            | Self::CommandDone => false,
        }
    }
}

/// The moment from which silence is measured, ms.
///
/// `stored_ms` is what the reconciler noted beside the activity: a later moment at which a process
/// was seen working, or, when `anchored_ms` names this very activity, the moment that stands in
/// for a stamp which lay ahead of the clock.
pub fn sign_of_life_ms(
    last_activity_ms: i64,
    stored_ms: Option<i64>,
    anchored_ms: Option<i64>,
) -> i64 {
    match stored_ms {
        Some(stored) if anchored_ms == Some(last_activity_ms) => stored,
        Some(stored) => stored.max(last_activity_ms),
        None => last_activity_ms,
    }
}

/// A moment of activity as it is judged at `now_ms`: never ahead of it. Of a session whose newest
/// stamp lay ahead of the clock the anchor stands in for that stamp ([`sign_of_life_ms`]), and for
/// all that is stamped after the anchor.
pub fn judged_ms(
    written_ms: i64,
    last_activity_ms: i64,
    (stored_ms, anchored_ms): (Option<i64>, Option<i64>),
    now_ms: i64,
) -> i64 {
    let anchor = stored_ms.filter(|_| anchored_ms == Some(last_activity_ms));
    written_ms.min(anchor.unwrap_or(now_ms)).min(now_ms)
}
