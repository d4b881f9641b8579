//! What the agents write: one physical line plus carried state in, records out.
//!
//! This room is total. A line that cannot be read yields a count, never an error, and no byte of a
//! transcript can make it panic. It knows nothing of paths, of SQL, of the clock or of a status: an
//! adapter says what a line *records*, and the rooms above decide what follows from it.
//!
//! - [`json`] reads an object lazily and tolerates what agents really write;
//! - [`claude`], [`codex`], [`dsh`] are the adapters, one file each;
//! - [`facts`] folds records into what one file generation says of a session, and merges those;
//! - [`zframe`] finds where a frame of a compressed log ends.

mod background;
pub mod claude;
pub mod codex;
pub mod display;
pub mod dsh;
pub mod errors;
pub mod facts;
pub mod json;
mod place;
mod reading;
mod ring;
#[cfg(test)]
pub(crate) mod testing;
mod tokens;
pub mod zframe;

use serde::{Deserialize, Serialize};

pub use background::{Background, Returned};

use crate::compaction;
pub use facts::Base;
use json::Value;
pub use place::Place;
pub use tokens::{Tokens, Usage};

/// A coding agent whose transcripts we read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex CLI and its relatives.
    Codex,
    /// DeepSeek Harness.
    Dsh,
}

impl Agent {
    /// Every agent, in the order in which lists show them.
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Dsh];

    /// The word used on the command line, in the store and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Dsh => "dsh",
        }
    }

    /// The agent with that word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.word() == word)
    }
}

/// Identity of a session inside its agent: its native id and, for a sub-agent, its parent's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    /// Claude: file stem or `agentId`; Codex: thread id; dsh: header id.
    pub native: String,
    /// The parent's native id; `Some` only for a sub-agent.
    pub parent: Option<String>,
}

impl SessionKey {
    /// A session of the top level.
    pub fn top(native: impl Into<String>) -> Self {
        Self { native: native.into(), parent: None }
    }

    /// A sub-agent of `parent`.
    pub fn child(native: impl Into<String>, parent: impl Into<String>) -> Self {
        Self { native: native.into(), parent: Some(parent.into()) }
    }
}

/// What a file's path tells an adapter before the first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// What the file is.
    pub place: Place,
    /// The file name without `.jsonl`, `.json`, `.zst`, `.zstd` (`agent-` and `rollout-` kept).
    pub stem: String,
    /// The folder that names a session: Claude `<session>` of `<session>/subagents/…` or of
    /// `<session>/custom-title.json`, dsh's session folder (still encoded). `None` elsewhere.
    pub folder: Option<String>,
    /// The time in a Codex file name, read as UTC (it is local time, so good to a day), ms.
    pub named_ms: Option<i64>,
}

/// Where a record's object lies in the (decoded) file, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// Whose record it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Of {
    /// The session the file belongs to: [`State::key`].
    File,
    /// A Claude sub-agent written inline into its parent's file (1.0.x), by `agentId`.
    Inline(String),
}

/// One thing that one object of one line says.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Whose it is.
    pub of: Of,
    /// Its own stamp, or for a message without one the last stamp before it; ms since 1970 UTC.
    pub at_ms: Option<i64>,
    /// Where its object lies; set by [`read_line`].
    pub span: Span,
    /// What it says.
    pub what: What,
}

