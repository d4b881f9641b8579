//! Codex: rollouts and `session_index.jsonl`, one object in, records out.
//!
//! One adapter reads three eras, since one file may hold all of them: bare items (2025-05 to 09),
//! wrapped lines with legacy events, and paginated lines with `item_completed`. This file tells
//! whose a line is: it finds the rollout's identity, and it holds back what a fork or a sub-agent
//! replays of its parent. What an own line says is told in [`items`] (the model's side) and
//! [`events`] (the program's side); [`turns`], [`tokens`] and [`compactions`] carry what outlives
//! a line. Everything they carry has a bound, whatever the file holds.

mod children;
mod compactions;
mod events;
mod identity;
mod items;
mod text;
mod tokens;
mod turns;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::json::{OVERSIZED_FIELD, Shape, Value};
use super::{
    Hint, Kind, Message, MessageKind, MessageSource, Of, Place, Record, SessionKey, Span, Title,
    TitleKind, What,
};
use children::Children;
use compactions::Compactions;
use identity::Meta;
use text::{capped, word};
use tokens::Meter;
use turns::Turns;

/// Characters kept of an id; real ones have 36.
const ID_CHARS: usize = 128;
/// Characters kept of a name: a tool, a model, a branch, a record type.
const NAME_CHARS: usize = 200;
/// Characters kept of a path.
const PATH_CHARS: usize = 4096;
/// Characters kept of a thread's name.
const TITLE_CHARS: usize = 1000;

/// Carried state of one file generation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    place: Place,
    /// The thread that the file name tells.
    stem_id: Option<String>,
    key: Option<SessionKey>,
    /// The rollout's own `session_meta` has been read.
    described: bool,
    /// When the rollout began: the time in its id, else its start stamp; ms.
    began_ms: Option<i64>,
    /// Inside a replay of another thread's records.
    replaying: bool,
    /// `subagent_history_start_ordinal`: lines below it are the parent's.
    history_start: Option<u64>,
    /// Last stamp seen (at first the one in the file name), for lines without one; ms.
    stamp_ms: Option<i64>,
    turns: Turns,
    meter: Meter,
    compactions: Compactions,
    #[serde(default)]
    children: Children,
}

/// The object at hand: its stamps, its place, and where its records go.
struct Entry<'o> {
    /// Its moment: its own stamp, or the one that a bare item inherits; ms.
    at_ms: Option<i64>,
    /// The stamp on its line; ms.
    own_ms: Option<i64>,
    /// The stamp of its row: its own, else the last one before it; ms.
    row_ms: Option<i64>,
    /// Offset in the file, bytes.
    offset: u64,
    /// Position in a paginated rollout; absent in the older eras.
    ordinal: Option<u64>,
    /// What names it, where it has an id of its own.
    named: Option<Named>,
    /// It is what a compaction made, and no answer to anybody.
    summary: bool,
    /// Length of the line, if it was too long to be read whole; bytes.
    oversized: Option<u64>,
    out: &'o mut Vec<Record>,
}

/// The id of an item, and the turn in which it is one.
struct Named {
    id: String,
    turn: Option<String>,
}

impl Entry<'_> {
    fn say(&mut self, what: What) {
        self.say_at(self.at_ms, what);
    }

    fn say_at(&mut self, at_ms: Option<i64>, what: What) {
        self.out.push(Record { of: Of::File, at_ms, span: Span::default(), what });
    }

    /// A row of the transcript; at most one for each object, since its place is the row's id.
    fn row(&mut self, kind: MessageKind, source: MessageSource, text: String) {
        self.call_row(Message { counted: true, ..plain_row(kind, source, text) });
    }

    fn note(&mut self, text: String) {
        self.call_row(plain_row(MessageKind::Note, MessageSource::Primary, text));
    }

    fn call_row(&mut self, message: Message) {
        let native = self.native(&message);
        self.say_at(self.row_ms, What::Message(Message { native, ..message }));
    }

    /// What makes a row one however often it is written: its id within its turn, since a provider
    /// may use an id again; without an id its moment and its words. A bare line has neither.
    fn native(&self, message: &Message) -> Option<String> {
        let (kind, text) = (message.kind.word(), &message.text);
        let side = match message.source {
            MessageSource::Primary => "p",
            MessageSource::Fallback => "f",
        };
        let at_ms = self.own_ms;
        match &self.named {
            Some(Named { id, turn: Some(turn) }) => Some(format!("{kind}\0{side}\0{turn}\0{id}")),
            Some(Named { id, turn: None }) => at_ms.map(|at| format!("{kind}\0{side}\0{at}\0{id}")),
            None => at_ms.map(|at| format!("{kind}\0{side}\0{at}\0\0{text}")),
        }
    }

    /// A type that this version does not know, with the record type around it.
    fn unknown(&mut self, around: &str, kind: Option<Value<'_>>) {
        let inner = capped(kind, NAME_CHARS);
        self.say(What::Unknown(match (around, inner) {
            ("", None) => "untyped".to_owned(),
            ("", Some(inner)) => inner,
            (around, None) => around.to_owned(),
            (around, Some(inner)) => format!("{around}/{inner}"),
        }));
    }
}

