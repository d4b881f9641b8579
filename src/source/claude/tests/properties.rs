//! What must hold for any transcript: state survives storage, nothing panics, all is bounded.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

use super::super::super::{Place, Record, State, read_line};
use super::*;

/// No state is larger than this, whatever was read, bytes as stored.
const STATE_BYTES_MAX: usize = 96 << 10;

/// A transcript in which every rule has its say.
fn everything() -> Vec<Json> {
    let side = json!({"isSidechain": true, "agentId": "a1"});
    let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 9, "output_tokens": 4});
    let mut spent = says(21, "m3", "Done.");
    spent["message"]["usage"] = usage.clone();
    let mut again = says(22, "m3", "Quite.");
    again["message"]["usage"] = usage;
    let queued = json!({"attachment": {"type": "queued_command", "prompt": "and the docs"}});
    let manual = json!({"compactMetadata": {"trigger": "manual", "preTokens": 9, "postTokens": 3}});
    let command_args = "<command-name>/fix</command-name><command-args>it</command-args>";
    vec![
        json!({"type": "summary", "summary": "Old", "leafUuid": "r-3"}),
        metadata("mode", json!({"mode": "normal"})),
        with(metadata("queue-operation", json!({})), json!({"timestamp": stamp(0)})),
        user(1, command_args),
        meta(2, "Fix it."),
        user(
            3,
            json!([{"type": "image", "source": {"data": "AAAA"}}, {"type": "text", "text": "x"}]),
        ),
        assistant(4, "m1", json!({"type": "thinking", "thinking": ""}), Json::Null),
        calls(5, "m1", "t1", "Bash"),
        with(user(6, "Survey"), side.clone()),
        with(says(7, "m2", "Found."), side),
        with(user(8, "stray"), json!({"isSidechain": true})),
        with(record("progress", 9), json!({"data": {"type": "hook_progress"}})),
        result(10, "t1"),
        with(record("attachment", 11), queued),
        system(12, "api_error"),
        command(13, "compact"),
        with(system(14, "compact_boundary"), manual),
        with(user(14, "Continued."), json!({"isCompactSummary": true, "uuid": "s-14"})),
        with(says(20, "m3", "So"), json!({"version": "2.1.60", "gitBranch": "dev"})),
        spent,
        again,
        system(23, "turn_duration"),
        metadata("ai-title", json!({"aiTitle": "Fixing"})),
        metadata("custom-title", json!({"customTitle": "B's", "sessionId": "s-2"})),
        json!({"type": "summary", "summary": "New", "leafUuid": "r-21"}),
        filler(24),
        api_error(25),
        user(26, "[Request interrupted by user]"),
        metadata("last-prompt", json!({"lastPrompt": "x"})),
        metadata("ai-title", json!({"aiTitle": "Fixing"})),
        metadata(
            "cost-state",
            json!({"startTime": 1, "totalDuration": 2, "modelUsage": {"a[1m]": {}}}),
        ),
        metadata("last-prompt", json!({"lastPrompt": "x"})),
        metadata("brand-new", json!({})),
        with(user(30, "again"), json!({"forkedFrom": {"sessionId": "s-0"}})),
        metadata("continued-in", json!({"timestamp": stamp(31)})),
    ]
}

fn places() -> impl Strategy<Value = Hint> {
    prop_oneof![
        Just(hint(SESSION)),
        Just(Hint { place: Place::SubAgent, ..hint("agent-a1") }),
        Just(Hint { place: Place::SubAgent, folder: Some("s-1".to_owned()), ..hint("agent-a1") }),
    ]
}

/// Reads lines one by one; before those in `restore` the state is stored and loaded.
fn read_with(hint: &Hint, lines: &[Vec<u8>], restore: &[bool]) -> (Vec<Record>, State) {
    let mut state = State::new(Agent::Claude, hint);
    let mut out = Vec::new();
    let mut offset = 0;
    for (line, restore) in lines.iter().zip(restore.iter().chain(std::iter::repeat(&false))) {
        if *restore {
            let stored = serde_json::to_string(&state).unwrap();
            let loaded: State = serde_json::from_str(&stored).unwrap();
            assert_eq!(loaded, state);
            state = loaded;
        }
        let _ = read_line(&mut state, line, offset, &mut out);
        offset += line.len() as u64 + 1;
    }
    (out, state)
}

/// The lines with some of them doubled, dropped or moved.
fn shuffled() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let lines: Vec<Vec<u8>> =
        everything().iter().map(|line| line.to_string().into_bytes()).collect();
    let count = lines.len();
    prop::collection::vec((0..count, any::<bool>()), 0..80).prop_map(move |picks| {
        let mut chosen = Vec::new();
        let mut next = 0;
        for (pick, jump) in picks {
            next = if jump { pick } else { (next + 1) % count };
            chosen.push(lines[next].clone());
        }
        chosen
    })
}

