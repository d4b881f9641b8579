//! The `on_terminal` command as a consumer of the ledger: what it is told, and when it is tried.
//!
//! A run and the session it opened may end by one exit: that is told once, as the run's end, which
//! names the session. Each end is delivered at least once: acknowledged when the command has exited with 0, and tried
//! again with back-off until then. A process that is killed in between delivers again. Who runs the
//! command, and how, is `app`'s business.

use serde::Serialize;

use super::Delivery;
use crate::lifecycle::{EntityType, moment, policy};
use crate::store::ledger::{self, Narrow, RunsEnd, Span};
use crate::store::{Result, Store, Tx};

/// Its name as a consumer.
pub const CONSUMER: &str = "on_terminal";
/// Waits after a failure: the first, doubling, at most the second, ms.
const BACK_OFF_MS: (i64, i64) = (1_000, 300_000);
/// The ends of a run and of its session that lie so near are one, ms: a process is looked at every
/// two seconds, and a wrapper reads its agent's last words before it writes.
const ONE_END_MS: i64 = 10_000;
/// The end of a session whose run is not over waits this long for the run's, ms.
const HOLD_MS: i64 = 6_000;

/// What the command gets on its standard input, one JSON object and a line feed. Fields may be
/// added; none changes its meaning under this schema. It holds no content of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Envelope<'a> {
    schema: &'static str,
    event_id: i64,
    at: String,
    host: &'a str,
    entity: Subject<'a>,
    from: Option<&'static str>,
    to: &'static str,
    reason: &'a str,
    basis: &'static str,
    ended_at: Option<String>,
    superseded: bool,
    attempt: u64,
    session: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Subject<'a> {
    r#type: &'static str,
    id: &'a str,
}

