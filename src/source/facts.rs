//! What is known of one session: folded from the records of one file generation, then merged.
//!
//! Facts belong to a file generation (design section 6). They are stored per (generation, session),
//! and a session is a pure merge of its live generations' facts and the titles addressed to it. So
//! the order of files, the borders of batches, moves and rewrites cannot matter.

mod behind;
mod merge;
mod past;

pub use behind::{Amounts, Behind, Monitor, Timer};
pub use merge::{Part, TitleRow, merge};
pub use past::{Base, Past};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    EndMark, Flaws, Kind, MessageKind, MessageSource, Notice, Outcome, Record, Title, TitleKind,
    Tokens, Turn, TurnMark, What, errors,
};
use crate::compaction;

/// Unanswered calls and undecided approvals kept per session; older ones are forgotten first.
const OPEN_MAX: usize = 64;
/// Unknown record types counted by name; the rest is counted as `…`.
const UNKNOWN_TYPES_MAX: usize = 64;
/// Notices kept per session and generation.
const NOTICES_MAX: usize = 16;
/// Characters kept of a title, a first prompt, a last text.
pub const TITLE_CHARS: usize = 1000;
/// A sub-agent's last records may be stamped so much later than its parent's word of its end, ms.
const RETURN_SLACK_MS: i64 = 2_000;
/// Characters kept of what a call would do.
const CALL_CHARS: usize = 256;
/// A stamp this far ahead of the moment it was read at says that one of the two clocks is wrong, ms.
const CLOCK_SLACK_MS: i64 = 5_000;
/// 9999-12-31T23:59:59.999Z: what is stamped later than any calendar goes is stamped so, ms.
const STAMP_MAX_MS: i64 = 253_402_300_799_999;

/// A tool call without its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// When it was called, ms.
    pub at_ms: Option<i64>,
    /// What it would do, as far as one argument tells: a command, a path. Empty where none does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// A text with the stamp that orders it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    /// ms; missing stamps order as zero.
    pub at_ms: i64,
    /// The text.
    pub text: String,
}

/// How many messages of each counted kind, by source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// From primary records.
    pub primary: u64,
    /// From fallback records.
    pub fallback: u64,
}

impl Counts {
    /// Primary ones where there are any, else the fallback: one source per file.
    pub fn chosen(self) -> u64 {
        if self.primary > 0 { self.primary } else { self.fallback }
    }
}

/// What is known of a session from one generation, or merged from all.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The most specific kind named so far.
    pub kind: Option<Kind>,
    /// The session it was forked from.
    pub fork_of: Option<String>,
    /// Codex: what started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// First working directory.
    pub cwd: Option<String>,
    /// Newest branch.
    pub branch: Option<String>,
    /// Newest model.
    pub model: Option<String>,
    /// Newest agent version.
    pub version: Option<String>,
    /// Own start stamp, ms.
    pub started_ms: Option<i64>,
    /// Earliest own activity, ms.
    pub first_activity_ms: Option<i64>,
    /// Newest own activity, as it is stamped; ms. Who judges by it clamps it to the moment of the
    /// judgement: the clock at which it was read may have been the wrong one.
    pub last_activity_ms: Option<i64>,
    /// A stamp lay ahead of the moment it was read.
    pub clock_ahead: bool,
    /// The last moment at which activity was read that is stamped ahead of it, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead_ms: Option<i64>,
    /// State of the newest turn.
    pub turn: Turn,
    /// When nothing was left to ask leave for: a turn's end, the last open call's result; ms.
    pub settled_ms: Option<i64>,
    /// Outcome of the newest finished turn with content.
    pub last_turn: Option<Outcome>,
    /// [`errors::in_words`]; `None` after a later completed turn.
    pub last_error: Option<String>,
    /// Calls without a result, oldest first.
    pub open_calls: Vec<OpenCall>,
    /// Approvals asked and not decided.
    pub approvals: Vec<String>,
    /// A plan with which the last turn ended, until the next one; the stamp is that of the turn's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Stamped>,
    /// An end marker with no activity behind it.
    pub end: Option<EndMark>,
    /// The tail is a decidable metadata trailer.
    pub trailer: bool,
    /// User text that starts work.
    pub prompts: Counts,
    /// Distinct model messages.
    pub answers: Counts,
    /// Call records.
    pub tool_calls: Counts,
    /// First own prompt, primary.
    pub first_prompt: Option<Stamped>,
    /// First own prompt among fallback records.
    pub first_prompt_fallback: Option<Stamped>,
    /// Newest answer text, primary.
    pub last_text: Option<Stamped>,
    /// Newest answer text among fallback records.
    pub last_text_fallback: Option<Stamped>,
    /// Tokens that need no key (Codex, dsh). In a merge: all tokens.
    pub tokens: Tokens,
    /// Context used by the last own request.
    pub context_used: Option<u64>,
    /// Context window.
    pub context_window: Option<u64>,
    /// Bracket state.
    pub compaction: compaction::Fold,
    /// What goes on behind the conversation.
    #[serde(skip_serializing_if = "Behind::is_empty")]
    pub background: Behind,
    /// A message of it stands in another file of the session too; not in a merge.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
    /// What was known before each of the last turns; not in a merge.
    #[serde(skip_serializing_if = "Past::is_empty")]
    pub past: Past,
    /// The file that this one goes on with; not in a merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// Record types this version does not know, by name.
    pub unknown: BTreeMap<String, u64>,
    /// Things an operator should see.
    pub notices: Vec<Notice>,
    /// Flaws of the file's lines; only in the facts of the file's own session.
    pub flaws: Flaws,
    /// The chosen title; only in a merge.
    pub title: Option<String>,
    /// Where it comes from; only in a merge.
    pub title_source: Option<TitleKind>,
}

