//! Who is whose child: counts of sub-agents, and those whose parent is missing.
//!
//! A sub-agent counts for every ancestor up to its root session, so that a session's number is the
//! number of all that work for it. An internal thread is nobody's child.
//!
//! Files may say that sub-agents are each other's parents, in a circle. One of them, the one that the
//! store has known longest, is then taken to have none: each is shown once.

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
    heads: HashSet<i64>,
}

impl Family {
    /// `over`: of these roots, those that have ended or whose process is known to be gone. Nothing
    /// below them is active.
    pub(super) fn new(kin: &[KinRow], over: impl FnOnce(&[i64]) -> HashSet<i64>) -> Self {
        let mut parents: HashMap<i64, i64> =
            kin.iter().filter_map(|row| Some((row.id, row.parent?))).collect();
        let heads = heads(kin, &parents);
        parents.retain(|id, _| !heads.contains(id));
        let ancestors = |row: &KinRow| ancestors(row.id, &parents);
        let mut active: Vec<i64> = kin
            .iter()
            .filter(|row| row.active)
            .filter_map(|row| ancestors(row).last().copied())
            .collect();
        active.sort_unstable();
        active.dedup();
        let over = if active.is_empty() { HashSet::new() } else { over(&active) };
        let mut family = Self { heads, ..Self::default() };
        for row in kin {
            let above = ancestors(row);
            let root = above.last().copied();
            family.roots.extend(root.map(|root| (row.id, root)));
            if !row.subagent {
                continue;
            }
            if !parents.contains_key(&row.id) {
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

    /// The root sessions of all nested rows, in the order of their ids.
    pub(super) fn all_roots(&self) -> Vec<i64> {
        let mut roots: Vec<i64> = self.roots.values().copied().collect();
        roots.sort_unstable();
        roots.dedup();
        roots
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
        self.orphans.contains(&id) && !self.is_head(id)
    }

    /// It is its own ancestor, by what its files say, and is taken to have no parent.
    pub(super) fn is_head(&self, id: i64) -> bool {
        self.heads.contains(&id)
    }

    /// Sub-agents that stand on the top level, in the order of their ids.
    pub(super) fn orphans(&self) -> Vec<i64> {
        let mut ids: Vec<i64> = self.orphans.iter().copied().collect();
        ids.sort_unstable();
        ids
    }
}

/// One row of each circle: of its sub-agents the first.
fn heads(kin: &[KinRow], parents: &HashMap<i64, i64>) -> HashSet<i64> {
    let subagents: HashSet<i64> = kin.iter().filter(|row| row.subagent).map(|row| row.id).collect();
    let mut seen: HashSet<i64> = HashSet::new();
    let mut heads = HashSet::new();
    for row in kin {
        let mut path = Vec::new();
        let mut next = Some(row.id);
        while let Some(id) = next.filter(|id| seen.insert(*id)) {
            path.push(id);
            next = parents.get(&id).copied();
        }
        // Back on the path that led here: from there on it is a circle.
        let circle = path.iter().skip_while(|id| Some(**id) != next).copied();
        heads.extend(circle.min_by_key(|id| (!subagents.contains(id), *id)));
    }
    heads
}

/// Who stands above a row, its parent first. There are no circles.
fn ancestors(id: i64, parents: &HashMap<i64, i64>) -> Vec<i64> {
    let mut above = Vec::new();
    let mut next = parents.get(&id).copied();
    while let Some(ancestor) = next {
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
    fn a_circle_is_cut_at_the_sub_agent_that_is_known_longest() {
        let thread = KinRow { id: 1, parent: Some(3), subagent: false, active: true };
        let itself = kin(9, Some(9), false);
        let circle =
            [thread, kin(2, Some(1), true), kin(3, Some(2), true), kin(4, Some(3), false), itself];
        let family = family(&circle);
        assert_eq!(family.orphans(), [2, 9]);
        assert!(family.is_head(2) && family.is_head(9) && !family.is_orphan(2));
        assert_eq!(family.children(2), Children { all: 2, active: 1 });
        assert_eq!(family.children(3), Children { all: 1, active: 0 });
        assert_eq!(family.children(9), Children::default());
        assert_eq!([family.root(4), family.root(1), family.root(2)], [Some(2), Some(2), None]);
    }
}
