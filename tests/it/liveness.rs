//! Evidence of real processes: locks held, freed and left behind by a process that is killed, and
//! the proof that looking at a lock never takes it.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests may panic")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lullwatch::compaction::{self, BracketEvidence, Event, Fold, Lock};
use lullwatch::lifecycle::work::Written;
use lullwatch::liveness::locks::{Locks, Observed};
use lullwatch::liveness::proc::{Proc, Run, Seen};
use lullwatch::liveness::record::{Fate, standing};
use lullwatch::liveness::registry::{self, Registry};
use lullwatch::liveness::{Limits, Observation, Observations, Request, Session, observe};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

const NOW_MS: i64 = 1_800_000_000_000;
/// Looks while locks come and go: a table that loses lines loses one within a hundred.
const LOOKS: u32 = 500;

/// A process that does with locks what it is told, line by line.
pub(crate) struct StandIn {
    child: Child,
    tells: ChildStdin,
    hears: BufReader<ChildStdout>,
}

impl StandIn {
    pub(crate) fn start() -> Self {
        Self::start_as("stand-in")
    }

    /// One whose first argument is this, as if it were that program.
    pub(crate) fn start_as(name: &str) -> Self {
        Self::start_with(name, &[])
    }

    /// The same with more arguments, which mean nothing to it.
    pub(crate) fn start_with(name: &str, more: &[&str]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg0(name)
            .args(["--exact", "liveness::stand_in", "--ignored", "--nocapture"])
            .args(more)
            .env("LULLWATCH_TEST_STAND_IN", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let tells = child.stdin.take().unwrap();
        let hears = BufReader::new(child.stdout.take().unwrap());
        Self { child, tells, hears }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn tell(&mut self, what: &str, path: &Path) {
        writeln!(self.tells, "{what} {}", path.display()).unwrap();
    }

    /// What it answers; its answers begin with `@`, for its test harness talks too.
    fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.hears.read_line(&mut line).unwrap(), 0, "the stand-in is gone");
            if let Some((_, said)) = line.split_once('@') {
                return said.trim().to_owned();
            }
        }
    }

    pub(crate) fn does(&mut self, what: &str, path: &Path) {
        self.tell(what, path);
        assert_eq!(self.hear(), "done");
    }

    pub(crate) fn signal(&self, signal: Signal, until: WaitIdOptions) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
        // Waits until it is so, and leaves the process to be waited for.
        waitid(WaitId::Pid(pid), until | WaitIdOptions::NOWAIT).unwrap();
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
#[ignore = "the stand-in process of the other tests, no test of its own"]
fn stand_in() {
    if std::env::var_os("LULLWATCH_TEST_STAND_IN").is_none() {
        return;
    }
    let mut held: Vec<(PathBuf, File)> = Vec::new();
    let mut children: Vec<Child> = Vec::new();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (what, path) = line.split_once(' ').unwrap();
        let path = PathBuf::from(path);
        match what {
            "hold" => {
                let file = File::create(&path).unwrap();
                file.try_lock().unwrap();
                held.push((path, file));
            }
            "free" => held.retain(|(other, _)| *other != path),
            "contend" => contend(&path),
            // Its pid is left at the path.
            "start" => {
                let child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
                fs::write(&path, child.id().to_string()).unwrap();
                children.push(child);
            }
            "stop" => {
                for mut child in children.drain(..) {
                    child.kill().unwrap();
                    child.wait().unwrap();
                }
            }
            _ => panic!("told to {what}"),
        }
        println!("\n@done");
    }
}

/// Takes and frees the lock as an agent does, without waiting, until a file `stop` lies beside it.
fn contend(path: &Path) {
    println!("\n@begun");
    let file = File::create(path).unwrap();
    let stop = path.with_file_name("stop");
    let (mut refused, mut stopped) = (0, false);
    while !stopped {
        let taken = file.try_lock();
        refused += u32::from(taken.is_err());
        // Looked for while the lock is held, so that it is held for a while.
        stopped = stop.exists();
        if taken.is_ok() {
            file.unlock().unwrap();
        }
    }
    println!("\n@refused {refused}");
}

