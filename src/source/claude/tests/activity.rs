//! Which records move the clock, and which only look as if they did.

use rstest::rstest;
use serde_json::json;

use super::*;

fn attachment(kind: &str) -> Json {
    let attachment = json!({"type": kind, "prompt": "and the docs", "commandMode": "prompt"});
    with(record("attachment", 9), json!({ "attachment": attachment }))
}

#[rstest]
#[case::prompt(user(9, "x"), true)]
#[case::result(result(9, "toolu_1"), true)]
#[case::interrupt(user(9, "[Request interrupted by user]"), true)]
#[case::bash(user(9, "<bash-input>ls</bash-input>"), true)]
#[case::notification(user(9, "<task-notification>…</task-notification>"), true)]
#[case::summary(with(user(9, "x"), json!({"isCompactSummary": true})), true)]
#[case::unreadable(with(record("user", 9), json!({"message": "error"})), true)]
#[case::meta(meta(9, "x"), false)]
#[case::command(command(9, "model"), false)]
#[case::exit(command(9, "exit"), false)]
#[case::compact(command(9, "compact"), true)]
#[case::local_output(user(9, "<local-command-stdout>Bye!</local-command-stdout>"), false)]
#[case::answer(says(9, "m9", "x"), true)]
#[case::filler(filler(9), false)]
#[case::api_error(api_error(9), true)]
#[case::progress(with(record("progress", 9), json!({"data": {"type": "bash_progress"}})), true)]
#[case::turn_duration(system(9, "turn_duration"), true)]
#[case::stop_hooks(system(9, "stop_hook_summary"), true)]
#[case::retry(system(9, "api_error"), true)]
#[case::boundary(system(9, "compact_boundary"), true)]
#[case::microcompact(system(9, "microcompact_boundary"), true)]
#[case::away(system(9, "away_summary"), false)]
#[case::bridge(system(9, "bridge_status"), false)]
#[case::local_command(with(system(9, "local_command"),
    json!({"content": "<command-name>/model</command-name>"})), false)]
#[case::queued(attachment("queued_command"), true)]
#[case::other_attachment(attachment("task_reminder"), false)]
#[case::metadata(metadata("permission-mode", json!({"timestamp": stamp(9)})), false)]
#[case::queue(metadata("queue-operation", json!({"timestamp": stamp(9)})), false)]
#[case::unknown(metadata("brand-new", json!({"timestamp": stamp(9)})), false)]
fn only_a_substantive_record_moves_the_clock(#[case] line: Json, #[case] moves: bool) {
    let read = read_lines(&[user(1, "start"), line]);
    let want = if moves { ms(9) } else { ms(1) };
    assert_eq!(read.own().last_activity_ms, Some(want));
}

#[test]
fn activity_without_a_stamp_moves_no_clock_but_revokes_an_end() {
    let mut unstamped = user(2, "x");
    unstamped.as_object_mut().unwrap().remove("timestamp");
    let read = read_lines(&[user(1, "x"), metadata("cost-state", json!({})), unstamped]);
    assert_eq!(read.own().last_activity_ms, Some(ms(1)));
    assert_eq!(read.own().end, None);
}

#[test]
fn a_command_that_expands_is_activity_at_its_own_stamp() {
    let read = read_lines(&[user(1, "x"), command(5, "review"), meta(6, "Review the diff.")]);
    assert_eq!(read.own().last_activity_ms, Some(ms(5)));
}
