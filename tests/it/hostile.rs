//! What no agent writes and a disk still may hold: bounded memory and bounded work, no panic, and
//! one bad file never stands in the way of the others.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests may panic")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use serde_json::json;

use crate::family::{
    COPY, SESSION, THREAD, answer, damaged_frames, dsh_text, family, frames, user,
};
use crate::home::{Home, NOW, difference};
use lullwatch::mirror::{Limits, Mirror, Work};
use lullwatch::source::{Agent, Hint, Place, State, read_line};
use lullwatch::store::Store;

const PROJECTS: &str = ".claude/projects/-tmp-demo";

fn claude(session: &str) -> String {
    format!("{PROJECTS}/{session}.jsonl")
}

fn mirror(home: &Home, store: &mut Store) -> Mirror {
    Mirror::new(store, "h".to_owned(), home.roots()).unwrap()
}

fn read_all(mirror: &mut Mirror, store: &mut Store) -> Work {
    mirror.scan(store, NOW).unwrap();
    while mirror.step(store, NOW).unwrap() {}
    mirror.work()
}

fn number(home: &Home, sql: &str) -> i64 {
    home.query(sql).trim().parse().unwrap()
}

#[test]
fn what_only_looks_like_a_transcript_is_passed_over() {
    let home = Home::new();
    let good = home.put(&claude(SESSION), user(SESSION, 1, "hi").as_bytes());
    let folder = good.parent().unwrap();
    let id = |n: u32| folder.join(format!("{n:08}-6919-4be1-ac4b-9de9d22c854c.jsonl"));
    fs::write(id(1), b"").unwrap();
    fs::create_dir(id(2)).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, id(3), rustix::fs::Mode::RUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(id(4)).ok();
    std::os::unix::fs::symlink("/nowhere", id(5)).unwrap();
    std::os::unix::fs::symlink("/dev/zero", id(6)).unwrap();
    std::os::unix::fs::symlink(id(7), id(7)).unwrap();
    fs::write(folder.join(std::ffi::OsStr::from_bytes(b"\xff\xfe.jsonl")), b"{}\n").unwrap();
    fs::write(folder.join("a\nb.jsonl"), b"{}\n").unwrap();
    let odd = folder.parent().unwrap().join(std::ffi::OsStr::from_bytes(b"odd\xff\n"));
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join(format!("{COPY}.jsonl")), user(COPY, 2, "odd place")).unwrap();
    let mirror = home.pass();
    assert_eq!(mirror.work().files, 3, "the good one, the empty one, the one in an odd folder");
    assert_eq!(number(&home, "SELECT count(*) FROM sessions WHERE last_activity_ms > 0"), 2);
    let blind: Vec<&Path> = mirror.blind().map(|(path, _)| path).collect();
    assert_eq!(blind, [id(7)], "what lies behind a loop nobody knows");
}

#[test]
fn a_folder_behind_a_loop_of_links_is_not_seen_to_be_empty() {
    let home = Home::new();
    let real = home.put(&format!("real/{SESSION}.jsonl"), user(SESSION, 1, "hi").as_bytes());
    let link = home.home().join(PROJECTS);
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(real.parent().unwrap(), &link).unwrap();
    home.pass();
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&link, &link).unwrap(); // ELOOP, which even root gets
    let mirror = home.pass();
    assert_eq!(home.query("SELECT transcript FROM sessions").trim(), "present");
    assert_eq!(mirror.unobserved(&mut home.store()).unwrap().len(), 1);
}

/// A child process's peak of resident memory, MiB, and its counters.
fn once(home: &Home) -> (u64, String) {
    let (_, errors) = once_with(home, &[]);
    let peak = errors.lines().find_map(|line| line.strip_prefix("peak_kb="));
    (peak.map_or(0, |kb| kb.parse::<u64>().unwrap() / 1024), errors)
}

