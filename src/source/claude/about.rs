//! What stands around every conversation record: where, on what branch, by which version, and what
//! kind of session it is. Each is said when it changes, not with every line.

use serde::{Deserialize, Serialize};

use super::super::json::{Shape, Value};
use super::super::{Kind, Of, Place, What};
use super::State;
use super::envelope::{Envelope, word};
use super::line::{ID_CHARS, Line};
use super::ring;

/// Characters kept of a path.
const PATH_CHARS: usize = 4096;
/// Characters kept of a branch, a model, a version.
const NAME_CHARS: usize = 256;

/// What was said of the file's session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct About {
    begun: bool,
    placed: bool,
    /// Hash of the source last named.
    forked: Option<u64>,
    kind: Option<Kind>,
    branch: Option<String>,
    model: Option<String>,
    /// Newest version seen.
    pub(super) version: Option<String>,
}

impl State {
    /// Says of the file's session what this record's surroundings tell anew.
    pub(super) fn introduce(&mut self, line: &mut Line<'_, '_>) {
        if !self.about.begun && line.at_ms.is_some() {
            self.about.begun = true;
            line.say_at(line.at_ms, What::Started);
        }
        let kind = self.kind_of(line);
        if self.about.kind.is_none_or(|old| kind < old) {
            self.about.kind = Some(kind);
            line.say(What::Kind(kind));
        }
        self.lineage(line);
        if !self.about.placed
            && let Some(cwd) = word(line.envelope.cwd, PATH_CHARS)
        {
            self.about.placed = true;
            line.say(What::Cwd(cwd));
        }
        if let Some(branch) = changed(&mut self.about.branch, line.envelope.branch) {
            line.say(What::Branch(branch));
        }
        if let Some(version) = changed(&mut self.about.version, line.envelope.version) {
            line.say(What::Version(version));
        }
        self.leaf(line);
    }

    /// Whether a record was copied from another session's transcript.
    pub(super) fn is_copied(&self, envelope: &Envelope<'_>) -> bool {
        self.place == Place::Transcript
            && source_of(envelope).is_some_and(|source| !source.is(&self.id))
    }

    /// Names the source of a copied record; of a fork of a fork the nearest comes last.
    fn lineage(&mut self, line: &mut Line<'_, '_>) {
        if !line.copied {
            return;
        }
        self.lives.copy();
        let source = source_of(&line.envelope);
        let hash = source.map(ring::hash);
        if self.about.forked != hash
            && let Some(source) = word(source, ID_CHARS)
        {
            self.about.forked = hash;
            line.say(What::ForkOf(source));
        }
    }

    /// Introduces a sub-agent of the same file once (again after many others: that harms nothing).
    pub(super) fn introduce_inline(&mut self, line: &mut Line<'_, '_>) {
        let Some(agent) = line.envelope.agent else { return };
        if !self.inline.add(ring::hash(agent)) {
            return;
        }
        line.say(What::Kind(Kind::SubAgent));
        if line.at_ms.is_some() {
            line.say_at(line.at_ms, What::Started);
        }
        if let Some(cwd) = word(line.envelope.cwd, PATH_CHARS) {
            line.say(What::Cwd(cwd));
        }
        if let Some(branch) = word(line.envelope.branch, NAME_CHARS) {
            line.say(What::Branch(branch));
        }
        if let Some(version) = word(line.envelope.version, NAME_CHARS) {
            line.say(What::Version(version));
        }
    }

    /// The model, if it is worth saying: of the file's session a new one, of an inline sub-agent
    /// any.
    pub(super) fn news(&mut self, model: Option<Value<'_>>, line: &Line<'_, '_>) -> Option<String> {
        let model = model.filter(|model| !model.is("<synthetic>"));
        match line.of {
            Of::File => changed(&mut self.about.model, model),
            Of::Inline(_) => word(model, NAME_CHARS),
        }
    }

    fn kind_of(&self, line: &Line<'_, '_>) -> Kind {
        let around = &line.envelope;
        if self.place == Place::SubAgent {
            Kind::SubAgent
        } else if line.copied {
            Kind::Fork
        } else if around.team.is_some_and(is_name) {
            Kind::Team
        } else if around.session_kind.is_some_and(|kind| kind.is("bg") || kind.is("background")) {
            Kind::Background
        } else if around.entrypoint.is_some_and(|entrypoint| entrypoint.starts_with("sdk-")) {
            Kind::Sdk
        } else {
            Kind::Main
        }
    }
}

/// The session that a copied record was written in: `/branch` says so on every line, a fork on the
/// command line and a background copy on the assistant's.
fn source_of<'a>(envelope: &Envelope<'a>) -> Option<Value<'a>> {
    let forked_from = envelope.forked_from.and_then(|source| match source.shape() {
        Shape::Object => source.get("sessionId"),
        Shape::String => Some(source),
        Shape::Array | Shape::Number | Shape::Bool | Shape::Null => None,
    });
    forked_from.or(envelope.request_session).filter(|source| is_name(*source))
}

fn is_name(value: Value<'_>) -> bool {
    value.shape() == Shape::String && !value.is("")
}

/// The value, if it is not the one kept; then it is kept.
fn changed(kept: &mut Option<String>, value: Option<Value<'_>>) -> Option<String> {
    let value = value?;
    if kept.as_deref().is_some_and(|kept| value.is(kept)) {
        return None;
    }
    let new = word(Some(value), NAME_CHARS)?;
    if kept.as_deref() == Some(new.as_str()) {
        return None;
    }
    *kept = Some(new.clone());
    Some(new)
}
