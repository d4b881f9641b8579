//! Clocks that are wrong, and that come back: what they decided is decided again, and nobody is told of
//! an end that was none. The wall clock is a hand that a test moves; the boot clock goes on beside it.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::sync::atomic::Ordering::Relaxed;

use lullwatch::app::engine::Engine;
use lullwatch::clock::{Clock, Hands};
use lullwatch::snapshot::{AuditCounts, Snapshot, Status};

use crate::monitor::{CLAUDE, DAY, HOUR, MINUTE, Monitor, OTHER, SECOND, Said, T0, session};

const YEAR: i64 = 365 * DAY;

/// A monitor whose clocks a test moves.
struct Watched {
    monitor: Monitor,
    hands: &'static Hands,
    engine: Engine,
}

impl Watched {
    /// Its first process starts when the wall clock shows that; nothing has been looked at before.
    fn from(monitor: Monitor, wall_ms: i64) -> Self {
        let hands: &'static Hands = Box::leak(Box::default());
        hands.wall_ms.store(wall_ms, Relaxed);
        hands.boot_ms.store(HOUR, Relaxed);
        hands.awake_ms.store(HOUR, Relaxed);
        let engine = monitor.engine(Clock::by(hands));
        Self { monitor, hands, engine }
    }

    /// The same at T0, when the roots have been looked at.
    fn at_t0() -> Self {
        Self::from(Monitor::new(), T0)
    }

    /// Time passes.
    fn pass_time(&self, ms: i64) {
        for hand in [&self.hands.wall_ms, &self.hands.boot_ms, &self.hands.awake_ms] {
            hand.fetch_add(ms, Relaxed);
        }
    }

    /// Somebody sets the clock.
    fn step(&self, by_ms: i64) {
        self.hands.wall_ms.fetch_add(by_ms, Relaxed);
    }

    /// The machine sleeps.
    fn sleep(&self, ms: i64) {
        self.hands.wall_ms.fetch_add(ms, Relaxed);
        self.hands.boot_ms.fetch_add(ms, Relaxed);
    }

    fn now(&self) -> i64 {
        self.hands.wall_ms.load(Relaxed)
    }

    /// A whole pass, and what is seen then.
    fn pass(&mut self) -> Snapshot {
        self.engine.pass().unwrap();
        let now_ms = self.now();
        self.monitor.seen_by(&mut self.engine, now_ms)
    }

    /// A look between two scans.
    fn look(&mut self) -> Snapshot {
        self.engine.reconcile().unwrap();
        let now_ms = self.now();
        self.monitor.seen_by(&mut self.engine, now_ms)
    }

    fn prompt(&self, id: &str, at_ms: i64) {
        self.monitor.claude(id, at_ms, &Said::Prompt("Add a table"));
    }
}

fn status(seen: &Snapshot) -> Status {
    session(seen, CLAUDE).status
}

fn assert_nobody_was_told(seen: &Snapshot) {
    assert_eq!((seen.audit, seen.ledger.pending), (AuditCounts::default(), 0));
}

/// No battery clock, then NTP. The transcripts are of a time when the clock was right.
#[test]
fn a_clock_that_began_a_year_behind_ends_nothing_and_tells_nobody() {
    let monitor = Monitor::unlooked();
    monitor.claude(CLAUDE, T0 - 10 * SECOND, &Said::Prompt("Add a table"));
    monitor.claude(OTHER, T0 - 3 * DAY, &Said::Prompt("Long over"));
    let mut watched = Watched::from(monitor, T0 - YEAR);
    let early = watched.pass();
    assert!(!early.mirror.complete);
    assert!(early.mirror.warnings.iter().any(|warning| warning.contains("clock")), "{early:?}");
    watched.pass_time(MINUTE);
    watched.look();
    watched.step(YEAR);
    let right = watched.look();
    let live = session(&right, CLAUDE);
    assert_eq!((live.status, live.last_activity_ms), (Status::Running, Some(T0 - 10 * SECOND)));
    for _ in 0..20 {
        watched.pass_time(30 * SECOND);
        assert_nobody_was_told(&watched.pass());
    }
    let later = watched.pass();
    assert_eq!(status(&later), Status::Idle);
    assert_eq!(session(&later, OTHER).reason.code, "session.admitted.ended");
    watched.prompt(CLAUDE, watched.now());
    let again = watched.pass();
    assert_eq!(status(&again), Status::Running);
    assert_nobody_was_told(&again);
}

/// The same where the clock stays behind for so long that what is there must be shown.
#[test]
fn a_clock_that_comes_right_after_hours_leaves_no_wrong_activity_behind() {
    let monitor = Monitor::unlooked();
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    let mut watched = Watched::from(monitor, T0 - YEAR);
    watched.pass();
    watched.pass_time(10 * MINUTE);
    watched.pass();
    let behind = watched.pass();
    assert!(session(&behind, CLAUDE).clock_ahead);
    watched.pass_time(2 * HOUR);
    assert_eq!(status(&watched.pass()), Status::Idle);
    watched.step(YEAR);
    let right = watched.look();
    assert_eq!(session(&right, CLAUDE).last_activity_ms, Some(T0));
    watched.pass_time(10 * MINUTE);
    let later = watched.pass();
    assert_eq!(status(&later), Status::Idle);
    watched.prompt(CLAUDE, watched.now());
    let again = watched.pass();
    assert_eq!(status(&again), Status::Running);
    assert_nobody_was_told(&again);
}

