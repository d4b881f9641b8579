//! dsh logs and their brackets, over the 26 scenarios of `tests/data/dsh-scenarios`: plain and
//! compressed, whole and cut at every byte; and what the writer's side writes, read back.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests may panic")]

use std::path::{Path, PathBuf};

use lullwatch::compaction::writer::{Log, Row};
use lullwatch::compaction::{Bracket, LogVerdict};
use lullwatch::source::facts::Facts;
use lullwatch::source::zframe::{FrameEnd, frame_end};
use lullwatch::source::{Agent, Hint, Of, Place, State, Turn, read_line};
use serde_json::json;

const OBSERVED_MS: i64 = 1_800_000_000_000;

/// What a log says once all its complete lines are read.
#[derive(Debug, Clone, PartialEq)]
struct Read {
    state: State,
    facts: Facts,
}

impl Read {
    fn new() -> Self {
        let hint = Hint {
            place: Place::Transcript,
            stem: "session".to_owned(),
            folder: None,
            named_ms: None,
        };
        Self { state: State::new(Agent::Dsh, &hint), facts: Facts::default() }
    }

    fn line(&mut self, line: &[u8]) {
        let mut records = Vec::new();
        let flaws = read_line(&mut self.state, line, 0, &mut records);
        self.facts.flaws.add(flaws);
        for record in &records {
            assert_eq!(record.of, Of::File);
            self.facts.fold(record, OBSERVED_MS, true);
        }
    }

    fn of(text: &[u8]) -> Self {
        let mut read = Self::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if let Some(whole) = line.strip_suffix(b"\n") {
                read.line(whole);
            }
        }
        read
    }

    fn verdict(&self) -> LogVerdict {
        self.facts.compaction.verdict()
    }
}

/// The plain text of the complete frames, and where the rest begins.
fn inflate(bytes: &[u8]) -> (Vec<u8>, usize) {
    let mut text = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match frame_end(bytes, at) {
            FrameEnd::Complete(end) => {
                text.extend(zstd::decode_all(&bytes[at..end]).unwrap());
                at = end;
            }
            FrameEnd::Incomplete => break,
            FrameEnd::Corrupt => panic!("corrupt frame at {at}"),
        }
    }
    (text, at)
}

/// One row of `manifest.tsv`.
struct Scenario {
    name: String,
    bracket: Bracket,
    busy: bool,
    phase: String,
    decisive_seq: Option<u64>,
    end_seed_seq: Option<u64>,
    turn_open: bool,
    orphans: u64,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dsh-scenarios")
}

fn scenarios() -> Vec<Scenario> {
    let manifest = std::fs::read_to_string(folder().join("manifest.tsv")).unwrap();
    let found: Vec<Scenario> = manifest
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            Scenario {
                name: cells[0].to_owned(),
                bracket: match cells[2] {
                    "none" => Bracket::None,
                    "open" => Bracket::Open,
                    "closed-ok" => Bracket::Closed,
                    "closed-error" => Bracket::Failed,
                    "orphan" => Bracket::Stale,
                    other => panic!("{other}"),
                },
                busy: cells[3] == "True",
                phase: cells[4].to_owned(),
                decisive_seq: cells[5].parse().ok(),
                end_seed_seq: cells[6].parse().ok(),
                turn_open: !cells[7].is_empty(),
                orphans: cells[8].parse().unwrap(),
            }
        })
        .collect();
    assert_eq!(found.len(), 26);
    found
}

/// The bytes of a scenario's only log.
fn log(folder: &Path) -> Vec<u8> {
    let mut entries = std::fs::read_dir(folder).unwrap();
    let path = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none(), "{}", folder.display());
    std::fs::read(path).unwrap()
}

fn plain(scenario: &Scenario) -> Vec<u8> {
    log(&folder().join(&scenario.name))
}

fn compressed(scenario: &Scenario) -> Vec<u8> {
    log(&folder().join("zstd").join(&scenario.name))
}

fn check(scenario: &Scenario, read: &Read) {
    let verdict = read.verdict();
    let over = verdict.attempt.as_ref().is_some_and(|attempt| attempt.turn_over_seq.is_some());
    let phase = verdict.phase.map_or_else(String::new, |phase| {
        format!("{}{}", phase.word(), if over { "+turn-closed" } else { "" })
    });
    let found = (
        verdict.bracket,
        verdict.bracket == Bracket::Open,
        phase.as_str(),
        verdict.decisive_seq,
        verdict.end_seed_seq,
        read.facts.turn == Turn::Open,
        verdict.orphans,
    );
    let expected = (
        scenario.bracket,
        scenario.busy,
        scenario.phase.as_str(),
        scenario.decisive_seq,
        scenario.end_seed_seq,
        scenario.turn_open,
        scenario.orphans,
    );
    assert_eq!(found, expected, "{}", scenario.name);
    assert_eq!(read.facts.flaws.skipped, 0, "{}", scenario.name);
    assert_eq!(read.facts.notices, [], "{}", scenario.name);
    assert!(read.state.key().is_some() && read.facts.started_ms.is_some(), "{}", scenario.name);
}

#[test]
fn every_scenario_has_the_verdict_of_the_manifest() {
    for scenario in scenarios() {
        check(&scenario, &Read::of(&plain(&scenario)));
        check(&scenario, &Read::of(&inflate(&compressed(&scenario)).0));
    }
}

