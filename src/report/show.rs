//! One session: what is known of it, why it has its status, and what happened.

use std::io;

use super::grid::{Paint, paint_in};
use super::table::{change, doing, status, tokens};
use super::{Style, Width, words};
use crate::snapshot::{Compaction, Detail, MessageRow, Session, Transition, Tried, Windows, age};
use crate::text;

/// Messages told; all that are loaded are in the JSON.
const MESSAGES_SHOWN: usize = 12;
/// Cells of the names of facts.
const NAME_CELLS: usize = 14;
/// Where the snapshot cuts a title or a text, characters.
const CUT_CHARS: usize = 200;
/// A line of text is not made narrower than this, whatever the terminal.
const TEXT_CELLS_MIN: usize = 16;

/// Writes an opened session.
pub fn detail(
    out: &mut dyn io::Write,
    detail: &Detail,
    windows: Windows,
    now_ms: i64,
    style: Style,
) -> io::Result<()> {
    let mut page = Page { text: String::new(), style };
    let session = &detail.session;
    let title = session.title.as_deref().map_or_else(|| text::line(&session.id), text::line);
    page.line("", &title, Paint::Strong);
    facts(&mut page, session, windows, now_ms);
    why(&mut page, &detail.why);
    timeline(&mut page, &detail.transitions);
    brackets(&mut page, &detail.brackets);
    children(&mut page, &detail.children, now_ms);
    messages(&mut page, &detail.messages);
    out.write_all(page.text.as_bytes())
}

/// Lines with a lead each, broken to the report's width.
pub(super) fn wrapped(lines: &[(String, String)], style: Style) -> String {
    let mut page = Page { text: String::new(), style };
    for (lead, line) in lines {
        page.line(lead, line, Paint::Plain);
    }
    page.text
}

/// A sentence, broken to the report's width.
pub(super) fn told(sentence: &str, style: Style) -> String {
    wrapped(&[(String::new(), sentence.to_owned())], style)
}

/// A page under construction.
struct Page {
    text: String,
    style: Style,
}

impl Page {
    fn heading(&mut self, text: &str) {
        self.text.push('\n');
        self.line("", text, Paint::Strong);
    }

    /// A line behind a lead; what does not fit goes on below, indented by as much.
    fn line(&mut self, lead: &str, line: &str, paint: Paint) {
        let cut = self.style.glyphs.cut();
        let recut = match line.strip_suffix('…') {
            // The snapshot cut it, so the mark is ours and not the transcript's.
            Some(head) if line.chars().count() >= CUT_CHARS => format!("{head}{cut}"),
            Some(_) | None => line.to_owned(),
        };
        let line = recut.as_str();
        let lead_cells = text::width(lead);
        let parts = match self.style.width {
            Width::Free => vec![line.to_owned()],
            Width::Cells(cells) => {
                text::wrap(line, cells.saturating_sub(lead_cells).max(TEXT_CELLS_MIN))
            }
        };
        for (at, part) in parts.iter().enumerate() {
            let lead = if at == 0 { lead.to_owned() } else { " ".repeat(lead_cells) };
            let plain = format!("{lead}{part}");
            let whole = match self.style.width {
                Width::Cells(cells) if text::width(&plain) > cells => {
                    text::cut_with(&plain, cells, cut).into_owned()
                }
                Width::Cells(_) | Width::Free => {
                    format!("{lead}{}", paint_in(part, paint, self.style.colour))
                }
            };
            self.text.push_str(whole.trim_end_matches(' '));
            self.text.push('\n');
        }
    }

    /// A named fact; nothing where it is empty.
    fn fact(&mut self, name: &str, value: &str, paint: Paint) {
        if !value.is_empty() {
            self.line(&format!("  {}", text::fit(name, NAME_CELLS)), value, paint);
        }
    }
}

