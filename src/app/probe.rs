//! The look at processes that every pass takes: whom it is about, what is seen, what is stored.
//!
//! It stands between two rooms that do not know each other: `liveness` sees processes and knows no
//! store, the store keeps rows and knows no processes. A look costs what is new: whom to ask is
//! worked out again only when the store or the registry has changed, and a row is written only when
//! it says something new. Between passes it is repeated every two seconds while there is anything
//! to see, so that an exit is noticed although no file tells of it.

mod allowed;
mod inbox;
mod patience;
mod rows;
mod whom;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::compaction::{Bracket, Fold};
use crate::lifecycle::known::Process;
use crate::lifecycle::presence::{Answers, Trust, presence};
use crate::lifecycle::work::Written;
use crate::liveness::hooks::Inbox;
use crate::liveness::locks::{Locks, Observed, codex_lock, dsh_lock, dsh_takes_lock};
use crate::liveness::proc::{Proc, Sight};
use crate::liveness::programs::{self, Programs};
use crate::liveness::record::Record;
use crate::liveness::registry::{self, Entry, Registry, Says};
use crate::liveness::{Limits, Note, Observation, Request, Session, observe};
use crate::mirror::discover::Root;
use crate::source::Agent;
use crate::store::evidence::{self, Candidate, Evidence, Named};
use crate::store::runs::{self};
use crate::store::{self, Store, sessions};
use inbox::Waits;
use patience::Patience;
use rows::{News, Writer};
use whom::{Asked, named_by, with_children_at_work};

/// What is told while a look hangs.
const HANGS: &str = "the look at processes does not come back (a process stuck in the kernel, a \
    mount that hangs?): statuses stay as they are until it does";

/// How far a look goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Whom the last look was about, and what has changed since.
    Near,
    /// Also which locks anybody holds, and which programs run.
    Far,
}

/// What a look came to.
#[derive(Debug, Default)]
pub struct Probed {
    /// What is known of the processes of each session that was looked at, by row id.
    pub processes: HashMap<i64, Process>,
    /// Something new was stored.
    pub changed: bool,
    /// Sessions that were to be looked at and were not, for the look did not come back in time.
    pub unlooked: HashSet<i64>,
}

/// The memory of the looks of one process.
#[derive(Debug)]
pub struct Probe {
    host: String,
    inbox: Inbox,
    /// Claude's registries.
    registries: Vec<PathBuf>,
    codex: Vec<PathBuf>,
    limits: Limits,
    /// Whom the last look was about, and for what state of store and registry that holds.
    asked: Vec<Asked>,
    asked_for: Option<Question>,
    /// Who holds the lock of a session that may be over, as the last far look saw it.
    held: Named,
    /// Running dsh processes, as the last far look saw them.
    programs: Programs,
    /// All records of the sessions of the last look.
    records: HashMap<i64, Vec<Record>>,
    /// The rows of the sessions of the last look, as stored.
    stored: HashMap<i64, Vec<Evidence>>,
    /// There is a folder to look into.
    folders: bool,
    scope: Option<String>,
    notes: Vec<Note>,
    /// Events of hooks that were lost.
    lost: Option<String>,
    patience: Patience,
    /// The last look did not come back in time.
    hangs: bool,
}

/// What the list of those asked about depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    rows_written: u64,
    data_version: i64,
    named: Named,
}

impl Probe {
    /// Nothing is remembered yet; the store has what earlier processes saw.
    pub fn new(host: &str, db: &Path, roots: &[Root]) -> Self {
        let of = |agent: Agent| roots.iter().filter(move |root| root.agent == agent);
        Self {
            host: host.to_owned(),
            inbox: Inbox::of(db),
            registries: of(Agent::Claude).map(|root| registry::folder_of(&root.path)).collect(),
            codex: of(Agent::Codex).map(|root| root.path.clone()).collect(),
            limits: Limits::default(),
            asked: Vec::new(),
            asked_for: None,
            held: Named::default(),
            programs: Programs::default(),
            records: HashMap::new(),
            stored: HashMap::new(),
            folders: false,
            scope: None,
            notes: Vec::new(),
            lost: None,
            patience: Patience::default(),
            hangs: false,
        }
    }

