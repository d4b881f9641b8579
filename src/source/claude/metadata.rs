//! Records without conversation: titles, end markers, the trailer, and all that may be ignored.

use serde::{Deserialize, Serialize};

use super::super::json::{Shape, Value};
use super::super::{
    EndKind, Of, Outcome, PREVIEW_CHARS, Place, Record, Returned, SessionKey, Span, Title,
    TitleKind, What,
};
use super::State;
use super::assistant::{LONG_WINDOW_TOKENS, ends_long};
use super::background;
use super::envelope::{is_set, word};
use super::line::{ID_CHARS, Line};
use super::ring;

/// Characters kept of a title.
const TITLE_CHARS: usize = 1000;
/// Summaries that may wait for their leaf; the oldest is forgotten first.
const SUMMARIES_MAX: usize = 32;
/// Characters kept of a type that is not known.
const TYPE_CHARS: usize = 64;
/// Models looked at in a `cost-state`.
const MODELS_MAX: usize = 64;

/// Types that are known and say nothing to us.
const IGNORED: [&str; 28] = [
    "last-prompt",
    "mode",
    "permission-mode",
    "agent-setting",
    "agent-color",
    "tag",
    "atis-latch",
    "bridge-session",
    "pr-link",
    "worktree-state",
    "relocated",
    "file-history-snapshot",
    "file-history-delta",
    "content-replacement",
    "isolation-latch",
    "dev-mods",
    "memory-mode",
    "history-suppression",
    "attribution-snapshot",
    "observer-ref",
    "fork-context-ref",
    "api-request",
    "api-request-shape",
    "api-request-blob",
    "frame-link",
    "artifact-comment-monitor",
    "artifact-autoreact-ledger",
    "tools-used",
];

/// A summary that waits for the record it hangs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Leaf {
    /// Hash of `leafUuid`.
    leaf: u64,
    text: String,
}

impl State {
    /// What a record without conversation says.
    pub(super) fn metadata(&mut self, line: &mut Line<'_, '_>) {
        let kind = line.envelope.kind;
        let payload = line.envelope.object.unwrap_or(Value::new(b""));
        match kind.map(Value::raw) {
            Some(b"\"custom-title\"") => self.title(TitleKind::Custom, "customTitle", line),
            Some(b"\"ai-title\"") => self.title(TitleKind::Generated, "aiTitle", line),
            Some(b"\"agent-name\"") => self.title(TitleKind::AgentName, "agentName", line),
            Some(b"\"summary\"") => self.summary(payload, line),
            Some(b"\"cost-state\"") => self.cost_state(payload, line),
            Some(b"\"continued-in\"") => self.end(EndKind::ContinuedIn, line.at_ms, line),
            Some(b"\"ended-by-model\"") => self.end(EndKind::EndedByModel, line.at_ms, line),
            Some(b"\"queue-operation\"") => {
                background::notice(self.root(), payload.get("content"), line);
            }
            _ => unknown(kind, line),
        }
        if self.place == Place::Transcript
            && let Some(left) = self.trailer.metadata(kind, line.span)
        {
            line.say(What::Trailer(left));
        }
    }

    /// A document beside the transcripts: a title for somebody else, and that it has finished.
    pub(super) fn document(&self, object: Value<'_>, span: Span, out: &mut Vec<Record>) {
        if self.id.is_empty() {
            return;
        }
        let (kind, to, text) = match (self.place, &self.parent) {
            (Place::AgentMeta, Some(parent)) => {
                let to = SessionKey::child(self.id.clone(), parent);
                if is_set(object.get("finished")) {
                    let returned = Returned { to: to.clone(), outcome: Outcome::Completed };
                    let what = What::Returned(returned);
                    out.push(Record { of: Of::File, at_ms: None, span, what });
                }
                (TitleKind::Description, to, object.get("description"))
            }
            (Place::CustomTitle, _) => {
                (TitleKind::Custom, SessionKey::top(self.id.clone()), object.get("customTitle"))
            }
            (
                Place::AgentMeta
                | Place::Transcript
                | Place::SubAgent
                | Place::SessionIndex
                | Place::Workspace,
                _,
            ) => return,
        };
        let Some(text) = word(text, TITLE_CHARS) else { return };
        let title = Title { kind, to: Some(to), text };
        out.push(Record { of: Of::File, at_ms: None, span, what: What::Title(title) });
    }

