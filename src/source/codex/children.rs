//! Sub-agents of the second kind (0.171): the task in a child's mail, and what the parent says of it.
//!
//! The task comes as mail, mostly encrypted; its words are then in the parent's call alone. Under the
//! call's id the program tells which thread it started, and later that this one is done.

use serde::{Deserialize, Serialize};

use super::super::json::{Shape, Value};
use super::super::{Outcome, Returned, SessionKey, Title, TitleKind, What};
use super::text::{capped, word};
use super::{Entry, ID_CHARS, NAME_CHARS, State};
use crate::source::PREVIEW_CHARS;

/// Calls to start a sub-agent remembered until the program tells of the thread.
const SPAWNS_MAX: usize = 8;
/// Characters read of a mail; its head is short.
const MAIL_CHARS: usize = 2000;

/// What is carried of a thread's place among agents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Children {
    /// The thread is a sub-agent itself.
    pub(super) is_child: bool,
    /// Its own path among the agents.
    pub(super) path: Option<String>,
    /// Calls that start a sub-agent, and the task in each.
    spawns: Vec<(String, String)>,
}

/// Mail between agents, read.
struct Mail {
    /// `NEW_TASK` and the like, where it has a head.
    kind: Option<String>,
    /// What it asks for; the name of the task where that is encrypted.
    words: Option<String>,
}

impl Mail {
    fn read(content: Option<Value<'_>>) -> Self {
        let parts = content.into_iter().flat_map(Value::items).filter_map(|part| part.get("text"));
        let text = parts.chain(content).find(|text| text.shape() == Shape::String);
        let text = text.and_then(|text| text.text_up_to(MAIL_CHARS)).unwrap_or_default();
        let (head, body) = text.split_once("Payload:").unwrap_or((&text, ""));
        let field = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let kind = field("Message Type:");
        let body = if kind.is_some() { body } else { &text };
        let words: String = body.trim().chars().take(PREVIEW_CHARS).collect();
        let task = field("Task name:").filter(|_| kind.is_some());
        Self { kind, words: Some(words).filter(|words| !words.is_empty()).or(task) }
    }
}

impl State {
    /// The task that a mail gives this sub-agent; `None`: it is other mail.
    pub(super) fn task(
        &self,
        content: Option<Value<'_>>,
        recipient: Option<Value<'_>>,
    ) -> Option<String> {
        let recipient = capped(recipient, NAME_CHARS);
        let own =
            self.children.path.is_none() || recipient.is_none() || recipient == self.children.path;
        if !self.children.is_child || !own {
            return None;
        }
        let mail = Mail::read(content);
        let asks = match mail.kind.as_deref() {
            Some(kind) => kind == "NEW_TASK",
            None => !self.turns.is_asked_for(),
        };
        mail.words.filter(|_| asks)
    }

    /// A call that starts a sub-agent: its task, until the thread is known.
    pub(super) fn spawns(&mut self, call: Option<&String>, arguments: Option<Value<'_>>) {
        let (Some(call), Some(text)) = (call, arguments.and_then(Value::text)) else { return };
        let object = Value::new(text.as_bytes());
        let [message, prompt, name] = object.pick(["message", "prompt", "task_name"]);
        let task = [message, prompt, name].into_iter().find_map(|text| capped(text, PREVIEW_CHARS));
        let Some(task) = task.filter(|task| !task.trim().is_empty()) else { return };
        if self.children.spawns.len() >= SPAWNS_MAX {
            self.children.spawns.remove(0);
        }
        self.children.spawns.push((call.clone(), task));
    }

    /// `SubAgentActivity`: a thread was started, or is done.
    pub(super) fn sub_agent(&mut self, item: Value<'_>, entry: &mut Entry<'_>) {
        let [id, kind, thread, path] = item.pick(["id", "kind", "agent_thread_id", "agent_path"]);
        let (Some(thread), Some(own)) = (capped(thread, ID_CHARS), &self.key) else { return };
        let to = SessionKey::child(thread, own.native.clone());
        match word(kind) {
            "started" => {
                let call = capped(id, ID_CHARS);
                let at = self.children.spawns.iter().position(|(id, _)| Some(id) == call.as_ref());
                let task = at.map(|at| self.children.spawns.remove(at).1);
                if let Some(text) = task.or_else(|| capped(path, NAME_CHARS)) {
                    let kind = TitleKind::Description;
                    entry.say(What::Title(Title { kind, to: Some(to), text }));
                }
            }
            "completed" => {
                entry.say(What::Returned(Returned { to, outcome: Outcome::Completed }));
            }
            "interrupted" => {
                entry.say(What::Returned(Returned { to, outcome: Outcome::Aborted }));
            }
            _ => {}
        }
    }
}
