//! The rows of the panes beside the list, and what is asked of a snapshot.

use super::{Compaction, Mirror, Session, Snapshot, Status};

/// A row of the audit pane, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Event id.
    pub id: i64,
    /// `status_transition_override`, `status_transition_rejected`, `status_migrated`.
    pub action: String,
    /// When, ms; of repeats the last.
    pub at_ms: i64,
    /// `session` or `run`.
    pub entity_type: String,
    /// `agent:native_id`, or the run's name.
    pub entity: String,
    /// Its title now.
    pub title: Option<String>,
    /// Status before.
    pub from: Option<String>,
    /// Status after, or attempted.
    pub to: String,
    /// Reason code.
    pub reason: String,
    /// Who.
    pub actor: String,
    /// Why, in words.
    pub why: String,
    /// `silence` or `exit`: what an override took back.
    pub after: Option<String>,
    /// Between the end that was taken back and the new activity, ms.
    pub gap_ms: Option<i64>,
    /// Times it happened.
    pub repeats: u64,
    /// What it rests on.
    pub evidence: Vec<String>,
}

/// A row of the ledger pane, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRow {
    /// Transition id: what is acknowledged.
    pub id: i64,
    /// When the transition was written, ms.
    pub at_ms: i64,
    /// `session` or `run`.
    pub entity_type: String,
    /// `agent:native_id`, or the run's name.
    pub entity: String,
    /// Its title now.
    pub title: Option<String>,
    /// Status before.
    pub from: String,
    /// Status after.
    pub to: String,
    /// Reason code.
    pub reason: String,
    /// Seen or concluded.
    pub basis: String,
    /// End, ms.
    pub ended_ms: Option<i64>,
    /// The session has since been reactivated or migrated.
    pub superseded: bool,
    /// When it was acknowledged (`--history` only), ms.
    pub acked_ms: Option<i64>,
    /// Last error of `on_terminal`.
    pub last_error: Option<String>,
    /// Attempts of `on_terminal`.
    pub attempts: u64,
}

/// A row of the compactions pane: open ones first, then newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionRow {
    /// The session.
    pub session: String,
    /// Its row in the store.
    pub row_id: i64,
    /// Its title.
    pub title: Option<String>,
    /// Its status.
    pub status: Status,
    /// The bracket.
    pub compaction: Compaction,
    /// Since when it is as it is, ms.
    pub since_ms: Option<i64>,
    /// Stuck: needs a human.
    pub attention: bool,
}

/// One session opened: what `show` and the detail view have.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    /// The session.
    pub session: Session,
    /// Every rule tried, in order, with its verdict.
    pub why: Vec<Tried>,
    /// Its transitions, oldest first.
    pub transitions: Vec<Transition>,
    /// Its newest brackets, newest first.
    pub brackets: Vec<Compaction>,
    /// Its last messages, oldest first.
    pub messages: Vec<MessageRow>,
    /// Its sub-agents.
    pub children: Vec<Session>,
}

/// One rule of `decide`, tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Its name.
    pub rule: String,
    /// What it asks, with the numbers put in.
    pub test: String,
    /// Whether it held.
    pub held: bool,
    /// Whether it decided: the first that held.
    pub decided: bool,
    /// `observed` or `inferred`: whether what it says was seen, or is concluded.
    pub basis: &'static str,
    /// What it rests on.
    pub evidence: Vec<String>,
}

/// One row of a session's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// Sequence number.
    pub id: i64,
    /// When it was written, ms.
    pub at_ms: i64,
    /// Status before; `None`: admission.
    pub from: Option<String>,
    /// Status after.
    pub to: String,
    /// Reason code.
    pub reason: String,
    /// One sentence.
    pub summary: String,
    /// Seen or concluded.
    pub basis: String,
    /// The rule that held.
    pub rule: String,
    /// Actor id.
    pub actor: String,
    /// What it rests on.
    pub evidence: Vec<String>,
}

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// Id in the store.
    pub id: i64,
    /// `prompt`, `answer`, `tool_call`, `tool_result`, `note`.
    pub kind: &'static str,
    /// When, ms.
    pub at_ms: Option<i64>,
    /// Tool name of a call.
    pub name: Option<String>,
    /// Preview, at most 256 characters, unfiltered.
    pub text: String,
    /// Where the full record lies.
    pub pointer: Pointer,
}

/// Where the full text of a message lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// Where decoding may begin in a file of frames: there, and how many decoded bytes lie before.
    pub frame: (u64, u64),
    /// The file, as raw bytes of its path.
    pub path: Vec<u8>,
    /// Offset in the decoded file, bytes.
    pub offset: u64,
    /// Length, bytes.
    pub bytes: u64,
    /// 64-bit hash of those bytes.
    pub hash: i64,
}

/// Everything the TUI shows at one moment: the snapshot and the rows of the other panes.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// The sessions and the counts.
    pub snapshot: Snapshot,
    /// Audit events, newest first, at most [`PANE_ROWS_MAX`].
    pub audit: Vec<AuditRow>,
    /// The consumer's pending deliveries, oldest first, at most [`PANE_ROWS_MAX`].
    pub ledger: Vec<LedgerRow>,
    /// Sessions that have a bracket.
    pub compactions: Vec<CompactionRow>,
    /// The opened session, if one is open.
    pub detail: Option<Detail>,
}

/// Rows loaded for a pane.
pub const PANE_ROWS_MAX: usize = 2_000;

/// What is asked of a snapshot: display filters, which change neither scan nor reconcile.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// Only this agent's sessions.
    pub agent: Option<String>,
    /// Only sessions active within so long, ms.
    pub within_ms: Option<i64>,
    /// Sub-agents and internal threads too.
    pub children: bool,
    /// Whose ledger; `None`: `operator`.
    pub consumer: Option<String>,
    /// The session to open, by row id.
    pub open: Option<i64>,
}

/// What a process knows beside the store, when it makes a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Beside {
    /// This host's name.
    pub host: String,
    /// State of the mirror and the writer.
    pub mirror: Mirror,
    /// When the last complete pass ended, ms.
    pub as_of_ms: Option<i64>,
    /// Where this process stands: host, boot, pid namespace (JSON).
    pub scope: Option<String>,
    /// When a writer last looked at processes, as far as is known, ms.
    pub probed_ms: Option<i64>,
}
