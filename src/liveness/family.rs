//! A process and its descendants: the child of `lullwatch run` is often a launcher, and the agent a
//! process below it.

use std::collections::{BTreeSet, HashMap};

use super::proc::{Proc, Process, Seen};

/// A process and those below it, among at most `processes_max`; itself alone where none can be seen.
pub fn family(proc: &Proc, root: u32, processes_max: usize) -> BTreeSet<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in proc.pids(processes_max).map(|(pids, _)| pids).unwrap_or_default() {
        if let Some(parent) = proc.parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = BTreeSet::from([root]);
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if found.insert(*child) {
                open.push(*child);
            }
        }
    }
    found
}

/// A moment to which the start of a process is compared: ticks are exact, wall time is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// The start of another process of the same boot, in clock ticks.
    Ticks(u64),
    /// Wall time, ms.
    Wall(i64),
}

/// What an agent starts together with a hook, other hooks of the same event, may be a little younger
/// than it: by this part of a second.
const TOGETHER: u64 = 2;
/// The reckoned start of a process may be off by so much, ms.
const WALL_SLACK_MS: i64 = 2_000;

/// A living child of a process that began clearly after a moment, among at most `processes_max`.
pub fn younger_child(
    proc: &Proc,
    parent: u32,
    since: Since,
    processes_max: usize,
) -> Option<Process> {
    let (pids, _) = proc.pids(processes_max)?;
    let is_younger = |process: &Process| match since {
        Since::Ticks(ticks) => {
            let together = proc.ticks_per_second() / TOGETHER;
            process.id.start_ticks.is_some_and(|start| start > ticks.saturating_add(together))
        }
        Since::Wall(at_ms) => {
            process.started_ms.is_some_and(|start| start > at_ms.saturating_add(WALL_SLACK_MS))
        }
    };
    // Whoever looks may have been started by whom it looks at.
    let others = pids.into_iter().filter(|pid| *pid != std::process::id());
    others.filter(|pid| proc.parent(*pid) == Some(parent)).find_map(|pid| {
        match proc.look(pid, None) {
            Seen::Alive(process) => Some(process).filter(is_younger),
            Seen::Exited(_) | Seen::Missing | Seen::Unknown(_) => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    #[test]
    fn a_family_is_a_process_and_all_below_it() {
        let fake = Fake::new();
        for (pid, parent) in [(10, 1), (11, 10), (12, 11), (13, 1), (14, 13)] {
            fake.write(&format!("{pid}/stat"), &format!("{pid} (a) b) S {parent} 1 1"));
        }
        let proc = fake.proc();
        assert_eq!(family(&proc, 10, 100), BTreeSet::from([10, 11, 12]));
        assert_eq!(family(&proc, 99, 100), BTreeSet::from([99]));
    }
}
