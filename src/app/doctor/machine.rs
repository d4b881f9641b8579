//! What the machine allows: sight of processes, watches, open files; and its clocks.

use std::fs;
use std::path::Path;

use crate::app::Setting;
use crate::clock::Clock;
use crate::liveness::proc::{Proc, Sight};
use crate::report::doctor::{Finding, Level};
use crate::snapshot::age;
use crate::store::{Reader, health};

/// Folders counted below a root, and how deep.
const FOLDERS_MAX: usize = 200_000;
const DEPTH_MAX: u8 = 6;
/// Open files that are few.
const FILES_MIN: u64 = 256;
/// A stamp so far ahead says that a clock is wrong, ms.
const AHEAD_MS: i64 = 60_000;

/// All of it.
pub(super) fn checks(setting: &Setting, store: Option<&mut Reader>) -> Vec<Finding> {
    let mut findings = vec![sight(), open_files()];
    findings.extend(watches(setting));
    findings.push(clock(store));
    findings
}

fn sight() -> Finding {
    let proc = Proc::system();
    let scope = proc.scope();
    let namespace = scope.pid_ns.map_or("unknown".to_owned(), |inode| inode.to_string());
    let who = format!("user {}, pid namespace {namespace}", scope.uid);
    match proc.sight() {
        Sight::Whole if scope.uid == 0 => {
            Finding::fine("processes", "/proc", format!("every process is seen ({who})"))
        }
        Sight::Whole => {
            let found = format!("the processes of this user are seen ({who})");
            Finding::fine("processes", "/proc", found)
        }
        Sight::Hidden => {
            let advice = "it is mounted with hidepid: a process not seen is unknown, never gone";
            let found = format!("the processes of others are hidden ({who})");
            Finding::fine("processes", "/proc", found).at(Level::Warning).advise(advice)
        }
        Sight::None => {
            let advice = "silence alone decides here; hooks tell more";
            Finding::fine("processes", "/proc", "there is none: no process can be looked at")
                .at(Level::Warning)
                .advise(advice)
        }
    }
}

fn open_files() -> Finding {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let found = limit.map_or("no limit".to_owned(), |limit| format!("at most {limit}"));
    let finding = Finding::fine("limits", "open files", found)
        .with("open_files", limit.map_or(-1, u64::cast_signed));
    if limit.is_some_and(|limit| limit < FILES_MIN) {
        return finding.at(Level::Warning).advise("raise it with `ulimit -n`");
    }
    finding
}

/// Watches of inotify, which all programs of a user share, against the folders there are.
fn watches(setting: &Setting) -> Vec<Finding> {
    let read = |name: &str| -> Option<i64> {
        let text = fs::read_to_string(Path::new("/proc/sys/fs/inotify").join(name)).ok()?;
        text.trim().parse().ok()
    };
    let (Some(most), Some(instances)) = (read("max_user_watches"), read("max_user_instances"))
    else {
        return Vec::new();
    };
    let mut folders = 0;
    for root in &setting.config.roots {
        for name in ["projects", "sessions", "archived_sessions"] {
            count(&root.path.join(name), 0, &mut folders);
        }
    }
    let needed = i64::try_from(folders).unwrap_or(i64::MAX);
    let found = format!("{needed} of at most {most} needed, {instances} instances");
    let finding = Finding::fine("limits", "watches", found)
        .with("needed", needed)
        .with("watches_max", most)
        .with("instances_max", instances);
    // Others watch too: with less than twice what we need it may well not do.
    let short = needed.saturating_mul(2) > most || instances < 8;
    vec![if short {
        let advice = "files are polled when they run out: raise fs.inotify.max_user_watches and \
                      fs.inotify.max_user_instances with sysctl";
        finding.at(Level::Warning).advise(advice)
    } else {
        finding
    }]
}

fn count(folder: &Path, depth: u8, folders: &mut usize) {
    if depth > DEPTH_MAX || *folders >= FOLDERS_MAX {
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    *folders += 1;
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            count(&entry.path(), depth + 1, folders);
        }
    }
}

fn clock(store: Option<&mut Reader>) -> Finding {
    let now_ms = Clock::default().now_ms();
    let found = format!(
        "up for {}, awake for {}",
        age::span(Clock::default().boot_ms()),
        age::span(Clock::default().awake_ms())
    );
    let (ahead, newest) =
        store.and_then(|reader| reader.read(health::clocks).ok()).unwrap_or((0, None));
    let finding = Finding::fine("clock", "", found).with("sessions_ahead", ahead);
    if let Some(lead) = newest.map(|at| at - now_ms).filter(|lead| *lead > AHEAD_MS) {
        let advice = format!(
            "a transcript is stamped {} ahead: was this clock set back, or is another wrong?",
            age::span(lead)
        );
        return finding.at(Level::Warning).advise(advice);
    }
    if ahead > 0 {
        let advice = format!("{ahead} session(s) were stamped ahead of this clock when read");
        return finding.at(Level::Note).advise(advice);
    }
    finding
}
