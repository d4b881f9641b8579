//! One session as shown, from its row and from what was read beside it; pure.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::attention::{self, Stakes};
use super::behind;
use super::bracket::{self, Standing};
use super::family::Family;
use super::phase::{self, Bracket, Ended, Holder, Newer, Plan, Rank, Signs, Tail};
use super::waiting::{asks, process_waits, waiting_for};
use super::{EndedIn, Notice, Phase, Process, Reason, Session, Tokens, WaitingFor};
use crate::compaction::{BracketEvidence, Fold};
use crate::lifecycle::decide;
use crate::lifecycle::presence::{Answers, Here, Presence, Trust, Word, presence};
use crate::lifecycle::work::Written;
use crate::lifecycle::{Basis, Status, Windows, judged_ms, moment};
use crate::store::evidence::Evidence;
use crate::store::query::{Agent, Facts, Outcome, SessionRow, TitleKind, Turn, VerdictRow};
use crate::text;

/// Characters of a title, of an error's text and of a last text.
const TEXT_CHARS: usize = 200;

/// What is read once for all sessions.
#[derive(Debug)]
pub(super) struct Around {
    /// The moment the snapshot is for, ms.
    pub(super) now_ms: i64,
    /// When the last complete pass of a writer ended, ms.
    pub(super) as_of_ms: Option<i64>,
    /// The store's windows.
    pub(super) windows: Windows,
    /// Sessions with a damaged part.
    pub(super) damaged: HashSet<i64>,
    /// Sessions whose standing end is fresh news that nobody has acknowledged.
    pub(super) fresh_ends: HashSet<i64>,
    /// Who is whose child.
    pub(super) family: Family,
    /// Sessions that a process is busy with and of which a sub-agent's turn is open.
    pub(super) open_children: HashSet<i64>,
    /// What was observed beside the transcripts, by session.
    pub(super) observed: HashMap<i64, Vec<Evidence>>,
    /// Where this process stands, if observations made there are of use now.
    pub(super) here: Option<Here>,
    /// When the clock was last seen to jump, ms.
    pub(super) clock_stepped_ms: Option<i64>,
    /// Sessions of which something cannot be seen, each with since when, ms.
    pub(super) unseen: BTreeMap<i64, i64>,
}

impl Around {
    /// What was observed of a session.
    pub(super) fn observed(&self, id: i64) -> &[Evidence] {
        self.observed.get(&id).map(Vec::as_slice).unwrap_or_default()
    }

    /// How far that is believed.
    fn trust(&self) -> Trust<'_> {
        self.here.as_ref().map_or(Trust::Stale, Trust::Standing)
    }

    /// What that says together.
    fn presence(&self, row: &SessionRow, settled_ms: Option<i64>) -> Presence {
        let in_registry = match row.agent {
            Agent::Claude => true,
            Agent::Codex | Agent::Dsh => false,
        };
        let activity_ms = row.own_clock_ms.map(|at| judged(row, at, self.now_ms));
        let settled_ms = settled_ms.map(|at| judged(row, at, self.now_ms));
        presence(
            self.observed(row.id),
            self.trust(),
            Answers { activity_ms, settled_ms },
            in_registry,
        )
    }

    /// Whether the processes of a session are known to be gone, as far as that is believed.
    pub(super) fn is_gone(&self, id: i64) -> bool {
        presence(self.observed(id), self.trust(), Answers::default(), true).alive == Some(false)
    }

    /// What is known of the process that has a row open. A nested row lives in its root's process:
    /// where that is gone or the root has ended, nobody is left to go on with it.
    fn phase_holder(&self, row: &SessionRow, seen: &Presence, ended: &HashSet<i64>) -> Holder {
        let root = || self.family.root(row.id).filter(|_| row.nested);
        match seen.alive {
            Some(true) => Holder::Alive,
            Some(false) => Holder::Gone,
            None if root().is_some_and(|root| ended.contains(&root) || self.is_gone(root)) => {
                Holder::Gone
            }
            None => Holder::Unknown,
        }
    }

    /// Who has a session open, as far as that is believed.
    pub(super) fn holder(&self, id: i64) -> decide::Holder {
        presence(self.observed(id), self.trust(), Answers::default(), true).holder
    }

    /// The evidence for a session's brackets.
    pub(super) fn bracket_evidence(
        &self,
        row: &SessionRow,
        status: Status,
        fold: &Fold,
    ) -> BracketEvidence {
        bracket::evidence(
            status,
            fold,
            self.observed(row.id),
            // Who holds it: what answers a hook is of no matter.
            &self.presence(row, None),
            self.here.is_some(),
            self.clock_stepped_ms,
        )
    }
}

