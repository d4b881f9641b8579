//! What goes on behind the conversation, and what says that it is over.

use rstest::rstest;

use super::super::super::{Outcome, Place, Record, SessionKey};
use super::*;

/// Shells and others at work after these lines.
fn behind(lines: &[Json]) -> (usize, u64) {
    let read = read_lines(lines);
    let background = &read.own().background;
    (background.shells.len(), background.others())
}

fn started(second: i64, result: impl Into<Json>) -> Json {
    let result: Json = result.into();
    with(super::result(second, "t"), json!({ "toolUseResult": result }))
}

fn shell(second: i64, id: &str) -> Json {
    started(second, json!({"stdout": "", "backgroundTaskId": id}))
}

fn agent(second: i64, id: &str) -> Json {
    started(second, json!({"isAsync": true, "status": "async_launched", "agentId": id}))
}

fn notification(id: &str) -> String {
    format!("<task-notification>\n<task-id>{id}</task-id>\n<status>completed</status>")
}

/// Who is said to have returned, how and when.
fn returned(read: &Read) -> Vec<(String, Outcome, Option<i64>)> {
    let said = |record: &Record| {
        let What::Returned(returned) = &record.what else { return None };
        let SessionKey { native, parent } = returned.to.clone();
        Some((format!("{}/{native}", parent?), returned.outcome, record.at_ms))
    };
    read.records.iter().filter_map(said).collect()
}

fn turn_over(second: i64, agents: Option<u64>) -> Json {
    let counts = agents.map_or(json!({}), |count| json!({"pendingBackgroundAgentCount": count}));
    with(system(second, "turn_duration"), counts)
}

#[test]
fn a_shell_in_the_background_outlives_its_turn() {
    let lines = [shell(1, "b1"), shell(1, "b1"), shell(2, "b2"), turn_over(3, None)];
    assert_eq!(behind(&lines), (2, 0));
}

#[test]
fn a_notification_ends_its_task_in_each_of_its_forms() {
    let forms = [
        user(4, notification("b1")),
        metadata("queue-operation", json!({"operation": "enqueue", "content": notification("b1")})),
        with(
            record("attachment", 4),
            json!({"attachment": {"type": "queued_command", "prompt": notification("b1")}}),
        ),
    ];
    for form in forms {
        assert_eq!(behind(&[shell(1, "b1"), shell(2, "b2"), form]), (1, 0));
    }
}

#[test]
fn what_was_stopped_or_read_to_its_end_is_over() {
    for over in [
        json!({"task_id": "b1", "task_type": "local_bash", "message": "stopped"}),
        json!({"shell_id": "b1", "message": "killed"}),
        json!({"shellId": "b1", "status": "completed", "stdout": ""}),
    ] {
        assert_eq!(behind(&[shell(1, "b1"), started(2, over)]), (0, 0));
    }
    let still = json!({"shellId": "b1", "status": "running", "stdout": ""});
    assert_eq!(behind(&[shell(1, "b1"), started(2, still)]), (1, 0));
}

/// Shells, agents, monitors and timers at second `at`.
fn amounts(lines: &[Json], at: i64) -> [u64; 4] {
    let all = read_lines(lines).own().background.amounts(ms(at));
    [all.shells, all.agents, all.monitors, all.timers]
}

#[test]
fn a_monitor_is_armed_until_it_is_over_or_its_time_is_up() {
    let armed = json!({"taskId": "m2", "timeoutMs": 60_000, "persistent": false});
    let lines = [started(1, armed), turn_over(2, None)];
    assert_eq!(amounts(&lines, 61), [0, 0, 1, 0]);
    assert_eq!(amounts(&lines, 62), [0; 4]);
    let event = "<task-notification>\n<task-id>m2</task-id>\n<event>a line</event>";
    let told = [lines.to_vec(), vec![user(3, event)]].concat();
    assert_eq!(amounts(&told, 4), [0, 0, 1, 0], "an event is no end");
    let over = [lines.to_vec(), vec![user(3, notification("m2"))]].concat();
    assert_eq!(amounts(&over, 4), [0; 4]);
    let stopped = json!({"task_id": "m2", "task_type": "monitor", "message": "stopped"});
    assert_eq!(amounts(&[lines.to_vec(), vec![started(3, stopped)]].concat(), 4), [0; 4]);
    let for_good = json!({"taskId": "m2", "timeoutMs": 60_000, "persistent": true});
    assert_eq!(amounts(&[started(1, for_good)], 90_000), [0, 0, 1, 0]);
}

#[test]
fn a_session_wakes_itself_at_the_last_moment_named() {
    let wakes = |second: i64, at: i64| {
        started(second, json!({"scheduledFor": ms(at), "clampedDelaySeconds": 60}))
    };
    assert_eq!(amounts(&[wakes(1, 61)], 61), [0, 0, 0, 1]);
    assert_eq!(amounts(&[wakes(1, 61)], 62), [0; 4]);
    assert_eq!(amounts(&[wakes(1, 61), wakes(2, 90)], 70), [0, 0, 0, 1]);
    let stopped = json!({"stopped": true, "cancelledWakeups": 1});
    assert_eq!(amounts(&[wakes(1, 61), started(2, stopped)], 3), [0; 4]);
}