fn facts(page: &mut Page, session: &Session, windows: Windows, now_ms: i64) {
    let (glyphs, zone) = (page.style.glyphs, page.style.zone);
    let ago = |ms: i64| format!("{} ({} ago)", zone.second(ms), age::ago(now_ms, ms));
    let plain = |raw: Option<&str>| raw.map(|raw| text::line(raw).into_owned()).unwrap_or_default();
    let status = status(session, now_ms, glyphs);
    let since =
        session.status_since_ms.map_or_else(String::new, |ms| format!(", since {}", ago(ms)));
    page.fact("status", &format!("{}{since}", status.text), status.paint);
    page.fact("reason", &zone.told(&reason(session)), Paint::Plain);
    for evidence in &session.reason.evidence {
        page.fact("", &zone.told(&text::line(evidence)), Paint::Dim);
    }
    let need = if session.attention { (" - needs you", Paint::Alert) } else { ("", Paint::Plain) };
    page.fact("doing", &format!("{}{}", doing(session, now_ms, glyphs), need.0), need.1);
    page.fact("turn", &turn(session), Paint::Plain);
    page.fact("last error", &plain(session.last_error.as_deref()), Paint::Bad);
    page.fact("id", &text::line(&session.id), Paint::Plain);
    page.fact("kind", session.kind, Paint::Plain);
    page.fact("parent", &plain(session.parent_native_id.as_deref()), Paint::Plain);
    page.fact("folder", &plain(session.cwd.as_deref()), Paint::Plain);
    page.fact("branch", &plain(session.branch.as_deref()), Paint::Plain);
    page.fact("model", &plain(session.model.as_deref()), Paint::Plain);
    page.fact("agent", &agent(session), Paint::Plain);
    page.fact("started", &session.started_ms.map(ago).unwrap_or_default(), Paint::Plain);
    let activity = session.last_activity_ms.map(ago).unwrap_or_default();
    let ahead = if session.clock_ahead { ", a clock was ahead" } else { "" };
    page.fact("last activity", &format!("{activity}{ahead}"), Paint::Plain);
    let about = if session.ended_approximate { "about " } else { "" };
    let ended = session.ended_ms.map(|ms| format!("{about}{}", ago(ms))).unwrap_or_default();
    page.fact("ended", &ended, Paint::Plain);
    page.fact("checked", &session.checked_ms.map(ago).unwrap_or_default(), Paint::Plain);
    page.fact("process", &process(session), Paint::Plain);
    page.fact("counts", &counts(session), Paint::Plain);
    page.fact("tokens", &token_counts(session), Paint::Plain);
    page.fact("context", &context(session), Paint::Plain);
    page.fact("last text", &plain(session.last_text.as_deref()), Paint::Plain);
    let gone = if session.transcript_present { "" } else { "missing: no file of it is there" };
    page.fact("transcript", gone, Paint::Bad);
    for notice in &session.notices {
        let text = format!("{}: {}", text::line(&notice.code), text::line(&notice.text));
        page.fact("notice", &text, Paint::Alert);
    }
    if windows != Windows::default() {
        let (live, ended) = (age::span(windows.live_ms), age::span(windows.ended_ms));
        page.fact("windows", &format!("running for {live}, then idle for {ended}"), Paint::Plain);
    }
}

fn reason(session: &Session) -> String {
    let reason = &session.reason;
    let basis = reason.basis.word();
    let parts = [&reason.summary, &reason.code].map(|part| text::line(part));
    let told = parts.iter().filter(|part| !part.is_empty()).map(|part| &**part);
    told.chain([basis]).collect::<Vec<_>>().join(", ")
}

fn turn(session: &Session) -> String {
    let last = session.last_turn.map_or_else(String::new, |last| format!(", last one {last}"));
    format!("{}{last}", session.turn)
}

fn agent(session: &Session) -> String {
    let version = session.agent_version.as_deref().map(text::line).unwrap_or_default();
    format!("{} {version}", session.agent).trim_end().to_owned()
}

fn process(session: &Session) -> String {
    let process = &session.process;
    let Some(alive) = process.alive else { return String::new() };
    let pid = process.pid.map_or_else(String::new, |pid| format!("pid {pid} "));
    let state = process.state.as_deref().map(text::line).unwrap_or_default();
    let alive = if alive { "alive" } else { "gone" };
    let source = process.source.map_or_else(String::new, |source| format!(", by its {source}"));
    let state = if state.is_empty() { String::new() } else { format!(", {state}") };
    format!("{pid}{alive}{state}{source}")
}

fn counts(session: &Session) -> String {
    let mut counts = vec![
        words::plural(session.prompts, "prompt"),
        words::plural(session.answers, "answer"),
        words::plural(session.tool_calls, "tool call"),
    ];
    if session.children > 0 {
        let active = session.active_children;
        counts.push(format!("{} ({active} active)", words::plural(session.children, "sub-agent")));
    }
    if session.skipped_lines > 0 {
        counts.push(words::plural(session.skipped_lines, "skipped line"));
    }
    counts.join(", ")
}

fn token_counts(session: &Session) -> String {
    let tokens = &session.tokens;
    if tokens.total == 0 {
        return String::new();
    }
    let [total, input, read, write, output] =
        [tokens.total, tokens.input, tokens.cache_read, tokens.cache_write, tokens.output]
            .map(words::amount);
    format!("{total}: {input} input, {read} cache read, {write} cache written, {output} output")
}