/// A Codex home with one session, and what its looks said.
struct Home {
    folder: tempfile::TempDir,
    session: Session,
    registry: Registry,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("thread-writer-locks")).unwrap();
        let session = Session {
            native_id: "s".to_owned(),
            written: Written { turn_open: true, ..Written::default() },
            last_activity_ms: Some(NOW_MS),
            ..Session::default()
        };
        Self { folder, session, registry: Registry::default() }
    }

    fn with_lock() -> (Self, PathBuf) {
        let mut home = Self::new();
        let lock = home.lock("s");
        home.session.locks = vec![lock.clone()];
        (home, lock)
    }

    fn lock(&self, name: &str) -> PathBuf {
        lullwatch::liveness::locks::codex_lock(self.folder.path(), name)
    }

    fn look(&mut self) -> Observation {
        let sessions = std::slice::from_ref(&self.session);
        let request = Request { registry: &self.registry, sessions };
        let mut seen: Observations = observe(&request, &Proc::system(), NOW_MS, &Limits::default());
        assert_eq!(seen.notes, []);
        let seen = seen.sessions.pop().unwrap();
        self.session.earlier.clone_from(&seen.records);
        seen
    }
}

fn fates(seen: &Observation) -> Vec<Fate> {
    seen.records.iter().map(|record| record.fate).collect()
}

fn held_by(pid: u32) -> Observed {
    Observed::Held(BTreeSet::from([pid]))
}

#[test]
fn a_real_lock_is_seen_held_freed_and_left_behind_by_kill_9() {
    let (mut home, lock) = Home::with_lock();
    let mut holder = StandIn::start();
    assert_eq!(home.look().lock, Some(Observed::NoFile));
    holder.does("hold", &lock);
    let seen = home.look();
    assert_eq!(
        (seen.lock.clone(), fates(&seen)),
        (Some(held_by(holder.pid())), vec![Fate::Dedicated])
    );
    assert!(standing(&seen.records).vetoes_silence);
    holder.does("free", &lock);
    let seen = home.look();
    assert_eq!((seen.lock.clone(), fates(&seen)), (Some(Observed::Free), vec![Fate::Unloaded]));
    assert_eq!(standing(&seen.records).end, None);
    holder.does("hold", &lock);
    assert_eq!(fates(&home.look()), [Fate::Dedicated]);
    holder.kill();
    assert!(lock.exists());
    let seen = home.look();
    assert_eq!((seen.lock.clone(), fates(&seen)), (Some(Observed::Free), vec![Fate::Gone]));
    assert!(standing(&seen.records).end.is_some());
}

#[test]
fn a_process_that_holds_two_sessions_is_a_server() {
    let (mut home, lock) = Home::with_lock();
    let other = home.lock("other");
    let mut holder = StandIn::start();
    holder.does("hold", &lock);
    holder.does("hold", &other);
    let seen = home.look();
    assert_eq!(fates(&seen), [Fate::Shared]);
    let said = standing(&seen.records);
    assert_eq!((said.vetoes_end, said.vetoes_silence), (true, false));
    holder.does("free", &other);
    assert_eq!(fates(&home.look()), [Fate::Dedicated]);
    holder.kill();
}

#[test]
fn a_new_file_at_its_place_or_with_its_inode_is_not_the_held_one() {
    let (mut home, lock) = Home::with_lock();
    let mut holder = StandIn::start();
    holder.does("hold", &lock);
    let inode = fs::metadata(&lock).unwrap().ino();
    // At its place, while the old one is held without a name.
    fs::remove_file(&lock).unwrap();
    File::create(&lock).unwrap();
    assert_eq!(home.look().lock, Some(Observed::Free));
    holder.kill();
    // With its inode, which the file system gives out again once nobody holds it.
    for number in 0..64 {
        let again = home.lock(&format!("again-{number}"));
        File::create(&again).unwrap();
        if fs::metadata(&again).unwrap().ino() == inode {
            home.session.locks = vec![again];
            break;
        }
    }
    assert_eq!(home.look().lock, Some(Observed::Free));
}

