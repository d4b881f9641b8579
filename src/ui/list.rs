//! A list one can move in: rows, the selected one, and where it is scrolled to.
//!
//! The selection is an id, so that it survives every refresh. Until somebody moves it, it stays on
//! the first row, whatever arrives: that is where those stand that need a human.

use crate::ui::scroll;

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// A heading, which cannot be selected.
    Heading(Heading),
    /// Something that can.
    Item(Item),
}

/// A heading of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heading {
    /// Its words.
    pub label: &'static str,
    /// Rows below it, the unchecked aside.
    pub shown: usize,
    /// Rows of the same status that stand further up, among those that need a human.
    pub above: usize,
    /// Of those below it, rows that nobody has checked yet: not counted among the shown.
    pub unchecked: usize,
    /// It is the group of those that need a human.
    pub urgent: bool,
}

/// A row that can be selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Its id in the store.
    pub id: i64,
    /// Its position among the picture's rows of this pane.
    pub index: usize,
    /// How deep in the tree.
    pub depth: usize,
}

impl Row {
    fn item(&self) -> Option<Item> {
        match self {
            Self::Heading(_) => None,
            Self::Item(item) => Some(*item),
        }
    }
}

/// A list with its selection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct List {
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// Items there would be without a filter.
    pub total: usize,
    /// What was typed after `/`.
    pub filter: String,
    /// Position of the selected row.
    pub at: usize,
    /// Position of the first row on the screen.
    pub offset: usize,
    selected: Option<i64>,
    moved: bool,
}

impl List {
    /// Takes new rows and keeps the selection, or what has come to stand in its place.
    pub fn set(&mut self, rows: Vec<Row>, total: usize) {
        self.rows = rows;
        self.total = total;
        let kept = self.selected.filter(|_| self.moved).and_then(|id| self.position(id));
        let at = match kept {
            Some(at) => at,
            None if self.moved => self.at.min(self.rows.len().saturating_sub(1)),
            None => 0,
        };
        self.select_from(at);
    }

    /// The selected row.
    pub fn selected(&self) -> Option<Item> {
        self.rows.get(self.at).and_then(Row::item)
    }

    /// The items, in order.
    pub fn items(&self) -> impl Iterator<Item = Item> {
        self.rows.iter().filter_map(Row::item)
    }

    /// Moves by so many items and stops at the ends.
    pub fn step(&mut self, by: isize) {
        self.moved = true;
        let distance = by.unsigned_abs();
        let positions = self.rows.iter().enumerate().filter(|(_, row)| row.item().is_some());
        let target = if by < 0 {
            let before: Vec<usize> =
                positions.map(|(at, _)| at).take_while(|at| *at < self.at).collect();
            before.get(before.len().saturating_sub(distance)).copied()
        } else {
            let after = positions.map(|(at, _)| at).filter(|at| *at > self.at);
            after.take(distance).last()
        };
        self.select_from(target.unwrap_or(self.at));
    }

    /// To the first item.
    pub fn first(&mut self) {
        self.step(isize::MIN);
    }

    /// To the last item.
    pub fn last(&mut self) {
        self.step(isize::MAX);
    }

    /// To the row at a position, if it is an item.
    pub fn click(&mut self, at: usize) {
        if self.rows.get(at).and_then(Row::item).is_some() {
            self.moved = true;
            self.select_from(at);
        }
    }

    /// To the item with an id, if it is listed.
    pub fn go_to(&mut self, id: i64) {
        if let Some(at) = self.position(id) {
            self.moved = true;
            self.select_from(at);
        }
    }

    /// Scrolls so that the selection, and a heading right above it, are among `height` rows.
    pub fn place(&mut self, height: usize) {
        self.offset = scroll::follow(self.at, self.offset, height, self.rows.len());
        let above = self.at.saturating_sub(1);
        let headed = matches!(self.rows.get(above), Some(Row::Heading(_)));
        if headed && height > 1 && above < self.offset {
            self.offset = above;
        }
    }

    fn position(&self, id: i64) -> Option<usize> {
        self.rows.iter().position(|row| row.item().is_some_and(|item| item.id == id))
    }

    /// Selects the row at a position, or the nearest item after it, or else before it.
    fn select_from(&mut self, at: usize) {
        let is_item = |position: &usize| self.rows.get(*position).and_then(Row::item).is_some();
        let found = (at..self.rows.len()).find(is_item).or_else(|| (0..at).rev().find(is_item));
        self.at = found.unwrap_or(0);
        self.selected = self.selected().map(|item| item.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(ids: &[i64]) -> Vec<Row> {
        ids.iter()
            .enumerate()
            .map(|(index, id)| match id {
                0 => Row::Heading(Heading {
                    label: "x",
                    shown: 0,
                    above: 0,
                    unchecked: 0,
                    urgent: false,
                }),
                id => Row::Item(Item { id: *id, index, depth: 0 }),
            })
            .collect()
    }

    fn list(ids: &[i64]) -> List {
        let mut list = List::default();
        list.set(rows(ids), ids.len());
        list
    }

    #[test]
    fn headings_are_never_selected() {
        let mut list = list(&[0, 1, 0, 2, 3]);
        let mut seen = vec![list.selected().unwrap().id];
        for by in [1, 1, 1, -1, -1, -1, 2, -9] {
            list.step(by);
            seen.push(list.selected().unwrap().id);
        }
        assert_eq!(seen, [1, 2, 3, 3, 2, 1, 1, 3, 1]);
    }

    #[test]
    fn an_untouched_selection_stays_on_top_and_a_moved_one_on_its_id() {
        let mut list = list(&[0, 1, 2]);
        list.set(rows(&[0, 9, 1, 2]), 3);
        assert_eq!(list.selected().unwrap().id, 9);
        list.step(1);
        list.set(rows(&[0, 7, 8, 9, 1, 2]), 5);
        assert_eq!(list.selected().unwrap().id, 1);
        list.set(rows(&[0, 7, 8, 9, 2]), 4);
        assert_eq!(list.selected().unwrap().id, 2, "what stands in its place");
        list.set(rows(&[]), 0);
        assert_eq!(list.selected(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_selection_is_an_item_and_on_the_screen(
            ids in prop::collection::vec(0_i64..5, 0..40),
            steps in prop::collection::vec(-9_isize..9, 0..9),
            height in 1_usize..12,
        ) {
            let mut list = list(&ids);
            for by in steps {
                list.step(by);
                list.place(height);
                prop_assert_eq!(list.selected().is_some(), ids.iter().any(|id| *id != 0));
                prop_assert!(list.offset <= list.at && list.at < list.offset + height);
            }
        }
    }
}
