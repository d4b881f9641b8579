//! What the evidence beside the log says of a bracket: the lattice of design section 5.
//!
//! *Blocking* and *running* are two facts. Blocking is what the harness itself would answer to a
//! new `/compact`; it follows from the log alone. Running needs a process that was there before the
//! start, and stays unknown where none can be seen. Every state says why, with its positions.

use super::{Attempt, Bracket, LogVerdict, Phase};

/// A compaction that runs for longer than this is doubted, ms.
pub const STUCK_AFTER_MS: i64 = 10 * 60 * 1000;
/// A holder counts as younger than a start only from this on, ms: two clocks are compared.
pub const START_SLACK_MS: i64 = 2_000;

/// What is known of a session's processes, as far as a bracket depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BracketEvidence {
    /// The session's status is terminal.
    pub session_ended: bool,
    /// Its `session.lock`.
    pub lock: Lock,
    /// The wall clock jumped since the start, so that process times and stamps do not compare.
    pub clock_stepped: bool,
    /// A log without locks (v0), and a dsh process older than the boundary is alive.
    pub other_writer_possible: bool,
}

/// What is known of a session's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// It cannot be observed, or there is none. Never the same as free.
    Unknown,
    /// It was looked at, and nobody holds it.
    Free,
    /// The log has none (v0), and no process runs that was there at the start and could be at it.
    NoWriter,
    /// Held.
    Held {
        /// By this process.
        pid: u32,
        /// Which started then, ms; `None` if that cannot be told.
        started_ms: Option<i64>,
    },
}

/// What log and evidence together say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// No compaction in the log.
    None,
    /// The newest one ended well.
    Closed,
    /// The newest one failed.
    Failed,
    /// Left behind by an earlier lifecycle.
    Stale,
    /// Stale by the log, but a process that takes no locks may still be at it.
    StaleUnsure,
    /// The command that asked for it is done, its close was never written.
    CloseLost,
    /// Its turn is over.
    Abandoned,
    /// Nobody holds the session.
    WriterGone,
    /// Its holder came after it, so the boundary is about to be written, or was lost.
    BoundaryPending,
    /// Its holder was there before it.
    Compacting,
    /// The same for longer than [`STUCK_AFTER_MS`].
    Stuck,
    /// Nothing tells.
    Unverified,
    /// Open in a session that has ended.
    SessionEnded,
}

impl State {
    /// The words shown and printed in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Closed => "closed",
            Self::Failed => "failed",
            Self::Stale => "stale",
            Self::StaleUnsure => "stale by log; another writer cannot be excluded",
            Self::CloseLost => "close lost",
            Self::Abandoned => "abandoned",
            Self::WriterGone => "writer gone",
            Self::BoundaryPending => "abandoned, boundary pending",
            Self::Compacting => "compacting",
            Self::Stuck => "stuck?",
            Self::Unverified => "open, unverified",
            Self::SessionEnded => "open, session ended",
        }
    }

    /// Whether a verified process is at it: the phase `compacting` of design section 2.
    pub fn is_verified_work(self) -> bool {
        match self {
            Self::Compacting | Self::Stuck => true,
            Self::None
            | Self::Closed
            | Self::Failed
            | Self::Stale
            | Self::StaleUnsure
            | Self::CloseLost
            | Self::Abandoned
            | Self::WriterGone
            | Self::BoundaryPending
            | Self::Unverified
            | Self::SessionEnded => false,
        }
    }

    /// Whether the work goes on; `None`: nobody can tell.
    fn running(self) -> Option<bool> {
        match self {
            Self::Compacting => Some(true),
            Self::Stuck | Self::Unverified | Self::StaleUnsure => None,
            Self::None
            | Self::Closed
            | Self::Failed
            | Self::Stale
            | Self::CloseLost
            | Self::Abandoned
            | Self::WriterGone
            | Self::BoundaryPending
            | Self::SessionEnded => Some(false),
        }
    }
}

/// A state with what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BracketState {
    /// The state.
    pub state: State,
    /// One line that names the positions it follows from.
    pub why: String,
    /// The harness would refuse a new compaction.
    pub blocking: bool,
    /// The work goes on; `None`: nobody can tell.
    pub running: Option<bool>,
    /// An operator should look.
    pub attention: bool,
    /// How long an open one has been open, ms; never negative.
    pub age_ms: Option<i64>,
}

/// What the log and the evidence say together, at `now_ms`.
pub fn state(log: &LogVerdict, evidence: &BracketEvidence, now_ms: i64) -> BracketState {
    let open_attempt = log.attempt.as_ref().filter(|_| log.bracket == Bracket::Open);
    let started_ms = open_attempt.and_then(|attempt| attempt.started_ms);
    let age_ms = started_ms.map(|at| now_ms.saturating_sub(at).max(0));
    let (state, why) = match (log.bracket, &log.attempt) {
        (Bracket::None, _) | (_, None) => (State::None, "no compaction in the log".to_owned()),
        (Bracket::Closed, Some(attempt)) => (State::Closed, why_closed(attempt)),
        (Bracket::Failed, Some(attempt)) => (State::Failed, why_failed(attempt)),
        (Bracket::Stale, Some(attempt)) => stale(attempt, evidence),
        (Bracket::Open, Some(attempt)) => {
            let (state, reason) = open(attempt, evidence, age_ms);
            let why = format!("{}, no end-seed after it; {reason}", start(attempt));
            (state, why)
        }
    };
    BracketState {
        state,
        why,
        blocking: log.bracket == Bracket::Open,
        running: state.running(),
        attention: state == State::Stuck,
        age_ms,
    }
}

