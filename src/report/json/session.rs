//! A session on the wire, field for field as the design lists it.

use serde::Serialize;

use super::{Clean, Moment, clean, cleans, known, moment};
use crate::snapshot::{Compaction, EndedIn, Phase, Session, WaitingFor};
use crate::text;

#[derive(Serialize)]
pub(super) struct SessionOut<'a> {
    id: Clean<'a>,
    agent: &'static str,
    native_id: Clean<'a>,
    kind: &'static str,
    parent_native_id: Option<Clean<'a>>,
    title: Option<Clean<'a>>,
    title_source: Option<&'static str>,
    cwd: Option<Clean<'a>>,
    branch: Option<Clean<'a>>,
    model: Option<Clean<'a>>,
    agent_version: Option<Clean<'a>>,
    status: &'static str,
    status_since: Moment,
    reason: ReasonOut<'a>,
    phase: Option<&'static str>,
    attention: bool,
    turn: &'static str,
    last_turn: Option<&'static str>,
    last_error: Option<Clean<'a>>,
    started_at: Moment,
    last_activity_at: Moment,
    clock_ahead: bool,
    quiet_ms: Option<i64>,
    ended_at: Moment,
    ended_at_approximate: bool,
    checked_at: Moment,
    process: ProcessOut<'a>,
    prompts: u64,
    answers: u64,
    tool_calls: u64,
    skipped_lines: u64,
    last_text: Option<Clean<'a>>,
    tokens: TokensOut,
    context: ContextOut,
    compaction: CompactionOut<'a>,
    notices: Vec<NoticeOut<'a>>,
    children: u64,
    active_children: u64,
    transcript: &'static str,
    waiting_for: Option<WaitingOut<'a>>,
    ended_in: Option<&'static str>,
}

#[derive(Serialize)]
struct ReasonOut<'a> {
    code: Option<Clean<'a>>,
    summary: Option<Clean<'a>>,
    basis: &'static str,
    rule: Option<Clean<'a>>,
    evidence: Vec<Clean<'a>>,
}

#[derive(Serialize)]
struct ProcessOut<'a> {
    alive: Option<bool>,
    pid: Option<u32>,
    state: Option<Clean<'a>>,
    source: Option<&'static str>,
}

#[derive(Serialize)]
struct WaitingOut<'a> {
    kind: &'static str,
    tool: Option<Clean<'a>>,
    text: Option<Clean<'a>>,
    since: Moment,
}

#[derive(Serialize)]
struct TokensOut {
    input: i64,
    cache_read: i64,
    cache_write: i64,
    output: i64,
    total: i64,
}

#[derive(Serialize)]
struct ContextOut {
    used: Option<u64>,
    window: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct CompactionOut<'a> {
    bracket: &'static str,
    state: Option<Clean<'a>>,
    phase: Option<&'static str>,
    blocking: bool,
    running: Option<bool>,
    trigger: Option<&'static str>,
    started_at: Moment,
    ended_at: Moment,
    error: Option<Clean<'a>>,
    seq: Option<u64>,
    end_seed_seq: Option<u64>,
    orphans: u64,
    count: u64,
    why: Option<Clean<'a>>,
}

#[derive(Serialize)]
struct NoticeOut<'a> {
    code: Clean<'a>,
    text: Clean<'a>,
}

fn waiting(waiting: &WaitingFor) -> WaitingOut<'_> {
    WaitingOut {
        kind: waiting.kind.word(),
        tool: clean(waiting.tool.as_deref()),
        text: clean(waiting.text.as_deref()),
        since: moment(waiting.since_ms),
    }
}

pub(super) fn session(session: &Session) -> SessionOut<'_> {
    SessionOut {
        id: text::line(&session.id),
        agent: session.agent,
        native_id: text::line(&session.native_id),
        kind: session.kind,
        parent_native_id: clean(session.parent_native_id.as_deref()),
        title: clean(session.title.as_deref()),
        title_source: session.title_source,
        cwd: clean(session.cwd.as_deref()),
        branch: clean(session.branch.as_deref()),
        model: clean(session.model.as_deref()),
        agent_version: clean(session.agent_version.as_deref()),
        status: session.status.word(),
        status_since: moment(session.status_since_ms),
        reason: reason(session),
        phase: session.phase.map(Phase::word),
        attention: session.attention,
        turn: session.turn,
        last_turn: session.last_turn,
        last_error: clean(session.last_error.as_deref()),
        started_at: moment(session.started_ms),
        last_activity_at: moment(session.last_activity_ms),
        clock_ahead: session.clock_ahead,
        quiet_ms: session.quiet_ms,
        ended_at: moment(session.ended_ms),
        ended_at_approximate: session.ended_approximate,
        checked_at: moment(session.checked_ms),
        process: process(session),
        prompts: session.prompts,
        answers: session.answers,
        tool_calls: session.tool_calls,
        skipped_lines: session.skipped_lines,
        last_text: clean(session.last_text.as_deref()),
        tokens: tokens(session),
        context: ContextOut { used: session.context_used, window: session.context_window },
        compaction: compaction(&session.compaction),
        notices: notices(session),
        children: session.children,
        active_children: session.active_children,
        transcript: if session.transcript_present { "present" } else { "missing" },
        waiting_for: session.waiting_for.as_ref().map(waiting),
        ended_in: session.ended_in.map(EndedIn::word),
    }
}

fn reason(session: &Session) -> ReasonOut<'_> {
    let reason = &session.reason;
    ReasonOut {
        code: known(&reason.code),
        summary: known(&reason.summary),
        basis: reason.basis.word(),
        rule: known(&reason.rule),
        evidence: cleans(&reason.evidence),
    }
}

fn process(session: &Session) -> ProcessOut<'_> {
    let process = &session.process;
    ProcessOut {
        alive: process.alive,
        pid: process.pid,
        state: clean(process.state.as_deref()),
        source: process.source,
    }
}

fn tokens(session: &Session) -> TokensOut {
    let tokens = session.tokens;
    TokensOut {
        input: tokens.input,
        cache_read: tokens.cache_read,
        cache_write: tokens.cache_write,
        output: tokens.output,
        total: tokens.total,
    }
}

pub(super) fn compaction(compaction: &Compaction) -> CompactionOut<'_> {
    CompactionOut {
        bracket: compaction.bracket,
        state: clean(compaction.state.as_deref()),
        phase: compaction.phase,
        blocking: compaction.blocking,
        running: compaction.running,
        trigger: compaction.trigger,
        started_at: moment(compaction.started_ms),
        ended_at: moment(compaction.ended_ms),
        error: clean(compaction.error.as_deref()),
        seq: compaction.seq,
        end_seed_seq: compaction.end_seed_seq,
        orphans: compaction.orphans,
        count: compaction.count,
        why: clean(compaction.why.as_deref()),
    }
}

fn notices(session: &Session) -> Vec<NoticeOut<'_>> {
    session
        .notices
        .iter()
        .map(|notice| NoticeOut { code: text::line(&notice.code), text: text::line(&notice.text) })
        .collect()
}
