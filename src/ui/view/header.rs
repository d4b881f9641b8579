//! The header: whose screen this is, how many stand where, which pane, and what narrows the list.
//!
//! ```text
//! lullwatch ghost · writer                          PAUSED  /foo 3 of 21  by tokens
//! ▲ 2 need you  ● 3 running  ◐ 5 idle  ✓ 12 completed  ✗ 1 ended
//! 1 Sessions 23  2 Audit 1 override  3 Ledger 3 unacked  4 Compactions 1 open
//! ```

use ratatui::layout::Rect;

use crate::lifecycle::{Status, Windows};
use crate::snapshot::{Mirror, Picture};
use crate::ui::age;
use crate::ui::filter::StatusFilter;
use crate::ui::keymap::{self, Action};
use crate::ui::model::{Model, Pane};
use crate::ui::piece::{self, Piece, dim, plain};
use crate::ui::sort::{Direction, SortKey};
use crate::ui::theme::{self, Role};
use crate::ui::view::canvas::Canvas;
use crate::ui::words;

/// Draws its three rows.
pub(super) fn draw(canvas: &mut Canvas<'_>, model: &Model, area: Rect) {
    let picture = model.picture.as_deref();
    canvas.sides(area, 0, &identity(picture), &narrowing(model));
    let Some(picture) = picture else { return };
    let room = usize::from(area.width);
    let mut counts = counts(model, Badges::Words);
    if piece::width(&counts) > room {
        counts = self::counts(model, Badges::Numbers);
    }
    canvas.line(area, 1, &counts);
    let mut panes = panes(model, picture, Badges::Words);
    if piece::width(&panes) > room {
        panes = self::panes(model, picture, Badges::Numbers);
    }
    canvas.line(area, 2, &panes);
}

/// Draws the line for what is wrong.
pub(super) fn draw_trouble(canvas: &mut Canvas<'_>, model: &Model, area: Rect) {
    let warnings =
        model.picture.as_ref().map_or(&[][..], |picture| &picture.snapshot.mirror.warnings);
    let (first, role, more) = match (&model.trouble, warnings) {
        (Some(trouble), warnings) => (trouble.as_str(), Role::Error, warnings.len()),
        (None, [first, rest @ ..]) => (first.as_str(), Role::Warning, rest.len()),
        (None, []) => return,
    };
    let key = keymap::BINDINGS
        .iter()
        .find(|binding| binding.action == Action::Warnings)
        .and_then(|binding| binding.keys.first())
        .map_or_else(String::new, |key| key.label());
    let more = if more == 0 { format!("{key} all of it") } else { format!("{key} {more} more") };
    canvas.sides(area, 0, &[Piece::new(role, &format!("! {first}"))], &[dim(&more)]);
}

fn identity(picture: Option<&Picture>) -> Vec<Piece> {
    let mut line = vec![Piece::new(Role::Accent, "lullwatch")];
    let Some(picture) = picture else { return line };
    line.push(plain(&format!(" {}", picture.snapshot.host)));
    line.push(dim(" · "));
    line.push(writer(&picture.snapshot.mirror));
    line
}

fn writer(mirror: &Mirror) -> Piece {
    match (mirror.writer, mirror.writer_pid, mirror.writer_stalled) {
        (true, _, _) => dim("writer"),
        (false, Some(pid), true) => {
            Piece::new(Role::Warning, &format!("viewer, writer stalled, pid {pid}"))
        }
        (false, Some(pid), false) => plain(&format!("viewer of pid {pid}")),
        // Nobody has said anything yet: what is shown was there before.
        (false, None, _) => dim("starting"),
    }
}

/// Whatever makes the list another one than somebody would expect.
fn narrowing(model: &Model) -> Vec<Piece> {
    let mut parts: Vec<Piece> = Vec::new();
    if let Some(picture) = &model.picture {
        parts.extend(progress(model, &picture.snapshot.mirror));
        let windows = picture.snapshot.windows;
        if windows != Windows::default() {
            let text = format!(
                "windows {}/{}",
                age::window(windows.live_ms),
                age::window(windows.ended_ms)
            );
            parts.push(dim(&text));
        }
        parts.extend(pane_facts(model, picture).map(|facts| dim(&facts)));
    }
    if let Some(hidden) = model.picture.as_ref().map(|picture| &picture.snapshot.hidden)
        && !hidden.filters.is_empty()
    {
        parts.push(Piece::new(Role::Accent, &hidden.filters));
        if hidden.sessions > 0 {
            parts.push(plain(&format!("{} hidden", hidden.sessions)));
        }
    }
    let list = model.list(model.pane);
    let sessions = model.pane == Pane::Sessions;
    let by_status = sessions && model.status_filter != StatusFilter::All;
    if by_status {
        parts.push(Piece::new(Role::Accent, &format!("only {}", model.status_filter.word())));
    }
    if !list.filter.is_empty() {
        parts.push(Piece::new(Role::Accent, &format!("/{}", list.filter)));
    }
    if by_status || !list.filter.is_empty() {
        let listed = list.items().filter(|item| item.depth == 0).count();
        parts.push(plain(&format!("{listed} of {}", list.total)));
    }
    if sessions && model.sort != SortKey::Status {
        let arrow = match model.direction {
            Direction::Forward => "↓",
            Direction::Backward => "↑",
        };
        parts.push(dim(&format!("by {} {arrow}", model.sort.word())));
    }
    if model.paused {
        parts.push(Piece::new(Role::Attention, "PAUSED"));
    }
    let mut line = Vec::new();
    for part in parts {
        if !line.is_empty() {
            line.push(plain("  "));
        }
        line.push(part);
    }
    line
}

