//! Whose word a session's end is, and who has it open.

use super::*;
use crate::lifecycle::{Basis, Ending, Status};

/// The child ran from the 100th second to the 200th.
const FROM: i64 = 100_000;
const TO: i64 = 200_000;

fn child() -> Span {
    Span { subject: Some("7:70".to_owned()), from_ms: FROM, to_ms: TO }
}

/// A session that was last active in the middle of that, completed by that rule.
fn session(rule: Rule) -> SessionRow {
    SessionRow {
        id: 1,
        agent: "claude".to_owned(),
        native_id: "a".to_owned(),
        origin: "mirror".to_owned(),
        epoch_ms: Some(0),
        dirty: false,
        version: 1,
        own_clock_ms: Some(150_000),
        first_activity_ms: Some(110_000),
        last_activity_ms: Some(150_000),
        child_activity_ms: None,
        sign_of_life_ms: None,
        anchored_ms: None,
        status: Some(Status::Completed),
        status_since_ms: Some(TO),
        basis: Some(Basis::Observed),
        rule: Some(rule.word().to_owned()),
        ended_ms: Some(TO),
        deadline_ms: None,
        marker: None,
        reread_ms: None,
        started_ms: None,
        facts_unreadable: false,
    }
}

/// An observation of a process that is over: source, word, subject, its start, last seen.
fn gone(source: &str, says: &str, subject: &str, started_ms: i64, last_ms: i64) -> Evidence {
    Evidence {
        source: source.to_owned(),
        says: says.to_owned(),
        subject: subject.to_owned(),
        started_ms: Some(started_ms),
        since_ms: last_ms + 1_000,
        first_ms: started_ms,
        last_ms,
        ended_ms: Some(last_ms),
        ..Evidence::default()
    }
}

fn whose(row: &SessionRow, seen: &[Evidence]) -> EndedBy {
    ended_by(row, seen, &child())
}

#[test]
fn all_that_came_and_went_with_the_child_is_its_own_word() {
    let row = session(Rule::EndEvidence);
    let own = [
        gone("run", "exited", "7:70", FROM, TO),
        gone("lock", "gone", "7:70", FROM, TO - 500),
        gone("registry", "gone", "8:80", FROM + 10, TO - 1_900),
        gone("registry", "moved", "8:80", FROM + 10, TO - 100),
        Evidence { started_ms: None, ..gone("lock", "gone", "9:?", FROM, TO) },
        gone("hook", "SessionEnd", "SessionEnd", 0, TO - 10),
    ];
    for seen in &own {
        assert_eq!(whose(&row, std::slice::from_ref(seen)), EndedBy::OwnChild, "{seen:?}");
    }
    assert_eq!(whose(&row, &own), EndedBy::OwnChild);
}

#[test]
fn a_process_from_before_the_run_or_after_its_child_is_anothers_word() {
    let row = session(Rule::EndEvidence);
    let exited = gone("run", "exited", "7:70", FROM, TO);
    for other in [
        gone("registry", "gone", "8:80", FROM - 60_000, TO - 1_000),
        gone("lock", "gone", "8:80", FROM + 10, TO + 60_000),
        gone("hook", "SessionEnd", "SessionEnd", 0, TO + 60_000),
    ] {
        assert_eq!(whose(&row, &[exited.clone(), other]), EndedBy::Another);
    }
    // One that left long before the last activity proves nothing of this end.
    let earlier = gone("registry", "gone", "8:80", 10_000, 50_000);
    assert_eq!(whose(&row, &[exited, earlier]), EndedBy::OwnChild);
}

#[test]
fn a_marker_is_the_childs_if_the_session_was_active_in_its_time() {
    let marked = |own_clock_ms: i64, at_ms: Option<i64>| SessionRow {
        own_clock_ms: Some(own_clock_ms),
        last_activity_ms: Some(own_clock_ms),
        marker: Some((Ending::CostState, at_ms)),
        status_since_ms: Some(own_clock_ms),
        ..session(Rule::EndEvidence)
    };
    for (own_clock_ms, at_ms, expected) in [
        (150_000, Some(151_000), EndedBy::OwnChild),
        (150_000, None, EndedBy::OwnChild),
        // Of a later life the stamp is that of its last record.
        (150_000, Some(50_000), EndedBy::OwnChild),
        (50_000, Some(150_000), EndedBy::OwnChild),
        (50_000, Some(51_000), EndedBy::Another),
        (50_000, None, EndedBy::Another),
        (150_000, Some(TO + 60_000), EndedBy::Another),
        (TO + 60_000, None, EndedBy::Another),
    ] {
        let row = marked(own_clock_ms, at_ms);
        assert_eq!(whose(&row, &[]), expected, "{own_clock_ms} {at_ms:?}");
    }
}

#[test]
fn silence_is_nobodys_word_and_an_end_that_is_revoked_is_told_by_its_time() {
    assert_eq!(whose(&session(Rule::Silence), &[]), EndedBy::Another);
    let imported = SessionRow { rule: None, ..session(Rule::Silence) };
    assert_eq!(whose(&imported, &[]), EndedBy::Another);
    assert_eq!(whose(&session(Rule::EndEvidence), &[]), EndedBy::OwnChild);
    let before = SessionRow { status_since_ms: Some(50_000), ..session(Rule::EndEvidence) };
    assert_eq!(whose(&before, &[]), EndedBy::Another);
}

#[test]
fn a_live_process_is_another_if_it_was_there_before_the_run_or_is_there_after_its_child() {
    let row = session(Rule::EndEvidence);
    let there = |subject: &str, started_ms: i64| Evidence {
        ended_ms: None,
        says: "dedicated".to_owned(),
        ..gone("registry", "", subject, started_ms, TO - 1_000)
    };
    let holder = |seen: &Evidence, looked| {
        linked_row(&row, std::slice::from_ref(seen), &child(), looked).unwrap().holder
    };
    let (before, since) = (there("8:80", FROM - 60_000), there("8:80", FROM + 10));
    assert_eq!(holder(&before, Looked::Before), OtherHolder::Known);
    // It may be the child itself, or one below it, and gone by now.
    assert_eq!(holder(&since, Looked::Before), OtherHolder::NotKnown);
    assert_eq!(holder(&since, Looked::Since), OtherHolder::Known);
    assert_eq!(holder(&there("7:70", FROM), Looked::Since), OtherHolder::NotKnown);
    let suspect = Evidence { says: "suspect".to_owned(), ..before };
    assert_eq!(holder(&suspect, Looked::Since), OtherHolder::NotKnown);
}
