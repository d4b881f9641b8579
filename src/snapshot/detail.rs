//! One session opened.

use super::session::Around;
use super::{
    Beside, Compaction, Detail, MessageRow, Notice, Pointer, Session, Transition, bracket, load,
    sort, why,
};
use crate::compaction::{BracketEvidence, Fold};
use crate::lifecycle::{Entity, Status, migrate};
use crate::store::query::{self, Wanted};
use crate::store::transitions::{self, TransitionRow};
use crate::store::{Result, Tx};

/// Messages of an opened session.
const MESSAGES_MAX: usize = 100;

/// The session of this row with its history; `None` if there is none, or it is not admitted yet.
pub fn detail(tx: &Tx<'_>, row_id: i64, beside: &Beside, now_ms: i64) -> Result<Option<Detail>> {
    detail_around(tx, row_id, &load::around(tx, beside, now_ms)?)
}

/// The same, with what is read once for all sessions.
pub(super) fn detail_around(tx: &Tx<'_>, row_id: i64, around: &Around) -> Result<Option<Detail>> {
    let Some(row) = query::sessions(tx, Wanted::Ids(&[row_id]))?.pop() else {
        return Ok(None);
    };
    let fold = row.facts().unwrap_or_default().compaction;
    let status = row.verdict.as_ref().map_or(Status::Running, |verdict| verdict.status);
    let evidence = around.bracket_evidence(&row, status, &fold);
    let Some(mut session) = load::sessions(tx, vec![row], around)?.pop() else { return Ok(None) };
    if session.status.is_terminal()
        && let Some(text) = migrate::stranded(tx, row_id, around.windows, around.now_ms)?
    {
        session.notices.push(Notice { code: "other_windows".to_owned(), text });
    }
    let below = query::sessions(tx, Wanted::Ids(around.family.below(row_id)))?;
    let mut children = load::sessions(tx, below, around)?;
    sort::sort(&mut children);
    Ok(Some(Detail {
        why: why::tried(tx, &session, around)?,
        transitions: transitions::of_entity(tx, Entity::session(row_id))?
            .into_iter()
            .map(transition)
            .collect(),
        brackets: brackets(&session, &fold, &evidence, around.now_ms),
        messages: query::messages(tx, row_id, MESSAGES_MAX)?.into_iter().map(message).collect(),
        children,
        session,
    }))
}

/// The newest brackets, before them one that only a hook tells of.
fn brackets(
    session: &Session,
    fold: &Fold,
    evidence: &BracketEvidence,
    now_ms: i64,
) -> Vec<Compaction> {
    // Of a sub-agent the status is derived, so it is known only now.
    let evidence = BracketEvidence { session_ended: session.status.is_terminal(), ..*evidence };
    let mut newest = bracket::newest(fold, &evidence, now_ms);
    let logged =
        newest.first().is_some_and(|logged| logged.started_ms == session.compaction.started_ms);
    if session.compaction.bracket == "open" && !logged {
        newest.insert(0, session.compaction.clone());
    }
    newest
}

/// Transitions by their ids, each with the name of what it is about, in the order of their ids.
pub fn transitions(tx: &Tx<'_>, ids: &[i64]) -> Result<Vec<(String, Transition)>> {
    let (Some(first), Some(last)) = (ids.iter().min(), ids.iter().max()) else {
        return Ok(Vec::new());
    };
    // What one pass wrote lies close together; what another process wrote between is left out.
    let span = last.saturating_sub(*first).saturating_add(1);
    let mut rows = transitions::after(tx, first.saturating_sub(1), span)?;
    rows.retain(|row| ids.contains(&row.id));
    let entities: Vec<Entity> = rows.iter().map(|row| row.entity).collect();
    let names = query::names(tx, &entities)?;
    let shown = rows.into_iter().map(|row| {
        let name = names.get(&row.entity).cloned();
        let number = || format!("{} {}", row.entity.kind.word(), row.entity.id);
        (name.unwrap_or_else(number), transition(row))
    });
    Ok(shown.collect())
}

fn transition(row: TransitionRow) -> Transition {
    Transition {
        id: row.id,
        at_ms: row.created_ms,
        from: row.previous.map(|status| status.word().to_owned()),
        to: row.status.word().to_owned(),
        reason: row.reason,
        summary: row.summary,
        basis: row.basis.word().to_owned(),
        rule: row.rule,
        actor: row.actor_id,
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
            frame: row.frame,
            path: row.path,
            offset: row.position,
            bytes: row.bytes,
            hash: row.hash,
        },
    }
}
