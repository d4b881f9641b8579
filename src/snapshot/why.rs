//! Why a session has its status, rule by rule.

use super::{Session, Tried};

/// Every rule tried, in order.
pub(super) fn tried(session: &Session) -> Vec<Tried> {
    vec![Tried {
        rule: session.reason.rule.clone(),
        test: session.reason.summary.clone(),
        held: true,
        decided: true,
        evidence: session.reason.evidence.clone(),
    }]
}
