//! The only caller of the clock. Everything below `app` gets the time as an argument.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use jiff::Timestamp;

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
            Face::System | Face::Frozen(_) => {
                millis(rustix::time::clock_gettime(rustix::time::ClockId::Boottime))
            }
            Face::By(hands) => hands.boot_ms.load(Relaxed),
        }
    }

    /// Milliseconds awake since boot.
    pub fn awake_ms(self) -> i64 {
        match self.0 {
            Face::System | Face::Frozen(_) => {
                millis(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
            }
            Face::By(hands) => hands.awake_ms.load(Relaxed),
        }
    }
}

fn millis(time: rustix::time::Timespec) -> i64 {
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}
