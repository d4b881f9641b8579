//! How a run ends, by its child, by what ended it, and by its session.

use super::*;
use crate::lifecycle::consumers::{LinkedRow, OtherHolder};
use crate::store::runs::links::Linked;

fn row(status: Status, ended_by: EndedBy) -> LinkedRow {
    LinkedRow { status, holder: OtherHolder::NotKnown, ended_by }
}

fn linked(status: Option<Status>, last_word: Option<&str>) -> Session {
    let last_word = last_word.map(str::to_owned);
    let says = Linked { last_word, work: 3, ..Linked::default() };
    Session { says, row: status.map(|status| row(status, EndedBy::Another)) }
}

#[test]
fn what_ended_a_child_is_told_by_its_end_first_and_then_by_the_signal_before() {
    let cases = [
        (Ended::Exit(0), None, Cause::Itself),
        (Ended::Exit(0), Some(SIGINT), Cause::Interrupt),
        (Ended::Exit(1), None, Cause::Itself),
        (Ended::Exit(1), Some(SIGINT), Cause::Interrupt),
        (Ended::Exit(130), None, Cause::Interrupt),
        (Ended::Exit(143), Some(SIGINT), Cause::Terminate),
        (Ended::Signal(2), None, Cause::Interrupt),
        (Ended::Signal(15), None, Cause::Terminate),
        (Ended::Signal(1), None, Cause::User),
        (Ended::Signal(3), None, Cause::User),
        (Ended::Signal(9), None, Cause::Itself),
        (Ended::Signal(9), Some(SIGTERM), Cause::Terminate),
    ];
    for (ended, signal, cause) in cases {
        assert_eq!(Cause::of(ended, signal), cause, "{ended:?} {signal:?}");
    }
}

#[test]
fn a_good_end_is_completed_and_empty_only_when_its_session_did_nothing() {
    let end = |session: Option<&Session>| conclude(Ended::Exit(0), Cause::Itself, session);
    let completed = Conclusion::Over(Status::Completed, reason::RUN_COMPLETED);
    assert_eq!(end(None), completed);
    assert_eq!(end(Some(&linked(Some(Status::Idle), Some("rate_limit x")))), completed);
    let mut empty = linked(Some(Status::Idle), None);
    empty.says.work = 0;
    assert_eq!(end(Some(&empty)), Conclusion::Over(Status::CompletedEmpty, reason::RUN_COMPLETED));
}

#[test]
fn a_good_end_after_a_signal_is_broken_off_only_with_its_turn_open() {
    let cancelled = |code| Conclusion::Over(Status::Cancelled, code);
    for (signal, broken) in [
        (SIGTERM, cancelled(reason::RUN_SIGTERM)),
        (SIGINT, cancelled(reason::RUN_SIGINT)),
        (SIGHUP, Conclusion::Over(Status::Aborted, reason::RUN_ABORTED_USER)),
    ] {
        let cause = Cause::of(Ended::Exit(0), Some(signal));
        let completed = Conclusion::Over(Status::Completed, reason::RUN_COMPLETED);
        for (turn_open, expected) in [(true, broken), (false, completed)] {
            let mut session = linked(Some(Status::Running), None);
            session.says.turn_open = turn_open;
            assert_eq!(conclude(Ended::Exit(0), cause, Some(&session)), expected, "{turn_open}");
        }
        assert_eq!(conclude(Ended::Exit(0), cause, None), completed);
    }
}

#[test]
fn a_bad_end_is_a_failure_unless_the_provider_failed_in_a_session() {
    let failed = Conclusion::Over(Status::Failed, reason::RUN_EXIT_NONZERO);
    for ended in [Ended::Exit(1), Ended::Signal(9)] {
        let end = |session: Option<&Session>| conclude(ended, Cause::Itself, session);
        assert_eq!(end(None), failed);
        for status in [Status::Running, Status::Idle, Status::Completed] {
            assert_eq!(end(Some(&linked(Some(status), None))), failed);
            assert_eq!(end(Some(&linked(Some(status), Some("refusal no")))), failed);
        }
    }
}

#[test]
fn a_provider_error_takes_waits_or_fails() {
    let end =
        |status, word| conclude(Ended::Exit(1), Cause::Itself, Some(&linked(status, Some(word))));
    for status in [Status::Running, Status::Idle] {
        assert_eq!(end(Some(status), "rate_limit x"), Conclusion::Await);
    }
    let taken = Conclusion::Taken(Status::Completed, reason::RUN_COMPLETED);
    assert_eq!(end(Some(Status::Completed), "rate_limit x"), taken);
    let failed = |code| Conclusion::Over(Status::Failed, code);
    let mut own = linked(None, Some("rate_limit x"));
    own.row = Some(row(Status::Completed, EndedBy::OwnChild));
    let ended = conclude(Ended::Exit(1), Cause::Itself, Some(&own));
    assert_eq!(ended, failed(reason::RUN_PROVIDER_RETRYABLE));
    assert_eq!(end(None, "rate_limit x"), failed(reason::RUN_PROVIDER_RETRYABLE));
    assert_eq!(end(None, "billing_error x"), failed(reason::RUN_PROVIDER_NONRETRYABLE));
    let time_up = conclude(Ended::Exit(1), Cause::Deadline, None);
    assert_eq!(time_up, Conclusion::Over(Status::TimedOut, reason::RUN_DEADLINE));
}

#[test]
fn an_error_passes_by_its_status_or_else_by_its_code() {
    let cases = [
        ("rate_limit too many requests", Some(ProviderError::Retryable)),
        ("error API Error: 529 overloaded", Some(ProviderError::Retryable)),
        ("529 overloaded", Some(ProviderError::Retryable)),
        ("400 529 tokens too many", Some(ProviderError::NonRetryable)),
        ("PROVIDER_ERROR 503 upstream", Some(ProviderError::Retryable)),
        ("PROVIDER_ERROR 401 key", Some(ProviderError::NonRetryable)),
        ("rate_limit API Error: 400 odd", Some(ProviderError::NonRetryable)),
        ("usage_limit_exceeded", Some(ProviderError::NonRetryable)),
        ("error", Some(ProviderError::NonRetryable)),
        ("529 overloaded", Some(ProviderError::Retryable)),
        ("429 you've hit your limit", Some(ProviderError::Retryable)),
        ("401 unauthorized: Incorrect API key", Some(ProviderError::NonRetryable)),
        ("refusal", None),
        ("blocked the turn was blocked", None),
        ("error the turn ended without an answer", None),
    ];
    for (word, kind) in cases {
        assert_eq!(provider_error(word), kind, "{word}");
    }
}
