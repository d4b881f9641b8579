//! Claude Code: transcripts of sessions and sub-agents, and the two documents beside them.
//!
//! A record is read once into its fields (`envelope`), then into what it is (`user`,
//! `assistant`), and what it is decides what it says. The state holds what one record needs to
//! know of those before it, each piece with a bound, so that reading may stop and go on between any
//! two lines. A file's lines count to the session its name tells, whatever their `sessionId` says:
//! copies made by old versions kept the old one. Only titles are addressed by it.
//!
//! Side chains written into their parent's file (1.0.x): with an `agentId` they are that
//! sub-agent's; without one nobody can be named, so they only move the session's clock.

mod about;
mod assistant;
mod background;
mod bracket;
mod envelope;
mod fault;
mod line;
mod lives;
mod metadata;
#[cfg(test)]
mod tests;
mod text;
mod trailer;
mod user;

use serde::{Deserialize, Serialize};

use super::json::Value;
use super::ring::{self, Ring};
use super::{EndMark, Hint, Of, Outcome, Place, Record, SessionKey, Span, Tokens, TurnMark, What};
use about::About;
use assistant::Assistant;
use bracket::{Brackets, Half};
use envelope::{Envelope, Family, word};
use line::{ID_CHARS, Line};
use lives::Lives;
use metadata::Leaf;
use text::{Command, Tag};
use trailer::Trailer;
use user::{Queued, User};

/// Model messages remembered, to count the first line of each. Lines of one message lie close
/// together; other messages come between only where two writers interleave.
const MESSAGES_MAX: usize = 32;
/// Records remembered, to know the leaf of a summary that comes after it.
const LEAVES_MAX: usize = 64;
/// Inline sub-agents remembered, to introduce each once.
const INLINE_MAX: usize = 32;

/// Carried state of one file generation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    place: Place,
    /// Native id of the session or sub-agent, from the file's name.
    id: String,
    /// The parent of a sub-agent; in the old layout a line tells it.
    parent: Option<String>,
    /// The last stamp in the file, ms.
    last_ms: Option<i64>,
    /// The newest stamp in the file, ms. It orders titles: stamps go backwards now and then, and
    /// of two titles in a file the later one must still win.
    newest_ms: Option<i64>,
    about: About,
    /// A sub-agent's task was seen.
    tasked: bool,
    /// A slash command stands where a title could come from.
    commanded: bool,
    /// A slash command whose next record may be its expansion.
    expected: Option<Expected>,
    /// A Stop hook has sent the agent on, and nothing has come of it yet.
    sent_on: bool,
    messages: Ring<MESSAGES_MAX>,
    leaves: Ring<LEAVES_MAX>,
    /// Summaries whose leaf has not been seen.
    summaries: Vec<Leaf>,
    inline: Ring<INLINE_MAX>,
    /// Identity and tokens of the last usage said.
    spent: Option<(u64, Tokens)>,
    context: Option<u64>,
    window: Option<u64>,
    brackets: Brackets,
    trailer: Trailer,
    lives: Lives,
}

/// A slash command that waits for its expansion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Expected {
    at_ms: Option<i64>,
    /// Hash of its `promptId`.
    prompt: Option<u64>,
    /// Its own output stands behind it already.
    answered: bool,
}

