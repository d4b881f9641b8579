//! `assistant` records: one line per content block of a model message, errors, and filler.

use super::super::json::{Shape, Value};
use super::super::{MessageKind, Outcome, Tokens, TurnMark, Usage, What};
use super::State;
use super::envelope::{Envelope, is_set, word};
use super::fault;
use super::line::{Call, ID_CHARS, Line};
use super::ring;
use super::text;

/// Characters of an error that are passed on; the facts keep as many.
const ERROR_CHARS: usize = 1000;
/// Context window where nothing says otherwise, tokens.
pub(super) const WINDOW_TOKENS: u64 = 200_000;
/// Context window of the models called `…[1m]`, tokens.
pub(super) const LONG_WINDOW_TOKENS: u64 = 1_000_000;
/// Models with the long window whose names do not say so (formats/claude-and-codex.md, *Seen on
/// 2026-11-30*: `/context` says 1m).
const LONG_MODELS: [&str; 1] = ["claude-opus-5-5"];
/// A counter beyond this is nonsense, and sums of nonsense must not overflow.
const COUNTER_MAX: i64 = 1_000_000_000_000;
/// From this version on a null `stop_reason` on a text says nothing; before, the text was the end.
const NULL_STOP_IS_OPEN: [u32; 3] = [2, 1, 76];

/// An assistant record.
#[derive(Debug)]
pub(super) struct Assistant<'a> {
    id: Option<Value<'a>>,
    model: Option<Value<'a>>,
    content: Option<Value<'a>>,
    stop: Option<Value<'a>>,
    usage: Option<Value<'a>>,
    failed: bool,
}

impl<'a> Assistant<'a> {
    /// Reads the message of a record.
    pub(super) fn read(envelope: &Envelope<'a>) -> Self {
        let names = ["id", "model", "content", "stop_reason", "usage"];
        let [id, model, content, stop, usage] =
            envelope.message.map_or([None; 5], |message| message.pick(names));
        let id = id.filter(|id| id.shape() == Shape::String);
        Self { id, model, content, stop, usage, failed: is_set(envelope.api_error) }
    }

    /// Written by the program to keep the alternation of roles, not by a model.
    pub(super) fn is_filler(&self) -> bool {
        self.is_synthetic() && !self.failed
    }

    fn is_synthetic(&self) -> bool {
        self.model.is_some_and(|model| model.is("<synthetic>"))
    }
}

/// What stands in a message line.
#[derive(Debug, Default)]
struct Blocks {
    all: usize,
    thoughts: usize,
    text: bool,
    call: bool,
}

impl State {
    /// What an assistant record says.
    pub(super) fn assistant(&mut self, said: &Assistant<'_>, line: &mut Line<'_, '_>) {
        let _ = self.next_record(line);
        if said.is_filler() {
            return;
        }
        self.works(line);
        if said.failed {
            fail(said, line);
            return;
        }
        if let Some(model) = self.news(said.model, line) {
            line.say(What::Model(model));
        }
        let blocks = self.answer(said, line);
        self.spend(said, line);
        if let Some(mark) = self.turn_after(said, &blocks, line) {
            if mark == TurnMark::Close(Outcome::Error) {
                let text = first_text(said).unwrap_or_default();
                line.say(What::Error { code: "refusal".to_owned(), text });
            }
            line.say(What::Turn(mark));
        }
    }

