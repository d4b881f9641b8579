//! The `on_terminal` command as a consumer of the ledger: what it is told, and when it is tried.
//!
//! Each end is delivered at least once: acknowledged when the command has exited with 0, and tried
//! again with back-off until then. A process that is killed in between delivers again. Who runs the
//! command, and how, is `app`'s business.

use serde::Serialize;

use super::Delivery;
use crate::lifecycle::{moment, policy};
use crate::store::ledger::{self, Narrow, Span};
use crate::store::{Result, Store, Tx};

/// Its name as a consumer.
pub const CONSUMER: &str = "on_terminal";
/// Waits after a failure: the first, doubling, at most the second, ms.
const BACK_OFF_MS: (i64, i64) = (1_000, 300_000);

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
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Subject<'a> {
    r#type: &'static str,
    id: &'a str,
}

impl<'a> Envelope<'a> {
    /// The envelope of an entry. `id` is its name and `host` the host's, both fit to be shown.
    pub fn new(entry: &'a Delivery, id: &'a str, host: &'a str) -> Self {
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
    /// It was taken back before anybody was told: it is acknowledged as skipped.
    Skip,
}

/// What is to be done with an entry.
pub fn task(entry: &Delivery) -> Task {
    if entry.superseded && entry.attempts == 0 { Task::Skip } else { Task::Deliver }
}

/// Registers the consumer when the command is first configured: it gets what ends from then on.
pub fn register(store: &mut Store, now_ms: i64) -> Result<()> {
    let known = store.read(|tx| {
        let consumers = ledger::consumers(tx)?;
        Ok(consumers.iter().any(|consumer| consumer.name == CONSUMER))
    })?;
    if known { Ok(()) } else { store.write(|tx| ledger::register(tx, CONSUMER, now_ms)) }
}

/// Entries that are due, oldest first, at most `rows_max`.
pub fn due(tx: &Tx<'_>, now_ms: i64, rows_max: i64) -> Result<Vec<Delivery>> {
    ledger::deliveries(tx, CONSUMER, Span::Due(now_ms), Narrow::NOTHING, rows_max)
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
            r#""ended_at":"2026-11-30T08:58:20.000Z","superseded":false,"attempt":2}"#,
            "\n"
        );
        assert_eq!(Envelope::new(&entry, &entry.name, "h").text(), expected);
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
        let entry = |superseded, attempts| Delivery { superseded, attempts, ..entry() };
        assert_eq!(task(&entry(false, 0)), Task::Deliver);
        assert_eq!(task(&entry(true, 0)), Task::Skip);
        assert_eq!(task(&entry(true, 1)), Task::Deliver);
    }
}
