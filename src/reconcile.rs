//! Rows that are due, decided on and moved.
//!
//! A pass runs from stored rows, each with its deadline, and not from the files: a deleted or
//! archived transcript still goes idle and completes on time. It asks what is due without the write
//! lock, and writes nothing when nothing is. `plan` says which moves lead from a row's status to
//! the verdict's; here they are applied, in short transactions, through `lifecycle::apply`. It
//! knows no files, no agents and no screen.

mod clock;
mod plan;

pub use clock::{ClockCheck, ClockLook, ClockWarning, Reading, Step};

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::lifecycle::apply::{Outcome, Request, apply};
use crate::lifecycle::decide::{Known, Rule, decide};
use crate::lifecycle::known::{Process, known};
use crate::lifecycle::policy::{EdgeKind, reconciler};
use crate::lifecycle::{Actor, Entity, Status, Windows, migrate};
use crate::store::evidence::{self, Evidence};
use crate::store::sessions::{self, Note, SessionRow};
use crate::store::{Result, Store, StoreError, Tx, files, meta};
use plan::{Anchor, Hop, Plan, Silence};

/// A sign of life that follows another is noted this often, or four times in a live window, ms.
const SIGN_EVERY_MS: i64 = 60_000;

/// What this pass has looked at, before it judges.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Look {
    /// Row ids of sessions whose family has not been read to its end, or cannot be read. Such a row
    /// gets no verdict: not to have looked is not silence.
    pub unobserved: HashSet<i64>,
    /// Those of them of which something cannot be seen: they are marked so.
    pub unseen: HashSet<i64>,
    /// The clock has jumped: no terminal write by silence.
    pub hold_silence: bool,
    /// The clock seems to be behind: what is stamped ahead of it is not admitted yet, for a wrong
    /// epoch would make news of all history.
    pub hold_ahead: bool,
    /// What is known of the processes of sessions, by row id; a row that one holds is due.
    pub processes: HashMap<i64, Process>,
}

/// How a pass works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Sessions per transaction: a short one lets others write in between.
    pub batch_rows: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { batch_rows: 200 }
    }
}

/// A status that a pass has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The session's row id.
    pub session_id: i64,
    /// The row of its history.
    pub transition_id: i64,
    /// Status before.
    pub from: Option<Status>,
    /// Status after.
    pub to: Status,
    /// What the move was.
    pub kind: EdgeKind,
}

/// What a pass has done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pass {
    /// Sessions decided on.
    pub checked: u64,
    /// Sessions that are due and were not observed.
    pub unobserved: u64,
    /// Sessions whose end by silence waits for the clock to be trusted again.
    pub held: u64,
    /// Sessions whose stamp lay ahead of the clock.
    pub anchored: u64,
    /// Sessions that are not admitted before the clock is trusted.
    pub ahead: u64,
    /// Rows that were not what was read; they stay due.
    pub conflicts: u64,
    /// Moves that the policy refused; they stay due.
    pub rejected: u64,
    /// Statuses written, in order.
    pub moved: Vec<Moved>,
    /// Transitions of runs that were swept or settled, written by whoever looks after runs.
    pub runs: Vec<i64>,
    /// Sessions set aside until something new is written about them, with the reason.
    pub set_aside: Vec<(i64, String)>,
    /// Sessions whose moves failed before they were all written, with the reason: none of them
    /// stands, and they stay due.
    pub undone: Vec<(i64, String)>,
    /// Sessions whose facts are unreadable; they were decided on by their clock alone.
    pub facts_unreadable: Vec<i64>,
}

impl Pass {
    /// How many moves of that kind it has written.
    pub fn count(&self, kind: EdgeKind) -> usize {
        self.moved.iter().filter(|moved| moved.kind == kind).count()
    }

    /// Whether it has written a status.
    pub fn has_moved(&self) -> bool {
        !(self.moved.is_empty() && self.runs.is_empty())
    }

    fn add(&mut self, more: Self) {
        self.checked += more.checked;
        self.unobserved += more.unobserved;
        self.held += more.held;
        self.anchored += more.anchored;
        self.ahead += more.ahead;
        self.conflicts += more.conflicts;
        self.rejected += more.rejected;
        self.moved.extend(more.moved);
        self.runs.extend(more.runs);
        self.set_aside.extend(more.set_aside);
        self.undone.extend(more.undone);
        self.facts_unreadable.extend(more.facts_unreadable);
    }
}

