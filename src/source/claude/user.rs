//! `user` records: a human's words, a tool's results, and all that the program writes as *user*.

use super::super::json::Value;
use super::super::{MessageKind, TurnMark, What};
use super::background;
use super::bracket::Half;
use super::envelope::{Envelope, is_inside, is_set};
use super::line::{Call, Line};
use super::ring;
use super::text::{self, Command, Tag};
use super::{Expected, State};

/// How the record begins that a Stop hook writes to send the agent on.
const STOP_HOOK: &str = "Stop hook feedback:";
/// What the client writes for the model when it resumes a session that was left inside a turn.
const RESUME: &str = "Continue from where you left off";

/// What a user record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Class {
    /// The summary of a compaction.
    Summary,
    /// Text for the model that nobody typed; perhaps the expansion of a slash command.
    Meta,
    /// What a Stop hook said: the agent goes on.
    StopHook,
    /// The client goes on by itself, after `max_tokens`.
    Companion,
    /// Output of a slash command.
    Output,
    /// The caveat before a slash command.
    Local,
    /// The sentinel of a turn broken off.
    Interrupt,
    /// A slash command.
    Command(Command),
    /// A shell command typed at the prompt, or its output.
    Bash,
    /// Results of tools.
    Results,
    /// What the program put in, or nothing readable: work starts, but no human asked.
    Injected,
    /// Something typed, or sent by a program from outside.
    Prompt,
}

/// A user record.
#[derive(Debug)]
pub(super) struct User<'a> {
    class: Class,
    content: Option<Value<'a>>,
    /// Its origin is not a human.
    inside: bool,
}

impl<'a> User<'a> {
    /// Reads what the record is.
    pub(super) fn read(envelope: &Envelope<'a>) -> Self {
        let content = envelope.message.and_then(|message| message.get("content"));
        Self { class: classify(envelope, content), content, inside: envelope.is_from_inside() }
    }

    /// Whether a human broke a turn off.
    pub(super) fn is_interrupt(&self) -> bool {
        self.class == Class::Interrupt
    }

    /// Whether it moves the clock.
    pub(super) fn is_activity(&self) -> bool {
        match &self.class {
            Class::Meta | Class::Output | Class::Local => false,
            Class::Command(command) => command.is_compact(),
            Class::Summary
            | Class::StopHook
            | Class::Companion
            | Class::Interrupt
            | Class::Bash
            | Class::Results
            | Class::Injected
            | Class::Prompt => true,
        }
    }
}

fn classify(envelope: &Envelope<'_>, content: Option<Value<'_>>) -> Class {
    if is_set(envelope.summary) {
        return Class::Summary;
    }
    let seen = Seen::in_content(content);
    if is_set(envelope.meta) {
        return classify_meta(envelope, seen.lead);
    }
    match seen.turn {
        Some(Turning::Interrupt) => return Class::Interrupt,
        Some(Turning::Results) => return Class::Results,
        None => {}
    }
    match seen.lead {
        Some((Tag::Command, text)) => Class::Command(Command::read(text)),
        Some((Tag::Output, _)) => Class::Output,
        Some((Tag::Local, _)) => Class::Local,
        Some((Tag::Bash, _)) => Class::Bash,
        Some((Tag::Plain | Tag::Injected | Tag::Interrupt, _)) | None => {
            if seen.plain || seen.picture { Class::Prompt } else { Class::Injected }
        }
    }
}

/// What a record that nobody typed is, by its first text. Two kinds of it make the agent go on.
fn classify_meta(envelope: &Envelope<'_>, lead: Option<(Tag, Value<'_>)>) -> Class {
    let goes_on = |flag: Value<'_>| !flag.is_null() && flag.bool() != Some(false);
    if envelope.companion.is_some_and(goes_on) {
        return Class::Companion;
    }
    match lead {
        Some((Tag::Output | Tag::Local | Tag::Bash | Tag::Command, _)) => Class::Local,
        Some((Tag::Plain, text)) if text::begins(text, STOP_HOOK) => Class::StopHook,
        Some((Tag::Plain | Tag::Injected | Tag::Interrupt, _)) | None => Class::Meta,
    }
}

