//! The life of a run: what its wrapper saw made into a status, and written through `apply`.
//!
//! [`conclude`] is the whole decision, and pure. A run that broke off with a provider error as its
//! session's last word is torn down by that session's status (`consumers::teardown`): the session's
//! end is taken over, a live session is waited for, and only without one has the run failed.
//! Nothing here writes a session's status; the child's exit is left beside it as evidence.

use super::apply::{Outcome, Request, apply};
use super::consumers::{AWAITING_LINKED, Teardown, teardown};
use super::phrase::moment;
use super::policy::{RUN, SWEEP, reason};
use super::{Actor, ActorType, Basis, EndStamp, Entity, Status};
use crate::store::evidence::{self, Evidence};
use crate::store::runs::links::{self, Linked};
use crate::store::runs::{self, RunRow};
use crate::store::{Result, StoreError, Tx, sessions};

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this exit code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

impl Ended {
    /// The exit code that shells give it.
    pub fn code(self) -> i32 {
        match self {
            Self::Exit(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    /// One phrase.
    pub fn phrase(self) -> String {
        match self {
            Self::Exit(code) => format!("exited with {code}"),
            Self::Signal(signal) => format!("ended by signal {signal}"),
        }
    }
}

/// What made a child end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Nothing from outside that we know of.
    Itself,
    /// Its time was up.
    Deadline,
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGQUIT, or SIGHUP: a user broke it off, or closed its terminal.
    User,
}

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;
const SIGTERM: i32 = 15;

impl Cause {
    /// By how the child ended, and the signal that its wrapper got shortly before.
    ///
    /// A child that ends well was not broken off, whatever was sent to it; one that handles a
    /// signal ends with 128 and its number, or with a code of its own.
    pub fn of(ended: Ended, signal: Option<i32>) -> Self {
        let own = match ended {
            Ended::Exit(0) => return Self::Itself,
            Ended::Exit(code) => Self::by(code - 128),
            Ended::Signal(number) => Self::by(number),
        };
        own.or_else(|| signal.and_then(Self::by)).unwrap_or(Self::Itself)
    }

    fn by(signal: i32) -> Option<Self> {
        match signal {
            SIGINT => Some(Self::Interrupt),
            SIGTERM => Some(Self::Terminate),
            SIGQUIT | SIGHUP => Some(Self::User),
            _ => None,
        }
    }
}

/// What is to become of a run whose child has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// It is over.
    Over(Status, &'static str),
    /// It is over, with the end of its linked session.
    Taken(Status, &'static str),
    /// Its linked session is live: it stays as it is.
    Await,
}

/// Decides by how the child ended, by what, and by what the linked session says.
pub fn conclude(ended: Ended, cause: Cause, linked: Option<&Linked>) -> Conclusion {
    match cause {
        Cause::Deadline => Conclusion::Over(Status::TimedOut, reason::RUN_DEADLINE),
        Cause::Interrupt => Conclusion::Over(Status::Cancelled, reason::RUN_SIGINT),
        Cause::Terminate => Conclusion::Over(Status::Cancelled, reason::RUN_SIGTERM),
        Cause::User => Conclusion::Over(Status::Aborted, reason::RUN_ABORTED_USER),
        Cause::Itself => match (ended, linked) {
            (Ended::Exit(0), Some(linked)) if linked.work == 0 => {
                Conclusion::Over(Status::CompletedEmpty, reason::RUN_COMPLETED)
            }
            (Ended::Exit(0), _) => Conclusion::Over(Status::Completed, reason::RUN_COMPLETED),
            (Ended::Exit(_) | Ended::Signal(_), linked) => broken_off(linked),
        },
    }
}

fn broken_off(linked: Option<&Linked>) -> Conclusion {
    let error = linked.and_then(|linked| linked.last_word.as_deref()).and_then(provider_error);
    let Some(error) = error else {
        return Conclusion::Over(Status::Failed, reason::RUN_EXIT_NONZERO);
    };
    match teardown(linked.and_then(|linked| linked.status)) {
        Teardown::Take(status) => Conclusion::Taken(status, reason_of(status, error)),
        Teardown::AwaitLinked => Conclusion::Await,
        Teardown::Fail => Conclusion::Over(Status::Failed, error.reason()),
    }
}

/// The reason that goes with a status taken over from a session.
fn reason_of(status: Status, error: ProviderError) -> &'static str {
    match status {
        Status::Completed | Status::CompletedEmpty => reason::RUN_COMPLETED,
        Status::TimedOut => reason::RUN_DEADLINE,
        Status::Aborted => reason::RUN_ABORTED_USER,
        Status::Cancelled => reason::RUN_SIGTERM,
        // The first three are never taken over: they are no ends.
        Status::Starting | Status::Running | Status::Idle | Status::Failed => error.reason(),
    }
}

/// An error of the provider, not of the agent or of what it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderError {
    /// Trying again may help.
    Retryable,
    /// It would only fail again, as far as is known.
    NonRetryable,
}

impl ProviderError {
    fn reason(self) -> &'static str {
        match self {
            Self::Retryable => reason::RUN_PROVIDER_RETRYABLE,
            Self::NonRetryable => reason::RUN_PROVIDER_NONRETRYABLE,
        }
    }
}

