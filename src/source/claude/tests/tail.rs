//! End markers and the metadata trailer at the tail.

use rstest::rstest;
use serde_json::json;

use super::super::super::{EndKind, EndMark};
use super::*;

#[rstest]
#[case::exit(metadata("cost-state", json!({"startTime": 1000, "totalDuration": 234})),
    EndKind::CostState, Some(1234))]
#[case::exit_without_times(metadata("cost-state", json!({"totalDuration": 234})),
    EndKind::CostState, None)]
#[case::moved(metadata("continued-in", json!({"timestamp": stamp(5)})),
    EndKind::ContinuedIn, Some(ms(5)))]
#[case::blocked(metadata("ended-by-model", json!({"timestamp": stamp(5)})),
    EndKind::EndedByModel, Some(ms(5)))]
fn an_end_marker_stands_until_activity_lies_behind_it(
    #[case] marker: Json,
    #[case] kind: EndKind,
    #[case] at_ms: Option<i64>,
) {
    let end = |behind: &[Json]| {
        let lines = [user(1, "x"), says(2, "m1", "y"), marker.clone()];
        read_lines(&[lines.to_vec(), behind.to_vec()].concat()).own().end.clone()
    };
    let want = Some(EndMark { kind, at_ms });
    assert_eq!(end(&[]), want);
    let quiet = [metadata("ai-title", json!({"aiTitle": "t"})), meta(3, "x"), command(4, "exit")];
    assert_eq!(end(&quiet), want);
    assert_eq!(end(&[user(1, "stamped before, written behind")]), None);
}

#[test]
fn a_marker_that_stands_twice_is_one_end() {
    let marker = |at: i64| metadata("cost-state", json!({"startTime": 0, "totalDuration": at}));
    let lines = [user(1, "x"), marker(5), metadata("last-prompt", json!({})), marker(7)];
    let want = EndMark { kind: EndKind::CostState, at_ms: Some(7) };
    assert_eq!(read_lines(&lines).own().end, Some(want));
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
