//! Why a session has its status, rule by rule: the very rules that decide, asked again.

use super::session::Around;
use super::{Session, Tried};
use crate::lifecycle::decide::{self, Known, explain};
use crate::lifecycle::known::{Process, known};
use crate::store::{Result, Tx, sessions};

/// Every rule tried at the snapshot's moment, in order; none for a row without a clock.
pub(super) fn tried(tx: &Tx<'_>, session: &Session, around: &Around) -> Result<Vec<Tried>> {
    let Some(known) = known_of(tx, session, around)? else { return Ok(Vec::new()) };
    Ok(explain(&known, around.windows, around.now_ms).into_iter().map(shown).collect())
}

/// What is known of a session; of a sub-agent its own last activity alone.
fn known_of(tx: &Tx<'_>, session: &Session, around: &Around) -> Result<Option<Known>> {
    if session.status_since_ms.is_none() {
        return Ok(session.last_activity_ms.map(Known::silent_since));
    }
    let Some(row) = sessions::load(tx, session.row_id)? else { return Ok(None) };
    let observed = around.observed(session.row_id);
    let process = Process { holder: around.holder(session.row_id), working_ms: None };
    Ok(known(&row, observed, process, around.now_ms))
}

fn shown(tried: decide::Tried) -> Tried {
    Tried {
        rule: tried.rule.word().to_owned(),
        test: tried.test,
        held: tried.held,
        decided: tried.decided,
        basis: tried.basis.word(),
        evidence: tried.evidence,
    }
}
