//! Reads a snapshot: a fixed number of statements, whatever the number of sessions.

use std::collections::{HashMap, HashSet};

use super::family::Family;
use super::session::{Around, session};
use super::{
    AuditCounts, Beside, Hidden, LedgerCount, LedgerWhich, Mirror, PANE_ROWS_MAX, Picture, Query,
    Session, Snapshot, attention, filter, rows, sort,
};
use crate::lifecycle::presence::Here;
use crate::store::evidence::{self, Evidence};
use crate::store::query::{self, SessionRow, Wanted};
use crate::store::{Result, Tx, ledger, meta, sessions as store_sessions};

/// The consumer whose acknowledgements settle what asks for attention.
pub(super) const OPERATOR: &str = "operator";

/// What a look at processes said is believed for so long, ms: a writer looks at least every 30 s.
const BELIEVED_MS: i64 = 120_000;

/// A snapshot for `now_ms`, in the caller's one transaction.
pub fn load(tx: &Tx<'_>, query: &Query, beside: &Beside, now_ms: i64) -> Result<Snapshot> {
    load_around(tx, query, beside, &around(tx, beside, now_ms)?)
}

fn load_around(tx: &Tx<'_>, query: &Query, beside: &Beside, around: &Around) -> Result<Snapshot> {
    let (sessions, hidden, unreadable) = listed(tx, query, around)?;
    let mut mirror = mirror(tx, beside)?;
    if unreadable > 0 {
        mirror.warnings.push(format!(
            "{unreadable} sessions were written by a newer lullwatch and are not shown; update it"
        ));
    }
    let consumer = query.consumer.clone().unwrap_or_else(|| OPERATOR.to_owned());
    Ok(Snapshot {
        at_ms: around.now_ms,
        as_of_ms: beside.as_of_ms,
        host: beside.host.clone(),
        windows: around.windows,
        counts: sort::count(&sessions),
        hidden,
        mirror,
        audit: audit_counts(tx)?,
        ledger: LedgerCount { pending: ledger::pending_count(tx, &consumer)?, consumer },
        sessions,
    })
}

/// A snapshot and the rows of every pane, of one state of the store.
pub fn picture(tx: &Tx<'_>, query: &Query, beside: &Beside, now_ms: i64) -> Result<Picture> {
    let around = around(tx, beside, now_ms)?;
    let snapshot = load_around(tx, query, beside, &around)?;
    let consumer = snapshot.ledger.consumer.clone();
    let narrow = query.narrow(now_ms);
    Ok(Picture {
        audit: rows::audit(tx, narrow, PANE_ROWS_MAX)?,
        ledger: rows::ledger(tx, &consumer, LedgerWhich::Pending, narrow, PANE_ROWS_MAX)?,
        compactions: rows::compactions(&snapshot),
        detail: match query.open {
            Some(row_id) => super::detail::detail_around(tx, row_id, &around)?,
            None => None,
        },
        snapshot,
    })
}

/// What is read once for all sessions.
pub(super) fn around(tx: &Tx<'_>, beside: &Beside, now_ms: i64) -> Result<Around> {
    let windows = meta::windows(tx)?.unwrap_or_default();
    let kin = query::kin(tx, now_ms.saturating_sub(windows.live_ms), now_ms)?;
    let news_from_ms = now_ms.saturating_sub(attention::BAD_END_MS);
    let observed = evidence::all(tx)?;
    let busy = busy(&observed);
    let mut around = Around {
        now_ms,
        as_of_ms: beside.as_of_ms,
        windows,
        damaged: query::damaged(tx)?,
        fresh_ends: query::unacknowledged_ends(tx, OPERATOR, news_from_ms)?,
        family: Family::default(),
        open_children: match busy.as_slice() {
            [] => HashSet::new(),
            busy => query::with_open_children(tx, busy)?,
        },
        observed,
        here: here(beside, now_ms),
        clock_stepped_ms: meta::clock_stepped_ms(tx)?,
        unseen: store_sessions::unseen(tx)?,
    };
    let mut ended = Ok(HashSet::new());
    around.family = Family::new(&kin, |roots| {
        ended = query::ended_among(tx, roots);
        let gone = roots.iter().copied().filter(|root| around.is_gone(*root));
        gone.chain(ended.iter().flatten().copied()).collect()
    });
    ended?;
    Ok(around)
}