/// The session of a row; `None` for one that is none yet: not admitted, or nested without a stamp.
/// `ended`: roots that have ended, as far as one of the rows stands below them.
pub(super) fn session(row: SessionRow, around: &Around, ended: &HashSet<i64>) -> Option<Session> {
    let read = row.facts();
    let readable = read.is_some();
    let facts = read.unwrap_or_default();
    let judged = judge(&row, &facts, around, ended)?;
    let mut notices = notices(&row, &facts, around, judged.ended_in, readable);
    let amounts = facts.background.amounts(around.now_ms);
    notices.extend(behind::notice(amounts, judged.verdict.status));
    Some(shown(row, facts, judged, notices, around))
}

/// What follows from a row and its facts at the snapshot's moment.
struct Judged {
    verdict: VerdictRow,
    last_activity_ms: Option<i64>,
    quiet_ms: Option<i64>,
    unchecked: bool,
    ended_in: Option<EndedIn>,
    process: Process,
    standing: Standing,
    phase: Option<Phase>,
    waiting_for: Option<WaitingFor>,
    attention: bool,
}

fn judge(row: &SessionRow, facts: &Facts, around: &Around, ended: &HashSet<i64>) -> Option<Judged> {
    let now_ms = around.now_ms;
    let last_activity_ms = last_activity(row, facts, now_ms);
    let verdict = match row.verdict.clone() {
        Some(stored) => stored,
        None if row.nested => derived(last_activity_ms?, now_ms, around.windows),
        None => return None,
    };
    let terminal = verdict.status.is_terminal();
    let unseen = around.unseen.contains_key(&row.id);
    let unchecked = !terminal && (unseen || (!row.nested && is_past_due(row, around)));
    let presence = around.presence(row, facts.settled_ms);
    let evidence = around.bracket_evidence(row, verdict.status, &facts.compaction);
    let standing = bracket::standing(&facts.compaction, &evidence, now_ms);
    let announced = presence.compacting.as_ref().filter(|_| !terminal);
    let standing = bracket::with_announced(standing, announced, now_ms);
    let signs = Signs {
        ended: if terminal { Ended::Yes } else { Ended::No },
        rank: if row.nested { Rank::Nested } else { Rank::Top },
        bracket: if standing.running { Bracket::Running } else { Bracket::Quiet },
        asks: presence.wait.as_ref().map(asks),
        newer: newer(row, facts, around, &presence),
        holder: around.phase_holder(row, &presence, ended),
        ..of_facts(facts)
    };
    let calls: Vec<&str> = facts.open_calls.iter().map(|call| call.name.as_str()).collect();
    let phase = phase::phase(&Signs { calls: &calls, ..signs });
    let ended_in = ended_in(facts, terminal);
    let attention = attention::needs_human(&Stakes {
        live: verdict.status.is_live(),
        nested: row.nested,
        unchecked,
        phase,
        stuck: standing.stuck,
        process_waits: process_waits(&presence),
        fresh_bad_end: ended_in.is_some() && around.fresh_ends.contains(&row.id),
    });
    Some(Judged {
        quiet_ms: sign_of_life(row, last_activity_ms)
            .map(|life| now_ms.saturating_sub(life).max(0)),
        verdict,
        last_activity_ms,
        unchecked,
        ended_in,
        process: process(&presence),
        standing,
        phase,
        waiting_for: waiting_for(facts, phase, &presence),
        attention,
    })
}

