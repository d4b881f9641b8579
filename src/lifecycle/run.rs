//! The life of a run: what its wrapper saw made into a status, and written through `apply`.
//!
//! [`conclude`] is the whole decision, and pure. A run that broke off with a provider error as its
//! session's last word is torn down by that session's row (`consumers::teardown`): an end that others
//! gave it is taken over, a live session is waited for, and else the run has failed. Nothing here
//! writes a session's status; what the child's exit means to it is read off the run's row by those
//! who look at processes.
//!
//! - `linked`: what the end asks of the session, and whose word that session's end is.

mod linked;

use super::apply::{Outcome, Request, apply};
use super::consumers::{AWAITING_LINKED, EndedBy, Teardown, teardown};
use super::phrase::moment;
use super::policy::{RUN, SWEEP, reason};
use super::{Actor, ActorType, Basis, EndStamp, Entity, Status};
use crate::store::runs::{self, RunRow};
use crate::store::{Result, StoreError, Tx};

pub use linked::{Looked, Session};

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
    /// One that handles a signal ends with 128 and its number, or with a code of its own: also 0,
    /// of which [`conclude`] has the last word.
    pub fn of(ended: Ended, signal: Option<i32>) -> Self {
        let own = match ended {
            Ended::Exit(0) => None,
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

/// Decides by how the child ended, by what, and by what the session it opened says.
pub fn conclude(ended: Ended, cause: Cause, session: Option<&Session>) -> Conclusion {
    match effective(ended, cause, session) {
        Cause::Deadline => Conclusion::Over(Status::TimedOut, reason::RUN_DEADLINE),
        Cause::Interrupt => Conclusion::Over(Status::Cancelled, reason::RUN_SIGINT),
        Cause::Terminate => Conclusion::Over(Status::Cancelled, reason::RUN_SIGTERM),
        Cause::User => Conclusion::Over(Status::Aborted, reason::RUN_ABORTED_USER),
        Cause::Itself => match (ended, session) {
            (Ended::Exit(0), Some(session)) if session.says.work == 0 => {
                Conclusion::Over(Status::CompletedEmpty, reason::RUN_COMPLETED)
            }
            (Ended::Exit(0), _) => Conclusion::Over(Status::Completed, reason::RUN_COMPLETED),
            (Ended::Exit(_) | Ended::Signal(_), session) => broken_off(session),
        },
    }
}

/// A signal that a child answers with a good end broke it off only if it left its turn open: at
/// rest, that is how an agent is closed.
fn effective(ended: Ended, cause: Cause, session: Option<&Session>) -> Cause {
    match (ended, cause) {
        (Ended::Exit(0), Cause::Interrupt | Cause::Terminate | Cause::User) => {
            let open = session.is_some_and(|session| session.says.turn_open);
            if open { cause } else { Cause::Itself }
        }
        (Ended::Exit(_) | Ended::Signal(_), cause) => cause,
    }
}

fn broken_off(session: Option<&Session>) -> Conclusion {
    let last_word = session.and_then(|session| session.says.last_word.as_deref());
    let Some(error) = last_word.and_then(provider_error) else {
        return Conclusion::Over(Status::Failed, reason::RUN_EXIT_NONZERO);
    };
    match teardown(session.and_then(|session| session.row)) {
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
/// Words in which a status of HTTP is looked for; the first is the code, which may be one.
const STATUS_WORDS: usize = 9;

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
    runs::set_exit(tx, id, (Some(i64::from(code)), None), now_ms)?;
    let Some(row) = runs::load(tx, id)? else { return Ok(Outcome::Conflict) };
    let summary = format!("the command cannot be started: {why}");
    let end = EndStamp { at_ms: now_ms, approximate: false, duration_ms: Some(0) };
    let request = request(&row, Status::Failed, reason::RUN_EXIT_NONZERO, summary, now_ms);
    write(tx, Request { end: Some(end), ..request })
}

/// Its child has ended: the run's own end, or its wait for that of the session. A run that is
/// terminal already stays so.
pub fn end(tx: &Tx<'_>, id: i64, ended: Ended, cause: Cause, now_ms: i64) -> Result<Outcome> {
    let how = match ended {
        Ended::Exit(code) => (Some(i64::from(code)), None),
        Ended::Signal(signal) => (None, Some(i64::from(signal))),
    };
    runs::set_exit(tx, id, how, now_ms)?;
    let Some(row) = runs::load(tx, id)? else { return Ok(Outcome::Conflict) };
    finish(tx, &row, Exit { ended, cause, at_ms: now_ms }, Looked::Before, now_ms)
}

/// A run that waits for its session is asked again; `Unchanged` while that is live. To be asked only
/// after a look at processes since the child's exit.
pub fn settle(tx: &Tx<'_>, row: &RunRow, now_ms: i64) -> Result<Outcome> {
    let Some(ended) = ended(row) else { return Ok(Outcome::Unchanged) };
    // What something from outside has ended never waits.
    let exit = Exit { ended, cause: Cause::Itself, at_ms: row.exit_ms.unwrap_or(now_ms) };
    finish(tx, row, exit, Looked::Since, now_ms)
}

/// Its wrapper and its child are proven gone without a word: running → aborted; or its wrapper
/// before it said that there is a child: starting → aborted.
pub fn sweep(tx: &Tx<'_>, row: &RunRow, proof: Vec<String>, now_ms: i64) -> Result<Outcome> {
    let summary = match row.child {
        Some(_) => "its processes are gone without a word".to_owned(),
        None => "its wrapper is gone; whether the command ever ran is not known".to_owned(),
    };
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

/// How its child ended; `None` while it may live.
pub fn ended(row: &RunRow) -> Option<Ended> {
    let number = |value: i64| i32::try_from(value).unwrap_or(i32::MAX);
    match (row.exit_signal, row.exit_code) {
        (Some(signal), _) => Some(Ended::Signal(number(signal))),
        (None, Some(code)) => Some(Ended::Exit(number(code))),
        (None, None) => None,
    }
}

/// The end of a child.
#[derive(Clone, Copy)]
struct Exit {
    ended: Ended,
    cause: Cause,
    at_ms: i64,
}

fn finish(tx: &Tx<'_>, row: &RunRow, exit: Exit, looked: Looked, now_ms: i64) -> Result<Outcome> {
    if row.status.is_none_or(Status::is_terminal) {
        return Ok(Outcome::Unchanged);
    }
    let session = linked::session_of(tx, row, exit.at_ms, looked)?;
    let exact = |at_ms: i64| {
        let duration_ms = row.started_ms.map(|start| at_ms.saturating_sub(start).max(0));
        EndStamp { at_ms, approximate: false, duration_ms }
    };
    let (status, code, end) = match conclude(exit.ended, exit.cause, session.as_ref()) {
        Conclusion::Await => {
            runs::set_summary(tx, row.id, AWAITING_LINKED)?;
            return Ok(Outcome::Unchanged);
        }
        Conclusion::Over(status, code) => (status, code, exact(exit.at_ms)),
        Conclusion::Taken(status, code) => {
            let end = match session.as_ref().and_then(|session| session.says.end) {
                Some((at_ms, false)) => exact(at_ms),
                Some((at_ms, true)) => EndStamp { at_ms, approximate: true, duration_ms: None },
                None => EndStamp { at_ms: now_ms, approximate: true, duration_ms: None },
            };
            (status, code, end)
        }
    };
    let phrase = exit.ended.phrase();
    let summary = match effective(exit.ended, exit.cause, session.as_ref()) {
        Cause::Itself => format!("the command {phrase}"),
        Cause::Deadline => format!("its time was up; the command {phrase}"),
        Cause::Interrupt | Cause::Terminate | Cause::User => {
            format!("broken off; the command {phrase}")
        }
    };
    let evidence = proof(row, exit.ended, session.as_ref(), end);
    let request = request(row, status, code, summary, now_ms);
    write(tx, Request { evidence, end: Some(end), ..request })
}

/// What the end of a run rests on, one phrase each.
fn proof(row: &RunRow, ended: Ended, session: Option<&Session>, end: EndStamp) -> Vec<String> {
    let pid = row.child.as_ref().map_or(0, |(pid, _)| *pid);
    let mut proof = vec![format!("pid {pid} {}", ended.phrase())];
    let linked = session.and_then(|session| session.row);
    if let (Some((agent, native)), Some(linked)) = (&row.session, linked) {
        proof.push(format!("session {agent}:{native} is {}", linked.status.word()));
        if linked.status.is_terminal() && linked.ended_by == EndedBy::OwnChild {
            proof.push("which only this command's own end says".to_owned());
        }
    }
    if let Some(error) = session.and_then(|session| session.says.last_word.as_deref()) {
        // The code alone: what stands behind it is content.
        let code = error.split(' ').next().unwrap_or_default();
        proof.push(format!("its last word is the error `{code}`"));
    }
    proof.push(format!("ended {}", moment(end.at_ms)));
    proof
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
        windows: None,
        now_ms,
    }
}

fn write(tx: &Tx<'_>, request: Request) -> Result<Outcome> {
    apply(tx, &request.check().map_err(|why| StoreError::Value(why.to_string()))?)
}

#[cfg(test)]
mod tests;
