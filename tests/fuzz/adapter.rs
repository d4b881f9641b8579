//! What every adapter must do with whatever bytes: end, keep what it says within the line that says
//! it, and say the same after a restart between any two lines.

use lullwatch::source::{Agent, Flaws, Hint, Place, Record, State, read_line};

const PLACES: [Place; 6] = [
    Place::Transcript,
    Place::SubAgent,
    Place::AgentMeta,
    Place::CustomTitle,
    Place::SessionIndex,
    Place::Workspace,
];

/// Reads the text of one file of an agent; the first byte says which file, the second where the
/// reader is restarted.
pub fn check(agent: Agent, data: &[u8]) {
    let [which, cut, text @ ..] = data else { return };
    let place = PLACES[usize::from(*which) % PLACES.len()];
    let stem = "0f0f0f0f-0000-4000-8000-000000000001".to_owned();
    let hint = Hint { place, stem, folder: Some("f".to_owned()), named_ms: None };
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let cut = usize::from(*cut) % (lines.len() + 1);
    let whole = read(State::new(agent, &hint), &lines, 0);
    let first = read(State::new(agent, &hint), &lines[..cut], 0);
    let json = serde_json::to_string(&first.state).unwrap();
    let restarted = serde_json::from_str::<State>(&json).unwrap();
    assert_eq!(restarted, first.state, "a state is itself again");
    let at = lines[..cut].iter().map(|line| line.len() as u64 + 1).sum();
    let second = read(restarted, &lines[cut..], at);
    assert_eq!(whole.records, [first.records, second.records].concat());
    assert_eq!(whole.state, second.state);
    let mut flaws = first.flaws;
    flaws.add(second.flaws);
    assert_eq!(whole.flaws, flaws);
    // A line of a transcript may be long; what is remembered of it is not.
    assert!(json.len() < 4 * (64 << 10) + 4 * data.len(), "a state of {} bytes", json.len());
}

struct Read {
    state: State,
    records: Vec<Record>,
    flaws: Flaws,
}

fn read(mut state: State, lines: &[&[u8]], mut offset: u64) -> Read {
    let (mut records, mut flaws) = (Vec::new(), Flaws::default());
    for line in lines {
        let before = records.len();
        flaws.add(read_line(&mut state, line, offset, &mut records));
        let end = offset + line.len() as u64;
        for record in &records[before..] {
            assert!(record.span.offset >= offset && record.span.offset + record.span.len <= end);
        }
        offset = end + 1;
    }
    Read { state, records, flaws }
}
