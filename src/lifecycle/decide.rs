//! The verdict: what a session is, by what is known of it and one moment.
//!
//! Four rules, the first that holds decides (design section 3). The functions here are pure and do
//! not see the current status: what a session *is* must not depend on what it was taken for. How a
//! row gets from its status to the verdict's is the policy's and the reconciler's business.
//! Exactly at a window is inside it.

use std::cmp::Reverse;

use super::phrase::{moment, span, span_against};
use super::policy::reason;
use super::{Basis, EndStamp, Ending, Status, Windows};

/// Own activity this much later than an observed end revokes it, ms: clocks and flushes are loose.
pub const END_SLACK_MS: i64 = 2_000;
/// A sub-agent's record this much later than any end revokes it, ms: children finish after parents.
pub const CHILD_SLACK_MS: i64 = 60_000;

/// What is known of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Newest activity of it and its sub-agents, ms.
    pub last_activity_ms: i64,
    /// Newest activity of its own, else its start, ms.
    pub own_activity_ms: Option<i64>,
    /// Newest activity of its sub-agents, ms.
    pub child_activity_ms: Option<i64>,
    /// Last activity, or a later moment at which a process worked on it, ms.
    pub sign_of_life_ms: i64,
    /// What shows that it ended; revoked ones too.
    pub ends: Vec<End>,
    /// Ends of those who have left it to others: they end nothing, yet what they wrote until then
    /// brings nothing back.
    pub left: Vec<End>,
    /// The process that has it open.
    pub holder: Holder,
    /// What was seen of its processes, one sentence each, with when.
    pub seen: Vec<String>,
}

impl Known {
    /// What is known of a sub-agent: its own last activity, no end, no process.
    pub fn silent_since(last_activity_ms: i64) -> Self {
        Self {
            last_activity_ms,
            own_activity_ms: Some(last_activity_ms),
            child_activity_ms: None,
            sign_of_life_ms: last_activity_ms,
            ends: Vec::new(),
            left: Vec::new(),
            holder: Holder::Unknown,
            seen: Vec::new(),
        }
    }
}

/// One piece of end evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// What shows it.
    pub ending: Ending,
    /// When it ended by that account, ms.
    pub at_ms: Option<i64>,
    /// When it was found to be over, if that is later: the process was last seen alive before, ms.
    pub observed_ms: Option<i64>,
}

/// The process that has a session open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Holder {
    /// Nothing is known; unknown never means gone.
    #[default]
    Unknown,
    /// It was looked for and is not there.
    Nobody,
    /// A live process of this one session.
    Dedicated {
        /// Its pid.
        pid: u32,
    },
    /// A live server that holds several sessions: it vetoes an end, never silence.
    Shared {
        /// Its pid.
        pid: u32,
    },
}

impl Holder {
    /// The live process, if there is one.
    pub fn pid(self) -> Option<u32> {
        match self {
            Self::Dedicated { pid } | Self::Shared { pid } => Some(pid),
            Self::Unknown | Self::Nobody => None,
        }
    }

    fn keeps_idle(self) -> bool {
        match self {
            Self::Dedicated { .. } => true,
            Self::Unknown | Self::Nobody | Self::Shared { .. } => false,
        }
    }
}

/// The rules, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// End evidence stands, and no live process holds the session.
    EndEvidence,
    /// Silent for no longer than the live window.
    LiveWindow,
    /// Silent for no longer than the ended window, or held by a dedicated process.
    EndedWindow,
    /// Otherwise.
    Silence,
}

impl Rule {
    /// Every rule, in order.
    pub const ALL: [Self; 4] =
        [Self::EndEvidence, Self::LiveWindow, Self::EndedWindow, Self::Silence];

    /// Whether its verdict is seen or concluded: a lull is seen, an end by silence never is.
    pub fn basis(self) -> Basis {
        match self {
            Self::EndEvidence | Self::LiveWindow | Self::EndedWindow => Basis::Observed,
            Self::Silence => Basis::Inferred,
        }
    }

    /// The word in the store and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::EndEvidence => "end_evidence",
            Self::LiveWindow => "live_window",
            Self::EndedWindow => "ended_window",
            Self::Silence => "silence",
        }
    }
}

/// What a session is, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Running, idle or completed.
    pub status: Status,
    /// Reason code of an ordinary edge to that status.
    pub reason: &'static str,
    /// One sentence.
    pub summary: String,
    /// Seen or concluded.
    pub basis: Basis,
    /// The rule that held.
    pub rule: Rule,
    /// What it rests on, one phrase each.
    pub evidence: Vec<String>,
    /// The first moment at which time alone changes the verdict, ms. In the past only while a
    /// process holds the session: then it is to be asked again at every look.
    pub until_ms: Option<i64>,
    /// The end; `Some` exactly for a terminal verdict.
    pub end: Option<EndStamp>,
}