impl State {
    /// The id of the item at hand, in the turn that is named or in the last one that began.
    fn name(&self, id: Option<Value<'_>>, turn: Option<String>, entry: &mut Entry<'_>) {
        let turn = turn.or_else(|| self.turns.newest());
        entry.named = capped(id, ID_CHARS).map(|id| Named { id, turn });
    }
}

fn plain_row(kind: MessageKind, source: MessageSource, text: String) -> Message {
    Message { kind, source, native: None, counted: false, call: None, name: None, text }
}

/// The fields around the payload.
#[derive(Default)]
struct Envelope<'a> {
    timestamp: Option<Value<'a>>,
    kind: Option<Value<'a>>,
    payload: Option<Value<'a>>,
    ordinal: Option<Value<'a>>,
    record_type: Option<Value<'a>>,
    id: Option<Value<'a>>,
    metadata: Option<Value<'a>>,
    oversized: Option<Value<'a>>,
}

impl<'a> Envelope<'a> {
    fn read(object: Value<'a>) -> Self {
        let mut envelope = Self::default();
        for (key, value) in object.fields() {
            let slot = match key.bytes() {
                b"timestamp" => &mut envelope.timestamp,
                b"type" => &mut envelope.kind,
                b"payload" => &mut envelope.payload,
                b"ordinal" => &mut envelope.ordinal,
                b"record_type" => &mut envelope.record_type,
                b"id" => &mut envelope.id,
                b"metadata" => &mut envelope.metadata,
                name if name == OVERSIZED_FIELD.as_bytes() => &mut envelope.oversized,
                _ => continue,
            };
            *slot = Some(value);
        }
        envelope
    }

    fn is_summary(&self) -> bool {
        let mark = self.metadata.and_then(|metadata| metadata.get("compaction_output"));
        mark.and_then(Value::bool) == Some(true)
    }
}

impl State {
    /// The state before the first line.
    pub fn new(hint: &Hint) -> Self {
        let stem = identity::stem(&hint.stem);
        let stem_id = stem.map(|stem| stem.thread.to_owned());
        let began_ms = stem_id.as_deref().and_then(identity::v7_ms);
        Self {
            place: hint.place,
            stem_id,
            key: None,
            described: false,
            began_ms,
            replaying: false,
            history_start: None,
            stamp_ms: began_ms.or(hint.named_ms),
            turns: Turns::default(),
            meter: Meter::new(stem.is_some_and(|stem| stem.continues)),
            compactions: Compactions::default(),
            children: Children::default(),
        }
    }

    /// The session the file belongs to; the index belongs to none.
    pub fn key(&self) -> Option<SessionKey> {
        self.key.clone()
    }

    /// One JSON object of the file.
    pub fn object(&mut self, object: Value<'_>, span: Span, out: &mut Vec<Record>) {
        match self.place {
            Place::SessionIndex => index_entry(object, out),
            Place::Transcript
            | Place::SubAgent
            | Place::AgentMeta
            | Place::CustomTitle
            | Place::Workspace => self.rollout_line(object, span, out),
        }
    }

    fn rollout_line(&mut self, object: Value<'_>, span: Span, out: &mut Vec<Record>) {
        let envelope = Envelope::read(object);
        let stamp = envelope.timestamp.and_then(Value::time_ms);
        self.stamp_ms = stamp.or(self.stamp_ms);
        let mut entry = Entry {
            at_ms: stamp,
            own_ms: stamp,
            row_ms: self.stamp_ms,
            offset: span.offset,
            ordinal: envelope.ordinal.and_then(Value::uint),
            named: None,
            summary: envelope.is_summary(),
            oversized: envelope.oversized.and_then(Value::uint),
            out,
        };
        match envelope.payload {
            Some(payload) => self.wrapped(envelope.kind, payload, &mut entry),
            None => self.bare(&envelope, object, &mut entry),
        }
    }

    /// `{"timestamp":…,"type":…,"payload":…}`.
    fn wrapped(&mut self, kind: Option<Value<'_>>, payload: Value<'_>, entry: &mut Entry<'_>) {
        let name = word(kind);
        if name == "session_meta" {
            return self.meta(payload, entry);
        }
        self.take_name_of_file();
        if self.is_replayed(name, payload, entry.ordinal) {
            if name == "event_msg" && word(payload.get("type")) == "token_count" {
                self.meter.replay(payload);
            }
            return;
        }
        match name {
            "response_item" => self.response_item(payload, entry),
            "event_msg" => self.event(payload, entry),
            "compacted" => self.compacted(payload, entry),
            "turn_context" => turn_context(payload, entry),
            "token_usage_record" => self.meter.record(payload, entry),
            "world_state"
            | "inter_agent_communication"
            | "inter_agent_communication_metadata"
            | "security_risk_score"
            | "retained_context"
            | "realtime_item" => {}
            _ => entry.unknown("", kind),
        }
    }

