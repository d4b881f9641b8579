//! Whether the clock can be trusted since the last pass. Pure: the readings are arguments.

use crate::lifecycle::Windows;

/// The wall clock may stray this far from the boot clock between two passes, ms.
const STEP_MAX_MS: i64 = 5_000;

/// The machine's clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Wall clock, ms since 1970 UTC.
    pub wall_ms: i64,
    /// Since boot, time asleep included, ms.
    pub boot_ms: i64,
    /// Since boot, without time asleep, ms.
    pub awake_ms: i64,
}

/// Why silence is not judged for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockWarning {
    /// The wall clock was set by so much, ms.
    Step(i64),
    /// The machine slept for so long, ms.
    Suspend(i64),
}

impl ClockWarning {
    /// One sentence.
    pub fn phrase(self) -> String {
        let span = crate::lifecycle::span;
        match self {
            Self::Step(by) if by < 0 => {
                format!("the clock was set back by {}; no end by silence for now", span(-by))
            }
            Self::Step(by) => {
                format!("the clock was set forward by {}; no end by silence for now", span(by))
            }
            Self::Suspend(time) => {
                format!("the machine slept for {}; no end by silence for now", span(time))
            }
        }
    }
}

/// The wall clock was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// By so much, ms.
    pub by_ms: i64,
    /// What it shows now, ms.
    pub now_ms: i64,
    /// What it showed when it was first seen to show the old time, ms: what was noted since then
    /// was noted by the old time.
    pub since_ms: i64,
}

impl Step {
    /// What it would show now if nobody had set it, ms.
    pub fn old_ms(self) -> i64 {
        self.now_ms.saturating_sub(self.by_ms)
    }
}

/// What a check says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockLook {
    /// Something has just happened to the clock.
    pub warning: Option<ClockWarning>,
    /// No terminal write by silence.
    pub hold_silence: bool,
}

/// Compares the clocks between passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockCheck {
    last: Option<Reading>,
    hold_until_boot_ms: Option<i64>,
}

impl ClockCheck {
    /// One that goes on from an earlier reading.
    pub fn since(last: Reading) -> Self {
        Self { last: Some(last), hold_until_boot_ms: None }
    }

    /// Takes in the readings of a pass. The first one has nothing to be compared with.
    ///
    /// A hold lasts one live window, by the boot clock, from the last thing that happened.
    pub fn observe(&mut self, now: Reading, windows: Windows) -> ClockLook {
        let warning = self.last.and_then(|last| compare(last, now, windows));
        self.last = Some(now);
        if warning.is_some() {
            self.hold_until_boot_ms = Some(now.boot_ms.saturating_add(windows.live_ms));
        }
        let hold_silence = self.hold_until_boot_ms.is_some_and(|until| now.boot_ms <= until);
        if !hold_silence {
            self.hold_until_boot_ms = None;
        }
        ClockLook { warning, hold_silence }
    }
}

fn compare(last: Reading, now: Reading, windows: Windows) -> Option<ClockWarning> {
    let boot = now.boot_ms.saturating_sub(last.boot_ms);
    let step = now.wall_ms.saturating_sub(last.wall_ms).saturating_sub(boot);
    let asleep = boot.saturating_sub(now.awake_ms.saturating_sub(last.awake_ms));
    if step.saturating_abs() > STEP_MAX_MS {
        Some(ClockWarning::Step(step))
    } else if asleep > windows.live_ms {
        Some(ClockWarning::Suspend(asleep))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: Windows = Windows { live_ms: 300_000, ended_ms: 86_400_000 };

    fn reading(wall_ms: i64, boot_ms: i64, awake_ms: i64) -> Reading {
        Reading { wall_ms, boot_ms, awake_ms }
    }

    fn second_look(now: Reading) -> ClockLook {
        let mut check = ClockCheck::default();
        let first = check.observe(reading(1_000_000, 0, 0), WINDOWS);
        assert_eq!(first, ClockLook { warning: None, hold_silence: false });
        check.observe(now, WINDOWS)
    }

    #[test]
    fn clocks_that_go_together_say_nothing_however_long_the_pause() {
        let quiet = ClockLook { warning: None, hold_silence: false };
        assert_eq!(second_look(reading(1_030_000, 30_000, 30_000)), quiet);
        assert_eq!(second_look(reading(91_000_000, 90_000_000, 90_000_000)), quiet);
    }

    #[test]
    fn a_step_past_five_seconds_holds_silence_and_one_of_five_does_not() {
        let warning = |now| second_look(now).warning;
        assert_eq!(warning(reading(1_035_000, 30_000, 30_000)), None);
        assert_eq!(warning(reading(1_025_000, 30_000, 30_000)), None);
        let forward = warning(reading(1_035_001, 30_000, 30_000));
        assert_eq!(forward, Some(ClockWarning::Step(5_001)));
        let back = warning(reading(1_024_999, 30_000, 30_000));
        assert_eq!(back, Some(ClockWarning::Step(-5_001)));
    }

    #[test]
    fn a_sleep_past_the_live_window_holds_silence_and_one_of_just_that_does_not() {
        let warning = |now| second_look(now).warning;
        assert_eq!(warning(reading(1_330_000, 330_000, 30_000)), None);
        let slept = warning(reading(1_330_001, 330_001, 30_000));
        assert_eq!(slept, Some(ClockWarning::Suspend(300_001)));
    }

    #[test]
    fn the_hold_lasts_one_live_window_from_the_last_step() {
        let mut check = ClockCheck::default();
        let mut hold = |wall, boot| check.observe(reading(wall, boot, boot), WINDOWS).hold_silence;
        assert!(!hold(0, 0));
        assert!(hold(3_600_000, 1_000));
        assert!(hold(3_600_000 + 299_000, 300_000));
        assert!(hold(3_600_000 + 300_000, 301_000));
        assert!(!hold(3_600_000 + 300_001, 301_001));
        assert!(!hold(3_600_000 + 400_000, 401_000));
    }

    #[test]
    fn a_warning_says_what_happened() {
        let words = ClockWarning::Step(-3_600_000).phrase();
        assert_eq!(words, "the clock was set back by 1h; no end by silence for now");
        let words = ClockWarning::Suspend(7_200_000).phrase();
        assert_eq!(words, "the machine slept for 2h; no end by silence for now");
    }
}
