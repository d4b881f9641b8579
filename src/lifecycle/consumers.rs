//! What a status means to those who act on it.
//!
//! Each of these once split statuses in two and put `idle` on the wrong side, or on none (ADR-0109,
//! consequence 1 and its consumer table). Here each matches every status, so that a further one
//! does not compile until someone has said what it means.

use super::Status;
use super::decide::Holder;

/// A terminal session's stream stays open this long for what is still being written, ms.
pub const STREAM_LINGER_MS: i64 = 60_000;

/// Whether a followed session's stream goes on: it closes once the session has ended and stayed
/// so for a minute. Nothing is final: whoever follows it looks again, and it reopens.
pub fn stream_open(status: Status, since_ms: i64, now_ms: i64) -> bool {
    match status {
        Status::Starting | Status::Running | Status::Idle => true,
        Status::Completed
        | Status::CompletedEmpty
        | Status::Failed
        | Status::TimedOut
        | Status::Aborted
        | Status::Cancelled => now_ms.saturating_sub(since_ms) <= STREAM_LINGER_MS,
    }
}

/// What to say beside the command that resumes a session. It is shown in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeGate {
    /// Open in another process: a second terminal would interleave.
    OpenElsewhere {
        /// Where, if that is known.
        pid: Option<u32>,
    },
    /// Nobody is known to have it open.
    NotKnownOpen,
    /// It is over.
    Over,
}

impl ResumeGate {
    /// The words beside the command; none for a session that is over.
    pub fn phrase(self) -> Option<String> {
        match self {
            Self::OpenElsewhere { pid: Some(pid) } => {
                Some(format!("open in pid {pid}; a second terminal would interleave"))
            }
            Self::OpenElsewhere { pid: None } => {
                Some("running; a second terminal would interleave".to_owned())
            }
            Self::NotKnownOpen => Some("not known to be open".to_owned()),
            Self::Over => None,
        }
    }
}

/// How safe it is to resume a session in another terminal.
pub fn resume_gate(status: Status, holder: Holder) -> ResumeGate {
    if let Some(pid) = holder.pid() {
        return ResumeGate::OpenElsewhere { pid: Some(pid) };
    }
    match status {
        Status::Starting | Status::Running => ResumeGate::OpenElsewhere { pid: None },
        Status::Idle => ResumeGate::NotKnownOpen,
        Status::Completed
        | Status::CompletedEmpty
        | Status::Failed
        | Status::TimedOut
        | Status::Aborted
        | Status::Cancelled => ResumeGate::Over,
    }
}

/// What a look says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existence {
    /// It is there.
    Alive,
    /// Proven gone, in the scope it was recorded in.
    Gone,
    /// Cannot be told; never means gone.
    Unknown,
    /// No such process was ever recorded.
    NeverRecorded,
}

/// A run as a sweep sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    /// Its status.
    pub status: Status,
    /// Whether it ran on this host.
    pub host: Host,
    /// `lullwatch run` itself.
    pub wrapper: Existence,
    /// Its child.
    pub child: Existence,
}

/// Whose host it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// This one.
    Own,
    /// Another: nothing here proves anything there.
    Other,
}

/// What a sweep does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// Abort it: `run.aborted.process_gone`, compare-and-set on status and version.
    Abort,
    /// Leave it.
    Leave,
}

/// Whether a sweep ends a run. Sessions are never swept.
pub fn sweep(run: Swept) -> Sweep {
    match run.host {
        Host::Own => {}
        Host::Other => return Sweep::Leave,
    }
    let gone = (run.wrapper, run.child) == (Existence::Gone, Existence::Gone);
    if run.status.is_sweepable() && gone || never_began(run) { Sweep::Abort } else { Sweep::Leave }
}

/// A run whose wrapper is gone before it said that the command runs: nobody will ever say more.
fn never_began(run: Swept) -> bool {
    match run.status {
        Status::Starting => (run.wrapper, run.child) == (Existence::Gone, Existence::NeverRecorded),
        Status::Running
        | Status::Idle
        | Status::Completed
        | Status::CompletedEmpty
        | Status::Failed
        | Status::TimedOut
        | Status::Aborted
        | Status::Cancelled => false,
    }
}

/// What a session's end rests on, to a run that opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// Only the word of the run's own child: its exit, its lock, its entry in a registry, a marker
    /// that it wrote on its way out.
    OwnChild,
    /// Something else.
    Another,
}

/// Whether a live process that is not of a run has the run's session open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherHolder {
    /// One has.
    Known,
    /// None is known.
    NotKnown,
}

/// The row of a run's linked session, as far as the run's teardown asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkedRow {
    /// Its status.
    pub status: Status,
    /// Who else has it open.
    pub holder: OtherHolder,
    /// What its end rests on; of a terminal status.
    pub ended_by: EndedBy,
}

