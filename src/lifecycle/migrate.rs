//! Takes back completions that an older reconciler inferred after minutes of silence.
//!
//! In question are imported history, and what this store itself inferred under another pair of
//! windows: each end by silence keeps the windows it was made under. A session whose last transition
//! (by time, then by sequence) is a mirror reconciler's `completed` is derived again by silence
//! alone; if it is inside the ended window it becomes `idle`, through the migration edge, with an
//! audit event of its own. Nothing that anyone else completed is touched. A run that was killed goes
//! on where it stopped; one over a finished store writes nothing.
//!
//! The same edge takes back what a clock that was ahead has ended: [`take_back_ahead`].

use super::apply::{Outcome, Request, apply};
use super::decide::Rule;
use super::phrase::{moment, span};
use super::policy::{self, reason};
use super::{Actor, ActorType, Basis, Entity, Status, Windows};
use crate::store::sessions::{self, Candidate};
use crate::store::{Result, Store, StoreError, Tx, meta};

/// The claim: the row id up to which a begun run has got.
const CLAIM: &str = "migration_idleness_beyond";

/// What a run, or a part of one, has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Migrated {
    /// Sessions looked at.
    pub examined: u64,
    /// Of these, those that are `idle` now.
    pub moved: u64,
    /// There may be more.
    pub more: bool,
}

/// Migrates the whole store, `batch_rows` sessions per transaction.
pub fn migrate(
    store: &mut Store,
    windows: Windows,
    now_ms: i64,
    batch_rows: i64,
) -> Result<Migrated> {
    let mut total = Migrated::default();
    loop {
        let part = step(store, windows, now_ms, batch_rows)?;
        total.examined += part.examined;
        total.moved += part.moved;
        if !part.more {
            return Ok(total);
        }
    }
}

/// Migrates the next `batch_rows` sessions, in one transaction.
pub fn step(store: &mut Store, windows: Windows, now_ms: i64, batch_rows: i64) -> Result<Migrated> {
    // The question costs no write lock, so that asking again costs nobody anything.
    let idle = store.read(|tx| {
        let claim = meta::get(tx, CLAIM)?;
        Ok(claim.is_none() && !worth_a_claim(tx, windows, now_ms)?)
    })?;
    if idle {
        return Ok(Migrated::default());
    }
    store.write(|tx| {
        let beyond = claimed(tx)?;
        let candidates = sessions::completions(tx, beyond, batch_rows)?;
        let mut part = Migrated::default();
        for candidate in &candidates {
            part.examined += 1;
            if is_too_early(candidate, windows, now_ms) {
                part.moved += u64::from(take_back(tx, candidate, windows, now_ms)?);
            }
        }
        match candidates.last() {
            Some(last) => {
                meta::set(tx, CLAIM, &last.id.to_string())?;
                part.more = true;
            }
            None => meta::remove(tx, CLAIM)?,
        }
        Ok(part)
    })
}

/// Whether any session would move: without one there is nothing to claim.
fn worth_a_claim(tx: &Tx<'_>, windows: Windows, now_ms: i64) -> Result<bool> {
    let mut beyond = 0;
    loop {
        let candidates = sessions::completions(tx, beyond, 1_000)?;
        let Some(last) = candidates.last() else { return Ok(false) };
        beyond = last.id;
        if candidates.iter().any(|candidate| is_too_early(candidate, windows, now_ms)) {
            return Ok(true);
        }
    }
}

fn claimed(tx: &Tx<'_>) -> Result<i64> {
    let Some(text) = meta::get(tx, CLAIM)? else { return Ok(0) };
    match text.parse() {
        Ok(id) => Ok(id),
        Err(_) => Err(StoreError::Value(format!("meta `{CLAIM}` is `{text}`, not a row id"))),
    }
}

/// Completed sessions that [`migrate`] would take back.
pub fn count(tx: &Tx<'_>, windows: Windows, now_ms: i64) -> Result<u64> {
    let mut found = 0;
    let mut beyond = 0;
    loop {
        let candidates = sessions::completions(tx, beyond, 1_000)?;
        let Some(last) = candidates.last() else { return Ok(found) };
        beyond = last.id;
        let early = |candidate: &&Candidate| is_too_early(candidate, windows, now_ms);
        found += candidates.iter().filter(early).count() as u64;
    }
}

