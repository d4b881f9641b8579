//! DeepSeek Harness session logs: a header line, then one event a line (`formats/dsh.md`).
//!
//! Positions come from the rows (`seq`, packed rows count for their members), never from line
//! numbers. Rows are read by their fields in whatever order these stand, and never searched for
//! text: a prompt may quote `session/end-seed`. What a fork copied from its source (v0 and v1:
//! below the header's `seedLength`; later: up to the last `{inherited:true}` marker) is neither
//! activity nor turn, message or token of this session; it counts for the positions of brackets,
//! and for the title, the model and the window, which the harness itself carries over.
//!
//! [`words`] knows the event types, [`usage`] the tokens, [`text`] the messages. It does not know
//! whether a bracket is open: that is [`crate::compaction`]'s.

mod text;
mod usage;
mod words;

use serde::{Deserialize, Serialize};

use super::json::{Shape, Value};
use super::{
    Hint, Kind, Message, MessageKind, MessageSource, Notice, Of, Outcome, PREVIEW_CHARS, Record,
    SessionKey, Span, Title, TitleKind, TurnMark, What,
};
use crate::compaction::Event;

/// Newest format version whose rows are known.
const VERSION_MAX: u64 = 4;
/// First version whose lineage is cut by a marker instead of by `seedLength`.
const MARKED_SINCE_VERSION: u64 = 2;
/// Characters kept of an id.
const ID_CHARS_MAX: usize = 256;
/// Characters kept of a path, a title or an error text.
const TEXT_CHARS_MAX: usize = 1000;

/// Carried state of one file generation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    content: Content,
    /// The session folder's name, decoded: the id of a log whose header is damaged.
    folder: Option<String>,
    /// From the header.
    header: Option<Header>,
    /// Some row was read, so a header that has not been seen is missing.
    rows: bool,
    /// Rows below were copied from the source of a fork (v0, v1).
    own_from_seq: u64,
    /// The header promises a lineage marker that has not come yet (v2 and later).
    awaits_cut: bool,
    /// The position a row without a usable `seq` gets: one past the row before it.
    next_seq: u64,
    /// Newest stamp, for rows without one; ms.
    stamp_ms: Option<i64>,
    /// A descriptor named the sub-agent, so its titles are not needed.
    labelled: bool,
    usage: usage::Samples,
}

/// What the file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Content {
    /// A header line and rows.
    Log,
    /// One JSON document beside the logs.
    Document,
}

/// What the header says of identity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Header {
    id: String,
    /// The session that spawned it; only of a sub-agent.
    parent: Option<String>,
    sub_agent: bool,
}

/// One event.
struct Row<'a> {
    seq: u64,
    at_ms: Option<i64>,
    data: Value<'a>,
    /// It belongs to the session itself, not to the source it was forked from.
    own: bool,
}

impl State {
    /// The state before the first line.
    pub fn new(hint: &Hint) -> Self {
        Self {
            content: if hint.place.is_document() { Content::Document } else { Content::Log },
            folder: hint.folder.as_deref().map(words::decode_folder),
            header: None,
            rows: false,
            own_from_seq: 0,
            awaits_cut: false,
            next_seq: 0,
            stamp_ms: None,
            labelled: false,
            usage: usage::Samples::default(),
        }
    }

    /// The session the file belongs to: the header's, else (once a row shows that there is no
    /// header) the folder's.
    pub fn key(&self) -> Option<SessionKey> {
        match &self.header {
            Some(Header { id, parent: Some(parent), .. }) => Some(SessionKey::child(id, parent)),
            Some(Header { id, parent: None, .. }) => Some(SessionKey::top(id)),
            None if self.rows => self.folder.clone().map(SessionKey::top),
            None => None,
        }
    }