/// A conversation record, read as far as its family asks for.
#[derive(Debug)]
enum Said<'a> {
    User(User<'a>),
    Assistant(Assistant<'a>),
    System(System),
    Queued(Queued<'a>),
    Attachment,
    Progress,
}

/// What a `system` record is.
#[derive(Debug)]
enum System {
    TurnDuration,
    StopHooks,
    ApiError,
    Boundary,
    Microcompact,
    Command(Command),
    /// Output of a slash command.
    Output,
    Other,
}

/// Whose a record is.
enum Whose {
    Own,
    Inline(String),
    /// A side chain that names nobody.
    Stray,
}

impl State {
    /// The state before the first line.
    pub fn new(hint: &Hint) -> Self {
        let id = match hint.place {
            Place::SubAgent | Place::AgentMeta => agent_id(&hint.stem),
            Place::CustomTitle => hint.folder.as_deref().unwrap_or_default(),
            Place::Transcript | Place::SessionIndex | Place::Workspace => &hint.stem,
        };
        let parent = match hint.place {
            Place::SubAgent | Place::AgentMeta => hint.folder.clone(),
            Place::Transcript | Place::CustomTitle | Place::SessionIndex | Place::Workspace => None,
        };
        Self {
            place: hint.place,
            id: id.to_owned(),
            parent,
            last_ms: None,
            newest_ms: None,
            about: About::default(),
            tasked: false,
            commanded: false,
            expected: None,
            sent_on: false,
            messages: Ring::default(),
            leaves: Ring::default(),
            summaries: Vec::new(),
            inline: Ring::default(),
            spent: None,
            context: None,
            window: None,
            brackets: Brackets::default(),
            trailer: Trailer::default(),
            lives: Lives::default(),
        }
    }

    /// The session the file belongs to; a document beside the transcripts belongs to none.
    pub fn key(&self) -> Option<SessionKey> {
        match self.place {
            Place::Transcript => Some(SessionKey::top(self.id.clone())),
            Place::SubAgent => {
                self.parent.as_ref().map(|parent| SessionKey::child(self.id.clone(), parent))
            }
            Place::AgentMeta | Place::CustomTitle | Place::SessionIndex | Place::Workspace => None,
        }
    }

    /// One JSON object of the file.
    pub fn object(&mut self, object: Value<'_>, span: Span, out: &mut Vec<Record>) {
        match self.place {
            Place::Transcript | Place::SubAgent => self.line(object, span, out),
            Place::AgentMeta | Place::CustomTitle => self.document(object, span, out),
            Place::SessionIndex | Place::Workspace => {}
        }
    }

    fn line(&mut self, object: Value<'_>, span: Span, out: &mut Vec<Record>) {
        let envelope = Envelope::read(object);
        let at_ms = envelope.stamp_ms();
        let carried_ms = at_ms.or(self.last_ms);
        self.last_ms = carried_ms;
        self.newest_ms = self.newest_ms.max(at_ms);
        if self.is_sub_agent() && self.parent.is_none() {
            self.parent = word(envelope.session, ID_CHARS);
            if self.parent.is_none() {
                return;
            }
        }
        let copied = self.is_copied(&envelope);
        let mut line = Line { envelope, span, of: Of::File, at_ms, carried_ms, copied, out };
        match line.envelope.family() {
            Family::Metadata => self.metadata(&mut line),
            Family::User => self.conversation(&Said::User(User::read(&envelope)), &mut line),
            Family::Assistant => {
                self.conversation(&Said::Assistant(Assistant::read(&envelope)), &mut line);
            }
            Family::System => self.conversation(&Said::System(System::read(&envelope)), &mut line),
            Family::Attachment => {
                let said = Queued::read(&envelope).map_or(Said::Attachment, Said::Queued);
                self.conversation(&said, &mut line);
            }
            Family::Progress => self.conversation(&Said::Progress, &mut line),
        }
    }

    fn conversation(&mut self, said: &Said<'_>, line: &mut Line<'_, '_>) {
        match self.whose(&line.envelope) {
            Whose::Own => self.introduce(line),
            Whose::Inline(agent) => {
                line.of = Of::Inline(agent);
                self.introduce_inline(line);
            }
            Whose::Stray => {
                self.clock(said, line);
                self.tail(line);
                return;
            }
        }
        let over = self.clock(said, line);
        match said {
            Said::User(user) => self.user(user, line),
            Said::Assistant(assistant) => self.assistant(assistant, line),
            Said::System(system) => self.system(system, line),
            Said::Queued(queued) => {
                queued.rows(line);
                background::notice(self.root(), queued.prompt(), line);
            }
            Said::Attachment | Said::Progress => {}
        }
        if let Some(mark) = over {
            line.say(What::End(mark));
        }
        self.tail(line);
    }

    /// Moves the clock if the record is activity; the end marker that stands all the same.
    fn clock(&mut self, said: &Said<'_>, line: &mut Line<'_, '_>) -> Option<EndMark> {
        if !said.is_activity() {
            return None;
        }
        line.activity();
        if !line.is_own() {
            return None;
        }
        let interrupts = matches!(said, Said::User(user) if user.is_interrupt());
        let over = if interrupts { self.lives.behind(line.at_ms) } else { None };
        if over.is_none() {
            self.lives.live();
        }
        over
    }

    /// Behind a conversation record there is no trailer.
    fn tail(&mut self, line: &mut Line<'_, '_>) {
        if let Some(left) = self.trailer.other() {
            line.of = Of::File;
            line.say(What::Trailer(left));
        }
    }

    fn system(&mut self, system: &System, line: &mut Line<'_, '_>) {
        let expected = self.next_record(line);
        match system {
            System::TurnDuration => {
                self.turn_over(line);
                background::turn_over(line);
            }
            System::StopHooks => self.turn_over(line),
            System::Boundary => {
                self.compaction(Half::Boundary, line);
                let said = line.envelope.content.and_then(|content| word(Some(content), ID_CHARS));
                line.note("0", said.unwrap_or_else(|| "Conversation compacted".to_owned()));
            }
            System::Command(command) => self.command(command, line),
            System::Output => self.expect_behind_output(expected),
            System::ApiError | System::Microcompact | System::Other => {}
        }
    }

    /// A record that closes a turn, unless a Stop hook has sent the agent on: then it tells of the
    /// turn that the hook did not let end. None of its own fields says so.
    fn turn_over(&self, line: &mut Line<'_, '_>) {
        if !(self.sent_on && line.is_own()) {
            line.say(What::Turn(TurnMark::CloseIfOpen(Outcome::Completed)));
        }
    }

    /// One half of a compaction's pair; the context is what the boundary says is left.
    fn compaction(&mut self, half: Half, line: &mut Line<'_, '_>) {
        // The sub-agents of 1.0.x, the only inline ones, did not compact.
        if !line.is_own() {
            return;
        }
        let Some(event) = self.brackets.half(half, line) else { return };
        let left = line.envelope.compact.and_then(|said| said.get("postTokens"));
        self.context = left.and_then(Value::uint);
        line.say(What::Compaction(event));
        line.say(What::Context(self.context));
    }

    fn whose(&self, envelope: &Envelope<'_>) -> Whose {
        if self.is_sub_agent() || !envelope::is_set(envelope.sidechain) {
            return Whose::Own;
        }
        word(envelope.agent, ID_CHARS).map_or(Whose::Stray, Whose::Inline)
    }

    /// The session that sub-agents named here belong to.
    fn root(&self) -> Option<&str> {
        match self.place {
            Place::Transcript => Some(&self.id),
            Place::SubAgent => self.parent.as_deref(),
            Place::AgentMeta | Place::CustomTitle | Place::SessionIndex | Place::Workspace => None,
        }
    }

    fn is_sub_agent(&self) -> bool {
        self.place == Place::SubAgent
    }

    /// Work goes on in the file's session.
    fn works(&mut self, line: &Line<'_, '_>) {
        if line.is_own() {
            self.brackets.work();
            self.sent_on = false;
        }
    }

    /// A record that stands next to a slash command, or no longer.
    fn next_record(&mut self, line: &Line<'_, '_>) -> Option<Expected> {
        if line.is_own() { self.expected.take() } else { None }
    }

    /// A command's own output may stand before its expansion, once.
    fn expect_behind_output(&mut self, expected: Option<Expected>) {
        let still = expected.filter(|command| !command.answered);
        self.expected = still.map(|command| Expected { answered: true, ..command });
    }
}

impl Said<'_> {
    /// Whether it is a substantive record (design section 2, *activity*).
    fn is_activity(&self) -> bool {
        match self {
            Self::User(user) => user.is_activity(),
            Self::Assistant(assistant) => !assistant.is_filler(),
            Self::System(system) => match system {
                System::TurnDuration
                | System::StopHooks
                | System::ApiError
                | System::Boundary
                | System::Microcompact => true,
                System::Command(command) => command.is_compact(),
                System::Output | System::Other => false,
            },
            Self::Queued(_) | Self::Progress => true,
            Self::Attachment => false,
        }
    }
}

impl System {
    fn read(envelope: &Envelope<'_>) -> Self {
        match envelope.subtype.map(Value::raw) {
            Some(b"\"turn_duration\"") => Self::TurnDuration,
            Some(b"\"stop_hook_summary\"") => Self::StopHooks,
            Some(b"\"api_error\"") => Self::ApiError,
            Some(b"\"compact_boundary\"") => Self::Boundary,
            Some(b"\"microcompact_boundary\"") => Self::Microcompact,
            Some(b"\"local_command\"") => {
                match envelope.content.map(|text| (text, text::tag(text))) {
                    Some((text, Tag::Command)) => Self::Command(Command::read(text)),
                    Some((_, Tag::Output)) => Self::Output,
                    _ => Self::Other,
                }
            }
            _ => Self::Other,
        }
    }
}

/// The agent's id of `agent-<id>.jsonl` and `agent-<id>.meta.json`.
fn agent_id(stem: &str) -> &str {
    let stem = stem.strip_suffix(".meta").unwrap_or(stem);
    stem.strip_prefix("agent-").unwrap_or(stem)
}
