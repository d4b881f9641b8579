//! Transcripts, sub-agents old and new, inline side chains, sidecars.

use rstest::rstest;
use serde_json::json;

use super::super::super::{Kind, Of, Place, SessionKey, TitleKind};
use super::*;

fn sub_agent(folder: Option<&str>) -> Hint {
    Hint {
        place: Place::SubAgent,
        stem: "agent-a1b2".to_owned(),
        folder: folder.map(str::to_owned),
        named_ms: None,
    }
}

fn side(line: Json) -> Json {
    with(line, json!({"isSidechain": true, "agentId": "a1b2"}))
}

#[test]
fn lines_count_to_the_session_of_the_stem_whatever_their_session_id_says() {
    let copied = with(user(1, "from the old session"), json!({"sessionId": "s-0"}));
    let read = read_lines(&[copied, user(2, "go on")]);
    assert_eq!(read.key(), SessionKey::top(SESSION));
    assert_eq!(read.own().prompts.primary, 2);
}

#[test]
fn a_sub_agent_of_the_new_layout_belongs_to_its_folder() {
    let lines = [side(user(1, "Survey")), side(says(2, "m1", "Done."))];
    let read = read_as(&sub_agent(Some("s-9")), &lines);
    assert_eq!(read.key(), SessionKey::child("a1b2", "s-9"));
    assert_eq!(read.own().kind, Some(Kind::SubAgent));
    assert_eq!((read.own().prompts.primary, read.own().answers.primary), (1, 1));
}

#[test]
fn a_sub_agent_of_the_old_layout_says_nothing_until_a_line_names_its_parent() {
    let mut nameless = side(user(1, "lost"));
    nameless.as_object_mut().unwrap().remove("sessionId");
    let read = read_as(&sub_agent(None), std::slice::from_ref(&nameless));
    assert_eq!((read.state.key(), read.records.len()), (None, 0));

    let lines = [nameless, metadata("mode", json!({})), side(user(2, "Survey"))];
    let read = read_as(&sub_agent(None), &lines);
    assert_eq!(read.key(), SessionKey::child("a1b2", SESSION));
    assert_eq!(read.own().prompts.primary, 1);
}

#[test]
fn a_sub_agents_first_prompt_is_its_task_whoever_gave_it() {
    let inside = |second, text: &str| {
        side(with(user(second, text), json!({"origin": {"kind": "coordinator"}})))
    };
    let read = read_as(&sub_agent(Some("s-9")), &[inside(1, "Survey"), inside(2, "hurry")]);
    assert_eq!(read.own().prompts.primary, 1);
    assert_eq!(read.own().first_prompt.as_ref().unwrap().text, "Survey");
}

#[test]
fn a_sub_agents_file_has_no_say_in_its_parents_title_nor_end() {
    let lines = [
        side(user(1, "Survey")),
        metadata("ai-title", json!({"aiTitle": "Parent's"})),
        metadata("summary", json!({"summary": "Parent's", "leafUuid": "r-1"})),
        metadata("last-prompt", json!({})),
        metadata("cost-state", json!({"startTime": 1, "totalDuration": 2})),
    ];
    let read = read_as(&sub_agent(Some("s-9")), &lines);
    assert!(read.titles().is_empty());
    assert_eq!((read.own().end.clone(), read.own().trailer), (None, false));
}

#[rstest]
#[case::description(Place::AgentMeta, "agent-a1.meta", Some("s-1"), json!({"description": "Look"}),
    Some((TitleKind::Description, SessionKey::child("a1", "s-1"), "Look")))]
#[case::without(Place::AgentMeta, "agent-a1.meta", Some("s-1"), json!({"agentType": "x"}), None)]
#[case::of_nobody(Place::AgentMeta, "agent-a1.meta", None, json!({"description": "Look"}), None)]
#[case::renamed(Place::CustomTitle, "custom-title", Some("s-1"), json!({"customTitle": "Mine"}),
    Some((TitleKind::Custom, SessionKey::top("s-1"), "Mine")))]
#[case::no_text(Place::CustomTitle, "custom-title", Some("s-1"), json!({"customTitle": 7}), None)]
fn a_document_names_somebody_else_and_is_nobodys_transcript(
    #[case] place: Place,
    #[case] stem: &str,
    #[case] folder: Option<&str>,
    #[case] document: Json,
    #[case] want: Option<(TitleKind, SessionKey, &str)>,
) {
    let folder = folder.map(str::to_owned);
    let hint = Hint { place, stem: stem.to_owned(), folder, named_ms: None };
    let read = read_as(&hint, &[document]);
    let got = read.titles();
    let got = got.first().map(|title| (title.kind, title.to.clone().unwrap(), &*title.text));
    assert_eq!(got, want);
    assert_eq!(read.state.key(), None);
}