#[test]
fn a_half_frame_counts_as_nothing() {
    let torn = scenarios().into_iter().find(|scenario| scenario.name == "11-torn-last-line");
    let bytes = compressed(&torn.unwrap());
    let (text, at) = inflate(&bytes);
    assert!(at < bytes.len());
    assert!(!String::from_utf8(text).unwrap().contains("compaction/end"));
}

/// A prefix says what its whole lines say; serialising between any two of them changes nothing.
#[test]
fn a_plain_log_cut_at_any_byte_says_what_its_whole_lines_say() {
    for scenario in scenarios() {
        let bytes = plain(&scenario);
        let mut carried = Read::new();
        let mut line_start = 0;
        for cut in 0..=bytes.len() {
            if cut > 0 && bytes[cut - 1] == b'\n' {
                carried.line(&bytes[line_start..cut - 1]);
                line_start = cut;
                let state = serde_json::to_string(&carried.state).unwrap();
                let facts = serde_json::to_string(&carried.facts).unwrap();
                let again = Read {
                    state: serde_json::from_str(&state).unwrap(),
                    facts: serde_json::from_str(&facts).unwrap(),
                };
                assert_eq!(again, carried, "{}", scenario.name);
                carried = again;
            }
            assert_eq!(Read::of(&bytes[..cut]), carried, "{} at {cut}", scenario.name);
        }
    }
}

#[test]
fn a_compressed_log_cut_at_any_byte_says_what_its_whole_frames_say() {
    for scenario in scenarios() {
        let bytes = compressed(&scenario);
        let mut whole = (Read::new(), 0);
        for cut in 0..=bytes.len() {
            let (text, at) = inflate(&bytes[..cut]);
            if at > whole.1 {
                whole = (Read::of(&text), at);
            }
            assert_eq!(frame_end(&bytes[..cut], at), FrameEnd::Incomplete);
            assert_eq!(Read::of(&text), whole.0, "{} at {cut}", scenario.name);
        }
    }
}

#[test]
fn a_fork_and_its_source_are_judged_apart() {
    let of = |name: &str| {
        let all = scenarios();
        Read::of(&plain(all.iter().find(|scenario| scenario.name == name).unwrap()))
    };
    let (parent, child) = (of("06-fork-parent"), of("06-fork-child"));
    assert_eq!(parent.verdict().bracket, Bracket::Open);
    assert_eq!(child.verdict().bracket, Bracket::Stale);
    assert_eq!(child.facts.fork_of.as_deref(), Some("s06-parent"));
    // The inherited turn is neither prompt nor token of the child.
    assert_eq!((child.facts.prompts.chosen(), child.facts.tokens.total()), (1, 1020));
    let marked = of("30-v4-fork-child");
    assert_eq!((marked.facts.prompts.chosen(), marked.facts.tokens.total()), (1, 1020));
    assert_eq!(marked.facts.first_activity_ms, Some(1_790_000_010_000));
}

/// A session whose writer died while compacting, in the order of its rows.
fn dead() -> Vec<Row> {
    let mut log = Log::create(None, 0);
    log.append("turn/start", json!({"turn": 1}), 1000);
    let source = json!({"kind": "user"});
    let content = json!([{"type": "text", "text": "write \"session/end-seed\""}]);
    log.append("user/message", json!({"source": source, "content": content}), 2000);
    log.append("turn/end", json!({"turn": 1, "reason": {"kind": "completed"}}), 3000);
    log.append("compaction/start", json!({"compactionId": "c1", "turn": null}), 4000);
    log.rows().to_vec()
}

fn read_log(log: &Log) -> Read {
    let header = json!({"type": "session", "version": 0, "id": "s", "createdAt": 1});
    Read::of(log.text(&header).as_bytes())
}

#[test]
fn an_open_start_in_the_seed_is_stale_in_the_new_lifecycle() {
    for log in [
        Log::resume(dead(), 5000),
        Log::configured_start(Some(dead()), 5000),
        Log::fork(&dead(), 2, 5000),
        Log::adopt(dead(), 5000),
        Log::create(Some(dead()), 5000),
    ] {
        let read = read_log(&log);
        let verdict = read.verdict();
        assert_eq!((verdict.bracket, verdict.decisive_seq), (Bracket::Stale, Some(3)));
        assert_eq!(verdict.end_seed_seq, Some(log.first_live_seq()));
        // The marker makes no message, turn or activity.
        assert_eq!(read.facts.last_activity_ms, Some(4000));
        assert_eq!(read.facts.turn, Turn::Closed);
    }
    let clipped = read_log(&Log::sub_agent_fork(&dead(), 5000)).verdict();
    assert_eq!((clipped.bracket, clipped.end_seed_seq), (Bracket::None, Some(3)));
}

#[test]
fn without_the_marker_the_same_start_is_open_and_a_new_one_is_open_again() {
    let text: String = dead().iter().map(Row::line).collect();
    assert_eq!(Read::of(text.as_bytes()).verdict().bracket, Bracket::Open);
    let mut resumed = Log::resume(dead(), 5000);
    let seq = resumed.append("compaction/start", json!({"turn": null}), 6000);
    let verdict = read_log(&resumed).verdict();
    assert_eq!((verdict.bracket, verdict.decisive_seq), (Bracket::Open, Some(seq)));
    assert_eq!(verdict.orphans, 1);
}
