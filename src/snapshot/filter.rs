//! Which sessions are listed. A display filter: it changes neither what is mirrored nor a status.

use super::{Query, Session};

/// Whether a session of this agent, with this newest activity, is listed.
///
/// One without any stamp is not active since anything.
pub fn listed(query: &Query, agent: &str, newest_ms: Option<i64>) -> bool {
    query.agent.as_deref().is_none_or(|only| only == agent)
        && query.since_ms.is_none_or(|since| newest_ms.is_some_and(|newest| newest >= since))
}

/// Keeps what the query lists.
pub fn keep_listed(sessions: &mut Vec<Session>, query: &Query) {
    sessions.retain(|session| listed(query, session.agent, session.last_activity_ms));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_inclusive_and_both_filters_must_agree() {
        let query =
            Query { agent: Some("codex".to_owned()), since_ms: Some(100), ..Query::default() };
        assert!(listed(&query, "codex", Some(100)));
        assert!(!listed(&query, "codex", Some(99)));
        assert!(!listed(&query, "codex", None));
        assert!(!listed(&query, "claude", Some(100)));
        assert!(listed(&Query::default(), "claude", None));
    }
}
