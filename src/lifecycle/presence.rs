//! What the stored observations of one session say together: who has it open, what its processes
//! wait for, whether a compaction runs.
//!
//! Those who look at processes decide what a process is to a session and store one word for it;
//! here the words of all of them become one answer. The reconciler asks right after a look. A
//! surface may ask later, in another process, on another machine: what it may still believe is its
//! [`Trust`]. A hook is an event, not a state: it stands until something later speaks against it.

use serde::Deserialize;

use super::decide::{END_SLACK_MS, Holder};
use super::moment;
use crate::store::evidence::Evidence;

/// Where somebody stands who reads observations: of these another's pids are meaningless.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Here {
    host: String,
    boot_id: Option<String>,
    pid_ns: Option<u64>,
}

impl Here {
    /// From the scope of an observer (JSON).
    pub fn parse(scope: &str) -> Option<Self> {
        serde_json::from_str(scope).ok()
    }

    fn is_host_of(&self, other: &Self) -> bool {
        !self.host.is_empty() && self.host == other.host
    }

    fn sees_pids_of(&self, other: &Self) -> bool {
        let known = self.boot_id.is_some() && self.pid_ns.is_some();
        known
            && self.is_host_of(other)
            && (&self.boot_id, self.pid_ns) == (&other.boot_id, other.pid_ns)
    }
}

/// How far observations are believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust<'a> {
    /// They were made just now, by whoever asks.
    Fresh,
    /// They are the last complete look's, made not long ago; they hold for whoever stands where
    /// they were made.
    Standing(&'a Here),
    /// Nobody has looked for a while, or not from here.
    Stale,
}

impl Trust<'_> {
    fn believes_alive(self, row: &Evidence) -> bool {
        match self {
            Self::Fresh => true,
            Self::Standing(here) => {
                Here::parse(&row.scope).is_some_and(|there| here.sees_pids_of(&there))
            }
            Self::Stale => false,
        }
    }

    /// What is over stays over, on this host.
    fn believes_gone(self, row: &Evidence) -> bool {
        match self {
            Self::Fresh => true,
            Self::Standing(here) => {
                Here::parse(&row.scope).is_some_and(|there| here.is_host_of(&there))
            }
            Self::Stale => false,
        }
    }
}

/// What a process is to a session, by the word that is stored of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It named the session, and was never seen alive on it.
    Disproved,
    /// It is over, or went on to another session.
    Left,
    /// Alive or not, nothing follows for this session.
    Unclear,
    /// Alive, with other sessions too.
    Shared,
    /// Alive, and on this session alone.
    Dedicated,
}

fn fate(row: &Evidence, trust: Trust<'_>) -> Option<Fate> {
    if !matches!(row.source.as_str(), "registry" | "lock" | "run") {
        return None;
    }
    Some(match row.says.as_str() {
        "dedicated" if trust.believes_alive(row) => Fate::Dedicated,
        "shared" if trust.believes_alive(row) => Fate::Shared,
        "gone" | "moved" | "exited" if trust.believes_gone(row) => Fate::Left,
        "disproved" if trust.believes_gone(row) => Fate::Disproved,
        _ => Fate::Unclear,
    })
}

/// Whether the process of this row has left the session.
pub(super) fn has_left(row: &Evidence) -> bool {
    fate(row, Trust::Fresh) == Some(Fate::Left)
}

/// Whether the process of this row has the session open.
pub(super) fn holds(row: &Evidence) -> bool {
    fate(row, Trust::Fresh) >= Some(Fate::Shared)
}

/// What a live process of Claude's registry says it does, the word that counts first last: of
/// several processes on one session one that waits is what a human must know, then one that works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Word {
    /// Nothing to do.
    Idle,
    /// The turn is over, a shell behind it still runs.
    Shell,
    /// At work.
    Busy,
    /// It asks the user for something.
    Waiting,
}

impl Word {
    /// A menu that the person opened (`dialog open`) asks nobody, and says nothing of the work.
    fn of(row: &Evidence) -> Option<Self> {
        match row.state.as_deref()? {
            "idle" => Some(Self::Idle),
            "shell" => Some(Self::Shell),
            "busy" => Some(Self::Busy),
            "waiting" if row.waits_for.as_deref() != Some("dialog open") => Some(Self::Waiting),
            _ => None,
        }
    }
}

/// The word that counts, of the processes that have one session open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// The word.
    pub word: Word,
    /// Since when, ms.
    pub since_ms: Option<i64>,
    /// More than one process has the session open.
    pub one_of_several: bool,
}

/// What somebody waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// In its own words: `permission prompt`, `input needed`; of a hook the tool, or the kind of
    /// notification.
    pub what: Option<String>,
    /// Since when, ms.
    pub since_ms: Option<i64>,
    /// Who says so: `registry` or `hook`.
    pub source: &'static str,
}

