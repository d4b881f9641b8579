//! Looks one after another at a made-up `/proc`: each rule of what counts as evidence, by name.

use std::fs;

use super::record::{Fate, Source, Standing, standing};
use super::testing::{Fake, UID};
use super::*;
use serde_json::{Value, json};

const NOW_MS: i64 = 1_800_000_000_000;
const HOUR_MS: i64 = 3_600_000;

/// Registry, processes and sessions, and what the looks so far have said.
struct World {
    fake: Fake,
    registry: PathBuf,
    sessions: Vec<Session>,
    last: Observations,
}

impl World {
    fn new() -> Self {
        let fake = Fake::new();
        let registry = fake.beside("claude/sessions");
        Self { fake, registry, sessions: Vec::new(), last: Observations::default() }
    }

    /// A Claude session, silent for an hour.
    fn session(&mut self, name: &str, turn_open: bool) -> &mut Session {
        self.sessions.push(Session {
            id: i64::try_from(self.sessions.len()).unwrap(),
            native_id: name.to_owned(),
            cwd: Some("/w".to_owned()),
            written: Written { turn_open, last_ms: Some(NOW_MS - HOUR_MS), ..Written::default() },
            last_activity_ms: Some(NOW_MS - HOUR_MS),
            in_registry: true,
            ..Session::default()
        });
        self.sessions.last_mut().unwrap()
    }

    /// A Codex session with a lock file.
    fn locked_session(&mut self, name: &str) -> PathBuf {
        let path = self.fake.beside("codex/thread-writer-locks").join(format!("{name}.lock"));
        fs::write(&path, "").unwrap();
        let session = self.session(name, true);
        session.in_registry = false;
        session.locks = vec![path.clone()];
        path
    }

    fn entry(&self, pid: u32, start: u64, session: &str, more: Value) {
        let mut entry = json!({
            "pid": pid, "procStart": start.to_string(), "sessionId": session, "cwd": "/w",
            "kind": "interactive", "entrypoint": "cli",
        });
        let Value::Object(more) = more else { panic!("no object") };
        entry.as_object_mut().unwrap().extend(more);
        self.raw_entry(pid, &entry.to_string());
    }

    /// Of the user whose processes these are.
    fn raw_entry(&self, pid: u32, text: &str) {
        fs::write(self.registry.join(format!("{pid}.json")), text).unwrap();
    }

    fn no_entry(&self, pid: u32) {
        fs::remove_file(self.registry.join(format!("{pid}.json"))).unwrap();
    }

    fn busy(&self, pid: u32, start: u64, session: &str) {
        let said = json!({"status": "busy", "statusUpdatedAt": NOW_MS - HOUR_MS});
        self.entry(pid, start, session, said);
    }

    /// The process has a lock file open, and holds it.
    fn holds(&self, pid: u32, files: &[&PathBuf]) {
        for (number, file) in files.iter().enumerate() {
            self.fake.opens(pid, u32::try_from(number).unwrap(), file);
        }
        let held: Vec<_> = files.iter().map(|file| (pid, file.as_path())).collect();
        self.fake.locks(&held);
    }

    /// A look; the next one is told what this one said.
    fn look(&mut self, now_ms: i64) {
        let mut registry = registry::read(std::slice::from_ref(&self.registry), 100);
        for entry in &mut registry.entries {
            entry.owner = Some(UID);
        }
        let request = Request { registry: &registry, sessions: &self.sessions };
        self.last = observe(&request, &self.fake.proc(), now_ms, &Limits::default());
        for observation in &self.last.sessions {
            let session = self.sessions.iter_mut().find(|session| session.id == observation.id);
            // As the store does it.
            let stored = serde_json::to_string(&observation.records).unwrap();
            session.unwrap().earlier = serde_json::from_str(&stored).unwrap();
        }
    }

    fn seen(&self, index: i64) -> &Observation {
        self.last.sessions.iter().find(|seen| seen.id == index).unwrap()
    }

    fn fates(&self, index: i64) -> Vec<Fate> {
        let seen = self.last.sessions.iter().find(|seen| seen.id == index);
        seen.map_or(Vec::new(), |seen| seen.records.iter().map(|record| record.fate).collect())
    }