impl Facts {
    /// Takes in one record, read at `observed_ms`. `fresh` is false for a message whose row is
    /// there already; such a one does not count again.
    pub fn fold(&mut self, record: &Record, observed_ms: i64, fresh: bool) {
        let calls = self.open_calls.len();
        match &record.what {
            What::Activity => self.activity(record.at_ms, observed_ms),
            What::Started => {
                if let Some(at) = record.at_ms.map(|at| at.min(STAMP_MAX_MS)) {
                    self.started_ms = Some(self.started_ms.map_or(at, |old| old.min(at)));
                }
            }
            What::Message(message) => self.message(message, record.at_ms, fresh),
            What::Turn(mark) => self.turn(*mark),
            What::Error { code, text } => {
                self.last_error = Some(errors::in_words(code, text));
            }
            What::Plan(text) => self.plan = Some(stamped(record.at_ms, text)),
            What::TurnBegan { ordinal, users } => {
                self.turn_began(*ordinal, record.span.offset, *users);
            }
            What::TurnIsUsers => self.turn_is_users(),
            What::RolledBack(turns) => self.rolled_back(*turns),
            What::Base(base) => self.base = Some(base.clone()),
            What::CallsVoid => self.open_calls.clear(),
            What::Approval { id, asked: true } => keep_last(&mut self.approvals, id.clone()),
            What::Approval { id, asked: false } => self.approvals.retain(|open| open != id),
            What::End(mark) => self.end = Some(mark.clone()),
            What::Trailer(decidable) => self.trailer = *decidable,
            What::Usage(usage) if usage.key.is_none() => {
                self.tokens = self.tokens.plus(usage.tokens);
            }
            // Rows of their own: a title may be for another session, a usage key may stand in one.
            What::Title(_) | What::Usage(_) | What::Returned(_) => {}
            What::Context(used) => self.context_used = *used,
            What::Window(window) => self.context_window = *window,
            What::Compaction(event) => self.compaction.fold(event),
            What::Kind(kind) => self.kind = Some(self.kind.map_or(*kind, |old| old.min(*kind))),
            What::ForkOf(native) => self.fork_of = Some(native.clone()),
            What::Cwd(cwd) => {
                self.cwd.get_or_insert_with(|| cwd.clone());
            }
            What::Branch(branch) => replace(&mut self.branch, branch),
            What::Model(model) => replace(&mut self.model, model),
            What::Version(version) => replace(&mut self.version, version),
            What::Source(source) => replace(&mut self.source, source),
            What::Background(said) => self.background.fold(said),
            What::Unknown(kind) => self.unknown(kind),
            What::Notice(notice) => {
                if !self.notices.contains(notice) && self.notices.len() < NOTICES_MAX {
                    self.notices.push(notice.clone());
                }
            }
            What::Reset => self.reset(),
        }
        let answered = calls > 0 && self.open_calls.is_empty();
        if answered || (matches!(record.what, What::Turn(_)) && self.turn != Turn::Open) {
            self.settled_ms = self.settled_ms.max(record.at_ms.map(|at| at.min(STAMP_MAX_MS)));
        }
    }

    /// Another file says that this sub-agent was over at `at_ms`, or whenever it last worked. What it
    /// did later it was sent on to do.
    pub fn returned(&mut self, outcome: Outcome, at_ms: Option<i64>) {
        let late = at_ms
            .zip(self.last_activity_ms)
            .is_some_and(|(at, last)| last > at.saturating_add(RETURN_SLACK_MS));
        if !late {
            self.turn(TurnMark::CloseIfOpen(outcome));
        }
    }

    /// The clock of a session that has none of its own: its start.
    pub fn clock_ms(&self) -> Option<i64> {
        self.last_activity_ms.or(self.started_ms)
    }

    /// The newest answer's text.
    pub fn newest_text(&self) -> Option<&str> {
        self.newest_stamped().map(|stamped| stamped.text.as_str())
    }

    fn newest_stamped(&self) -> Option<&Stamped> {
        let stamped =
            if self.answers.primary > 0 { &self.last_text } else { &self.last_text_fallback };
        stamped.as_ref()
    }

    /// Forgets what was counted and what was going on; see [`What::Reset`].
    fn reset(&mut self) {
        let before = std::mem::take(self);
        *self = Self {
            kind: before.kind,
            fork_of: before.fork_of,
            cwd: before.cwd,
            branch: before.branch,
            model: before.model,
            version: before.version,
            source: before.source,
            started_ms: before.started_ms,
            context_window: before.context_window,
            compaction: before.compaction,
            unknown: before.unknown,
            notices: before.notices,
            flaws: before.flaws,
            ..Self::default()
        };
    }