/// A block that decides what a record is; a sentinel beside a result is a sentinel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turning {
    Interrupt,
    Results,
}

/// What stands in a content.
#[derive(Debug, Default)]
struct Seen<'a> {
    /// The first text and its tag.
    lead: Option<(Tag, Value<'a>)>,
    /// A text that looks typed.
    plain: bool,
    /// What decides the record's class, whatever else is in it.
    turn: Option<Turning>,
    /// An image or a document, or a block too long to read.
    picture: bool,
}

impl<'a> Seen<'a> {
    fn in_content(content: Option<Value<'a>>) -> Self {
        let mut seen = Self::default();
        for block in content.into_iter().flat_map(text::blocks) {
            if let Some(text) = text::block_text(block) {
                let tag = text::tag(text);
                seen.lead.get_or_insert((tag, text));
                seen.plain |= tag == Tag::Plain;
                if tag == Tag::Interrupt {
                    seen.turn = Some(Turning::Interrupt);
                }
                continue;
            }
            match block.get("type").map(Value::raw) {
                Some(b"\"tool_result\"") => {
                    seen.turn.get_or_insert(Turning::Results);
                }
                Some(b"\"image\"" | b"\"document\"") => seen.picture = true,
                _ => seen.picture |= block.get("cut").is_some(),
            }
        }
        seen
    }
}

impl State {
    /// What a user record says.
    pub(super) fn user(&mut self, user: &User<'_>, line: &mut Line<'_, '_>) {
        let expected = self.next_record(line);
        background::fired(line);
        match &user.class {
            Class::Summary => {
                self.compaction(Half::Summary, line);
                line.note("0", text::preview(user.content, line.envelope.oversized));
            }
            Class::Meta => {
                line.note("0", text::preview(user.content, line.envelope.oversized));
                if let Some(command) = expected.filter(|command| command.expands(user, line)) {
                    self.works(line);
                    line.say_at(command.at_ms, What::Activity);
                    line.say(What::CallsVoid);
                    line.say(What::Turn(TurnMark::Open));
                }
            }
            Class::StopHook | Class::Companion => {
                self.works(line);
                self.sent_on = line.is_own() && user.class == Class::StopHook;
                line.note("0", text::preview(user.content, line.envelope.oversized));
                line.say(What::Turn(TurnMark::Open));
            }
            Class::Output => self.expect_behind_output(expected),
            Class::Local => {}
            Class::Interrupt => {
                line.note("0", text::preview(user.content, None));
                line.say(What::Turn(TurnMark::Interrupt));
            }
            Class::Command(command) => self.command(command, line),
            Class::Bash => line.note("0", text::preview(user.content, None)),
            Class::Results => {
                self.works(line);
                results(user, line);
                background::result(self.root(), line);
                line.say(What::Turn(TurnMark::Open));
            }
            Class::Injected => {
                self.works(line);
                background::notice(self.root(), user.content, line);
                line.note("0", text::preview(user.content, line.envelope.oversized));
                line.say(What::Turn(TurnMark::Open));
            }
            Class::Prompt => {
                self.works(line);
                if user.inside && !self.is_task(line) {
                    line.note("0", text::preview(user.content, line.envelope.oversized));
                } else {
                    line.say(What::CallsVoid);
                    prompt(user.content, line);
                    self.tasked |= line.is_own();
                }
                line.say(What::Turn(TurnMark::Open));
            }
        }
    }

    /// A slash command: the first one may be the title; it starts a turn only if it expands.
    pub(super) fn command(&mut self, command: &Command, line: &mut Line<'_, '_>) {
        let typed = command.line();
        line.note("0", typed.clone().unwrap_or_default());
        if !line.is_own() {
            return;
        }
        if command.is_compact() {
            self.brackets.command(line.at_ms);
        }
        if command.may_expand() {
            let prompt = line.envelope.prompt.map(ring::hash);
            self.expected = Some(Expected { at_ms: line.carried_ms, prompt, answered: false });
        }
        if let Some(typed) = typed {
            self.first_command(typed, line);
        }
    }

