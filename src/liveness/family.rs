//! A process and its descendants: the child of `lullwatch run` is often a launcher, and the agent a
//! process below it.

use std::collections::{BTreeSet, HashMap};

use super::proc::Proc;

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
