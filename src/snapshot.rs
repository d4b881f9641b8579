//! One consistent picture of the store, as plain data: what every surface shows.
//!
//! The TUI, the table, the JSON and `show` read this type and derive nothing of their own, so they
//! cannot disagree. Strings here are as the transcripts have them; a surface filters what it prints
//! (`text`). It has no write access and knows neither ratatui nor the clock: the moment it is made
//! for is an argument.
//!
//! - [`load()`] reads it, in one read transaction; [`picture`] with the rows of every pane;
//! - one file per question that a session raises: its [`phase`], whether it needs a human
//!   ([`attention`]), its family, its bracket; all pure;
//! - [`filter`], [`sort`] and [`age`] are what a surface does with a loaded one.

pub mod age;
pub mod attention;
mod behind;
mod bracket;
mod detail;
mod family;
pub mod filter;
mod load;
mod panes;
pub mod phase;
mod resolve;
mod rows;
mod session;
pub mod sort;
mod waiting;
mod why;

pub use crate::lifecycle::{Basis, Status, Windows};
pub use crate::store::ledger::{Narrow, Span as LedgerWhich};
pub use detail::{detail, transitions};
pub use load::{load, picture};
pub use panes::{
    AuditRow, Beside, CompactionRow, Detail, LedgerRow, MessageRow, PANE_ROWS_MAX, Picture,
    Pointer, Query, Transition, Tried,
};
pub use resolve::{Resolved, resolve};
pub use rows::{audit, compactions, ledger};

/// Everything a surface may show, at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The moment it was made for, ms.
    pub at_ms: i64,
    /// The moment up to which the store has been brought by a writer's complete pass, ms.
    pub as_of_ms: Option<i64>,
    /// This host's name.
    pub host: String,
    /// The store's windows.
    pub windows: Windows,
    /// Counts over the listed rows.
    pub counts: Counts,
    /// Why the list may be shorter than one would expect.
    pub hidden: Hidden,
    /// State of the mirror.
    pub mirror: Mirror,
    /// Audit events over the store.
    pub audit: AuditCounts,
    /// The ledger of one consumer over the store.
    pub ledger: LedgerCount,
    /// The listed sessions in display order: attention first, then by status, then newest first.
    pub sessions: Vec<Session>,
}

/// Counts over the listed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Running.
    pub running: u64,
    /// Idle.
    pub idle: u64,
    /// Completed.
    pub completed: u64,
    /// The other terminal statuses.
    pub other: u64,
    /// Past their deadline and not checked by this process.
    pub unchecked: u64,
    /// Needing a human.
    pub attention: u64,
    /// Live ones at work: a tool, a turn or a compaction runs.
    pub at_work: u64,
    /// Live ones whose turn is over: the human's turn.
    pub your_turn: u64,
}

/// What the display filters leave out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hidden {
    /// Sessions of the top level.
    pub sessions: u64,
    /// The filters, as they are typed: `--agent codex --since 2h`; empty where there are none.
    pub filters: String,
}

/// State of the mirror.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mirror {
    /// Whether this process is the writer.
    pub writer: bool,
    /// The writer's pid, when another process is.
    pub writer_pid: Option<u32>,
    /// The writer has not stamped its heartbeat for 15 s.
    pub writer_stalled: bool,
    /// Live files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes not yet read, for a progress bar.
    pub backlog_bytes: u64,
    /// Skipped lines of all live files.
    pub skipped_lines: u64,
    /// Every known file has been read to its end by a complete pass.
    pub complete: bool,
    /// Warnings, each a sentence with the next step.
    pub warnings: Vec<String>,
    /// The roots that were looked at, in the order of the configuration.
    pub roots: Vec<Root>,
}

/// A root, and what the last look at it found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// `claude`, `codex`, `dsh`.
    pub agent: &'static str,
    /// Its path, unfiltered.
    pub path: String,
    /// What was found.
    pub state: RootState,
}

/// What the last look at a root found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RootState {
    /// It is there and can be read.
    Present,
    /// It is not there; a note, no error.
    Missing,
    /// It was there when this process began, and is gone.
    Vanished,
    /// It is there and cannot be read.
    Unreadable,
}

