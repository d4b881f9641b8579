//! An emulated screen as SVG: text stays text, sixteen colours become a palette, every run stands at
//! its own cell. It brings its own dark ground, so it reads on dark and on light pages.

use std::fmt::Write as _;

const CELL: (f32, f32) = (8.4, 18.0);
const MARGIN: f32 = 14.0;
const GROUND: &str = "#14171f";
const TEXT: &str = "#d5d9e0";
const FONT: &str = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace";
/// The sixteen, as a calm terminal has them.
const PALETTE: [&str; 16] = [
    "#14171f", "#f2777a", "#8fcf7c", "#f0c95a", "#6f9fe8", "#c99bea", "#5cc7cf", "#c5cad3",
    "#7d8590", "#ff8f8f", "#a8e396", "#ffdd7a", "#8fb8ff", "#dbb5ff", "#7fe3ea", "#ffffff",
];

/// How a run of cells looks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Look {
    ink: &'static str,
    ground: Option<&'static str>,
    bold: bool,
    dim: bool,
}

/// The picture.
pub(crate) fn draw(screen: &vt100::Screen, title: &str) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let width = f32::from(columns) * CELL.0 + 2.0 * MARGIN;
    let height = f32::from(rows) * CELL.1 + 2.0 * MARGIN;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\">\n\
         <title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{GROUND}\" stroke=\"#3a404c\"/>\n\
         <g font-family=\"{FONT}\" font-size=\"14\" fill=\"{TEXT}\" xml:space=\"preserve\">\n"
    );
    for row in 0..rows {
        for (column, text, cells, look) in runs(screen, row, columns) {
            push_run(&mut picture, (column, row), &text, cells, look);
        }
    }
    picture.push_str("</g>\n</svg>\n");
    picture
}

/// Runs of a row that look alike: where, what, how many cells.
fn runs(screen: &vt100::Screen, row: u16, columns: u16) -> Vec<(u16, String, u16, Look)> {
    let mut runs: Vec<(u16, String, u16, Look)> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation())
        else {
            continue;
        };
        let look = look(cell);
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let wide = cell.is_wide();
        match runs.last_mut() {
            // A wide letter is a run of its own: fonts differ in how wide it is.
            Some((_, run, cells, last))
                if *last == look && !wide && run.chars().count() == usize::from(*cells) =>
            {
                run.push_str(text);
                *cells += 1;
            }
            _ => runs.push((column, text.to_owned(), 1 + u16::from(wide), look)),
        }
    }
    runs.retain(|(_, text, _, look)| look.ground.is_some() || !text.trim().is_empty());
    runs
}

fn look(cell: &vt100::Cell) -> Look {
    let colour = |colour: vt100::Color| match colour {
        vt100::Color::Idx(index) => PALETTE.get(usize::from(index)).copied(),
        vt100::Color::Default | vt100::Color::Rgb(..) => None,
    };
    let (ink, ground) = (colour(cell.fgcolor()).unwrap_or(TEXT), colour(cell.bgcolor()));
    let (ink, ground) = if cell.inverse() { (GROUND, Some(ink)) } else { (ink, ground) };
    Look { ink, ground, bold: cell.bold(), dim: cell.dim() }
}

fn push_run(picture: &mut String, (column, row): (u16, u16), text: &str, cells: u16, look: Look) {
    let (x, y) = (MARGIN + f32::from(column) * CELL.0, MARGIN + f32::from(row) * CELL.1);
    let wide = f32::from(cells) * CELL.0;
    if let Some(ground) = look.ground {
        let height = CELL.1;
        let _ = writeln!(
            picture,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{height}\" fill=\"{ground}\"/>"
        );
    }
    let shown = text.trim();
    if shown.is_empty() {
        return;
    }
    let letters = |text: &str| u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
    let (x, y) = (x + CELL.0 * f32::from(letters(text) - letters(text.trim_start())), y + 13.5);
    let narrow = letters(text) == cells;
    let length = if narrow { f32::from(letters(shown)) * CELL.0 } else { wide };
    let mut attributes = format!("x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\"");
    if look.ink != TEXT {
        let _ = write!(attributes, " fill=\"{}\"", look.ink);
    }
    if look.bold {
        attributes.push_str(" font-weight=\"bold\"");
    }
    if look.dim {
        attributes.push_str(" opacity=\".62\"");
    }
    let shown = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(picture, "<text {attributes}>{shown}</text>");
}