    /// The rows of the message's blocks. Of the several lines of a message the first one counts,
    /// with an empty row where it does not begin with a text.
    fn answer(&mut self, said: &Assistant<'_>, line: &mut Line<'_, '_>) -> Blocks {
        let identity = said.id.or(line.envelope.uuid);
        let new = identity.is_none_or(|id| self.messages.add(ring::hash(id)));
        let oversized = line.envelope.oversized;
        let mut blocks = Blocks::default();
        let mut counts = new;
        for (index, block) in said.content.into_iter().flat_map(text::blocks).enumerate() {
            let part = index.to_string();
            blocks.all += 1;
            if let Some(text) = text::block_text(block) {
                blocks.text = true;
                let shown = text::preview(Some(text), None);
                line.row(MessageKind::Answer, &part, std::mem::take(&mut counts), shown);
                continue;
            }
            if std::mem::take(&mut counts) {
                let shown = text::note(block, oversized).unwrap_or_default();
                line.row(MessageKind::Answer, "m", true, shown);
            }
            blocks.call |= block_call(block, &part, line);
            blocks.thoughts += usize::from(is_thought(block));
        }
        if counts && (said.id.is_some() || oversized.is_some()) {
            line.row(MessageKind::Answer, "m", true, text::preview(None, oversized));
        }
        blocks.all += usize::from(oversized.is_some());
        blocks
    }

    /// Tokens and context of the request. Each line of a message repeats them, so only what is new
    /// is said; a placeholder that grows is new.
    fn spend(&mut self, said: &Assistant<'_>, line: &mut Line<'_, '_>) {
        let Some(usage) = said.usage.filter(|usage| usage.shape() == Shape::Object) else { return };
        if said.is_synthetic() {
            return;
        }
        let copied = line.copied;
        let names = [
            "input_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "output_tokens",
        ];
        let [input, cache_read, cache_write, output] = usage.pick(names).map(counter);
        let tokens = Tokens { input, cache_read, cache_write, output };
        let identity = said.id.or(line.envelope.uuid).map(ring::hash);
        if !copied && (identity.is_none() || self.spent != identity.map(|id| (id, tokens))) {
            self.spent = identity.map(|id| (id, tokens));
            line.say(What::Usage(Usage { key: usage_key(said, &line.envelope), tokens }));
        }
        let used = u64::try_from(input + cache_read + cache_write).unwrap_or(0);
        if used > 0 {
            self.context(used, said.model, line);
        }
    }

    fn context(&mut self, used: u64, model: Option<Value<'_>>, line: &mut Line<'_, '_>) {
        let long = used > WINDOW_TOKENS || model.is_some_and(is_long);
        let window = if long { LONG_WINDOW_TOKENS } else { WINDOW_TOKENS };
        if !line.is_own() {
            line.say(What::Context(Some(used)));
            line.say(What::Window(Some(window)));
            return;
        }
        if self.context != Some(used) {
            self.context = Some(used);
            line.say(What::Context(Some(used)));
        }
        self.window(window, line);
    }

    /// The window is never written down: it is the usual one until something shows a longer one.
    pub(super) fn window(&mut self, window: u64, line: &mut Line<'_, '_>) {
        if self.window.is_none_or(|old| old < window) {
            self.window = Some(window);
            line.say(What::Window(Some(window)));
        }
    }

    /// What the record does to the turn.
    fn turn_after(
        &self,
        said: &Assistant<'_>,
        blocks: &Blocks,
        line: &Line<'_, '_>,
    ) -> Option<TurnMark> {
        match said.stop.filter(|stop| stop.shape() == Shape::String).map(Value::raw) {
            Some(b"\"tool_use\"" | b"\"pause_turn\"") => Some(TurnMark::Open),
            // The limit fell while it was thinking: the client asks again by itself.
            Some(b"\"max_tokens\"") if blocks.all > 0 && blocks.all == blocks.thoughts => {
                Some(TurnMark::Open)
            }
            Some(b"\"refusal\"") => Some(TurnMark::Close(Outcome::Error)),
            Some(_) => Some(TurnMark::Close(Outcome::Completed)),
            None if blocks.all == 0 => None,
            None if blocks.text && !blocks.call && self.null_stop_closes(line) => {
                Some(TurnMark::Close(Outcome::Completed))
            }
            None => Some(TurnMark::Open),
        }
    }

