//! End markers and the metadata trailer at the tail.

use rstest::rstest;
use serde_json::json;

use super::super::super::{EndKind, EndMark, Turn};
use super::*;

/// A `cost-state` that puts the end at this second.
fn cost_state(second: i64) -> Json {
    metadata("cost-state", json!({"startTime": ms(0), "totalDuration": second * 1000}))
}

fn end(lines: &[Json]) -> Option<EndMark> {
    read_lines(lines).own().end.clone()
}

fn exact(second: i64) -> EndMark {
    EndMark { kind: EndKind::CostState, at_ms: Some(ms(second)), approximate: false }
}

fn about(second: i64) -> EndMark {
    EndMark { approximate: true, ..exact(second) }
}

#[rstest]
#[case::exit(cost_state(5), EndKind::CostState, ms(5), false)]
#[case::exit_without_times(metadata("cost-state", json!({"totalDuration": 234})),
    EndKind::CostState, ms(2), true)]
#[case::moved(metadata("continued-in", json!({"timestamp": stamp(5)})),
    EndKind::ContinuedIn, ms(5), false)]
#[case::blocked(metadata("ended-by-model", json!({"timestamp": stamp(5)})),
    EndKind::EndedByModel, ms(5), false)]
fn an_end_marker_stands_until_activity_lies_behind_it(
    #[case] marker: Json,
    #[case] kind: EndKind,
    #[case] at_ms: i64,
    #[case] approximate: bool,
) {
    let end = |behind: &[Json]| {
        let lines = [user(1, "x"), says(2, "m1", "y"), marker.clone()];
        read_lines(&[lines.to_vec(), behind.to_vec()].concat()).own().end.clone()
    };
    let want = Some(EndMark { kind, at_ms: Some(at_ms), approximate });
    assert_eq!(end(&[]), want);
    let quiet = [metadata("ai-title", json!({"aiTitle": "t"})), meta(3, "x"), command(4, "exit")];
    assert_eq!(end(&quiet), want);
    assert_eq!(end(&[user(1, "stamped before, written behind")]), None);
}

#[test]
fn a_marker_that_stands_twice_is_one_end() {
    let lines = [user(1, "x"), cost_state(5), metadata("last-prompt", json!({})), cost_state(7)];
    assert_eq!(end(&lines), Some(exact(7)));
}

#[test]
fn start_and_duration_tell_the_end_of_a_first_life_only() {
    let first = [user(1, "x"), says(2, "m1", "y"), cost_state(3)];
    assert_eq!(end(&first), Some(exact(3)));
    // The duration adds up over both lives, without the time between them.
    let again = [user(60, "z"), says(61, "m2", "y"), command(70, "exit"), cost_state(14)];
    let second = [first.to_vec(), again.to_vec()].concat();
    assert_eq!(end(&second), Some(about(70)));
    let handed_over = [second, vec![cost_state(14)]].concat();
    assert_eq!(end(&handed_over), Some(about(70)));
}

#[test]
fn a_resume_without_a_word_is_no_second_life() {
    let lines = [user(1, "x"), cost_state(3), command(4, "status"), meta(4, "x"), cost_state(5)];
    assert_eq!(end(&lines), Some(exact(5)));
}

#[rstest]
#[case::fork_session(json!({"requestSessionId": "s-0"}))]
#[case::branch(json!({"forkedFrom": {"sessionId": "s-0", "messageUuid": "r-2"}}))]
fn a_fork_goes_on_counting_where_its_source_stood(#[case] copied: Json) {
    let lines = [user(1, "x"), with(says(2, "m1", "y"), copied), user(8, "z"), cost_state(9)];
    assert_eq!(end(&lines), Some(about(8)));
}

#[test]
fn an_end_before_the_last_stamp_is_none() {
    assert_eq!(
        end(&[user(1, "x"), says(10, "m1", "y"), cost_state(8)]),
        Some(exact(8)),
        "in the slack"
    );
    assert_eq!(end(&[user(1, "x"), says(10, "m1", "y"), cost_state(7)]), Some(about(10)));
}

#[test]
fn a_late_sentinel_behind_a_marker_is_no_new_life() {
    let lines = [user(1, "x"), cost_state(3)];
    let behind = |line: Json| read_lines(&[lines.to_vec(), vec![line]].concat()).own().clone();
    let sentinel = |second: i64| user(second, "[Request interrupted by user]");
    let late = behind(sentinel(5));
    assert_eq!((late.end, late.turn), (Some(exact(3)), Turn::Interrupted));
    assert_eq!(behind(sentinel(6)).end, None);
    assert_eq!(behind(user(3, "a new turn")).end, None);
    let again = [lines.to_vec(), vec![sentinel(4), user(4, "go on")]].concat();
    assert_eq!(end(&again), None);
    let twice = [lines.to_vec(), vec![sentinel(4), cost_state(4)]].concat();
    assert_eq!(end(&twice), Some(exact(4)), "the same life");
}

/// The block that is written at an exit and after each 32 KiB.
fn block() -> Vec<Json> {
    ["last-prompt", "ai-title", "mode", "permission-mode"]
        .map(|kind| metadata(kind, json!({"aiTitle": "t"})))
        .to_vec()
}

/// Conversation of exactly so many bytes, newlines included.
fn talk(bytes: usize) -> Json {
    let empty = transcript(&[says(2, "m1", "")]).len();
    says(2, "m1", &"x".repeat(bytes - empty))
}

fn trailer(lines: &[Vec<Json>]) -> bool {
    read_lines(&lines.concat()).own().trailer
}

#[rstest]
#[case::just_inside(32_767, true)]
#[case::at_the_period(32_768, false)]
#[case::far_past(90_000, false)]
fn a_trailer_is_decidable_when_less_than_32_kib_lie_before_it(
    #[case] gap: usize,
    #[case] want: bool,
) {
    assert_eq!(trailer(&[vec![talk(gap)], block()]), want, "from the start of the file");
    assert_eq!(trailer(&[vec![talk(70_000)], block(), vec![talk(gap)], block()]), want);
}

#[test]
fn a_block_without_a_last_prompt_is_no_trailer_and_starts_no_period() {
    let short = || vec![metadata("ai-title", json!({})), metadata("mode", json!({}))];
    assert!(!trailer(&[vec![user(1, "x")], short()]));
    assert!(!trailer(&[vec![talk(20_000)], short(), vec![talk(20_000)], block()]));
}

#[rstest]
#[case::resumed(vec![metadata("ai-title", json!({})), metadata("permission-mode", json!({}))])]
#[case::typing(vec![metadata("queue-operation", json!({"operation": "enqueue"}))])]
#[case::snapshot(vec![metadata("file-history-snapshot", json!({}))])]
#[case::a_new_type(vec![metadata("brand-new", json!({}))])]
#[case::attachment(vec![record("attachment", 3)])]
#[case::meta(vec![meta(3, "x")])]
#[case::a_stray_side_chain(vec![with(meta(3, "x"), json!({"isSidechain": true}))])]
#[case::prompt(vec![user(3, "x")])]
#[case::compaction(vec![system(3, "compact_boundary")])]
fn what_follows_the_block_takes_the_trailer_back(#[case] behind: Vec<Json>) {
    let lines = [vec![user(1, "x"), says(2, "m1", "y")], block(), behind];
    assert!(trailer(&lines[..2]));
    assert!(!trailer(&lines));
}