/// What a record says. One object may say several things: one record each, in this order of use.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A substantive record (design section 2, *activity*): moves the clock, revokes an end marker.
    Activity,
    /// The session's own start stamp (`at_ms`); the earliest one counts.
    Started,
    /// A row of the transcript, perhaps counted as a prompt, an answer or a tool call.
    Message(Message),
    /// A change of the turn.
    Turn(TurnMark),
    /// The last error: a short code (no space) and a text. Cleared by a later completed turn.
    Error {
        /// `rate_limit`, `PROVIDER_ERROR`, …; `error` where the record has none.
        code: String,
        /// Human text, uncut.
        text: String,
    },
    /// The turn that has just closed ended with this plan, which waits for its approval.
    Plan(String),
    /// A turn begins that may be taken back (Codex); its offset is the record's.
    TurnBegan {
        /// The record's ordinal, where the rollout has such.
        ordinal: Option<u64>,
        /// A human asked for it.
        users: bool,
    },
    /// A human asked for the turn that began last.
    TurnIsUsers,
    /// So many turns that a human asked for are taken back, the last ones.
    RolledBack(u64),
    /// The file goes on with another one.
    Base(Base),
    /// Every unanswered call is void: a human prompt came instead of results.
    CallsVoid,
    /// dsh `approval/asked` (`true`) and `approval/decided` (`false`) of this id.
    Approval {
        /// The approval's id.
        id: String,
        /// Asked, not decided.
        asked: bool,
    },
    /// An end marker of the session's own transcript; stands while no activity lies behind it.
    End(EndMark),
    /// Whether the tail is a decidable metadata trailer (Claude ≤ 2.1.246): a hint for the phase.
    Trailer(bool),
    /// A title addressed to a session, perhaps another than the file's.
    Title(Title),
    /// A sub-agent is over, by the word of a file that is not its own.
    Returned(Returned),
    /// Tokens; see [`Usage`].
    Usage(Usage),
    /// Context used by the last own request, tokens; `None` after a compaction.
    Context(Option<u64>),
    /// The context window, tokens.
    Window(Option<u64>),
    /// A bracket event: start, end, boundary, turn (positions only; the fold decides).
    Compaction(compaction::Event),
    /// What kind of session it is; see [`Kind`].
    Kind(Kind),
    /// The native id of the session it was forked from or copied out of.
    ForkOf(String),
    /// Working directory; the first seen counts.
    Cwd(String),
    /// Git branch; the newest counts.
    Branch(String),
    /// Model; the newest counts.
    Model(String),
    /// Version of the agent; the newest counts.
    Version(String),
    /// Codex: what started it, `session_meta.source` where that is a word: `cli`, `exec`, `vscode`.
    Source(String),
    /// Work behind the conversation: begun, over, or counted.
    Background(Background),
    /// A record type this adapter does not know.
    Unknown(String),
    /// Something an operator should see beside the session.
    Notice(Notice),
    /// dsh `{inherited:true}`: all before it was copied from the source of a fork. Activity, turns,
    /// messages and tokens start anew; what the session is, its start and its brackets stay.
    Reset,
}

/// A row of the transcript: a preview of the text; the full text is read from the file by pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What it is and what it counts as.
    pub kind: MessageKind,
    /// Whether it counts only where no primary record of its kind exists (Codex response items).
    pub source: MessageSource,
    /// What makes it one row however often it is written: Claude the record's `uuid` and the block's
    /// index, dsh `seq`, Codex the item's id within its turn. `None`: always a new row.
    pub native: Option<String>,
    /// Whether it counts in `prompts`, `answers` or `tool_calls` (each by its kind). Of the several
    /// lines of one model message only the first counts; a row already seen never counts again.
    pub counted: bool,
    /// The tool call it opens or answers.
    pub call: Option<String>,
    /// The tool's name, for a call.
    pub name: Option<String>,
    /// Preview, at most [`PREVIEW_CHARS`] characters, unfiltered; images as size notes.
    pub text: String,
}

/// At most this many characters of a message are kept in the store.
pub const PREVIEW_CHARS: usize = 256;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// User text that starts work from outside; counted in `prompts`.
    Prompt,
    /// A model message, or one block of it; may have no text (tool-only). Counted in `answers`.
    Answer,
    /// A call record; counted in `tool_calls`.
    ToolCall,
    /// A result; not counted.
    ToolResult,
    /// Anything else worth a line in the transcript: compaction, interrupt, error, meta text.
    Note,
}

impl MessageKind {
    /// The word kept in the store and printed in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Answer => "answer",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::Note => "note",
        }
    }

    /// The kind with that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Prompt, Self::Answer, Self::ToolCall, Self::ToolResult, Self::Note]
            .into_iter()
            .find(|kind| kind.word() == word)
    }
}

/// See [`Message::source`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MessageSource {
    /// Counts.
    Primary,
    /// Counts only where the file holds no primary message of the same kind.
    Fallback,
}

