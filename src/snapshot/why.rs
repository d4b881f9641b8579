//! Why a session has its status, rule by rule: the very rules that decide, asked again.

use super::{Session, Tried};
use crate::lifecycle::Windows;
use crate::lifecycle::decide::{self, Known, explain};
use crate::lifecycle::known::{Process, known};
use crate::store::{Result, Tx, evidence, sessions};

/// Every rule tried at `now_ms`, in order; none for a row without a clock.
pub(super) fn tried(
    tx: &Tx<'_>,
    session: &Session,
    windows: Windows,
    now_ms: i64,
) -> Result<Vec<Tried>> {
    let Some(known) = known_of(tx, session)? else { return Ok(Vec::new()) };
    Ok(explain(&known, windows, now_ms).into_iter().map(shown).collect())
}

/// What is known of a session; of a sub-agent its own last activity alone.
fn known_of(tx: &Tx<'_>, session: &Session) -> Result<Option<Known>> {
    if session.status_since_ms.is_none() {
        return Ok(session.last_activity_ms.map(Known::silent_since));
    }
    let Some(row) = sessions::load(tx, session.row_id)? else { return Ok(None) };
    let observed = evidence::of_session(tx, session.row_id)?;
    Ok(known(&row, &observed, Process::default()))
}

fn shown(tried: decide::Tried) -> Tried {
    Tried {
        rule: tried.rule.word().to_owned(),
        test: tried.test,
        held: tried.held,
        decided: tried.decided,
        evidence: tried.evidence,
    }
}
