//! Turns: which are open, what they held, and how each ends (design section 2, *Turns*).
//!
//! A review runs as a turn inside a turn, so ids interleave; a killed process leaves a turn open
//! for ever, and the next prompt shows that it is dead. Rollouts before 0.102 have no task events:
//! there a prompt opens, and an answer while no call is unanswered closes.

use serde::{Deserialize, Serialize};

use super::super::{Outcome, TurnMark, What};
use super::Entry;

/// Turns kept open at once; nesting goes two deep.
const TURNS_MAX: usize = 16;
/// Unanswered calls kept, in files without task events.
const CALLS_MAX: usize = 64;

/// A turn under way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Open {
    id: Option<String>,
    /// When it started; ms.
    started_ms: Option<i64>,
    /// A human asked for it.
    prompt: bool,
    /// It has an answer, a call or a compaction.
    work: bool,
    /// An error event told of it.
    error: bool,
    by: By,
    /// Whether it is one in plan mode, where its start says so.
    planning: Option<bool>,
    /// The last plan in it.
    plan: Option<String>,
}

/// Who began a turn, by its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) enum By {
    /// Somebody, or the client does not say so of any turn.
    #[default]
    Anybody,
    /// It has a `root_turn_id` and no `turn_attribution`: from 0.171 on, a manual compaction.
    Nobody,
}

/// What a `task_started` says of its turn.
#[derive(Debug, Default)]
pub(super) struct Start {
    pub(super) id: Option<String>,
    /// ms.
    pub(super) at_ms: Option<i64>,
    pub(super) by: By,
    /// `collaboration_mode_kind`: whether it is `plan`.
    pub(super) planning: Option<bool>,
}

/// What is carried of the turns of one rollout.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Turns {
    open: Vec<Open>,
    /// The turn that began last, under way or not.
    newest: Option<String>,
    /// The file has task events.
    tasks: bool,
    /// A prompt that came before the start of its turn.
    early_prompt: bool,
    /// Unanswered calls; only without task events.
    calls: Vec<String>,
}

/// Whether the turn at hand holds anything besides a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// No turn is open.
    Outside,
    /// Nothing yet that anybody asked for; it started then.
    Empty(Option<i64>),
    /// A prompt or work.
    Busy,
}

/// What a `task_complete` carries.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Code and text.
    pub(super) error: Option<(String, String)>,
    /// It repeats a last answer.
    pub(super) answer: bool,
}

impl Turns {
    /// `task_started`.
    pub(super) fn start(&mut self, start: Start, entry: &mut Entry<'_>) {
        let Start { id, at_ms, by, planning } = start;
        let mut prompt = std::mem::take(&mut self.early_prompt);
        let mut began = false;
        self.newest.clone_from(&id);
        if !self.tasks {
            began = self.open.pop().is_some_and(|turn| turn.prompt);
            prompt |= began;
            self.tasks = true;
            self.open.clear();
            self.calls.clear();
        }
        if id.is_none() || self.open.iter().all(|turn| turn.id != id) {
            if self.open.len() >= TURNS_MAX {
                self.open.remove(0);
            }
            if !began {
                entry.say(What::TurnBegan { ordinal: entry.ordinal, users: prompt });
            }
            self.open.push(Open { id, started_ms: at_ms, prompt, by, planning, ..Open::default() });
        }
        entry.say(What::Turn(TurnMark::Open));
    }

    /// The program's own record of a prompt: no turn before this one can still be under way.
    pub(super) fn prompt_event(&mut self, entry: &mut Entry<'_>) {
        self.prompt(entry);
        if let Some(current) = self.open.pop() {
            if !self.open.is_empty() {
                self.open.clear();
                entry.say(What::CallsVoid);
            }
            self.open.push(current);
        }
    }

    /// A prompt, from either side.
    pub(super) fn prompt(&mut self, entry: &mut Entry<'_>) {
        if !self.calls.is_empty() {
            self.calls.clear();
            entry.say(What::CallsVoid);
        }
        match self.open.last_mut() {
            Some(turn) => {
                if !turn.prompt {
                    entry.say(What::TurnIsUsers);
                }
                turn.prompt = true;
            }
            None if self.tasks => self.early_prompt = true,
            None => {
                self.open.push(Open { prompt: true, ..Open::default() });
                entry.say(What::TurnBegan { ordinal: entry.ordinal, users: true });
                entry.say(What::Turn(TurnMark::Open));
            }
        }
    }

    /// An answer.
    pub(super) fn answer(&mut self, entry: &mut Entry<'_>) {
        self.work();
        if !self.tasks && self.calls.is_empty() && self.open.pop().is_some() {
            entry.say(What::Turn(TurnMark::Close(Outcome::Completed)));
        }
    }

