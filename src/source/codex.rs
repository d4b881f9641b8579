//! Adapter (contract stub; being written).

use serde::{Deserialize, Serialize};

use super::json::Value;
use super::{Hint, Record, SessionKey, Span};

/// Carried state of one file generation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    hint: Hint,
}

impl State {
    /// The state before the first line.
    pub fn new(hint: &Hint) -> Self {
        Self { hint: hint.clone() }
    }

    /// The session the file belongs to.
    pub fn key(&self) -> Option<SessionKey> {
        Some(SessionKey::top(self.hint.stem.clone()))
    }

    /// One JSON object of the file.
    pub fn object(&mut self, _object: Value<'_>, _span: Span, _out: &mut Vec<Record>) {}
}
