//! The edges: which status may follow which, who may write it, and with which reasons.
//!
//! Data, in one place; the table is the documentation, and its whole grid is a snapshot test. It is
//! ADR-0109's edge table and what that lacks, marked `extension`: the admission of sessions seen
//! for the first time, end evidence, the return from terminals that others wrote, the migration,
//! and the life of a run around its end.
//!
//! The allow-lists guard against accident, not against impersonation: an actor's id is what the
//! caller says it is.

use super::{Actor, ActorType, EntityType, Status};

/// Every reason code. A prefix authorizes nothing: each edge names its reasons exactly.
pub mod reason {
    /// Seen for the first time, active.
    pub const ADMITTED_ACTIVITY: &str = "session.admitted.activity";
    /// Seen for the first time, silent.
    pub const ADMITTED_SILENCE: &str = "session.admitted.silence";
    /// Seen for the first time, over before its root's epoch.
    pub const ADMITTED_ENDED: &str = "session.admitted.ended";
    /// Silent past the live window.
    pub const IDLE_SILENCE: &str = "session.idle.silence";
    /// Completed too early by an older reconciler.
    pub const IDLE_MIGRATED: &str = "session.idle.migrated";
    /// New activity after a lull.
    pub const RUNNING_ACTIVITY: &str = "session.running.activity";
    /// A process works on its open turn.
    pub const RUNNING_PROCESS: &str = "session.running.process";
    /// Silent past the ended window.
    pub const COMPLETED_SILENCE: &str = "session.completed.silence";
    /// End evidence stands.
    pub const COMPLETED_EXITED: &str = "session.completed.exited";
    /// New activity after the end.
    pub const REACTIVATED_ACTIVITY: &str = "session.reactivated.activity";
    /// The command started.
    pub const RUN_STARTED: &str = "run.started.ok";
    /// The command ended well.
    pub const RUN_COMPLETED: &str = "run.completed.ok";
    /// The command ended with another exit code than zero.
    pub const RUN_EXIT_NONZERO: &str = "run.failed.exit_nonzero";
    /// The provider failed; trying again may help.
    pub const RUN_PROVIDER_RETRYABLE: &str = "run.failed.provider_retryable";
    /// The provider failed for good.
    pub const RUN_PROVIDER_NONRETRYABLE: &str = "run.failed.provider_nonretryable";
    /// SIGINT ended it.
    pub const RUN_SIGINT: &str = "run.cancelled.sigint";
    /// SIGTERM ended it.
    pub const RUN_SIGTERM: &str = "run.cancelled.sigterm";
    /// Its time was up.
    pub const RUN_DEADLINE: &str = "run.timed_out.deadline";
    /// A user broke it off.
    pub const RUN_ABORTED_USER: &str = "run.aborted.user";
    /// Its processes are gone without a word.
    pub const RUN_PROCESS_GONE: &str = "run.aborted.process_gone";
    /// Taken up again.
    pub const RUN_REOPENED: &str = "run.reopened.by_resume";

    /// Every code.
    pub const ALL: [&str; 21] = [
        ADMITTED_ACTIVITY,
        ADMITTED_SILENCE,
        ADMITTED_ENDED,
        IDLE_SILENCE,
        IDLE_MIGRATED,
        RUNNING_ACTIVITY,
        RUNNING_PROCESS,
        COMPLETED_SILENCE,
        COMPLETED_EXITED,
        REACTIVATED_ACTIVITY,
        RUN_STARTED,
        RUN_COMPLETED,
        RUN_EXIT_NONZERO,
        RUN_PROVIDER_RETRYABLE,
        RUN_PROVIDER_NONRETRYABLE,
        RUN_SIGINT,
        RUN_SIGTERM,
        RUN_DEADLINE,
        RUN_ABORTED_USER,
        RUN_PROCESS_GONE,
        RUN_REOPENED,
    ];
}

/// The mirror's reconcilers with the agent whose rows each may write.
const RECONCILERS: [(&str, &str); 3] = [
    ("claude-mirror-reconcile", "claude"),
    ("codex-mirror-reconcile", "codex"),
    ("dsh-mirror-reconcile", "dsh"),
];
/// The migration's actor id.
pub const MIGRATION: &str = "idleness-migration";
/// The id of `lullwatch run`.
pub const RUN: &str = "lullwatch-run";
/// The sweep's actor id.
pub const SWEEP: &str = "lullwatch-sweep";

const MIRRORS: &[&str] =
    &["claude-mirror-reconcile", "codex-mirror-reconcile", "dsh-mirror-reconcile"];
const SYSTEM: &[ActorType] = &[ActorType::System];
const EXECUTOR: &[ActorType] = &[ActorType::Executor];

/// The reconciler that may write the rows of that agent.
pub fn reconciler(agent: &str) -> Option<Actor> {
    let (id, _) = RECONCILERS.iter().find(|(_, own)| *own == agent)?;
    Some(Actor::new(ActorType::System, *id))
}

/// Whether that actor id is one of the mirror's reconcilers.
pub fn is_reconciler(id: &str) -> bool {
    MIRRORS.contains(&id)
}

