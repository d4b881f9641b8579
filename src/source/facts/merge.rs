//! A session from what each of its live generations says, and from the titles addressed to it.
//!
//! Pure: it depends on its arguments alone, whatever order the files were read in.

use super::super::{Base, TitleKind, Turn};
use super::{Counts, Facts, Past, Stamped};

/// The facts of one live generation, with what orders generations of equal content.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it holds.
    pub facts: Facts,
    /// A key of the file that outlives moves (its stem); only breaks ties.
    pub tie: String,
}

/// A title addressed to the session, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TitleRow {
    /// Where it comes from.
    pub kind: TitleKind,
    /// Stamp carried by its file, ms.
    pub at_ms: i64,
    /// Breaks ties between files: the file's stem.
    pub tie: String,
    /// Offset in its file, bytes.
    pub offset: u64,
    /// The text.
    pub text: String,
}

/// A session from its live generations and the titles addressed to it; `None` without a part.
///
/// Counters add up; the caller corrects those of a session whose generations repeat each other
/// ([`Facts::repeats`]).
pub fn merge(mut parts: Vec<Part>, titles: &[TitleRow]) -> Option<Facts> {
    let branch = branch(&parts);
    take_back(&mut parts, &branch);
    let order = |part: &Part| (part.facts.clock_ms().unwrap_or(i64::MIN), part.tie.clone());
    let rank = |part: &Part| branch.iter().rev().position(|(tie, _)| *tie == part.tie);
    parts.sort_by_cached_key(|part| (rank(part), order(part)));
    let newest = parts.pop()?;
    let mut merged = newest.facts;
    for part in parts.into_iter().rev() {
        add_older(&mut merged, part.facts);
    }
    let (title, source) = choose_title(&merged, titles);
    merged.title = title;
    merged.title_source = source;
    merged.repeats = false;
    merged.past = Past::default();
    merged.base = None;
    Some(merged)
}

/// The rollouts that make up the conversation as it is now, newest first, each with the place from
/// which the next one no longer counts; empty where none goes on with another.
fn branch(parts: &[Part]) -> Vec<(String, Option<Base>)> {
    let based = parts.iter().filter(|part| part.facts.base.is_some());
    let mut next = based.max_by_key(|part| (part.facts.started_ms, &part.tie));
    let mut found: Vec<(String, Option<Base>)> = Vec::new();
    while let Some(part) = next {
        if found.len() > parts.len() || found.iter().any(|(tie, _)| *tie == part.tie) {
            break;
        }
        found.push((part.tie.clone(), part.facts.base.clone()));
        next = part.facts.base.as_ref().and_then(|base| {
            parts.iter().find(|part| !base.rollout.is_empty() && part.tie.ends_with(&base.rollout))
        });
    }
    found
}

/// Takes back what rollouts hold behind the places where others go on, and all of those that lie on
/// no way to the newest.
fn take_back(parts: &mut [Part], branch: &[(String, Option<Base>)]) {
    if branch.is_empty() {
        return;
    }
    for part in parts {
        let Some(at) = branch.iter().position(|(tie, _)| *tie == part.tie) else {
            part.facts.void();
            continue;
        };
        let later = at.checked_sub(1).and_then(|later| branch.get(later));
        if let Some((_, Some(base))) = later {
            part.facts.cut(base);
        }
    }
}

/// Adds an older generation: the newest has the word on what is current, the oldest on the start.
fn add_older(merged: &mut Facts, older: Facts) {
    merged.kind = match (merged.kind, older.kind) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    merged.fork_of = merged.fork_of.take().or(older.fork_of);
    if older.cwd.is_some() {
        merged.cwd = older.cwd;
    }
    merged.branch = merged.branch.take().or(older.branch);
    merged.model = merged.model.take().or(older.model);
    merged.source = merged.source.take().or(older.source);
    merged.version = merged.version.take().or(older.version);
    merged.started_ms = earliest(merged.started_ms, older.started_ms);
    merged.first_activity_ms = earliest(merged.first_activity_ms, older.first_activity_ms);
    merged.last_activity_ms = merged.last_activity_ms.max(older.last_activity_ms);
    merged.clock_ahead |= older.clock_ahead;
    merged.settled_ms = merged.settled_ms.max(older.settled_ms);
    merged.read_ahead_ms = merged.read_ahead_ms.max(older.read_ahead_ms);
    if merged.turn == Turn::None {
        merged.turn = older.turn;
        merged.open_calls = older.open_calls;
        merged.approvals = older.approvals;
        merged.plan = older.plan;
    }
    if merged.last_turn.is_none() {
        merged.last_turn = older.last_turn;
        merged.last_error = merged.last_error.take().or(older.last_error);
    }
    for (counts, more) in [
        (&mut merged.prompts, older.prompts),
        (&mut merged.answers, older.answers),
        (&mut merged.tool_calls, older.tool_calls),
    ] {
        // One source per file: what an older file chose counts with what the newer one chose.
        *counts = Counts { primary: counts.chosen() + more.chosen(), fallback: 0 };
    }
    merged.first_prompt = first_of(older.first_prompt, merged.first_prompt.take());
    merged.first_prompt_fallback =
        first_of(older.first_prompt_fallback, merged.first_prompt_fallback.take());
    merged.last_text = merged
        .last_text
        .take()
        .or(merged.last_text_fallback.take())
        .or(older.last_text)
        .or(older.last_text_fallback);
    merged.tokens = merged.tokens.plus(older.tokens);
    merged.context_used = merged.context_used.or(older.context_used);
    merged.context_window = merged.context_window.or(older.context_window);
    merged.compaction.add_older(&older.compaction);
    for (name, count) in older.unknown {
        let slot = merged.unknown.entry(name).or_default();
        *slot = slot.saturating_add(count);
    }
    for notice in older.notices {
        if !merged.notices.contains(&notice) {
            merged.notices.push(notice);
        }
    }
    merged.flaws.add(older.flaws);
}

fn earliest(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn first_of(older: Option<Stamped>, newer: Option<Stamped>) -> Option<Stamped> {
    match (older, newer) {
        (Some(older), Some(newer)) if newer.at_ms < older.at_ms => Some(newer),
        (Some(older), _) => Some(older),
        (None, newer) => newer,
    }
}

/// The best title: by kind, then the last one of its kind (of slash commands the first).
fn choose_title(facts: &Facts, titles: &[TitleRow]) -> (Option<String>, Option<TitleKind>) {
    let mut best: Option<&TitleRow> = None;
    for row in titles.iter().filter(|row| !row.text.trim().is_empty()) {
        let order = |row: &TitleRow| (row.at_ms, row.tie.clone(), row.offset);
        let better = match best {
            None => true,
            Some(old) if row.kind != old.kind => row.kind < old.kind,
            Some(old) if row.kind == TitleKind::FirstCommand => order(row) < order(old),
            Some(old) => order(row) > order(old),
        };
        if better {
            best = Some(row);
        }
    }
    let prompt = if facts.first_prompt.is_some() {
        &facts.first_prompt
    } else {
        &facts.first_prompt_fallback
    };
    match (best, prompt) {
        (Some(row), None) => (Some(row.text.clone()), Some(row.kind)),
        (Some(row), Some(_)) if row.kind < TitleKind::FirstPrompt => {
            (Some(row.text.clone()), Some(row.kind))
        }
        (_, Some(prompt)) => (Some(prompt.text.clone()), Some(TitleKind::FirstPrompt)),
        (None, None) => (None, None),
    }
}
