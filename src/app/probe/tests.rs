//! Looks through a store: what hooks left is absorbed once, and a look without news costs nothing.

use std::fs;
use std::path::Path;

use super::*;
use crate::liveness::hooks::{Event, HookAgent, Kind, leave};
use crate::liveness::scope::Scope;

const NOW: i64 = 1_800_000_000_000;

impl Probe {
    /// Plays a look that hangs until what is returned is dropped.
    pub(in crate::app) fn hang(&mut self) -> std::sync::mpsc::SyncSender<()> {
        self.patience = Patience::of(std::time::Duration::ZERO);
        let (release, hangs) = std::sync::mpsc::sync_channel::<()>(0);
        assert_eq!(self.patience.within(move || hangs.recv().is_err()), None);
        release
    }
}

struct Bed {
    store: Store,
    folder: tempfile::TempDir,
    probe: Probe,
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = |agent: Agent, name: &str| Root { agent, path: folder.path().join(name) };
        let roots =
            [root(Agent::Claude, "claude"), root(Agent::Codex, "codex"), root(Agent::Dsh, "dsh")];
        let probe = Probe::new("h", &folder.path().join("x.db"), &roots);
        Self { store: Store::in_memory(1).unwrap(), folder, probe }
    }

    /// A row as the mirror leaves it.
    fn session(&mut self, agent: &str, native: &str, parent: Option<&str>) -> i64 {
        let key = crate::source::SessionKey {
            native: native.to_owned(),
            parent: parent.map(str::to_owned),
        };
        self.store.write(|tx| store::ingest::session(tx, "h", agent, &key, 1)).unwrap()
    }

    fn leave(&self, event: &Event) {
        leave(&self.inbox(), event).unwrap();
    }

    fn look(&mut self, now_ms: i64) -> Probed {
        self.probe.look(&mut self.store, Reach::Far, now_ms).unwrap()
    }

    fn hooks(&mut self, id: i64) -> Vec<String> {
        let rows = self.store.read(|tx| evidence::of_session(tx, id)).unwrap();
        let told = rows.into_iter().filter(|row| row.source == "hook");
        told.map(|row| format!("{} {:?}", row.why, row.ended_ms.map(|at| at - NOW))).collect()
    }

    fn waiting(&self) -> usize {
        fs::read_dir(self.inbox()).map_or(0, Iterator::count)
    }

    fn inbox(&self) -> std::path::PathBuf {
        self.folder.path().join("inbox/x.db")
    }
}

fn event(kind: Kind, session: &str) -> Event {
    Event {
        agent: Some(HookAgent::Claude),
        kind,
        at_ms: NOW,
        session_id: Some(session.to_owned()),
        transcript_path: None,
        agent_id: None,
        reason: None,
        trigger: None,
        tool_name: None,
        turn_id: None,
        scope: Scope::default(),
        start_ticks: None,
    }
}

#[test]
fn an_event_becomes_one_row_and_its_file_goes() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "s", None);
    let reason = Some("logout".to_owned());
    bed.leave(&Event { reason, ..event(Kind::SessionEnd, "s") });
    assert!(bed.look(NOW + 1).changed);
    assert_eq!(
        (bed.hooks(id), bed.waiting()),
        (vec!["SessionEnd hook (logout) Some(0)".to_owned()], 0)
    );
    assert!(!bed.look(NOW + 2).changed, "absorbed twice");
}

#[test]
fn an_event_of_an_unknown_session_waits_for_it_and_not_for_ever() {
    let mut bed = Bed::new();
    bed.leave(&event(Kind::Stop, "s"));
    bed.look(NOW + 1);
    assert_eq!(bed.waiting(), 1);
    let id = bed.session("claude", "s", None);
    bed.look(NOW + 2);
    assert_eq!((bed.hooks(id).len(), bed.waiting()), (1, 0));
    bed.leave(&event(Kind::Stop, "never"));
    bed.look(NOW + 10 * 60_000);
    assert_eq!(bed.waiting(), 1);
    bed.look(NOW + 10 * 60_000 + 1);
    assert_eq!(bed.waiting(), 0);
}

#[test]
fn garbage_is_removed_unread() {
    let mut bed = Bed::new();
    let inbox = bed.inbox();
    fs::create_dir_all(&inbox).unwrap();
    fs::write(inbox.join("1-garbage.json"), "{").unwrap();
    bed.look(NOW);
    assert_eq!(bed.waiting(), 0);
}