/// What is to be known of the whole pane.
fn pane_facts(model: &Model, picture: &Picture) -> Option<String> {
    match model.pane {
        Pane::Sessions | Pane::Compactions => None,
        Pane::Ledger => Some(format!("for {}", model.consumer_name())),
        Pane::Audit => {
            let audit = picture.snapshot.audit;
            Some(format!(
                "{} after exit · {} rejected · {} migrated",
                audit.overrides_after_exit, audit.rejections, audit.migrations
            ))
        }
    }
}

/// A bar while the mirror is catching up, and what is left.
fn progress(model: &Model, mirror: &Mirror) -> Vec<Piece> {
    if mirror.backlog_bytes == 0 {
        return Vec::new();
    }
    let all = mirror.bytes.max(mirror.backlog_bytes);
    let percent = (all - mirror.backlog_bytes).saturating_mul(100) / all.max(1);
    let mut text = format!("{percent}% · {} left", age::bytes(mirror.backlog_bytes));
    if let Some(rate) = model.rate.filter(|rate| rate.bytes_per_s > 0) {
        text.push_str(" · ");
        text.push_str(&age::bytes(rate.bytes_per_s));
        text.push_str("/s");
    }
    let [full, empty] = words::bar(percent, 8, Role::Accent);
    let joined = format!("{}{}", full.text(), empty.text());
    vec![Piece::new(Role::Accent, &joined), plain(&text)]
}

fn counts(model: &Model, badges: Badges) -> Vec<Piece> {
    let tally = model.tally;
    let gap = match badges {
        Badges::Words => "  ",
        Badges::Numbers => " ",
    };
    let complete = model.picture.as_ref().is_some_and(|picture| picture.snapshot.mirror.complete);
    let mut line = vec![match tally.attention {
        0 if complete => dim("nobody needs you"),
        0 => dim("still reading"),
        1 => Piece::new(Role::Attention, "▲ 1 needs you"),
        many => Piece::new(Role::Attention, &format!("▲ {many} need you")),
    }];
    let mut part = |number: usize, role: Role, glyph: &str, word: &str| {
        let role = if number == 0 { Role::Dim } else { role };
        line.push(plain(gap));
        line.push(Piece::new(role, format!("{glyph} {number} {word}").trim_end()));
    };
    for (number, status, word) in [
        (tally.running, Status::Running, "running"),
        (tally.idle, Status::Idle, "idle"),
        (tally.completed, Status::Completed, "completed"),
    ] {
        part(number, theme::role(status), theme::glyph(status), word);
    }
    // The rarer two lose their words first when room is short.
    let word = |word| if badges == Badges::Words { word } else { "" };
    if tally.ended > 0 {
        part(tally.ended, Role::Ended, theme::glyph(Status::Failed), word("ended"));
    }
    if tally.unchecked > 0 {
        part(tally.unchecked, Role::Warning, "?", word("unchecked"));
    }
    line
}

/// How much counts say, with the room there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Badges {
    Words,
    Numbers,
}

fn panes(model: &Model, picture: &Picture, badges: Badges) -> Vec<Piece> {
    let mut line = Vec::new();
    for (number, pane) in Pane::ALL.into_iter().enumerate() {
        if number > 0 {
            line.push(plain("  "));
        }
        let current = pane == model.pane;
        let name = format!("{} {}", number + 1, pane.title());
        line.push(if current { Piece::new(Role::Accent, &name) } else { dim(&name) });
        let (count, word, role) = badge(model, picture, pane);
        let role = if count == 0 { Role::Dim } else { role };
        let text = match (badges, word) {
            (Badges::Numbers, _) | (Badges::Words, "") => format!(" {count}"),
            (Badges::Words, word) => format!(" {count} {word}"),
        };
        line.push(Piece::new(role, &text));
    }
    line
}

/// What a pane's name says about it: how many, of what, how urgent.
fn badge(model: &Model, picture: &Picture, pane: Pane) -> (u64, &'static str, Role) {
    match pane {
        Pane::Sessions => (u64::try_from(model.sessions.total).unwrap_or_default(), "", Role::Text),
        Pane::Audit => {
            let overrides = picture.snapshot.audit.overrides;
            let word = if overrides == 1 { "override" } else { "overrides" };
            (overrides, word, Role::Warning)
        }
        Pane::Ledger => (picture.snapshot.ledger.pending, "unacked", Role::Accent),
        Pane::Compactions => {
            // What a session left open when it ended is history.
            let open = picture
                .compactions
                .iter()
                .filter(|row| row.compaction.bracket == "open" && !row.status.is_terminal());
            let stuck = picture.compactions.iter().any(|row| row.attention);
            let role = if stuck { Role::Attention } else { Role::Text };
            (u64::try_from(open.count()).unwrap_or_default(), "open", role)
        }
    }
}
