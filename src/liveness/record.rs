//! What is kept of one process on one session from look to look, and what the records of a session
//! say together.
//!
//! A record is the memory that turns two looks into an end: only a process that an earlier look
//! verified on a session can be found gone from it. The shell stores the records of a session as
//! they come and hands them back with the next request; nothing here depends on how.

use serde::{Deserialize, Serialize};

use super::proc::{ProcessId, Run};
use super::registry::Says;
use super::scope::Scope;

/// A record that differs only in when its process was last seen is stored this often, ms.
const STORE_EVERY_MS: i64 = 60_000;

/// How a process came to be known on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Claude's registry.
    Registry,
    /// It holds the session's lock.
    Lock,
    /// The child of `lullwatch run`.
    Run,
}

impl Source {
    /// The word in the store and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Registry => "registry",
            Self::Lock => "lock",
            Self::Run => "run",
        }
    }
}

/// What the newest look says of a process on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// Verified alive, and on no session but this: it vetoes an end and silence.
    Dedicated,
    /// Verified alive, a server with several sessions: it vetoes an end, never silence.
    Shared,
    /// Alive, but what its entry says of this session is doubted: neither holds nor works.
    Suspect,
    /// Alive, and it let go of this session: loaded no more, which by itself is no end.
    Unloaded,
    /// It cannot be told. Never the same as gone.
    Unknown,
    /// A record names a process that is not there, and that no look ever saw: no end.
    Disproved,
    /// An earlier look verified it here, and it is gone.
    Gone,
    /// An earlier look verified it here; it lives on, and went on to another session or, a server,
    /// has unloaded this one.
    Moved,
}

impl Fate {
    /// The word in the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::Dedicated => "dedicated",
            Self::Shared => "shared",
            Self::Suspect => "suspect",
            Self::Unloaded => "unloaded",
            Self::Unknown => "unknown",
            Self::Disproved => "disproved",
            Self::Gone => "gone",
            Self::Moved => "moved",
        }
    }

    /// A live process holds the session: no end evidence counts.
    pub fn holds(self) -> bool {
        match self {
            Self::Dedicated | Self::Shared => true,
            Self::Suspect
            | Self::Unloaded
            | Self::Unknown
            | Self::Disproved
            | Self::Gone
            | Self::Moved => false,
        }
    }

    /// The process has left the session for good: an end, unless another is still there.
    pub fn is_end(self) -> bool {
        match self {
            Self::Gone | Self::Moved => true,
            Self::Dedicated
            | Self::Shared
            | Self::Suspect
            | Self::Unloaded
            | Self::Unknown
            | Self::Disproved => false,
        }
    }
}

/// One process on one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The process.
    pub process: ProcessId,
    /// Its user.
    pub uid: Option<u32>,
    /// How it is known.
    pub source: Source,
    /// What the newest look says.
    pub fate: Fate,
    /// Since when looks have said that, ms.
    pub fate_since_ms: i64,
    /// One sentence that says why.
    pub why: String,
    /// Where it was verified; before that, where it was looked for.
    pub scope: Scope,
    /// When a look first verified it on this session, ms; `None`: never yet.
    pub first_alive_ms: Option<i64>,
    /// When a look last did, ms.
    pub last_alive_ms: Option<i64>,
    /// End of its time on this session, ms: when it was last seen there, so approximate.
    pub ended_ms: Option<i64>,
    /// Since when its entry has named another session while the turn here was not open, ms.
    pub names_other_since_ms: Option<i64>,
    /// When it started, ms.
    pub started_ms: Option<i64>,
    /// What it does, as the scheduler sees it.
    pub run: Option<Run>,
    /// What it says of itself.
    pub says: Option<Says>,
    /// What it waits for.
    pub waiting_for: Option<String>,
    /// When it began to say so, ms.
    pub says_since_ms: Option<i64>,
    /// It said something of itself in any look.
    pub ever_said: bool,
    /// Claude's `entrypoint`.
    pub entrypoint: Option<String>,
    /// It is a server: it loads sessions and unloads them, and lives on.
    #[serde(default)]
    pub server: bool,
}