/// Seven seconds of a clock that is a year behind, and no scan sees but the right one.
#[test]
fn a_clock_that_is_wrong_between_two_scans_is_noticed_and_decides_nothing() {
    let mut watched = Watched::at_t0();
    watched.prompt(CLAUDE, T0);
    assert_eq!(status(&watched.pass()), Status::Running);
    watched.pass_time(10 * SECOND);
    watched.step(-YEAR);
    watched.prompt(CLAUDE, T0 + 10 * SECOND);
    watched.engine.look_at(&[watched.monitor.path(&format!(".claude/projects/-w/{CLAUDE}.jsonl"))]);
    while watched.engine.step().unwrap() {}
    let behind = watched.look();
    assert!(behind.mirror.warnings.iter().any(|text| text.contains("set back by")), "{behind:?}");
    watched.pass_time(7 * SECOND);
    watched.step(YEAR);
    let right = watched.pass();
    let live = session(&right, CLAUDE);
    assert_eq!((live.status, live.last_activity_ms), (Status::Running, Some(T0 + 10 * SECOND)));
    assert!(right.mirror.warnings.iter().any(|text| text.contains("set forward")), "{right:?}");
    for _ in 0..20 {
        watched.pass_time(MINUTE);
        assert_nobody_was_told(&watched.pass());
    }
    watched.prompt(CLAUDE, watched.now());
    let again = watched.pass();
    assert_eq!(status(&again), Status::Running);
    assert_nobody_was_told(&again);
}

/// Silence is time that passed, whatever the clock was set to meanwhile.
#[test]
fn a_clock_set_forward_and_back_ends_no_live_session() {
    let mut watched = Watched::at_t0();
    watched.prompt(CLAUDE, T0);
    watched.prompt(OTHER, T0 - HOUR);
    watched.pass();
    watched.step(YEAR);
    for _ in 0..4 {
        let ahead = watched.pass();
        assert_eq!(status(&ahead), Status::Running);
        watched.pass_time(MINUTE);
    }
    watched.pass_time(HOUR);
    let ahead = watched.pass();
    assert_eq!(status(&ahead), Status::Idle);
    assert_nobody_was_told(&ahead);
    watched.step(-YEAR);
    let back = watched.pass();
    let live = session(&back, CLAUDE);
    assert_eq!((live.status, live.last_activity_ms), (Status::Idle, Some(T0)));
    assert_eq!(live.quiet_ms, Some(watched.now() - T0));
    watched.prompt(CLAUDE, watched.now());
    let again = watched.pass();
    assert_eq!(status(&again), Status::Running);
    assert_nobody_was_told(&again);
    // It ends in its time, by the right clock.
    watched.pass_time(HOUR);
    watched.pass();
    watched.pass_time(DAY);
    watched.pass();
    let over = watched.pass();
    assert_eq!((status(&over), over.ledger.pending), (Status::Completed, 2));
}

/// What the wrong clock ended before anybody could know is taken back when it is set back, without an
/// override.
#[test]
fn what_a_clock_that_was_ahead_has_ended_is_decided_again() {
    let monitor = Monitor::new();
    monitor.claude(CLAUDE, T0, &Said::Prompt("Add a table"));
    monitor.pass(T0 + SECOND);
    let mut watched = Watched::from(monitor, T0 + YEAR);
    assert_eq!(status(&watched.pass()), Status::Completed);
    watched.pass_time(MINUTE);
    watched.step(-YEAR);
    let back = watched.pass();
    assert_eq!(status(&back), Status::Running);
    assert_eq!((back.audit.overrides, back.audit.migrations), (0, 1));
    watched.prompt(CLAUDE, watched.now());
    assert_eq!(watched.pass().audit.overrides, 0);
}

#[test]
fn a_machine_that_slept_ends_nothing_for_a_live_window() {
    let mut watched = Watched::at_t0();
    watched.prompt(CLAUDE, T0);
    watched.pass();
    watched.sleep(2 * DAY);
    let awake = watched.look();
    assert_eq!(status(&awake), Status::Idle);
    assert!(awake.mirror.warnings.iter().any(|text| text.contains("slept for 2d")), "{awake:?}");
    watched.pass_time(4 * MINUTE);
    // It is said for as long as it holds.
    let held = watched.pass();
    assert!(held.mirror.warnings.iter().any(|text| text.contains("slept for 2d")), "{held:?}");
    assert_eq!(status(&held), Status::Idle);
    watched.pass_time(2 * MINUTE);
    assert_eq!(status(&watched.pass()), Status::Completed);
}

/// Of one process after another: the boot clock goes on between them.
#[test]
fn a_step_between_two_processes_is_noticed_by_the_second() {
    let mut watched = Watched::at_t0();
    watched.prompt(CLAUDE, T0);
    watched.pass();
    watched.pass_time(MINUTE);
    watched.step(YEAR);
    let Watched { monitor, hands, engine } = watched;
    drop(engine);
    let engine = monitor.engine(Clock::by(hands));
    let mut watched = Watched { monitor, hands, engine };
    let ahead = watched.pass();
    assert_eq!(status(&ahead), Status::Running);
    assert!(ahead.mirror.warnings.iter().any(|text| text.contains("set forward")), "{ahead:?}");
    watched.pass_time(10 * MINUTE);
    let later = watched.pass();
    assert_eq!(status(&later), Status::Idle);
    assert_nobody_was_told(&later);
}