    fn standing(&self, index: i64) -> Standing<'_> {
        standing(&self.seen(index).records)
    }

    fn end(&self, index: i64) -> Option<i64> {
        self.standing(index).end.map(|end| end.ended_ms)
    }
}

#[test]
fn a_verified_process_holds_its_session_whatever_the_age_of_its_entry() {
    let mut world = World::new();
    world.session("s", true);
    world.fake.process(42, 7);
    let old = json!({"status": "busy", "statusUpdatedAt": 1, "updatedAt": 1, "startedAt": 1});
    world.entry(42, 7, "s", old);
    world.look(NOW_MS);
    let seen = world.standing(0);
    assert_eq!((seen.alive, seen.vetoes_end, seen.vetoes_silence), (Some(true), true, true));
    assert_eq!((seen.end, seen.shown.unwrap().subject()), (None, "42:7".to_owned()));
    let working = Working { pid: 42, why: "pid 42 says busy, and the turn is open".to_owned() };
    assert_eq!(world.seen(0).working, Some(working));
}

#[test]
fn a_record_never_seen_alive_proves_no_end() {
    let mut world = World::new();
    world.session("dead", true);
    world.session("reused", true);
    world.busy(41, 7, "dead");
    world.busy(42, 7, "reused");
    world.fake.process(42, 784);
    for now_ms in [NOW_MS, NOW_MS + HOUR_MS] {
        world.look(now_ms);
        for index in [0, 1] {
            let seen = world.standing(index);
            assert_eq!((seen.alive, seen.end, seen.vetoes_end), (Some(false), None, false));
            assert_eq!(world.seen(index).working, None);
        }
    }
}

#[test]
fn a_process_once_verified_and_now_gone_is_an_end_at_its_last_sight() {
    let mut world = World::new();
    world.session("s", false);
    world.fake.process(42, 7);
    world.busy(42, 7, "s");
    world.look(NOW_MS);
    world.look(NOW_MS + 5_000);
    world.fake.ends(42);
    // Killed: its entry stays. A clean exit removes it: the same.
    world.look(NOW_MS + 9_000);
    let end = world.standing(0).end.unwrap();
    assert_eq!((end.ended_ms, end.observed_ms), (NOW_MS + 5_000, NOW_MS + 9_000));
    assert_eq!(end.why, ["pid 42 is gone"]);
    assert_eq!(world.standing(0).alive, Some(false));
    world.no_entry(42);
    world.look(NOW_MS + HOUR_MS);
    assert_eq!(world.end(0), Some(NOW_MS + 5_000));
}

#[test]
fn a_clean_exit_is_seen_in_one_look() {
    let mut world = World::new();
    world.session("s", false);
    world.fake.process(42, 7);
    world.busy(42, 7, "s");
    world.look(NOW_MS);
    world.no_entry(42);
    world.fake.ends(42);
    world.look(NOW_MS + 1_000);
    assert_eq!(world.end(0), Some(NOW_MS));
}

#[test]
fn a_pid_with_another_start_time_is_gone_and_a_zombie_has_ended() {
    for (start, state, threads) in [(8, "S", 4), (7, "Z", 1)] {
        let mut world = World::new();
        world.session("s", false);
        world.fake.process(42, 7);
        world.busy(42, 7, "s");
        world.look(NOW_MS);
        world.fake.process_as(42, start, state, threads);
        world.look(NOW_MS + 1_000);
        assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Gone], Some(NOW_MS)));
    }
}

#[test]
fn an_entry_missing_while_its_pid_lives_is_unknown() {
    let mut world = World::new();
    world.session("s", false);
    world.fake.process(42, 7);
    world.busy(42, 7, "s");
    world.look(NOW_MS);
    world.no_entry(42);
    world.look(NOW_MS + HOUR_MS);
    let seen = world.standing(0);
    assert_eq!((seen.alive, seen.end, seen.vetoes_end), (None, None, false));
    assert_eq!(world.fates(0), [Fate::Unknown]);
}