/// One rule, tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The rule.
    pub rule: Rule,
    /// What it asks, with the numbers put in.
    pub test: String,
    /// Whether it held.
    pub held: bool,
    /// Whether it decided: the first that held.
    pub decided: bool,
    /// Whether what it says was seen, or is concluded.
    pub basis: Basis,
    /// What it rests on.
    pub evidence: Vec<String>,
}

/// The verdict on what is known, at `now_ms`.
pub fn decide(known: &Known, windows: Windows, now_ms: i64) -> Verdict {
    let case = Case { known, windows, now_ms };
    case.verdict(case.deciding())
}

/// Every rule with its test: the one that decided is the one [`decide`] names.
pub fn explain(known: &Known, windows: Windows, now_ms: i64) -> Vec<Tried> {
    let case = Case { known, windows, now_ms };
    let deciding = case.deciding();
    let tried = |rule: Rule| Tried {
        rule,
        test: case.test(rule),
        held: case.holds(rule),
        decided: rule == deciding,
        basis: rule.basis(),
        evidence: case.evidence(rule),
    };
    Rule::ALL.into_iter().map(tried).collect()
}

impl End {
    /// Nothing that came later revokes it.
    ///
    /// A marker stands behind all own activity, whatever its stamp says: position revokes it, and
    /// the adapter has seen to that. Any other end is revoked by time: by what is stamped after it
    /// was observed, for until then whoever has left may have written.
    pub fn stands(&self, known: &Known) -> bool {
        let own = known.own_activity_ms;
        let at = if self.ending.is_marker() {
            self.at_ms.max(own)
        } else {
            self.at_ms.max(self.observed_ms).or(own)
        };
        let Some(at) = at else { return true };
        let later = |activity: Option<i64>, slack: i64| {
            activity.is_some_and(|activity| activity > at.saturating_add(slack))
        };
        !later(own, END_SLACK_MS) && !later(known.child_activity_ms, CHILD_SLACK_MS)
    }

    fn phrase(&self) -> String {
        let word = self.ending.word();
        match self.at_ms {
            Some(at) if self.ending.is_marker() && !self.ending.is_exact() => {
                format!("{word}, about {}", moment(at))
            }
            Some(at) if !self.ending.is_exact() => {
                let found = self.observed_ms.map(moment);
                let found = found.map_or_else(String::new, |at| format!(", found out {at}"));
                let last = match self.ending {
                    Ending::CommandDone => "last active",
                    Ending::Unloaded => "last seen loaded",
                    Ending::EndedByModel
                    | Ending::SessionEndHook
                    | Ending::ChildExited
                    | Ending::CostState
                    | Ending::LaterCostState
                    | Ending::ContinuedIn
                    | Ending::ProcessGone
                    | Ending::RegistryMoved => "last seen alive",
                };
                format!("{word}, {last} {}{found}", moment(at))
            }
            Some(at) => format!("{word} {}", moment(at)),
            None => word.to_owned(),
        }
    }
}

/// The arguments of a verdict, together.
struct Case<'a> {
    known: &'a Known,
    windows: Windows,
    now_ms: i64,
}

