//! Compactions: boundary and summary are one, across reads too.

use rstest::rstest;
use serde_json::json;

use super::*;
use crate::compaction::{Event, Trigger};

fn boundary(second: i64, about: impl Into<Json>) -> Json {
    let about: Json = about.into();
    let fields = json!({"content": "Conversation compacted", "compactMetadata": about});
    with(system(second, "compact_boundary"), fields)
}

fn summary(second: i64) -> Json {
    let line = user(second, "This session is being continued…");
    with(line, json!({"isCompactSummary": true, "uuid": format!("s-{second}")}))
}

fn finished(read: &Read) -> Vec<&Event> {
    let events = read.records.iter().filter_map(|record| {
        if let What::Compaction(event) = &record.what { Some(event) } else { None }
    });
    events.collect()
}

#[rstest]
#[case::pair(&[boundary(1, json!({})), summary(1)], 1)]
#[case::pair_apart(&[boundary(1, json!({})), record("attachment", 1), record("progress", 1),
    metadata("mode", json!({})), summary(1)], 1)]
#[case::summary_first(&[summary(1), boundary(1, json!({}))], 1)]
#[case::torn(&[boundary(1, json!({}))], 1)]
#[case::boundary_alone_then_work(&[boundary(1, json!({})), user(2, "x"), summary(3)], 2)]
#[case::summaries_alone(&[summary(1), says(2, "m1", "x"), summary(3)], 2)]
#[case::two_pairs(&[boundary(1, json!({})), summary(1), boundary(2, json!({})), summary(2)], 2)]
#[case::torn_then_pair(&[boundary(1, json!({})), boundary(2, json!({})), summary(2)], 2)]
#[case::written_twice(&[boundary(1, json!({})), summary(1), boundary(1, json!({})), summary(1)], 1)]
#[case::without_uuids(&[with(boundary(1, json!({})), json!({"uuid": null})), user(2, "x"),
    with(boundary(3, json!({})), json!({"uuid": null}))], 2)]
#[case::microcompact(&[system(1, "microcompact_boundary")], 0)]
fn a_pair_counts_once_and_so_does_a_half(#[case] lines: &[Json], #[case] want: u64) {
    assert_eq!(read_lines(lines).own().compaction.count, want);
}

#[test]
fn a_boundary_tells_trigger_tokens_and_when_it_began() {
    let about =
        json!({"trigger": "auto", "preTokens": 166_900, "postTokens": 851, "durationMs": 61_000});
    let read = read_lines(&[user(1, "x"), boundary(100, about), summary(100)]);
    let offset = transcript(&[user(1, "x")]).len() as u64;
    let want = Event::Finished {
        seq: offset,
        at_ms: Some(ms(100)),
        started_ms: Some(ms(39)),
        trigger: Some(Trigger::Auto),
        before_tokens: Some(166_900),
        after_tokens: Some(851),
    };
    assert_eq!(finished(&read), [&want]);
    let notes: Vec<_> = rows(&read).into_iter().skip(1).collect();
    assert_eq!(
        notes,
        [
            (MessageKind::Note, false, "Conversation compacted"),
            (MessageKind::Note, false, "This session is being continued…"),
        ]
    );
}

fn started_ms(lines: &[Json]) -> Vec<Option<i64>> {
    let read = read_lines(lines);
    let starts = finished(&read).into_iter().map(|event| {
        let Event::Finished { started_ms, .. } = event else { panic!("{event:?}") };
        *started_ms
    });
    starts.collect()
}

#[test]
fn a_manual_compaction_without_a_duration_began_with_its_command() {
    let manual = || json!({"trigger": "manual"});
    assert_eq!(started_ms(&[command(5, "compact"), boundary(20, manual())]), [Some(ms(5))]);
    assert_eq!(started_ms(&[command(5, "compact"), summary(20)]), [Some(ms(5))]);
    let auto = boundary(20, json!({"trigger": "auto"}));
    assert_eq!(started_ms(&[command(5, "compact"), auto]), [None]);
}

#[test]
fn a_command_written_behind_its_compaction_is_not_the_start_of_the_next_one() {
    let manual = || json!({"trigger": "manual"});
    let lines = [
        boundary(20, manual()),
        summary(20),
        command(5, "compact"),
        user(30, "x"),
        boundary(50, manual()),
    ];
    assert_eq!(started_ms(&lines), [None, None]);
}

#[test]
fn an_inline_sub_agent_does_not_compact_the_session() {
    let inline = json!({"isSidechain": true, "agentId": "a1"});
    let read = read_lines(&[user(1, "x"), with(boundary(2, json!({})), inline)]);
    assert!(finished(&read).is_empty());
}