fn context(session: &Session) -> String {
    let amount = |tokens: u64| words::amount(i64::try_from(tokens).unwrap_or(i64::MAX));
    match (session.context_used, session.context_window) {
        (Some(used), Some(window)) => format!("{} of {}", amount(used), amount(window)),
        (Some(used), None) => amount(used),
        (None, _) => String::new(),
    }
}

/// Every rule tried, in order: `>` decided, `+` held too, `-` did not hold. What several rest on is
/// told once.
fn why(page: &mut Page, tried: &[Tried]) {
    page.heading("Why");
    let mut told: Vec<&str> = Vec::new();
    for rule in tried {
        let (mark, paint) = match (rule.decided, rule.held) {
            (true, _) => (">", Paint::Strong),
            (false, true) => ("+", Paint::Plain),
            (false, false) => ("-", Paint::Dim),
        };
        let parts = [&rule.rule, &rule.test].map(|part| text::line(part).into_owned());
        let line: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let basis = if rule.decided { format!(" ({})", rule.basis) } else { String::new() };
        let line = format!("{}{basis}", line.join(": "));
        page.line(&format!("  {mark} "), &page.style.glyphs.own(&line), paint);
        for evidence in &rule.evidence {
            if !told.contains(&evidence.as_str()) {
                told.push(evidence);
                let line = text::line(evidence);
                page.line("      ", &page.style.zone.told(&line), Paint::Dim);
            }
        }
    }
}

fn timeline(page: &mut Page, transitions: &[Transition]) {
    if transitions.is_empty() {
        return;
    }
    page.heading("Timeline");
    let glyphs = page.style.glyphs;
    for row in transitions {
        let change = change(row.from.as_deref(), &row.to, glyphs);
        let parts = [&row.reason, &row.basis, &row.actor].map(|part| text::line(part).into_owned());
        let told: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let lead = format!("  {}  ", page.style.zone.second(row.at_ms));
        page.line(&lead, &format!("{change}: {}", told.join(", ")), Paint::Plain);
    }
}

fn brackets(page: &mut Page, brackets: &[Compaction]) {
    if brackets.is_empty() {
        return;
    }
    page.heading("Compactions");
    for row in brackets {
        let zone = page.style.zone;
        let at_ms = row.ended_ms.or(row.started_ms);
        let when = at_ms.map(|ms| zone.second(ms)).unwrap_or_default();
        let why = row.why.as_deref().map(|why| zone.told(why)).unwrap_or_default();
        let tokens = tokens(row, page.style.glyphs);
        let line = [
            row.bracket,
            row.state.as_deref().or(row.phase).unwrap_or_default(),
            row.trigger.unwrap_or_default(),
            &when,
            &tokens,
            row.error.as_deref().unwrap_or_default(),
            &why,
        ];
        let told: Vec<String> = line
            .into_iter()
            .map(|part| text::line(part).into_owned())
            .filter(|part| !part.is_empty())
            .collect();
        page.line("  ", &told.join(", "), Paint::Plain);
    }
}

fn children(page: &mut Page, children: &[Session], now_ms: i64) {
    if children.is_empty() {
        return;
    }
    page.heading("Sub-agents");
    let glyphs = page.style.glyphs;
    for child in children {
        let status = status(child, now_ms, glyphs);
        let title = child.title.as_deref().map(text::line).unwrap_or_default();
        let id = words::short_id(&child.native_id);
        let line = format!("{}, {}  {id}  {title}", status.text, doing(child, now_ms, glyphs));
        page.line("  ", line.trim_end(), status.paint);
    }
}

fn messages(page: &mut Page, messages: &[MessageRow]) {
    if messages.is_empty() {
        return;
    }
    page.heading("Last messages");
    // A model that only calls a tool says nothing; its call is a row of its own.
    let said = |message: &&MessageRow| message.kind != "answer" || !message.text.trim().is_empty();
    let said: Vec<&MessageRow> = messages.iter().filter(said).collect();
    let skipped = said.len().saturating_sub(MESSAGES_SHOWN);
    for message in said.into_iter().skip(skipped) {
        let when = message.at_ms.map(|ms| page.style.zone.second(ms)).unwrap_or_default();
        let name = message.name.as_deref().map(text::line).unwrap_or_default();
        let what = message.kind.replace('_', " ");
        let text = text::line(&message.text);
        let line = [what.as_str(), &name, &text].join(" ");
        page.line(&format!("  {}  ", text::fit(&when, 20)), &line, Paint::Plain);
    }
}