impl Case<'_> {
    fn deciding(&self) -> Rule {
        Rule::ALL.into_iter().find(|rule| self.holds(*rule)).unwrap_or(Rule::Silence)
    }

    fn holds(&self, rule: Rule) -> bool {
        match rule {
            Rule::EndEvidence => self.standing_end().is_some(),
            Rule::LiveWindow => self.silence_ms() <= self.windows.live_ms,
            Rule::EndedWindow => {
                self.silence_ms() <= self.windows.ended_ms || self.known.holder.keeps_idle()
            }
            Rule::Silence => true,
        }
    }

    fn silence_ms(&self) -> i64 {
        self.now_ms.saturating_sub(self.known.sign_of_life_ms)
    }

    /// The most exact end that nothing revokes, no live process vetoes and no look contradicts: what
    /// a look saw alive after an exit had not ended yet, and its end is when it was last seen.
    fn standing_end(&self) -> Option<&End> {
        let held = self.known.holder.pid().is_some();
        let good = |end: &&End| end.stands(self.known) && (!held || end.ending.outlives_a_holder());
        let standing = || self.known.ends.iter().filter(good);
        let looks = standing().filter(|end| end.ending.is_last_sight());
        let alive_ms = looks.filter_map(|end| end.at_ms).max();
        let before_a_look = |end: &&End| {
            let at_ms = end.at_ms.or(self.known.own_activity_ms);
            let later = at_ms
                .zip(alive_ms)
                .is_some_and(|(at, alive)| alive.saturating_sub(at) > END_SLACK_MS);
            later && !end.ending.is_last_sight() && !end.ending.outlives_a_holder()
        };
        standing()
            .filter(|end| !before_a_look(end))
            .min_by_key(|end| (end.ending, Reverse(end.at_ms)))
    }

    fn verdict(&self, rule: Rule) -> Verdict {
        let sign = self.known.sign_of_life_ms;
        let past = |window: i64| Some(sign.saturating_add(window).saturating_add(1));
        let (status, reason, until_ms) = match rule {
            Rule::EndEvidence => (Status::Completed, reason::COMPLETED_EXITED, None),
            Rule::LiveWindow => {
                (Status::Running, self.running_reason(), past(self.windows.live_ms))
            }
            Rule::EndedWindow => (Status::Idle, reason::IDLE_SILENCE, past(self.windows.ended_ms)),
            Rule::Silence => (Status::Completed, reason::COMPLETED_SILENCE, None),
        };
        Verdict {
            status,
            reason,
            summary: self.summary(rule),
            basis: rule.basis(),
            rule,
            evidence: self.evidence(rule),
            until_ms,
            end: self.end(rule),
        }
    }

    /// A process kept it running, or its own records did.
    fn running_reason(&self) -> &'static str {
        let quiet = self.now_ms.saturating_sub(self.known.last_activity_ms);
        if quiet > self.windows.live_ms {
            reason::RUNNING_PROCESS
        } else {
            reason::RUNNING_ACTIVITY
        }
    }

    /// Every end lies between the last activity and the moment it was observed at.
    fn end(&self, rule: Rule) -> Option<EndStamp> {
        let last = self.known.last_activity_ms;
        match rule {
            Rule::EndEvidence => {
                let end = self.standing_end()?;
                let at_ms = end.at_ms.unwrap_or(last).min(self.now_ms).max(last);
                let approximate = !end.ending.is_exact() || end.at_ms.is_none();
                Some(EndStamp { at_ms, approximate, duration_ms: None })
            }
            Rule::Silence => Some(EndStamp { at_ms: last, approximate: true, duration_ms: None }),
            Rule::LiveWindow | Rule::EndedWindow => None,
        }
    }

    fn silence_words(&self) -> String {
        span_against(self.silence_ms(), &[self.windows.live_ms, self.windows.ended_ms])
    }

    fn summary(&self, rule: Rule) -> String {
        let silence = self.silence_words();
        let live = span(self.windows.live_ms);
        let ended = span(self.windows.ended_ms);
        match rule {
            Rule::EndEvidence => {
                let phrase = self.standing_end().map_or_else(String::new, End::phrase);
                format!("ended: {phrase}")
            }
            Rule::LiveWindow if self.running_reason() == reason::RUNNING_PROCESS => {
                format!("a process worked on it {silence} ago, within the live window of {live}")
            }
            Rule::LiveWindow => format!("active {silence} ago, within the live window of {live}"),
            Rule::EndedWindow if self.silence_ms() <= self.windows.ended_ms => {
                format!("silent for {silence}, longer than the live window of {live}")
            }
            Rule::EndedWindow => format!("silent for {silence}, but a live process holds it"),
            Rule::Silence => {
                format!("silent for {silence}, longer than the ended window of {ended}")
            }
        }
    }

    fn test(&self, rule: Rule) -> String {
        let silence = self.silence_words();
        match rule {
            Rule::EndEvidence => "end evidence stands and no live process holds it".to_owned(),
            Rule::LiveWindow => {
                format!("silence {silence} ≤ live window {}", span(self.windows.live_ms))
            }
            Rule::EndedWindow => format!(
                "silence {silence} ≤ ended window {}, or a dedicated live process holds it",
                span(self.windows.ended_ms)
            ),
            Rule::Silence => "otherwise".to_owned(),
        }
    }

    fn evidence(&self, rule: Rule) -> Vec<String> {
        let known = self.known;
        let mut lines = Vec::new();
        match rule {
            Rule::EndEvidence => {
                lines.extend(known.ends.iter().map(|end| {
                    let revoked =
                        if end.stands(known) { "" } else { ", revoked by later activity" };
                    format!("{}{revoked}", end.phrase())
                }));
            }
            Rule::LiveWindow | Rule::EndedWindow | Rule::Silence => {
                lines.push(format!("last activity {}", moment(known.last_activity_ms)));
                if known.sign_of_life_ms != known.last_activity_ms {
                    lines.push(format!("sign of life {}", moment(known.sign_of_life_ms)));
                }
            }
        }
        match known.holder {
            Holder::Dedicated { pid } => lines.push(format!("held by pid {pid}")),
            Holder::Shared { pid } => lines.push(format!("loaded by pid {pid}")),
            Holder::Nobody => lines.push("no process has it open".to_owned()),
            Holder::Unknown => {}
        }
        lines.extend(known.seen.iter().cloned());
        lines
    }
}

#[cfg(test)]
mod tests;