    /// A sub-agent's first prompt is its task, whoever gave it.
    fn is_task(&self, line: &Line<'_, '_>) -> bool {
        !line.is_own() || (self.is_sub_agent() && !self.tasked)
    }
}

impl Expected {
    /// Whether a record that nobody typed is the expansion. Behind the command's output also other
    /// records may come, from a later prompt or a resume.
    fn expands(&self, user: &User<'_>, line: &Line<'_, '_>) -> bool {
        if !self.answered {
            return true;
        }
        let resumes = user
            .content
            .and_then(|content| text::blocks(content).find_map(text::block_text))
            .is_some_and(|text| text::begins(text, RESUME));
        let other = self
            .prompt
            .zip(line.envelope.prompt.map(ring::hash))
            .is_some_and(|(asked, now)| asked != now);
        !resumes && !other
    }
}

/// The rows of a prompt: its first text is what counts; a picture only where it stands alone.
pub(super) fn prompt(content: Option<Value<'_>>, line: &mut Line<'_, '_>) {
    let oversized = line.envelope.oversized;
    let plain = Seen::in_content(content).plain;
    let mut counted = false;
    for (index, block) in content.into_iter().flat_map(text::blocks).enumerate() {
        let part = index.to_string();
        let (stands, shown) = match text::block_text(block) {
            Some(text) => (text::tag(text) == Tag::Plain, text::preview(Some(text), None)),
            None => match text::note(block, oversized) {
                Some(note) => (!plain && !counted, note),
                None => continue,
            },
        };
        if stands {
            line.row(MessageKind::Prompt, &part, !counted, shown);
            counted = true;
        } else {
            line.note(&part, shown);
        }
    }
}

/// The rows of tool results, and of what stands beside them.
fn results(user: &User<'_>, line: &mut Line<'_, '_>) {
    for (index, block) in user.content.into_iter().flat_map(text::blocks).enumerate() {
        let part = index.to_string();
        let [kind, id, content] = block.pick(["type", "tool_use_id", "content"]);
        if kind.is_some_and(|kind| kind.is("tool_result")) {
            let text = text::preview(content, line.envelope.oversized);
            line.call(MessageKind::ToolResult, &part, Call { id, name: None, text });
        } else {
            line.note(&part, text::preview(Some(block), line.envelope.oversized));
        }
    }
}

/// A message typed while a turn runs: an attachment that is a prompt.
#[derive(Debug)]
pub(super) struct Queued<'a> {
    prompt: Option<Value<'a>>,
    /// A human typed it as a prompt.
    typed: bool,
}

impl<'a> Queued<'a> {
    /// The queued command that an attachment holds, if it holds one.
    pub(super) fn read(envelope: &Envelope<'a>) -> Option<Self> {
        let [kind, prompt, mode, origin, meta] =
            envelope.attachment?.pick(["type", "prompt", "commandMode", "origin", "isMeta"]);
        kind.filter(|kind| kind.is("queued_command"))?;
        let mode_fits = mode.is_none_or(|mode| mode.is_null() || mode.is("prompt"));
        let inside = is_inside(origin) || envelope.is_from_inside();
        let typed = mode_fits && !inside && !is_set(meta) && !is_set(envelope.meta);
        Some(Self { prompt, typed })
    }

    /// What was queued.
    pub(super) fn prompt(&self) -> Option<Value<'a>> {
        self.prompt
    }

    /// Its rows. It changes no turn: one is open, or its prompt will come.
    pub(super) fn rows(&self, line: &mut Line<'_, '_>) {
        if self.typed && Seen::in_content(self.prompt).plain {
            prompt(self.prompt, line);
        } else {
            line.note("0", text::preview(self.prompt, line.envelope.oversized));
        }
    }
}
