//! The only caller of the clock. Everything below `app` gets the time as an argument.

use jiff::Timestamp;

/// Wall time, or one frozen moment (`--now`, for tests).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clock {
    frozen_ms: Option<i64>,
}

impl Clock {
    /// A clock that stands still at this moment, ms since 1970 UTC; `None`: one that runs.
    pub fn new(frozen_ms: Option<i64>) -> Self {
        Self { frozen_ms }
    }

    /// Milliseconds since 1970 UTC.
    #[expect(clippy::disallowed_methods, reason = "this is the place that may")]
    pub fn now_ms(self) -> i64 {
        self.frozen_ms.unwrap_or_else(|| Timestamp::now().as_millisecond())
    }

    /// Milliseconds since boot, time asleep included: tells a step of the wall clock, and a
    /// suspend, from time that passed.
    pub fn boot_ms(self) -> i64 {
        millis(rustix::time::clock_gettime(rustix::time::ClockId::Boottime))
    }

    /// Milliseconds awake since boot.
    pub fn awake_ms(self) -> i64 {
        millis(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
    }
}

fn millis(time: rustix::time::Timespec) -> i64 {
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}