    /// One JSON object of the file.
    ///
    /// `workspace.json` is read and gives nothing: it holds the web client's order and its archived
    /// flags, which change nothing on disk and for which a session has no fact.
    pub fn object(&mut self, object: Value<'_>, _span: Span, out: &mut Vec<Record>) {
        if self.content == Content::Document {
            return;
        }
        // One walk: a row may be megabytes long.
        let [kind, seq, time, data, ignorable, seq0, time0] =
            object.pick(["type", "seq", "time", "data", "ignorable", "seq0", "time0"]);
        let Some(kind) = kind.and_then(|kind| kind.text_up_to(ID_CHARS_MAX)) else {
            say(out, self.stamp_ms, What::Unknown("(no type)".to_owned()));
            return;
        };
        let kind = words::current(&kind);
        if kind == "session" && self.header.is_none() {
            self.header(object, out);
        } else if words::is_packed(kind) {
            self.packed(seq0, time0, data, out);
        } else {
            let row = self.position(seq, time, data, 1);
            let ignorable = ignorable.and_then(Value::bool) == Some(true);
            self.row(kind, &row, ignorable, out);
        }
        self.rows = true;
    }

    fn header(&mut self, header: Value<'_>, out: &mut Vec<Record>) {
        let [id, version, created, cwd] = header.pick(["id", "version", "createdAt", "cwd"]);
        let [source, origin, seed, seeded] =
            header.pick(["parentSession", "origin", "seedLength", "isSeeded"]);
        let version = version.and_then(Value::uint);
        let at_ms = created.and_then(Value::int);
        if let Some(problem) = version_problem(version) {
            say(out, at_ms, format_notice(problem));
        }
        let id = id.and_then(|id| id.text_up_to(ID_CHARS_MAX)).filter(|id| !id.is_empty());
        match (&id, &self.folder) {
            (Some(id), Some(folder)) if id != folder => {
                let text = "the header names another session than its folder";
                say(out, at_ms, notice("identity", text));
            }
            (Some(_), _) => {}
            (None, _) => say(out, at_ms, format_notice("the header names no session id")),
        }
        let source = source.and_then(|id| id.text_up_to(ID_CHARS_MAX));
        let sub_agent = origin.is_some_and(|origin| origin.is("subagent"));
        match (sub_agent, &source) {
            (true, _) => say(out, at_ms, What::Kind(Kind::SubAgent)),
            (false, Some(source)) => {
                say(out, at_ms, What::Kind(Kind::Fork));
                say(out, at_ms, What::ForkOf(source.clone()));
            }
            (false, None) => {}
        }
        let marked = version.is_some_and(|version| version >= MARKED_SINCE_VERSION);
        self.awaits_cut = marked && seeded.and_then(Value::bool) == Some(true);
        if let Some(length) = seed.and_then(Value::uint).filter(|length| !marked && *length > 0) {
            self.own_from_seq = length;
            say(out, at_ms, What::Compaction(Event::Lineage { until_seq: length }));
        }
        if let Some(cwd) = cwd.and_then(|cwd| cwd.text_up_to(TEXT_CHARS_MAX)) {
            say(out, at_ms, What::Cwd(cwd));
        }
        if at_ms.is_some() {
            say(out, at_ms, What::Started);
        }
        self.stamp_ms = at_ms;
        self.header = id.or_else(|| self.folder.clone()).map(|id| Header {
            id,
            parent: source.filter(|_| sub_agent),
            sub_agent,
        });
    }

    fn row(&mut self, kind: &str, row: &Row<'_>, ignorable: bool, out: &mut Vec<Record>) {
        if row.own && words::is_activity(kind) {
            say(out, row.at_ms, What::Activity);
        }
        if words::is_known(kind) {
            self.event(kind, row, out);
            return;
        }
        say(out, row.at_ms, What::Unknown(kind.to_owned()));
        if !ignorable {
            let text = "holds a record type that this version does not know";
            say(out, row.at_ms, format_notice(text));
        }
    }