/// How a run ends that failed with a provider error as its transcript's last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Teardown {
    /// With the status of its linked session.
    Take(Status),
    /// Not yet: the session is live, so the run stays running, without an end.
    AwaitLinked,
    /// As failed: its child was the session's only process, or there is no row.
    Fail,
}

/// Why a run whose linked session is live goes on.
pub const AWAITING_LINKED: &str = "awaiting linked session";

/// How to tear such a run down, by its linked session's row.
///
/// `idle` is live here: the session may well go on, and a `failed` written now would be a phantom.
/// That the child is gone ends a session too, but says nothing of how the run went.
pub fn teardown(linked: Option<LinkedRow>) -> Teardown {
    let Some(LinkedRow { status, holder, ended_by }) = linked else { return Teardown::Fail };
    match (status, holder, ended_by) {
        (_, OtherHolder::Known, _)
        | (Status::Starting | Status::Running | Status::Idle, OtherHolder::NotKnown, _) => {
            Teardown::AwaitLinked
        }
        (
            Status::Completed
            | Status::CompletedEmpty
            | Status::Failed
            | Status::TimedOut
            | Status::Aborted
            | Status::Cancelled,
            OtherHolder::NotKnown,
            ended_by,
        ) => match ended_by {
            EndedBy::Another => Teardown::Take(status),
            EndedBy::OwnChild => Teardown::Fail,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMINALS: [Status; 6] = [
        Status::Completed,
        Status::CompletedEmpty,
        Status::Failed,
        Status::TimedOut,
        Status::Aborted,
        Status::Cancelled,
    ];

    #[test]
    fn the_stream_of_an_idle_session_never_closes() {
        for status in [Status::Starting, Status::Running, Status::Idle] {
            assert!(stream_open(status, 0, i64::MAX), "{status:?}");
        }
    }

    #[test]
    fn the_stream_of_an_ended_session_closes_past_a_minute() {
        for status in TERMINALS {
            assert!(stream_open(status, 0, STREAM_LINGER_MS - 1), "{status:?}");
            assert!(stream_open(status, 0, STREAM_LINGER_MS), "{status:?}");
            assert!(!stream_open(status, 0, STREAM_LINGER_MS + 1), "{status:?}");
        }
    }

    #[test]
    fn resuming_an_idle_session_is_offered_with_a_word_of_doubt() {
        let gate = resume_gate(Status::Idle, Holder::Unknown);
        assert_eq!(gate.phrase().as_deref(), Some("not known to be open"));
        let gate = resume_gate(Status::Idle, Holder::Nobody);
        assert_eq!(gate, ResumeGate::NotKnownOpen);
    }

    #[test]
    fn resuming_what_a_live_process_holds_is_offered_with_a_warning() {
        for holder in [Holder::Dedicated { pid: 42 }, Holder::Shared { pid: 42 }] {
            for status in Status::ALL {
                let words = resume_gate(status, holder).phrase();
                let warning = "open in pid 42; a second terminal would interleave";
                assert_eq!(words.as_deref(), Some(warning), "{status:?}");
            }
        }
        let words = resume_gate(Status::Running, Holder::Unknown).phrase();
        assert_eq!(words.as_deref(), Some("running; a second terminal would interleave"));
    }

    #[test]
    fn resuming_what_has_ended_is_offered_without_a_word() {
        for status in TERMINALS {
            assert_eq!(resume_gate(status, Holder::Unknown).phrase(), None, "{status:?}");
        }
    }

    #[test]
    fn a_sweep_ends_only_a_run_of_this_host_whose_processes_are_proven_gone() {
        let every =
            [Existence::Alive, Existence::Gone, Existence::Unknown, Existence::NeverRecorded];
        for status in Status::ALL {
            for host in [Host::Own, Host::Other] {
                for wrapper in every {
                    for child in every {
                        let run = Swept { status, host, wrapper, child };
                        let both = (status, child) == (Status::Running, Existence::Gone);
                        let none = (status, child) == (Status::Starting, Existence::NeverRecorded);
                        let all = (host, wrapper) == (Host::Own, Existence::Gone) && (both || none);
                        let expected = if all { Sweep::Abort } else { Sweep::Leave };
                        assert_eq!(sweep(run), expected, "{run:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn teardown_takes_anothers_end_waits_for_the_living_and_fails_with_its_own_child() {
        for status in Status::ALL {
            for holder in [OtherHolder::Known, OtherHolder::NotKnown] {
                for ended_by in [EndedBy::OwnChild, EndedBy::Another] {
                    let row = LinkedRow { status, holder, ended_by };
                    let over = TERMINALS.contains(&status) && holder == OtherHolder::NotKnown;
                    let expected = match ended_by {
                        _ if !over => Teardown::AwaitLinked,
                        EndedBy::Another => Teardown::Take(status),
                        EndedBy::OwnChild => Teardown::Fail,
                    };
                    assert_eq!(teardown(Some(row)), expected, "{row:?}");
                }
            }
        }
        assert_eq!(teardown(None), Teardown::Fail);
    }
}