    /// The turn under way has a prompt.
    pub(super) fn is_asked_for(&self) -> bool {
        self.early_prompt || self.open.last().is_some_and(|turn| turn.prompt)
    }

    /// The id of the turn that began last.
    pub(super) fn newest(&self) -> Option<String> {
        self.newest.clone()
    }

    /// A `Plan` item, which the program makes in plan mode only.
    pub(super) fn plan(&mut self, text: String) {
        if let Some(turn) = self.open.last_mut().filter(|turn| turn.planning != Some(false)) {
            turn.plan = Some(text);
        }
    }

    /// A turn in plan mode is under way: what is tagged as a plan in it is one.
    pub(super) fn is_planning(&self) -> bool {
        self.open.last().is_some_and(|turn| turn.planning == Some(true))
    }

    /// A call, with its id if a result will follow.
    pub(super) fn call(&mut self, id: Option<&String>, entry: &mut Entry<'_>) {
        if !self.tasks {
            if self.open.is_empty() {
                self.open.push(Open::default());
                entry.say(What::Turn(TurnMark::Open));
            }
            if let Some(id) = id.filter(|id| !self.calls.contains(id)) {
                if self.calls.len() >= CALLS_MAX {
                    self.calls.remove(0);
                }
                self.calls.push(id.clone());
            }
        }
        self.work();
    }

    /// The result of a call.
    pub(super) fn result(&mut self, id: &str) {
        self.calls.retain(|call| call != id);
    }

    /// A compaction, and what its turn held before.
    pub(super) fn compaction(&mut self) -> Room {
        let room = match self.open.last() {
            None => Room::Outside,
            Some(turn) if turn.prompt || (turn.work && turn.by == By::Anybody) => Room::Busy,
            Some(turn) => Room::Empty(turn.started_ms),
        };
        self.work();
        room
    }

    /// An error event; with task events the turn's own end follows.
    pub(super) fn error(&mut self, entry: &mut Entry<'_>) {
        if self.tasks {
            if let Some(turn) = self.open.last_mut() {
                turn.error = true;
            }
        } else if self.open.pop().is_some() {
            self.calls.clear();
            entry.say(What::Turn(TurnMark::Close(Outcome::Error)));
        }
    }

    /// `task_complete`. An explicit error is content enough to be kept.
    pub(super) fn complete(&mut self, id: Option<&str>, ending: Ending, entry: &mut Entry<'_>) {
        let turn = self.take(id);
        let worked = turn.work || ending.answer;
        let outcome = match ending.error {
            Some((code, text)) => {
                entry.say(What::Error { code, text });
                Some(Outcome::Error)
            }
            None if worked => Some(Outcome::Completed),
            None if turn.prompt => {
                if !turn.error {
                    let text = "the turn ended without an answer".to_owned();
                    entry.say(What::Error { code: "error".to_owned(), text });
                }
                Some(Outcome::Error)
            }
            None => None,
        };
        self.close(&turn, outcome, entry);
    }

    /// `turn_aborted`.
    pub(super) fn abort(&mut self, id: Option<&str>, entry: &mut Entry<'_>) {
        let turn = self.take(id);
        let outcome = (turn.prompt || turn.work).then_some(Outcome::Aborted);
        self.close(&turn, outcome, entry);
    }

    /// The last turns are taken back; none of them is under way any more.
    pub(super) fn rolled_back(&mut self) {
        self.open.clear();
        self.calls.clear();
        self.early_prompt = false;
    }

    fn work(&mut self) {
        if let Some(turn) = self.open.last_mut() {
            turn.work = true;
        }
    }

    /// The turn of that id; an unknown or missing one means the current turn.
    fn take(&mut self, id: Option<&str>) -> Open {
        self.tasks = true;
        self.calls.clear();
        let known = self.open.iter().position(|turn| id.is_some() && turn.id.as_deref() == id);
        match known {
            Some(at) => self.open.remove(at),
            None => self.open.pop().unwrap_or_default(),
        }
    }

    /// While a turn around it goes on, a turn's end is no end; what it held is the outer turn's.
    fn close(&mut self, turn: &Open, outcome: Option<Outcome>, entry: &mut Entry<'_>) {
        if let Some(outer) = self.open.last_mut() {
            outer.work |= turn.work;
            outer.prompt |= turn.prompt;
            return;
        }
        entry.say(What::Turn(match outcome {
            Some(outcome) => TurnMark::Close(outcome),
            None => TurnMark::CloseEmpty,
        }));
        if outcome == Some(Outcome::Completed)
            && let Some(plan) = &turn.plan
        {
            entry.say(What::Plan(plan.clone()));
        }
    }
}
