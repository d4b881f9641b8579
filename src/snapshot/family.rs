//! Who is whose child: counts of sub-agents, and those whose parent is missing.
//!
//! A sub-agent counts for every ancestor up to its root session, so that a session's number is the
//! number of all that work for it. An internal thread is nobody's child.

use std::collections::{HashMap, HashSet};

use crate::store::query::KinRow;

/// Ancestors climbed at most.
const CLIMB_MAX: usize = 32;

/// Sub-agents of a session, at any depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Children {
    /// All.
    pub(super) all: u64,
    /// Those at work.
    pub(super) active: u64,
}

/// The kinship of every nested row of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Family {
    children: HashMap<i64, Children>,
    below: HashMap<i64, Vec<i64>>,
    roots: HashMap<i64, i64>,
    orphans: HashSet<i64>,
}

impl Family {
    /// `over`: of these roots, those that have ended or whose process is known to be gone. Nothing
    /// below them is active.
    pub(super) fn new(kin: &[KinRow], over: impl FnOnce(&[i64]) -> HashSet<i64>) -> Self {
        let parents: HashMap<i64, i64> =
            kin.iter().filter_map(|row| Some((row.id, row.parent?))).collect();
        let ancestors = |row: &KinRow| ancestors(row.id, &parents);
        let mut active: Vec<i64> = kin
            .iter()
            .filter(|row| row.active)
            .filter_map(|row| ancestors(row).last().copied())
            .collect();
        active.sort_unstable();
        active.dedup();
        let over = if active.is_empty() { HashSet::new() } else { over(&active) };
        let mut family = Self::default();
        for row in kin {
            let above = ancestors(row);
            let root = above.last().copied();
            family.roots.extend(root.map(|root| (row.id, root)));
            if !row.subagent {
                continue;
            }
            if row.parent.is_none() {
                family.orphans.insert(row.id);
            }
            let active = row.active && root.is_none_or(|root| !over.contains(&root));
            for ancestor in above {
                let children = family.children.entry(ancestor).or_default();
                children.all += 1;
                children.active += u64::from(active);
                family.below.entry(ancestor).or_default().push(row.id);
            }
        }
        family
    }

    /// The root session of a nested row.
    pub(super) fn root(&self, id: i64) -> Option<i64> {
        self.roots.get(&id).copied()
    }

    /// How many sub-agents a session has.
    pub(super) fn children(&self, id: i64) -> Children {
        self.children.get(&id).copied().unwrap_or_default()
    }

    /// The sub-agents of a session, at any depth.
    pub(super) fn below(&self, id: i64) -> &[i64] {
        self.below.get(&id).map_or(&[], Vec::as_slice)
    }

    /// A sub-agent whose parent the store does not have.
    pub(super) fn is_orphan(&self, id: i64) -> bool {
        self.orphans.contains(&id)
    }

    /// All of these, in the order of their ids.
    pub(super) fn orphans(&self) -> Vec<i64> {
        let mut ids: Vec<i64> = self.orphans.iter().copied().collect();
        ids.sort_unstable();
        ids
    }
}

/// Who stands above a row, its parent first; each once, for a circle must end.
fn ancestors(id: i64, parents: &HashMap<i64, i64>) -> Vec<i64> {
    let mut above = Vec::new();
    let mut next = parents.get(&id).copied();
    while let Some(ancestor) = next.filter(|next| *next != id && !above.contains(next)) {
        if above.len() >= CLIMB_MAX {
            break;
        }
        above.push(ancestor);
        next = parents.get(&ancestor).copied();
    }
    above
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kin(id: i64, parent: Option<i64>, active: bool) -> KinRow {
        KinRow { id, parent, subagent: true, active }
    }

    fn family(kin: &[KinRow]) -> Family {
        Family::new(kin, |_| HashSet::new())
    }

    #[test]
    fn nothing_below_an_ended_root_is_active() {
        let kin = [
            kin(2, Some(1), true),
            kin(3, Some(2), true),
            kin(5, Some(4), true),
            kin(7, Some(6), false),
        ];
        let asked = std::cell::RefCell::new(Vec::new());
        let over = |roots: &[i64]| {
            asked.borrow_mut().extend_from_slice(roots);
            HashSet::from([1])
        };
        let family = Family::new(&kin, over);
        assert_eq!(*asked.borrow(), [1, 4], "only roots of the active are asked about");
        assert_eq!(family.children(1), Children { all: 2, active: 0 });
        assert_eq!(family.children(2), Children { all: 1, active: 0 });
        assert_eq!(family.children(4), Children { all: 1, active: 1 });
        assert_eq!([family.root(3), family.root(5), family.root(1)], [Some(1), Some(4), None]);
    }

    #[test]
    fn a_grandchild_counts_for_every_ancestor() {
        let family = family(&[kin(2, Some(1), false), kin(3, Some(2), true)]);
        assert_eq!(family.children(1), Children { all: 2, active: 1 });
        assert_eq!(family.children(2), Children { all: 1, active: 1 });
        assert_eq!(family.children(3), Children::default());
        assert_eq!(family.below(1), [2, 3]);
        assert!(family.orphans().is_empty());
    }

    #[test]
    fn an_orphan_is_known_and_an_internal_thread_is_nobodys_child() {
        let thread = KinRow { id: 7, parent: Some(1), subagent: false, active: true };
        let family = family(&[kin(5, None, true), kin(6, Some(5), false), thread]);
        assert_eq!(family.orphans(), [5]);
        assert!(family.is_orphan(5) && !family.is_orphan(6));
        assert_eq!(family.children(5), Children { all: 1, active: 0 });
        assert_eq!(family.children(1), Children::default());
    }

    #[test]
    fn a_circle_ends() {
        let circle = [kin(1, Some(2), true), kin(2, Some(1), true), kin(3, Some(1), false)];
        let family = family(&circle);
        assert_eq!(family.children(1), Children { all: 2, active: 1 });
        assert_eq!(family.children(2), Children { all: 2, active: 1 });
    }
}