#[test]
fn the_sample_has_every_kind_of_record() {
    let read = read_lines(&everything());
    let mut kinds: Vec<String> = read
        .records
        .iter()
        .map(|record| format!("{:?}", record.what).split(['(', ' ']).next().unwrap().to_owned())
        .collect();
    kinds.sort();
    kinds.dedup();
    let want = "Activity Background Branch CallsVoid Compaction Context Cwd End Error ForkOf Kind Message \
        Model Started Title Trailer Turn Unknown Usage Version Window";
    assert_eq!(kinds.join(" "), want);
}

#[test]
fn a_state_stored_before_every_line_changes_nothing() {
    let lines: Vec<Vec<u8>> =
        everything().iter().map(|line| line.to_string().into_bytes()).collect();
    let whole = read_with(&hint(SESSION), &lines, &[]);
    assert_eq!(read_with(&hint(SESSION), &lines, &vec![true; lines.len()]), whole);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_state_stored_between_any_two_lines_changes_nothing(
        hint in places(),
        lines in shuffled(),
        restore in prop::collection::vec(any::<bool>(), 80),
    ) {
        prop_assert_eq!(read_with(&hint, &lines, &restore), read_with(&hint, &lines, &[]));
    }

    #[test]
    fn mutants_are_read_without_a_panic_and_leave_a_bounded_state(
        hint in places(),
        mut lines in shuffled(),
        wounds in prop::collection::vec((any::<Index>(), any::<Index>(), any::<u8>()), 0..40),
    ) {
        for (line, at, byte) in wounds {
            if lines.is_empty() { break }
            let line = line.get_mut(&mut lines);
            if !line.is_empty() {
                let at = at.index(line.len());
                line[at] = byte;
            }
        }
        let (_, state) = read_with(&hint, &lines, &[]);
        prop_assert!(serde_json::to_string(&state).unwrap().len() < STATE_BYTES_MAX);
    }

    #[test]
    fn any_field_may_have_any_type(
        line in 0..everything().len(),
        field in any::<Index>(),
        inner in any::<Index>(),
        value in prop::sample::select(vec![
            Json::Null, json!(true), json!(-1), json!(1e300), json!(""), json!("x"), json!([]),
            json!([[], 7, null, {"type": 7}]), json!({}), json!({"type": ["user"]}),
        ]),
    ) {
        let mut lines = everything();
        let record = lines[line].as_object_mut().unwrap();
        let name = record.keys().nth(field.index(record.len())).unwrap().clone();
        let slot = record.get_mut(&name).unwrap();
        if let Some(nested) = slot.as_object_mut().filter(|nested| !nested.is_empty()) {
            let name = nested.keys().nth(inner.index(nested.len())).unwrap().clone();
            nested.insert(name, value);
        } else {
            *slot = value;
        }
        let read = read_lines(&lines);
        prop_assert_eq!(read.flaws.skipped, 0);
        prop_assert!(read.own().last_activity_ms.is_some());
    }
}

#[test]
fn hostile_texts_leave_a_bounded_state() {
    let long = "\u{1}🙏".repeat(5_000);
    let mut lines = Vec::new();
    for at in 0..80 {
        let id = format!("{at}{long}");
        lines.push(json!({"type": "summary", "summary": id, "leafUuid": id}));
        let around = json!({"uuid": id, "gitBranch": id, "version": id, "cwd": id, "sessionId": id,
            "agentId": id, "requestId": id, "forkedFrom": id});
        lines.push(with(calls(at, &id, &id, &id), around.clone()));
        lines.push(with(system(at, "compact_boundary"), around.clone()));
        lines.push(with(user(at, id.as_str()), json!({"isSidechain": true, "agentId": id})));
        lines.push(with(user(at, format!("<command-name>{id}")), around));
        if at % 10 == 9 {
            let read = read_as(&Hint { place: Place::Transcript, ..hint("s") }, &lines);
            assert!(serde_json::to_string(&read.state).unwrap().len() < STATE_BYTES_MAX);
            lines.clear();
        }
    }
}

#[test]
fn a_record_of_a_million_blocks_says_a_bounded_number_of_things() {
    let blocks = vec![json!({"type": "text", "text": "x"}); 100_000];
    assert!(read_lines(&[user(1, blocks)]).records.len() < 300);
}

#[test]
fn an_unknown_type_is_counted_and_no_flaw() {
    let lines = [
        metadata("brand-new", json!({})),
        metadata("marble-origami-commit", json!({})),
        metadata("file-history-delta", json!({})),
        metadata("tools-used", json!({})),
        metadata("api-request-shape", json!({})),
        json!({"type": ["user"]}),
        json!({}),
    ];
    let read = read_lines(&lines);
    let unknown: Vec<_> = read.own().unknown.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(unknown, [("brand-new", 1), ("untyped", 2)]);
    assert_eq!(read.flaws.skipped, 0);
}