/// A change of the turn (design section 2, *Turns*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnMark {
    /// A turn is open (again).
    Open,
    /// It is over with this outcome.
    Close(Outcome),
    /// It is over, if one is open; an outcome already known stays as it is.
    CloseIfOpen(Outcome),
    /// It is over, and had no content: the previous outcome stays.
    CloseEmpty,
    /// The human broke it off: turn `interrupted`, outcome aborted.
    Interrupt,
}

/// State of the newest turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Turn {
    /// No turn yet.
    #[default]
    None,
    /// Under way, as far as the transcript tells.
    Open,
    /// Over.
    Closed,
    /// Broken off by the human.
    Interrupted,
}

impl Turn {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The model finished.
    Completed,
    /// A human or a program broke it off.
    Aborted,
    /// It failed.
    Error,
}

impl Outcome {
    /// The outcome with that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Completed, Self::Aborted, Self::Error]
            .into_iter()
            .find(|outcome| outcome.word() == word)
    }

    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::Error => "error",
        }
    }
}

/// An end marker in the session's own transcript (design section 3, *End evidence*).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndMark {
    /// Which one.
    pub kind: EndKind,
    /// When it ended by the marker's own account (`cost-state`: `startTime + totalDuration`); ms.
    pub at_ms: Option<i64>,
    /// The marker tells no moment of its own: `at_ms` is that of the last stamp before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approximate: bool,
}

/// The end markers that exist; all are Claude's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndKind {
    /// The process exited gracefully, or `/clear`ed away.
    CostState,
    /// The conversation goes on under another session id.
    ContinuedIn,
    /// The model ended the conversation for good; stands even under a live process.
    EndedByModel,
}

impl EndKind {
    /// The record type that is the marker.
    pub fn word(self) -> &'static str {
        match self {
            Self::CostState => "cost-state",
            Self::ContinuedIn => "continued-in",
            Self::EndedByModel => "ended-by-model",
        }
    }
}

/// A title addressed to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Title {
    /// Where it comes from; the order of the variants is the precedence.
    pub kind: TitleKind,
    /// Whom it is for; `None`: the record's own session.
    pub to: Option<SessionKey>,
    /// The text, unfiltered, at most 1,000 characters.
    pub text: String,
}

/// Where a title comes from, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitleKind {
    /// Given by the user: Claude `custom-title`, Codex thread name.
    Custom,
    /// Given by a model or the program: Claude `ai-title`, dsh `session/title`.
    Generated,
    /// Claude `agent-name`.
    AgentName,
    /// Claude `summary` whose leaf is a record of this session.
    Summary,
    /// A sub-agent's description in its meta file, or dsh's descriptor label.
    Description,
    /// The first prompt (kept in the facts, not as a record).
    FirstPrompt,
    /// The first slash command with its arguments (a record; the first one counts).
    FirstCommand,
}

impl TitleKind {
    /// The word in JSON's `title_source` and in the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::Custom => "custom",
            Self::Generated => "generated",
            Self::AgentName => "agent_name",
            Self::Summary => "summary",
            Self::Description => "description",
            Self::FirstPrompt => "first_prompt",
            Self::FirstCommand => "first_command",
        }
    }

    /// The kind with that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [
            Self::Custom,
            Self::Generated,
            Self::AgentName,
            Self::Summary,
            Self::Description,
            Self::FirstPrompt,
            Self::FirstCommand,
        ]
        .into_iter()
        .find(|kind| kind.word() == word)
    }
}

/// What kind of session it is; the first that fits of the order below wins in a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A child of a session.
    SubAgent,
    /// A thread the agent runs for itself (guardian, review, memory).
    Internal,
    /// Its header or meta names a source.
    Fork,
    /// A teammate of an agent team.
    Team,
    /// A background session.
    Background,
    /// Started by a program.
    Sdk,
    /// None of these.
    Main,
}

