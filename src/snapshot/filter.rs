//! Which sessions are listed. A display filter: it changes neither what is mirrored nor a status.

use super::{Narrow, Query, age};

impl Query {
    /// What of the store's rows it asks for, at this moment.
    pub fn narrow(&self, now_ms: i64) -> Narrow<'_> {
        let since_ms = self.within_ms.map(|within| now_ms.saturating_sub(within));
        Narrow { agent: self.agent.as_deref(), since_ms }
    }

    /// The filters as they are typed; empty where there are none.
    pub fn filters(&self) -> String {
        let agent = self.agent.as_ref().map(|agent| format!("--agent {agent}"));
        let since =
            self.within_ms.map(|within| format!("--since {}", age::span(within).replace(' ', "")));
        [agent, since].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// Whether a session of this agent, with this newest activity, is listed.
///
/// One without any stamp is not active since anything.
pub fn listed(narrow: Narrow<'_>, agent: &str, newest_ms: Option<i64>) -> bool {
    narrow.agent.is_none_or(|only| only == agent)
        && narrow.since_ms.is_none_or(|since| newest_ms.is_some_and(|newest| newest >= since))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_inclusive_and_both_filters_must_agree() {
        let query =
            Query { agent: Some("codex".to_owned()), within_ms: Some(100), ..Query::default() };
        let narrow = query.narrow(200);
        assert!(listed(narrow, "codex", Some(100)));
        assert!(!listed(narrow, "codex", Some(99)));
        assert!(!listed(narrow, "codex", None));
        assert!(!listed(narrow, "claude", Some(100)));
        assert!(listed(Query::default().narrow(200), "claude", None));
    }

    #[test]
    fn filters_are_said_as_they_are_typed() {
        let within_ms = Some(5_400_000);
        let query = Query { agent: Some("codex".to_owned()), within_ms, ..Query::default() };
        assert_eq!(query.filters(), "--agent codex --since 1h30m");
        assert_eq!(Query::default().filters(), "");
    }
}
