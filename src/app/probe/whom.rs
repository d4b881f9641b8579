//! Whom a look at processes is about, and what the store knows of them before it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::rows::Exited;
use crate::compaction::Bracket;
use crate::lifecycle::presence::Answers;
use crate::lifecycle::run;
use crate::liveness::proc::ProcessId;
use crate::liveness::{Child, Session};
use crate::source::Agent;
use crate::store::evidence::{self, Named};
use crate::store::query;
use crate::store::runs::RunRow;
use crate::store::{self, Store};

/// A session that is asked about, with what is fixed about it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) session: Session,
    pub(super) agent: Agent,
    pub(super) exited: Vec<Exited>,
    /// It is of `codex exec`, which runs one turn, and that is over: since its newest activity, ms.
    pub(super) done_ms: Option<i64>,
    /// What its transcript says that may answer a hook.
    pub(super) answers: Answers,
    /// What its log alone says of its newest bracket.
    pub(super) bracket: Bracket,
    /// Whoever writes its log holds its lock.
    pub(super) takes_lock: bool,
}

impl Asked {
    /// What a run says of the session that it opened.
    pub(super) fn add_run(&mut self, run: &RunRow, now_ms: i64) {
        let Some((pid, start)) = run.child.as_ref() else { return };
        let Ok(pid) = u32::try_from(*pid) else { return };
        let start_ticks = start.as_deref().and_then(|start| start.parse().ok());
        let start = start_ticks.map_or_else(|| "?".to_owned(), |ticks: u64| ticks.to_string());
        if let (Some(ended), Some(ended_ms)) = (run::ended(run), run.exit_ms) {
            let subject = format!("{pid}:{start}");
            let (how, scope) = (ended.phrase(), run.scope.clone());
            self.exited.push(Exited { subject, pid, ended_ms, how, scope });
        } else if run.ended_ms.is_none() {
            self.session.children.push(Child {
                process: ProcessId { pid, start_ticks },
                uid: None,
                scope: serde_json::from_str(&run.scope).unwrap_or_default(),
                seen_ms: run.started_ms.unwrap_or(now_ms),
            });
        }
    }
}

/// Learns of the sub-agents of those that a process may be at work on, where their own turn does not
/// tell already.
pub(super) fn with_children_at_work(
    store: &mut Store,
    asked: &mut [Asked],
    named: &Named,
) -> store::Result<()> {
    let may_work = |asked: &&mut Asked| {
        let named = || named.claude_working.contains(&asked.session.native_id);
        asked.session.in_registry && !asked.session.written.turn_open && named()
    };
    let mut resting: Vec<&mut Asked> = asked.iter_mut().filter(may_work).collect();
    if resting.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = resting.iter().map(|asked| asked.session.id).collect();
    let at_work = store.read(|tx| query::with_open_children(tx, &ids))?;
    for asked in &mut resting {
        asked.session.written.child_turn_open = at_work.contains(&asked.session.id);
    }
    Ok(())
}

/// Whose locks these are.
pub(super) fn named_by(
    store: &mut Store,
    host: &str,
    files: BTreeSet<PathBuf>,
) -> store::Result<Named> {
    let mut named = Named::default();
    for file in files {
        if file.file_name() == Some(OsStr::new("session.lock")) {
            let mut folder = file.parent().unwrap_or(&file).as_os_str().as_bytes().to_vec();
            folder.push(b'/');
            named.rows.extend(store.read(|tx| evidence::sessions_in(tx, host, &folder))?);
        } else if let Some(thread) = file.file_stem().and_then(OsStr::to_str) {
            named.codex.push(thread.to_owned());
        }
    }
    Ok(named)
}
