//! Work that goes on behind a conversation, folded from what its records say of it.

use serde::{Deserialize, Serialize};

use super::super::Background;

/// Tasks of each kind remembered; older ones are forgotten first.
const OPEN_MAX: usize = 64;

/// What goes on behind a conversation, as far as it says so itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Behind {
    /// Shells, oldest first.
    pub shells: Vec<String>,
    /// Sub-agents and workflows that we saw begin, oldest first.
    pub agents: Vec<String>,
    /// How many of those the last end of a turn counted and nothing has ended since.
    pub left: u64,
    /// Monitors that are armed, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub monitors: Vec<Monitor>,
    /// Timers that are set, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<Timer>,
    /// When the session wakes itself, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wakeup_ms: Option<i64>,
}

/// Something that the session is told the events of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitor {
    /// Its id.
    pub id: String,
    /// When it ends by itself, ms; `None`: not before the session.
    pub until_ms: Option<i64>,
}

/// A prompt that is to come at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    /// Its id.
    pub id: String,
    /// It goes off again and again; else once.
    pub recurring: bool,
}

/// How much goes on behind a conversation at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amounts {
    /// Shells at work.
    pub shells: u64,
    /// Sub-agents and workflows at work.
    pub agents: u64,
    /// Monitors armed.
    pub monitors: u64,
    /// Timers set, a wake-up of its own included.
    pub timers: u64,
}

impl Behind {
    /// Nothing does.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What of it there is at a moment: a monitor whose time is up and a wake-up that has passed are
    /// over, although nothing says so.
    pub fn amounts(&self, now_ms: i64) -> Amounts {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let armed = |monitor: &&Monitor| monitor.until_ms.is_none_or(|until| until >= now_ms);
        let wakes = self.wakeup_ms.is_some_and(|at| at >= now_ms);
        Amounts {
            shells: count(self.shells.len()),
            agents: self.others(),
            monitors: count(self.monitors.iter().filter(armed).count()),
            timers: count(self.timers.len() + usize::from(wakes)),
        }
    }

    /// Sub-agents and workflows at work.
    pub fn others(&self) -> u64 {
        self.left.max(u64::try_from(self.agents.len()).unwrap_or(u64::MAX))
    }

    /// Takes in what one record says.
    pub(super) fn fold(&mut self, said: &Background) {
        match said {
            Background::Shell(id) => add_last(&mut self.shells, id),
            Background::Agent(id) => add_last(&mut self.agents, id),
            Background::Monitor { id, until_ms } => {
                self.monitors.retain(|open| open.id != *id);
                keep_last(&mut self.monitors, Monitor { id: id.clone(), until_ms: *until_ms });
            }
            Background::Timer { id, recurring } => {
                self.timers.retain(|set| set.id != *id);
                keep_last(&mut self.timers, Timer { id: id.clone(), recurring: *recurring });
            }
            Background::Wakeup(at_ms) => self.wakeup_ms = *at_ms,
            Background::Fired(id) => self.timers.retain(|set| set.id != *id || set.recurring),
            Background::Unset(id) => self.timers.retain(|set| set.id != *id),
            Background::Over(id) => {
                let before = self.shells.len() + self.monitors.len();
                self.shells.retain(|open| open != id);
                self.monitors.retain(|open| open.id != *id);
                self.agents.retain(|open| open != id);
                let other = before == self.shells.len() + self.monitors.len();
                self.left -= u64::from(other && self.left > 0);
            }
            Background::Left(count) => {
                self.left = *count;
                // The count is whole, our list may not be: of what we saw begin the newest stay.
                let known = usize::try_from(*count).unwrap_or(usize::MAX).min(self.agents.len());
                self.agents.drain(..self.agents.len() - known);
            }
        }
    }
}

fn add_last(list: &mut Vec<String>, id: &str) {
    list.retain(|open| open != id);
    keep_last(list, id.to_owned());
}

fn keep_last<T>(list: &mut Vec<T>, item: T) {
    if list.len() >= OPEN_MAX {
        list.remove(0);
    }
    list.push(item);
}
