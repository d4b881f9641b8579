//! What a pass has not seen: of whom nothing may be concluded from silence.

use std::collections::HashSet;

use super::Mirror;
use super::discover::Found;
use crate::source::{Agent, Place, SessionKey};
use crate::store::{self, Store, files, ingest, merge};

/// Characters of a UUID, which ends the stem of a Codex rollout.
const UUID_CHARS: usize = 36;

impl Mirror {
    /// Sessions about which nothing may be concluded from silence: a file of theirs, or of a
    /// sub-agent below them, has not been read to its end, or cannot be seen.
    pub fn unobserved(&self, store: &mut Store) -> store::Result<HashSet<i64>> {
        let reading = self.reading.iter().map(|reading| &reading.found);
        let unseen = self.blind.keys().filter_map(|path| self.found.get(path));
        let pending: Vec<&Found> = self.queue.iter().chain(reading).chain(unseen).collect();
        if pending.is_empty() && self.blind.is_empty() {
            return Ok(HashSet::new());
        }
        let paths = pending.iter().map(|found| &found.path).chain(self.blind.keys());
        let generations: Vec<i64> =
            paths.filter_map(|path| self.known.get(path)).map(|known| known.generation).collect();
        let keys: Vec<(Agent, SessionKey)> =
            pending.iter().filter_map(|found| key_by_name(found)).collect();
        let host = &self.host;
        store.read(|tx| {
            let mut blocked = HashSet::new();
            for generation in generations {
                blocked.extend(files::sessions_of(tx, generation)?);
            }
            for (agent, key) in keys {
                blocked.extend(ingest::find_session(tx, host, agent.word(), &key)?);
            }
            for session in blocked.clone() {
                blocked.extend(merge::ancestors(tx, session)?);
            }
            Ok(blocked)
        })
    }
}

/// The session that a file's name tells, before a line of it has been read: its own, or the parent
/// of a sub-agent.
fn key_by_name(found: &Found) -> Option<(Agent, SessionKey)> {
    let hint = &found.hint;
    let native = match (found.agent, hint.place) {
        (Agent::Claude, Place::Transcript) => hint.stem.clone(),
        (Agent::Claude, Place::SubAgent) | (Agent::Dsh, Place::Transcript) => {
            hint.folder.clone()?
        }
        (Agent::Codex, Place::Transcript) => {
            let from = hint.stem.len().checked_sub(UUID_CHARS)?;
            hint.stem.get(from..)?.to_owned()
        }
        // Documents say nothing of an activity.
        (Agent::Claude | Agent::Codex | Agent::Dsh, _) => return None,
    };
    Some((found.agent, SessionKey::top(native)))
}
