//! What holds of every transcript, whatever its bytes.

use proptest::prelude::*;
use serde_json::json;

use super::super::super::testing::hint;
use super::super::super::{Agent, PREVIEW_CHARS, Record, State, What, read_line};
use super::{Tape, iso, own_id, sample, stem_of};

/// A small file without task events or metas.
fn old_sample() -> Tape {
    let mut tape = Tape::default();
    tape.raw(&format!(r#"{{"id":"b-1","timestamp":"{}","instructions":null}}"#, iso(3)));
    tape.prompt("one").call("c").answer("wait").output("c").answer("done").call("d");
    tape.prompt("two").event("error", &json!({"message": 7})).compacted().answer("late");
    tape
}

/// Every record, the state stored and restored before each line that `stored` picks.
fn records(tape: &Tape, stored: impl Fn(usize) -> bool) -> (Vec<Record>, State) {
    let mut state = State::new(Agent::Codex, &hint(&stem_of(&own_id())));
    let mut out = Vec::new();
    let mut offset = 0;
    for (at, line) in tape.lines.iter().enumerate() {
        if stored(at) {
            let text = serde_json::to_string(&state).unwrap();
            state = serde_json::from_str(&text).unwrap();
        }
        read_line(&mut state, line.as_bytes(), offset, &mut out);
        offset += line.len() as u64 + 1;
    }
    (out, state)
}

/// More than any honest state needs; far less than a transcript.
const STATE_BYTES_MAX: usize = 32 << 10;

/// Words that steer the adapter, to be put in the place of others.
const WORDS: [&str; 12] = [
    "null",
    "[]",
    "{}",
    "-1",
    "18446744073709551615",
    "\"session_meta\"",
    "\"task_started\"",
    "\"compacted\"",
    "\"user_message\"",
    "\"\\ud83d\"",
    "[[[{\"type\":\"text\",\"text\":\"x\"}]]]",
    "\"01a22b8a-1780-7070-9b6e-f1834a0e5bce\"",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_state_stored_between_any_two_lines_changes_nothing(
        stored in prop::collection::vec(any::<bool>(), 128), old in any::<bool>()
    ) {
        let tape = if old { old_sample() } else { sample() };
        let plain = records(&tape, |_| false);
        prop_assert_eq!(&records(&tape, |at| stored[at % stored.len()]), &plain);
        prop_assert_eq!(&records(&tape, |_| true), &plain);
    }

    #[test]
    fn no_mutation_panics_or_swells_the_state(
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_usize..40, any::<u8>()),
            1..30,
        ),
        old in any::<bool>(),
    ) {
        let mut tape = if old { old_sample() } else { sample() };
        for (line, at, edit, byte) in edits {
            let index = line.index(tape.lines.len());
            let mut bytes = tape.lines[index].clone().into_bytes();
            let at = at.index(bytes.len() + 1);
            match edit {
                0..12 => {
                    let value = bytes[at..].iter().position(|b| *b == b':').map(|p| at + p + 1);
                    let start = value.unwrap_or(at);
                    let len = bytes[start..].iter().position(|b| matches!(b, b',' | b'}'));
                    let end = len.map_or(bytes.len(), |len| start + len);
                    bytes.splice(start..end, WORDS[edit].bytes());
                }
                12..20 => bytes.truncate(at),
                20..28 if at < bytes.len() => bytes[at] = byte,
                28..34 => {
                    let other = tape.lines[at % tape.lines.len()].clone();
                    tape.lines.insert(index, other);
                }
                _ => bytes.insert(at, byte),
            }
            tape.lines[index] = String::from_utf8_lossy(&bytes).into_owned();
        }
        let (out, state) = records(&tape, |_| false);
        prop_assert!(serde_json::to_string(&state).unwrap().len() <= STATE_BYTES_MAX);
        for record in out {
            if let What::Message(message) = record.what {
                prop_assert!(message.text.chars().count() <= PREVIEW_CHARS);
            }
        }
    }
}

#[test]
fn a_hostile_rollout_keeps_the_state_small() {
    let mut tape = old_sample();
    let long = "x".repeat(5000);
    for number in 0..500 {
        tape.call(&format!("{number}{long}"));
    }
    let (_, state) = records(&tape, |_| false);
    assert!(serde_json::to_string(&state).unwrap().len() <= STATE_BYTES_MAX);
    for number in 0..500 {
        tape.start(&format!("{number}{long}")).compacted();
    }
    let (_, state) = records(&tape, |_| false);
    assert!(serde_json::to_string(&state).unwrap().len() <= STATE_BYTES_MAX);
}
