//! What hooks have left in the inbox becomes evidence of the sessions it is about, once.
//!
//! All of it is stored in one transaction, and only then are the files removed: a kill in between
//! stores the same rows again. An event of a session that nobody has mirrored yet waits for it.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::app::hook::lost_phrase;
use crate::liveness::hooks::{self, Event, HookAgent, Kind, Refused, read_inbox};
use serde_json::json;

use crate::store::evidence::{self, Evidence};
use crate::store::{self, Store, Tx, merge, sessions};

/// Files absorbed in one look.
const FILES_MAX: usize = 2_000;
/// That events were lost is told for so long, ms; then they are counted anew.
const LOST_TOLD_MS: i64 = 24 * 3_600_000;

/// How long an event waits for the session it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// Its transcript is about to be read.
    Soon,
    /// Another store may know it, and nobody says which.
    Long,
}

impl Waits {
    fn ms(self) -> i64 {
        match self {
            Self::Soon => 10 * 60_000,
            Self::Long => 7 * 24 * 3_600_000,
        }
    }
}

/// What was lost of late, as a warning; what was lost long ago is forgotten.
pub(super) fn lost(inbox: &Path, now_ms: i64) -> Option<String> {
    let lost = hooks::lost(inbox)?;
    if now_ms.saturating_sub(lost.last_ms) > LOST_TOLD_MS {
        // Should it stay it is told again by nobody but doctor.
        let _stays = hooks::forget_lost(inbox);
        return None;
    }
    Some(lost_phrase(inbox, lost))
}

/// Takes in what lies in the inbox; returns how many rows that made.
pub(super) fn absorb(
    store: &mut Store,
    host: &str,
    inbox: &Path,
    waits: Waits,
    now_ms: i64,
) -> store::Result<usize> {
    // What cannot be listed is not there, or not ours to read; doctor says which.
    let Ok(files) = read_inbox(inbox, FILES_MAX, now_ms) else { return Ok(0) };
    if files.is_empty() {
        return Ok(0);
    }
    let is_lost = |event: &Result<Event, Refused>| *event == Err(Refused::Leftover);
    let begun: Vec<PathBuf> =
        files.iter().filter(|(_, event)| is_lost(event)).map(|(path, _)| path.clone()).collect();
    let (done, rows) = store.write(|tx| {
        let (mut done, mut rows) = (Vec::new(), 0);
        for (path, event) in files {
            match event
                .as_ref()
                .map_or(Ok(Taken::Useless), |event| take(tx, host, event, waits, now_ms))?
            {
                Taken::Stored => {
                    rows += 1;
                    done.push(path);
                }
                Taken::Useless => done.push(path),
                Taken::Waits => {}
            }
        }
        Ok((done, rows))
    })?;
    for path in begun {
        // Each is counted once: by whoever removes it.
        if fs::remove_file(path).is_ok() {
            let _uncounted = hooks::count_lost(inbox, now_ms);
        }
    }
    remove(&done);
    Ok(rows)
}

fn remove(paths: &[PathBuf]) {
    for path in paths {
        // Should it stay it is absorbed again, which changes nothing.
        let _stays = fs::remove_file(path);
    }
}

enum Taken {
    Stored,
    Useless,
    Waits,
}

fn take(tx: &Tx<'_>, host: &str, event: &Event, waits: Waits, now_ms: i64) -> store::Result<Taken> {
    if !says_something(event.kind) {
        return Ok(Taken::Useless);
    }
    let Some((found, nested)) = resolve(tx, host, event)? else {
        let waits = now_ms.saturating_sub(event.at_ms) <= waits.ms();
        return Ok(if waits { Taken::Waits } else { Taken::Useless });
    };
    // Of what happens inside a sub-agent only that the user is wanted is the session's business.
    let inside = nested || event.agent_id.is_some();
    if inside && !wants_the_user(event.kind) {
        return Ok(Taken::Useless);
    }
    let session = if nested { merge::ancestors(tx, found)?.last().copied() } else { Some(found) };
    let Some(session) = session else { return Ok(Taken::Useless) };
    evidence::record(tx, session, &row(event, now_ms))?;
    sessions::mark_dirty(tx, session)?;
    Ok(Taken::Stored)
}