    /// What stays of a session when all that it was read from is gone: what it is, not what it did.
    #[must_use]
    pub fn without_content(mut self) -> Self {
        let (title, source) = (self.title.take(), self.title_source.take());
        self.reset();
        Self { title, title_source: source, compaction: compaction::Fold::default(), ..self }
    }

    fn activity(&mut self, at_ms: Option<i64>, observed_ms: i64) {
        self.end = None;
        self.trailer = false;
        let Some(at) = at_ms.map(|stamp| stamp.min(STAMP_MAX_MS)) else { return };
        let ahead = |stamp: i64| stamp > observed_ms.saturating_add(CLOCK_SLACK_MS);
        if ahead(at) {
            self.clock_ahead = true;
            self.read_ahead_ms = self.read_ahead_ms.max(Some(observed_ms));
        }
        self.last_activity_ms = match self.last_activity_ms {
            // What stands behind it in the file is later: an old stamp of a clock that was ahead
            // would else be the newest until its time has come.
            Some(old) if ahead(old) && !ahead(at) => Some(at),
            old => old.max(Some(at)),
        };
        self.first_activity_ms = Some(self.first_activity_ms.map_or(at, |old| old.min(at)));
    }

    fn message(&mut self, message: &super::Message, at_ms: Option<i64>, fresh: bool) {
        let primary = message.source == MessageSource::Primary;
        let counts = match message.kind {
            MessageKind::Prompt => {
                let slot =
                    if primary { &mut self.first_prompt } else { &mut self.first_prompt_fallback };
                if slot.is_none() && !message.text.trim().is_empty() {
                    *slot = Some(stamped(at_ms, &message.text));
                }
                Some(&mut self.prompts)
            }
            MessageKind::Answer => {
                let slot = if primary { &mut self.last_text } else { &mut self.last_text_fallback };
                if !message.text.trim().is_empty() {
                    *slot = Some(stamped(at_ms, &message.text));
                }
                Some(&mut self.answers)
            }
            MessageKind::ToolCall => {
                if let Some(id) = message.call.clone().filter(|_| primary) {
                    let name = message.name.clone().unwrap_or_default();
                    self.open_calls.retain(|open| open.id != id);
                    let text = message.text.chars().take(CALL_CHARS).collect();
                    keep_last(&mut self.open_calls, OpenCall { id, name, at_ms, text });
                }
                Some(&mut self.tool_calls)
            }
            MessageKind::ToolResult => {
                if let Some(id) = &message.call {
                    self.open_calls.retain(|open| open.id != *id);
                }
                None
            }
            MessageKind::Note => None,
        };
        if let Some(counts) = counts.filter(|_| fresh && message.counted) {
            let slot = if primary { &mut counts.primary } else { &mut counts.fallback };
            *slot += 1;
        }
    }

    fn turn(&mut self, mark: TurnMark) {
        match mark {
            TurnMark::Open => {
                self.turn = Turn::Open;
                self.plan = None;
            }
            TurnMark::Close(outcome) => self.close(Turn::Closed, Some(outcome)),
            TurnMark::CloseIfOpen(outcome) if self.turn == Turn::Open => {
                self.close(Turn::Closed, Some(outcome));
            }
            TurnMark::CloseIfOpen(_) => {}
            TurnMark::CloseEmpty => self.close(Turn::Closed, None),
            TurnMark::Interrupt => self.close(Turn::Interrupted, Some(Outcome::Aborted)),
        }
    }

    fn close(&mut self, turn: Turn, outcome: Option<Outcome>) {
        self.turn = turn;
        self.open_calls.clear();
        self.approvals.clear();
        if outcome == Some(Outcome::Completed) {
            self.last_error = None;
        }
        if outcome.is_some() {
            self.last_turn = outcome;
        }
    }

    fn unknown(&mut self, kind: &str) {
        let name: String = kind.chars().take(64).collect();
        let room = self.unknown.len() < UNKNOWN_TYPES_MAX || self.unknown.contains_key(&name);
        let name = if room { name } else { "…".to_owned() };
        let count = self.unknown.entry(name).or_default();
        *count = count.saturating_add(1);
    }
}

fn stamped(at_ms: Option<i64>, text: &str) -> Stamped {
    Stamped { at_ms: at_ms.unwrap_or(0), text: text.to_owned() }
}

fn replace(slot: &mut Option<String>, new: &str) {
    if slot.as_deref() != Some(new) {
        *slot = Some(new.to_owned());
    }
}

fn keep_last<T>(list: &mut Vec<T>, item: T) {
    if list.len() >= OPEN_MAX {
        list.remove(0);
    }
    list.push(item);
}

/// Titles among records, with the session each is for; the mirror stores them as rows.
pub fn titles(records: &[Record]) -> impl Iterator<Item = (&Record, &Title)> {
    records.iter().filter_map(|record| {
        let What::Title(title) = &record.what else { return None };
        Some((record, title))
    })
}
