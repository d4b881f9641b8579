//! From what a human types to the session that is meant.
//!
//! An id may be given as shown (`agent:native`, `agent:parent/native`), without its agent, and
//! shortened while it is unambiguous. A whole id beats a beginning, and a session of the top level
//! beats a sub-agent, which most lists do not show.

use super::session::id;
use crate::store::query::{self, IdRow};
use crate::store::{Result, Tx};

/// What an id stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// This row.
    One(i64),
    /// Nothing.
    None,
    /// Several: their whole ids.
    Many(Vec<String>),
}

/// The session meant by `typed`; of several hosts' one id that of `host`.
pub fn resolve(tx: &Tx<'_>, host: &str, typed: &str) -> Result<Resolved> {
    Ok(choose(&query::ids(tx)?, host, typed.trim()))
}

fn choose(rows: &[IdRow], host: &str, typed: &str) -> Resolved {
    if typed.is_empty() {
        return Resolved::None;
    }
    let whole = |row: &IdRow| {
        let short = id(&row.agent, None, &row.native_id);
        row.native_id == typed
            || short == typed
            || row.parent.as_deref().is_some_and(|parent| {
                let tail = format!("{parent}/{}", row.native_id);
                tail == typed || id(&row.agent, None, &tail) == typed
            })
    };
    let begin = |row: &IdRow| begins(row, typed);
    for wanted in [&whole as &dyn Fn(&IdRow) -> bool, &begin] {
        for nested in [false, true] {
            let mut found: Vec<&IdRow> =
                rows.iter().filter(|row| row.nested == nested && wanted(row)).collect();
            if found.len() > 1 && found.iter().any(|row| row.host == host) {
                found.retain(|row| row.host == host);
            }
            match found.as_slice() {
                [] => {}
                [one] => return Resolved::One(one.id),
                many => {
                    let name = |row: &&IdRow| id(&row.agent, row.parent.as_deref(), &row.native_id);
                    return Resolved::Many(many.iter().map(name).collect());
                }
            }
        }
    }
    Resolved::None
}

/// Whether an id begins as typed; with a slash, each part of it may be shortened.
fn begins(row: &IdRow, typed: &str) -> bool {
    let rest = match typed.split_once(':') {
        Some((agent, rest)) if agent == row.agent => rest,
        // dsh's ids may hold a colon themselves.
        Some(_) | None => typed,
    };
    match rest.split_once('/') {
        Some((parent, native)) if row.parent.is_some() => {
            starts(row.parent.as_deref().unwrap_or_default(), parent)
                && starts(&row.native_id, native)
        }
        Some(_) | None => starts(&row.native_id, rest),
    }
}

/// dsh's ids all begin with the same word, which nobody types.
fn starts(native: &str, typed: &str) -> bool {
    native.starts_with(typed)
        || native.strip_prefix("session-").is_some_and(|bare| bare.starts_with(typed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn row(id: i64, agent: &str, native: &str, parent: Option<&str>) -> IdRow {
        IdRow {
            id,
            agent: agent.to_owned(),
            native_id: native.to_owned(),
            parent: parent.map(str::to_owned),
            nested: parent.is_some(),
            host: "h".to_owned(),
        }
    }

    #[rstest]
    #[case::whole("abc1", Resolved::One(1))]
    #[case::whole_with_agent("claude:abc1", Resolved::One(1))]
    #[case::whole_beats_longer("abc", Resolved::One(2))]
    #[case::shortened("abc1", Resolved::One(1))]
    #[case::with_another_agent("codex:abc", Resolved::None)]
    #[case::shortened_with_agent("codex:0", Resolved::One(3))]
    #[case::dsh_without_its_word("77", Resolved::One(4))]
    #[case::sub_agent("abc1/a9", Resolved::One(5))]
    #[case::sub_agent_by_its_whole_id("claude:abc1/a9f", Resolved::One(5))]
    #[case::sub_agent_alone("a9", Resolved::One(5))]
    #[case::top_level_beats_sub_agent("0", Resolved::One(3))]
    #[case::both_parts_shortened("claude:ab/0", Resolved::One(6))]
    #[case::ambiguous("ab", Resolved::Many(vec!["claude:abc1".into(), "claude:abc".into()]))]
    #[case::nothing("x", Resolved::None)]
    #[case::empty(" ", Resolved::None)]
    fn what_is_meant(#[case] typed: &str, #[case] want: Resolved) {
        let rows = [
            row(1, "claude", "abc1", None),
            row(2, "claude", "abc", None),
            row(3, "codex", "01a2", None),
            row(4, "dsh", "session-77", None),
            row(5, "claude", "a9f", Some("abc1")),
            row(6, "claude", "0dd", Some("abc1")),
        ];
        assert_eq!(choose(&rows, "h", typed.trim()), want);
    }

    #[test]
    fn of_two_hosts_one_id_our_own_is_meant() {
        let there = IdRow { host: "there".to_owned(), ..row(7, "claude", "abc1", None) };
        let rows = [there, row(1, "claude", "abc1", None)];
        assert_eq!(choose(&rows, "h", "abc1"), Resolved::One(1));
        assert_eq!(choose(&rows, "there", "abc"), Resolved::One(7));
        assert!(matches!(choose(&rows, "elsewhere", "abc1"), Resolved::Many(_)));
    }
}