/// One pass over the sessions that are due at `now_ms`.
///
/// After an `Err`, the batches before the failed one stand; the rest stays due.
pub fn tick(
    store: &mut Store,
    look: &Look,
    windows: Windows,
    now_ms: i64,
    options: Options,
) -> Result<Pass> {
    mark_unseen(store, &look.unseen, now_ms)?;
    let mut due = store.read(|tx| sessions::due(tx, windows, now_ms))?;
    let held = |process: &Process| process.holder.pid().is_some() || process.working_ms.is_some();
    due.extend(look.processes.iter().filter(|(_, process)| held(process)).map(|(id, _)| *id));
    due.sort_unstable();
    due.dedup();
    let due_rows = due.len();
    due.retain(|id| !look.unobserved.contains(id));
    let unobserved = (due_rows - due.len()) as u64;
    let mut pass = Pass { unobserved, ..Pass::default() };
    let moment = Moment { look, windows, now_ms };
    for batch in due.chunks(options.batch_rows.max(1)) {
        // Counted only once it is committed.
        let part = store.write(|tx| {
            let mut part = Pass::default();
            for id in batch {
                part.add(one(tx, &moment, *id)?);
            }
            Ok(part)
        })?;
        pass.add(part);
    }
    Ok(pass)
}

/// Keeps for every surface since when sessions cannot be seen; writes only what has changed.
fn mark_unseen(store: &mut Store, unseen: &HashSet<i64>, now_ms: i64) -> Result<()> {
    let marked = store.read(sessions::unseen)?;
    if marked.len() == unseen.len() && unseen.iter().all(|id| marked.contains_key(id)) {
        return Ok(());
    }
    let since = |id: &i64| (*id, marked.get(id).copied().unwrap_or(now_ms));
    let now: BTreeMap<i64, i64> = unseen.iter().map(since).collect();
    store.write(|tx| sessions::set_unseen(tx, &now))
}

/// Takes in that the clock was set: what is kept in its time is kept in the new one.
///
/// Silence is time that passed, so each live session goes on as silent as it was, and is decided on
/// again at once; only where its stamp was ahead of the old clock and is not of the new one, that
/// stamp has the word again. What the wrong clock ended in a future that is not, is taken back.
pub fn take_step(store: &mut Store, windows: Windows, step: Step) -> Result<u64> {
    let (old_ms, now_ms) = (step.old_ms(), step.now_ms);
    store.write(|tx| {
        meta::set_clock_stepped(tx, now_ms)?;
        files::shift_epochs(tx, (step.since_ms, old_ms), step.by_ms)?;
        sessions::shift_signs(tx, (old_ms, now_ms), step.by_ms)
    })?;
    if step.by_ms < 0 { migrate::take_back_ahead(store, windows, now_ms) } else { Ok(0) }
}

/// When time alone makes the next session due, of those not due already at `after_ms`, the moment
/// of the last pass, ms: until then there is nothing to ask.
pub fn next_deadline(store: &mut Store, after_ms: i64) -> Result<Option<i64>> {
    store.read(|tx| sessions::next_deadline(tx, after_ms))
}

/// The circumstances of a pass.
struct Moment<'a> {
    look: &'a Look,
    windows: Windows,
    now_ms: i64,
}

/// One session: known, decided, moved, noted. A value that cannot be read costs that session its
/// turn, and no other.
fn one(tx: &Tx<'_>, moment: &Moment<'_>, id: i64) -> Result<Pass> {
    let read = || -> Result<Option<(SessionRow, Actor, Vec<Evidence>)>> {
        let Some(row) = sessions::load(tx, id)? else { return Ok(None) };
        let unknown = || StoreError::Value(format!("agent `{}`", row.agent));
        let actor = reconciler(&row.agent).ok_or_else(unknown)?;
        Ok(Some((row, actor, evidence::of_session(tx, id)?)))
    };
    let (row, actor, evidence) = match read() {
        Ok(Some(read)) => read,
        Ok(None) => return Ok(Pass::default()),
        // Another look would find the same.
        Err(StoreError::Value(why)) => {
            sessions::set_aside(tx, id)?;
            return Ok(Pass { set_aside: vec![(id, why)], ..Pass::default() });
        }
        Err(error) => return Err(error),
    };
    match tx.whole(|tx| judge(tx, moment, &row, &actor, &evidence)) {
        // What was written of it in vain is undone, the row stays as it was, and due.
        Err(StoreError::Value(why)) => Ok(Pass { undone: vec![(id, why)], ..Pass::default() }),
        outcome => outcome,
    }
}

