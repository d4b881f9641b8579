//! What a fork or a sub-agent took over from its parent is not its own.

use rstest::rstest;
use serde_json::json;

use super::super::super::Turn::Open;
use super::super::super::facts::Counts;
use super::super::super::{Kind, SessionKey, Tokens, Turn};
use super::{Tape, fork, own_id, rows, uuid7};

#[test]
fn a_replay_is_nobodys_activity_turn_message_title_or_token() {
    let read = fork().read();
    assert_eq!(read.key(), SessionKey::top(own_id()));
    let facts = read.own();
    assert_eq!(facts.kind, Some(Kind::Fork));
    assert_eq!(facts.fork_of, Some(uuid7(-1000, 9)));
    assert_eq!(facts.last_activity_ms, None);
    assert_eq!(facts.turn, Turn::None);
    assert_eq!(facts.prompts, Counts::default());
    assert_eq!(facts.answers, Counts::default());
    assert_eq!(facts.tool_calls, Counts::default());
    assert_eq!(facts.tokens, Tokens::default());
    assert_eq!(facts.compaction.count, 0);
    assert_eq!((facts.model.as_deref(), facts.branch.as_deref()), (None, Some("main")));
    assert!(rows(&read).is_empty());
}

#[test]
fn after_a_replay_tokens_count_from_the_replayed_total() {
    let mut tape = fork();
    tape.at(60).start(&uuid7(60, 3)).prompt("my own").answer("yes").tokens(3780, 300, 420);
    tape.complete(&uuid7(60, 3));
    let facts = tape.facts();
    assert_eq!(facts.first_prompt.as_ref().unwrap().text, "my own");
    assert_eq!((facts.prompts.chosen(), facts.answers.chosen()), (1, 1));
    assert_eq!(
        facts.tokens,
        Tokens { input: 980, cache_read: 100, cache_write: 0, output: 120 },
        "4200 - 3000 in all"
    );
}

#[rstest]
#[case::older(uuid7(-1, 1), false)]
#[case::equal(uuid7(0, 7), true)]
#[case::later(uuid7(1, 1), true)]
#[case::version_4("1a2b3c4d-0000-4000-8000-000000000000".to_owned(), true)]
#[case::number("3".to_owned(), true)]
fn a_turn_not_older_than_the_rollout_ends_the_replay(#[case] turn: String, #[case] own: bool) {
    let mut tape = Tape::new();
    tape.meta("another", &json!({})).start(&turn);
    assert_eq!(tape.facts().turn == Open, own);
}

#[test]
fn a_start_without_an_id_ends_the_replay() {
    let mut tape = Tape::new();
    tape.meta("another", &json!({})).event("turn_started", &json!({}));
    assert_eq!(tape.facts().turn, Open);
}

#[test]
fn an_ordinal_below_the_history_start_is_the_parents() {
    let mut tape = Tape { ordinal: Some(0), ..Tape::default() };
    tape.meta(
        &own_id(),
        &json!({"subagent_history_start_ordinal": 5,
            "source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}}),
    );
    tape.meta("p", &json!({})).prompt("the parent's").tokens(1000, 0, 100);
    tape.at(7).prompt("my task").tokens(1500, 0, 200);
    let facts = tape.facts();
    assert_eq!(facts.prompts.chosen(), 1);
    assert_eq!(facts.first_prompt.unwrap().text, "my task");
    assert_eq!(facts.tokens.total(), 600);
}

#[test]
fn a_fork_whose_first_line_is_torn_keeps_the_id_in_its_name() {
    let mut tape = fork();
    tape.lines[0].truncate(80);
    let read = tape.read();
    assert_eq!(read.key(), SessionKey::top(own_id()));
    assert_eq!(read.own().prompts, Counts::default());
    assert_eq!(read.flaws.skipped, 1);
}
