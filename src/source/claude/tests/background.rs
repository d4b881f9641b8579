//! What goes on behind the conversation, and what says that it is over.

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
    let content = json!({"originalFile": "x".repeat(20_000), "backgroundTaskId": "b1"});
    assert_eq!(behind(&[started(1, content)]), (0, 0));
    assert_eq!(behind(&[started(1, "denied")]), (0, 0));
}