#[test]
fn a_half_written_entry_is_unknown_and_the_next_one_verifies_again() {
    let mut world = World::new();
    world.session("s", true);
    world.fake.process(42, 7);
    world.busy(42, 7, "s");
    world.look(NOW_MS);
    world.raw_entry(42, "{\"pid\":42,\"procSta");
    world.look(NOW_MS + 5_000);
    assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Unknown], None));
    assert_eq!(world.seen(0).working, None);
    world.busy(42, 7, "s");
    world.look(NOW_MS + 6_000);
    assert_eq!(world.fates(0), [Fate::Dedicated]);
    assert_eq!(world.seen(0).records[0].first_alive_ms, Some(NOW_MS));
}

#[test]
fn an_unreadable_registry_is_no_end() {
    let mut world = World::new();
    world.session("s", false);
    world.fake.process(42, 7);
    world.busy(42, 7, "s");
    world.look(NOW_MS);
    let folder = world.registry.clone();
    fs::remove_dir_all(&folder).unwrap();
    // A folder that cannot be listed, for root too.
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&folder, &folder).unwrap();
    world.look(NOW_MS + HOUR_MS);
    assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Unknown], None));
    assert_eq!(world.last.notes[0].code, "registry_unreadable");
}

#[test]
fn a_session_never_seen_in_a_process_has_nothing_to_say() {
    let mut world = World::new();
    world.session("s", true);
    world.fake.process(42, 7);
    world.look(NOW_MS);
    assert_eq!(world.last, Observations::default());
}

#[test]
fn of_two_processes_both_must_be_gone() {
    let mut world = World::new();
    world.session("s", false);
    world.fake.process(42, 7);
    world.fake.process(43, 8);
    world.busy(42, 7, "s");
    world.busy(43, 8, "s");
    world.look(NOW_MS);
    world.fake.ends(42);
    world.look(NOW_MS + 1_000);
    assert_eq!((world.end(0), world.standing(0).vetoes_end), (None, true));
    // Unknown is not gone either.
    world.no_entry(43);
    world.look(NOW_MS + 2_000);
    assert_eq!((world.end(0), world.standing(0).alive), (None, None));
    world.fake.ends(43);
    world.look(NOW_MS + 3_000);
    assert_eq!(world.end(0), Some(NOW_MS + 1_000));
    // Opened again: over no more, until that one is gone as well.
    world.fake.process(44, 9);
    world.busy(44, 9, "s");
    world.look(NOW_MS + 4_000);
    assert_eq!((world.end(0), world.standing(0).alive), (None, Some(true)));
}

#[test]
fn another_scope_proves_nothing_and_another_boot_proves_all() {
    let seen_from = |change: fn(&mut Scope)| {
        let mut world = World::new();
        world.session("s", false);
        world.fake.process(42, 7);
        world.busy(42, 7, "s");
        world.look(NOW_MS);
        world.fake.ends(42);
        change(&mut world.sessions[0].earlier[0].scope);
        world.look(NOW_MS + 1_000);
        (world.fates(0), world.end(0).is_some())
    };
    let unknown = (vec![Fate::Unknown], false);
    let gone = (vec![Fate::Gone], true);
    assert_eq!(seen_from(|_| {}), gone);
    assert_eq!(seen_from(|then| then.boot_id = Some("boot-0".to_owned())), gone);
    assert_eq!(seen_from(|then| then.host = "other".to_owned()), unknown);
    assert_eq!(seen_from(|then| then.pid_ns = Some(7)), unknown);
    assert_eq!(seen_from(|then| then.uid = 0), unknown);
}

#[test]
fn hidden_processes_are_unknown() {
    let mut world = World::new();
    world.session("s", false);
    world.fake.process(42, 7);
    world.busy(42, 7, "s");
    world.look(NOW_MS);
    world.fake.ends(42);
    world.fake.write("self/mounts", "proc /proc proc rw,hidepid=2 0 0\n");
    world.look(NOW_MS + 1_000);
    assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Unknown], None));
    assert_eq!(world.last.notes[0].code, "proc_hidden");
}