impl<'a> Envelope<'a> {
    /// The envelope of an entry. `id` is its name, `session` that of a run's session, and `host` the
    /// host's, all fit to be shown.
    pub fn new(entry: &'a Delivery, id: &'a str, session: Option<&'a str>, host: &'a str) -> Self {
        // Every reason there is, is one of ours; a stored one that is not is not passed on.
        let known = policy::reason::ALL.contains(&entry.reason.as_str());
        Self {
            schema: "lullwatch.terminal.v1",
            event_id: entry.id,
            at: moment(entry.at_ms),
            host,
            entity: Subject { r#type: entry.entity.kind.word(), id },
            from: entry.from.map(crate::lifecycle::Status::word),
            to: entry.to.word(),
            reason: if known { &entry.reason } else { "unknown" },
            basis: entry.basis.word(),
            ended_at: entry.ended_ms.map(moment),
            superseded: entry.superseded,
            attempt: entry.attempts + 1,
            session,
        }
    }

    /// As it is written.
    pub fn text(&self) -> String {
        // Strings, numbers and a boolean: there is nothing that cannot be written.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// What is to be done with an entry that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// The command is to be called.
    Deliver,
    /// It was taken back before anybody was told, or is told as the end of its run: it is
    /// acknowledged as skipped.
    Skip,
    /// It may be the end of a run, which is waited for until then, ms.
    WaitUntil(i64),
}

/// What is to be done with an entry. What was tried once is told, whatever it turns out to be.
pub fn task(entry: &Delivery, runs_end: RunsEnd, now_ms: i64) -> Task {
    if entry.attempts > 0 {
        return Task::Deliver;
    }
    let until_ms = entry.at_ms.saturating_add(HOLD_MS);
    // A stamp ahead of the clock holds nothing back.
    let waits = (entry.at_ms..until_ms).contains(&now_ms);
    match runs_end {
        RunsEnd::Yes => Task::Skip,
        RunsEnd::No | RunsEnd::Open if entry.superseded => Task::Skip,
        RunsEnd::Open if waits => Task::WaitUntil(until_ms),
        RunsEnd::No | RunsEnd::Open => Task::Deliver,
    }
}

/// Registers the consumer when the command is first configured: it gets what ends from then on.
pub fn register(store: &mut Store, now_ms: i64) -> Result<()> {
    let known = store.read(|tx| {
        let consumers = ledger::consumers(tx)?;
        Ok(consumers.iter().any(|consumer| consumer.name == CONSUMER))
    })?;
    if known { Ok(()) } else { store.write(|tx| ledger::register(tx, CONSUMER, now_ms)) }
}

/// Entries that are due, oldest first, at most `rows_max`, each with what is to be done.
pub fn due(tx: &Tx<'_>, now_ms: i64, rows_max: i64) -> Result<Vec<(Delivery, Task)>> {
    let mut due = Vec::new();
    for entry in ledger::deliveries(tx, CONSUMER, Span::Due(now_ms), Narrow::NOTHING, rows_max)? {
        let runs_end = match entry.entity.kind {
            EntityType::Session => ledger::is_runs_end(tx, CONSUMER, &entry, ONE_END_MS)?,
            EntityType::Run => RunsEnd::No,
        };
        let task = task(&entry, runs_end, now_ms);
        due.push((entry, task));
    }
    Ok(due)
}

/// When the next entry that failed is due, ms.
pub fn next_due_ms(tx: &Tx<'_>) -> Result<Option<i64>> {
    ledger::next_attempt_ms(tx, CONSUMER)
}

/// The command has taken an entry.
pub fn delivered(tx: &Tx<'_>, id: i64, now_ms: i64) -> Result<()> {
    ledger::clear_error(tx, CONSUMER, id)?;
    ledger::acknowledge(tx, CONSUMER, id, now_ms, "delivered")?;
    Ok(())
}

/// An entry was taken back before the first attempt.
pub fn skipped(tx: &Tx<'_>, id: i64, now_ms: i64) -> Result<()> {
    ledger::acknowledge(tx, CONSUMER, id, now_ms, "skipped")?;
    Ok(())
}

/// An attempt failed; the error is fit to be shown.
pub fn failed(tx: &Tx<'_>, entry: &Delivery, error: &str, now_ms: i64) -> Result<()> {
    let next_ms = now_ms.saturating_add(back_off_ms(entry.attempts));
    ledger::attempt_failed(tx, CONSUMER, entry.id, error, (now_ms, next_ms))
}

/// The wait after a failure that so many went before, ms.
fn back_off_ms(failed_before: u64) -> i64 {
    let doublings = u32::try_from(failed_before).unwrap_or(u32::MAX).min(20);
    BACK_OFF_MS.0.saturating_mul(1 << doublings).min(BACK_OFF_MS.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::{Basis, Entity, Status};

    fn entry() -> Delivery {
        Delivery {
            id: 7,
            at_ms: 1_796_029_200_000,
            entity: Entity::session(3),
            name: "claude:a".to_owned(),
            from: Some(Status::Idle),
            to: Status::Completed,
            reason: policy::reason::COMPLETED_EXITED.to_owned(),
            basis: Basis::Observed,
            ended_ms: Some(1_796_029_100_000),
            superseded: false,
            acked_ms: None,
            attempts: 1,
            last_error: None,
            session: None,
        }
    }

    #[test]
    fn the_envelope_says_what_ended_and_nothing_of_what_was_said() {
        let entry = entry();
        let expected = concat!(
            r#"{"schema":"lullwatch.terminal.v1","event_id":7,"#,
            r#""at":"2026-11-30T09:00:00.000Z","host":"h","#,
            r#""entity":{"type":"session","id":"claude:a"},"from":"idle","to":"completed","#,
            r#""reason":"session.completed.exited","basis":"observed","#,
            r#""ended_at":"2026-11-30T08:58:20.000Z","superseded":false,"attempt":2,"#,
            r#""session":null}"#,
            "\n"
        );
        assert_eq!(Envelope::new(&entry, &entry.name, None, "h").text(), expected);
        let named = Envelope::new(&entry, &entry.name, Some("claude:b"), "h").text();
        assert_eq!(named, expected.replace("null", "\"claude:b\""));
    }

    #[test]
    fn waits_double_up_to_five_minutes() {
        let waits: Vec<i64> = (0..10).map(back_off_ms).collect();
        let seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300].map(|seconds| seconds * 1_000);
        assert_eq!(waits, seconds);
        assert_eq!(back_off_ms(u64::MAX), 300_000);
    }

    #[test]
    fn what_was_taken_back_is_skipped_only_before_the_first_attempt() {
        let task = |superseded, attempts| {
            task(&Delivery { superseded, attempts, ..entry() }, RunsEnd::No, entry().at_ms)
        };
        assert_eq!(task(false, 0), Task::Deliver);
        assert_eq!(task(true, 0), Task::Skip);
        assert_eq!(task(true, 1), Task::Deliver);
    }

    #[test]
    fn the_end_of_a_session_waits_a_moment_for_that_of_its_run_and_is_told_by_it() {
        let entry = |attempts| Delivery { attempts, ..entry() };
        let at = entry(0).at_ms;
        let task = |attempts, runs_end, later| task(&entry(attempts), runs_end, at + later);
        assert_eq!(task(0, RunsEnd::Yes, 0), Task::Skip);
        assert_eq!(task(1, RunsEnd::Yes, 0), Task::Deliver);
        assert_eq!(task(0, RunsEnd::Open, 0), Task::WaitUntil(at + HOLD_MS));
        assert_eq!(task(0, RunsEnd::Open, HOLD_MS - 1), Task::WaitUntil(at + HOLD_MS));
        assert_eq!(task(0, RunsEnd::Open, HOLD_MS), Task::Deliver);
        assert_eq!(task(0, RunsEnd::Open, -1), Task::Deliver);
    }
}