fn shown(
    row: SessionRow,
    facts: Facts,
    judged: Judged,
    notices: Vec<Notice>,
    around: &Around,
) -> Session {
    let children = around.family.children(row.id);
    let amounts = facts.background.amounts(around.now_ms);
    let state = judged.process.state.as_deref();
    let behind = behind::short(amounts, judged.verdict.status, state);
    let title = facts.title.as_deref().and_then(clean);
    let verdict = judged.verdict;
    let terminal = verdict.status.is_terminal();
    Session {
        row_id: row.id,
        id: id(row.agent.word(), row.parent.as_deref(), &row.native_id),
        agent: row.agent.word(),
        kind: row.kind.word(),
        title_source: facts.title_source.filter(|_| title.is_some()).map(TitleKind::word),
        title,
        status: verdict.status,
        status_since_ms: verdict.since_ms,
        phase: judged.phase,
        tool: tool(&facts, judged.phase),
        waiting_for: judged.waiting_for,
        attention: judged.attention,
        turn: facts.turn.word(),
        last_turn: facts.last_turn.map(Outcome::word),
        last_error: facts.last_error.as_deref().and_then(clean),
        started_ms: facts.started_ms.or(facts.first_activity_ms),
        last_activity_ms: judged.last_activity_ms,
        clock_ahead: row.clock_ahead || facts.clock_ahead,
        quiet_ms: judged.quiet_ms,
        ended_ms: verdict.ended_ms.filter(|_| terminal),
        ended_approximate: terminal && verdict.ended_approximate,
        ended_in: judged.ended_in,
        checked_ms: row.checked_ms,
        unchecked: judged.unchecked,
        process: judged.process,
        prompts: facts.prompts.chosen(),
        answers: facts.answers.chosen(),
        tool_calls: facts.tool_calls.chosen(),
        skipped_lines: facts.flaws.skipped,
        last_text: facts.newest_text().and_then(clean),
        tokens: tokens(&facts),
        context_used: facts.context_used,
        context_window: facts.context_window,
        compaction: judged.standing.shown,
        notices,
        behind,
        children: children.all,
        active_children: children.active,
        transcript_present: row.transcript_present,
        reason: reason(verdict),
        parent_native_id: row.parent.filter(|_| !around.family.is_head(row.id)).or(facts.fork_of),
        native_id: row.native_id,
        cwd: facts.cwd,
        branch: facts.branch,
        model: facts.model,
        agent_version: facts.version,
    }
}

/// `agent:native_id`; a sub-agent `agent:parent/native_id`.
pub(super) fn id(agent: &str, parent: Option<&str>, native_id: &str) -> String {
    match parent {
        Some(parent) => format!("{agent}:{parent}/{native_id}"),
        None => format!("{agent}:{native_id}"),
    }
}

/// Newest activity: of a session also that of its sub-agents, of a nested row its own.
fn last_activity(row: &SessionRow, facts: &Facts, now_ms: i64) -> Option<i64> {
    let own = facts.clock_ms().or(row.own_clock_ms);
    if row.nested {
        let written_ms = own.or(row.last_activity_ms)?;
        // Nobody notes an anchor for a nested row: of a stamp ahead of the clock counts when it was
        // read.
        let ahead = written_ms > now_ms;
        Some(if ahead { facts.read_ahead_ms.unwrap_or(now_ms).min(now_ms) } else { written_ms })
    } else {
        let written_ms = row.last_activity_ms.max(row.child_activity_ms).or(own)?;
        Some(judged(row, written_ms, now_ms))
    }
}