#[test]
fn an_entry_of_another_pid_domain_neither_holds_nor_ends() {
    let mut world = World::new();
    world.session("s", true);
    world.fake.process(42, 7);
    let theirs = json!({"status": "busy", "pidDomain": "linux:m:pid:[4026532111]"});
    world.entry(42, 7, "s", theirs);
    world.look(NOW_MS);
    let seen = world.standing(0);
    assert_eq!((seen.alive, seen.vetoes_end, seen.end), (None, false, None));
    assert_eq!(world.seen(0).working, None);
}

#[test]
fn a_process_went_on_only_after_two_looks_two_seconds_apart() {
    let mut world = World::new();
    world.session("old", false);
    world.session("new", false);
    world.fake.process(42, 7);
    world.entry(42, 7, "old", json!({"status": "idle"}));
    world.look(NOW_MS);
    world.entry(42, 7, "new", json!({"status": "idle"}));
    world.look(NOW_MS + 1_000);
    assert_eq!((world.fates(0), world.fates(1)), (vec![Fate::Unknown], vec![Fate::Dedicated]));
    assert_eq!(world.seen(0).records[0].names_other_since_ms, Some(NOW_MS + 1_000));
    world.look(NOW_MS + 2_999);
    assert_eq!(world.end(0), None);
    world.look(NOW_MS + 3_000);
    assert_eq!(world.end(0), Some(NOW_MS));
    assert_eq!(world.seen(0).records[0].why, "pid 42 went on to session new");
    // And comes back.
    world.entry(42, 7, "old", json!({"status": "idle"}));
    world.look(NOW_MS + 4_000);
    assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Dedicated], None));
}

#[test]
fn a_process_that_went_on_while_the_turn_is_open_ended_nothing() {
    let mut world = World::new();
    world.session("old", true);
    world.fake.process(42, 7);
    world.busy(42, 7, "old");
    world.look(NOW_MS);
    world.busy(42, 7, "new");
    world.look(NOW_MS + 1_000);
    world.look(NOW_MS + 9_000);
    assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Unknown], None));
    // The two looks are counted from when the turn is open no more.
    world.sessions[0].written.turn_open = false;
    world.look(NOW_MS + 10_000);
    assert_eq!(world.end(0), None);
    world.look(NOW_MS + 12_000);
    assert_eq!(world.end(0), Some(NOW_MS));
    let strays: Vec<_> = world.last.strays.iter().map(|stray| stray.entry.pid).collect();
    assert_eq!(strays, [42]);
}

/// Case 13: the entry of R still names O, whose turn is closed, and R grows.
fn suspect_world() -> World {
    let mut world = World::new();
    world.session("o", false).last_activity_ms = Some(NOW_MS - 70 * HOUR_MS);
    world.session("r", true).last_activity_ms = Some(NOW_MS - 1_000);
    world.fake.process(42, 7);
    world.entry(42, 7, "o", json!({"status": "busy", "statusUpdatedAt": NOW_MS - 60_000}));
    world
}

#[test]
fn a_suspect_entry_neither_holds_nor_works() {
    let mut world = suspect_world();
    world.look(NOW_MS);
    assert_eq!(world.fates(0), [Fate::Suspect]);
    let seen = world.standing(0);
    let vetoes = (seen.vetoes_end, seen.vetoes_silence);
    assert_eq!((seen.alive, vetoes, seen.end), (None, (false, false), None));
    assert_eq!(world.seen(0).working, None);
    assert_eq!(world.fates(1), []);
    // It was never verified there, so its end ends nothing.
    world.fake.ends(42);
    world.look(NOW_MS + 1_000);
    assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Disproved], None));
}

#[test]
fn an_entry_is_suspect_only_if_every_part_of_the_rule_holds() {
    let changes: [fn(&mut World); 8] = [
        // The turn of its session is open.
        |world| world.sessions[0].written.turn_open = true,
        // Its session went on after it.
        |world| world.sessions[0].last_activity_ms = Some(NOW_MS - 30_000),
        // The other was not active after it.
        |world| world.sessions[1].last_activity_ms = Some(NOW_MS - 60_000),
        // The other works elsewhere.
        |world| world.sessions[1].cwd = Some("/elsewhere".to_owned()),
        // An entry names the other.
        |world| world.busy(99, 1, "r"),
        // It does not say busy.
        |world| {
            let said = json!({"status": "idle", "statusUpdatedAt": NOW_MS - 60_000});
            world.entry(42, 7, "o", said);
        },
        // It does not say since when.
        |world| world.entry(42, 7, "o", json!({"status": "busy"})),
        // An entry cannot be read, and may name the other.
        |world| world.raw_entry(77, "{"),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut world = suspect_world();
        change(&mut world);
        world.look(NOW_MS);
        assert_eq!(world.fates(0), [Fate::Dedicated], "change {index}");
    }
}

