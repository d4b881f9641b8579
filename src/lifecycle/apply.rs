//! The one place that writes a status.
//!
//! A [`Request`] says what is asked; checking it gives a [`Command`], so that nothing malformed
//! ever reaches a transaction. [`apply`] enforces the edges. [`update_status`] is the ADR's
//! permissive arm: a second entry on the same private write, with the edge graph off. It serves
//! runs only, knows no way to or from `idle`, and leaves a terminal status only by override.
//!
//! Row, history and audit are written in the caller's transaction: all of it, or nothing.

use super::policy::{Asked, Edge, EdgeKind, Refusal, judge, reason};
use super::{Actor, Basis, EndStamp, Entity, EntityType, Status, Windows};
use crate::store::ledger::{self, Details, NewEvent};
use crate::store::transitions::{self, Current, NewTransition, StatusWrite};
use crate::store::{Result, StoreError, Tx};

/// A change of status, as asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Of what.
    pub entity: Entity,
    /// Status before, as the caller read it; `None`: not admitted.
    pub expected_status: Option<Status>,
    /// Version, as the caller read it.
    pub expected_version: i64,
    /// Status after.
    pub to: Status,
    /// Reason code.
    pub reason: String,
    /// One sentence.
    pub summary: String,
    /// Seen or concluded.
    pub basis: Basis,
    /// The rule that held.
    pub rule: String,
    /// What it rests on, one phrase each.
    pub evidence: Vec<String>,
    /// Who asks.
    pub actor: Actor,
    /// The end; `Some` exactly for a terminal status.
    pub end: Option<EndStamp>,
    /// What takes a terminal status back.
    pub override_by: Option<Override>,
    /// The windows that decided, of a verdict by silence.
    pub windows: Option<Windows>,
    /// Now, ms.
    pub now_ms: i64,
}

/// What takes a terminal status back, and on whose account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// Who.
    pub actor: String,
    /// Why, in words.
    pub justification: String,
    /// What kind of end it takes back.
    pub after: After,
    /// Between that end and the new activity, ms.
    pub gap_ms: Option<i64>,
}

/// The kind of end that an override takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum After {
    /// Our inference was wrong.
    Silence,
    /// It had ended, and was taken up again.
    Exit,
}

impl After {
    /// The word in the audit.
    pub fn word(self) -> &'static str {
        match self {
            Self::Silence => "silence",
            Self::Exit => "exit",
        }
    }
}

/// A request that no transaction should see.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The actor has no id.
    #[error("a change of status needs an actor")]
    NoActor,
    /// No such reason code.
    #[error("`{0}` is no reason code")]
    Reason(String),
    /// A terminal status without an end, or a live one with one.
    #[error("an end belongs to a terminal status, and only to one (`{0}`)")]
    End(&'static str),
    /// A duration that cannot be.
    #[error("a duration belongs to an exact end and is not negative")]
    Duration,
    /// An override that says not who or why.
    #[error("an override needs an actor and a justification")]
    Override,
}

/// A well-formed change of status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command(Request);

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Written.
    Applied {
        /// The row of the history.
        transition_id: i64,
        /// The version now.
        version: i64,
        /// The edge's kind; an override by the permissive arm is `OverrideOnly`.
        kind: EdgeKind,
    },
    /// It had that status already; fresh evidence is kept, nothing else.
    Unchanged,
    /// The row is not what the caller read. Nothing is written.
    Conflict,
    /// Not allowed: one audit event, nothing else.
    Rejected(Refusal),
}

impl Request {
    /// The command, if the request is well-formed. Asks no store.
    pub fn check(self) -> std::result::Result<Command, Malformed> {
        if self.actor.id.is_empty() {
            return Err(Malformed::NoActor);
        }
        if !reason::ALL.contains(&self.reason.as_str()) {
            return Err(Malformed::Reason(self.reason));
        }
        if self.end.is_some() != self.to.is_terminal() {
            return Err(Malformed::End(self.to.word()));
        }
        let wrong =
            |end: EndStamp| end.duration_ms.is_some_and(|duration| duration < 0 || end.approximate);
        if self.end.is_some_and(wrong) {
            return Err(Malformed::Duration);
        }
        let blank =
            |over: &Override| over.actor.trim().is_empty() || over.justification.trim().is_empty();
        if self.override_by.as_ref().is_some_and(blank) {
            return Err(Malformed::Override);
        }
        Ok(Command(self))
    }
}

/// Applies a command by the edges.
pub fn apply(tx: &Tx<'_>, command: &Command) -> Result<Outcome> {
    run(tx, &command.0, Graph::Enforced)
}

/// Applies a command to a run without asking the edges: what the ADR keeps for existing callers.
pub fn update_status(tx: &Tx<'_>, command: &Command) -> Result<Outcome> {
    run(tx, &command.0, Graph::Off)
}

/// Whether the edges are asked.
#[derive(Clone, Copy)]
enum Graph {
    Enforced,
    Off,
}

