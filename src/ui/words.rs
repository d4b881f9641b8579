//! What sessions and rows are called on the screen: the same words in list, strip and details.

use crate::lifecycle::Basis;
use crate::snapshot::sort::Group;
use crate::snapshot::{Compaction, EndedIn, Phase, Session};
use crate::text;
use crate::ui::age::{self, UNKNOWN};
use crate::ui::model::Model;
use crate::ui::piece::{Piece, dim, plain};
use crate::ui::theme::{self, Role};

/// The heading of a group.
pub fn group(group: Group) -> &'static str {
    match group {
        Group::Running => "running",
        Group::Idle => "idle",
        Group::Completed => "completed",
        Group::Ended => "ended otherwise",
    }
}

/// The title, or the beginning of the id.
pub fn title(session: &Session) -> Piece {
    match &session.title {
        Some(title) => plain(title),
        None => dim(&short_id(&session.native_id)),
    }
}

/// The beginning of a native id, long enough to tell sessions apart.
pub fn short_id(native_id: &str) -> String {
    let bare = native_id.strip_prefix("session-").unwrap_or(native_id);
    // Of an id that begins with its time, so much that the millisecond is in it.
    let by_time = bare.len() == 36 && bare.as_bytes().get(14) == Some(&b'7');
    bare.chars().take(if by_time { 13 } else { 8 }).collect()
}

/// The last folder of a path.
pub fn project(cwd: Option<&str>) -> String {
    let Some(cwd) = cwd else { return UNKNOWN.to_owned() };
    text::path_parts(cwd).next().unwrap_or(cwd).to_owned()
}

/// A path with the home folder as `~`.
pub fn path(raw: &str, home: Option<&str>) -> String {
    match home.filter(|home| home.len() > 1).and_then(|home| raw.strip_prefix(home)) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => raw.to_owned(),
    }
}

/// Whether a live process holds a session that is over.
pub fn is_open_again(session: &Session) -> bool {
    session.status.is_terminal() && session.process.alive == Some(true)
}

/// What a session ended in, if that was no good end: short, and in full.
fn bad_end(session: &Session) -> Option<(&'static str, &'static str)> {
    Some(match session.ended_in? {
        EndedIn::Turn => ("ended mid-turn", "ended inside a turn"),
        EndedIn::Error => ("ended in error", "ended in an error"),
    })
}

/// A bad end asks for attention until it is acknowledged or a day old; what it was stays.
fn end_role(session: &Session) -> Role {
    if session.attention { Role::Attention } else { Role::Text }
}

/// Glyph and word of the status.
pub fn status(session: &Session) -> Piece {
    if session.unchecked {
        return dim(&format!("? was {}", session.status.word()));
    }
    let text = format!("{} {}", theme::glyph(session.status), session.status.word());
    Piece::new(theme::role(session.status), &text)
}

/// What it is doing or waiting for, short; of one that is over, how that is known.
pub fn phase(session: &Session) -> Piece {
    if is_open_again(session) {
        let role = if session.attention { Role::Attention } else { Role::Accent };
        return Piece::new(role, "open again");
    }
    if session.status.is_terminal() {
        return match bad_end(session) {
            Some((short, _)) => Piece::new(end_role(session), short),
            None => dim(session.reason.basis.word()),
        };
    }
    let Some(phase) = session.phase else { return dim(UNKNOWN) };
    match (phase, &session.tool) {
        (Phase::Tool, Some((tool, _))) => plain(&format!("tool {tool}")),
        (Phase::ToolGone, Some((tool, _))) => {
            Piece::new(phase_role(phase, session.attention), &format!("gone, tool {tool}"))
        }
        (Phase::ToolGone | Phase::WorkingGone, _) => {
            Piece::new(phase_role(phase, session.attention), "process gone")
        }
        (Phase::YourTurn, _) => {
            let role = phase_role(phase, session.attention);
            Piece::new(role, &your_turn(session))
        }
        _ => Piece::new(phase_role(phase, session.attention), phase.word()),
    }
}

/// A turn that is over need not be the end of the work.
fn your_turn(session: &Session) -> String {
    let word = Phase::YourTurn.word();
    session.behind.as_ref().map_or_else(|| word.to_owned(), |behind| format!("{word}, {behind}"))
}