#[test]
fn a_suspect_entry_moves_no_process_to_the_session_it_names() {
    let mut world = suspect_world();
    world.entry(42, 7, "r", json!({"status": "idle"}));
    world.sessions[1].written.turn_open = false;
    world.look(NOW_MS);
    assert_eq!(world.fates(1), [Fate::Dedicated]);
    world.entry(42, 7, "o", json!({"status": "busy", "statusUpdatedAt": NOW_MS - 60_000}));
    world.look(NOW_MS + 1_000);
    world.look(NOW_MS + 9_000);
    assert_eq!((world.fates(1), world.end(1)), (vec![Fate::Unknown], None));
}

#[test]
fn only_busy_on_an_open_turn_works_and_not_for_ever() {
    let works = |more: Value, change: fn(&mut World)| {
        let mut world = World::new();
        world.session("s", true);
        world.fake.process(42, 7);
        world.entry(42, 7, "s", more);
        change(&mut world);
        world.look(NOW_MS);
        world.seen(0).working.is_some()
    };
    let busy = || json!({"status": "busy"});
    assert!(works(busy(), |_| {}));
    assert!(!works(busy(), |world| world.sessions[0].written.turn_open = false));
    assert!(!works(busy(), |world| world.sessions[0].last_activity_ms = None));
    assert!(works(busy(), |world| {
        world.sessions[0].last_activity_ms = Some(NOW_MS - 12 * HOUR_MS);
    }));
    assert!(!works(busy(), |world| {
        world.sessions[0].last_activity_ms = Some(NOW_MS - 12 * HOUR_MS - 1);
    }));
    for status in ["idle", "waiting", "shell", "dreaming"] {
        assert!(!works(json!({"status": status}), |_| {}), "{status}");
    }
    assert!(!works(json!({}), |_| {}));
    assert!(works(json!({"entrypoint": "sdk-cli"}), |_| {}));
}

/// What says that a process works, or nothing: an entry on a session whose turn is closed.
fn why_working(more: Value, change: fn(&mut World)) -> Option<String> {
    let mut world = World::new();
    world.session("s", false);
    world.fake.process(42, 7);
    world.entry(42, 7, "s", more);
    change(&mut world);
    world.look(NOW_MS);
    world.seen(0).working.clone().map(|working| working.why)
}

#[test]
fn busy_since_after_the_last_record_works_without_an_open_turn() {
    let busy_since =
        |at_ms: i64| why_working(json!({"status": "busy", "statusUpdatedAt": at_ms}), |_| {});
    let last_ms = NOW_MS - HOUR_MS;
    assert_eq!(busy_since(last_ms), None);
    let why = "pid 42 says busy, since after the last record";
    assert_eq!(busy_since(last_ms + 1).as_deref(), Some(why));
    // Of another that says nothing nobody knows since when.
    assert_eq!(why_working(json!({"entrypoint": "sdk-cli"}), |_| {}), None);
}

#[test]
fn a_process_works_while_a_sub_agents_turn_is_open() {
    let child: fn(&mut World) = |world| world.sessions[0].written.child_turn_open = true;
    let why = "pid 42 says busy, and a sub-agent's turn is open";
    assert_eq!(why_working(json!({"status": "busy"}), child).as_deref(), Some(why));
    let why = "pid 42 (sdk-cli) is alive, and a sub-agent's turn is open";
    assert_eq!(why_working(json!({"entrypoint": "sdk-cli"}), child).as_deref(), Some(why));
    assert_eq!(why_working(json!({"status": "idle"}), child), None);
}

