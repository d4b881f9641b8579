//! One session opened.

use super::{Detail, MessageRow, Pointer, Transition, bracket, load, sort, why};
use crate::store::query::{self, Wanted};
use crate::store::{Result, Tx};

/// Messages of an opened session.
const MESSAGES_MAX: usize = 100;

/// The session of this row with its history; `None` if there is none, or it is not admitted yet.
pub fn detail(tx: &Tx<'_>, row_id: i64, now_ms: i64) -> Result<Option<Detail>> {
    let around = load::around(tx, now_ms)?;
    let Some(row) = query::sessions(tx, Wanted::Ids(&[row_id]))?.rows.pop() else {
        return Ok(None);
    };
    let fold = row.facts().unwrap_or_default().compaction;
    let Some(session) = load::sessions(vec![row], &around).pop() else { return Ok(None) };
    let below = query::sessions(tx, Wanted::Ids(around.family.below(row_id)))?;
    let mut children = load::sessions(below.rows, &around);
    sort::sort(&mut children);
    Ok(Some(Detail {
        why: why::tried(tx, &session, around.windows, now_ms)?,
        transitions: query::transitions(tx, row_id)?.into_iter().map(transition).collect(),
        brackets: bracket::newest(&fold, &bracket::evidence(session.status), now_ms),
        messages: query::messages(tx, row_id, MESSAGES_MAX)?.into_iter().map(message).collect(),
        children,
        session,
    }))
}

/// Transitions by their ids, each with the name of what it is about.
pub fn transitions(tx: &Tx<'_>, ids: &[i64]) -> Result<Vec<(String, Transition)>> {
    let rows = query::transitions_by_id(tx, ids)?;
    Ok(rows.into_iter().map(|(entity, row)| (entity, transition(row))).collect())
}

fn transition(row: query::TransitionRow) -> Transition {
    Transition {
        id: row.id,
        at_ms: row.at_ms,
        from: row.from,
        to: row.to,
        reason: row.reason,
        summary: row.summary,
        basis: row.basis,
        rule: row.rule,
        actor: row.actor,
        evidence: row.evidence,
    }
}

fn message(row: query::MessageRow) -> MessageRow {
    MessageRow {
        id: row.id,
        kind: row.kind.word(),
        at_ms: row.at_ms,
        name: row.name,
        text: row.text,
        pointer: Pointer {
            path: row.path,
            offset: row.position,
            bytes: row.bytes,
            hash: row.hash,
            frame_at: None,
        },
    }
}
