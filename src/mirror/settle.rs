//! Files we know that a scan did not find: moved, passed over for a better twin, gone, or out of
//! sight. Only the last says nothing: the others are facts, and the rows follow them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::discover::{Found, Scan};
use super::place::Encoding;
use super::plan::Stat;
use super::{Known, Mirror, commit, read};
use crate::source::{Agent, Place};
use crate::store::{self, Store, files};

/// Files settled in one transaction.
const FILES_MAX: usize = 256;

/// What became of a file that is not where it was.
enum Fate {
    /// It lies there now, and this is where reading goes on: frame in the file, and decoded.
    Moved(Found, (u64, u64)),
    /// Another file took its place.
    Replaced,
    /// It was seen to be absent.
    Gone,
    /// Nothing is known.
    Unseen(String),
}

/// New files by what a move leaves as it was.
struct News<'a> {
    by_name: HashMap<(Agent, String), &'a Found>,
    by_inode: HashMap<(i64, i64), &'a Found>,
    taken: HashSet<PathBuf>,
}

impl Mirror {
    /// Files we know that the scan did not find: moved, passed over, gone, or out of sight.
    pub(super) fn settle_absent(
        &mut self,
        store: &mut Store,
        scan: &Scan,
        now_ms: i64,
    ) -> store::Result<()> {
        let here: HashSet<&Path> = scan.files.iter().map(|found| found.path.as_path()).collect();
        let mut absent: Vec<PathBuf> =
            self.known.keys().filter(|path| !here.contains(path.as_path())).cloned().collect();
        absent.sort();
        if absent.is_empty() {
            return Ok(());
        }
        let unknown = scan.files.iter().filter(|found| !self.known.contains_key(&found.path));
        let mut news = News::of(unknown);
        let mut fates = Vec::new();
        for path in absent {
            if let Some(known) = self.known.get(&path)
                && let Some(fate) = self.fate(scan, &mut news, &path, known)
            {
                fates.push((path, fate));
            }
        }
        for part in fates.chunks(FILES_MAX) {
            self.settle(store, part, now_ms)?;
        }
        for (path, fate) in fates {
            self.remember(path, fate);
        }
        Ok(())
    }

    /// What became of one file; `None`: it was gone before.
    fn fate(&self, scan: &Scan, news: &mut News, path: &Path, known: &Known) -> Option<Fate> {
        if let Some(found) = news.twin(path, known) {
            match self.twin(known, found) {
                Some(fate @ Fate::Moved(..)) => {
                    news.taken.insert(found.path.clone());
                    return Some(fate);
                }
                Some(fate) => return Some(fate),
                None => {}
            }
        }
        if scan.shadowed.contains(path) {
            return Some(Fate::Replaced);
        }
        if !scan.saw_absent(&self.roots, path) {
            return Some(Fate::Unseen("its folder cannot be read".to_owned()));
        }
        (!known.gone).then_some(Fate::Gone)
    }

    /// The same log seems to lie elsewhere now: renamed, archived, packed. If its content is what we
    /// read, it keeps its rows; if not, a Codex or dsh log has been replaced by its new form, while
    /// two Claude transcripts of one name both count, each record once.
    fn twin(&self, known: &Known, found: &Found) -> Option<Fate> {
        let cursor = &known.cursor;
        let resumed =
            read::open(&found.path, found.encoding).and_then(|opened| opened.resume(cursor));
        match resumed {
            Err(error) => return Some(Fate::Unseen(read::words(&error))),
            Ok(None) => {
                return match found.agent {
                    Agent::Claude => None,
                    Agent::Codex | Agent::Dsh => Some(Fate::Replaced),
                };
            }
            Ok(Some(_)) => {}
        }
        self.root_ids.get(found.root).copied().flatten()?;
        let frame = match found.encoding {
            Encoding::Plain => (cursor.position, cursor.position),
            Encoding::ZstdFrames => (cursor.frame_at, cursor.frame_position),
            Encoding::ZstdStream => (0, 0),
        };
        Some(Fate::Moved(found.clone(), frame))
    }