    /// A title for the session that the record itself names. A sub-agent's file names its parent
    /// there and has no say in the parent's title.
    fn title(&self, kind: TitleKind, field: &str, line: &mut Line<'_, '_>) {
        if self.place != Place::Transcript {
            return;
        }
        let text = line.envelope.object.and_then(|object| object.get(field));
        let Some(text) = word(text, TITLE_CHARS) else { return };
        let to = word(line.envelope.session, ID_CHARS).filter(|id| *id != self.id);
        let to = to.map(SessionKey::top);
        line.say_at(self.newest_ms, What::Title(Title { kind, to, text }));
    }

    /// The first slash command, which names a session without a prompt.
    pub(super) fn first_command(&mut self, text: String, line: &mut Line<'_, '_>) {
        if self.place == Place::Transcript && !self.commanded {
            self.commanded = true;
            let title = Title { kind: TitleKind::FirstCommand, to: None, text };
            line.say_at(self.newest_ms, What::Title(title));
        }
    }

    /// A summary names this session only if it hangs on one of its records, which may come before
    /// or after it: old versions wrote the summaries of other sessions into any file.
    fn summary(&mut self, payload: Value<'_>, line: &mut Line<'_, '_>) {
        let [text, leaf] = payload.pick(["summary", "leafUuid"]);
        let text = word(text, PREVIEW_CHARS);
        let (Some(text), Some(leaf)) = (text, leaf.filter(|leaf| leaf.shape() == Shape::String))
        else {
            return;
        };
        if self.place != Place::Transcript {
            return;
        }
        let leaf = ring::hash(leaf);
        if self.leaves.has(leaf) {
            self.name_by_summary(text, line);
            return;
        }
        if self.summaries.len() >= SUMMARIES_MAX {
            self.summaries.remove(0);
        }
        self.summaries.push(Leaf { leaf, text });
    }

    /// A record of this session: the leaf of a summary, perhaps.
    pub(super) fn leaf(&mut self, line: &mut Line<'_, '_>) {
        if self.place != Place::Transcript {
            return;
        }
        let Some(uuid) = line.envelope.uuid.map(ring::hash) else { return };
        self.leaves.add(uuid);
        if self.summaries.iter().any(|waiting| waiting.leaf == uuid) {
            let found = self.summaries.extract_if(.., |waiting| waiting.leaf == uuid);
            if let Some(last) = found.last() {
                self.name_by_summary(last.text, line);
            }
        }
    }

    fn name_by_summary(&self, text: String, line: &mut Line<'_, '_>) {
        let title = Title { kind: TitleKind::Summary, to: None, text };
        line.say_at(self.newest_ms, What::Title(title));
    }

    /// The process exited gracefully; of a first life start and duration tell when.
    fn cost_state(&mut self, payload: Value<'_>, line: &mut Line<'_, '_>) {
        let [start, duration, models] = payload.pick(["startTime", "totalDuration", "modelUsage"]);
        let start = start.and_then(Value::int).zip(duration.and_then(Value::int));
        let at_ms = start.map(|(start, duration)| start.saturating_add(duration));
        self.end(EndKind::CostState, at_ms, line);
        let mut names = models.into_iter().flat_map(Value::fields).take(MODELS_MAX);
        if self.place == Place::Transcript && names.any(|(name, _)| ends_long(name.bytes())) {
            self.window(LONG_WINDOW_TOKENS, line);
        }
    }

    fn end(&mut self, kind: EndKind, at_ms: Option<i64>, line: &mut Line<'_, '_>) {
        if self.place == Place::Transcript {
            let mark = self.lives.end(kind, at_ms, self.newest_ms);
            line.say(What::End(mark));
        }
    }
}

fn unknown(kind: Option<Value<'_>>, line: &mut Line<'_, '_>) {
    let name = word(kind, TYPE_CHARS).unwrap_or_else(|| "untyped".to_owned());
    let known = IGNORED.contains(&name.as_str()) || name.starts_with("marble-origami-");
    if !known {
        line.say(What::Unknown(name));
    }
}