#[test]
fn of_two_processes_the_busy_one_works_whatever_the_other_wrote_last() {
    let second: fn(&mut World) = |world| {
        world.fake.process(43, 8);
        world.entry(43, 8, "s", json!({"status": "idle"}));
    };
    let busy = json!({"status": "busy", "statusUpdatedAt": NOW_MS - 2 * HOUR_MS});
    let why = "pid 42 says busy, and another process writes here too";
    assert_eq!(why_working(busy, second).as_deref(), Some(why));
}

#[test]
fn a_suspect_entry_does_not_work_although_it_is_newer() {
    let mut world = suspect_world();
    assert!(world.sessions[0].last_activity_ms < Some(NOW_MS - 60_000));
    world.sessions[0].written.last_ms = world.sessions[0].last_activity_ms;
    world.look(NOW_MS);
    assert_eq!((world.fates(0), world.seen(0).working.clone()), (vec![Fate::Suspect], None));
}

#[test]
fn a_stopped_or_ended_process_holds_but_does_not_work() {
    for state in ["T", "t", "Z"] {
        let mut world = World::new();
        world.session("s", true);
        world.fake.process_as(42, 7, state, 4);
        world.busy(42, 7, "s");
        world.look(NOW_MS);
        assert_eq!(
            (world.fates(0), world.seen(0).working.is_some()),
            (vec![Fate::Dedicated], false)
        );
        let shown = world.standing(0).shown.unwrap().state_word();
        assert!(matches!(shown, Some("stopped" | "zombie")));
    }
}

#[test]
fn a_headless_entry_works_only_if_it_never_had_a_status() {
    let mut world = World::new();
    world.session("s", true);
    world.fake.process(42, 7);
    world.entry(42, 7, "s", json!({"entrypoint": "sdk-ts", "status": "idle"}));
    world.look(NOW_MS);
    world.entry(42, 7, "s", json!({"entrypoint": "sdk-ts"}));
    world.look(NOW_MS + 1_000);
    assert_eq!((world.fates(0), world.seen(0).working.clone()), (vec![Fate::Dedicated], None));
}

#[test]
fn what_a_process_waits_for_is_told() {
    let mut world = World::new();
    world.session("s", true);
    world.fake.process(42, 7);
    let asks = json!({"status": "waiting", "waitingFor": "input needed", "statusUpdatedAt": 5});
    world.entry(42, 7, "s", asks);
    world.look(NOW_MS);
    let what = Some("input needed".to_owned());
    assert_eq!(world.seen(0).waiting, Some(Waiting { pid: 42, what, since_ms: Some(5) }));
    world.busy(42, 7, "s");
    world.look(NOW_MS);
    assert_eq!(world.seen(0).waiting, None);
}

#[test]
fn a_claimed_spare_holds_its_session() {
    let mut world = World::new();
    world.session("s", true);
    world.fake.process(42, 7);
    world.fake.argv(42, &["claude", "bg-spare", "--bg-spare", "/run/x.sock"]);
    world.busy(42, 7, "s");
    world.look(NOW_MS);
    assert_eq!(world.fates(0), [Fate::Dedicated]);
}

#[test]
fn a_lock_holds_a_session_and_never_works() {
    let mut world = World::new();
    let lock = world.locked_session("t");
    world.fake.process(42, 700);
    world.holds(42, &[&lock]);
    world.look(NOW_MS);
    let seen = world.standing(0);
    assert_eq!((seen.alive, seen.vetoes_end, seen.vetoes_silence), (Some(true), true, true));
    assert_eq!(seen.shown.unwrap().source, Source::Lock);
    assert_eq!(world.seen(0).working, None);
    assert_eq!(world.seen(0).lock, Some(Observed::Held(BTreeSet::from([42]))));
    let started_ms = Some(super::testing::BOOT_MS + 7_000);
    assert_eq!(world.seen(0).lock_holder(), Some((42, started_ms)));
}