#[test]
fn a_timer_is_set_until_it_is_deleted_or_went_off_for_good() {
    let set = |second: i64, id: &str, recurring: bool| {
        started(
            second,
            json!({"id": id, "humanSchedule": "Every 2 minutes",
            "recurring": recurring, "durable": false}),
        )
    };
    let lines = [set(1, "c1", false), set(2, "c2", true), set(2, "c2", true)];
    assert_eq!(amounts(&lines, 3), [0, 0, 0, 2]);
    let after = |line: Json| amounts(&[lines.to_vec(), vec![line]].concat(), 9);
    assert_eq!(after(started(4, json!({"id": "c2"}))), [0, 0, 0, 1]);
    let fired = |id: &str| with(meta(4, "tick"), json!({"scheduledTaskId": id}));
    assert_eq!(after(fired("c1")), [0, 0, 0, 1], "once");
    assert_eq!(after(fired("c2")), [0, 0, 0, 2], "again and again");
    assert_eq!(after(user(4, notification("b9"))), [0, 0, 0, 2]);
}

#[test]
fn the_result_of_another_tool_arms_nothing() {
    for result in [
        json!({"taskId": "1", "statusChange": {"from": "pending", "to": "done"}}),
        json!({"id": 7, "humanSchedule": "x"}),
        json!({"scheduledFor": "soon"}),
        json!({"taskId": "", "timeoutMs": 5}),
    ] {
        assert_eq!(amounts(&[started(1, result)], 2), [0; 4]);
    }
}

#[rstest]
#[case::completed("completed", Some(Outcome::Completed))]
#[case::failed("failed", Some(Outcome::Error))]
#[case::killed("killed", Some(Outcome::Aborted))]
#[case::something_new("pondering", None)]
fn a_notification_tells_how_its_agent_returned(
    #[case] status: &str,
    #[case] want: Option<Outcome>,
) {
    let text = format!(
        "<task-notification>\n<task-id>a1</task-id>\n<tool-use-id>t</tool-use-id>\n\
         <output-file>/{}</output-file>\n<status>{status}</status>\n<summary>\n",
        "x".repeat(300)
    );
    let want: Vec<_> =
        want.map(|outcome| ("s-1/a1".to_owned(), outcome, Some(ms(4)))).into_iter().collect();
    let prompt = json!({"attachment": {"type": "queued_command", "prompt": text.clone()}});
    let queued = json!({"content": text.clone(), "timestamp": stamp(4)});
    for form in
        [user(4, text), with(record("attachment", 4), prompt), metadata("queue-operation", queued)]
    {
        assert_eq!(returned(&read_lines(&[user(1, "x"), form])), want);
    }
}

#[rstest]
#[case::completed(json!({"status": "completed", "agentId": "a1", "content": "x".repeat(40_000)}),
    Some(Outcome::Completed))]
#[case::failed(json!({"status": "failed", "agentId": "a1"}), Some(Outcome::Error))]
#[case::launched(json!({"isAsync": true, "status": "async_launched", "agentId": "a1"}), None)]
#[case::another_tool(json!({"status": "completed", "shellId": "b1"}), None)]
#[case::denied(json!("The user doesn't want to proceed"), None)]
fn a_result_tells_how_its_agent_returned(#[case] result: Json, #[case] want: Option<Outcome>) {
    let want: Vec<_> =
        want.map(|outcome| ("s-1/a1".to_owned(), outcome, Some(ms(2)))).into_iter().collect();
    assert_eq!(returned(&read_lines(&[user(1, "x"), started(2, result)])), want);
}

#[test]
fn an_agent_started_by_an_agent_is_a_child_of_the_same_session() {
    let hint = Hint {
        place: Place::SubAgent,
        stem: "agent-a1".to_owned(),
        folder: Some("s-9".to_owned()),
        named_ms: None,
    };
    let read = read_as(&hint, &[started(2, json!({"status": "completed", "agentId": "a2"}))]);
    assert_eq!(returned(&read), [("s-9/a2".to_owned(), Outcome::Completed, Some(ms(2)))]);
}

#[rstest]
#[case::finished(json!({"finished": true, "description": "Look"}), true)]
#[case::at_work(json!({"finished": false}), false)]
#[case::untold(json!({}), false)]
#[case::odd(json!({"finished": "yes"}), false)]
fn a_meta_file_says_that_its_agent_has_finished(#[case] document: Json, #[case] want: bool) {
    let hint = Hint {
        place: Place::AgentMeta,
        stem: "agent-a1.meta".to_owned(),
        folder: Some("s-9".to_owned()),
        named_ms: None,
    };
    let got = returned(&read_as(&hint, &[document]));
    let all = [("s-9/a1".to_owned(), Outcome::Completed, None)];
    assert_eq!(got, all[..usize::from(want)]);
}

#[test]
fn the_end_of_a_turn_counts_the_agents_that_are_left() {
    assert_eq!(behind(&[agent(1, "a1"), agent(2, "a2")]), (0, 2));
    assert_eq!(behind(&[agent(1, "a1"), agent(2, "a2"), turn_over(3, Some(2))]), (0, 2));
    assert_eq!(
        behind(&[agent(1, "a1"), turn_over(3, Some(1)), user(4, notification("a1"))]),
        (0, 0)
    );
    assert_eq!(behind(&[agent(1, "a1"), agent(2, "a2"), turn_over(3, None)]), (0, 0));
    // Started where we did not see it.
    assert_eq!(behind(&[turn_over(3, Some(3)), user(4, notification("a9"))]), (0, 2));
}

#[test]
fn a_long_result_is_no_start_of_anything() {
    let content = json!({"originalFile": "x".repeat(300_000), "backgroundTaskId": "b1"});
    assert_eq!(behind(&[started(1, content)]), (0, 0));
    assert_eq!(behind(&[started(1, "denied")]), (0, 0));
}
