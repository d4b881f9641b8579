//! What a pass has not seen: of whom nothing may be concluded from silence.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::discover::{Found, Root};
use super::{Mirror, place};
use crate::source::{Agent, Place, SessionKey};
use crate::store::{self, Store, files, ingest, merge};

/// Characters of a UUID, which ends the stem of a Codex rollout.
const UUID_CHARS: usize = 36;

impl Mirror {
    /// Sessions about which nothing may be concluded from silence: a file of theirs, or of a
    /// sub-agent below them, has not been read to its end, or cannot be seen.
    pub fn unobserved(&self, store: &mut Store) -> store::Result<HashSet<i64>> {
        let reading = self.reading.iter().map(|reading| &reading.found);
        let pending: Vec<&Found> = self.queue.iter().chain(reading).collect();
        let mut blocked = self.families(store, &pending, &[])?;
        blocked.extend(self.unseen(store)?);
        Ok(blocked)
    }

    /// Those of them of which something cannot be seen: more than a matter of time.
    pub fn unseen(&self, store: &mut Store) -> store::Result<HashSet<i64>> {
        let found: Vec<&Found> =
            self.blind.keys().filter_map(|path| self.found.get(path)).collect();
        let paths: Vec<&Path> = self.blind.keys().map(PathBuf::as_path).collect();
        self.families(store, &found, &paths)
    }

    /// The sessions that these files and places are of, or may be of, and those above them.
    fn families(
        &self,
        store: &mut Store,
        files: &[&Found],
        places: &[&Path],
    ) -> store::Result<HashSet<i64>> {
        if files.is_empty() && places.is_empty() {
            return Ok(HashSet::new());
        }
        let paths = files.iter().map(|found| found.path.as_path()).chain(places.iter().copied());
        let generations: Vec<i64> =
            paths.filter_map(|path| self.known.get(path)).map(|known| known.generation).collect();
        let mut keys: Vec<(Agent, SessionKey)> =
            files.iter().filter_map(|found| key_by_name(found)).collect();
        let mut ranges = Vec::new();
        for place in places.iter().filter(|place| !self.known.contains_key(**place)) {
            for root in self.roots.iter().filter(|root| place.starts_with(&root.path)) {
                match kin(root, place) {
                    Kin::Session(native) => keys.push((root.agent, SessionKey::top(native))),
                    Kin::Between(from, to) => ranges.push((from, to)),
                    Kin::Nobody => {}
                }
            }
        }
        let host = &self.host;
        store.read(|tx| {
            let mut blocked = HashSet::new();
            for generation in generations {
                blocked.extend(files::sessions_of(tx, generation)?);
            }
            for (agent, key) in keys {
                blocked.extend(ingest::find_session(tx, host, agent.word(), &key)?);
            }
            for (from, to) in &ranges {
                blocked.extend(files::sessions_between(tx, from, to)?);
            }
            for session in blocked.clone() {
                blocked.extend(merge::ancestors(tx, session)?);
            }
            Ok(blocked)
        })
    }
}

/// Whose a place may be that was never read.
#[derive(Debug, PartialEq, Eq)]
enum Kin {
    /// It belongs to this session, or to its sub-agents.
    Session(String),
    /// It may belong to a sub-agent of any session whose file lies between these paths, and nothing
    /// tells of which.
    Between(Vec<u8>, Vec<u8>),
    /// What was never read of sessions that nobody knows.
    Nobody,
}

/// Whose a place below a root may be. Claude keeps what belongs to a session in a folder of its name.
/// dsh starts sub-agents in the project of their parent, Codex in the tree of dates, not before their
/// parent and, of a rollout alone, on the same day.
fn kin(root: &Root, place: &Path) -> Kin {
    let below = place.strip_prefix(&root.path).unwrap_or(place);
    let names: Vec<&str> =
        below.iter().filter_map(|name| name.to_str()).filter(|name| *name != "sessions").collect();
    let within = |folder: &Path| {
        let mut from = folder.as_os_str().as_bytes().to_vec();
        from.push(b'/');
        let mut to = from.clone();
        to.push(0xff);
        Kin::Between(from, to)
    };
    let tree = place.parent().unwrap_or(place);
    match root.agent {
        Agent::Claude => {
            let session = names.iter().find(|name| place::is_uuid(name));
            session.map_or(Kin::Nobody, |name| Kin::Session((*name).to_owned()))
        }
        Agent::Dsh => match names.len() {
            0 => Kin::Nobody,
            1 => within(place),
            2 => within(tree),
            _ => within(tree.parent().unwrap_or(tree)),
        },
        Agent::Codex if names.iter().any(|name| name.starts_with("rollout-")) => within(tree),
        Agent::Codex => {
            let mut to = place.as_os_str().as_bytes().to_vec();
            to.push(0xff);
            Kin::Between(root.path.as_os_str().as_bytes().to_vec(), to)
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn between(from: &str, to: &str) -> Kin {
        let mut to = to.as_bytes().to_vec();
        to.push(0xff);
        Kin::Between(from.as_bytes().to_vec(), to)
    }

    const ID: &str = "26f52589-6919-4be1-ac4b-9de9d22c854c";

    #[rstest]
    #[case::claude_project(Agent::Claude, "projects/-w", Kin::Nobody)]
    #[case::claude_session(Agent::Claude, &format!("projects/-w/{ID}"), Kin::Session(ID.to_owned()))]
    #[case::claude_sub_agents(
        Agent::Claude,
        &format!("projects/-w/{ID}/subagents/deeper"),
        Kin::Session(ID.to_owned())
    )]
    #[case::dsh_project(
        Agent::Dsh,
        "sessions/--w--",
        between("/r/sessions/--w--/", "/r/sessions/--w--/")
    )]
    #[case::dsh_session(
        Agent::Dsh,
        "sessions/--w--/s",
        between("/r/sessions/--w--/", "/r/sessions/--w--/")
    )]
    #[case::dsh_log(
        Agent::Dsh,
        "sessions/--w--/s/session.jsonl",
        between("/r/sessions/--w--/", "/r/sessions/--w--/")
    )]
    #[case::codex_day(Agent::Codex, "sessions/2026/11/30", between("/r", "/r/sessions/2026/11/30"))]
    #[case::codex_rollout(
        Agent::Codex,
        "sessions/2026/11/30/rollout-x.jsonl",
        between("/r/sessions/2026/11/30/", "/r/sessions/2026/11/30/")
    )]
    fn whose_a_place_may_be(#[case] agent: Agent, #[case] below: &str, #[case] want: Kin) {
        let root = Root { agent, path: "/r".into() };
        assert_eq!(kin(&root, &Path::new("/r").join(below)), want);
    }
}