/// One session as it was read: decided, moved, noted.
fn judge(
    tx: &Tx<'_>,
    moment: &Moment<'_>,
    row: &SessionRow,
    actor: &Actor,
    evidence: &[Evidence],
) -> Result<Pass> {
    let id = row.id;
    let process = moment.look.processes.get(&id).copied().unwrap_or_default();
    let Some(mut known) = known(row, evidence, process, moment.now_ms) else {
        // No stamp at all: no session, until its mirror finds one.
        if row.dirty {
            sessions::set_aside(tx, id)?;
        }
        return Ok(Pass::default());
    };
    let ahead = row.last_activity_ms.is_some_and(|at| at > moment.now_ms);
    if moment.look.hold_ahead && ahead && row.status.is_none() {
        return Ok(Pass { ahead: 1, ..Pass::default() });
    }
    let mut pass = Pass { checked: 1, ..Pass::default() };
    if row.facts_unreadable {
        pass.facts_unreadable.push(id);
    }
    let anchor = plan::anchor(row, &mut known, moment.windows, moment.now_ms);
    let verdict = decide(&known, moment.windows, moment.now_ms);
    let silence = if moment.look.hold_silence { Silence::Held } else { Silence::Judged };
    let plan = plan::plan(row, &known, verdict, moment.windows, silence);
    pass.held += u64::from(plan.held);
    pass.anchored += u64::from(anchor.fresh);
    if walk(tx, moment, row, actor, &plan, &mut pass)? {
        take_note(tx, moment, row, &known, anchor, &plan)?;
    }
    Ok(pass)
}

/// Applies the plan's hops in order; `false` if the row stays due.
fn walk(
    tx: &Tx<'_>,
    moment: &Moment<'_>,
    row: &SessionRow,
    actor: &Actor,
    plan: &Plan,
    pass: &mut Pass,
) -> Result<bool> {
    let (mut status, mut version) = (row.status, row.version);
    for hop in &plan.hops {
        let request = request(row, actor, hop, (status, version), moment);
        let command = request.check().map_err(|why| StoreError::Value(why.to_string()))?;
        match apply(tx, &command)? {
            Outcome::Applied { transition_id, version: next, kind } => {
                let moved =
                    Moved { session_id: row.id, transition_id, from: status, to: hop.to, kind };
                pass.moved.push(moved);
                (status, version) = (Some(hop.to), next);
            }
            Outcome::Unchanged => {}
            Outcome::Conflict => {
                pass.conflicts += 1;
                return Ok(false);
            }
            Outcome::Rejected(_) => {
                pass.rejected += 1;
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn request(
    row: &SessionRow,
    actor: &Actor,
    hop: &Hop,
    (expected_status, expected_version): (Option<Status>, i64),
    moment: &Moment<'_>,
) -> Request {
    Request {
        entity: Entity::session(row.id),
        expected_status,
        expected_version,
        to: hop.to,
        reason: hop.reason.to_owned(),
        summary: hop.summary.clone(),
        basis: hop.basis,
        rule: hop.rule.word().to_owned(),
        evidence: hop.evidence.clone(),
        actor: actor.clone(),
        end: hop.end,
        override_by: hop.taken_back.as_ref().map(|taken| taken.on_account_of(actor)),
        windows: (hop.rule == Rule::Silence).then_some(moment.windows),
        now_ms: moment.now_ms,
    }
}

/// Notes the deadline, if there is anything new to note.
fn take_note(
    tx: &Tx<'_>,
    moment: &Moment<'_>,
    row: &SessionRow,
    known: &Known,
    anchor: Anchor,
    plan: &Plan,
) -> Result<()> {
    let apart = Some(known.sign_of_life_ms) != row.last_activity_ms;
    let note = Note {
        deadline_ms: plan.deadline_ms,
        checked_ms: moment.now_ms,
        sign_of_life_ms: apart.then_some(known.sign_of_life_ms),
        anchored_ms: anchor.anchored_ms,
    };
    // A row that is not admitted keeps its news until it is.
    let waits = plan.hops.is_empty() && row.status.is_none();
    let news = row.dirty
        || (note.deadline_ms, note.sign_of_life_ms, note.anchored_ms)
            != (row.deadline_ms, row.sign_of_life_ms, row.anchored_ms);
    let moves = !plan.hops.is_empty() || row.dirty || !is_one_more_sign(row, &note, moment.windows);
    if news && moves && !waits { sessions::note(tx, row.id, &note) } else { Ok(()) }
}

/// A sign of life a moment after the one noted changes nothing, and with a process at work there
/// is one at every look: it is noted now and then.
fn is_one_more_sign(row: &SessionRow, note: &Note, windows: Windows) -> bool {
    let (Some(stored), Some(now)) = (row.sign_of_life_ms, note.sign_of_life_ms) else {
        return false;
    };
    let every_ms = SIGN_EVERY_MS.min(windows.live_ms / 4);
    let both = row.deadline_ms.is_some() && note.deadline_ms.is_some();
    both && row.anchored_ms == note.anchored_ms && now >= stored && now - stored < every_ms
}
