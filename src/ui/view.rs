//! A frame from a model. Nothing is decided here: `layout` says where, `theme` how it looks, each
//! pane's file what stands in it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::ui::layout::{self, HEIGHT_MAX, HEIGHT_MIN, WIDTH_MAX, WIDTH_MIN};
use crate::ui::model::{Focus, Glyphs, Model, Overlay, Pane};
use crate::ui::piece::{dim, plain};
use crate::ui::theme;
use crate::ui::view::canvas::Canvas;

mod audit;
mod canvas;
mod compactions;
mod detail;
mod empty;
mod footer;
mod header;
mod help;
mod ledger;
mod prompt;
mod sessions;
mod strip;
mod table;

/// Draws a frame of the model's size; of a size that is refused, one line.
pub fn view(model: &Model) -> Buffer {
    let screen = layout::screen(model);
    let mut frame = Buffer::empty(screen);
    let mut canvas = Canvas::new(&mut frame, model.options.theme);
    if layout::is_too_large(model) {
        let limit = format!("draws up to {WIDTH_MAX}x{HEIGHT_MAX}");
        unfit(&mut canvas, model, &limit);
    } else if layout::is_too_small(model) {
        unfit(&mut canvas, model, &format!("needs {WIDTH_MIN}x{HEIGHT_MIN}"));
    } else {
        panes(&mut canvas, model);
    }
    match model.options.glyphs {
        Glyphs::Unicode => {}
        Glyphs::Ascii => theme::to_ascii(&mut frame),
    }
    frame
}

fn unfit(canvas: &mut Canvas<'_>, model: &Model, limit: &str) {
    let size = format!("{limit}, is {}x{}", model.width, model.height);
    canvas.line(layout::screen(model), 0, &[plain("lullwatch "), dim(&size)]);
}

fn panes(canvas: &mut Canvas<'_>, model: &Model) {
    let areas = model.areas();
    header::draw(canvas, model, areas.header);
    if let Some(area) = areas.trouble {
        header::draw_trouble(canvas, model, area);
    }
    if let Some(area) = areas.list {
        match model.pane {
            Pane::Sessions => sessions::draw(canvas, model, area),
            Pane::Audit => audit::draw(canvas, model, area),
            Pane::Ledger => ledger::draw(canvas, model, area),
            Pane::Compactions => compactions::draw(canvas, model, area),
        }
    }
    if let Some(area) = areas.detail {
        if areas.list.is_some() {
            canvas.bar(Rect { x: area.x.saturating_sub(2), width: 1, ..area });
        }
        match (model.focus, model.pane) {
            (Focus::Detail, _) | (Focus::List, Pane::Sessions) => {
                detail::draw(canvas, model, area);
            }
            (Focus::List, Pane::Audit | Pane::Ledger | Pane::Compactions) => {
                strip::draw_side(canvas, model, area);
            }
        }
    }
    if let Some(area) = areas.strip {
        strip::draw(canvas, model, area);
    }
    footer::draw(canvas, model, areas.footer);
    match &model.overlay {
        Some(Overlay::Help(line)) => help::draw(canvas, model, areas.screen, *line),
        Some(overlay) => prompt::draw(canvas, model, areas.screen, overlay),
        None => {}
    }
}
