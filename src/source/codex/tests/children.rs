//! Sub-agents of the second kind (0.171): what their task was, what they are called, and their end.

use rstest::rstest;
use serde_json::{Value as Json, json};

use super::super::super::Outcome::{self, Aborted, Completed};
use super::super::super::Turn::{Closed, Open};
use super::super::super::testing::Read;
use super::super::super::{MessageKind, Returned, SessionKey, Title, TitleKind, What};
use super::{Tape, own_id, rows, uuid7};

const PATH: &str = "/root/count_files";

/// A child that has copied its parent's records, and begins its own turn.
fn child() -> Tape {
    let parent = uuid7(-1000, 9);
    let mut tape = Tape::with_meta(&json!({"forked_from_id": parent, "source": {"subagent":
        {"thread_spawn": {"parent_thread_id": parent, "agent_path": PATH}}}}));
    tape.meta(&parent, &json!({})).at(1).start(&uuid7(-900, 2)).prompt("the parent's");
    tape.aborted(&uuid7(-900, 2)).at(2).start(&uuid7(2, 3));
    tape.line("inter_agent_communication_metadata", &json!({"trigger_turn": true}));
    tape
}

/// Mail between agents.
fn mail<'t>(tape: &'t mut Tape, to: &str, head: &str, payload: &str) -> &'t mut Tape {
    let text = format!("{head}Payload:\n{payload}");
    tape.item(&json!({"type": "agent_message", "id": format!("mail-{payload}-{head}"),
        "author": "/root", "recipient": to, "content": [{"type": "input_text", "text": text},
            {"type": "encrypted_content", "encrypted_content": "x"}]}))
}

const TASK: &str = "Message Type: NEW_TASK\nTask name: /root/count_files\nSender: /root\n";

#[rstest]
#[case::encrypted("", "/root/count_files")]
#[case::in_clear("count the files\n", "count the files")]
fn the_task_in_its_mail_is_a_sub_agents_prompt(#[case] payload: &str, #[case] want: &str) {
    let mut tape = child();
    mail(&mut tape, PATH, TASK, payload);
    let facts = tape.facts();
    assert_eq!((facts.prompts.chosen(), facts.turn), (1, Open));
    assert_eq!(facts.first_prompt.unwrap().text, want);
    tape.answer("17").complete(&uuid7(2, 3));
    assert_eq!((tape.facts().turn, tape.facts().last_turn), (Closed, Some(Completed)));
}

#[test]
fn a_task_without_a_head_is_the_first_mail_of_a_turn_that_nobody_else_asked_for() {
    let mut tape = child();
    let item = json!({"type": "agent_message", "author": "/root", "recipient": PATH,
        "content": [{"type": "input_text", "text": "count the files"}]});
    tape.item(&item).at(3).item(&item);
    assert_eq!(tape.facts().prompts.chosen(), 1);
}

#[test]
fn other_mail_is_a_note_and_so_is_every_mail_of_who_is_no_sub_agent() {
    let mut tape = child();
    mail(&mut tape, PATH, TASK, "count");
    mail(&mut tape, PATH, "Message Type: MESSAGE\nSender: /root\n", "hurry");
    mail(&mut tape, "/root", TASK, "for another");
    assert_eq!(tape.facts().prompts.chosen(), 1);
    let mut tape = Tape::new();
    tape.start("a");
    mail(&mut tape, "/root", TASK, "x");
    let read = tape.read();
    assert_eq!(read.own().prompts.chosen(), 0);
    assert_eq!(rows(&read)[0].0, MessageKind::Note);
}

/// The call that starts a sub-agent, and the program's word of it.
fn spawn<'t>(tape: &'t mut Tape, call: &str, arguments: &Json, thread: &str) -> &'t mut Tape {
    tape.item(&json!({"type": "function_call", "name": "spawn_agent", "call_id": call,
        "arguments": arguments.to_string()}));
    activity(tape, "started", call, thread)
}

fn activity<'t>(tape: &'t mut Tape, kind: &str, id: &str, thread: &str) -> &'t mut Tape {
    tape.done(&json!({"type": "SubAgentActivity", "id": id, "kind": kind,
        "agent_thread_id": thread, "agent_path": PATH}))
}

#[test]
fn the_parent_names_its_sub_agent_by_the_task_it_gave() {
    let mut tape = Tape::new();
    tape.start("a");
    spawn(&mut tape, "c-1", &json!({"message": "count the files", "task_name": "t"}), "t-1");
    spawn(&mut tape, "c-2", &json!({"task_name": "read_docs"}), "t-2");
    activity(&mut tape, "interacted", "c-9", "t-1");
    activity(&mut tape, "started", "c-unknown", "t-3");
    let read = tape.read();
    let title = |to: &str, text: &str| Title {
        kind: TitleKind::Description,
        to: Some(SessionKey::child(to, own_id())),
        text: text.to_owned(),
    };
    let want = [title("t-1", "count the files"), title("t-2", "read_docs"), title("t-3", PATH)];
    assert_eq!(read.titles(), want.iter().collect::<Vec<_>>());
}

fn ends(read: &Read) -> Vec<(&str, Outcome)> {
    let end = |what| match what {
        &What::Returned(Returned { ref to, outcome }) => {
            assert_eq!(to.parent, Some(own_id()));
            Some((to.native.as_str(), outcome))
        }
        _ => None,
    };
    read.records.iter().filter_map(|record| end(&record.what)).collect()
}

#[test]
fn the_parent_tells_the_end_of_its_sub_agent() {
    let mut tape = Tape::new();
    tape.start("a");
    for (kind, thread) in [
        ("started", "t-1"),
        ("interacted", "t-1"),
        ("completed", "t-1"),
        ("interrupted", "t-2"),
        ("of tomorrow", "t-3"),
    ] {
        activity(&mut tape, kind, "x", thread);
    }
    let read = tape.read();
    assert_eq!(ends(&read), [("t-1", Completed), ("t-2", Aborted)]);
    assert!(read.own().unknown.is_empty());
}
