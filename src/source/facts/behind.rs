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
}

impl Behind {
    /// Nothing does.
    pub fn is_empty(&self) -> bool {
        self.shells.is_empty() && self.others() == 0
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
            Background::Over(id) => {
                let shell = self.shells.contains(id);
                self.shells.retain(|open| open != id);
                self.agents.retain(|open| open != id);
                self.left -= u64::from(!shell && self.left > 0);
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
    if list.len() >= OPEN_MAX {
        list.remove(0);
    }
    list.push(id.to_owned());
}
