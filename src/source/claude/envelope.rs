//! The fields around a Claude record, found in one walk and decoded only when asked for.
//!
//! Every field is optional and may have any JSON type: the format is officially unstable, so what
//! does not read as expected reads as absent.

use super::super::json::{OVERSIZED_FIELD, Shape, Value};

/// The top-level fields that the adapter looks at, unread.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Envelope<'a> {
    /// `type`.
    pub(super) kind: Option<Value<'a>>,
    /// `subtype` of a `system` record.
    pub(super) subtype: Option<Value<'a>>,
    /// `uuid` of the record.
    pub(super) uuid: Option<Value<'a>>,
    /// `timestamp`.
    pub(super) stamp: Option<Value<'a>>,
    /// `sessionId`.
    pub(super) session: Option<Value<'a>>,
    /// `isSidechain`.
    pub(super) sidechain: Option<Value<'a>>,
    /// `agentId`.
    pub(super) agent: Option<Value<'a>>,
    /// `isMeta`.
    pub(super) meta: Option<Value<'a>>,
    /// `isCompactSummary`.
    pub(super) summary: Option<Value<'a>>,
    /// `isApiErrorMessage`.
    pub(super) api_error: Option<Value<'a>>,
    /// `error` of an API error.
    pub(super) error: Option<Value<'a>>,
    /// `apiErrorStatus`.
    pub(super) error_status: Option<Value<'a>>,
    /// `apiErrorType`.
    pub(super) error_type: Option<Value<'a>>,
    /// `message`.
    pub(super) message: Option<Value<'a>>,
    /// `content` of a `system` record.
    pub(super) content: Option<Value<'a>>,
    /// `toolUseResult`.
    pub(super) result: Option<Value<'a>>,
    /// `attachment`.
    pub(super) attachment: Option<Value<'a>>,
    /// `compactMetadata`.
    pub(super) compact: Option<Value<'a>>,
    /// `promptId`: the same on all records that one prompt leads to.
    pub(super) prompt: Option<Value<'a>>,
    /// `scheduledTaskId`: the timer that led to the record.
    pub(super) scheduled: Option<Value<'a>>,
    /// `turnCompanion`: the client goes on by itself.
    pub(super) companion: Option<Value<'a>>,
    /// `requestId`.
    pub(super) request: Option<Value<'a>>,
    /// `cwd`.
    pub(super) cwd: Option<Value<'a>>,
    /// `gitBranch`.
    pub(super) branch: Option<Value<'a>>,
    /// `version`.
    pub(super) version: Option<Value<'a>>,
    /// `entrypoint`.
    pub(super) entrypoint: Option<Value<'a>>,
    /// `teamName`.
    pub(super) team: Option<Value<'a>>,
    /// `sessionKind`.
    pub(super) session_kind: Option<Value<'a>>,
    /// `forkedFrom`.
    pub(super) forked_from: Option<Value<'a>>,
    /// `requestSessionId`: the session whose request an assistant record answers.
    pub(super) request_session: Option<Value<'a>>,
    /// `origin`.
    pub(super) origin: Option<Value<'a>>,
    /// `promptSource`.
    pub(super) prompt_source: Option<Value<'a>>,
    /// Bytes of the line, where the object only stands for one too long to read.
    pub(super) oversized: Option<u64>,
    /// The object itself, for the payload of metadata.
    pub(super) object: Option<Value<'a>>,
}

/// The families of records; metadata is all that carries no conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// `user`.
    User,
    /// `assistant`.
    Assistant,
    /// `system`.
    System,
    /// `attachment`.
    Attachment,
    /// `progress`.
    Progress,
    /// Any other type, known or not.
    Metadata,
}

impl<'a> Envelope<'a> {
    /// Finds the fields of a record.
    pub(super) fn read(object: Value<'a>) -> Self {
        let mut found = Self { object: Some(object), ..Self::default() };
        for (key, value) in object.fields() {
            let slot = match key.bytes() {
                b"type" => &mut found.kind,
                b"subtype" => &mut found.subtype,
                b"uuid" => &mut found.uuid,
                b"timestamp" => &mut found.stamp,
                b"sessionId" => &mut found.session,
                b"isSidechain" => &mut found.sidechain,
                b"agentId" => &mut found.agent,
                b"isMeta" => &mut found.meta,
                b"isCompactSummary" => &mut found.summary,
                b"isApiErrorMessage" => &mut found.api_error,
                b"error" => &mut found.error,
                b"apiErrorStatus" => &mut found.error_status,
                b"apiErrorType" => &mut found.error_type,
                b"message" => &mut found.message,
                b"content" => &mut found.content,
                b"toolUseResult" => &mut found.result,
                b"attachment" => &mut found.attachment,
                b"compactMetadata" => &mut found.compact,
                b"promptId" => &mut found.prompt,
                b"scheduledTaskId" => &mut found.scheduled,
                b"turnCompanion" => &mut found.companion,
                b"requestId" => &mut found.request,
                b"cwd" => &mut found.cwd,
                b"gitBranch" => &mut found.branch,
                b"version" => &mut found.version,
                b"entrypoint" => &mut found.entrypoint,
                b"teamName" => &mut found.team,
                b"sessionKind" => &mut found.session_kind,
                b"forkedFrom" => &mut found.forked_from,
                b"requestSessionId" => &mut found.request_session,
                b"origin" => &mut found.origin,
                b"promptSource" => &mut found.prompt_source,
                _ => {
                    if key.is(OVERSIZED_FIELD) {
                        found.oversized = value.uint();
                    }
                    continue;
                }
            };
            *slot = Some(value);
        }
        // Ids are compared as written, so one that is no text must not pass for the same id.
        found.uuid = found.uuid.filter(|uuid| uuid.shape() == Shape::String && !uuid.is(""));
        found
    }

    /// What family the record's type belongs to.
    pub(super) fn family(&self) -> Family {
        match self.kind.map(Value::raw) {
            Some(b"\"user\"") => Family::User,
            Some(b"\"assistant\"") => Family::Assistant,
            Some(b"\"system\"") => Family::System,
            Some(b"\"attachment\"") => Family::Attachment,
            Some(b"\"progress\"") => Family::Progress,
            _ => Family::Metadata,
        }
    }

    /// Its own stamp, ms.
    pub(super) fn stamp_ms(&self) -> Option<i64> {
        self.stamp?.time_ms()
    }

    /// Whether `origin` or `promptSource` says that no human and no program outside sent it.
    pub(super) fn is_from_inside(&self) -> bool {
        is_inside(self.origin) || self.prompt_source.is_some_and(|source| source.is("system"))
    }
}

/// Whether an `origin` names something other than a human.
pub(super) fn is_inside(origin: Option<Value<'_>>) -> bool {
    let kind = origin.and_then(|origin| match origin.shape() {
        Shape::Object => origin.get("kind"),
        Shape::String => Some(origin),
        Shape::Array | Shape::Number | Shape::Bool | Shape::Null => None,
    });
    kind.is_some_and(|kind| kind.shape() == Shape::String && !kind.is("human"))
}

/// Whether a flag is there and `true`.
pub(super) fn is_set(flag: Option<Value<'_>>) -> bool {
    flag.and_then(Value::bool) == Some(true)
}

/// A string that is there and not empty, at most so many characters of it.
pub(super) fn word(value: Option<Value<'_>>, chars: usize) -> Option<String> {
    value?.text_up_to(chars).filter(|text| !text.is_empty())
}