/// Audit events over the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AuditCounts {
    /// Overrides that took back a completion by silence.
    pub overrides: u64,
    /// Overrides that took back a completion by end evidence.
    pub overrides_after_exit: u64,
    /// Rejected transitions, repeats counted.
    pub rejections: u64,
    /// Rows moved by the migration.
    pub migrations: u64,
}

/// Unacknowledged terminal deliveries of one consumer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerCount {
    /// The consumer's name.
    pub consumer: String,
    /// How many are pending, superseded ones included.
    pub pending: u64,
}

/// One session as every surface shows it. Field for field the JSON of design section 8.
#[expect(clippy::struct_excessive_bools, reason = "they are the fields of the JSON contract")]
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Row id in the store; stable, and what a selection holds on to.
    pub row_id: i64,
    /// `agent:native_id`; a sub-agent `agent:parent/native_id`.
    pub id: String,
    /// `claude`, `codex`, `dsh`.
    pub agent: &'static str,
    /// Native id.
    pub native_id: String,
    /// `main`, `fork`, …
    pub kind: &'static str,
    /// Parent of a sub-agent, source of a fork.
    pub parent_native_id: Option<String>,
    /// Title, at most 200 characters, one line, filtered.
    pub title: Option<String>,
    /// Where the title comes from.
    pub title_source: Option<&'static str>,
    /// Working directory.
    pub cwd: Option<String>,
    /// Git branch.
    pub branch: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Agent version.
    pub agent_version: Option<String>,
    /// Status; of a sub-agent derived, of any other the stored one.
    pub status: Status,
    /// Time of the transition row, ms.
    pub status_since_ms: Option<i64>,
    /// Why.
    pub reason: Reason,
    /// What it is doing or waiting for.
    pub phase: Option<Phase>,
    /// The tool of phase [`Phase::Tool`] or [`Phase::ToolGone`], and since when, ms.
    pub tool: Option<(String, Option<i64>)>,
    /// What it waits for, of a human.
    pub waiting_for: Option<WaitingFor>,
    /// Needs a human.
    pub attention: bool,
    /// `open`, `closed`, `interrupted`, `none`.
    pub turn: &'static str,
    /// `completed`, `aborted`, `error`.
    pub last_turn: Option<&'static str>,
    /// Code, space, at most 200 characters.
    pub last_error: Option<String>,
    /// Start, ms.
    pub started_ms: Option<i64>,
    /// Newest activity of it and its sub-agents, ms.
    pub last_activity_ms: Option<i64>,
    /// A stamp lay ahead of the clock.
    pub clock_ahead: bool,
    /// Silence: the snapshot's moment minus the sign of life, ms, at least 0.
    pub quiet_ms: Option<i64>,
    /// End, ms; `None` for a live one.
    pub ended_ms: Option<i64>,
    /// The end is not exact.
    pub ended_approximate: bool,
    /// What it ended in, if that was no good end; stays, whoever has acknowledged it.
    pub ended_in: Option<EndedIn>,
    /// When a pass last decided on it, ms.
    pub checked_ms: Option<i64>,
    /// Past its deadline and not checked: shown as `was …`.
    pub unchecked: bool,
    /// Its process.
    pub process: Process,
    /// Prompts.
    pub prompts: u64,
    /// Answers.
    pub answers: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Skipped lines of its files.
    pub skipped_lines: u64,
    /// Last answer, one line, at most 200 characters, filtered.
    pub last_text: Option<String>,
    /// Tokens without sub-agents.
    pub tokens: Tokens,
    /// Context used, tokens.
    pub context_used: Option<u64>,
    /// Context window, tokens.
    pub context_window: Option<u64>,
    /// Its newest compaction bracket.
    pub compaction: Compaction,
    /// Things to know.
    pub notices: Vec<Notice>,
    /// What goes on behind the conversation, short: `1 shell and 1 timer`.
    pub behind: Option<String>,
    /// Sub-agents.
    pub children: u64,
    /// Active ones.
    pub active_children: u64,
    /// At least one of its files is there.
    pub transcript_present: bool,
}

/// Why a session has its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Reason code.
    pub code: String,
    /// One sentence.
    pub summary: String,
    /// Seen or concluded.
    pub basis: Basis,
    /// The rule of `decide` that held.
    pub rule: String,
    /// What it rests on, one phrase each.
    pub evidence: Vec<String>,
}

