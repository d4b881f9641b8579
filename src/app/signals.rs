//! Which signals end a program that runs on, which do not, and which are none of our business.
//!
//! A signal that we were started with as ignored stays ignored: that is how `nohup` and a script's
//! `&` say that it is not for us. What does not have to end us, like a timer's alarm that somebody
//! sends by mistake, does nothing; what does is an event of the loop, so that the terminal and the
//! writer lock are given back.
//!
//! Not here: SIGKILL and SIGSTOP, which nobody can take, and the faults of the program itself
//! (SIGSEGV, SIGBUS, SIGFPE, SIGILL), behind which there is nothing to go on with.

use std::fs;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;

use rustix::process::Signal;
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP, SIGUSR1,
    SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use tokio::signal::unix::{self, SignalKind, signal};

/// The terminal is gone.
pub const HANG_UP: i32 = SIGHUP;
/// They end a program that runs on.
pub const ENDING: [i32; 8] = [SIGHUP, SIGTERM, SIGINT, SIGQUIT, SIGXCPU, SIGABRT, SIGTRAP, SIGSYS];
/// They would end it without need.
const NEEDLESS: [i32; 6] = [SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO];

/// The signals that we were started with as ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignored(u64);

impl Ignored {
    /// Those of this process. To be asked before anything is listened to; none where it cannot be
    /// told.
    pub fn at_start() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self::of(&status)
    }

    fn of(status: &str) -> Self {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        Self(mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0))
    }

    /// Whether this one is.
    pub fn has(self, signal: i32) -> bool {
        let bit = u32::try_from(signal - 1).ok().and_then(|bit| 1_u64.checked_shl(bit));
        bit.is_some_and(|bit| self.0 & bit != 0)
    }
}

/// Keeps a limit on the size of files from ending us without a word: the write fails instead.
pub fn outlive_file_limit() {
    outlive([SIGXFSZ], Ignored::at_start());
}

/// Keeps what has no meaning for us from ending us.
pub fn outlive_needless(ignored: Ignored) {
    outlive(NEEDLESS, ignored);
    // Those without a name end a process too.
    #[cfg(target_os = "linux")]
    outlive(34..=64, ignored);
}

/// Takes signals and does nothing. Ignoring them would do that too, but for our children as well.
fn outlive(signals: impl IntoIterator<Item = i32>, ignored: Ignored) {
    for which in signals.into_iter().filter(|which| !ignored.has(*which)) {
        // Where it cannot be taken it does what it always did.
        let _ = signal_hook::flag::register(which, Arc::new(AtomicBool::new(false)));
    }
}

/// Hears signals, except those that were ignored at the start.
#[derive(Debug)]
pub struct Listener(Vec<(i32, unix::Signal)>);

impl Listener {
    /// Listens from now on; of several at once the first counts. Needs a runtime.
    pub fn to(signals: impl IntoIterator<Item = i32>, ignored: Ignored) -> io::Result<Self> {
        let heard = signals.into_iter().filter(|which| !ignored.has(*which));
        heard
            .map(|which| Ok((which, signal(SignalKind::from_raw(which))?)))
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> i32 {
        poll_fn(|context| {
            let came = |(which, signal): &mut (i32, unix::Signal)| {
                signal.poll_recv(context).is_ready().then_some(*which)
            };
            self.0.iter_mut().find_map(came).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// What is said of a signal that ended us, where that is not what one asks for every day; 0 is none.
pub fn farewell(which: i32) -> Option<String> {
    if [0, SIGHUP, SIGTERM, SIGINT].contains(&which) {
        return None;
    }
    let name = Signal::from_named_raw(which).map(|signal| format!("{signal:?}"));
    Some(format!(
        "ended by signal {which}{}",
        name.map_or_else(String::new, |name| format!(" ({name})"))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read_bit_by_bit() {
        let ignored = Ignored::of("Name:\tlullwatch\nSigIgn:\t0000000000001003\nSigCgt:\tffff\n");
        assert!(ignored.has(SIGHUP) && ignored.has(SIGINT) && ignored.has(13));
        assert!(!ignored.has(SIGTERM) && !ignored.has(0) && !ignored.has(64) && !ignored.has(200));
        assert_eq!(Ignored::of("nothing"), Ignored(0));
    }
}
