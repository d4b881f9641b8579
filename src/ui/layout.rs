//! Where things are on the screen: pure arithmetic on the size, shared by `update`, which scrolls,
//! and by the view, which draws. Nothing here can be out of bounds at any size.
//!
//! ```text
//! header    lullwatch · host · writer                         progress or windows
//!           counts by status                      unacknowledged, overrides, brackets
//!           panes                                            filter, sort, PAUSED
//! trouble   one line, when there is something to say
//! body      list, or the opened session; both side by side when there is room
//! strip     the selected row in words, when there is no room beside the list
//! footer    keys of what is focused, or a notice
//! ```

use ratatui::layout::Rect;

use crate::ui::model::{Focus, Model};

/// Less than this, and one line says so.
pub const WIDTH_MIN: u16 = 60;
/// Less than this, and one line says so.
pub const HEIGHT_MIN: u16 = 15;
/// More than this is no screen: one line says so, and nothing larger is ever drawn.
pub const WIDTH_MAX: u16 = 1_000;
/// More than this is no screen.
pub const HEIGHT_MAX: u16 = 500;
/// From here on list and details stand side by side.
const WIDTH_WIDE: u16 = 110;
/// From here on the list gets more than half of that.
const WIDTH_ROOMY: u16 = 180;
const HEADER_ROWS: u16 = 3;
/// Rows of the strip on a low screen; from [`HEIGHT_WITH_TITLE`] on it has one more.
pub const STRIP_ROWS: u16 = 4;
const HEIGHT_WITH_STRIP: u16 = 20;
const HEIGHT_WITH_TITLE: u16 = 24;

/// Where everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Areas {
    /// Everything.
    pub screen: Rect,
    /// Three rows at the top.
    pub header: Rect,
    /// The line of a trouble or a warning.
    pub trouble: Option<Rect>,
    /// The list with its line of column names.
    pub list: Option<Rect>,
    /// The opened session.
    pub detail: Option<Rect>,
    /// The selected row in words.
    pub strip: Option<Rect>,
    /// The last row.
    pub footer: Rect,
}

/// The parts of an opened session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetailAreas {
    /// What it is.
    pub head: Rect,
    /// Its tabs.
    pub tabs: Rect,
    /// The lines of the tab.
    pub page: Rect,
}

/// A size without zeros: what a terminal that does not know its size is taken for.
pub fn known_size(width: u16, height: u16) -> (u16, u16) {
    if width == 0 || height == 0 { (80, 24) } else { (width, height) }
}

/// Whether the screen is too small for anything but a line that says so.
pub fn is_too_small(model: &Model) -> bool {
    model.width < WIDTH_MIN || model.height < HEIGHT_MIN
}

/// Whether the screen is larger than any that is drawn.
pub fn is_too_large(model: &Model) -> bool {
    model.width > WIDTH_MAX || model.height > HEIGHT_MAX
}

/// The whole screen, or as much of it as is drawn.
pub fn screen(model: &Model) -> Rect {
    if is_too_large(model) {
        return Rect::new(0, 0, model.width.min(WIDTH_MIN), 1);
    }
    Rect::new(0, 0, model.width, model.height)
}

/// Whether list and details stand side by side.
pub fn is_wide(model: &Model) -> bool {
    model.width >= WIDTH_WIDE && model.height >= HEIGHT_MIN && !is_too_large(model)
}

/// Where everything is.
pub fn areas(model: &Model) -> Areas {
    let screen = screen(model);
    let (header, rest) = split_top(screen, HEADER_ROWS);
    let (footer, mut body) = split_bottom(rest, 1);
    let mut trouble = None;
    if has_trouble(model) {
        let (line, below) = split_top(body, 1);
        (trouble, body) = (Some(line), below);
    }
    let mut areas =
        Areas { screen, header, trouble, list: None, detail: None, strip: None, footer };
    if is_wide(model) {
        // A list needs its columns, a transcript about eighty cells.
        let share = if body.width >= WIDTH_ROOMY { body.width * 3 / 5 } else { body.width / 2 };
        let (left, right) = split_left(body, share - 1);
        let (_, right) = split_left(right, 3);
        (areas.list, areas.detail) = (Some(left), Some(right));
    } else if model.focus == Focus::Detail {
        areas.detail = Some(body);
    } else if model.height >= HEIGHT_WITH_STRIP {
        let more = u16::from(model.height >= HEIGHT_WITH_TITLE);
        let (strip, list) = split_bottom(body, STRIP_ROWS + more);
        (areas.list, areas.strip) = (Some(list), Some(strip));
    } else {
        areas.list = Some(body);
    }
    areas
}

/// The rows of a list's area, without the column names.
pub fn rows(list: Rect) -> Rect {
    split_top(list, 1).1
}

/// The parts of an opened session.
pub fn detail(area: Rect) -> DetailAreas {
    let head_rows = match area.height {
        0..9 => 2,
        9..16 => 3,
        _ => 6,
    };
    let (head, rest) = split_top(area, head_rows);
    let (tabs, page) = split_top(rest, 1);
    DetailAreas { head, tabs, page }
}

/// A box of at most this size in the middle of the screen.
pub fn centred(screen: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(screen.width), height.min(screen.height));
    let x = screen.x + (screen.width - width) / 2;
    let y = screen.y + (screen.height - height) / 2;
    Rect::new(x, y, width, height)
}

fn has_trouble(model: &Model) -> bool {
    model.trouble.is_some()
        || model.picture.as_ref().is_some_and(|now| !now.snapshot.mirror.warnings.is_empty())
}

fn split_top(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let top = Rect { height: rows, ..area };
    (top, Rect { y: area.y + rows, height: area.height - rows, ..area })
}

fn split_bottom(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let (rest, bottom) = split_top(area, area.height - rows);
    (bottom, rest)
}

fn split_left(area: Rect, columns: u16) -> (Rect, Rect) {
    let columns = columns.min(area.width);
    let left = Rect { width: columns, ..area };
    (left, Rect { x: area.x + columns, width: area.width - columns, ..area })
}