/// A compaction of which the log says nothing until it is done (Claude, Codex): an agent's hook has
/// announced it, and nothing has ended it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// When the hook ran, ms.
    pub since_ms: i64,
    /// The process that says it is busy meanwhile.
    pub pid: Option<u32>,
}

/// The state of an announced compaction at `now_ms`. It blocks nobody: no log would show the next
/// one that this one was never closed.
pub fn announced(announced: &Announced, now_ms: i64) -> BracketState {
    let age_ms = now_ms.saturating_sub(announced.since_ms).max(0);
    let busy = announced.pid.map_or_else(String::new, |pid| format!(", and pid {pid} is busy"));
    let why = format!("a PreCompact hook began it, nothing has ended it{busy}");
    let stuck = age_ms > STUCK_AFTER_MS;
    let minutes = STUCK_AFTER_MS / 60_000;
    let (state, why) = if stuck {
        (State::Stuck, format!("{why}, for more than {minutes} minutes"))
    } else {
        (State::Compacting, why)
    };
    BracketState {
        state,
        why,
        blocking: false,
        running: state.running(),
        attention: stuck,
        age_ms: Some(age_ms),
    }
}

/// The state of an open bracket, first that fits. In a session that has ended nothing goes on, and
/// what is known beside that stays in the reason.
fn open(attempt: &Attempt, evidence: &BracketEvidence, age_ms: Option<i64>) -> (State, String) {
    let (state, reason) = open_while_live(attempt, evidence, age_ms);
    if evidence.session_ended {
        return (State::SessionEnded, format!("{reason}; the session has ended"));
    }
    (state, reason)
}

fn open_while_live(
    attempt: &Attempt,
    evidence: &BracketEvidence,
    age_ms: Option<i64>,
) -> (State, String) {
    if let Some(seq) = attempt.command_done_seq {
        let why = format!("its command was done at seq {seq}, so its close was lost");
        return (State::CloseLost, why);
    }
    if let Some(seq) = attempt.turn_over_seq {
        return (State::Abandoned, format!("a turn began or ended at seq {seq}"));
    }
    let (pid, holder_ms) = match evidence.lock {
        Lock::Unknown => return (State::Unverified, "whether anyone is at it is unknown".into()),
        Lock::Free => {
            let why = "nobody holds the lock, the next resume clears it";
            return (State::WriterGone, why.to_owned());
        }
        Lock::NoWriter => {
            let why = "its format has no lock, and no dsh runs here that was there at the start";
            return (State::WriterGone, why.to_owned());
        }
        Lock::Held { pid, started_ms } => (pid, started_ms),
    };
    let (Some(holder), Some(start)) = (holder_ms, attempt.started_ms) else {
        let why = format!("lock held by pid {pid}, whether since before the start is unknown");
        return (State::Unverified, why);
    };
    if holder > start.saturating_add(START_SLACK_MS) {
        if evidence.clock_stepped {
            let why = format!("lock held by pid {pid}, but the clock was set since the start");
            return (State::Unverified, why);
        }
        return (State::BoundaryPending, format!("lock held by pid {pid}, younger than the start"));
    }
    let why = format!("lock held by pid {pid} since before the start");
    if age_ms.is_some_and(|age| age > STUCK_AFTER_MS) {
        let minutes = STUCK_AFTER_MS / 60_000;
        return (State::Stuck, format!("{why}, for more than {minutes} minutes"));
    }
    (State::Compacting, why)
}

fn stale(attempt: &Attempt, evidence: &BracketEvidence) -> (State, String) {
    let mut why = start(attempt);
    // A fork's log cannot tell which lifecycle of its source began it: that one may be at it still.
    let whose = if attempt.inherited {
        "inherited at the fork; whose lifecycle it was, is the parent's affair"
    } else {
        "left by an earlier lifecycle"
    };
    match (attempt.boundary_seq, attempt.superseded_seq) {
        (Some(seq), _) => why = format!("{why}, end-seed at seq {seq} after it: {whose}"),
        (None, Some(seq)) if attempt.inherited => {
            why = format!("{why}, another start at seq {seq} after it: {whose}");
        }
        (None, Some(seq)) => why = format!("{why}, another start at seq {seq} after it"),
        (None, None) => {}
    }
    if attempt.phase == Phase::Replaced {
        why += "; the messages had been replaced already";
    }
    if evidence.other_writer_possible {
        why += "; this log has no locks, and an older dsh process is alive";
        return (State::StaleUnsure, why);
    }
    (State::Stale, why)
}

fn why_closed(attempt: &Attempt) -> String {
    match (attempt.start_seq, attempt.end_seq) {
        (Some(start), Some(end)) => format!("end at seq {end} closes the start at seq {start}"),
        // Claude and Codex write only the finished compaction, and count positions in bytes.
        (None, Some(end)) if attempt.phase == Phase::Replaced => {
            format!("finished, its record is at byte {end}")
        }
        (None, Some(end)) => format!("end at seq {end}, no start before it"),
        (_, None) => "ended".to_owned(),
    }
}

fn why_failed(attempt: &Attempt) -> String {
    match (attempt.start_seq, attempt.end_seq) {
        (Some(start), Some(end)) => {
            format!("end at seq {end} closes the start at seq {start} with an error")
        }
        (_, Some(end)) => format!("end at seq {end} carries an error, no start before it"),
        (_, None) => "ended with an error".to_owned(),
    }
}

fn start(attempt: &Attempt) -> String {
    attempt.start_seq.map_or_else(|| "start".to_owned(), |seq| format!("start at seq {seq}"))
}

#[cfg(test)]
mod tests;