    /// A packed row stands for many stream deltas, each with a seq of its own.
    fn packed(
        &mut self,
        seq: Option<Value<'_>>,
        time: Option<Value<'_>>,
        data: Option<Value<'_>>,
        out: &mut Vec<Record>,
    ) {
        let [texts, args, gaps] = data.map_or([None; 3], |data| data.pick(["texts", "args", "dt"]));
        let members = texts.or(args).map_or(0, |list| list.items().count() as u64);
        let mut row = self.position(seq, time, data, members.max(1));
        // Gaps may be negative (the clock stepped) and huge: the newest stamp is what counts.
        let mut at_ms = row.at_ms;
        for gap in gaps.into_iter().flat_map(Value::items) {
            at_ms = at_ms.map(|at| at.saturating_add(gap.int().unwrap_or(0)));
            row.at_ms = row.at_ms.max(at_ms);
        }
        self.stamp_ms = row.at_ms;
        if row.own {
            say(out, row.at_ms, What::Activity);
        }
    }

    /// Position, stamp and ownership of a row that stands for so many events.
    fn position<'a>(
        &mut self,
        seq: Option<Value<'_>>,
        time: Option<Value<'_>>,
        data: Option<Value<'a>>,
        events: u64,
    ) -> Row<'a> {
        let seq = seq.and_then(Value::uint).unwrap_or(self.next_seq);
        self.next_seq = seq.saturating_add(events);
        self.stamp_ms = time.and_then(Value::int).or(self.stamp_ms);
        Row {
            seq,
            at_ms: self.stamp_ms,
            data: data.unwrap_or(Value::new(b"")),
            own: seq >= self.own_from_seq && !self.awaits_cut,
        }
    }

    fn event(&mut self, kind: &str, row: &Row<'_>, out: &mut Vec<Record>) {
        match kind {
            "session/end-seed" => self.boundary(row, out),
            "session/title" => self.title(row, out),
            "subagent/descriptor" => self.descriptor(row, out),
            "request/header" => {
                let model = row.data.at(&["header", "config", "model"]);
                model_of(model, row, out);
            }
            "request/context" => {
                let window = row.data.get("contextWindow").and_then(Value::uint);
                say(out, row.at_ms, What::Window(window));
            }
            "turn/start" | "turn/end" => turn(kind, row, out),
            "compaction/start" | "compaction/summary" | "compaction/end" => {
                compaction(kind, row, out);
            }
            "command/done" => {
                if let Some(command) = id_in(row.data, "commandId") {
                    let event = Event::CommandDone { seq: row.seq, command };
                    say(out, row.at_ms, What::Compaction(event));
                }
            }
            "user/message" => user_message(row, out),
            "assistant/message" | "assistant/attempt" | "assistant/chunk" => {
                self.assistant(kind, row, out);
            }
            "tool/call" | "tool/result" if row.own => tool(kind, row, out),
            "command/run" if row.own => {
                let [name, args] = row.data.pick(["name", "args"]);
                let text = format!("/{} {}", text::scalar(name), text::scalar(args));
                say_message(out, row, MessageKind::Note, text.trim_end());
            }
            "approval/asked" | "approval/decided" if row.own => {
                if let Some(id) = id_in(row.data, "id") {
                    say(out, row.at_ms, What::Approval { id, asked: kind == "approval/asked" });
                }
            }
            _ => {}
        }
    }

    fn boundary(&mut self, row: &Row<'_>, out: &mut Vec<Record>) {
        let inherited = row.data.get("inherited").and_then(Value::bool) == Some(true);
        if inherited {
            self.awaits_cut = false;
            self.usage = usage::Samples::default();
            say(out, row.at_ms, What::Reset);
        }
        say(out, row.at_ms, What::Compaction(Event::Boundary { seq: row.seq, inherited }));
    }

    /// A sub-agent's title is its label; a title of its own only stands in where it has none, and
    /// never one that it copied from its parent.
    fn title(&mut self, row: &Row<'_>, out: &mut Vec<Record>) {
        let sub_agent = self.header.as_ref().is_some_and(|header| header.sub_agent);
        if sub_agent && (self.labelled || !row.own) {
            return;
        }
        if let Some(text) = row.data.get("title").and_then(|title| title.text_up_to(TEXT_CHARS_MAX))
        {
            let title = Title { kind: TitleKind::Generated, to: None, text };
            say(out, row.at_ms, What::Title(title));
        }
    }

    fn descriptor(&mut self, row: &Row<'_>, out: &mut Vec<Record>) {
        let label = row.data.get("label").and_then(|label| label.text_up_to(TEXT_CHARS_MAX));
        if let Some(text) = label.filter(|label| row.own && !label.trim().is_empty()) {
            self.labelled = true;
            let title = Title { kind: TitleKind::Description, to: None, text };
            say(out, row.at_ms, What::Title(title));
        }
    }

    fn assistant(&mut self, kind: &str, row: &Row<'_>, out: &mut Vec<Record>) {
        if let Some(tokens) = usage::of(row.data).filter(|_| row.own) {
            let change = self.usage.take(row.data, tokens);
            say(out, row.at_ms, What::Usage(super::Usage { key: None, tokens: change }));
            say(out, row.at_ms, What::Context(Some(usage::context(tokens))));
        }
        if kind != "assistant/message" {
            return;
        }
        let message = row.data.get("message").unwrap_or(Value::new(b""));
        let [source, content] = message.pick(["source", "content"]);
        model_of(source.and_then(|source| source.get("model")), row, out);
        if row.own {
            say_message(out, row, MessageKind::Answer, &text::preview(content));
        }
    }
}