impl Kind {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::SubAgent => "subagent",
            Self::Internal => "internal",
            Self::Fork => "fork",
            Self::Team => "team",
            Self::Background => "background",
            Self::Sdk => "sdk",
            Self::Main => "main",
        }
    }

    /// Such a session has no lifecycle row, and is not listed at the top level.
    pub fn is_nested(self) -> bool {
        match self {
            Self::SubAgent | Self::Internal => true,
            Self::Fork | Self::Team | Self::Background | Self::Sdk | Self::Main => false,
        }
    }
}

/// Something an operator should see beside a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Notice {
    /// `format`, `damaged`, …
    pub code: String,
    /// One sentence; never a piece of a transcript.
    pub text: String,
}

/// Carried state of the adapter of one file generation; stored with the cursor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "agent", rename_all = "lowercase")]
pub enum State {
    /// Claude Code.
    Claude(Box<claude::State>),
    /// Codex.
    Codex(Box<codex::State>),
    /// DeepSeek Harness.
    Dsh(Box<dsh::State>),
}

impl State {
    /// The state before the first line.
    pub fn new(agent: Agent, hint: &Hint) -> Self {
        match agent {
            Agent::Claude => Self::Claude(Box::new(claude::State::new(hint))),
            Agent::Codex => Self::Codex(Box::new(codex::State::new(hint))),
            Agent::Dsh => Self::Dsh(Box::new(dsh::State::new(hint))),
        }
    }

    /// The session the file belongs to; `None` until a line (or the hint) has told.
    pub fn key(&self) -> Option<SessionKey> {
        match self {
            Self::Claude(state) => state.key(),
            Self::Codex(state) => state.key(),
            Self::Dsh(state) => state.key(),
        }
    }

    /// One JSON object of the file.
    fn object(&mut self, object: Value<'_>, span: Span, out: &mut Vec<Record>) {
        match self {
            Self::Claude(state) => state.object(object, span, out),
            Self::Codex(state) => state.object(object, span, out),
            Self::Dsh(state) => state.object(object, span, out),
        }
    }
}

/// What was wrong with a physical line; all zero for a good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Flaws {
    /// Without a usable JSON object, or a torn part beside a good record: `skipped_lines`.
    pub skipped: u64,
    /// Longer than [`LINE_BYTES_MAX`]: read by head and tail only.
    pub oversized: u64,
}

impl Flaws {
    /// Adds the counts of another line.
    pub fn add(&mut self, other: Self) {
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.oversized = self.oversized.saturating_add(other.oversized);
    }
}

/// A line is parsed whole up to this many bytes.
pub const LINE_BYTES_MAX: usize = 16 << 20;
/// Of a longer one, this many bytes at each end are read.
pub const OVERSIZED_ENDS_BYTES: usize = 64 << 10;

/// Reads one complete physical line (without its newline) that starts at `offset`.
///
/// Glued objects all count, NUL runs and torn parts are stepped over (`performance.md`, 3.5).
pub fn read_line(state: &mut State, line: &[u8], offset: u64, out: &mut Vec<Record>) -> Flaws {
    let mut flaws = Flaws::default();
    for piece in json::pieces(line) {
        match piece {
            json::Piece::Object { start, end } => {
                let Some(bytes) = line.get(start..end) else { continue };
                let span =
                    Span { offset: offset.saturating_add(start as u64), len: (end - start) as u64 };
                read_object(state, Value::new(bytes), span, out);
            }
            json::Piece::Damage => flaws.skipped += 1,
        }
    }
    flaws
}

/// Reads the two ends of a line longer than [`LINE_BYTES_MAX`]: what they tell of its fields.
pub fn read_oversized(
    state: &mut State,
    head: &[u8],
    tail: &[u8],
    span: Span,
    out: &mut Vec<Record>,
) -> Flaws {
    match json::skeleton(head, tail, span.len) {
        Some(bytes) => {
            read_object(state, Value::new(&bytes), span, out);
            Flaws { skipped: 0, oversized: 1 }
        }
        None => Flaws { skipped: 1, oversized: 0 },
    }
}

/// One object, its records stamped with where they lie.
fn read_object(state: &mut State, object: Value<'_>, span: Span, out: &mut Vec<Record>) {
    let before = out.len();
    state.object(object, span, out);
    for record in out.iter_mut().skip(before) {
        record.span = span;
    }
}