/// A compaction that an agent's hook has announced, and nothing has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacting {
    /// When it was announced, ms.
    pub since_ms: i64,
    /// `manual`, `auto`.
    pub trigger: Option<String>,
    /// The process that says it is busy meanwhile.
    pub pid: Option<u32>,
}

/// The process to show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shown {
    /// Its pid.
    pub pid: Option<u32>,
    /// What it says of itself, if that is believed.
    pub state: Option<String>,
    /// `registry`, `lock`, `run`.
    pub source: &'static str,
}

/// What the observations say together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Presence {
    /// Verified; disproved; unknown.
    pub alive: Option<bool>,
    /// The process to show.
    pub shown: Option<Shown>,
    /// Who has it open.
    pub holder: Holder,
    /// What a live process says it does.
    pub said: Option<Said>,
    /// A live process or a hook says that the user is wanted.
    pub wait: Option<Wait>,
    /// A compaction runs.
    pub compacting: Option<Compacting>,
}

/// What the transcript says that may answer a hook; its stamps and a hook's are of one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answers {
    /// Newest own activity, ms: a late record of what came before counts for nothing, so some slack
    /// is left.
    pub activity_ms: Option<i64>,
    /// When nothing was left to ask for, ms: the end of a turn, or the result of the last open call.
    pub settled_ms: Option<i64>,
}

/// What the observations of a session say together. `in_registry`: its agent keeps a registry of
/// processes, which has the word over a hook.
pub fn presence(
    rows: &[Evidence],
    trust: Trust<'_>,
    answers: Answers,
    in_registry: bool,
) -> Presence {
    let seen: Vec<(Fate, &Evidence)> =
        rows.iter().filter_map(|row| Some((fate(row, trust)?, row))).collect();
    let Some(best) = seen.iter().map(|(fate, _)| *fate).max() else {
        let hooks = Hooks { rows, answers, registry: None };
        let (wait, compacting) = (hooks.wait(), hooks.compacting(in_registry));
        return Presence { wait, compacting, ..Presence::default() };
    };
    let unclear = seen.iter().any(|(fate, _)| *fate == Fate::Unclear);
    let holds = best >= Fate::Shared;
    let alive = if holds { Some(true) } else { (!unclear).then_some(false) };
    let registry = speaker(&seen);
    let hooks = Hooks { rows, answers, registry };
    let said = registry.and_then(|row| {
        let one_of_several = speakers(&seen).nth(1).is_some();
        Some(Said { word: Word::of(row)?, since_ms: row.state_ms, one_of_several })
    });
    let waits = registry.filter(|row| Word::of(row) == Some(Word::Waiting));
    let wait = waits.map(|row| Wait {
        what: row.waits_for.clone(),
        since_ms: row.state_ms,
        source: "registry",
    });
    let compacting = if alive == Some(false) { None } else { hooks.compacting(in_registry) };
    Presence {
        alive,
        shown: shown(&seen),
        holder: holder(&seen, best, unclear),
        said,
        wait: wait.or_else(|| hooks.wait()),
        compacting,
    }
}

/// Live processes of the registry that say what they do.
fn speakers<'e>(seen: &[(Fate, &'e Evidence)]) -> impl Iterator<Item = &'e Evidence> {
    let live = seen.iter().filter(|(fate, _)| *fate >= Fate::Shared).map(|(_, row)| *row);
    live.filter(|row| row.source == "registry" && row.state.is_some())
}

/// The one whose word counts.
fn speaker<'e>(seen: &[(Fate, &'e Evidence)]) -> Option<&'e Evidence> {
    speakers(seen).max_by_key(|row| (Word::of(row), row.state_ms))
}

/// The process to show: one that holds the session before all others, of those by its word.
fn shown(seen: &[(Fate, &Evidence)]) -> Option<Shown> {
    let holds = |fate: Fate| fate >= Fate::Shared;
    let weight = |(fate, row): &&(Fate, &Evidence)| {
        (holds(*fate), Word::of(row).filter(|_| holds(*fate)), *fate, row.started_ms)
    };
    let (fate, row) = seen.iter().max_by_key(weight)?;
    Some(Shown {
        pid: row.pid,
        state: row.state.clone().filter(|_| holds(*fate)),
        source: source_word(&row.source),
    })
}