    fn null_stop_closes(&self, line: &Line<'_, '_>) -> bool {
        let own = word(line.envelope.version, ID_CHARS);
        let version = own.as_deref().or(self.about.version.as_deref());
        version.and_then(release).is_some_and(|version| version < NULL_STOP_IS_OPEN)
    }
}

/// An error instead of an answer.
fn fail(said: &Assistant<'_>, line: &mut Line<'_, '_>) {
    let text = first_text(said).unwrap_or_default();
    line.note("0", text::preview(said.content, line.envelope.oversized));
    let code = fault::code_of(&line.envelope);
    line.say(What::Error { code, text });
    line.say(What::Turn(TurnMark::Close(Outcome::Error)));
}

fn first_text(said: &Assistant<'_>) -> Option<String> {
    let mut blocks = said.content.into_iter().flat_map(text::blocks);
    blocks.find_map(text::block_text)?.text_up_to(ERROR_CHARS)
}

/// The row of a block that is a call, or a result that the server itself delivered; whether it is
/// a call that somebody has to answer.
fn block_call(block: Value<'_>, part: &str, line: &mut Line<'_, '_>) -> bool {
    let [kind, id, name, input, of, content] =
        block.pick(["type", "id", "name", "input", "tool_use_id", "content"]);
    match kind.map(Value::raw) {
        Some(b"\"tool_use\"" | b"\"server_tool_use\"" | b"\"mcp_tool_use\"") => {
            let text = input.map(call_preview).unwrap_or_default();
            line.call(MessageKind::ToolCall, part, Call { id, name, text });
            true
        }
        Some(kind) if kind.ends_with(b"_tool_result\"") => {
            let text = text::preview(content, line.envelope.oversized);
            line.call(MessageKind::ToolResult, part, Call { id: of, name: None, text });
            false
        }
        _ => false,
    }
}

/// The argument of a call that tells the most in one line.
fn call_preview(input: Value<'_>) -> String {
    let telling = [
        "command",
        "file_path",
        "notebook_path",
        "pattern",
        "url",
        "query",
        "description",
        "path",
        "skill",
    ];
    let found = input.pick(telling).into_iter().flatten().find(|value| is_text(*value));
    let first = || input.fields().map(|(_, value)| value).find(|value| is_text(*value));
    text::preview(found.or_else(first), None)
}

fn is_thought(block: Value<'_>) -> bool {
    let kind = block.get("type").map(Value::raw);
    matches!(kind, Some(b"\"thinking\"" | b"\"redacted_thinking\""))
}

fn is_text(value: Value<'_>) -> bool {
    value.shape() == Shape::String
}

/// Message and request; some providers leave the request out.
fn usage_key(said: &Assistant<'_>, envelope: &Envelope<'_>) -> Option<String> {
    let Some(id) = word(said.id, ID_CHARS) else { return word(envelope.uuid, ID_CHARS) };
    let request = word(envelope.request, ID_CHARS).unwrap_or_default();
    Some(format!("{id}\0{request}"))
}

fn counter(value: Option<Value<'_>>) -> i64 {
    value.and_then(Value::int).unwrap_or(0).clamp(0, COUNTER_MAX)
}

/// Whether a model has the long window: by the end of its name, or as one of those known to have it,
/// with or without a date behind.
fn is_long(model: Value<'_>) -> bool {
    ends_long(model.raw())
        || LONG_MODELS.iter().any(|long| model.is(long) || model.starts_with(&format!("{long}-2")))
}

/// Whether a model's name, quotes included or not, says `[1m]`.
pub(super) fn ends_long(name: &[u8]) -> bool {
    name.ends_with(b"[1m]") || name.ends_with(b"[1m]\"")
}

/// The numbers of a version; what is not there is zero.
fn release(version: &str) -> Option<[u32; 3]> {
    let mut numbers = version.split(['.', '-', '+', ' ']).map(|part| part.parse::<u32>().ok());
    let first = numbers.next()??;
    let mut next = || numbers.next().flatten().unwrap_or(0);
    Some([first, next(), next()])
}