/// The order of the questions is the contract: status, sameness, edge, version.
fn run(tx: &Tx<'_>, request: &Request, graph: Graph) -> Result<Outcome> {
    let entity = request.entity;
    let Some(current) = transitions::current(tx, entity)? else {
        return Err(StoreError::Value(format!(
            "no {} with row id {}",
            entity.kind.word(),
            entity.id
        )));
    };
    if current.status != request.expected_status {
        return Ok(Outcome::Conflict);
    }
    let evidence = json(&request.evidence)?;
    if current.status == Some(request.to) {
        if current.evidence != evidence && !request.evidence.is_empty() {
            transitions::set_evidence(tx, entity, &evidence)?;
        }
        return Ok(Outcome::Unchanged);
    }
    let ruling = match graph {
        Graph::Enforced => enforced(request, &current),
        Graph::Off => permissive(request, &current),
    };
    let kind = match ruling {
        Ok(kind) => kind,
        Err(refusal) => {
            reject(tx, request, &current, refusal)?;
            return Ok(Outcome::Rejected(refusal));
        }
    };
    if current.version != request.expected_version {
        return Ok(Outcome::Conflict);
    }
    write(tx, request, &current, kind, &evidence)
}

fn enforced(request: &Request, current: &Current) -> std::result::Result<EdgeKind, Refusal> {
    if current.nested {
        return Err(Refusal::NoEdge);
    }
    let asked = Asked {
        entity: request.entity.kind,
        from: current.status,
        to: request.to,
        actor: &request.actor,
        agent: current.agent.as_deref(),
        reason: &request.reason,
        evidence: &request.evidence,
        override_by: request.override_by.as_ref().map(|over| over.actor.as_str()),
    };
    judge(&asked).map(|edge: &Edge| edge.kind)
}

fn permissive(request: &Request, current: &Current) -> std::result::Result<EdgeKind, Refusal> {
    match request.entity.kind {
        EntityType::Session => return Err(Refusal::NoEdge),
        EntityType::Run => {}
    }
    if request.to == Status::Idle || current.status == Some(Status::Idle) {
        return Err(Refusal::NoEdge);
    }
    match (current.status, &request.override_by) {
        (None, _) => Ok(EdgeKind::Admission),
        (Some(status), None) if status.is_terminal() => Err(Refusal::OverrideMissing),
        (Some(status), Some(_)) if status.is_terminal() => Ok(EdgeKind::OverrideOnly),
        (Some(_), _) => Ok(EdgeKind::Ordinary),
    }
}

fn reject(tx: &Tx<'_>, request: &Request, current: &Current, refusal: Refusal) -> Result<()> {
    let details = Details {
        why: format!("{} ({})", refusal.phrase(), request.actor.kind.word()),
        // Evidence carries moments: with it no rejection would ever equal the one before.
        evidence: Vec::new(),
        ..details(request, current)
    };
    ledger::record_or_repeat(
        tx,
        &NewEvent {
            action: ledger::REJECTED,
            entity: request.entity,
            transition_id: None,
            actor: &request.actor.id,
            after: None,
            details: &details,
            at_ms: request.now_ms,
        },
    )
}

/// The guarded update first: a row that is gone from under us leaves neither history nor audit.
fn write(
    tx: &Tx<'_>,
    request: &Request,
    current: &Current,
    kind: EdgeKind,
    evidence: &str,
) -> Result<Outcome> {
    let status = StatusWrite {
        status: request.to,
        since_ms: request.now_ms,
        reason: &request.reason,
        summary: &request.summary,
        basis: request.basis,
        rule: &request.rule,
        evidence,
        end: request.end,
    };
    if !transitions::set_status(tx, request.entity, current, &status)? {
        return Ok(Outcome::Conflict);
    }
    let transition_id = transitions::append(
        tx,
        &NewTransition {
            entity: request.entity,
            previous: current.status,
            status: request.to,
            reason: &request.reason,
            summary: &request.summary,
            basis: request.basis,
            rule: &request.rule,
            evidence,
            actor_type: request.actor.kind.word(),
            actor_id: &request.actor.id,
            created_ms: request.now_ms,
            ended_ms: request.end.map(|end| end.at_ms),
            origin: "mirror",
            metadata: &transitions::metadata(request.windows),
        },
    )?;
    transitions::set_transition(tx, request.entity, transition_id)?;
    audit(tx, request, current, kind, transition_id)?;
    Ok(Outcome::Applied { transition_id, version: current.version + 1, kind })
}

fn audit(
    tx: &Tx<'_>,
    request: &Request,
    current: &Current,
    kind: EdgeKind,
    transition_id: i64,
) -> Result<()> {
    let over = request.override_by.as_ref();
    let (action, actor) = match kind {
        EdgeKind::Admission | EdgeKind::Ordinary => return Ok(()),
        EdgeKind::OverrideOnly => {
            (ledger::OVERRIDE, over.map_or(request.actor.id.as_str(), |over| &over.actor))
        }
        EdgeKind::Migration => (ledger::MIGRATED, request.actor.id.as_str()),
    };
    let over = over.filter(|_| kind == EdgeKind::OverrideOnly);
    let why = over.map_or(&request.summary, |over| &over.justification).clone();
    let gap_ms = over.and_then(|over| over.gap_ms);
    let details = Details { why, gap_ms, ..details(request, current) };
    let event = NewEvent {
        action,
        entity: request.entity,
        transition_id: Some(transition_id),
        actor,
        after: over.map(|over| over.after.word()),
        details: &details,
        at_ms: request.now_ms,
    };
    ledger::record(tx, &event)
}

fn details(request: &Request, current: &Current) -> Details {
    Details {
        from: current.status.map(|status| status.word().to_owned()),
        to: request.to.word().to_owned(),
        reason: request.reason.clone(),
        why: String::new(),
        gap_ms: None,
        evidence: request.evidence.clone(),
    }
}

fn json(evidence: &[String]) -> Result<String> {
    serde_json::to_string(evidence).map_err(|why| StoreError::Value(why.to_string()))
}
