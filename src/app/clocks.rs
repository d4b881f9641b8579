//! The clocks of a writer, compared at every pass and every look, and with those of the process
//! before it.
//!
//! The wall clock may be wrong and be set right. What the difference between it and the boot clock
//! was is kept in the store, so that a step between two processes of one boot is noticed as well. At
//! the first look, files that the system stamped later than now show that the clock was set back:
//! then sessions that are stamped ahead of it wait for their admission, a live window at most.

use crate::clock::Clock;
use crate::lifecycle::{Windows, span};
use crate::liveness::proc::Proc;
use crate::reconcile::{ClockCheck, ClockWarning, Reading, Step};
use crate::store::{self, Store, meta};

/// Boot, wall minus boot clock, and since when that is so.
const FRAME: &str = "clock_frame";

/// What is known of the clocks.
#[derive(Debug)]
pub(super) struct Clocks {
    clock: Clock,
    check: Option<ClockCheck>,
    boot_id: String,
    /// What the wall clock showed when it was first seen to go as it goes, ms.
    since_ms: i64,
    /// A step that is not yet taken in, ms.
    pending_ms: i64,
    /// It is kept in the store how the clock goes.
    kept: bool,
    hold_silence: bool,
    warning: Option<String>,
    /// Until then, by the boot clock, what is stamped ahead of the clock is not admitted, ms.
    ahead_until_ms: Option<i64>,
    ahead_warning: Option<String>,
    looked_at_files: bool,
}

impl Clocks {
    pub(super) fn new(clock: Clock) -> Self {
        let boot_id = Proc::system().scope().boot_id.clone().unwrap_or_default();
        Self {
            clock,
            check: None,
            boot_id,
            since_ms: clock.now_ms(),
            pending_ms: 0,
            kept: false,
            hold_silence: false,
            warning: None,
            ahead_until_ms: None,
            ahead_warning: None,
            looked_at_files: false,
        }
    }

    /// Compares them; a step that is to be taken in, if there was one, until it is [`Self::taken`].
    pub(super) fn read(
        &mut self,
        store: &mut Store,
        windows: Windows,
    ) -> store::Result<Option<Step>> {
        if self.clock.is_frozen() {
            return Ok(None);
        }
        let now = Reading {
            wall_ms: self.clock.now_ms(),
            boot_ms: self.clock.boot_ms(),
            awake_ms: self.clock.awake_ms(),
        };
        let mut check = match self.check {
            Some(check) => check,
            None => self.earlier(store, now)?,
        };
        let look = check.observe(now, windows);
        self.check = Some(check);
        self.hold_silence = look.hold_silence;
        if let Some(warning) = look.warning {
            self.warning = Some(warning.phrase());
            if let ClockWarning::Step(by_ms) = warning {
                self.pending_ms = self.pending_ms.saturating_add(by_ms);
            }
        }
        if !look.hold_silence {
            self.warning = None;
        }
        if self.ahead_until_ms.is_some_and(|until| now.boot_ms > until) || self.pending_ms > 0 {
            self.ahead_until_ms = None;
            self.ahead_warning = None;
        }
        if self.pending_ms == 0 {
            if !self.kept {
                self.keep(store, now)?;
            }
            return Ok(None);
        }
        let (by_ms, since_ms) = (self.pending_ms, self.since_ms);
        Ok(Some(Step { by_ms, now_ms: now.wall_ms, since_ms }))
    }

    /// A step has been taken in.
    pub(super) fn taken(&mut self, step: Step) {
        self.pending_ms = 0;
        self.since_ms = self.since_ms.saturating_add(step.by_ms);
        self.kept = false;
    }

    /// The check of this process, which goes on from where the one before it stood.
    fn earlier(&mut self, store: &mut Store, now: Reading) -> store::Result<ClockCheck> {
        let kept = store.read(|tx| meta::get(tx, FRAME))?;
        let mut fields = kept.as_deref().unwrap_or_default().split(' ');
        let boot_id = fields.next().unwrap_or_default();
        let numbers: Vec<i64> = fields.filter_map(|field| field.parse().ok()).collect();
        let [offset_ms, since_ms] = numbers.as_slice() else { return Ok(ClockCheck::default()) };
        if boot_id.is_empty() || boot_id != self.boot_id {
            return Ok(ClockCheck::default());
        }
        self.since_ms = *since_ms;
        self.kept = true;
        let wall_ms = now.boot_ms.saturating_add(*offset_ms);
        Ok(ClockCheck::since(Reading { wall_ms, ..now }))
    }

    fn keep(&mut self, store: &mut Store, now: Reading) -> store::Result<()> {
        let offset_ms = now.wall_ms.saturating_sub(now.boot_ms);
        let frame = format!("{} {offset_ms} {}", self.boot_id, self.since_ms);
        store.write(|tx| meta::set(tx, FRAME, &frame))?;
        self.kept = true;
        Ok(())
    }

    /// Holds the clock against the newest change of a file, once.
    pub(super) fn compare_with_files(&mut self, newest_ms: Option<i64>, windows: Windows) {
        if self.looked_at_files || self.clock.is_frozen() {
            return;
        }
        self.looked_at_files = true;
        let behind = newest_ms.map_or(0, |newest| newest.saturating_sub(self.clock.now_ms()));
        // Another machine's clock, whose files these may be, is off by less.
        if behind > windows.live_ms {
            self.ahead_until_ms = Some(self.clock.boot_ms().saturating_add(windows.live_ms));
            self.ahead_warning = Some(format!(
                "the clock is {} behind the newest transcript; what is stamped later than now waits \
                 for {}: check the date",
                span(behind),
                span(windows.live_ms)
            ));
        }
    }

    /// No end by silence now.
    pub(super) fn hold_silence(&self) -> bool {
        self.hold_silence
    }

    /// What is stamped ahead of the clock is not admitted now.
    pub(super) fn hold_ahead(&self) -> bool {
        self.ahead_until_ms.is_some()
    }

    /// What is wrong with them.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.warning.iter().chain(&self.ahead_warning).cloned()
    }
}