    /// Writes some fates in one transaction.
    fn settle(
        &mut self,
        store: &mut Store,
        fates: &[(PathBuf, Fate)],
        now_ms: i64,
    ) -> store::Result<()> {
        if fates.iter().all(|(_, fate)| matches!(fate, Fate::Unseen(_))) {
            return Ok(());
        }
        let (known, root_ids) = (&self.known, &self.root_ids);
        store.write(|tx| {
            let mut sessions = BTreeSet::new();
            for (path, fate) in fates {
                let Some(known) = known.get(path) else { continue };
                let id = known.generation;
                match fate {
                    Fate::Moved(found, (at, position)) => {
                        let (root, _) =
                            root_ids.get(found.root).copied().flatten().unwrap_or_default();
                        let frame = (at.cast_signed(), position.cast_signed());
                        files::moved(tx, id, root, found.path.as_os_str().as_bytes(), frame)?;
                        sessions.extend(files::sessions_of(tx, id)?);
                    }
                    Fate::Replaced => commit::retire(tx, id, &mut sessions)?,
                    Fate::Gone => {
                        files::set_gone(tx, id, Some(now_ms))?;
                        sessions.extend(files::sessions_of(tx, id)?);
                    }
                    Fate::Unseen(_) => {}
                }
            }
            commit::merge(tx, &sessions)
        })?;
        self.work.transactions += 1;
        Ok(())
    }

    /// Remembers a fate that has been written.
    fn remember(&mut self, path: PathBuf, fate: Fate) {
        self.searched.remove(&path);
        match fate {
            Fate::Moved(found, frame) => {
                let Some(mut known) = self.known.remove(&path) else { return };
                known.gone = false;
                (known.cursor.frame_at, known.cursor.frame_position) = frame;
                known.cursor.stat = Stat::default();
                self.known.insert(found.path, known);
            }
            Fate::Replaced => {
                self.known.remove(&path);
            }
            Fate::Gone => {
                if let Some(known) = self.known.get_mut(&path) {
                    known.gone = true;
                }
            }
            Fate::Unseen(why) => {
                self.blind.insert(path, why);
            }
        }
    }
}

impl<'a> News<'a> {
    fn of(files: impl Iterator<Item = &'a Found>) -> Self {
        let (mut by_name, mut by_inode) = (HashMap::new(), HashMap::new());
        for found in files {
            let Some(name) = log_name(found.agent, found.hint.place, &found.path, &found.hint.stem)
            else {
                continue;
            };
            by_name.entry((found.agent, name)).or_insert(found);
            // The id of a Claude transcript is its name; the others carry theirs in their lines.
            if found.agent != Agent::Claude {
                by_inode.insert((found.stat.dev, found.stat.ino), found);
            }
        }
        Self { by_name, by_inode, taken: HashSet::new() }
    }

    /// The new file that may be the log that lay at `path`: the same name, where names identify, or
    /// the same inode. An inode alone says nothing, since it is used again at once; the caller
    /// compares the content, and of a file without a complete line there is none to compare.
    fn twin(&self, path: &Path, known: &Known) -> Option<&'a Found> {
        let agent = known.agent?;
        let name = log_name(agent, known.place?, path, &known.stem)?;
        let same = self.by_name.get(&(agent, name)).copied();
        let inode = (known.cursor.stat.dev, known.cursor.stat.ino);
        let renamed = || {
            let found = self.by_inode.get(&inode).copied();
            found.filter(|found| found.agent == agent && known.cursor.position > 0)
        };
        same.or_else(renamed).filter(|found| !self.taken.contains(&found.path))
    }
}

/// What names a log wherever it lies: the stem, a sub-agent's with its session's folder before it,
/// or the folder of a dsh log. `None`: a sidecar, which is read anew wherever it lies.
fn log_name(agent: Agent, place: Place, path: &Path, stem: &str) -> Option<String> {
    match place {
        Place::Transcript | Place::SubAgent => {}
        Place::AgentMeta | Place::CustomTitle | Place::SessionIndex | Place::Workspace => {
            return None;
        }
    }
    match agent {
        Agent::Claude | Agent::Codex => {
            let mut folders = path.parent()?.ancestors();
            let inner = folders.find(|folder| folder.ends_with("subagents"));
            let session = inner.and_then(Path::parent).and_then(Path::file_name);
            Some(format!("{}/{stem}", session.unwrap_or_default().to_string_lossy()))
        }
        Agent::Dsh => Some(path.parent()?.file_name()?.to_string_lossy().into_owned()),
    }
}