/// What crossing an edge means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EdgeKind {
    /// The first status of a row.
    Admission,
    /// An everyday change: no audit event.
    Ordinary,
    /// Out of a terminal status: only with a justification, always with one audit event.
    OverrideOnly,
    /// The one-time correction of an older store: always with one audit event of its own.
    Migration,
}

/// One edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Whose edge.
    pub entity: EntityType,
    /// Status before; `None`: not admitted yet.
    pub from: Option<Status>,
    /// Status after.
    pub to: Status,
    /// What crossing it means.
    pub kind: EdgeKind,
    /// ADR-0109 lacks it.
    pub extension: bool,
    /// Kinds of actor that may write it.
    pub actor_types: &'static [ActorType],
    /// Exact ids of the actors that may.
    pub actors: &'static [&'static str],
    /// Exact reasons.
    pub reasons: &'static [&'static str],
    /// Only with evidence attached.
    pub needs_evidence: bool,
}

impl Edge {
    const fn session(
        from: Option<Status>,
        to: Status,
        kind: EdgeKind,
        reasons: &'static [&'static str],
    ) -> Self {
        Self {
            entity: EntityType::Session,
            from,
            to,
            kind,
            extension: false,
            actor_types: SYSTEM,
            actors: MIRRORS,
            reasons,
            needs_evidence: false,
        }
    }

    const fn run(
        from: Option<Status>,
        to: Status,
        kind: EdgeKind,
        reasons: &'static [&'static str],
    ) -> Self {
        Self {
            entity: EntityType::Run,
            from,
            to,
            kind,
            extension: false,
            actor_types: EXECUTOR,
            actors: &[RUN],
            reasons,
            needs_evidence: false,
        }
    }

    const fn extension(self) -> Self {
        Self { extension: true, ..self }
    }

    const fn with_evidence(self) -> Self {
        Self { needs_evidence: true, ..self }
    }

    const fn by(self, actor_types: &'static [ActorType], actors: &'static [&'static str]) -> Self {
        Self { actor_types, actors, ..self }
    }
}

/// Leaving a terminal session: the ADR has it for `completed`; rows of other origin may come with
/// another terminal.
const fn reactivation(from: Status) -> Edge {
    let reasons = &[reason::REACTIVATED_ACTIVITY];
    Edge::session(Some(from), Status::Running, EdgeKind::OverrideOnly, reasons)
}

const fn run_end(to: Status, reasons: &'static [&'static str]) -> Edge {
    Edge::run(Some(Status::Running), to, EdgeKind::Ordinary, reasons)
}

const fn run_reopened(from: Status) -> Edge {
    let reasons = &[reason::RUN_REOPENED];
    Edge::run(Some(from), Status::Running, EdgeKind::OverrideOnly, reasons).extension()
}

/// The edges; nothing else is one.
pub const EDGES: &[Edge] = &[
    Edge::session(None, Status::Running, EdgeKind::Admission, &[reason::ADMITTED_ACTIVITY])
        .extension(),
    Edge::session(None, Status::Idle, EdgeKind::Admission, &[reason::ADMITTED_SILENCE]).extension(),
    Edge::session(None, Status::Completed, EdgeKind::Admission, &[reason::ADMITTED_ENDED])
        .extension(),
    Edge::session(Some(Status::Running), Status::Idle, EdgeKind::Ordinary, &[reason::IDLE_SILENCE]),
    Edge::session(
        Some(Status::Idle),
        Status::Running,
        EdgeKind::Ordinary,
        &[reason::RUNNING_ACTIVITY, reason::RUNNING_PROCESS],
    ),
    Edge::session(
        Some(Status::Idle),
        Status::Completed,
        EdgeKind::Ordinary,
        &[reason::COMPLETED_SILENCE, reason::COMPLETED_EXITED],
    ),
    // The ADR leads every completion through idle so that the long window is asked once; it also
    // lets real end evidence supersede the window (its N15), and that is all this edge takes.
    Edge::session(
        Some(Status::Running),
        Status::Completed,
        EdgeKind::Ordinary,
        &[reason::COMPLETED_EXITED],
    )
    .extension()
    .with_evidence(),
    reactivation(Status::Completed),
    reactivation(Status::CompletedEmpty).extension(),
    reactivation(Status::Failed).extension(),
    reactivation(Status::TimedOut).extension(),
    reactivation(Status::Aborted).extension(),
    reactivation(Status::Cancelled).extension(),
    Edge::session(
        Some(Status::Completed),
        Status::Idle,
        EdgeKind::Migration,
        &[reason::IDLE_MIGRATED],
    )
    .extension()
    .by(SYSTEM, &[MIGRATION]),
    Edge::run(None, Status::Starting, EdgeKind::Admission, &[reason::RUN_STARTED]).extension(),
    Edge::run(Some(Status::Starting), Status::Running, EdgeKind::Ordinary, &[reason::RUN_STARTED])
        .extension(),
    // A command that cannot be started at all: its wrapper ends as a shell would, with 126 or 127.
    Edge::run(
        Some(Status::Starting),
        Status::Failed,
        EdgeKind::Ordinary,
        &[reason::RUN_EXIT_NONZERO],
    )
    .extension(),
    // One whose wrapper was killed before it said that the command runs.
    Edge::run(
        Some(Status::Starting),
        Status::Aborted,
        EdgeKind::Ordinary,
        &[reason::RUN_PROCESS_GONE],
    )
    .extension()
    .with_evidence()
    .by(SYSTEM, &[SWEEP]),
    run_end(Status::Completed, &[reason::RUN_COMPLETED]),
    run_end(Status::CompletedEmpty, &[reason::RUN_COMPLETED]),
    run_end(
        Status::Failed,
        &[
            reason::RUN_EXIT_NONZERO,
            reason::RUN_PROVIDER_RETRYABLE,
            reason::RUN_PROVIDER_NONRETRYABLE,
        ],
    ),
    run_end(Status::TimedOut, &[reason::RUN_DEADLINE]),
    run_end(Status::Aborted, &[reason::RUN_ABORTED_USER]),
    run_end(Status::Cancelled, &[reason::RUN_SIGINT, reason::RUN_SIGTERM]),
    run_end(Status::Aborted, &[reason::RUN_PROCESS_GONE]).with_evidence().by(SYSTEM, &[SWEEP]),
    run_reopened(Status::Completed),
    run_reopened(Status::CompletedEmpty),
    run_reopened(Status::Failed),
    run_reopened(Status::TimedOut),
    run_reopened(Status::Aborted),
    run_reopened(Status::Cancelled),
];