/// Sessions of which a process of a registry says that it is busy.
fn busy(observed: &HashMap<i64, Vec<Evidence>>) -> Vec<i64> {
    let is_busy = |row: &Evidence| row.source == "registry" && row.state.as_deref() == Some("busy");
    let busy = observed.iter().filter(|(_, rows)| rows.iter().any(is_busy));
    busy.map(|(id, _)| *id).collect()
}

/// Where this process stands, while the last look at processes is not long ago.
fn here(beside: &Beside, now_ms: i64) -> Option<Here> {
    let looked_ms = beside.probed_ms?;
    let fresh = now_ms.saturating_sub(looked_ms) <= BELIEVED_MS;
    beside.scope.as_deref().filter(|_| fresh).and_then(Here::parse)
}

/// Sessions from rows; rows that are no session yet fall out.
pub(super) fn sessions(
    tx: &Tx<'_>,
    rows: Vec<SessionRow>,
    around: &Around,
) -> Result<Vec<Session>> {
    let nested = rows.iter().filter(|row| row.nested);
    let mut roots: Vec<i64> = nested.filter_map(|row| around.family.root(row.id)).collect();
    roots.sort_unstable();
    roots.dedup();
    let ended = match roots.as_slice() {
        [] => HashSet::new(),
        roots => query::ended_among(tx, roots)?,
    };
    Ok(rows.into_iter().filter_map(|row| session(row, around, &ended)).collect())
}

/// The listed sessions in display order, what is hidden, and how many rows cannot be read.
fn listed(tx: &Tx<'_>, query: &Query, around: &Around) -> Result<(Vec<Session>, Hidden, u64)> {
    let orphans = around.family.orphans();
    let narrow = query.narrow(around.now_ms);
    let mut hidden = Hidden { sessions: 0, filters: query.filters() };
    // With its parent missing a sub-agent stands on the top level.
    let is_top = |nested: bool, id: i64| !nested || orphans.binary_search(&id).is_ok();
    let roots = if query.children { around.family.all_roots() } else { Vec::new() };
    let ended = query::ended_among(tx, &roots)?;
    let mut sessions = Vec::new();
    let mut take = |row: SessionRow| {
        // Before the facts are looked at: of a long history most rows go here.
        let newest = row.last_activity_ms.max(row.child_activity_ms).or(row.own_clock_ms);
        let is_top = is_top(row.nested, row.id);
        if !filter::listed(narrow, row.agent.word(), newest) {
            hidden.sessions += u64::from((row.nested || row.verdict.is_some()) && is_top);
            return;
        }
        let Some(session) = session(row, around, &ended) else { return };
        if filter::listed(narrow, session.agent, session.last_activity_ms) {
            sessions.push(session);
        } else {
            hidden.sessions += u64::from(is_top);
        }
    };
    let mut unreadable = query::each_session(tx, Wanted::Top, &mut take)?;
    if query.children {
        unreadable += query::each_session(tx, Wanted::Nested, &mut take)?;
    } else if !orphans.is_empty() {
        unreadable += query::each_session(tx, Wanted::Ids(&orphans), &mut take)?;
    }
    sort::sort(&mut sessions);
    Ok((sessions, hidden, unreadable))
}

/// What the process says of its mirror, with what the store says of the files.
fn mirror(tx: &Tx<'_>, beside: &Beside) -> Result<Mirror> {
    let totals = query::file_totals(tx)?;
    let mut mirror = Mirror {
        files: totals.files,
        bytes: totals.bytes,
        skipped_lines: totals.skipped_lines,
        ..beside.mirror.clone()
    };
    for finding in query::findings(tx)? {
        if !mirror.warnings.contains(&finding) {
            mirror.warnings.push(finding);
        }
    }
    Ok(mirror)
}

fn audit_counts(tx: &Tx<'_>) -> Result<AuditCounts> {
    let totals = ledger::audit_totals(tx)?;
    Ok(AuditCounts {
        overrides: totals.overrides,
        overrides_after_exit: totals.overrides_after_exit,
        rejections: totals.rejections,
        migrations: totals.migrations,
    })
}