    /// Where the last look stood (JSON).
    pub fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// What could not be looked at, for the warnings.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let told = |note: &&Note| note.code.starts_with("registry");
        let notes = self.notes.iter().filter(told).map(|note| match note.subject.as_str() {
            "" => note.text.clone(),
            subject => format!("{subject}: {}", note.text),
        });
        let hangs = self.hangs.then(|| HANGS.to_owned());
        notes.chain(self.lost.clone()).chain(hangs)
    }

    /// Whether there may be something to see although no file changes.
    pub fn wants_looks(&self) -> bool {
        let live = |records: &Vec<Record>| records.iter().any(|record| !record.fate.is_end());
        self.folders || self.records.values().any(live)
    }

    /// Folders in which a change announces that there is something to see.
    pub fn hint_folders(&self) -> impl Iterator<Item = PathBuf> {
        let locks = self.codex.iter().filter_map(|root| lock_folder(root));
        self.registries.iter().cloned().chain(locks).chain([self.inbox.folder.clone()])
    }

    /// Looks, and stores what is new.
    pub fn look(&mut self, store: &mut Store, reach: Reach, now_ms: i64) -> store::Result<Probed> {
        let mut absorbed =
            inbox::absorb(store, &self.host, &self.inbox.folder, Waits::Soon, now_ms)?;
        if let Some(shared) = self.inbox.shared.as_deref().filter(|_| reach == Reach::Far) {
            absorbed += inbox::absorb(store, &self.host, shared, Waits::Long, now_ms)?;
        }
        self.lost = inbox::lost(&self.inbox.folder, now_ms);
        let Some(Scene { proc, registry, held }) = self.scene(reach) else {
            return self.unlooked(store, absorbed > 0, now_ms);
        };
        self.scope = serde_json::to_string(proc.scope()).ok();
        let folders: Vec<PathBuf> = self.hint_folders().collect();
        self.folders = folders.iter().any(|folder| folder.is_dir());
        if let Some(files) = held {
            self.held = named_by(store, &self.host, files)?;
            self.programs = Programs::default();
        }
        self.ask(store, &registry, now_ms)?;
        let mut sessions: Vec<Session> =
            self.asked.iter().map(|asked| asked.session.clone()).collect();
        for session in &mut sessions {
            session.earlier = self.records.get(&session.id).cloned().unwrap_or_default();
        }
        let (limits, there) = (self.limits, proc.clone());
        let seen = self.patience.within(move || {
            let request = Request { registry: &registry, sessions: &sessions };
            observe(&request, &there, now_ms, &limits)
        });
        let Some(seen) = seen else { return self.unlooked(store, absorbed > 0, now_ms) };
        self.hangs = false;
        self.notes = seen.notes;
        let (processes, said) = self.keep(store, &proc, seen.sessions, now_ms)?;
        Ok(Probed { processes, changed: said || absorbed > 0, unlooked: HashSet::new() })
    }

    /// What a look at sessions begins with.
    fn scene(&mut self, reach: Reach) -> Option<Scene> {
        let (registries, limits) = (self.registries.clone(), self.limits);
        self.patience.within(move || {
            let proc = Proc::system();
            let registry = registry::read(&registries, limits.entries_max);
            // Sessions whose locks are held, whatever their status, from the side of the holders.
            let held = (reach == Reach::Far)
                .then(|| Locks::look(&proc, limits.processes_max, limits.fds_max).held_files());
            Scene { proc, registry, held }
        })
    }

    /// Nothing was seen: whom the look was to be about keeps what is known of it.
    fn unlooked(&mut self, store: &mut Store, changed: bool, now_ms: i64) -> store::Result<Probed> {
        self.hangs = true;
        // Whom an unread registry names is not known; those that may be judged are.
        self.ask(store, &Registry::default(), now_ms)?;
        let unlooked = self.asked.iter().map(|asked| asked.session.id).collect();
        Ok(Probed { processes: HashMap::new(), changed, unlooked })
    }

    /// Works out whom to ask about, if store or registry have changed.
    fn ask(&mut self, store: &mut Store, registry: &Registry, now_ms: i64) -> store::Result<()> {
        let named = self.named(registry);
        let (rows_written, data_version) = (store.rows_written(), store.data_version()?);
        let question = Question { rows_written, data_version, named };
        if self.asked_for.as_ref() == Some(&question) {
            return Ok(());
        }
        let host = &self.host;
        let candidates = store.read(|tx| evidence::candidates(tx, host, &question.named))?;
        let mut asked: Vec<Asked> = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            asked.extend(self.asked(store, candidate)?);
        }
        with_children_at_work(store, &mut asked, &question.named)?;
        let ids: Vec<i64> = asked.iter().map(|asked| asked.session.id).collect();
        let (mut stored, runs) = store.read(|tx| {
            Ok((evidence::of_sessions(tx, &ids)?, runs::of_sessions(tx, host, &ids)?))
        })?;
        for (session, run) in runs {
            if let Ok(at) = asked.binary_search_by_key(&session, |asked| asked.session.id)
                && let Some(asked) = asked.get_mut(at)
            {
                asked.add_run(&run, now_ms);
            }
        }
        self.records = ids
            .into_iter()
            .map(|id| {
                let rows = stored.entry(id).or_default();
                (id, self.records.remove(&id).unwrap_or_else(|| rows::records(rows)))
            })
            .collect();
        self.asked = asked;
        self.stored = stored;
        self.asked_for = Some(question);
        Ok(())
    }

    fn named(&self, registry: &Registry) -> Named {
        let ids = registry.entries.iter().filter_map(|entry| entry.session_id.clone());
        let busy = registry.entries.iter().filter(|entry| entry.status == Some(Says::Busy));
        let headless = |entry: &&Entry| entry.status.is_none() && entry.is_sdk();
        let working = busy.clone().chain(registry.entries.iter().filter(headless));
        let mut named = Named {
            claude: ids.collect(),
            claude_working: working.filter_map(|entry| entry.session_id.clone()).collect(),
            // One of these may be what a busy entry really works on.
            claude_active_after_ms: busy.filter_map(|entry| entry.status_updated_ms).min(),
            ..self.held.clone()
        };
        named.claude.sort_unstable();
        named.claude.dedup();
        named
    }

    fn asked(&self, store: &mut Store, candidate: Candidate) -> store::Result<Option<Asked>> {
        let Some(agent) = Agent::from_word(&candidate.agent) else { return Ok(None) };
        let done = agent == Agent::Codex && rows::is_command_done(&candidate);
        let done_ms = candidate.last_activity_ms.filter(|_| done);
        let answers =
            Answers { activity_ms: candidate.own_activity_ms, settled_ms: candidate.settled_ms };
        let mut session = Session {
            id: candidate.id,
            native_id: candidate.native_id,
            cwd: candidate.cwd,
            written: Written {
                turn_open: candidate.turn.as_deref() == Some("open"),
                last_ms: candidate.own_activity_ms,
                ..Written::default()
            },
            last_activity_ms: candidate.last_activity_ms,
            in_registry: agent == Agent::Claude,
            locks: Vec::new(),
            family_locks: Vec::new(),
            children: Vec::new(),
            earlier: Vec::new(),
        };
        session.locks = self.locks(store, agent, session.id, &session.native_id)?;
        // Who its family is matters only where a lock may be held.
        if session.locks.iter().any(|lock| fs::symlink_metadata(lock).is_ok()) {
            let (host, word) = (&self.host, agent.word());
            let family = store.read(|tx| evidence::family(tx, host, word, &session.native_id))?;
            for (id, native) in family {
                session.family_locks.extend(self.locks(store, agent, id, &native)?);
            }
        }
        let fold: Option<Fold> =
            candidate.brackets.and_then(|body| serde_json::from_str(&body).ok());
        let bracket = fold.map_or(Bracket::None, |fold| fold.verdict().bracket);
        let takes_lock = match (agent, bracket) {
            (Agent::Dsh, Bracket::Open | Bracket::Stale) => {
                let logs = store.read(|tx| evidence::paths(tx, session.id))?;
                logs.into_iter().any(|log| dsh_takes_lock(Path::new(&OsString::from_vec(log))))
            }
            (Agent::Dsh, Bracket::None | Bracket::Closed | Bracket::Failed)
            | (Agent::Claude | Agent::Codex, _) => true,
        };
        Ok(Some(Asked {
            session,
            agent,
            exited: Vec::new(),
            done_ms,
            answers,
            bracket,
            takes_lock,
        }))
    }

    /// Where the lock of a session may lie.
    fn locks(
        &self,
        store: &mut Store,
        agent: Agent,
        id: i64,
        native_id: &str,
    ) -> store::Result<Vec<PathBuf>> {
        Ok(match agent {
            Agent::Claude => Vec::new(),
            Agent::Codex => {
                // That another home has no lock of it says nothing.
                let logs = store.read(|tx| evidence::paths(tx, id))?;
                let within = |root: &PathBuf, log: &[u8]| {
                    Path::new(OsStr::from_bytes(log)).starts_with(root)
                };
                let own = |root: &&PathBuf| logs.iter().any(|log| within(root, log));
                let roots = self.codex.iter().filter(|root| logs.is_empty() || own(root));
                roots.map(|root| codex_lock(root, native_id)).collect()
            }
            Agent::Dsh => {
                let logs = store.read(|tx| evidence::paths(tx, id))?;
                let lock = |log: Vec<u8>| dsh_lock(Path::new(&OsString::from_vec(log)));
                let mut locks: Vec<PathBuf> = logs.into_iter().map(lock).collect();
                locks.dedup();
                locks
            }
        })
    }

    /// Remembers what was seen, stores what is new of it, and says what it means.
    fn keep(
        &mut self,
        store: &mut Store,
        proc: &Proc,
        seen: Vec<Observation>,
        now_ms: i64,
    ) -> store::Result<(HashMap<i64, Process>, bool)> {
        let mut by_id: HashMap<i64, Observation> =
            seen.into_iter().map(|seen| (seen.id, seen)).collect();
        let mut processes = HashMap::new();
        let mut due: Vec<(i64, Vec<Evidence>, News)> = Vec::new();
        for asked in std::mem::take(&mut self.asked) {
            let id = asked.session.id;
            let silent = Observation {
                id,
                records: Vec::new(),
                lock: None,
                working: None,
                waiting: None,
                sole: None,
            };
            let seen = by_id.remove(&id).unwrap_or(silent);
            let writer = self.writer(&asked, &seen, proc);
            let stored = self.stored.get(&id).map(Vec::as_slice).unwrap_or_default();
            let mut rows = rows::rows(&seen, &asked.exited, writer.as_ref(), proc.scope(), now_ms);
            if let Some(done_ms) = asked.done_ms {
                rows.extend(rows::command_done(&seen, done_ms, stored, proc.scope(), now_ms));
            }
            if let Some(holder) = seen.sole {
                let max = self.limits.processes_max;
                rows.extend(allowed::row(stored, asked.answers, holder, proc, max));
            }
            let working_ms = seen.working.is_some().then_some(now_ms);
            let in_registry = asked.session.in_registry;
            let holder = presence(&rows, Trust::Fresh, Answers::default(), in_registry).holder;
            if !rows.is_empty() {
                processes.insert(id, Process { holder, working_ms });
            }
            self.records.insert(id, seen.records);
            match rows::news(&rows, stored) {
                News::None => {}
                news @ (News::Seen | News::Said) => due.push((id, rows, news)),
            }
            self.asked.push(asked);
        }
        let said = self.store(store, due)?;
        Ok((processes, said))
    }

    fn store(
        &mut self,
        store: &mut Store,
        writes: Vec<(i64, Vec<Evidence>, News)>,
    ) -> store::Result<bool> {
        if writes.is_empty() {
            return Ok(false);
        }
        let outcome = store.write(|tx| {
            for (id, rows, news) in &writes {
                evidence::replace(tx, *id, rows)?;
                if *news == News::Said {
                    sessions::mark_dirty(tx, *id)?;
                }
            }
            Ok(())
        });
        if let Err(error) = outcome {
            // It may have happened or not: all is read again.
            self.asked_for = None;
            return Err(error);
        }
        // Our own rows change nothing about whom to ask.
        if let Some(question) = &mut self.asked_for {
            question.rows_written = store.rows_written();
        }
        let said = writes.iter().any(|(_, _, news)| *news == News::Said);
        self.stored.extend(writes.into_iter().map(|(id, rows, _)| (id, rows)));
        Ok(said)
    }

    /// Who can be at the log of a dsh session: only an unclosed bracket asks.
    fn writer(&mut self, asked: &Asked, seen: &Observation, proc: &Proc) -> Option<Writer> {
        match (asked.agent, asked.bracket) {
            (Agent::Dsh, Bracket::Open | Bracket::Stale) => {}
            (Agent::Dsh, Bracket::None | Bracket::Closed | Bracket::Failed)
            | (Agent::Claude | Agent::Codex, _) => return None,
        }
        let lock = seen.lock.as_ref()?;
        let untaken = match lock {
            Observed::NoFile | Observed::NoFolder => true,
            Observed::Free => !asked.takes_lock,
            Observed::Held(_) | Observed::Unknown(_) => false,
        };
        if !untaken {
            return Some(Writer::Lock(lock.clone()));
        }
        let unknown = self.programs == Programs::default();
        if unknown && proc.sight() != Sight::None {
            let (there, max) = (proc.clone(), self.limits.processes_max);
            let seen = self.patience.within(move || programs::dsh(&there, max));
            self.programs = seen.unwrap_or_default();
        }
        Some(Writer::Programs(self.programs.clone()))
    }
}

/// What a look at sessions begins with.
struct Scene {
    proc: Proc,
    registry: Registry,
    /// Lock files that are held, of a look that goes far.
    held: Option<BTreeSet<PathBuf>>,
}

/// The folder of the locks of a Codex home.
fn lock_folder(root: &Path) -> Option<PathBuf> {
    codex_lock(root, "x").parent().map(Path::to_owned)
}

#[cfg(test)]
mod tests;