/// Codes of errors that pass: limits of rate, overload, servers and lines that fail. Everything else
/// is not tried again in vain.
const RETRYABLE: [&str; 14] = [
    "rate_limit",
    "rate_limit_error",
    "overloaded",
    "overloaded_error",
    "server_overloaded",
    "server_error",
    "internal_server_error",
    "api_error",
    "timeout",
    "timeout_error",
    "http_connection_failed",
    "response_stream_connection_failed",
    "response_stream_disconnected",
    "response_too_many_failed_attempts",
];
/// Words in which a status of HTTP is looked for.
const STATUS_WORDS: usize = 8;

/// What kind of provider error the last word of a transcript is (`code text`); `None`: another
/// kind of failure.
pub fn provider_error(last_word: &str) -> Option<ProviderError> {
    let (code, text) = last_word.split_once(' ').unwrap_or((last_word, ""));
    if matches!(code, "refusal" | "blocked") || text == "the turn ended without an answer" {
        return None;
    }
    let status = last_word.split(|letter: char| !letter.is_ascii_alphanumeric());
    let mut status = status.filter(|word| !word.is_empty()).take(STATUS_WORDS).filter_map(|word| {
        word.parse::<u16>().ok().filter(|status| (400..600).contains(status) && word.len() == 3)
    });
    let passes = match status.next() {
        Some(status) => status == 429 || status >= 500,
        None => RETRYABLE.contains(&code),
    };
    Some(if passes { ProviderError::Retryable } else { ProviderError::NonRetryable })
}

/// The start of a run's life: none → starting.
pub fn admit(tx: &Tx<'_>, id: i64, now_ms: i64) -> Result<Outcome> {
    let Some(row) = runs::load(tx, id)? else { return Ok(Outcome::Conflict) };
    let summary = "the command is being started";
    write(tx, request(&row, Status::Starting, reason::RUN_STARTED, summary.to_owned(), now_ms))
}

/// Its child runs: starting → running.
pub fn start(tx: &Tx<'_>, id: i64, pid: i64, start: Option<&str>, now_ms: i64) -> Result<Outcome> {
    runs::set_child(tx, id, pid, start)?;
    let Some(row) = runs::load(tx, id)? else { return Ok(Outcome::Conflict) };
    let summary = format!("the command runs as pid {pid}");
    write(tx, request(&row, Status::Running, reason::RUN_STARTED, summary, now_ms))
}

/// The command could not be started: starting → failed, with the exit code that shells give it.
pub fn never_started(tx: &Tx<'_>, id: i64, code: i32, why: &str, now_ms: i64) -> Result<Outcome> {
    runs::set_exit(tx, id, Some(i64::from(code)), None)?;
    let Some(row) = runs::load(tx, id)? else { return Ok(Outcome::Conflict) };
    let summary = format!("the command cannot be started: {why}");
    let end = EndStamp { at_ms: now_ms, approximate: false, duration_ms: Some(0) };
    let request = request(&row, Status::Failed, reason::RUN_EXIT_NONZERO, summary, now_ms);
    write(tx, Request { end: Some(end), ..request })
}

/// Its child has ended: the evidence for its session, and the run's own end, or its wait for that
/// of the session. A run that is terminal already stays so.
pub fn end(tx: &Tx<'_>, id: i64, ended: Ended, cause: Cause, now_ms: i64) -> Result<Outcome> {
    let (code, signal) = match ended {
        Ended::Exit(code) => (Some(i64::from(code)), None),
        Ended::Signal(signal) => (None, Some(i64::from(signal))),
    };
    runs::set_exit(tx, id, code, signal)?;
    let Some(row) = runs::load(tx, id)? else { return Ok(Outcome::Conflict) };
    let linked = links::linked(tx, id)?;
    if let Some(linked) = &linked {
        tell(tx, &row, linked.session_id, ended, now_ms)?;
    }
    finish(tx, &row, ended, cause, linked.as_ref(), now_ms)
}

/// A run that waits for its session is asked again; `Unchanged` while that is live.
pub fn settle(tx: &Tx<'_>, row: &RunRow, now_ms: i64) -> Result<Outcome> {
    let Some(ended) = ended(row) else { return Ok(Outcome::Unchanged) };
    let linked = links::linked(tx, row.id)?;
    finish(tx, row, ended, Cause::Itself, linked.as_ref(), now_ms)
}

/// Its wrapper and its child are proven gone without a word: running → aborted.
pub fn sweep(tx: &Tx<'_>, row: &RunRow, proof: Vec<String>, now_ms: i64) -> Result<Outcome> {
    let summary = "its processes are gone without a word".to_owned();
    let request = request(row, Status::Aborted, reason::RUN_PROCESS_GONE, summary, now_ms);
    let end = EndStamp { at_ms: now_ms, approximate: true, duration_ms: None };
    write(
        tx,
        Request {
            actor: Actor::new(ActorType::System, SWEEP),
            evidence: proof,
            end: Some(end),
            ..request
        },
    )
}

