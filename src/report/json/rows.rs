//! The rows of the other commands on the wire.

use serde::Serialize;

use super::{Clean, Moment, clean, cleans, known, moment, session};
use crate::snapshot::{AuditRow, CompactionRow, LedgerRow, MessageRow, Transition, Tried};
use crate::text;

#[derive(Serialize)]
pub(super) struct AuditOut<'a> {
    id: i64,
    action: Clean<'a>,
    at: Moment,
    entity_type: Clean<'a>,
    entity: Clean<'a>,
    title: Option<Clean<'a>>,
    from: Option<Clean<'a>>,
    to: Option<Clean<'a>>,
    reason: Option<Clean<'a>>,
    actor: Clean<'a>,
    why: Option<Clean<'a>>,
    after: Option<Clean<'a>>,
    gap_ms: Option<i64>,
    repeats: u64,
    evidence: Vec<Clean<'a>>,
}

pub(super) fn audit(row: &AuditRow) -> AuditOut<'_> {
    AuditOut {
        id: row.id,
        action: text::line(&row.action),
        at: moment(Some(row.at_ms)),
        entity_type: text::line(&row.entity_type),
        entity: text::line(&row.entity),
        title: title(row.title.as_deref()),
        from: clean(row.from.as_deref()),
        to: known(&row.to),
        reason: known(&row.reason),
        actor: text::line(&row.actor),
        why: known(&row.why),
        after: clean(row.after.as_deref()),
        gap_ms: row.gap_ms,
        repeats: row.repeats,
        evidence: cleans(&row.evidence),
    }
}

#[derive(Serialize)]
pub(super) struct LedgerOut<'a> {
    id: i64,
    at: Moment,
    entity_type: Clean<'a>,
    entity: Clean<'a>,
    title: Option<Clean<'a>>,
    from: Option<Clean<'a>>,
    to: Clean<'a>,
    reason: Clean<'a>,
    basis: Clean<'a>,
    ended_at: Moment,
    superseded: bool,
    acked_at: Moment,
    attempts: u64,
    last_error: Option<Clean<'a>>,
}

pub(super) fn ledger(row: &LedgerRow) -> LedgerOut<'_> {
    LedgerOut {
        id: row.id,
        at: moment(Some(row.at_ms)),
        entity_type: text::line(&row.entity_type),
        entity: text::line(&row.entity),
        title: title(row.title.as_deref()),
        from: known(&row.from),
        to: text::line(&row.to),
        reason: text::line(&row.reason),
        basis: text::line(&row.basis),
        ended_at: moment(row.ended_ms),
        superseded: row.superseded,
        acked_at: moment(row.acked_ms),
        attempts: row.attempts,
        last_error: clean(row.last_error.as_deref()),
    }
}

#[derive(Serialize)]
pub(super) struct CompactionRowOut<'a> {
    session: Clean<'a>,
    title: Option<Clean<'a>>,
    status: &'static str,
    attention: bool,
    since: Moment,
    #[serde(flatten)]
    compaction: session::CompactionOut<'a>,
    before_tokens: Option<u64>,
    after_tokens: Option<u64>,
}

pub(super) fn compaction(row: &CompactionRow) -> CompactionRowOut<'_> {
    CompactionRowOut {
        session: text::line(&row.session),
        title: title(row.title.as_deref()),
        status: row.status.word(),
        attention: row.attention,
        since: moment(row.since_ms),
        compaction: session::compaction(&row.compaction),
        before_tokens: row.compaction.before_tokens,
        after_tokens: row.compaction.after_tokens,
    }
}

#[derive(Serialize)]
pub(super) struct TriedOut<'a> {
    rule: Clean<'a>,
    test: Clean<'a>,
    held: bool,
    decided: bool,
    basis: &'static str,
    evidence: Vec<Clean<'a>>,
}

pub(super) fn tried(row: &Tried) -> TriedOut<'_> {
    TriedOut {
        rule: text::line(&row.rule),
        test: text::line(&row.test),
        held: row.held,
        decided: row.decided,
        basis: row.basis,
        evidence: cleans(&row.evidence),
    }
}

#[derive(Serialize)]
pub(super) struct TransitionOut<'a> {
    id: i64,
    at: Moment,
    from: Option<Clean<'a>>,
    to: Clean<'a>,
    reason: ReasonOut<'a>,
    actor: Clean<'a>,
}

#[derive(Serialize)]
struct ReasonOut<'a> {
    code: Option<Clean<'a>>,
    summary: Option<Clean<'a>>,
    basis: Clean<'a>,
    rule: Option<Clean<'a>>,
    evidence: Vec<Clean<'a>>,
}

pub(super) fn transition(row: &Transition) -> TransitionOut<'_> {
    TransitionOut {
        id: row.id,
        at: moment(Some(row.at_ms)),
        from: clean(row.from.as_deref()),
        to: text::line(&row.to),
        reason: ReasonOut {
            code: known(&row.reason),
            summary: known(&row.summary),
            basis: text::line(&row.basis),
            rule: known(&row.rule),
            evidence: cleans(&row.evidence),
        },
        actor: text::line(&row.actor),
    }
}

#[derive(Serialize)]
pub(super) struct StampedOut<'a> {
    schema: &'static str,
    entity: Clean<'a>,
    #[serde(flatten)]
    transition: TransitionOut<'a>,
}

pub(super) fn stamped<'a>(entity: &'a str, row: &'a Transition) -> StampedOut<'a> {
    StampedOut {
        schema: "lullwatch.transition.v1",
        entity: text::line(entity),
        transition: transition(row),
    }
}

#[derive(Serialize)]
pub(super) struct MessageOut<'a> {
    id: i64,
    kind: &'static str,
    at: Moment,
    name: Option<Clean<'a>>,
    text: Clean<'a>,
    path: String,
    offset: u64,
    bytes: u64,
}

pub(super) fn message(row: &MessageRow) -> MessageOut<'_> {
    MessageOut {
        id: row.id,
        kind: row.kind,
        at: moment(row.at_ms),
        name: clean(row.name.as_deref()),
        text: text::line(&row.text),
        path: text::line(&String::from_utf8_lossy(&row.pointer.path)).into_owned(),
        offset: row.pointer.offset,
        bytes: row.pointer.bytes,
    }
}

/// A title comes out of the store as it went in: filtered and cut here.
fn title(raw: Option<&str>) -> Option<Clean<'_>> {
    let line = text::line_up_to(raw?, 200);
    Some(Clean::from(line)).filter(|line| !line.is_empty())
}