impl Record {
    /// What tells it from the other records of its session and source: `4242:543621664`.
    pub fn subject(&self) -> String {
        match self.process.start_ticks {
            Some(start) => format!("{}:{start}", self.process.pid),
            None => format!("{}:?", self.process.pid),
        }
    }

    /// An earlier look verified it on this session.
    pub fn was_verified(&self) -> bool {
        self.first_alive_ms.is_some()
    }

    /// The word for what it does: stopped or ended, else what it says of itself.
    pub fn state_word(&self) -> Option<&'static str> {
        match self.run {
            Some(run) if !run.can_work() => Some(run.word()),
            Some(_) | None => self.says.map(Says::word),
        }
    }

    /// Whether it says more than the stored one. When a process was last seen moves with every
    /// look, and alone is worth a write only once a minute.
    pub fn is_news(&self, stored: &Self) -> bool {
        let seen = |record: &Self| record.last_alive_ms.unwrap_or(i64::MIN);
        let stale = seen(self).saturating_sub(seen(stored)) >= STORE_EVERY_MS;
        // Between two looks a process goes from running to sleeping and back all the time.
        let works = |run: Option<Run>| run.is_some_and(Run::can_work);
        let mut alike = stored.clone();
        alike.last_alive_ms = self.last_alive_ms;
        if works(self.run) && works(stored.run) {
            alike.run = self.run;
        }
        stale || alike != *self
    }
}

/// An end that was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// When the last of the processes was last seen on the session, ms; approximate.
    pub ended_ms: i64,
    /// When the end was first observed, ms.
    pub observed_ms: i64,
    /// Sentences that say why.
    pub why: Vec<String>,
}

/// What the records of one session say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing<'r> {
    /// True: verified now; false: a record names a process that is disproved; `None`: unknown.
    pub alive: Option<bool>,
    /// The process to show.
    pub shown: Option<&'r Record>,
    /// A live process holds the session, so that no end evidence counts.
    pub vetoes_end: bool,
    /// And it holds no other, so that silence is no end either.
    pub vetoes_silence: bool,
    /// All processes that were ever verified here have left.
    pub end: Option<End>,
}

/// What the records of one session say together. Two processes: over only when both are gone.
pub fn standing(records: &[Record]) -> Standing<'_> {
    let vetoes_end = records.iter().any(|record| record.fate.holds());
    let vetoes_silence = records.iter().any(|record| record.fate == Fate::Dedicated);
    let unsure = records.iter().any(|record| match record.fate {
        Fate::Unknown | Fate::Suspect | Fate::Unloaded => true,
        Fate::Dedicated | Fate::Shared | Fate::Disproved | Fate::Gone | Fate::Moved => false,
    });
    let alive = match (vetoes_end, unsure || records.is_empty()) {
        (true, _) => Some(true),
        (false, true) => None,
        (false, false) => Some(false),
    };
    Standing {
        alive,
        shown: records.iter().max_by_key(|record| (weight(record.fate), record.started_ms)),
        vetoes_end,
        vetoes_silence,
        end: end(records),
    }
}

fn end(records: &[Record]) -> Option<End> {
    let stays = |record: &Record| match record.fate {
        Fate::Dedicated | Fate::Shared | Fate::Unknown => true,
        // Alive, and it was here once.
        Fate::Suspect | Fate::Unloaded => record.was_verified(),
        Fate::Disproved | Fate::Gone | Fate::Moved => false,
    };
    if records.iter().any(stays) {
        return None;
    }
    let left = || records.iter().filter(|record| record.fate.is_end());
    Some(End {
        ended_ms: left().filter_map(|record| record.ended_ms).max()?,
        observed_ms: left().map(|record| record.fate_since_ms).max()?,
        why: left().map(|record| record.why.clone()).collect(),
    })
}

fn weight(fate: Fate) -> u8 {
    match fate {
        Fate::Dedicated => 7,
        Fate::Shared => 6,
        Fate::Unknown => 5,
        Fate::Suspect => 4,
        Fate::Unloaded => 3,
        Fate::Gone => 2,
        Fate::Moved => 1,
        Fate::Disproved => 0,
    }
}