#[test]
fn a_holder_younger_than_a_bracket_is_not_at_it() {
    let (mut home, lock) = Home::with_lock();
    let mut holder = StandIn::start();
    holder.does("hold", &lock);
    let (pid, started_ms) = home.look().lock_holder().unwrap();
    let started_ms = started_ms.unwrap();
    let state = |bracket_ms: i64| {
        let mut fold = Fold::default();
        let at_ms = Some(bracket_ms);
        fold.fold(&Event::Start { seq: 1, at_ms, turn: None, command: None });
        let evidence = BracketEvidence {
            session_ended: false,
            lock: Lock::Held { pid, started_ms: Some(started_ms) },
            clock_stepped: false,
            other_writer_possible: false,
        };
        compaction::state(&fold.verdict(), &evidence, bracket_ms + 1_000).state
    };
    assert_eq!(state(started_ms - 60_000), compaction::State::BoundaryPending);
    assert_eq!(state(started_ms + 60_000), compaction::State::Compacting);
    holder.kill();
}

#[test]
fn looking_at_a_lock_never_takes_it() {
    let (home, lock) = Home::with_lock();
    let mut agent = StandIn::start();
    agent.tell("contend", &lock);
    assert_eq!(agent.hear(), "begun");
    let proc = Proc::system();
    let (mut looks, mut seen_held) = (0, 0);
    // In the thick of it: it was seen held, and more than once.
    while looks < 500 || seen_held < 20 {
        let seen = Locks::look(&proc, 10_000, 1_000).observe(&home.session.locks);
        seen_held += u32::from(matches!(seen, Observed::Held(_)));
        looks += 1;
        assert!(looks < 1_000_000, "never seen held");
    }
    File::create(lock.with_file_name("stop")).unwrap();
    // Not once was it refused the lock that nobody else may take.
    assert_eq!(agent.hear(), "refused 0");
    agent.kill();
}

#[test]
fn held_locks_are_seen_in_every_look_while_others_come_and_go() {
    let (home, lock) = Home::with_lock();
    let other = tempfile::tempdir().unwrap();
    let mut busy = StandIn::start();
    // Many, so that whatever line is lost is one of them.
    let held: Vec<PathBuf> = (0..24).map(|number| home.lock(&format!("held-{number}"))).collect();
    let mut holder = StandIn::start();
    for path in held.iter().chain([&lock]) {
        holder.does("hold", path);
    }
    busy.tell("contend", &other.path().join("x.lock"));
    assert_eq!(busy.hear(), "begun");
    let proc = Proc::system();
    for look in 0..LOOKS {
        let locks = Locks::look(&proc, 10_000, 1_000);
        let lost = held
            .iter()
            .find(|path| locks.observe(std::slice::from_ref(path)) != held_by(holder.pid()));
        assert_eq!(lost, None, "look {look}");
    }
    busy.kill();
    holder.kill();
}

#[test]
fn an_entry_of_a_real_process_lives_stops_and_ends_with_it() {
    let mut home = Home::new();
    let folder = home.folder.path().join("sessions");
    fs::create_dir(&folder).unwrap();
    let agent = StandIn::start();
    let pid = agent.pid();
    let Seen::Alive(process) = Proc::system().look(pid, None) else { panic!("not there") };
    let start = process.id.start_ticks.unwrap();
    let entry = format!(
        r#"{{"pid":{pid},"procStart":"{start}","sessionId":"s","status":"busy","updatedAt":1}}"#
    );
    fs::write(folder.join(format!("{pid}.json")), entry).unwrap();
    home.registry = registry::read(&[folder], 100);
    home.session.in_registry = true;

    let seen = home.look();
    assert_eq!((fates(&seen), seen.working.is_some()), (vec![Fate::Dedicated], true));
    agent.signal(Signal::STOP, WaitIdOptions::STOPPED);
    let seen = home.look();
    assert_eq!((fates(&seen), seen.working.is_some()), (vec![Fate::Dedicated], false));
    assert_eq!(seen.records.first().unwrap().run, Some(Run::Stopped));
    agent.signal(Signal::CONT, WaitIdOptions::CONTINUED);
    assert!(home.look().working.is_some());
    // Ended, though its parent, this test, has not waited for it.
    agent.signal(Signal::KILL, WaitIdOptions::EXITED);
    let seen = home.look();
    assert_eq!((fates(&seen), seen.working.is_some()), (vec![Fate::Gone], false));
    let end = standing(&seen.records).end.unwrap();
    assert_eq!(end.why, [format!("pid {pid} has ended")]);
    agent.kill();
}
