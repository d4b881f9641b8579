//! A table of columns: measured, thinned out, cut and filled by display cells, then painted.

use super::{Colour, Glyphs, Style, Width};
use crate::text;

/// Cells between two columns.
const GAP: usize = 2;
/// A flexible last column is not made narrower than this while another column can leave.
const FLEX_MIN: usize = 24;

/// A column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    /// Its head.
    pub(super) head: &'static str,
    /// 0 stays; of the others the one with the highest rank leaves first when it gets narrow.
    pub(super) rank: u8,
    /// It gets narrower than its content down to this, before a column leaves; cells.
    pub(super) least: usize,
    /// It is never wider, cells.
    pub(super) most: usize,
    /// Where its text stands.
    pub(super) side: Side,
}

/// Where the text of a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// What a piece of text means, for its colour. Meaning is never by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Strong,
    Dim,
    /// At work.
    Good,
    /// At rest.
    Calm,
    /// Failed.
    Bad,
    /// Needs a human.
    Alert,
}

impl Paint {
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Strong => Some("1"),
            Self::Dim => Some("2"),
            Self::Good => Some("32"),
            Self::Calm => Some("36"),
            Self::Bad => Some("31"),
            Self::Alert => Some("1;33"),
        }
    }
}

/// One field of a row; its text is filtered by whoever made it.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) paint: Paint,
    known: bool,
}

impl Cell {
    pub(super) fn new(text: impl Into<String>, paint: Paint) -> Self {
        Self { text: text.into(), paint, known: true }
    }

    /// What is not known; a column of nothing else is left out.
    pub(super) fn unknown(glyphs: Glyphs) -> Self {
        Self { text: glyphs.unknown().to_owned(), paint: Paint::Dim, known: false }
    }

    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Paint::Plain)
    }
}

/// A line of a table.
#[derive(Debug, Clone)]
pub(super) enum Line {
    /// One cell per column.
    Row(Vec<Cell>),
    /// A line across all columns.
    Title(Cell),
    /// Nothing.
    Blank,
}

/// The table as text, each line ended. Columns without any content are left out; the last one takes
/// the room that is left.
pub(super) fn render(columns: &[Column], lines: &[Line], style: Style) -> String {
    let layout = layout(columns, lines, style.width);
    let mut text = String::new();
    let head: Vec<Cell> = columns.iter().map(|column| Cell::new(column.head, Paint::Dim)).collect();
    push(&mut text, &row(&layout, &head, style));
    for line in lines {
        match line {
            Line::Row(cells) => push(&mut text, &row(&layout, cells, style)),
            Line::Title(cell) => push(&mut text, &across(&cell.text, cell.paint, style)),
            Line::Blank => text.push('\n'),
        }
    }
    text
}

/// A line of running text in the width of the report.
pub(super) fn across(line: &str, paint: Paint, style: Style) -> String {
    match style.width {
        Width::Cells(cells) => {
            paint_in(&text::fit_with(line, cells, style.glyphs.cut()), paint, style.colour)
        }
        Width::Free => paint_in(line, paint, style.colour),
    }
}

/// Colours a text.
pub(super) fn paint_in(text: &str, paint: Paint, colour: Colour) -> String {
    match (colour, paint.code()) {
        (Colour::Ansi, Some(code)) if !text.is_empty() => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        (Colour::Ansi | Colour::Plain, _) => text.to_owned(),
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// The columns that are shown: index, width in cells, side.
struct Layout {
    shown: Vec<(usize, usize, Side)>,
}

/// A column that is shown.
#[derive(Debug, Clone, Copy)]
struct Kept {
    index: usize,
    column: Column,
    /// As wide as its content asks for.
    natural: usize,
    /// As wide as it is shown.
    width: usize,
}

fn layout(columns: &[Column], lines: &[Line], width: Width) -> Layout {
    let mut kept: Vec<Kept> = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        let cells = lines.iter().filter_map(|line| cell(line, index));
        let widest =
            cells.map(|cell| (cell.known && !cell.text.is_empty(), text::width(&cell.text)));
        let (known, widest) =
            widest.fold((false, 0), |(any, most), (known, width)| (any || known, most.max(width)));
        if known || index + 1 == columns.len() {
            let natural = widest.max(text::width(column.head)).min(column.most);
            kept.push(Kept { index, column: *column, natural, width: natural });
        }
    }
    match width {
        Width::Free => shown(&kept),
        Width::Cells(cells) => shown(&fitted(kept, cells)),
    }
}

/// Columns made to fill `cells`: as many as there is room for at their narrowest, then each as wide
/// as its content, those that matter most first; the last one takes the rest.
fn fitted(mut kept: Vec<Kept>, cells: usize) -> Vec<Kept> {
    let Some(mut flex) = kept.pop() else { return kept };
    for one in &mut kept {
        one.width = one.natural.min(one.column.least);
    }
    let used = |kept: &[Kept]| -> usize { kept.iter().map(|one| one.width + GAP).sum() };
    let flex_least = flex.natural.min(FLEX_MIN);
    while used(&kept) + flex_least > cells {
        let Some(at) = leaves_first(&kept) else { break };
        kept.remove(at);
    }
    let mut room = cells.saturating_sub(used(&kept));
    let mut order: Vec<usize> = (0..kept.len()).collect();
    order.sort_by_key(|at| kept.get(*at).map(|one| one.column.rank));
    for at in order {
        let Some(one) = kept.get_mut(at) else { continue };
        let more = (one.natural - one.width).min(room.saturating_sub(flex_least));
        one.width += more;
        room -= more;
    }
    if room > 0 {
        flex.width = room;
        kept.push(flex);
    }
    kept
}

fn leaves_first(kept: &[Kept]) -> Option<usize> {
    let (at, one) = kept.iter().enumerate().max_by_key(|(_, one)| one.column.rank)?;
    (one.column.rank > 0).then_some(at)
}

fn shown(kept: &[Kept]) -> Layout {
    Layout { shown: kept.iter().map(|one| (one.index, one.width, one.column.side)).collect() }
}

fn cell(line: &Line, index: usize) -> Option<&Cell> {
    match line {
        Line::Row(cells) => cells.get(index),
        Line::Title(_) | Line::Blank => None,
    }
}

fn row(layout: &Layout, cells: &[Cell], style: Style) -> String {
    let mut plain = String::new();
    let mut painted = String::new();
    for (at, (index, width, side)) in layout.shown.iter().enumerate() {
        if at > 0 {
            plain.push_str("  ");
            painted.push_str("  ");
        }
        let Some(cell) = cells.get(*index) else { continue };
        let field = field(&cell.text, *width, *side, style.glyphs);
        plain.push_str(&field);
        painted.push_str(&paint_in(&field, cell.paint, style.colour));
    }
    match style.width {
        Width::Free => match style.colour {
            Colour::Plain => plain.trim_end().to_owned(),
            Colour::Ansi => painted,
        },
        Width::Cells(cells) if text::width(&plain) == cells => painted,
        // Narrower than its fixed columns: what there is of it, without colour.
        Width::Cells(cells) => text::fit_with(plain.trim_end(), cells, style.glyphs.cut()),
    }
}

fn field(text: &str, width: usize, side: Side, glyphs: Glyphs) -> String {
    match side {
        Side::Left => text::fit_with(text, width, glyphs.cut()),
        Side::Right => {
            let cut = text::cut_with(text, width, glyphs.cut());
            let fill = width.saturating_sub(text::width(&cut));
            format!("{}{cut}", " ".repeat(fill))
        }
    }
}