#[test]
fn an_inline_side_chain_with_an_agent_is_that_agents() {
    let lines = [
        user(1, "Do it"),
        calls(2, "m1", "toolu_1", "Task"),
        side(user(3, "Survey")),
        side(says(4, "m2", "Found.")),
    ];
    let read = read_lines(&lines);
    let child = &read.facts[&Of::Inline("a1b2".to_owned())];
    assert_eq!((child.prompts.primary, child.answers.primary), (1, 1));
    assert_eq!((child.kind, child.started_ms), (Some(Kind::SubAgent), Some(ms(3))));
    assert_eq!(child.last_activity_ms, Some(ms(4)));
    assert_eq!(child.model.as_deref(), Some("claude-opus-5"));
    let own = read.own();
    assert_eq!((own.prompts.primary, own.answers.primary), (1, 1));
    assert_eq!(own.turn, super::super::super::Turn::Open);
    assert_eq!(own.last_activity_ms, Some(ms(2)));
}

#[test]
fn an_inline_side_chain_that_names_nobody_only_moves_the_clock() {
    let stray = |line| with(line, json!({"isSidechain": true}));
    let lines = [
        user(1, "Do it"),
        says(2, "m1", "Done."),
        stray(user(3, "Survey")),
        stray(says(4, "m2", "Found.")),
    ];
    let read = read_lines(&lines);
    let own = read.own();
    assert_eq!((own.prompts.primary, own.answers.primary), (1, 1));
    assert_eq!(own.last_activity_ms, Some(ms(4)));
    assert_eq!(read.facts.len(), 1);
}

#[test]
fn a_session_starts_with_its_first_stamped_conversation_line() {
    let mut unstamped = user(2, "x");
    unstamped.as_object_mut().unwrap().remove("timestamp");
    let lines = [
        with(metadata("queue-operation", json!({})), json!({"timestamp": stamp(1)})),
        unstamped,
        with(record("attachment", 3), json!({"attachment": {"type": "date"}})),
        user(4, "y"),
    ];
    assert_eq!(read_lines(&lines).own().started_ms, Some(ms(3)));
}

#[rstest]
#[case::human(json!({}), Kind::Main)]
#[case::program(json!({"entrypoint": "sdk-py"}), Kind::Sdk)]
#[case::headless(json!({"entrypoint": "sdk-cli"}), Kind::Sdk)]
#[case::background(json!({"sessionKind": "bg", "entrypoint": "sdk-cli"}), Kind::Background)]
#[case::teammate(json!({"teamName": "session-12345678", "sessionKind": "bg"}), Kind::Team)]
#[case::fork(json!({"forkedFrom": {"sessionId": "s-0"}, "teamName": "t"}), Kind::Fork)]
#[case::fork_of_itself(json!({"forkedFrom": {"sessionId": "s-1"}}), Kind::Main)]
#[case::nulls(json!({"teamName": null, "sessionKind": null, "forkedFrom": null}), Kind::Main)]
fn the_kind_is_the_first_that_fits(#[case] around: Json, #[case] want: Kind) {
    let read = read_lines(&[with(user(1, "x"), around)]);
    assert_eq!(read.own().kind, Some(want));
    let source = (want == Kind::Fork).then(|| "s-0".to_owned());
    assert_eq!(read.own().fork_of, source);
}

#[test]
fn the_first_directory_and_the_newest_names_count() {
    let moved = json!({"cwd": "/v", "gitBranch": "dev", "version": "2.1.271"});
    let empty = json!({"cwd": "", "gitBranch": "", "version": null});
    let lines = [
        metadata("mode", json!({"cwd": "/not/yet"})),
        user(1, "x"),
        with(says(2, "m1", "y"), moved),
        with(filler(3), empty),
    ];
    let own = read_lines(&lines).own().clone();
    assert_eq!(own.cwd.as_deref(), Some("/w"));
    assert_eq!(own.branch.as_deref(), Some("dev"));
    assert_eq!(own.version.as_deref(), Some("2.1.271"));
    assert_eq!(own.model.as_deref(), Some("claude-opus-5"));
}

#[test]
fn surroundings_are_said_when_they_change_and_not_with_every_line() {
    let lines: Vec<Json> = (0..50).map(|second| user(second, "x")).collect();
    let read = read_lines(&lines);
    let around = read.records.iter().filter(|record| {
        matches!(record.what, What::Cwd(_) | What::Branch(_) | What::Version(_) | What::Kind(_))
    });
    assert_eq!(around.count(), 4);
}