fn holder(seen: &[(Fate, &Evidence)], best: Fate, unclear: bool) -> Holder {
    let of_best = seen.iter().filter(|(fate, _)| *fate == best);
    let row = of_best.max_by_key(|(_, row)| row.started_ms);
    let pid = row.and_then(|(_, row)| row.pid).unwrap_or_default();
    match best {
        Fate::Dedicated => Holder::Dedicated { pid },
        Fate::Shared => Holder::Shared { pid },
        Fate::Left | Fate::Disproved if !unclear => Holder::Nobody,
        Fate::Left | Fate::Disproved | Fate::Unclear => Holder::Unknown,
    }
}

fn source_word(source: &str) -> &'static str {
    match source {
        "registry" => "registry",
        "lock" => "lock",
        "run" => "run",
        _ => "hook",
    }
}

/// The events that hooks have left.
struct Hooks<'a> {
    rows: &'a [Evidence],
    answers: Answers,
    /// A live process of the registry that says what it does.
    registry: Option<&'a Evidence>,
}

impl Hooks<'_> {
    fn events(&self) -> impl Iterator<Item = &Evidence> {
        self.rows.iter().filter(|row| row.source == "hook")
    }

    /// When an event of these kinds was last, ms.
    fn last(&self, kinds: &[&str]) -> Option<i64> {
        self.events().filter(|row| kinds.contains(&row.says.as_str())).map(|row| row.last_ms).max()
    }

    /// Nothing that came later says that it is over.
    fn stands(&self, at_ms: i64, ended_by: &[&str]) -> bool {
        let Answers { activity_ms, settled_ms } = self.answers;
        let active = activity_ms.is_some_and(|at| at > at_ms.saturating_add(END_SLACK_MS));
        let settled = settled_ms.is_some_and(|at| at > at_ms);
        !active && !settled && self.last(ended_by).is_none_or(|end| end < at_ms)
    }

    fn wait(&self) -> Option<Wait> {
        const OVER: [&str; 7] = [
            "UserPromptSubmit",
            "PostToolUse",
            "PostToolUseFailure",
            "Stop",
            "StopFailure",
            "SessionStart",
            "SessionEnd",
        ];
        let wants = |row: &&Evidence| match row.says.as_str() {
            "PermissionRequest" => true,
            "Notification" => row
                .waits_for
                .as_deref()
                .is_some_and(|kind| kind == "permission_prompt" || kind.starts_with("elicitation")),
            _ => false,
        };
        // Of both kinds the request says for which tool.
        let asked = self.events().filter(wants).max_by_key(|row| row.says == "PermissionRequest");
        let newest = self.events().filter(wants).map(|row| row.last_ms).max()?;
        // The registry is told at once too: what it says since then is newer.
        let gone_on = self.registry.is_some_and(|row| {
            Word::of(row) != Some(Word::Waiting) && row.state_ms.is_some_and(|at| at > newest)
        });
        // It was allowed: what was asked for runs.
        let allowed = self.rows.iter().any(|row| row.source == "child" && row.since_ms >= newest);
        let stands = self.stands(newest, &OVER) && !gone_on && !allowed;
        asked.filter(|_| stands).map(|row| Wait {
            what: row.waits_for.clone(),
            since_ms: Some(row.last_ms),
            source: "hook",
        })
    }

    fn compacting(&self, in_registry: bool) -> Option<Compacting> {
        const OVER: [&str; 5] =
            ["PostCompact", "UserPromptSubmit", "Stop", "SessionStart", "SessionEnd"];
        let begun = self.events().find(|row| row.says == "PreCompact")?;
        let busy = self.registry.filter(|row| row.state.as_deref() == Some("busy"));
        if !self.stands(begun.last_ms, &OVER) || (in_registry && busy.is_none()) {
            return None;
        }
        Some(Compacting {
            since_ms: begun.last_ms,
            trigger: begun.state.clone(),
            pid: busy.and_then(|row| row.pid),
        })
    }
}

/// What was seen of the processes, one sentence each, with when: what a verdict rests on.
pub fn told(rows: &[Evidence]) -> Vec<String> {
    let told = rows.iter().filter(|row| !row.why.is_empty() && row.source != "writer");
    told.map(|row| {
        let state = row.state.as_deref().filter(|_| row.source != "hook");
        let state = state.map_or_else(String::new, |state| format!(", says {state}"));
        let waits = row.waits_for.as_deref().filter(|_| !state.is_empty());
        let waits = waits.map_or_else(String::new, |what| format!(" ({what})"));
        let when = match row.says.as_str() {
            "gone" | "moved" | "unknown" | "unloaded" | "suspect" | "disproved" | "exited" => {
                format!("since {}", moment(row.since_ms))
            }
            "dedicated" | "shared" => format!("since {}", moment(row.first_ms)),
            _ => format!("at {}", moment(row.last_ms)),
        };
        format!("{}{state}{waits} ({}, {when})", row.why, row.source)
    })
    .collect()
}

#[cfg(test)]
mod tests;
