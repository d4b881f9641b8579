//! What an agent's hooks say: the events, and the inbox in which they wait for the writer.
//!
//! `lullwatch hook EVENT` runs inside the agent's turn. It must be quick, must never fail, and must
//! print nothing, for an agent reads what a hook prints. So it never opens the store: it leaves one
//! small file in the inbox of that store, written beside and renamed, and the writer absorbs it. Of the
//! hook's JSON only what names things is kept, nothing that was said or run.
//! Payloads: formats/claude-and-codex.md sections 3.4 and 3.5.

mod config;
mod inbox;
mod payload;

pub use config::{Settings, print_config};
pub use inbox::{Inbox, Lost, Refused, count_lost, forget_lost, leave, lost, read_inbox};
pub use payload::parse;

use std::io::Read;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::proc::Proc;
use super::scope::Scope;

/// The hook gives up after this long. It needs some milliseconds; but many may come at once on a
/// busy machine, and an agent gives its hooks 1.5 s at the least.
const DEADLINE: Duration = Duration::from_secs(1);

/// An agent with hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookAgent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}

impl HookAgent {
    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// The agent with that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Claude, Self::Codex].into_iter().find(|agent| agent.word() == word)
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A session was opened, resumed, cleared or compacted; `reason` says which.
    SessionStart,
    /// The user sent a prompt.
    UserPromptSubmit,
    /// A tool is about to run.
    PreToolUse,
    /// The user is asked whether a tool may run.
    PermissionRequest,
    /// The agent wants the user; `reason` has its type.
    Notification,
    /// A tool has run.
    PostToolUse,
    /// A tool has failed.
    PostToolUseFailure,
    /// The turn is over.
    Stop,
    /// The turn ended with an error.
    StopFailure,
    /// A sub-agent began.
    SubagentStart,
    /// A sub-agent ended.
    SubagentStop,
    /// A compaction begins; `trigger` says whether it was asked for.
    PreCompact,
    /// A compaction is done.
    PostCompact,
    /// The session is over; `reason` says how.
    SessionEnd,
    /// One we do not know.
    Other,
}

impl Kind {
    const NAMED: [(Self, &'static str); 14] = [
        (Self::SessionStart, "SessionStart"),
        (Self::UserPromptSubmit, "UserPromptSubmit"),
        (Self::PreToolUse, "PreToolUse"),
        (Self::PermissionRequest, "PermissionRequest"),
        (Self::Notification, "Notification"),
        (Self::PostToolUse, "PostToolUse"),
        (Self::PostToolUseFailure, "PostToolUseFailure"),
        (Self::Stop, "Stop"),
        (Self::StopFailure, "StopFailure"),
        (Self::SubagentStart, "SubagentStart"),
        (Self::SubagentStop, "SubagentStop"),
        (Self::PreCompact, "PreCompact"),
        (Self::PostCompact, "PostCompact"),
        (Self::SessionEnd, "SessionEnd"),
    ];

    /// The agent's name of it, which is also ours.
    pub fn name(self) -> &'static str {
        let named = Self::NAMED.iter().find(|(kind, _)| *kind == self);
        named.map_or("Other", |(_, name)| *name)
    }

    /// The event of that name: `SessionEnd`, `session-end`, `session_end`.
    pub fn from_name(name: &str) -> Self {
        let plain = |text: &str| {
            let letters = text.chars().filter(char::is_ascii_alphanumeric);
            letters.map(|letter| letter.to_ascii_lowercase()).collect::<String>()
        };
        let wanted = plain(name);
        let named = Self::NAMED.iter().find(|(_, known)| plain(known) == wanted);
        named.map_or(Self::Other, |(kind, _)| *kind)
    }
}

/// One event of a hook: who, where and when, and nothing of what was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Whose; `None` if neither the command nor the transcript's path tells.
    pub agent: Option<HookAgent>,
    /// What happened.
    pub kind: Kind,
    /// When the hook ran, ms.
    pub at_ms: i64,
    /// The session. Codex shares it between a thread and its sub-agents: then the transcript tells.
    pub session_id: Option<String>,
    /// Its transcript.
    pub transcript_path: Option<String>,
    /// The sub-agent inside which it ran.
    pub agent_id: Option<String>,
    /// Why a session ended, how one started, what kind of notification.
    pub reason: Option<String>,
    /// `auto` or `manual`, of a compaction.
    pub trigger: Option<String>,
    /// The tool.
    pub tool_name: Option<String>,
    /// The turn, in Codex.
    pub turn_id: Option<String>,
    /// Where it ran.
    pub scope: Scope,
    /// Start of the hook's own process, in clock ticks since boot: what the agent starts later is
    /// younger.
    #[serde(default)]
    pub start_ticks: Option<u64>,
}

/// Records one event: `event` is its name, with `codex:` or `claude:` before it to say whose.
/// Says nothing whatever happens: a hook that could not be recorded is one piece of evidence less,
/// which is counted, and no reason to disturb an agent. It waits neither for an input that does not
/// end nor for a disk that does not write.
pub fn record_hook(stdin: impl Read + Send + 'static, inbox: &Path, event: &str, now_ms: i64) {
    let proc = Proc::system();
    let scope = proc.scope().clone();
    // First of all, so that whatever comes in between leaves a trace.
    let Ok(begun) = inbox::begin(inbox, now_ms, &scope) else {
        let _uncounted = inbox::count_lost(inbox, now_ms);
        return;
    };
    let event = event.to_owned();
    let (done, wait) = mpsc::sync_channel(1);
    // The thread may be left behind, and ends with us.
    let worker = thread::Builder::new().name("hook".to_owned()).spawn(move || {
        match payload::parse(stdin, &event, now_ms, &scope) {
            Some(event) => {
                let start_ticks = proc.start_ticks(std::process::id());
                _ = begun.finish(&Event { start_ticks, ..event });
            }
            None => begun.discard(),
        }
        let _nobody_waits = done.send(());
    });
    if worker.is_ok() {
        let _late = wait.recv_timeout(DEADLINE);
    }
}

#[cfg(test)]
mod tests;
