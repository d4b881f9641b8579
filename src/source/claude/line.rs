//! One record on its way from fields to what it says.

use super::super::json::Value;
use super::super::{Message, MessageKind, MessageSource, Of, Record, Span, What};
use super::envelope::{Envelope, word};

/// Characters kept of a record's or a call's id.
pub(super) const ID_CHARS: usize = 128;

/// A record with where it lies, whose it is, and where what it says goes.
#[derive(Debug)]
pub(super) struct Line<'a, 'o> {
    /// Its fields.
    pub(super) envelope: Envelope<'a>,
    /// Where it lies.
    pub(super) span: Span,
    /// Whose it is.
    pub(super) of: Of,
    /// Its own stamp, ms.
    pub(super) at_ms: Option<i64>,
    /// Its own stamp, else the last one before it, ms.
    pub(super) carried_ms: Option<i64>,
    /// Copied from another session: its rows are shown and count as nothing.
    pub(super) copied: bool,
    /// What was said so far.
    pub(super) out: &'o mut Vec<Record>,
}

impl Line<'_, '_> {
    /// Whether it belongs to the file's session.
    pub(super) fn is_own(&self) -> bool {
        self.of == Of::File
    }

    /// Says something at the record's stamp, or the last one before it.
    pub(super) fn say(&mut self, what: What) {
        self.say_at(self.carried_ms, what);
    }

    /// Says something at another stamp.
    pub(super) fn say_at(&mut self, at_ms: Option<i64>, what: What) {
        self.out.push(Record { of: self.of.clone(), at_ms, span: self.span, what });
    }

    /// The clock moves, by the record's own stamp only.
    pub(super) fn activity(&mut self) {
        self.say_at(self.at_ms, What::Activity);
    }

    /// A row without a call. `part` tells the rows of one record apart.
    pub(super) fn row(&mut self, kind: MessageKind, part: &str, counted: bool, text: String) {
        let counted = counted && !self.copied;
        self.message(part, Message { counted, text, ..blank(kind) });
    }

    /// A row that opens or answers a call.
    pub(super) fn call(&mut self, kind: MessageKind, part: &str, row: Call<'_>) {
        let counted = kind == MessageKind::ToolCall && !self.copied;
        let (call, name) = (word(row.id, ID_CHARS), word(row.name, ID_CHARS));
        self.message(part, Message { counted, call, name, text: row.text, ..blank(kind) });
    }

    /// A row that counts as nothing.
    pub(super) fn note(&mut self, part: &str, text: String) {
        if !text.is_empty() {
            self.row(MessageKind::Note, part, false, text);
        }
    }

    fn message(&mut self, part: &str, message: Message) {
        let native = word(self.envelope.uuid, ID_CHARS).map(|uuid| format!("{uuid}#{part}"));
        self.say(What::Message(Message { native, ..message }));
    }
}

/// What a call row needs beside its text.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// `id` of the call, or `tool_use_id` of its result.
    pub(super) id: Option<Value<'a>>,
    /// The tool's name.
    pub(super) name: Option<Value<'a>>,
    /// Preview.
    pub(super) text: String,
}

fn blank(kind: MessageKind) -> Message {
    Message {
        kind,
        source: MessageSource::Primary,
        native: None,
        counted: false,
        call: None,
        name: None,
        text: String::new(),
    }
}