    /// The era without envelopes: a header, items, and state records that say nothing.
    fn bare(&mut self, envelope: &Envelope<'_>, object: Value<'_>, entry: &mut Entry<'_>) {
        if envelope.kind.is_none() && envelope.id.is_some() && envelope.timestamp.is_some() {
            return self.meta(object, entry);
        }
        self.take_name_of_file();
        if envelope.record_type.is_some() || self.is_replayed("", object, entry.ordinal) {
            return;
        }
        match word(envelope.kind) {
            // An envelope whose payload is lost.
            name @ ("response_item" | "event_msg") => {
                entry.say(What::Activity);
                entry.unknown(name, None);
            }
            name if items::is_item(name) => {
                entry.at_ms = entry.row_ms;
                self.response_item(object, entry);
            }
            _ => entry.unknown("", envelope.kind),
        }
    }

    /// Before any meta, the file's name tells whose it is.
    fn take_name_of_file(&mut self) {
        if self.key.is_none() {
            self.key = self.stem_id.clone().map(SessionKey::top);
        }
    }

    /// A `session_meta`, or the header of a bare file.
    fn meta(&mut self, payload: Value<'_>, entry: &mut Entry<'_>) {
        let meta = Meta::read(payload);
        let named = || self.stem_id.clone().filter(|_| payload.shape() == Shape::Object);
        let Some(id) = meta.id().or_else(named) else {
            return entry.unknown("session_meta", None);
        };
        // A fork whose first line is torn shows its parent's meta first; its name knows better.
        let first = self.key.is_none()
            && (entry.offset == 0 || self.stem_id.as_ref().is_none_or(|stem| *stem == id));
        self.take_name_of_file();
        let own = first || self.key.as_ref().is_some_and(|key| key.native == id);
        if !own {
            self.replaying = true;
        } else if !self.described {
            self.describe(id, &meta, entry);
        } else if !self.replaying {
            meta.newest(entry);
        }
    }

    /// Takes in the rollout's own meta.
    fn describe(&mut self, id: String, meta: &Meta<'_>, entry: &mut Entry<'_>) {
        self.described = true;
        let origin = meta.origin(&id);
        let named_ms = identity::v7_ms(&id);
        let started_ms = meta.timestamp.and_then(Value::time_ms).or(entry.at_ms).or(named_ms);
        self.began_ms = named_ms.or(started_ms);
        self.history_start = meta.history_start.and_then(Value::uint);
        if meta.history_base.is_some_and(|base| !base.is_null()) {
            self.meter.inherit();
        }
        if let Some(base) = meta.base() {
            entry.say(What::Base(base));
        }
        self.children.is_child = origin.kind == Kind::SubAgent;
        self.children.path = meta.agent_path();
        self.key = Some(SessionKey { native: id, parent: origin.parent });
        entry.say_at(started_ms, What::Started);
        entry.say(What::Kind(origin.kind));
        if let Some(source) = meta.source() {
            entry.say(What::Source(source));
        }
        if let Some(source) = origin.fork_of {
            entry.say(What::ForkOf(source));
        }
        if let Some(cwd) = capped(meta.cwd, PATH_CHARS) {
            entry.say(What::Cwd(cwd));
        }
        meta.newest(entry);
    }

    /// Whether a line belongs to the history that a fork or a sub-agent took over.
    ///
    /// The ordinal is exact where there is one. Else it is everything from a foreign meta to the
    /// first turn that is not older than the rollout; stamps tell nothing, a replay has new ones.
    fn is_replayed(&mut self, name: &str, payload: Value<'_>, ordinal: Option<u64>) -> bool {
        if let (Some(start), Some(ordinal)) = (self.history_start, ordinal) {
            self.replaying &= ordinal < start;
            return ordinal < start;
        }
        if self.replaying && name == "event_msg" && self.is_own_start(payload) {
            self.replaying = false;
        }
        self.replaying
    }

    fn is_own_start(&self, payload: Value<'_>) -> bool {
        let [kind, turn] = payload.pick(["type", "turn_id"]);
        if !events::is_start(word(kind)) {
            return false;
        }
        match (turn.and_then(Value::text).as_deref().and_then(identity::v7_ms), self.began_ms) {
            (Some(turn), Some(began)) => turn >= began,
            (Some(_) | None, _) => true,
        }
    }
}

fn turn_context(payload: Value<'_>, entry: &mut Entry<'_>) {
    let [cwd, model] = payload.pick(["cwd", "model"]);
    if let Some(cwd) = capped(cwd, PATH_CHARS) {
        entry.say(What::Cwd(cwd));
    }
    if let Some(model) = capped(model, NAME_CHARS) {
        entry.say(What::Model(model));
    }
}

/// A line of `session_index.jsonl`: a name that the user gave a thread; the last one wins.
fn index_entry(object: Value<'_>, out: &mut Vec<Record>) {
    let [id, name, updated] = object.pick(["id", "thread_name", "updated_at"]);
    let (Some(id), Some(text)) = (capped(id, ID_CHARS), capped(name, TITLE_CHARS)) else { return };
    let title = Title { kind: TitleKind::Custom, to: Some(SessionKey::top(id)), text };
    out.push(Record {
        of: Of::File,
        at_ms: updated.and_then(Value::time_ms),
        span: Span::default(),
        what: What::Title(title),
    });
}
