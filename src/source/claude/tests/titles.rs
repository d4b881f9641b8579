//! Titles, to whom they are addressed, and which kinds there are.

use rstest::rstest;
use serde_json::json;

use super::super::super::{SessionKey, TitleKind};
use super::*;

/// Titles for the file's own session.
fn own_titles(read: &Read) -> Vec<(TitleKind, &str)> {
    let own = read.titles().into_iter().filter(|title| title.to.is_none());
    own.map(|title| (title.kind, title.text.as_str())).collect()
}

#[test]
fn titles_are_addressed_by_their_own_session_id() {
    let lines = [
        user(1, "x"),
        metadata("custom-title", json!({"customTitle": "Mine"})),
        metadata("custom-title", json!({"customTitle": "Theirs", "sessionId": "s-2"})),
        metadata("ai-title", json!({"aiTitle": "Generated"})),
        metadata("agent-name", json!({"agentName": "Agent"})),
        json!({"type": "ai-title", "aiTitle": "Nobody's, so ours"}),
    ];
    let read = read_lines(&lines);
    assert_eq!(
        own_titles(&read),
        [
            (TitleKind::Custom, "Mine"),
            (TitleKind::Generated, "Generated"),
            (TitleKind::AgentName, "Agent"),
            (TitleKind::Generated, "Nobody's, so ours"),
        ]
    );
    let theirs = read.titles().into_iter().find(|title| title.to.is_some()).unwrap();
    assert_eq!((theirs.to.clone(), &*theirs.text), (Some(SessionKey::top("s-2")), "Theirs"));
}

#[test]
fn a_title_carries_the_newest_stamp_before_it_so_that_a_later_one_wins() {
    let title = |text: &str| metadata("custom-title", json!({ "customTitle": text }));
    let read =
        read_lines(&[title("a"), user(10, "x"), title("b"), user(4, "late flush"), title("c")]);
    let stamps: Vec<_> = super::super::super::facts::titles(&read.records)
        .map(|(record, title)| (title.text.as_str(), record.at_ms))
        .collect();
    assert_eq!(stamps, [("a", None), ("b", Some(ms(10))), ("c", Some(ms(10)))]);
}

#[rstest]
#[case::empty(json!(""))]
#[case::a_number(json!(7))]
#[case::null(Json::Null)]
fn a_title_without_a_text_is_none(#[case] text: Json) {
    let read = read_lines(&[user(1, "x"), metadata("custom-title", json!({"customTitle": text}))]);
    assert!(read.titles().is_empty());
}

fn summary(text: &str, leaf: &str) -> Json {
    json!({"type": "summary", "summary": text, "leafUuid": leaf})
}

#[test]
fn a_summary_names_the_session_its_leaf_is_in_wherever_it_stands() {
    let lines = [
        summary("Another session's", "elsewhere"),
        summary("Before its leaf", "r-1"),
        user(1, "x"),
        says(2, "m1", "y"),
        summary("After its leaf", "r-2"),
    ];
    let read = read_lines(&lines);
    let want = [(TitleKind::Summary, "Before its leaf"), (TitleKind::Summary, "After its leaf")];
    assert_eq!(own_titles(&read), want);
}

#[test]
fn a_summary_whose_leaf_is_a_side_chains_record_is_not_ours() {
    let side = with(user(1, "x"), json!({"isSidechain": true, "agentId": "a1"}));
    assert!(read_lines(&[summary("Theirs", "r-1"), side]).titles().is_empty());
}

#[test]
fn summaries_and_leaves_are_remembered_up_to_a_bound() {
    let mut lines: Vec<Json> = (0..40).map(|at| summary("s", &format!("r-{at}"))).collect();
    lines.extend((0..40).map(|second| user(second, "x")));
    assert_eq!(own_titles(&read_lines(&lines)).len(), 32);

    let mut lines: Vec<Json> = (0..100).map(|second| user(second, "x")).collect();
    lines.extend([summary("too far back", "r-3"), summary("near", "r-90")]);
    assert_eq!(own_titles(&read_lines(&lines)), [(TitleKind::Summary, "near")]);
}

#[rstest]
#[case::with_arguments(
    "<command-name>/fix</command-name>\n<command-args>the bug</command-args>",
    Some("/fix the bug")
)]
#[case::without("<command-name>/init</command-name><command-args></command-args>", Some("/init"))]
#[case::no_slash("<command-name>init</command-name>", Some("/init"))]
#[case::spoken("<command-message>review is running…</command-message>", Some("/review"))]
#[case::message_first(
    "<command-message>x</command-message>\n<command-name>/y</command-name>",
    Some("/y")
)]
#[case::nameless("<command-name></command-name>", None)]
#[case::unclosed("<command-name>/x", Some("/x"))]
fn the_first_command_is_a_title_as_typed(#[case] text: &str, #[case] want: Option<&str>) {
    let read = read_lines(&[user(1, text), command(2, "later")]);
    let want = want.unwrap_or("/later");
    assert_eq!(own_titles(&read), [(TitleKind::FirstCommand, want)]);
}

#[test]
fn a_command_in_a_system_record_is_a_command() {
    let content = json!({"content": "<command-name>/model</command-name>"});
    let read = read_lines(&[with(system(1, "local_command"), content)]);
    assert_eq!(own_titles(&read), [(TitleKind::FirstCommand, "/model")]);
}
