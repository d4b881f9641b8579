//! What a file is in its agent's layout.

use serde::{Deserialize, Serialize};

/// What a file is in its agent's layout; decided from its path by the mirror, never from content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A transcript of its own session (Claude `<uuid>.jsonl`, Codex rollout, dsh `session*.jsonl`).
    Transcript,
    /// Claude `agent-*.jsonl`, in the old layout or below `<session>/subagents/`.
    SubAgent,
    /// Claude `agent-*.meta.json`: one JSON document about one sub-agent.
    AgentMeta,
    /// Claude `<session>/custom-title.json`: one JSON document.
    CustomTitle,
    /// Codex `session_index.jsonl`.
    SessionIndex,
    /// dsh `storages/workspace.json`: one JSON document.
    Workspace,
}

impl Place {
    /// Every place.
    const ALL: [Self; 6] = [
        Self::Transcript,
        Self::SubAgent,
        Self::AgentMeta,
        Self::CustomTitle,
        Self::SessionIndex,
        Self::Workspace,
    ];

    /// The word kept in the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::Transcript => "transcript",
            Self::SubAgent => "sub_agent",
            Self::AgentMeta => "agent_meta",
            Self::CustomTitle => "custom_title",
            Self::SessionIndex => "session_index",
            Self::Workspace => "workspace",
        }
    }

    /// The place with that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|place| place.word() == word)
    }

    /// The whole file is one JSON document, read anew whenever it changes, instead of lines.
    pub fn is_document(self) -> bool {
        match self {
            Self::AgentMeta | Self::CustomTitle | Self::Workspace => true,
            Self::Transcript | Self::SubAgent | Self::SessionIndex => false,
        }
    }
}