/// A change of status, as far as the policy looks at it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Of what.
    pub entity: EntityType,
    /// Status before.
    pub from: Option<Status>,
    /// Status after.
    pub to: Status,
    /// Who asks.
    pub actor: &'a Actor,
    /// Whose session it is; `None` for a run.
    pub agent: Option<&'a str>,
    /// Reason code.
    pub reason: &'a str,
    /// What it rests on.
    pub evidence: &'a [String],
    /// Who takes the override on itself, if anyone does.
    pub override_by: Option<&'a str>,
}

/// Why a change is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// There is no such edge.
    NoEdge,
    /// Not for this kind of actor.
    ActorType,
    /// Not for this actor.
    Actor,
    /// Another agent's row.
    ForeignAgent,
    /// Not for this reason.
    Reason,
    /// Nothing to rest on.
    EvidenceMissing,
    /// Only by override.
    OverrideMissing,
    /// This actor may not override it.
    OverrideActor,
}

impl Refusal {
    /// One phrase for the audit.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::NoEdge => "there is no such edge",
            Self::ActorType => "this kind of actor may not write it",
            Self::Actor => "this actor may not write it",
            Self::ForeignAgent => "this actor writes only its own agent's rows",
            Self::Reason => "the edge does not take this reason",
            Self::EvidenceMissing => "the edge asks for evidence",
            Self::OverrideMissing => "only an override leaves a terminal status",
            Self::OverrideActor => "this actor may not override it",
        }
    }
}

/// The edge that a change crosses, or why it is refused.
///
/// Where several edges join the same two statuses, the one that names the actor is meant. An
/// override offered on an edge that needs none is ignored: it makes nothing an override.
pub fn judge(asked: &Asked<'_>) -> Result<&'static Edge, Refusal> {
    let between = || {
        EDGES.iter().filter(|edge| {
            edge.entity == asked.entity && edge.from == asked.from && edge.to == asked.to
        })
    };
    let names = |edge: &&Edge| edge.actors.contains(&asked.actor.id.as_str());
    let edge = between().find(names).or_else(|| between().next()).ok_or(Refusal::NoEdge)?;
    if !edge.actor_types.contains(&asked.actor.kind) {
        return Err(Refusal::ActorType);
    }
    if !edge.actors.contains(&asked.actor.id.as_str()) {
        return Err(Refusal::Actor);
    }
    if is_foreign(&asked.actor.id, asked.agent) {
        return Err(Refusal::ForeignAgent);
    }
    if !edge.reasons.contains(&asked.reason) {
        return Err(Refusal::Reason);
    }
    if edge.needs_evidence && asked.evidence.is_empty() {
        return Err(Refusal::EvidenceMissing);
    }
    match edge.kind {
        EdgeKind::Admission | EdgeKind::Ordinary | EdgeKind::Migration => Ok(edge),
        EdgeKind::OverrideOnly => match asked.override_by {
            None => Err(Refusal::OverrideMissing),
            Some(by) if !edge.actors.contains(&by) || is_foreign(by, asked.agent) => {
                Err(Refusal::OverrideActor)
            }
            Some(_) => Ok(edge),
        },
    }
}

/// A reconciler of another agent than the row's.
fn is_foreign(actor: &str, agent: Option<&str>) -> bool {
    RECONCILERS.iter().any(|(id, own)| *id == actor && agent != Some(*own))
}

#[cfg(test)]
mod tests;
