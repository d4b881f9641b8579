//! Which rows the panes list, in which order: filtered, sorted, grouped, and the sub-agents under
//! their parents. Done when one of these changes, not at every frame.

use std::collections::{BTreeMap, BTreeSet};

use crate::snapshot::sort::Group;
use crate::snapshot::{Picture, Session};
use crate::ui::filter;
use crate::ui::list::{Heading, Item, Row};
use crate::ui::model::{Model, Pane};
use crate::ui::sort::{self, SortKey};
use crate::ui::words::{self, Tally};

/// How deep the tree is drawn; deeper sub-agents stand at this depth.
const DEPTH_MAX: usize = 6;

/// Lists every pane anew.
pub fn rebuild(model: &mut Model) {
    for pane in Pane::ALL {
        rebuild_pane(model, pane);
    }
}

/// Lists one pane anew.
pub fn rebuild_pane(model: &mut Model, pane: Pane) {
    let Some(picture) = model.picture.clone() else { return };
    if pane == Pane::Sessions {
        model.tally = tally(&picture);
    }
    let (rows, total) = match pane {
        Pane::Sessions => sessions(model, &picture),
        Pane::Audit => {
            flat(&picture.audit, |row| (row.id, filter::audit(&model.audit.filter, row)))
        }
        Pane::Ledger => {
            flat(&picture.ledger, |row| (row.id, filter::ledger(&model.ledger.filter, row)))
        }
        Pane::Compactions => flat(&picture.compactions, |row| {
            (row.row_id, filter::compaction(&model.compactions.filter, row))
        }),
    };
    model.list_mut(pane).set(rows, total);
}

/// How many sessions of the top level stand in each group.
fn tally(picture: &Picture) -> Tally {
    let family = Family::of(&picture.snapshot.sessions);
    let mut tally = Tally::default();
    for index in &family.top {
        if let Some(session) = picture.snapshot.sessions.get(*index) {
            tally.add(session);
        }
    }
    tally
}

fn flat<T>(rows: &[T], judge: impl Fn(&T) -> (i64, bool)) -> (Vec<Row>, usize) {
    let listed = rows.iter().enumerate().filter_map(|(index, row)| {
        let (id, passes) = judge(row);
        passes.then_some(Row::Item(Item { id, index, depth: 0 }))
    });
    (listed.collect(), rows.len())
}

fn sessions(model: &Model, picture: &Picture) -> (Vec<Row>, usize) {
    let sessions = &picture.snapshot.sessions;
    let family = Family::of(sessions);
    let mut order: Vec<usize> = family
        .top
        .iter()
        .copied()
        .filter(|index| {
            sessions.get(*index).is_some_and(|session| {
                model.status_filter.leaves(session)
                    && (filter::session(&model.sessions.filter, session)
                        || family.any_child(sessions, session, |child| {
                            filter::session(&model.sessions.filter, child)
                        }))
            })
        })
        .collect();
    sort::sort(&mut order, sessions, model.sort, model.direction);
    let mut writer = Writer { model, sessions, family: &family, rows: Vec::new() };
    let urgent = |index: &usize| sessions.get(*index).is_some_and(|session| session.attention);
    let (attention, rest): (Vec<usize>, Vec<usize>) = order.into_iter().partition(urgent);
    writer.group("needs you", true, 0, &attention);
    if model.sort == SortKey::Status {
        for group in Group::ALL {
            let is_in = |index: &usize| {
                sessions.get(*index).is_some_and(|session| Group::of(session.status) == group)
            };
            let above = attention.iter().filter(|index| is_in(index)).count();
            let members: Vec<usize> = rest.iter().copied().filter(|index| is_in(index)).collect();
            writer.group(words::group(group), false, above, &members);
        }
    } else {
        let label = if attention.is_empty() { "all" } else { "the others" };
        writer.group(label, false, 0, &rest);
    }
    (writer.rows, family.top.len())
}

struct Writer<'a> {
    model: &'a Model,
    sessions: &'a [Session],
    family: &'a Family<'a>,
    rows: Vec<Row>,
}

impl<'a> Writer<'a> {
    fn group(&mut self, label: &'static str, urgent: bool, above: usize, members: &[usize]) {
        if members.is_empty() {
            return;
        }
        let is_unchecked =
            |index: &&usize| self.sessions.get(**index).is_some_and(|session| session.unchecked);
        let unchecked = members.iter().filter(is_unchecked).count();
        let shown = members.len() - unchecked;
        self.rows.push(Row::Heading(Heading { label, shown, above, unchecked, urgent }));
        for index in members {
            self.with_children(*index, 0);
        }
    }

    fn with_children(&mut self, index: usize, depth: usize) {
        let session: Option<&'a Session> = self.sessions.get(index);
        let Some(session) = session else { return };
        self.rows.push(Row::Item(Item { id: session.row_id, index, depth: depth.min(DEPTH_MAX) }));
        // A session that is its own ancestor cannot be; a store that says so must not hang us.
        let unfolded = self.model.tree || self.model.unfolded.contains(&session.row_id);
        if !unfolded || depth > DEPTH_MAX {
            return;
        }
        for child in self.family.children(session) {
            self.with_children(*child, depth + 1);
        }
    }
}

/// Who is whose sub-agent among the listed rows.
struct Family<'a> {
    /// Rows of the top level, orphans among them, in the snapshot's order.
    top: Vec<usize>,
    below: BTreeMap<(&'a str, &'a str), Vec<usize>>,
}

impl<'a> Family<'a> {
    fn of(sessions: &'a [Session]) -> Self {
        let mut family = Self { top: Vec::new(), below: BTreeMap::new() };
        // The ids are looked at only when sub-agents are listed at all.
        let has_children = sessions.iter().any(|session| is_below(session.kind));
        let ids: BTreeSet<(&str, &str)> = sessions
            .iter()
            .filter(|_| has_children)
            .map(|session| (session.agent, session.native_id.as_str()))
            .collect();
        for (index, session) in sessions.iter().enumerate() {
            let parent = session.parent_native_id.as_deref().filter(|_| is_below(session.kind));
            match parent.map(|parent| (session.agent, parent)) {
                Some(parent) if ids.contains(&parent) => {
                    family.below.entry(parent).or_default().push(index);
                }
                Some(_) | None if session.kind == "internal" => {}
                Some(_) | None => family.top.push(index),
            }
        }
        family
    }

    fn children(&self, session: &'a Session) -> &[usize] {
        self.below
            .get(&(session.agent, session.native_id.as_str()))
            .map_or(&[], |children| children.as_slice())
    }

    fn any_child(
        &self,
        sessions: &'a [Session],
        session: &'a Session,
        judge: impl Fn(&Session) -> bool,
    ) -> bool {
        self.children(session).iter().filter_map(|index| sessions.get(*index)).any(judge)
    }
}

/// Whether a session of this kind stands below another.
fn is_below(kind: &str) -> bool {
    matches!(kind, "subagent" | "internal")
}
