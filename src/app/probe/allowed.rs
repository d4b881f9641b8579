//! Whether what a hook asked leave for was allowed: after *approve* Codex writes nothing until the
//! output is there, and a child of its process that is younger than the request is the only sign.
//! (formats/claude-and-codex.md, *Seen on 2026-11-30*, Approvals.)

use serde::Deserialize;

use crate::lifecycle::presence::{Answers, Trust, presence};
use crate::liveness::family::{Since, younger_child};
use crate::liveness::proc::Proc;
use crate::store::evidence::Evidence;

const ASKED: &str = "PermissionRequest";

/// That the newest request for permission was allowed, if the process `holder` has started
/// something since; once seen it is kept as long as that request stands.
pub(super) fn row(
    stored: &[Evidence],
    answers: Answers,
    holder: u32,
    proc: &Proc,
    processes_max: usize,
) -> Option<Evidence> {
    let hooks: Vec<Evidence> = stored.iter().filter(|row| row.source == "hook").cloned().collect();
    let asked = hooks.iter().find(|row| row.says == ASKED)?;
    // Only what stands is worth a walk through the processes.
    presence(&hooks, Trust::Fresh, answers, false).wait?;
    let known = |row: &&Evidence| row.source == "child" && row.since_ms == asked.last_ms;
    if let Some(known) = stored.iter().find(known) {
        return Some(known.clone());
    }
    let memory: Memory = serde_json::from_str(&asked.body).unwrap_or_default();
    let since = memory.start_ticks.map_or(Since::Wall(asked.last_ms), Since::Ticks);
    let child = younger_child(proc, holder, since, processes_max)?;
    let pid = child.id.pid;
    Some(Evidence {
        source: "child".to_owned(),
        subject: "request".to_owned(),
        says: "runs".to_owned(),
        scope: serde_json::to_string(proc.scope()).unwrap_or_else(|_| "{}".to_owned()),
        since_ms: asked.last_ms,
        first_ms: asked.last_ms,
        last_ms: asked.last_ms,
        pid: Some(pid),
        started_ms: child.started_ms,
        why: format!("pid {pid}, a child of pid {holder}, began after the request: it was allowed"),
        body: "{}".to_owned(),
        ..Evidence::default()
    })
}

/// What a hook left of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Memory {
    start_ticks: Option<u64>,
}