#[test]
fn a_server_that_holds_many_vetoes_an_end_but_not_silence() {
    let mut world = World::new();
    let (first, second) = (world.locked_session("a"), world.locked_session("b"));
    world.fake.process(42, 7);
    world.holds(42, &[&first, &second]);
    world.look(NOW_MS);
    for index in [0, 1] {
        let seen = world.standing(index);
        assert_eq!((seen.vetoes_end, seen.vetoes_silence), (true, false));
        assert_eq!(seen.shown.unwrap().why, "loaded by pid 42, which holds 1 more");
    }
    // A server that is killed ends what it had loaded.
    world.fake.locks(&[]);
    world.fake.ends(42);
    world.look(NOW_MS + 1_000);
    assert_eq!((world.end(0), world.end(1)), (Some(NOW_MS), Some(NOW_MS)));
}

#[test]
fn the_locks_of_its_sub_agents_make_no_server() {
    let mut world = World::new();
    let lock = world.locked_session("a");
    let child = lock.with_file_name("child.lock");
    fs::write(&child, "").unwrap();
    world.sessions[0].family_locks = vec![child.clone()];
    world.fake.process(42, 7);
    world.holds(42, &[&lock, &child]);
    world.look(NOW_MS);
    assert_eq!(world.fates(0), [Fate::Dedicated]);
}

#[test]
fn a_lock_freed_by_a_process_that_lives_on_is_unloaded_not_ended() {
    let mut world = World::new();
    let lock = world.locked_session("t");
    world.fake.process(42, 7);
    world.holds(42, &[&lock]);
    world.look(NOW_MS);
    world.fake.locks(&[]);
    world.fake.closes(42, 0);
    world.look(NOW_MS + 1_000);
    let seen = world.standing(0);
    assert_eq!((seen.alive, seen.end, seen.vetoes_end), (None, None, false));
    assert_eq!(
        (world.fates(0), world.seen(0).lock.clone()),
        (vec![Fate::Unloaded], Some(Observed::Free))
    );
    // Taken by another: the same for the first.
    world.fake.process(43, 8);
    world.holds(43, &[&lock]);
    world.look(NOW_MS + 2_000);
    assert_eq!(world.fates(0), [Fate::Dedicated, Fate::Unloaded]);
    world.fake.locks(&[]);
    world.fake.ends(43);
    world.look(NOW_MS + 3_000);
    assert_eq!(world.end(0), None);
    // Days later the first ends, which has nothing to do with the session.
    world.fake.ends(42);
    world.look(NOW_MS + 48 * HOUR_MS);
    assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Gone], Some(NOW_MS + 2_000)));
}

#[test]
fn a_process_that_ends_right_after_it_freed_its_lock_is_an_end() {
    for (gap_ms, fates) in [(60_000, vec![Fate::Gone]), (60_001, vec![])] {
        let mut world = World::new();
        let lock = world.locked_session("t");
        world.fake.process(42, 7);
        world.holds(42, &[&lock]);
        world.look(NOW_MS);
        // Codex deletes the file on its way out, and ends a little later.
        fs::remove_file(&lock).unwrap();
        world.fake.locks(&[]);
        world.look(NOW_MS + 1_000);
        assert_eq!(world.fates(0), [Fate::Unloaded]);
        world.fake.ends(42);
        world.look(NOW_MS + 1_000 + gap_ms);
        assert_eq!(world.fates(0), fates);
    }
}

#[test]
fn a_child_of_a_run_holds_until_it_is_gone() {
    let mut world = World::new();
    world.fake.process(42, 7);
    let scope = world.fake.proc().scope().clone();
    let process = ProcessId { pid: 42, start_ticks: Some(7) };
    let child = Child { process, uid: Some(UID), scope, seen_ms: NOW_MS - 9_000 };
    world.session("s", false).children = vec![child];
    world.look(NOW_MS);
    assert!(world.standing(0).vetoes_silence);
    world.fake.ends(42);
    world.look(NOW_MS + 1_000);
    assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Gone], Some(NOW_MS)));
}

#[test]
fn a_child_of_a_run_that_went_on_holds_the_old_session_no_more() {
    let mut world = World::new();
    world.fake.process(42, 7);
    let scope = world.fake.proc().scope().clone();
    let process = ProcessId { pid: 42, start_ticks: Some(7) };
    let child = Child { process, uid: Some(UID), scope, seen_ms: NOW_MS };
    world.session("s", false).children = vec![child];
    world.entry(42, 7, "s", json!({}));
    world.look(NOW_MS);
    world.entry(42, 7, "t", json!({}));
    world.look(NOW_MS + 1_000);
    world.look(NOW_MS + 3_000);
    assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Moved], Some(NOW_MS)));
}