/// The JSON of the program, with more arguments, and its standard error.
fn once_with(home: &Home, arguments: &[&str]) -> (serde_json::Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_lullwatch"))
        .args(arguments)
        .args(["--once", "--json", "--stats", "--db"])
        .arg(home.home().join("own/x.db"))
        .env_clear()
        .env("HOME", home.home())
        .env("XDG_STATE_HOME", home.home().join("own"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    (serde_json::from_slice(&output.stdout).unwrap(), errors)
}

#[test]
fn giant_lines_and_bombs_are_read_in_bounded_memory() {
    let home = Home::new();
    let mut long = Vec::from("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"");
    long.resize(100 << 20, b'x');
    long.extend_from_slice(b"\"},\"uuid\":\"u1\",\"timestamp\":\"2026-11-30T08:00:00.000Z\"}\n");
    home.put(&claude(SESSION), &long);
    long.truncate(30 << 20); // no end
    home.put(&claude(COPY), &long);
    drop(long);
    // A million blocks in one record.
    let mut blocks =
        String::from("{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[");
    while blocks.len() < 15 << 20 {
        blocks += "{\"type\":\"text\",\"text\":\"a\"},";
    }
    blocks += "{}]},\"uuid\":\"u\",\"timestamp\":\"2026-11-30T08:00:00.000Z\"}\n";
    home.put(&claude("aaaa2589-6919-4be1-ac4b-9de9d22c854c"), blocks.as_bytes());
    drop(blocks);
    let bomb = zstd::stream::encode_all(std::io::repeat(b'x').take(400 << 20), 1).unwrap();
    home.put(".dsh/sessions/--tmp--/bomb/session.jsonl.zstd", &bomb);
    let lines = "{\"type\":\"x\"}\n".repeat(150_000);
    let dense = zstd::stream::encode_all(lines.as_bytes(), 3).unwrap();
    home.put(".dsh/sessions/--tmp--/dense/session.jsonl.zstd", &dense);
    home.put(&format!(".codex/sessions/rollout-2026-11-30T08-10-00-{THREAD}.jsonl.zst"), &bomb);
    let (peak_mb, errors) = once(&home);
    println!("{peak_mb} MiB at the most");
    assert!((1..256).contains(&peak_mb), "{peak_mb} MiB\n{errors}");
    assert!(errors.contains("bomb"), "it is said: {errors}");
}

#[test]
fn the_unfinished_line_is_not_read_again_at_every_look() {
    let home = Home::new();
    let path = home.put(&claude(SESSION), user(SESSION, 1, "hi").as_bytes());
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"type\":\"user\",\"message\":\"").unwrap();
    let mut store = home.store();
    let mut mirror = mirror(&home, &mut store);
    file.set_len(64 << 20).unwrap();
    let first = read_all(&mut mirror, &mut store);
    for look in 1..5_u64 {
        file.set_len((64 << 20) + look * 4096).unwrap();
        let work = read_all(&mut mirror, &mut store);
        assert_eq!(work.bytes_parsed, first.bytes_parsed, "look {look}");
    }
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(format!("\n{}", user(SESSION, 2, "after")).as_bytes()).unwrap();
    read_all(&mut mirror, &mut store);
    assert!(home.query("SELECT facts FROM sessions").contains(r#""prompts":{"primary":2"#));
}

#[test]
fn two_files_with_giant_lines_do_not_hinder_each_other_for_ever() {
    let home = Home::new();
    for session in [SESSION, COPY] {
        let text = user(session, 1, &"x".repeat(4_000)) + &user(session, 2, "next");
        home.put(&claude(session), text.as_bytes());
    }
    let mut store = home.store();
    let limits = Limits {
        chunk_bytes: 64,
        step_bytes: 128,
        turn_bytes: 1_000,
        step_files: 1,
        ..Limits::default()
    };
    let mut mirror = mirror(&home, &mut store).with_limits(limits);
    mirror.scan(&mut store, NOW).unwrap();
    let steps = (0..1_000).take_while(|_| mirror.step(&mut store, NOW).unwrap()).count();
    assert!(steps < 1_000);
    assert_eq!(number(&home, "SELECT count(*) FROM messages"), 4);
}

#[test]
fn facts_and_state_stay_small_whatever_a_file_repeats() {
    let home = Home::new();
    let big = "y".repeat(3_000);
    let mut text = user(SESSION, 1, "hi");
    let mut rollout = String::new();
    let mut log = dsh_text("session-1", "hi");
    for n in 0..1_200 {
        let _ = writeln!(
            text,
            r#"{{"type":"assistant","message":{{"id":"m{n}{big}","model":"{big}{n}","content":[{{"type":"tool_use","id":"t{n}{big}","name":"{big}","input":{{}}}}],"stop_reason":"tool_use","usage":{{"output_tokens":1}}}},"requestId":"{big}","uuid":"x{n}{big}","gitBranch":"{big}{n}","version":"{n}{big}","cwd":"{big}{n}","timestamp":"2026-11-30T08:00:00.000Z","sessionId":"{SESSION}"}}
{{"type":"kind{n}{big}","uuid":"k{n}"}}
{{"type":"summary","summary":"{big}{n}","leafUuid":"no{n}{big}"}}
{{"type":"custom-title","customTitle":"{n}{big}","sessionId":"{SESSION}"}}"#
        );
        let _ = writeln!(
            rollout,
            r#"{{"timestamp":"2026-11-30T08:10:00.000Z","type":"response_item","payload":{{"type":"function_call","name":"{big}","arguments":"{{}}","call_id":"c{n}{big}"}}}}
{{"timestamp":"2026-11-30T08:10:00.000Z","type":"turn_context","payload":{{"cwd":"{big}","model":"{big}{n}"}}}}
{{"timestamp":"2026-11-30T08:10:00.000Z","type":"event_msg","payload":{{"type":"task_started","turn_id":"t{n}{big}"}}}}
{{"timestamp":"2026-11-30T08:10:00.000Z","type":"event_msg","payload":{{"type":"error","message":"{big}"}}}}
{{"timestamp":"2026-11-30T08:10:00.000Z","type":"k{n}{big}","payload":{{}}}}"#
        );
        let _ = writeln!(
            log,
            r#"{{"type":"approval/asked","seq":{},"time":1796028248000,"data":{{"id":"a{n}{big}","approvalId":"b{n}{big}"}}}}
{{"type":"compaction/start","seq":{},"time":1796028248000,"data":{{"compactionId":"c{n}{big}","turn":{n},"sourceCommandId":"{big}"}}}}
{{"type":"zz/{n}{big}","seq":{},"time":1796028248000,"data":{{}}}}
{{"type":"session/title","seq":{},"time":1796028248000,"data":{{"title":"{big}{n}"}}}}"#,
            10 + n * 4,
            11 + n * 4,
            12 + n * 4,
            13 + n * 4
        );
    }
    home.put(&claude(SESSION), text.as_bytes());
    home.put(
        &format!(".codex/sessions/2026/11/30/rollout-2026-11-30T08-10-00-{THREAD}.jsonl"),
        rollout.as_bytes(),
    );
    home.put(".dsh/sessions/--tmp--/session-1/session.jsonl", log.as_bytes());
    home.pass();
    for sql in [
        "SELECT agent, length(facts) FROM sessions ORDER BY 2 DESC LIMIT 1",
        "SELECT agent, length(state) FROM source_files ORDER BY 2 DESC LIMIT 1",
        "SELECT kind, length(text) FROM titles ORDER BY 2 DESC LIMIT 1",
        "SELECT kind, max(length(text), coalesce(length(call), 0), coalesce(length(name), 0))
            FROM messages ORDER BY 2 DESC LIMIT 1",
    ] {
        let row = home.query(sql);
        let length: usize = row.trim().rsplit('|').next().unwrap().parse().unwrap();
        assert!(length < 64 << 10, "{sql}: {row}");
    }
}

#[test]
fn numbers_and_stamps_out_of_range_break_no_pass() {
    let home = Home::new();
    let mut text = user(SESSION, 1, "hi");
    for (n, tokens) in [(1, "9223372036854775807"), (2, "9223372036854775807"), (3, "1e300")] {
        text += &answer(SESSION, n, "x").replace(
            &format!("\"output_tokens\":{n}"),
            &format!("\"output_tokens\":{tokens},\"x\":-9223372036854775808"),
        );
        text += &answer(SESSION, n + 10, "x").replace("\"input_tokens\":3", "\"input_tokens\":-5");
    }
    for stamp in [
        "9999-12-31T23:59:59.999Z",
        "0000-01-01T00:00:00Z",
        "-009999-01-01T00:00:00Z",
        "1970-01-01T00:00:00.000Z",
        "2026-11-30T08:01:00.000Zjunk",
        "99999999999999999999",
    ] {
        text += &user(SESSION, 40, "odd").replace("2026-11-30T08:40:00.000Z", stamp);
    }
    home.put(&claude(SESSION), text.as_bytes());
    let mut log = dsh_text("session-1", "hi");
    for number in ["9223372036854775807", "-9223372036854775808", "18446744073709551615", "1e400"] {
        let _ = writeln!(
            log,
            r#"{{"type":"assistant/message","seq":{number},"time":{number},"data":{{"turn":{number},"step":{number},"message":{{"id":"a","role":"assistant","content":[]}},"usage":{{"inputTokens":{number},"outputTokens":{number}}}}}}}
{{"type":"text-chunks","seq0":{number},"time0":{number},"data":{{"turn":1,"step":1,"index":0,"dt":[{number}],"texts":["a"]}}}}
{{"type":"compaction/start","seq":{number},"time":{number},"data":{{"compactionId":"c","turn":{number}}}}}"#
        );
    }
    home.put(".dsh/sessions/--tmp--/session-1/session.jsonl", log.as_bytes());
    let mut rollout = String::new();
    for number in ["9223372036854775807", "-9223372036854775808", "18446744073709551615", "5"] {
        let _ = writeln!(
            rollout,
            r#"{{"timestamp":"2026-11-30T08:10:00.000Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{number},"cached_input_tokens":{number},"output_tokens":{number},"total_tokens":{number}}},"last_token_usage":{{"total_tokens":{number}}},"model_context_window":{number}}}}}}}"#
        );
    }
    home.put(
        &format!(".codex/sessions/2026/11/30/rollout-2026-11-30T08-10-00-{THREAD}.jsonl"),
        rollout.as_bytes(),
    );
    let mirror = home.pass();
    assert_eq!(mirror.blind().count(), 0);
    assert_eq!(number(&home, "SELECT count(*) FROM sessions"), 3);
    let (_, errors) = once(&home);
    assert!(errors.contains("files=3"), "{errors}");
}

#[test]
fn deep_nesting_and_endless_openers_end() {
    let home = Home::new();
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let mut text = user(SESSION, 1, "before");
    let _ = writeln!(text, r#"{{"type":"user","message":{{"role":"user","content":{deep}}}}}"#);
    let _ = writeln!(text, "{}", "{\"a\":".repeat(100_000));
    let _ = writeln!(text, "{}", "{\"type\":\"".repeat((15 << 20) / 9));
    let _ =
        writeln!(text, "{}{}", "\0".repeat(1 << 20), user(SESSION, 2, "behind NULs").trim_end());
    text += &user(SESSION, 3, "after");
    home.put(&claude(SESSION), text.as_bytes());
    home.pass();
    let facts = home.query("SELECT facts FROM sessions");
    assert!(facts.contains(r#""last_activity_ms":1796025780000"#), "{facts}");
}

#[test]
fn a_small_log_with_any_byte_broken_is_read_around_the_damage() {
    let text = dsh_text("session-1", "hi");
    let whole = frames(&text);
    let rows = text.lines().count();
    let home = Home::new();
    let place = |n: usize| format!(".dsh/sessions/--tmp--/s{n}/session.jsonl.zstd");
    for at in 0..whole.len() {
        let mut broken = whole.clone();
        broken[at] ^= 0xff;
        home.put(&place(at), &broken);
    }
    let mirror = home.pass();
    assert_eq!(mirror.blind().count(), 0);
    let logs = usize::try_from(number(&home, "SELECT count(*) FROM source_files"));
    assert_eq!(logs, Ok(whole.len()));
    // Where a frame's length still holds, only that frame is lost.
    let most = usize::try_from(number(&home, "SELECT max(damaged) FROM source_files")).unwrap();
    assert!((1..=rows).contains(&most), "{most}");
    let same = home.dump();
    home.pass();
    assert!(home.dump() == same, "another look finds nothing new");
}

#[test]
fn damage_counts_once_however_it_is_read() {
    let packed = damaged_frames(&dsh_text("session-2", "broken"));
    let place = ".dsh/sessions/--tmp--/session-2/session.jsonl.zstd";
    let read = |cuts: &[usize]| {
        let home = Home::new();
        for cut in cuts {
            home.put(place, &packed[..*cut]);
            home.pass();
        }
        home.dump().replace(&home.home().display().to_string(), "~")
    };
    let fresh = read(&[packed.len()]);
    for cut in (1..packed.len()).step_by(5) {
        assert!(read(&[cut, packed.len()]) == fresh, "cut at {cut}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_broken_counts_the_same_however_it_is_read(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let mut packed = frames(&dsh_text("session-2", "broken"));
        for (at, mask) in &flips {
            let at = at.index(packed.len());
            packed[at] ^= mask;
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(packed.len())).collect();
        cuts.sort_unstable();
        cuts.push(packed.len());
        let place = ".dsh/sessions/--tmp--/session-2/session.jsonl.zstd";
        let read = |cuts: &[usize]| {
            let home = Home::new();
            for cut in cuts {
                home.put(place, &packed[..*cut]);
                home.pass();
            }
            home.dump().replace(&home.home().display().to_string(), "~")
        };
        let (fresh, grown) = (read(&[packed.len()]), read(&cuts));
        prop_assert!(grown == fresh, "{}", difference(&grown, &fresh));
    }
}

#[test]
fn sub_agents_in_circles_and_in_thousands_end() {
    let home = Home::new();
    let agent = |id: &str, parent: &str, n: u32| {
        user(parent, n, "task")
            .replace(r#""isSidechain":false"#, &format!(r#""isSidechain":true,"agentId":"{id}""#))
    };
    home.put(&claude(SESSION), user(SESSION, 1, "hi").as_bytes());
    let below = |parent: &str, id: &str| format!("{PROJECTS}/{parent}/subagents/agent-{id}.jsonl");
    // Itself, and two that name each other.
    home.put(&below(SESSION, SESSION), agent(SESSION, SESSION, 2).as_bytes());
    home.put(&below(COPY, THREAD), agent(THREAD, COPY, 3).as_bytes());
    home.put(&below(THREAD, COPY), agent(COPY, THREAD, 4).as_bytes());
    for n in 0..1_000 {
        let id = format!("a{n}");
        home.put(&below(SESSION, &id), agent(&id, SESSION, 5 + n % 50).as_bytes());
    }
    home.pass();
    assert_eq!(number(&home, "SELECT count(*) FROM sessions"), 1_004);
    let clock = "SELECT (last_activity_ms - 1796025600000) / 60000 FROM sessions
        WHERE native_id = parent_native_id OR parent_native_id = '' ORDER BY 1";
    assert_eq!(home.query(clock), "54\n54\n");
    let (_, errors) = once(&home);
    assert!(errors.contains("files=1004"), "{errors}");
    // Each is listed once: of the circle the first stands on top, without a parent.
    let listed = |more: &[&str]| once_with(&home, more).0["sessions"].as_array().unwrap().clone();
    let all = listed(&["--children"]);
    let ids: BTreeSet<String> = all.iter().map(|session| session["id"].to_string()).collect();
    assert_eq!((all.len(), ids.len()), (1_004, 1_004));
    let top = listed(&[]);
    assert_eq!(top.len(), 2, "{top:?}");
    let head = top.iter().find(|session| session["kind"] == "subagent").unwrap();
    assert_eq!((&head["parent_native_id"], &head["children"]), (&json!(null), &json!(1)));
    assert_eq!(head["notices"][0]["code"], "parent_circle");
}

/// Lines of the three agents, to be broken.
fn samples() -> Vec<(Agent, Hint, Vec<u8>)> {
    let mut samples = Vec::new();
    for script in family() {
        let path = script.places[0].clone();
        let (agent, place, stem) = if path.contains("subagents") {
            (Agent::Claude, Place::SubAgent, "agent-a1")
        } else if path.starts_with(".claude") {
            (Agent::Claude, Place::Transcript, SESSION)
        } else if path.contains("index") {
            (Agent::Codex, Place::SessionIndex, "session_index")
        } else if path.starts_with(".codex") {
            (Agent::Codex, Place::Transcript, "rollout-2026-11-30T08-10-00")
        } else {
            (Agent::Dsh, Place::Transcript, "session")
        };
        if path.ends_with("zstd") || path.ends_with("meta.json") {
            continue;
        }
        let folder = Some("session-1".to_owned());
        let hint = Hint { place, stem: stem.to_owned(), folder, named_ms: None };
        samples.push((agent, hint, script.texts[0].clone()));
    }
    samples
}

#[derive(Debug, Clone)]
enum Mutation {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index, usize),
    Insert(prop::sample::Index, Vec<u8>),
    Splice(prop::sample::Index, prop::sample::Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<prop::sample::Index>;
    let words = prop::sample::select(vec![
        &b"\0\0\0"[..],
        b"}{",
        b"\"",
        b"\\",
        b"\\ud800",
        b"\xff",
        b"null",
        b"-1",
        b"1e999",
        b"[",
        b"{\"type\":\"",
        b"99999999999999999999",
        b"\n",
        b",",
        b"{}",
        b"\xe2\x80\xae",
    ]);
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Flip(at, byte)),
        (at(), 1_usize..200).prop_map(|(at, bytes)| Mutation::Cut(at, bytes)),
        (at(), words).prop_map(|(at, word)| Mutation::Insert(at, word.to_vec())),
        (at(), at(), 1_usize..200).prop_map(|(at, from, bytes)| Mutation::Splice(at, from, bytes)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("LULLWATCH_CASES").map_or(400, |cases| cases.parse().unwrap()),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Each case is a whole file of some 10 to 30 broken lines, for each agent.
    #[test]
    fn no_broken_line_makes_an_adapter_fail(
        mutations in prop::collection::vec(mutation(), 1..8),
    ) {
        for (agent, hint, text) in samples() {
            let mut bytes = text;
            for mutation in &mutations {
                match mutation {
                    Mutation::Flip(at, byte) if !bytes.is_empty() => {
                        let at = at.index(bytes.len());
                        bytes[at] = *byte;
                    }
                    Mutation::Flip(..) => {}
                    Mutation::Cut(at, length) => {
                        let at = at.index(bytes.len() + 1);
                        let to = (at + length).min(bytes.len());
                        bytes.drain(at..to);
                    }
                    Mutation::Insert(at, word) => {
                        let at = at.index(bytes.len() + 1);
                        bytes.splice(at..at, word.iter().copied());
                    }
                    Mutation::Splice(at, from, length) => {
                        let (at, from) = (at.index(bytes.len() + 1), from.index(bytes.len() + 1));
                        let piece = bytes[from..(from + length).min(bytes.len())].to_vec();
                        bytes.splice(at..at, piece);
                    }
                }
            }
            let mut state = State::new(agent, &hint);
            let mut offset = 0;
            for line in bytes.split(|byte| *byte == b'\n') {
                let mut records = Vec::new();
                read_line(&mut state, line, offset, &mut records);
                let end = offset + line.len() as u64;
                for record in records {
                    prop_assert!(record.span.offset >= offset);
                    prop_assert!(record.span.offset + record.span.len <= end);
                }
                offset = end + 1;
            }
            let json = serde_json::to_string(&state).unwrap();
            prop_assert_eq!(serde_json::from_str::<State>(&json).unwrap(), state);
        }
    }
}