fn judged(row: &SessionRow, written_ms: i64, now_ms: i64) -> i64 {
    let noted = (row.sign_of_life_ms, row.anchored_ms);
    judged_ms(written_ms, row.last_activity_ms.unwrap_or(written_ms), noted, now_ms)
}

/// Last activity, or a later moment at which a process said that it works on the open turn.
fn sign_of_life(row: &SessionRow, last_activity_ms: Option<i64>) -> Option<i64> {
    let stored = row.sign_of_life_ms.filter(|_| !row.nested);
    match row.last_activity_ms.filter(|_| !row.nested) {
        Some(written) if row.anchored_ms == Some(written) => stored.or(last_activity_ms),
        Some(_) | None => stored.max(last_activity_ms),
    }
}

/// Whether the moment has passed at which the status was to be decided on again, and nobody did.
///
/// A row that a live process holds stays past its deadline without a word in the store, so a pass
/// that was complete after the deadline counts too.
fn is_past_due(row: &SessionRow, around: &Around) -> bool {
    let looked_ms = row.checked_ms.max(around.as_of_ms);
    row.deadline_ms.is_some_and(|deadline| {
        around.now_ms >= deadline && looked_ms.is_none_or(|looked| looked < deadline)
    })
}

/// The status of a row without a lifecycle: rules 2 to 4 on its own last activity, with no end
/// evidence and no holder. It says *seen* and *concluded* as the rules do for sessions.
fn derived(last_activity_ms: i64, now_ms: i64, windows: Windows) -> VerdictRow {
    let silence = now_ms.saturating_sub(last_activity_ms).max(0);
    let (status, code, basis, rule, summary) = if silence <= windows.live_ms {
        let summary = "its own last activity is within the live window";
        (Status::Running, "session.running.activity", Basis::Observed, "live_window", summary)
    } else if silence <= windows.ended_ms {
        let summary = "silent for longer than the live window: a lull";
        (Status::Idle, "session.idle.silence", Basis::Observed, "ended_window", summary)
    } else {
        let summary = "silent for longer than the ended window";
        (Status::Completed, "session.completed.silence", Basis::Inferred, "silence", summary)
    };
    VerdictRow {
        status,
        since_ms: None,
        code: code.to_owned(),
        summary: summary.to_owned(),
        basis,
        rule: rule.to_owned(),
        evidence: Vec::new(),
        ended_ms: status.is_terminal().then_some(last_activity_ms),
        ended_approximate: status.is_terminal(),
    }
}

fn reason(verdict: VerdictRow) -> Reason {
    Reason {
        code: verdict.code,
        summary: verdict.summary,
        basis: verdict.basis,
        rule: verdict.rule,
        evidence: verdict.evidence,
    }
}

/// What the transcript alone says of the phase.
fn of_facts(facts: &Facts) -> Signs<'static> {
    Signs {
        ended: Ended::No,
        rank: Rank::Top,
        bracket: Bracket::Quiet,
        asks: None,
        newer: None,
        approvals: facts.approvals.len(),
        calls: &[],
        plan: if facts.plan.is_some() { Plan::Waits } else { Plan::None },
        turn: facts.turn,
        last_turn: facts.last_turn,
        tail: if facts.trailer { Tail::Trailer } else { Tail::Plain },
        holder: Holder::Unknown,
    }
}

/// What a live process says of the work, where the transcript says the other thing or nothing.
fn newer(row: &SessionRow, facts: &Facts, around: &Around, seen: &Presence) -> Option<Newer> {
    let said = seen.said?;
    let written = Written {
        turn_open: facts.turn == Turn::Open,
        child_turn_open: around.open_children.contains(&row.id),
        last_ms: row.own_clock_ms.map(|at| judged(row, at, around.now_ms)),
        several_writers: said.one_of_several,
    };
    match said.word {
        Word::Busy => written.busy_is_work(said.since_ms).then_some(Newer::Works),
        Word::Idle | Word::Shell => written.idle_is_rest(said.since_ms).then_some(Newer::Rests),
        Word::Waiting => None,
    }
}

