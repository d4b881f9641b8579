//! Files we know that a scan did not find: moved, passed over for a better twin, gone, or out of
//! sight. Only the last says nothing: the others are facts, and the rows follow them.

use std::collections::{BTreeSet, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::discover::{Found, Scan};
use super::place::Encoding;
use super::plan::Stat;
use super::{Known, Mirror, commit, read};
use crate::source::{Agent, Place};
use crate::store::{self, Store, files};

impl Mirror {
    /// Files we know that the scan did not find: moved, passed over, gone, or out of sight.
    pub(super) fn settle_absent(
        &mut self,
        store: &mut Store,
        scan: &Scan,
        now_ms: i64,
    ) -> store::Result<()> {
        let here: HashSet<&Path> = scan.files.iter().map(|found| found.path.as_path()).collect();
        let absent: Vec<PathBuf> =
            self.known.keys().filter(|path| !here.contains(path.as_path())).cloned().collect();
        if absent.is_empty() {
            return Ok(());
        }
        let news: Vec<&Found> =
            scan.files.iter().filter(|found| !self.known.contains_key(&found.path)).collect();
        for path in absent {
            let Some(known) = self.known.get(&path).cloned() else { continue };
            let twin = news.iter().find(|found| is_same_log(&path, &known, found));
            let settled = match twin {
                Some(found) => self.settle_twin(store, &path, &known, found)?,
                None => false,
            };
            if settled {
                continue;
            }
            if scan.shadowed.contains(&path) {
                self.retire(store, &path, &known)?;
            } else if scan.saw_absent(&self.roots, &path) {
                if !known.gone {
                    self.note_gone(store, &path, &known, now_ms)?;
                }
            } else {
                self.blind.insert(path, "its folder cannot be read".to_owned());
            }
        }
        Ok(())
    }

    /// The same log lies elsewhere now: renamed, archived, packed. If its content is what we read,
    /// it keeps its rows; if not, a Codex or dsh log has been replaced by its new form, while two
    /// Claude transcripts of one name both count, each record once. True when nothing is left to do.
    fn settle_twin(
        &mut self,
        store: &mut Store,
        path: &Path,
        known: &Known,
        found: &Found,
    ) -> store::Result<bool> {
        let matching = read::open(&found.path, found.encoding)
            .and_then(|opened| opened.matches(&known.cursor))
            .unwrap_or(false);
        let root = self.root_ids.get(found.root).copied().flatten();
        let (Some((root, _)), true) = (root, matching) else {
            return match found.agent {
                Agent::Claude => Ok(false),
                Agent::Codex | Agent::Dsh => self.retire(store, path, known).map(|()| true),
            };
        };
        let cursor = &known.cursor;
        let frame = match found.encoding {
            Encoding::Plain => (cursor.position, cursor.position),
            Encoding::ZstdFrames => (cursor.frame_at, cursor.frame_position),
            Encoding::ZstdStream => (0, 0),
        };
        let new_path = found.path.as_os_str().as_bytes();
        store.write(|tx| {
            let frame = (frame.0.cast_signed(), frame.1.cast_signed());
            files::moved(tx, known.generation, root, new_path, frame)?;
            let sessions = files::sessions_of(tx, known.generation)?.into_iter().collect();
            commit::merge(tx, &sessions)
        })?;
        self.work.transactions += 1;
        self.known.remove(path);
        let mut moved = known.clone();
        moved.gone = false;
        moved.cursor.frame_at = frame.0;
        moved.cursor.frame_position = frame.1;
        moved.cursor.stat = Stat::default();
        self.known.insert(found.path.clone(), moved);
        Ok(true)
    }

    fn retire(&mut self, store: &mut Store, path: &Path, known: &Known) -> store::Result<()> {
        store.write(|tx| {
            let sessions: BTreeSet<i64> =
                files::sessions_of(tx, known.generation)?.into_iter().collect();
            files::retire(tx, known.generation)?;
            commit::merge(tx, &sessions)
        })?;
        self.work.transactions += 1;
        self.known.remove(path);
        Ok(())
    }

    fn note_gone(
        &mut self,
        store: &mut Store,
        path: &Path,
        known: &Known,
        now_ms: i64,
    ) -> store::Result<()> {
        store.write(|tx| {
            files::set_gone(tx, known.generation, Some(now_ms))?;
            let sessions = files::sessions_of(tx, known.generation)?.into_iter().collect();
            commit::merge(tx, &sessions)
        })?;
        self.work.transactions += 1;
        if let Some(known) = self.known.get_mut(path) {
            known.gone = true;
        }
        Ok(())
    }
}

/// Whether a new file may be the log that lay at `path`: the same name, where names identify (a dsh
/// log is named by its folder). An inode alone says nothing: it is used again at once.
fn is_same_log(path: &Path, known: &Known, found: &Found) -> bool {
    let folder = |path: &Path| path.parent().and_then(Path::file_name).map(ToOwned::to_owned);
    match found.hint.place {
        Place::Transcript | Place::SubAgent => match found.agent {
            Agent::Claude | Agent::Codex => known.stem == found.hint.stem,
            Agent::Dsh => folder(path) == folder(&found.path),
        },
        Place::AgentMeta | Place::CustomTitle | Place::SessionIndex | Place::Workspace => false,
    }
}