/// Why [`migrate`] would take this session back, if it would: its stored end and what the present
/// windows say of it are two verdicts.
pub fn stranded(tx: &Tx<'_>, id: i64, windows: Windows, now_ms: i64) -> Result<Option<String>> {
    let found = sessions::completions(tx, id.saturating_sub(1), 1)?.pop();
    let early =
        |candidate: &Candidate| candidate.id == id && is_too_early(candidate, windows, now_ms);
    Ok(found.filter(early).map(|candidate| {
        let how = under(&candidate, now_ms);
        format!("completed {how}; these would not have: `lullwatch migrate` makes it idle again")
    }))
}

/// Takes back what was ended by silence at a moment that has not come: the clock was ahead then.
pub fn take_back_ahead(store: &mut Store, windows: Windows, now_ms: i64) -> Result<u64> {
    let (mut beyond, mut moved) = (0, 0);
    loop {
        let candidates = store.read(|tx| sessions::completions(tx, beyond, 1_000))?;
        let Some(last) = candidates.last() else { return Ok(moved) };
        beyond = last.id;
        let wrong = |candidate: &&Candidate| {
            candidate.created_ms > now_ms && is_inside(candidate, windows, now_ms)
        };
        let wrong: Vec<&Candidate> = candidates.iter().filter(wrong).collect();
        if !wrong.is_empty() {
            moved += store.write(|tx| {
                let mut moved = 0;
                for candidate in &wrong {
                    moved += u64::from(take_back(tx, candidate, windows, now_ms)?);
                }
                Ok(moved)
            })?;
        }
    }
}

/// By silence alone: no process and no marker has a say here.
fn is_too_early(candidate: &Candidate, windows: Windows, now_ms: i64) -> bool {
    is_inside(candidate, windows, now_ms) && !was_made_under(candidate, windows)
}

fn is_inside(candidate: &Candidate, windows: Windows, now_ms: i64) -> bool {
    let inside = |last: i64| now_ms.saturating_sub(last.min(now_ms)) <= windows.ended_ms;
    policy::is_reconciler(&candidate.actor_id) && candidate.last_activity_ms.is_some_and(inside)
}

/// Whether these very windows made it; nobody knows under which an imported one was made. What
/// keeps no windows was made by others if it had not been silent for so long.
fn was_made_under(candidate: &Candidate, windows: Windows) -> bool {
    if candidate.origin != "mirror" {
        return false;
    }
    candidate.windows.map_or_else(
        || {
            let silence = |last: i64| candidate.created_ms.saturating_sub(last);
            candidate.last_activity_ms.is_none_or(|last| silence(last) > windows.ended_ms)
        },
        |made| made == windows,
    )
}

/// What was wrong with the end, in words.
fn under(candidate: &Candidate, now_ms: i64) -> String {
    match candidate.windows {
        _ if candidate.created_ms > now_ms => "by a clock that was ahead".to_owned(),
        Some(made) => {
            format!("under windows of {} and {}", span(made.live_ms), span(made.ended_ms))
        }
        None => "after a lull".to_owned(),
    }
}

fn take_back(tx: &Tx<'_>, candidate: &Candidate, windows: Windows, now_ms: i64) -> Result<bool> {
    let last = candidate.last_activity_ms.map_or(now_ms, |last| last.min(now_ms));
    let silence = span(now_ms.saturating_sub(last));
    let request = Request {
        entity: Entity::session(candidate.id),
        expected_status: Some(Status::Completed),
        expected_version: candidate.version,
        to: Status::Idle,
        reason: reason::IDLE_MIGRATED.to_owned(),
        summary: format!(
            "completed by {} {}; silent for {silence}, within the ended window of {}",
            candidate.actor_id,
            under(candidate, now_ms),
            span(windows.ended_ms)
        ),
        basis: Basis::Observed,
        rule: Rule::EndedWindow.word().to_owned(),
        evidence: vec![
            format!("last activity {}", moment(last)),
            format!("transition {} was written by {}", candidate.transition_id, candidate.actor_id),
        ],
        actor: Actor::new(ActorType::System, policy::MIGRATION),
        end: None,
        override_by: None,
        windows: None,
        now_ms,
    };
    let command = request.check().map_err(|why| StoreError::Value(why.to_string()))?;
    match apply(tx, &command)? {
        Outcome::Applied { .. } => {
            // It has a deadline again, and only the reconciler sets one.
            sessions::mark_dirty(tx, candidate.id)?;
            Ok(true)
        }
        Outcome::Unchanged | Outcome::Conflict | Outcome::Rejected(_) => Ok(false),
    }
}