/// `user/message` has several authors; only the user's own is a prompt. The message that replaces
/// what a compaction summarised is none of them: it is a bracket event.
fn user_message(row: &Row<'_>, out: &mut Vec<Record>) {
    let [source, content] = row.data.pick(["source", "content"]);
    let [kind, plugin] = source.map_or([None; 2], |source| source.pick(["kind", "plugin"]));
    let is = |name: &str| kind.is_some_and(|kind| kind.is(name));
    if is("compact-checkpoint") || (is("plugin") && plugin.is_some_and(|name| name.is("compact"))) {
        say(out, row.at_ms, What::Compaction(Event::Replaced { seq: row.seq }));
        if row.own {
            say(out, row.at_ms, What::Context(None));
        }
        return;
    }
    if !row.own {
        return;
    }
    if is("user") || is("agent") || is("tool") {
        say(out, row.at_ms, What::Activity);
    }
    let kind = if is("user") { MessageKind::Prompt } else { MessageKind::Note };
    say_message(out, row, kind, &text::preview(content));
}

fn turn(kind: &str, row: &Row<'_>, out: &mut Vec<Record>) {
    say(out, row.at_ms, What::Compaction(Event::TurnEdge { seq: row.seq }));
    if !row.own {
        return;
    }
    if kind == "turn/start" {
        say(out, row.at_ms, What::Turn(TurnMark::Open));
        return;
    }
    let reason = row.data.get("reason").unwrap_or(Value::new(b""));
    let name = reason.get("kind").and_then(|kind| kind.text_up_to(ID_CHARS_MAX));
    let mark = match name.as_deref() {
        Some("completed" | "max-tokens") => TurnMark::Close(Outcome::Completed),
        Some("aborted" | "interrupted") => TurnMark::Close(Outcome::Aborted),
        Some("error" | "blocked") => TurnMark::Close(Outcome::Error),
        // A reason of a later version: the turn is over, how it went is not known.
        Some(_) | None => TurnMark::CloseEmpty,
    };
    say(out, row.at_ms, What::Turn(mark));
    match name.as_deref() {
        Some("error") => {
            let (code, text) = text::failure(reason.get("error"));
            say(out, row.at_ms, What::Error { code, text });
        }
        Some("blocked") => {
            let text = "the turn was blocked".to_owned();
            say(out, row.at_ms, What::Error { code: "blocked".to_owned(), text });
        }
        Some("aborted" | "interrupted") => {
            let by = reason.at(&["reason", "kind"]).and_then(|kind| kind.text_up_to(64));
            let by = by.map_or_else(String::new, |by| format!(" by {by}"));
            say_message(out, row, MessageKind::Note, &format!("turn interrupted{by}"));
        }
        Some(_) | None => {}
    }
}

