//! The only caller of the clock. Everything below `app` gets the time as an argument.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use jiff::Timestamp;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Wall time; one frozen moment (`--now`); or hands that a test moves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock(Face);

#[derive(Debug, Clone, Copy, Default)]
enum Face {
    #[default]
    System,
    Frozen(i64),
    By(&'static Hands),
}

/// Clocks that only a test moves: the wall clock may step, the others go on.
#[derive(Debug, Default)]
pub struct Hands {
    /// Wall clock, ms since 1970 UTC.
    pub wall_ms: AtomicI64,
    /// Since boot, time asleep included, ms.
    pub boot_ms: AtomicI64,
    /// Since boot, without time asleep, ms.
    pub awake_ms: AtomicI64,
}

impl Clock {
    /// A clock that stands still at this moment, ms since 1970 UTC; `None`: one that runs.
    pub fn new(frozen_ms: Option<i64>) -> Self {
        Self(frozen_ms.map_or(Face::System, Face::Frozen))
    }

    /// A clock that shows what these hands do.
    pub fn by(hands: &'static Hands) -> Self {
        Self(Face::By(hands))
    }

    /// It stands still, so that what other clocks have stamped cannot be held against it.
    pub fn is_frozen(self) -> bool {
        matches!(self.0, Face::Frozen(_))
    }

    /// Milliseconds since 1970 UTC.
    #[expect(clippy::disallowed_methods, reason = "this is the place that may")]
    pub fn now_ms(self) -> i64 {
        match self.0 {
            Face::System => Timestamp::now().as_millisecond(),
            Face::Frozen(at_ms) => at_ms,
            Face::By(hands) => hands.wall_ms.load(Relaxed),
        }
    }

    /// Milliseconds since boot, time asleep included: tells a step of the wall clock, and a
    /// suspend, from time that passed.
    pub fn boot_ms(self) -> i64 {
        match self.0 {
            Face::System | Face::Frozen(_) => millis(clock_gettime(WITH_SLEEP)),
            Face::By(hands) => hands.boot_ms.load(Relaxed),
        }
    }

    /// Milliseconds awake since boot.
    pub fn awake_ms(self) -> i64 {
        match self.0 {
            Face::System | Face::Frozen(_) => awake_ms(),
            Face::By(hands) => hands.awake_ms.load(Relaxed),
        }
    }
}

/// The clock that counts on while the machine sleeps; on macOS the monotonic one does
/// (`clock_gettime(3)` there).
#[cfg(target_os = "linux")]
const WITH_SLEEP: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const WITH_SLEEP: ClockId = ClockId::Monotonic;

#[cfg(not(target_os = "macos"))]
fn awake_ms() -> i64 {
    millis(clock_gettime(ClockId::Monotonic))
}

#[cfg(target_os = "macos")]
fn awake_ms() -> i64 {
    // It has no name in rustix.
    let awake = nix::time::ClockId::from_raw(nix::libc::CLOCK_UPTIME_RAW);
    let time = nix::time::clock_gettime(awake).unwrap_or(nix::sys::time::TimeSpec::new(0, 0));
    time.tv_sec().saturating_mul(1000).saturating_add(time.tv_nsec() / 1_000_000)
}

fn millis(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}