#[test]
fn codex_shares_an_id_between_a_thread_and_its_sub_agents_so_the_transcript_tells() {
    let mut bed = Bed::new();
    let root = bed.session("codex", "01a22ba3-ba00-7866-971e-b86e9aa3c801", None);
    let child = "01a22bab-f760-7ebf-9360-498f84b938c7";
    let id = bed.session("codex", child, Some("01a22ba3-ba00-7866-971e-b86e9aa3c801"));
    bed.store
        .write(|tx| tx.dump(&["UPDATE sessions SET nested = 1 WHERE parent_native_id <> ''"]))
        .unwrap();
    let of_child = |kind| Event {
        agent: Some(HookAgent::Codex),
        transcript_path: Some(format!(
            "/x/sessions/2026/rollout-2026-11-30T09-00-00-{child}.jsonl"
        )),
        ..event(kind, "01a22ba3-ba00-7866-971e-b86e9aa3c801")
    };
    bed.leave(&of_child(Kind::SessionEnd));
    bed.leave(&of_child(Kind::PermissionRequest));
    bed.look(NOW + 1);
    assert_eq!(bed.hooks(id), [""; 0], "a sub-agent has no lifecycle");
    assert_eq!(bed.hooks(root), ["PermissionRequest hook None"], "its end is not the thread's");
    assert_eq!(bed.waiting(), 0);
}

#[test]
fn a_hook_inside_a_sub_agent_ends_no_session_but_may_want_the_user() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "s", None);
    for kind in [Kind::Stop, Kind::PreCompact, Kind::SessionEnd, Kind::PermissionRequest] {
        bed.leave(&Event { agent_id: Some("a".to_owned()), ..event(kind, "s") });
    }
    bed.look(NOW + 1);
    assert_eq!(bed.hooks(id), ["PermissionRequest hook None"]);
}

#[test]
fn a_look_without_news_writes_no_row() {
    let mut bed = Bed::new();
    bed.session("claude", "s", None);
    bed.session("dsh", "d", None);
    bed.look(NOW);
    let written = bed.store.rows_written();
    assert!(!bed.look(NOW + 3_600_000).changed);
    assert_eq!(bed.store.rows_written(), written);
}

#[test]
fn between_scans_there_are_looks_only_where_there_is_something_to_see() {
    let mut bed = Bed::new();
    bed.look(NOW);
    assert!(!bed.probe.wants_looks());
    fs::create_dir_all(bed.folder.path().join("claude/sessions")).unwrap();
    bed.look(NOW);
    assert!(bed.probe.wants_looks());
    let hints: Vec<PathBuf> = bed.probe.hint_folders().collect();
    let at = |name: &str| Path::new(bed.folder.path()).join(name);
    assert_eq!(hints, [at("claude/sessions"), at("codex/thread-writer-locks"), at("inbox/x.db")]);
}

#[test]
fn what_hooks_left_when_all_stores_had_one_inbox_is_taken_by_who_knows_it() {
    let mut bed = Bed::new();
    let shared = bed.folder.path().join("inbox");
    let id = bed.session("claude", "s", None);
    leave(&shared, &event(Kind::SessionEnd, "s")).unwrap();
    let of_another = leave(&shared, &event(Kind::SessionEnd, "of another store")).unwrap();
    bed.look(NOW + 24 * 3_600_000);
    assert_eq!(bed.hooks(id), ["SessionEnd hook Some(0)"]);
    assert!(of_another.exists(), "another store may know it");
    bed.look(NOW + 8 * 24 * 3_600_000);
    assert!(!of_another.exists(), "nobody came for it");
}

#[test]
fn an_event_that_was_begun_and_never_finished_was_lost() {
    let mut bed = Bed::new();
    fs::create_dir_all(bed.inbox()).unwrap();
    fs::write(bed.inbox().join(format!(".{NOW:015}-0-7-0.tmp")), "").unwrap();
    bed.look(NOW + 60_000);
    assert_eq!(crate::liveness::hooks::lost(&bed.inbox()), None, "its hook may be at it");
    bed.look(NOW + 60_001);
    bed.look(NOW + 60_002);
    assert_eq!(crate::liveness::hooks::lost(&bed.inbox()).map(|lost| lost.events), Some(1));
    assert_eq!(bed.waiting(), 1, "only the count is left");
}

#[test]
fn events_that_were_lost_are_told_for_a_day() {
    let mut bed = Bed::new();
    fs::create_dir_all(bed.inbox()).unwrap();
    let lost = fs::File::create(bed.inbox().join("lost")).unwrap();
    lost.set_len(439).unwrap();
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(NOW.cast_unsigned());
    lost.set_modified(at).unwrap();
    bed.look(NOW + 1_000);
    let told: Vec<String> = bed.probe.warnings().collect();
    assert!(told.iter().any(|told| told.starts_with("439 events of hooks were lost")), "{told:?}");
    bed.look(NOW + 25 * 3_600_000);
    assert_eq!(bed.probe.warnings().count(), 0);
    assert!(!bed.inbox().join("lost").exists());
}

#[test]
fn a_look_that_does_not_come_back_leaves_everybody_as_they_are() {
    let mut bed = Bed::new();
    let id = bed.session("codex", "s", None);
    bed.store.write(|tx| sessions::mark_dirty(tx, id)).unwrap();
    assert!(bed.look(NOW).unlooked.is_empty());
    let release = bed.probe.hang();
    let seen = bed.look(NOW + 2_000);
    assert_eq!((seen.unlooked, seen.processes.len()), (HashSet::from([id]), 0));
    let told: Vec<String> = bed.probe.warnings().collect();
    assert!(told.iter().any(|told| told.contains("does not come back")), "{told:?}");
    drop(release);
}