/// The role of a phase.
fn phase_role(phase: Phase, attention: bool) -> Role {
    match phase {
        Phase::NeedsApproval | Phase::Question | Phase::Error => Role::Attention,
        Phase::Compacting
        | Phase::Tool
        | Phase::ToolGone
        | Phase::Working
        | Phase::WorkingGone
        | Phase::YourTurn
        | Phase::Returned
        | Phase::Ended => {
            if attention {
                Role::Attention
            } else {
                Role::Text
            }
        }
        Phase::ProbablyLeft => Role::Dim,
    }
}

/// Status, phase, silence and process in one line.
pub fn status_line(model: &Model, session: &Session) -> Vec<Piece> {
    let quiet = age::age_or_unknown(model.quiet_ms(session));
    let mut line = vec![status(session)];
    if session.unchecked {
        line.push(dim(&format!(" · {quiet} ago")));
        return line;
    }
    if is_open_again(session) {
        let holder = session.process.pid.map_or_else(
            || "open again in a live process".to_owned(),
            |pid| format!("open again in pid {pid}"),
        );
        line.push(Piece::new(Role::Accent, &format!(" · {holder}, nothing said yet")));
        return line;
    }
    if let Some(phase) = session.phase.filter(|phase| *phase != Phase::Ended) {
        line.push(dim(" · "));
        line.push(phase_in_full(model, session, phase));
    }
    if session.status.is_terminal() {
        if let Some((_, in_full)) = bad_end(session) {
            line.push(dim(" · "));
            line.push(Piece::new(end_role(session), in_full));
        }
        line.push(dim(&format!(" · {} · {quiet} ago", session.reason.basis.word())));
    } else {
        line.push(dim(&format!(" · quiet {quiet}")));
    }
    if let Some(pid) = session.process.pid.filter(|_| session.process.alive == Some(true)) {
        line.push(dim(&format!(" · pid {pid}")));
    }
    line
}

fn phase_in_full(model: &Model, session: &Session, phase: Phase) -> Piece {
    let role = phase_role(phase, session.attention);
    match (phase, &session.tool) {
        (Phase::Tool | Phase::ToolGone, Some((tool, since_ms))) => {
            let age = model.since(*since_ms).map(|ms| format!(" {}", age::age(ms)));
            let alive = match session.process.alive {
                _ if phase == Phase::ToolGone => ", process gone",
                Some(true) => ", process alive",
                Some(false) | None => "",
            };
            Piece::new(role, &format!("tool {tool}{}{alive}", age.unwrap_or_default()))
        }
        (Phase::YourTurn, _) => Piece::new(role, &your_turn(session)),
        _ => Piece::new(role, phase.word()),
    }
}

/// Why it has its status: since when, the sentence of that moment, and whether it was seen or
/// concluded. The numbers in the sentence are that moment's and do not move, so it says when.
pub fn why_line(model: &Model, session: &Session) -> Vec<Piece> {
    let zone = model.options.zone;
    let basis = match session.reason.basis {
        Basis::Observed => "observed",
        Basis::Inferred => "inferred",
    };
    let mut line = Vec::new();
    if let Some(since_ms) = session.status_since_ms {
        let (day, clock) = (zone.day(since_ms), zone.clock(since_ms));
        let today = day == zone.day(model.now_ms);
        let since = if today { clock } else { format!("{day} {clock}") };
        line.push(dim(&format!("since {since}: ")));
    }
    line.push(plain(&zone.told(&session.reason.summary)));
    line.push(dim(&format!(" · {basis} · {}", session.reason.rule)));
    line
}

/// Project, branch, model, agent and version in one line.
pub fn place_line(model: &Model, session: &Session) -> Vec<Piece> {
    let cwd = session.cwd.as_deref().map(|cwd| path(cwd, model.options.home.as_deref()));
    let agent = match &session.agent_version {
        Some(version) => format!("{} {version}", session.agent),
        None => session.agent.to_owned(),
    };
    let parts = [
        cwd,
        session.branch.clone(),
        Some(agent),
        session.model.clone(),
        Some(session.kind.to_owned()).filter(|kind| kind != "main"),
    ];
    vec![dim(&parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))]
}

