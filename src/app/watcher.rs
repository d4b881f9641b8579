//! File events as hints: they say "look now", never what happened.
//!
//! One watch per folder, none per file; all go when this is dropped. A folder that is made is
//! watched first and listed then, so nothing written in it meanwhile is missed. A scan every 30 s is
//! what guarantees all the same; where events cannot be had, or twice announced nothing of what a
//! scan found grown, the files are polled, and that is said once. What no event can announce is no
//! test of them: a file that is a link, or has another name, and one in a folder without a watch.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use super::worker::Order;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;

#[cfg(target_os = "linux")]
use linux::Events;
#[cfg(not(target_os = "linux"))]
use portable::Events;

/// Safety scans in a row that found growth which no event announced, before we stop trusting events.
const UNANNOUNCED_MAX: u32 = 2;
/// An event may take this long from a file to us, on a busy machine, ms.
const LATE_MS: i64 = 2_000;
/// Announced paths kept between two scans; with more, growth is not put to the test.
const ANNOUNCED_MAX: usize = 8_192;
/// How names end that stand for something mirrored; agents write much else beside it.
const ENDINGS: [&str; 4] = ["jsonl", "json", "zst", "zstd"];

/// How changes are noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// By events.
    Events,
    /// By polling; why, as a sentence with the next step.
    Polling(String),
}

/// How deep a folder is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// With all below it.
    Tree,
    /// Itself alone.
    Folder,
    /// One file in it, which is closed after each change.
    File(&'static str),
}

/// What hints came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heard {
    /// Files that may have changed.
    pub paths: Vec<PathBuf>,
    /// Look at everything.
    pub rescan: bool,
}

/// Hints on their way to the worker, as the system gave them.
#[derive(Debug)]
pub struct Hints(Vec<imp::Hint>);

#[cfg(target_os = "linux")]
use linux as imp;
#[cfg(not(target_os = "linux"))]
use portable as imp;

/// The watches.
#[derive(Debug)]
pub struct Watcher {
    events: Option<Events>,
    mode: Mode,
    /// Hints came faster than they were taken: look at everything.
    overflow: Arc<AtomicBool>,
    trust: Trust,
}

impl Watcher {
    /// Starts without any folder. Hints go into `orders`; when that is full, they are dropped and
    /// [`Watcher::take_overflow`] says so.
    pub fn new(orders: SyncSender<Order>) -> Self {
        let overflow = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&overflow);
        let deliver = move |hints| {
            if orders.try_send(Order::Hints(Hints(hints))).is_err() {
                flag.store(true, Ordering::Relaxed);
            }
        };
        let (events, mode) = match Events::start(deliver) {
            Ok(events) => (Some(events), Mode::Events),
            Err(why) => (None, Mode::Polling(why)),
        };
        Self { events, mode, overflow, trust: Trust::default() }
    }

    /// How changes are noticed now.
    pub fn mode(&self) -> &Mode {
        &self.mode
    }

    /// Whether hints were lost since the last call; what they would have said is unknown.
    pub fn take_overflow(&mut self) -> bool {
        let lost = self.overflow.swap(false, Ordering::Relaxed);
        if lost {
            self.forget();
        }
        lost
    }

    /// Watches these folders, each with its depth, and no others.
    pub fn cover(&mut self, folders: &[(PathBuf, Depth)]) {
        let Some(events) = self.events.as_mut() else { return };
        if let Err(why) = events.cover(folders) {
            self.give_up(why);
        }
    }

    /// What hints mean.
    pub fn hear(&mut self, hints: Hints) -> Heard {
        let mut heard = Heard::default();
        let Some(events) = self.events.as_mut() else { return heard };
        if let Err(why) = events.hear(hints.0, &mut heard) {
            // What was to be watched is not: only a scan tells what it holds.
            heard.rescan = true;
            self.give_up(why);
        }
        if heard.rescan {
            self.trust.suspend();
        }
        self.trust.announced(&heard.paths);
        heard
    }

    /// Told what a scan at that moment, by the clock that runs while awake, found grown. Twice in a
    /// row growth that no event had announced, not even afterwards, means that events do not work
    /// here.
    pub fn scanned(&mut self, grown: &[PathBuf], awake_ms: i64) {
        let Some(events) = self.events.as_mut() else { return };
        let mut told = Ok(());
        let mut is_test = |path: &PathBuf| match events.hears(path) {
            Ok(hears) => hears && !has_other_names(path),
            Err(why) => {
                told = Err(why);
                false
            }
        };
        let failures = self.trust.scanned(grown, awake_ms, &mut is_test);
        if let Err(why) = told {
            self.give_up(why);
        } else if failures >= UNANNOUNCED_MAX {
            self.give_up(
                "file events do not arrive here (a network file system?): polling".to_owned(),
            );
        }
    }

    /// Whether something grew unannounced, which another look soon would settle.
    pub fn is_in_doubt(&self) -> bool {
        !self.trust.suspects.is_empty()
    }

    fn forget(&mut self) {
        self.trust.suspend();
        if let Some(events) = self.events.as_mut() {
            events.forget();
        }
    }

    fn give_up(&mut self, why: String) {
        self.events = None;
        self.mode = Mode::Polling(why);
    }
}

/// Whether a name may stand for something mirrored.
fn may_matter(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Whether a file may be written under a name in a folder that we do not watch.
fn has_other_names(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or(true, |meta| meta.is_symlink() || meta.nlink() != 1)
}

/// Whether events announce what scans find.
#[derive(Debug, Default)]
struct Trust {
    announced: HashSet<PathBuf>,
    /// Grown, and not announced so far, since when: an event may still be on its way.
    suspects: HashMap<PathBuf, i64>,
    failures: u32,
    /// Something since the last scan makes the comparison worthless.
    void: bool,
    begun: bool,
}

impl Trust {
    fn suspend(&mut self) {
        self.void = true;
    }

    fn announced(&mut self, paths: &[PathBuf]) {
        for path in paths {
            self.suspects.remove(path);
            if self.announced.len() < ANNOUNCED_MAX {
                self.announced.insert(path.clone());
            } else {
                self.void = true;
            }
        }
    }

    /// How many scans in a row had found such growth by now.
    fn scanned(
        &mut self,
        grown: &[PathBuf],
        awake_ms: i64,
        is_test: &mut dyn FnMut(&PathBuf) -> bool,
    ) -> u32 {
        let before = self.suspects.len();
        self.suspects.retain(|_, since_ms| awake_ms.saturating_sub(*since_ms) < LATE_MS);
        if self.suspects.len() < before {
            self.failures += 1;
        } else if before == 0 && !self.void {
            self.failures = 0;
        }
        // What is found first was there before there were watches.
        let worthless = std::mem::take(&mut self.void) || !std::mem::replace(&mut self.begun, true);
        if worthless {
            self.suspects.clear();
        } else {
            for path in grown.iter().filter(|path| !self.announced.contains(*path)) {
                if is_test(path) {
                    self.suspects.entry(path.clone()).or_insert(awake_ms);
                }
            }
        }
        self.announced.clear();
        self.failures
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