/// Links a run to a session. If its child has ended since, that session is told.
pub fn link(tx: &Tx<'_>, id: i64, agent: &str, native_id: &str) -> Result<()> {
    runs::link(tx, id, agent, native_id)?;
    match runs::load(tx, id)? {
        Some(row) => tell_late(tx, &row),
        None => Ok(()),
    }
}

/// Tells a session, mirrored only now, that the child of its run had ended.
pub fn tell_late(tx: &Tx<'_>, row: &RunRow) -> Result<()> {
    let (Some(ended), Some(at_ms)) = (ended(row), row.ended_ms) else { return Ok(()) };
    match links::linked(tx, row.id)? {
        Some(linked) => tell(tx, row, linked.session_id, ended, at_ms),
        None => Ok(()),
    }
}

/// How its child ended; `None` while it may live.
pub fn ended(row: &RunRow) -> Option<Ended> {
    let number = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
    match (row.exit_signal, row.exit_code) {
        (Some(signal), _) => Some(Ended::Signal(number(signal))),
        (None, Some(code)) => Some(Ended::Exit(number(code))),
        (None, None) => None,
    }
}

fn tell(tx: &Tx<'_>, row: &RunRow, session_id: i64, ended: Ended, at_ms: i64) -> Result<()> {
    let Some((pid, start)) = &row.child else { return Ok(()) };
    let seen = Evidence {
        source: "run".to_owned(),
        subject: format!("{pid}:{}", start.as_deref().unwrap_or("?")),
        says: "exited".to_owned(),
        why: format!("the child of its run {}", ended.phrase()),
        pid: u32::try_from(*pid).ok(),
        since_ms: at_ms,
        scope: row.scope.clone(),
        first_ms: row.started_ms.unwrap_or(at_ms).min(at_ms),
        last_ms: at_ms,
        ended_ms: Some(at_ms),
        ..Evidence::default()
    };
    evidence::record(tx, session_id, &seen)?;
    sessions::mark_dirty(tx, session_id)
}

fn finish(
    tx: &Tx<'_>,
    row: &RunRow,
    ended: Ended,
    cause: Cause,
    linked: Option<&Linked>,
    now_ms: i64,
) -> Result<Outcome> {
    if row.status.is_none_or(Status::is_terminal) {
        return Ok(Outcome::Unchanged);
    }
    let name = row.session.as_ref().map(|(agent, native)| format!("{agent}:{native}"));
    let mut proof =
        vec![format!("pid {} {}", row.child.as_ref().map_or(0, |c| c.0), ended.phrase())];
    if let (Some(name), Some(status)) = (&name, linked.and_then(|linked| linked.status)) {
        proof.push(format!("session {name} is {}", status.word()));
    }
    if let Some(error) = linked.and_then(|linked| linked.last_word.as_deref()) {
        // The code alone: what stands behind it is content.
        let code = error.split(' ').next().unwrap_or_default();
        proof.push(format!("its last word is the error `{code}`"));
    }
    let exact = |at_ms: i64| {
        let duration_ms = row.started_ms.map(|start| at_ms.saturating_sub(start).max(0));
        EndStamp { at_ms, approximate: false, duration_ms }
    };
    let (status, code, end) = match conclude(ended, cause, linked) {
        Conclusion::Await => {
            runs::set_summary(tx, row.id, AWAITING_LINKED)?;
            return Ok(Outcome::Unchanged);
        }
        Conclusion::Over(status, code) => (status, code, exact(now_ms)),
        Conclusion::Taken(status, code) => {
            let end = match linked.and_then(|linked| linked.end) {
                Some((at_ms, false)) => exact(at_ms),
                Some((at_ms, true)) => EndStamp { at_ms, approximate: true, duration_ms: None },
                None => EndStamp { at_ms: now_ms, approximate: true, duration_ms: None },
            };
            (status, code, end)
        }
    };
    let summary = match cause {
        Cause::Itself => format!("the command {}", ended.phrase()),
        Cause::Deadline => format!("its time was up; the command {}", ended.phrase()),
        Cause::Interrupt | Cause::Terminate | Cause::User => {
            format!("broken off; the command {}", ended.phrase())
        }
    };
    proof.push(format!("ended {}", moment(end.at_ms)));
    let request = request(row, status, code, summary, now_ms);
    write(tx, Request { evidence: proof, end: Some(end), ..request })
}

fn request(row: &RunRow, to: Status, code: &str, summary: String, now_ms: i64) -> Request {
    Request {
        entity: Entity::run(row.id),
        expected_status: row.status,
        expected_version: row.version,
        to,
        reason: code.to_owned(),
        summary,
        basis: Basis::Observed,
        rule: "run".to_owned(),
        evidence: Vec::new(),
        actor: Actor::new(ActorType::Executor, RUN),
        end: None,
        override_by: None,
        now_ms,
    }
}

fn write(tx: &Tx<'_>, request: Request) -> Result<Outcome> {
    apply(tx, &request.check().map_err(|why| StoreError::Value(why.to_string()))?)
}

#[cfg(test)]
mod tests;