#[test]
fn a_record_is_news_when_it_says_something_else_or_once_a_minute() {
    let mut world = World::new();
    world.session("s", true);
    world.fake.process_as(42, 7, "S", 4);
    world.busy(42, 7, "s");
    world.look(NOW_MS);
    let stored = world.seen(0).records[0].clone();
    world.fake.process_as(42, 7, "R", 4);
    world.look(NOW_MS + 59_999);
    assert!(!world.seen(0).records[0].is_news(&stored));
    world.look(NOW_MS + 60_000);
    assert!(world.seen(0).records[0].is_news(&stored));
    world.fake.process_as(42, 7, "T", 4);
    world.look(NOW_MS + 1);
    assert!(world.seen(0).records[0].is_news(&stored));
}

#[test]
fn without_proc_nothing_is_known_and_the_look_says_so() {
    let mut world = World::new();
    world.session("s", true);
    world.busy(42, 7, "s");
    let lock = world.locked_session("t");
    fs::remove_dir_all(world.fake.path()).unwrap();
    world.look(NOW_MS);
    assert_eq!((world.fates(0), world.standing(0).alive), (vec![Fate::Unknown], None));
    assert!(matches!(world.seen(1).lock, Some(Observed::Unknown(_))));
    assert_eq!(world.last.notes[0].code, "proc_missing");
    assert!(lock.exists());
}

/// A Codex session, its turn as given, held by a server of that command at the first look.
fn unloaded(argv: &[&str], turn_open: bool) -> (World, PathBuf) {
    let mut world = World::new();
    let lock = world.locked_session("a");
    world.sessions[0].written.turn_open = turn_open;
    world.fake.process(42, 7);
    world.fake.argv(42, argv);
    world.holds(42, &[&lock]);
    world.look(NOW_MS);
    world.fake.closes(42, 0);
    world.fake.locks(&[]);
    (world, lock)
}

const DAEMON: [&str; 3] = ["codex", "app-server", "--managed-daemon"];

#[test]
fn a_daemon_that_holds_one_session_is_a_server() {
    let (world, _) = unloaded(&DAEMON, false);
    assert_eq!(world.fates(0), [Fate::Shared]);
    let said = world.standing(0);
    assert_eq!((said.vetoes_end, said.vetoes_silence), (true, false));
}

#[test]
fn a_session_that_a_daemon_has_unloaded_is_over() {
    for removed in [true, false] {
        let (mut world, lock) = unloaded(&DAEMON, false);
        if removed {
            fs::remove_file(&lock).unwrap();
        }
        world.look(NOW_MS + 60_000);
        assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Moved], Some(NOW_MS)));
        // And stays so, until it is loaded again.
        world.look(NOW_MS + 120_000);
        assert_eq!(world.fates(0), [Fate::Moved]);
        fs::write(&lock, "").unwrap();
        world.holds(42, &[&lock]);
        world.look(NOW_MS + 180_000);
        assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Shared], None));
    }
}

#[test]
fn unloaded_inside_a_turn_it_is_not_over_until_the_turn_is() {
    let (mut world, _) = unloaded(&DAEMON, true);
    world.look(NOW_MS + 60_000);
    assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Unloaded], None));
    world.sessions[0].written.turn_open = false;
    world.look(NOW_MS + 62_000);
    assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Moved], Some(NOW_MS)));
}

#[test]
fn what_is_no_server_or_cannot_be_seen_unloads_nothing() {
    let (mut world, _) = unloaded(&["codex"], false);
    world.look(NOW_MS + 60_000);
    assert_eq!(world.fates(0), [Fate::Unloaded]);
    let (mut world, lock) = unloaded(&DAEMON, false);
    fs::remove_dir_all(lock.parent().unwrap()).unwrap();
    world.look(NOW_MS + 60_000);
    assert_eq!((world.fates(0), world.end(0)), (vec![Fate::Unknown], None), "the home is gone");
}