fn says_something(kind: Kind) -> bool {
    match kind {
        Kind::SessionStart
        | Kind::UserPromptSubmit
        | Kind::PermissionRequest
        | Kind::Notification
        | Kind::PostToolUse
        | Kind::PostToolUseFailure
        | Kind::Stop
        | Kind::StopFailure
        | Kind::PreCompact
        | Kind::PostCompact
        | Kind::SessionEnd => true,
        Kind::PreToolUse | Kind::SubagentStart | Kind::SubagentStop | Kind::Other => false,
    }
}

fn wants_the_user(kind: Kind) -> bool {
    match kind {
        Kind::PermissionRequest | Kind::Notification => true,
        Kind::SessionStart
        | Kind::UserPromptSubmit
        | Kind::PreToolUse
        | Kind::PostToolUse
        | Kind::PostToolUseFailure
        | Kind::Stop
        | Kind::StopFailure
        | Kind::SubagentStart
        | Kind::SubagentStop
        | Kind::PreCompact
        | Kind::PostCompact
        | Kind::SessionEnd
        | Kind::Other => false,
    }
}

/// Which session an event is of: by its transcript, for Codex gives a thread and its sub-agents one
/// id; by that id only where there is no transcript.
fn resolve(tx: &Tx<'_>, host: &str, event: &Event) -> store::Result<Option<(i64, bool)>> {
    if let Some(path) = event.transcript_path.as_deref().map(Path::new) {
        let found = evidence::session_at(tx, host, path.as_os_str().as_bytes())?;
        if found.is_some() {
            return Ok(found);
        }
        // The same file by another name of its folder.
        let agents = agents(event.agent);
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if let Some(stem) = stem {
            for agent in agents {
                let found =
                    evidence::session_named(tx, host, agent.word(), native_id(*agent, stem))?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        if event.agent == Some(HookAgent::Codex) {
            return Ok(None);
        }
    }
    let Some(id) = event.session_id.as_deref() else { return Ok(None) };
    for agent in agents(event.agent) {
        let found = evidence::session_named(tx, host, agent.word(), id)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn agents(known: Option<HookAgent>) -> &'static [HookAgent] {
    match known {
        Some(HookAgent::Claude) => &[HookAgent::Claude],
        Some(HookAgent::Codex) => &[HookAgent::Codex],
        None => &[HookAgent::Claude, HookAgent::Codex],
    }
}

/// Claude names a transcript by its session, Codex `rollout-<time>-<thread id>`.
fn native_id(agent: HookAgent, stem: &str) -> &str {
    const UUID_CHARS: usize = 36;
    match agent {
        HookAgent::Claude => stem,
        HookAgent::Codex => {
            let from = stem.len().saturating_sub(UUID_CHARS);
            stem.get(from..).unwrap_or(stem)
        }
    }
}

/// One row per session and kind of event: the newest of a kind is what counts.
fn row(event: &Event, now_ms: i64) -> Evidence {
    // A hook's clock is this machine's or a container's; what lies ahead is now.
    let at_ms = event.at_ms.min(now_ms);
    let name = event.kind.name();
    let detail = event.tool_name.as_deref().or(event.reason.as_deref());
    let said = detail.or(event.trigger.as_deref());
    let said = said.map_or_else(String::new, |said| format!(" ({said})"));
    Evidence {
        source: "hook".to_owned(),
        subject: name.to_owned(),
        says: name.to_owned(),
        scope: serde_json::to_string(&event.scope).unwrap_or_else(|_| "{}".to_owned()),
        since_ms: at_ms,
        first_ms: at_ms,
        last_ms: at_ms,
        ended_ms: (event.kind == Kind::SessionEnd).then_some(at_ms),
        state: event.trigger.clone(),
        waits_for: detail.map(str::to_owned),
        why: format!("{name} hook{said}"),
        body: json!({"start_ticks": event.start_ticks}).to_string(),
        ..Evidence::default()
    }
}