/// What a session is doing or waiting for; the first that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Its status is terminal.
    Ended,
    /// A verified compaction runs.
    Compacting,
    /// A human must approve something.
    NeedsApproval,
    /// A human must answer something.
    Question,
    /// The last turn failed.
    Error,
    /// A call is unanswered.
    Tool,
    /// A call is unanswered, and the process that could answer it is known to be gone.
    ToolGone,
    /// A turn is open.
    Working,
    /// A turn is open, and the process that could go on is known to be gone.
    WorkingGone,
    /// Its tail looks as if it had been left.
    ProbablyLeft,
    /// The turn is over.
    YourTurn,
    /// A sub-agent has finished.
    Returned,
}

impl Phase {
    /// The word in JSON and on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Compacting => "compacting",
            Self::NeedsApproval => "needs approval",
            Self::Question => "question",
            Self::Error => "error",
            Self::Tool => "tool",
            Self::ToolGone => "tool, process gone",
            Self::Working => "working",
            Self::WorkingGone => "working, process gone",
            Self::ProbablyLeft => "probably left",
            Self::YourTurn => "your turn",
            Self::Returned => "returned",
        }
    }
}

/// What a session waits for, of a human.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingFor {
    /// What kind of thing.
    pub kind: WaitKind,
    /// The tool that asks, or that is to be allowed.
    pub tool: Option<String>,
    /// What it would do, or what it asks, as far as one line of its call tells.
    pub text: Option<String>,
    /// Since when, ms.
    pub since_ms: Option<i64>,
}

/// What kind of thing a session waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// Leave to do something.
    Approval,
    /// The answer to a question.
    Question,
    /// A yes or no to a plan.
    Plan,
    /// Something to be typed; what is asked is not known.
    Input,
}

impl WaitKind {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Question => "question",
            Self::Plan => "plan",
            Self::Input => "input",
        }
    }
}

/// What a session ended in, where that was no good end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndedIn {
    /// Its turn was open.
    Turn,
    /// Its last turn failed.
    Error,
}

impl EndedIn {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Error => "error",
        }
    }
}

/// The process that holds a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    /// Verified now; disproved; unknown.
    pub alive: Option<bool>,
    /// Its pid.
    pub pid: Option<u32>,
    /// `busy`, `idle`, `waiting`, …
    pub state: Option<String>,
    /// `registry`, `lock`, `run`, `hook`.
    pub source: Option<&'static str>,
}

/// Token counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Uncached input.
    pub input: i64,
    /// Read from a cache.
    pub cache_read: i64,
    /// Written to a cache.
    pub cache_write: i64,
    /// Output.
    pub output: i64,
    /// All four.
    pub total: i64,
}

/// The newest compaction bracket of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    /// `none`, `open`, `closed`, `failed`, `stale`.
    pub bracket: &'static str,
    /// The state of an open bracket by evidence: `compacting`, `open, unverified`, …
    pub state: Option<String>,
    /// `started`, `summarized`, `replaced`.
    pub phase: Option<&'static str>,
    /// The owner refuses to compact.
    pub blocking: bool,
    /// It runs; `None`: unknown.
    pub running: Option<bool>,
    /// `manual`, `auto`.
    pub trigger: Option<&'static str>,
    /// Start, ms.
    pub started_ms: Option<i64>,
    /// End, ms.
    pub ended_ms: Option<i64>,
    /// Error text, filtered.
    pub error: Option<String>,
    /// Deciding sequence number.
    pub seq: Option<u64>,
    /// Newest end-seed.
    pub end_seed_seq: Option<u64>,
    /// Starts in the log that nothing closed.
    pub orphans: u64,
    /// Completed, successful ones.
    pub count: u64,
    /// One line that says why.
    pub why: Option<String>,
    /// Tokens before and after; estimates.
    pub before_tokens: Option<u64>,
    /// Tokens after.
    pub after_tokens: Option<u64>,
}

/// Something to know about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// `format`, `damaged`, `ended_in_turn`, …
    pub code: String,
    /// One sentence.
    pub text: String,
}
