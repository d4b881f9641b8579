//! The six ways into a lifecycle, and the marker that each writes or leaves out.

use rstest::rstest;

use super::*;

const NOW_MS: i64 = 50_000;

/// A finished turn, then whatever rows of these types.
fn rows(more: &[(&str, Value)]) -> Vec<Row> {
    let turn = [
        ("turn/start", json!({"turn": 1})),
        ("user/message", json!({"source": {"kind": "user"}})),
        ("turn/end", json!({"turn": 1, "reason": {"kind": "completed"}})),
    ];
    (0..)
        .zip(turn.iter().chain(more))
        .map(|(seq, (kind, data))| Row {
            kind: (*kind).to_owned(),
            seq,
            at_ms: 1000 + seq.cast_signed(),
            data: data.clone(),
        })
        .collect()
}

fn kinds(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.kind.as_str()).collect()
}

fn open_start() -> (&'static str, Value) {
    ("compaction/start", json!({"compactionId": "c1", "turn": null}))
}

#[rstest]
#[case::resume(|seed| Log::resume(seed, NOW_MS))]
#[case::configured_start(|seed| Log::configured_start(Some(seed), NOW_MS))]
#[case::fork(|seed: Vec<Row>| Log::fork(&seed, 2, NOW_MS))]
#[case::adopt(|seed| Log::adopt(seed, NOW_MS))]
#[case::create(|seed| Log::create(Some(seed), NOW_MS))]
fn every_way_in_marks_the_end_of_its_seed(#[case] way: fn(Vec<Row>) -> Log) {
    let seed = rows(&[open_start()]);
    let log = way(seed.clone());
    let marker = Row { kind: END_SEED.to_owned(), seq: 4, at_ms: NOW_MS, data: json!({}) };
    assert_eq!(log.rows()[..4], seed);
    assert_eq!(log.rows()[4..], [marker]);
    assert_eq!(log.first_live_seq(), 4);
    assert_eq!(log.live(), []);
}

#[test]
fn a_sub_agent_fork_is_clipped_to_its_parents_last_turn() {
    let log = Log::sub_agent_fork(&rows(&[open_start()]), NOW_MS);
    assert_eq!(kinds(log.rows()), ["turn/start", "user/message", "turn/end", END_SEED]);
    assert_eq!(log.first_live_seq(), 3);
    let empty = Log::sub_agent_fork(&[], NOW_MS);
    assert_eq!(kinds(empty.rows()), [END_SEED]);
}

#[test]
fn a_fork_reaches_up_to_the_next_turn_and_leaves_its_source_alone() {
    let source = rows(&[open_start(), ("turn/start", json!({"turn": 2}))]);
    let before = source.clone();
    let log = Log::fork(&source, 2, NOW_MS);
    assert_eq!(log.rows()[..4], source[..4]);
    assert_eq!(kinds(&log.rows()[4..]), [END_SEED]);
    assert_eq!(source, before);
}

#[test]
fn a_fresh_session_has_no_marker_and_an_empty_seed_has_one_at_zero() {
    let fresh = Log::create(None, NOW_MS);
    assert_eq!((fresh.rows(), fresh.first_live_seq()), (&[][..], 0));
    assert_eq!(Log::configured_start(None, NOW_MS), fresh);
    let empty = Log::create(Some(Vec::new()), NOW_MS);
    assert_eq!((kinds(empty.rows()), empty.first_live_seq()), (vec![END_SEED], 0));
    assert_eq!(empty.rows()[0].data, json!({}));
}

#[test]
fn a_seed_that_ends_in_a_marker_gets_no_second_one() {
    let once = Log::resume(rows(&[]), NOW_MS);
    let twice = Log::resume(once.rows().to_vec(), NOW_MS + 1);
    assert_eq!(twice.rows(), once.rows());
    assert_eq!((once.first_live_seq(), twice.first_live_seq()), (3, 4));
    let mut used = twice;
    used.append("permission/preset", json!({}), NOW_MS + 2);
    let third = Log::resume(used.rows().to_vec(), NOW_MS + 3);
    assert_eq!(kinds(&third.rows()[3..]), [END_SEED, "permission/preset", END_SEED]);
}

#[test]
fn the_marker_is_written_with_the_seed_and_seen_by_no_subscriber() {
    let mut resumed = Log::resume(rows(&[]), NOW_MS);
    assert_eq!(resumed.append("turn/start", json!({"turn": 2}), NOW_MS), 4);
    assert_eq!(kinds(resumed.first_batch()), [END_SEED]);
    assert_eq!(kinds(resumed.live()), ["turn/start"]);
    let forked = Log::fork(&rows(&[]), 2, NOW_MS);
    assert_eq!(forked.first_batch(), forked.rows());
}

#[test]
fn a_repair_closes_calls_steps_and_turns_but_no_compaction() {
    let torn = rows(&[
        ("turn/start", json!({"turn": 2})),
        ("step/start", json!({"turn": 2, "step": 1})),
        ("tool/call", json!({"turn": 2, "step": 1, "callId": "a"})),
        ("tool/result", json!({"message": {"source": {"kind": "tool", "callId": "a"}}})),
        ("tool/call", json!({"turn": 2, "step": 1, "callId": "b"})),
        ("compaction/start", json!({"turn": 2})),
    ]);
    let found = closers(&torn);
    assert_eq!(kinds(&found), ["tool/result", "step/end", "turn/end"]);
    assert_eq!(found[0].data.pointer("/message/source/callId"), Some(&json!("b")));
    assert_eq!(found[2].data, json!({"turn": 2, "reason": {"kind": "interrupted"}}));
    assert!(found.iter().all(|row| row.at_ms == torn.last().unwrap().at_ms));
    let resumed = Log::resume(torn, NOW_MS);
    let batch = ["tool/result", "step/end", "turn/end", END_SEED];
    assert_eq!(kinds(resumed.first_batch()), batch);
    assert_eq!(resumed.first_live_seq(), 12);
}

#[test]
fn a_row_is_written_as_the_harness_writes_it() {
    let log = Log::create(Some(Vec::new()), 7);
    let header = json!({"type": "session", "version": 0, "id": "s"});
    let lines: Vec<Value> =
        log.text(&header).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let marker = json!({"type": "session/end-seed", "seq": 0, "time": 7, "data": {}});
    assert_eq!(lines, [header, marker]);
}
