//! Looks that end in time: a process stuck in the kernel, or a lock on a mount that hangs, must not
//! hold the writer.

use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

/// How long a look may take.
const LIMIT: Duration = Duration::from_secs(3);

/// Waits so long, and starts nothing more while something hangs: one thread is left behind at most.
#[derive(Debug)]
pub(super) struct Patience {
    limit: Duration,
    /// Of a look that was given up: closed once it comes back.
    hangs: Option<Receiver<()>>,
}

impl Default for Patience {
    fn default() -> Self {
        Self::of(LIMIT)
    }
}

impl Patience {
    /// So much of it.
    pub(super) fn of(limit: Duration) -> Self {
        Self { limit, hangs: None }
    }

    /// What this comes to; `None`: it did not come back in time, or one before it has not yet.
    pub(super) fn within<T: Send + 'static>(
        &mut self,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if let Some(hangs) = &self.hangs {
            match hangs.try_recv() {
                Ok(()) | Err(TryRecvError::Disconnected) => self.hangs = None,
                Err(TryRecvError::Empty) => return None,
            }
        }
        let (done, seen) = mpsc::sync_channel(1);
        let (at_work, hangs) = mpsc::sync_channel::<()>(1);
        let worker = thread::Builder::new().name("look".to_owned()).spawn(move || {
            let _nobody_waits = done.send(look());
            drop(at_work);
        });
        worker.ok()?;
        let seen = seen.recv_timeout(self.limit).ok();
        if seen.is_none() {
            self.hangs = Some(hangs);
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_a_look_hangs_no_other_is_begun() {
        let mut patience = Patience::of(Duration::ZERO);
        let (release, hangs) = mpsc::sync_channel::<()>(0);
        assert_eq!(patience.within(move || hangs.recv().is_err()), None);
        patience.limit = Duration::from_mins(1);
        let (tell, told) = mpsc::sync_channel(1);
        assert_eq!(patience.within(move || tell.send(()).is_ok()), None);
        assert!(told.try_recv().is_err(), "begun beside the one that hangs");
        drop(release);
        // It comes back at its own time.
        while patience.within(|| ()).is_none() {
            thread::yield_now();
        }
        assert_eq!(patience.within(|| 7), Some(7));
    }
}