fn compaction(kind: &str, row: &Row<'_>, out: &mut Vec<Record>) {
    let (seq, at_ms, data) = (row.seq, row.at_ms, row.data);
    let event = match kind {
        "compaction/start" => Event::Start {
            seq,
            at_ms,
            turn: data.get("turn").and_then(Value::int),
            command: id_in(data, "sourceCommandId"),
        },
        "compaction/summary" => Event::Summary {
            seq,
            shadowed_tokens: data.get("shadowedTokenCount").and_then(Value::uint),
            summary_tokens: data.at(&["usage", "outputTokens"]).and_then(Value::uint),
        },
        _ => Event::End { seq, at_ms, error: data.get("error").and_then(text::problem) },
    };
    if let Event::End { error, .. } = &event
        && row.own
    {
        let text = match error {
            Some(error) => format!("compaction failed: {error}"),
            None => "compaction finished".to_owned(),
        };
        if error.is_none() {
            say(out, at_ms, What::Context(None));
        }
        say_message(out, row, MessageKind::Note, &text);
    }
    say(out, at_ms, What::Compaction(event));
}

fn tool(kind: &str, row: &Row<'_>, out: &mut Vec<Record>) {
    let whole = if kind == "tool/call" {
        let [name, arguments] = row.data.pick(["name", "arguments"]);
        Message {
            call: id_in(row.data, "callId"),
            name: name.and_then(|name| name.text_up_to(ID_CHARS_MAX)),
            ..plain(row, MessageKind::ToolCall, text::scalar(arguments))
        }
    } else {
        let (call, text) = text::result(row.data);
        Message { call, ..plain(row, MessageKind::ToolResult, text) }
    };
    say(out, row.at_ms, What::Message(whole));
}

fn say_message(out: &mut Vec<Record>, row: &Row<'_>, kind: MessageKind, text: &str) {
    let text = text.chars().take(PREVIEW_CHARS).collect();
    say(out, row.at_ms, What::Message(plain(row, kind, text)));
}

fn plain(row: &Row<'_>, kind: MessageKind, text: String) -> Message {
    Message {
        kind,
        source: MessageSource::Primary,
        native: Some(row.seq.to_string()),
        counted: true,
        call: None,
        name: None,
        text,
    }
}

fn model_of(model: Option<Value<'_>>, row: &Row<'_>, out: &mut Vec<Record>) {
    if let Some(model) = model.and_then(|model| model.text_up_to(ID_CHARS_MAX)) {
        say(out, row.at_ms, What::Model(model));
    }
}

fn id_in(data: Value<'_>, name: &str) -> Option<String> {
    data.get(name).filter(|id| id.shape() == Shape::String)?.text_up_to(ID_CHARS_MAX)
}

fn version_problem(version: Option<u64>) -> Option<&'static str> {
    match version {
        Some(version) if version > VERSION_MAX => {
            Some("the log has a newer format version than this lullwatch knows")
        }
        Some(_) => None,
        None => Some("the header names no format version"),
    }
}

fn format_notice(text: &str) -> What {
    notice("format", text)
}

fn notice(code: &str, text: &str) -> What {
    What::Notice(Notice { code: code.to_owned(), text: text.to_owned() })
}

fn say(out: &mut Vec<Record>, at_ms: Option<i64>, what: What) {
    out.push(Record { of: Of::File, at_ms, span: Span::default(), what });
}

#[cfg(test)]
mod tests;