/// What was said and what it cost, in one line.
pub fn tokens_line(session: &Session) -> Vec<Piece> {
    let number = |tokens: i64| age::count(u64::try_from(tokens).unwrap_or_default());
    let tokens = session.tokens;
    vec![
        plain(&format!("{} tokens", number(tokens.total))),
        dim(&format!(
            " · in {} · cache {}/{} · out {} · {} {} {}",
            number(tokens.input),
            number(tokens.cache_read),
            number(tokens.cache_write),
            number(tokens.output),
            counted(session.prompts, "prompt"),
            counted(session.answers, "answer"),
            counted(session.tool_calls, "call"),
        )),
    ]
}

/// `1 prompt`, `3 prompts`.
fn counted(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", age::count(number))
}

/// How full the context is, 0 to 100.
pub fn context_percent(session: &Session) -> Option<u64> {
    let (used, window) = (session.context_used?, session.context_window?);
    (window > 0).then(|| used.saturating_mul(100) / window)
}

/// Use of the context as a bar, with its numbers.
pub fn context_line(session: &Session) -> Vec<Piece> {
    let mut line = vec![dim("context ")];
    match (session.context_used, session.context_window, context_percent(session)) {
        (Some(used), Some(window), Some(percent)) => {
            let role = if percent >= 90 { Role::Warning } else { Role::Running };
            line.extend(bar(percent, 16, role));
            let numbers = format!("{} of {}", age::count(used), age::count(window));
            line.push(plain(&format!(" {percent}%")));
            line.push(dim(&format!(" · {numbers}")));
        }
        (Some(used), _, _) => line.push(plain(&age::count(used))),
        (None, _, _) => line.push(dim(UNKNOWN)),
    }
    if session.children > 0 {
        let text =
            format!(" · {} of {} sub-agents active", session.active_children, session.children);
        line.push(dim(&text));
    }
    line
}

/// A bar of so many cells.
pub fn bar(percent: u64, cells: u64, role: Role) -> [Piece; 2] {
    let full = usize::try_from(percent.min(100) * cells / 100).unwrap_or_default();
    let empty = usize::try_from(cells).unwrap_or_default().saturating_sub(full);
    [Piece::new(role, &"█".repeat(full)), dim(&"░".repeat(empty))]
}

/// Bracket and verdict of a compaction.
pub fn bracket(compaction: &Compaction, attention: bool) -> Piece {
    let text = match &compaction.state {
        Some(state) => state.clone(),
        None => compaction.bracket.to_owned(),
    };
    let role = match compaction.bracket {
        _ if attention => Role::Attention,
        "open" => Role::Accent,
        "failed" => Role::Error,
        "closed" => Role::Text,
        _ => Role::Dim,
    };
    Piece::new(role, &text)
}

/// Tokens before and after, estimates marked as such.
pub fn shrink(compaction: &Compaction) -> String {
    let side = |tokens: Option<u64>| tokens.map_or_else(|| UNKNOWN.to_owned(), age::count);
    match (compaction.before_tokens, compaction.after_tokens) {
        (None, None) => UNKNOWN.to_owned(),
        (before, after) => format!("{} → {}", side(before), side(after)),
    }
}

/// How many sessions stand in each group, over the rows of the top level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Running.
    pub running: usize,
    /// Idle.
    pub idle: usize,
    /// Completed.
    pub completed: usize,
    /// Ended otherwise.
    pub ended: usize,
    /// Past their deadline and not checked by this process.
    pub unchecked: usize,
    /// Needing a human.
    pub attention: usize,
}

impl Tally {
    /// Takes one session in.
    pub fn add(&mut self, session: &Session) {
        self.attention += usize::from(session.attention);
        // Counted as that and not by its status, which nobody vouches for.
        if session.unchecked {
            self.unchecked += 1;
            return;
        }
        match Group::of(session.status) {
            Group::Running => self.running += 1,
            Group::Idle => self.idle += 1,
            Group::Completed => self.completed += 1,
            Group::Ended => self.ended += 1,
        }
    }
}
