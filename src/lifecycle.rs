//! What a status is, when it changes, who may change it, and how: ADR-0109.
//!
//! - this file: the vocabulary. Three separate predicates, never one defined as the negation of
//!   another: [`Status::is_terminal`], [`Status::is_live`], [`Status::is_sweepable`].
//! - `decide`: facts and a moment in, a verdict out; pure, and blind to the current status.
//! - `policy`: the edges as data, with the exact actors and reasons of each.
//! - `apply`: the only writer of a status.
//! - `consumers`: what a status means to those who act on it, each for all three kinds.
//!
//! It knows no files, no clock, no agent's format and no screen.

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
}
