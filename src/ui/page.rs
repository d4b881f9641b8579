//! The lines of an opened session's tabs, laid out for a width. `update` needs them to move the
//! cursor, the view to draw them; they are made when something they depend on has changed.

use crate::snapshot::{Compaction, Detail, MessageRow, Session, Transition, Tried};
use crate::ui::age::{self, UNKNOWN};
use crate::ui::model::{Full, Model, Tab};
use crate::ui::piece::{self, Piece, dim, plain};
use crate::ui::theme::Role;
use crate::ui::words;

/// What a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Owner {
    /// Nothing that can be acted on.
    #[default]
    Nothing,
    /// A message, by id.
    Message(i64),
    /// A sub-agent, by row id.
    Child(i64),
    /// A block of this number, for the cursor to keep to.
    Block(usize),
}

/// One line of a tab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLine {
    /// Its text.
    pub pieces: Vec<Piece>,
    /// What it belongs to.
    pub owner: Owner,
    /// Which line of that it is.
    pub part: usize,
}

/// A preview this long may have been cut.
const PREVIEW_FULL_CHARS: usize = 240;
/// Lines that one unfolded message may take.
const MESSAGE_LINES_MAX: usize = 4_000;
/// How deep the tree of sub-agents is drawn.
const DEPTH_MAX: usize = 6;

/// The lines of the current tab.
pub fn lines(model: &Model, detail: &Detail, width: usize) -> Vec<PageLine> {
    let mut page = Page { model, width, lines: Vec::new(), owner: Owner::Nothing, part: 0 };
    match model.detail.tab {
        Tab::Transcript => page.transcript(&detail.messages),
        Tab::Why => page.why(detail),
        Tab::Timeline => page.timeline(&detail.transitions),
        Tab::Brackets => page.brackets(&detail.brackets),
        Tab::Agents => page.agents(detail),
    }
    page.lines
}

struct Page<'a> {
    model: &'a Model,
    width: usize,
    lines: Vec<PageLine>,
    owner: Owner,
    part: usize,
}