fn ended_in(facts: &Facts, terminal: bool) -> Option<EndedIn> {
    match (terminal, facts.turn, facts.last_turn) {
        (true, Turn::Open, _) => Some(EndedIn::Turn),
        (true, Turn::None | Turn::Closed | Turn::Interrupted, Some(Outcome::Error)) => {
            Some(EndedIn::Error)
        }
        (false, _, _) | (true, Turn::None | Turn::Closed | Turn::Interrupted, _) => None,
    }
}

fn process(seen: &Presence) -> Process {
    match (&seen.shown, &seen.wait) {
        (Some(shown), _) => Process {
            alive: seen.alive,
            pid: shown.pid,
            state: shown.state.clone(),
            source: Some(shown.source),
        },
        (None, Some(_)) => {
            let state = Some("waiting".to_owned());
            Process { alive: None, pid: None, state, source: Some("hook") }
        }
        (None, None) => Process::default(),
    }
}

/// The newest call without a result, while a tool is what the session is about.
fn tool(facts: &Facts, phase: Option<Phase>) -> Option<(String, Option<i64>)> {
    let call =
        facts.open_calls.last().filter(|_| matches!(phase, Some(Phase::Tool | Phase::ToolGone)))?;
    Some((call.name.clone(), call.at_ms))
}

fn tokens(facts: &Facts) -> Tokens {
    let tokens = facts.tokens;
    Tokens {
        input: tokens.input,
        cache_read: tokens.cache_read,
        cache_write: tokens.cache_write,
        output: tokens.output,
        total: tokens.total(),
    }
}

/// One clean line of at most [`TEXT_CHARS`] characters, if anything of it stays.
pub(super) fn clean(raw: &str) -> Option<String> {
    Some(text::line_up_to(raw, TEXT_CHARS)).filter(|clean| !clean.is_empty())
}

fn notices(
    row: &SessionRow,
    facts: &Facts,
    around: &Around,
    ended_in: Option<EndedIn>,
    readable: bool,
) -> Vec<Notice> {
    let mut notices: Vec<Notice> = facts
        .notices
        .iter()
        .map(|notice| Notice { code: notice.code.clone(), text: notice.text.clone() })
        .collect();
    let mut add = |code: &str, text: String| {
        if !notices.iter().any(|notice| notice.code == code) {
            notices.push(Notice { code: code.to_owned(), text });
        }
    };
    if let Some(since_ms) = around.unseen.get(&row.id) {
        let since = moment(*since_ms);
        let what = "a file or folder of it or of its sub-agents cannot be read, or nobody could \
             look at its processes";
        add("unobserved", format!("not observed since {since}: {what}"));
    }
    if around.damaged.contains(&row.id) {
        let text = "a part of its file is damaged and was skipped; what is intact counts";
        add("damaged", text.to_owned());
    }
    if facts.flaws.oversized > 0 {
        let lines = facts.flaws.oversized;
        add("oversized", format!("{lines} lines over 16 MiB were read by their head and tail"));
    }
    if ended_in == Some(EndedIn::Turn) {
        let open = if facts.open_calls.is_empty() {
            "nothing says that it was finished"
        } else {
            "a call has no result"
        };
        add("ended_in_turn", format!("ended inside a turn: {open}"));
    }
    if around.family.is_orphan(row.id) {
        add("parent_missing", "parent missing: no file of the session that started it".to_owned());
    }
    if around.family.is_head(row.id) {
        let text = "it is among its own ancestors, by what its files say: shown without a parent";
        add("parent_circle", text.to_owned());
    }
    if !readable {
        add("unreadable", "this version cannot read what the store keeps of it".to_owned());
    }
    notices
}