impl Page<'_> {
    fn begin(&mut self, owner: Owner) {
        (self.owner, self.part) = (owner, 0);
    }

    fn line(&mut self, pieces: Vec<Piece>) {
        self.lines.push(PageLine { pieces, owner: self.owner, part: self.part });
        self.part += 1;
    }

    /// Text under a first line that begins with `head`, indented as far as that reaches.
    fn hanging(&mut self, head: Vec<Piece>, role: Role, text: &str) {
        let indent = piece::width(&head);
        let mut head = Some(head);
        let wrapped = piece::wrap(text, self.width.saturating_sub(indent));
        for part in wrapped.iter().take(MESSAGE_LINES_MAX) {
            let mut pieces = head.take().unwrap_or_else(|| vec![plain(&" ".repeat(indent))]);
            pieces.push(Piece::new(role, part));
            self.line(pieces);
        }
        if let Some(head) = head {
            self.line(head);
        }
        if wrapped.len() > MESSAGE_LINES_MAX {
            let text = format!("{} more lines are not shown", wrapped.len() - MESSAGE_LINES_MAX);
            self.line(vec![plain(&" ".repeat(indent)), dim(&text)]);
        }
    }

    /// A sentence for a tab that has nothing else.
    fn nothing(&mut self, sentence: &str) {
        self.hanging(Vec::new(), Role::Dim, sentence);
    }

    fn transcript(&mut self, messages: &[MessageRow]) {
        // A model that only calls a tool says nothing; its call is a row of its own.
        let said =
            |message: &&MessageRow| message.kind != "answer" || !message.text.trim().is_empty();
        let zone = self.model.options.zone;
        let mut day = zone.day(self.model.now_ms);
        let mut minute = String::new();
        for message in messages.iter().filter(said) {
            if let Some(at_ms) = message.at_ms {
                let its_day = zone.day(at_ms);
                if its_day != day {
                    self.begin(Owner::Nothing);
                    self.line(vec![dim(&format!("{its_day} ─────"))]);
                    day = its_day;
                }
            }
            let clock = message.at_ms.map_or_else(String::new, |at| zone.clock(at));
            // What was said always bears its time; calls between only where it changes.
            let said = matches!(message.kind, "prompt" | "answer");
            let shown = if clock == minute && !said { "" } else { clock.as_str() };
            self.begin(Owner::Message(message.id));
            self.message(message, shown);
            minute = clock;
        }
        if self.lines.is_empty() {
            self.nothing("no message yet");
        }
    }

    fn message(&mut self, message: &MessageRow, clock: &str) {
        let mut head = vec![dim(&format!("{clock:5} "))];
        let unfolded = self.model.detail.unfolded.contains(&message.id);
        let name = message.name.as_deref().unwrap_or("tool");
        let (role, foldable) = match message.kind {
            "prompt" => {
                head.push(Piece::new(Role::Accent, "you   "));
                (Role::Strong, false)
            }
            "answer" => {
                head.push(Piece::new(Role::Running, "agent "));
                (Role::Text, false)
            }
            "tool_call" => {
                head.push(dim(if unfolded { "▾ " } else { "▸ " }));
                head.push(Piece::new(Role::Idle, &format!("{name} ")));
                (Role::Text, true)
            }
            "tool_result" => {
                head.push(dim("  └ "));
                (Role::Dim, true)
            }
            _ => {
                head.push(dim("      "));
                (Role::Dim, true)
            }
        };
        if unfolded {
            self.unfolded(head, role, message);
        } else if foldable {
            let room = self.width.saturating_sub(piece::width(&head));
            let one_line = match crate::text::line(&message.text) {
                empty if empty.trim().is_empty() && message.kind == "tool_result" => {
                    "nothing".into()
                }
                text => text,
            };
            head.push(Piece::new(role, &crate::text::cut(&one_line, room)));
            self.line(head);
        } else {
            self.hanging(head, role, &message.text);
            if message.text.chars().count() >= PREVIEW_FULL_CHARS {
                self.line(vec![plain("            "), dim("… Enter: full text")]);
            }
        }
    }

    fn unfolded(&mut self, head: Vec<Piece>, role: Role, message: &MessageRow) {
        match self.model.detail.full.get(&message.id) {
            Some(Full::Text(text)) => self.hanging(head, role, text),
            Some(Full::Missing(why)) => {
                self.hanging(head, role, &message.text);
                let why = format!("only the preview: {why}");
                self.hanging(vec![plain("            ")], Role::Warning, &why);
            }
            Some(Full::Asked) | None => {
                self.hanging(head, role, &message.text);
                self.line(vec![plain("            "), dim("reading the transcript…")]);
            }
        }
    }

    fn why(&mut self, detail: &Detail) {
        self.begin(Owner::Block(0));
        for (number, tried) in detail.why.iter().enumerate() {
            self.begin(Owner::Block(number + 1));
            self.rule(number + 1, tried);
        }
        self.begin(Owner::Block(0));
        self.line(Vec::new());
        self.facts(&detail.session);
        for notice in &detail.session.notices {
            let head = Piece::new(Role::Warning, &format!("{}  ", notice.code));
            self.hanging(vec![head], Role::Text, &notice.text);
        }
    }

    fn rule(&mut self, number: usize, tried: &Tried) {
        let (mark, role) = match (tried.decided, tried.held) {
            (true, _) => ("decided ", Role::Running),
            (false, true) => ("holds   ", Role::Text),
            (false, false) => ("no      ", Role::Dim),
        };
        let head = vec![dim(&format!("{number} ")), Piece::new(role, mark)];
        let body = if tried.decided { Role::Strong } else { role };
        let basis = if tried.decided { format!(" ({})", tried.basis) } else { String::new() };
        self.hanging(head, body, &format!("{}: {}{basis}", tried.rule, tried.test));
        for evidence in &tried.evidence {
            let told = self.model.options.zone.told(evidence);
            self.hanging(vec![dim("          └ ")], Role::Text, &told);
        }
    }

    fn facts(&mut self, session: &Session) {
        let zone = self.model.options.zone;
        let moment = |at: Option<i64>| at.map_or_else(|| UNKNOWN.to_owned(), |at| zone.stamp(at));
        let ended = match (session.ended_ms, session.ended_approximate) {
            (Some(at), true) => format!("about {}", zone.stamp(at)),
            (at, _) => moment(at),
        };
        let process = match session.process.alive {
            Some(true) => "alive",
            Some(false) => "gone",
            None => "unknown",
        };
        let pid = session.process.pid.map(|pid| format!("pid {pid}"));
        let source = session.process.source.map(|source| format!("by {source}"));
        let state = session.process.state.clone();
        let process: Vec<String> =
            [Some(process.to_owned()), pid, state, source].into_iter().flatten().collect();
        let transcript = if session.transcript_present { "present" } else { "missing" };
        let facts = [
            ("id", session.id.clone()),
            ("reason", session.reason.code.clone()),
            ("since", moment(session.status_since_ms)),
            ("checked", moment(session.checked_ms)),
            ("turn", session.turn.to_owned()),
            ("last turn", session.last_turn.unwrap_or(UNKNOWN).to_owned()),
            ("last error", session.last_error.clone().unwrap_or_else(|| UNKNOWN.to_owned())),
            ("process", process.join(", ")),
            ("started", moment(session.started_ms)),
            ("active", moment(session.last_activity_ms)),
            ("ended", ended),
            ("transcript", transcript.to_owned()),
            ("skipped", format!("{} lines", session.skipped_lines)),
        ];
        for (name, value) in facts {
            self.hanging(vec![dim(&format!("{name:11}"))], Role::Text, &value);
        }
    }

    fn timeline(&mut self, transitions: &[Transition]) {
        if transitions.is_empty() {
            self.nothing("no transition: a sub-agent has no status of its own in the store");
        }
        // The newest first: that is the one somebody wonders about.
        for (number, row) in transitions.iter().rev().enumerate() {
            self.begin(Owner::Block(number));
            let zone = self.model.options.zone;
            let from = row.from.as_deref().unwrap_or("admitted");
            self.line(vec![
                dim(&format!("{} ", zone.stamp(row.at_ms))),
                dim(&format!("{from} → ")),
                words_of(&row.to),
                dim(&format!("  {}", row.basis)),
            ]);
            self.hanging(vec![plain("               ")], Role::Text, &zone.told(&row.summary));
            let by = format!("{} by {} · {}", row.reason, row.actor, row.rule);
            self.hanging(vec![plain("               ")], Role::Dim, &by);
            for evidence in &row.evidence {
                let told = zone.told(evidence);
                self.hanging(vec![dim("               └ ")], Role::Dim, &told);
            }
        }
    }

    fn brackets(&mut self, brackets: &[Compaction]) {
        if brackets.is_empty() {
            self.nothing("no compaction in this session");
        }
        for (number, bracket) in brackets.iter().enumerate() {
            self.begin(Owner::Block(number));
            let zone = self.model.options.zone;
            let at = bracket.started_ms.or(bracket.ended_ms);
            let at = at.map_or_else(|| format!("{UNKNOWN:14}"), |at| zone.stamp(at));
            let parts = [bracket.trigger, bracket.phase];
            let parts: Vec<&str> = parts.into_iter().flatten().collect();
            self.line(vec![
                dim(&format!("{at:14} ")),
                words::bracket(bracket, false),
                dim(&format!("  {}  ", parts.join(" · "))),
                plain(&words::shrink(bracket)),
            ]);
            if let Some(why) = &bracket.why {
                self.hanging(vec![plain("               ")], Role::Text, &zone.told(why));
            }
            if let Some(error) = &bracket.error {
                self.hanging(vec![plain("               ")], Role::Error, error);
            }
        }
    }

    fn agents(&mut self, detail: &Detail) {
        if detail.children.is_empty() {
            self.nothing("no sub-agents");
        }
        let is_top = |child: &&Session| {
            let parent = child.parent_native_id.as_deref().unwrap_or_default();
            !detail.children.iter().any(|other| other.native_id == parent)
        };
        for child in detail.children.iter().filter(is_top) {
            self.agent(&detail.children, child, 0);
        }
    }

    fn agent(&mut self, all: &[Session], child: &Session, depth: usize) {
        self.begin(Owner::Child(child.row_id));
        let indent =
            if depth == 0 { String::new() } else { format!("{}└ ", "  ".repeat(depth - 1)) };
        let quiet = age::age_or_unknown(self.model.quiet_ms(child));
        let head = vec![
            words::status(child).fit(12),
            words::phase(child).fit(15),
            dim(&format!("{quiet:>4} ")),
            dim(&indent),
        ];
        let room = self.width.saturating_sub(piece::width(&head));
        let mut pieces = head;
        pieces.push(words::title(child).fit(room));
        self.line(pieces);
        if depth >= DEPTH_MAX {
            return;
        }
        for grandchild in all {
            let is_own = grandchild.parent_native_id.as_deref() == Some(child.native_id.as_str());
            if is_own && grandchild.row_id != child.row_id {
                self.agent(all, grandchild, depth + 1);
            }
        }
    }
}

/// A status word of a history row, in the role of the status if it is one.
pub fn words_of(word: &str) -> Piece {
    let status = crate::lifecycle::Status::from_word(word);
    let (role, glyph) = match status {
        Some(status) => (crate::ui::theme::role(status), crate::ui::theme::glyph(status)),
        None => (Role::Text, UNKNOWN),
    };
    Piece::new(role, &format!("{glyph} {word}"))
}
