//! The mirror on real files: what any order of reads, kills, moves and rewrites must not change.

use std::fs;
use std::io::Write;

use proptest::prelude::*;

use crate::home::{Home, NOW, difference};
use lullwatch::mirror::Mirror;

const SESSION: &str = "26f52589-6919-4be1-ac4b-9de9d22c854c";
const CLAUDE: &str = ".claude/projects/-tmp-demo/26f52589-6919-4be1-ac4b-9de9d22c854c.jsonl";
const CODEX: &str = ".codex/sessions/2026/11/30/rollout-2026-11-30T08-10-00-01a22b80-efc0-70bc-a6a2-339c6bb9adef.jsonl";
const DSH: &str = ".dsh/sessions/--tmp-demo--/session-1/session.jsonl";

fn claude_line(n: usize, text: &str) -> String {
    format!(
        r#"{{"parentUuid":null,"isSidechain":false,"type":"user","message":{{"role":"user","content":"{text}"}},"uuid":"u-{n}","timestamp":"2026-11-30T08:{n:02}:00.000Z","cwd":"/tmp/demo","sessionId":"{SESSION}","version":"2.1.270","gitBranch":"main"}}"#
    )
}

fn claude_answer(n: usize, text: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"msg_{n}","type":"message","role":"assistant","model":"claude-opus-5","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn","usage":{{"input_tokens":3,"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"output_tokens":{n}}}}},"requestId":"req_{n}","uuid":"a-{n}","timestamp":"2026-11-30T08:{n:02}:30.000Z","sessionId":"{SESSION}","version":"2.1.270"}}"#
    )
}

fn claude_text() -> Vec<u8> {
    let mut text = String::new();
    for n in 1..6 {
        text += &(claude_line(n, &format!("prompt {n} é")) + "\n");
        text += &(claude_answer(n, &format!("answer {n}")) + "\n");
    }
    text += "not json\n\n{\"type\":\"ai-title\",\"aiTitle\":\"T\",\"sessionId\":\"";
    text += SESSION;
    text += "\"}\n{\"type\":\"assistant\",\"cut";
    text += &(claude_line(9, "glued") + "\n");
    text.into_bytes()
}

fn codex_text() -> Vec<u8> {
    let id = "01a22b80-efc0-70bc-a6a2-339c6bb9adef";
    let turn = "01a22b80-efc0-7b2f-8dc8-e6f315882441";
    format!(
        r#"{{"timestamp":"2026-11-30T08:10:00.000Z","type":"session_meta","payload":{{"id":"{id}","timestamp":"2026-11-30T08:10:00.000Z","cwd":"/tmp/demo","originator":"codex_cli_rs","cli_version":"0.151.0","source":"cli","git":{{"branch":"main"}}}}}}
{{"timestamp":"2026-11-30T08:10:00.000Z","type":"event_msg","payload":{{"type":"task_started","turn_id":"{turn}","model_context_window":258400}}}}
{{"timestamp":"2026-11-30T08:10:01.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"Add a table"}}]}}}}
{{"timestamp":"2026-11-30T08:10:01.000Z","type":"event_msg","payload":{{"type":"user_message","message":"Add a table","images":[]}}}}
{{"timestamp":"2026-11-30T08:10:02.000Z","type":"response_item","payload":{{"type":"function_call","name":"exec_command","arguments":"{{}}","call_id":"call_1"}}}}
{{"timestamp":"2026-11-30T08:10:03.000Z","type":"response_item","payload":{{"type":"function_call_output","call_id":"call_1","output":"ok"}}}}
{{"timestamp":"2026-11-30T08:11:00.000Z","type":"event_msg","payload":{{"type":"agent_message","message":"Table added."}}}}
{{"timestamp":"2026-11-30T08:11:00.000Z","type":"compacted","payload":{{"message":"","replacement_history":[]}}}}
{{"timestamp":"2026-11-30T08:11:00.000Z","type":"event_msg","payload":{{"type":"context_compacted"}}}}
{{"timestamp":"2026-11-30T08:11:00.000Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":900,"cached_input_tokens":0,"output_tokens":100,"total_tokens":1000}},"last_token_usage":{{"total_tokens":1000}}}}}}}}
{{"timestamp":"2026-11-30T08:11:00.000Z","type":"event_msg","payload":{{"type":"task_complete","turn_id":"{turn}","last_agent_message":"Table added."}}}}
"#
    )
    .into_bytes()
}

fn dsh_text() -> Vec<u8> {
    r#"{"type":"session","version":0,"id":"session-1","createdAt":1796028240000,"cwd":"/tmp/demo","delegationDepth":0}
{"type":"turn/start","seq":0,"time":1796028241000,"data":{"turn":1}}
{"type":"user/message","seq":1,"time":1796028242000,"data":{"id":"m1","role":"user","source":{"kind":"user"},"content":[{"type":"text","text":"hi"}]},"surfaceOp":"append"}
{"type":"text-chunks","seq0":2,"time0":1796028243000,"data":{"turn":1,"step":1,"index":0,"dt":[1,1],"texts":["a","b","c"]}}
{"type":"assistant/message","seq":5,"time":1796028244000,"data":{"turn":1,"step":1,"message":{"id":"a1","role":"assistant","source":{"kind":"model","provider":"p","model":"m"},"content":[{"type":"text","text":"hello"}]},"usage":{"inputTokens":9,"outputTokens":2}},"surfaceOp":"append"}
{"type":"compaction/start","seq":6,"time":1796028245000,"data":{"compactionId":"c1","turn":1}}
{"type":"session/end-seed","seq":7,"time":1796028246000,"data":{}}
{"type":"turn/end","seq":8,"time":1796028247000,"data":{"turn":1,"reason":{"kind":"completed"}}}
"#
    .as_bytes()
    .to_vec()
}

/// One frame for the header and one for each following row, as dsh writes them.
fn dsh_frames() -> Vec<u8> {
    let mut packed = Vec::new();
    for row in dsh_text().split_inclusive(|byte| *byte == b'\n') {
        packed.extend(zstd::stream::encode_all(row, 1).unwrap());
    }
    packed
}

fn fresh(rel: &str, bytes: &[u8]) -> String {
    let bed = Home::new();
    bed.put(rel, bytes);
    bed.pass();
    strip(&bed)
}

/// The dump without the scratch folder's name.
fn strip(bed: &Home) -> String {
    bed.dump().replace(&bed.home().display().to_string(), "~")
}

fn in_pieces(rel: &str, bytes: &[u8], cuts: &[usize]) -> String {
    let bed = Home::new();
    let path = bed.put(rel, b"");
    let mut at = 0;
    for cut in cuts.iter().copied().chain([bytes.len()]) {
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&bytes[at.min(cut)..cut]).unwrap();
        at = at.max(cut);
        bed.pass();
    }
    strip(&bed)
}

#[test]
fn a_transcript_read_byte_by_byte_gives_the_rows_of_one_read() {
    // Every byte of the smallest one; the property below covers the others by chance.
    let text = dsh_text();
    let cuts: Vec<usize> = (1..text.len()).step_by(7).collect();
    assert_eq!(in_pieces(DSH, &text, &cuts), fresh(DSH, &text));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_into_reads_with_a_restart_between_gives_the_rows_of_one_read(
        which in 0_usize..4,
        mut cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        let (rel, text) = match which {
            0 => (CLAUDE.to_owned(), claude_text()),
            1 => (CODEX.to_owned(), codex_text()),
            2 => (DSH.to_owned(), dsh_text()),
            _ => (format!("{DSH}.zstd"), dsh_frames()),
        };
        let mut cuts: Vec<usize> = cuts.drain(..).map(|cut| cut.index(text.len())).collect();
        cuts.sort_unstable();
        prop_assert_eq!(in_pieces(&rel, &text, &cuts), fresh(&rel, &text));
    }
}

#[test]
fn a_second_pass_over_unchanged_files_opens_parses_and_writes_nothing() {
    let bed = Home::new();
    bed.put(CLAUDE, &claude_text());
    bed.put(CODEX, &codex_text());
    bed.put(&format!("{DSH}.zstd"), &dsh_frames());
    bed.pass();
    let mut store = bed.store();
    let mut mirror = Mirror::new(&mut store, "h".to_owned(), bed.roots()).unwrap();
    mirror.scan(&mut store, NOW).unwrap();
    while mirror.step(&mut store, NOW).unwrap() {}
    let work = mirror.work();
    assert_eq!((work.files, work.files_opened, work.bytes_parsed), (3, 0, 0));
    assert_eq!((work.transactions, store.rows_written()), (0, 0));
}

#[test]
fn a_rollout_archived_or_packed_keeps_its_rows() {
    let bed = Home::new();
    let path = bed.put(CODEX, &codex_text());
    bed.pass();
    let before = facts(&bed);
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let archived = bed.put(&format!(".codex/archived_sessions/{name}"), b"");
    fs::rename(&path, &archived).unwrap();
    let mirror = bed.pass();
    assert_eq!(mirror.work().message_rows, 0, "nothing was read again");
    assert_eq!(facts(&bed), before);
    let packed = zstd::stream::encode_all(&codex_text()[..], 3).unwrap();
    bed.put(&format!(".codex/archived_sessions/{name}.zst"), &packed);
    fs::remove_file(&archived).unwrap();
    let mirror = bed.pass();
    assert_eq!(mirror.work().message_rows, 0, "nothing was read again");
    assert_eq!(facts(&bed), before);
    // Resumed: the plain file is there again, with the packed one beside it, and grows.
    let more = br#"{"timestamp":"2026-11-30T08:12:00.000Z","type":"event_msg","payload":{"type":"user_message","message":"more"}}"#;
    bed.put(CODEX, &[&codex_text()[..], more, b"\n"].concat());
    bed.pass();
    assert!(facts(&bed).contains(r#""prompts":{"primary":2"#), "{}", facts(&bed));
    assert_eq!(count(&bed, "sessions"), 1);
}

#[test]
fn a_packed_rollout_seen_empty_or_half_written_or_broken_is_whole_in_the_end() {
    let name = CODEX.rsplit('/').next().unwrap();
    let place = format!(".codex/archived_sessions/{name}.zst");
    // Much of it, and barely compressed, so that parts of it can be read.
    let noise = "{\"type\":\"event_msg\",\"payload\":{\"type\":\"x\"}}\n".repeat(100);
    let text = [&codex_text()[..], noise.as_bytes()].concat();
    let packed = zstd::stream::encode_all(&text[..], 1).unwrap();
    let whole = Home::new();
    whole.put(&place, &packed);
    whole.pass();
    let mut broken = packed.clone();
    broken[packed.len() / 3] ^= 0xff;
    let mut before: Vec<Vec<u8>> =
        (0..packed.len()).step_by(7).map(|cut| packed[..cut].to_vec()).collect();
    before.push(broken);
    for first in before {
        let bed = Home::new();
        bed.put(&place, &first);
        bed.pass();
        assert_eq!(bed.pass().work().bytes_parsed, 0, "what has not changed is not read again");
        bed.put(&place, &packed);
        bed.pass();
        let flaws = bed.query("SELECT sum(skipped_lines), sum(damaged) FROM source_files");
        assert_eq!((flaws.trim(), facts(&bed)), ("0|0", facts(&whole)), "{} bytes", first.len());
        bed.pass();
        assert_eq!(facts(&bed), facts(&whole), "and stays so");
    }
}

fn facts(bed: &Home) -> String {
    bed.query("SELECT facts FROM sessions ORDER BY id")
}

fn count(bed: &Home, table: &str) -> usize {
    bed.query(&format!("SELECT count(*) FROM {table}")).trim().parse().unwrap()
}

#[test]
fn a_rewritten_file_leaves_no_row_of_its_old_content() {
    let bed = Home::new();
    let path = bed.put(CLAUDE, &claude_text());
    bed.pass();
    let other = claude_line(1, "fresh start") + "\n" + &claude_answer(2, "x") + "\n";
    fs::write(&path, &other).unwrap();
    bed.pass();
    let again = Home::new();
    again.put(CLAUDE, other.as_bytes());
    again.pass();
    assert_eq!(strip(&bed), strip(&again));
    assert_eq!(count(&bed, "messages"), count(&again, "messages"));
    assert_eq!(count(&bed, "source_files"), 1);
}

#[test]
fn the_same_size_and_inode_with_other_bytes_is_another_content() {
    let bed = Home::new();
    let path = bed.put(CLAUDE, (claude_line(1, "abc") + "\n").as_bytes());
    bed.pass();
    let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all((claude_line(1, "abd") + "\n").as_bytes()).unwrap();
    drop(file);
    bed.pass();
    assert!(facts(&bed).contains("abd"), "{}", facts(&bed));
}

#[test]
fn a_deleted_file_keeps_its_rows_and_is_missing() {
    let bed = Home::new();
    let path = bed.put(CLAUDE, &claude_text());
    bed.pass();
    fs::remove_file(&path).unwrap();
    let mirror = bed.pass();
    assert_eq!(bed.query("SELECT transcript FROM sessions").trim(), "missing");
    let mut store = bed.store();
    assert!(mirror.unobserved(&mut store).unwrap().is_empty(), "absence was seen");
    bed.put(CLAUDE, &claude_text());
    bed.pass();
    assert_eq!(bed.query("SELECT transcript FROM sessions").trim(), "present");
}

#[test]
fn a_root_that_vanishes_is_not_the_end_of_its_sessions() {
    let bed = Home::new();
    bed.put(CLAUDE, &claude_text());
    bed.pass();
    fs::rename(bed.home().join(".claude"), bed.home().join("away")).unwrap();
    let mirror = bed.pass();
    let mut store = bed.store();
    assert_eq!(mirror.unobserved(&mut store).unwrap().len(), 1);
    assert_eq!(bed.query("SELECT transcript FROM sessions").trim(), "present");
}

#[test]
fn one_session_in_two_folders_counts_each_record_once() {
    let bed = Home::new();
    bed.put(CLAUDE, &claude_text());
    bed.pass();
    let alone = facts(&bed);
    let more = [&claude_text()[..], claude_line(10, "later").as_bytes(), b"\n"].concat();
    bed.put(&CLAUDE.replace("-tmp-demo", "-tmp-other"), &more);
    bed.pass();
    let both = facts(&bed);
    assert!(alone.contains(r#""prompts":{"primary":6"#), "{alone}");
    assert!(both.contains(r#""prompts":{"primary":7"#), "{both}");
    assert!(both.contains(r#""answers":{"primary":5"#), "{both}");
    assert!(both.contains(r#""output":15"#), "tokens of a key count once: {both}");
}

/// The counts of the only session, and how many of its files tell what another has told.
fn told(bed: &Home) -> (String, String) {
    let body = |what: &str| format!("json_extract(facts, '$.{what}')");
    let [prompts, answers, calls] = ["prompts", "answers", "tool_calls"].map(body);
    let counts = bed.query(&format!("SELECT {prompts}, {answers}, {calls} FROM sessions"));
    let repeats = bed.query("SELECT count(*) FROM facts WHERE json_extract(body, '$.repeats')");
    (counts, repeats)
}

#[test]
fn two_rollouts_of_a_thread_that_repeat_each_other_count_each_record_once() {
    let more = r#"{"timestamp":"2026-11-30T08:12:00.000Z","type":"event_msg","payload":{"type":"user_message","message":"More","images":[]}}"#;
    let longer = [&codex_text()[..], more.as_bytes(), b"\n"].concat();
    let later = CODEX.replace("rollout-2026-11-30T08-10-00", "rollout-2026-11-30T09-10-00");
    for (first, second) in [(CODEX, later.as_str()), (later.as_str(), CODEX)] {
        let bed = Home::new();
        bed.put(first, &codex_text());
        bed.pass();
        bed.put(second, &longer);
        bed.pass();
        let once =
            r#"{"primary":2,"fallback":0}|{"primary":1,"fallback":0}|{"primary":1,"fallback":0}"#;
        assert_eq!(told(&bed), (format!("{once}\n"), "1\n".to_owned()));
    }
}

#[test]
fn what_only_the_models_side_tells_counts_once_too() {
    let only = String::from_utf8(codex_text()).unwrap().replace(
        r#""type":"event_msg","payload":{"type":"agent_message","message":"Table added."}"#,
        r#""type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Table added."}]}"#,
    );
    let bed = Home::new();
    bed.put(CODEX, only.as_bytes());
    bed.put(&CODEX.replace("T08-10-00", "T09-10-00"), only.as_bytes());
    bed.pass();
    let once =
        r#"{"primary":1,"fallback":0}|{"primary":1,"fallback":0}|{"primary":1,"fallback":0}"#;
    assert_eq!(told(&bed).0, format!("{once}\n"));
}

#[test]
fn a_rollout_that_goes_on_with_another_is_added_without_a_look_at_its_rows() {
    let bed = Home::new();
    bed.put(CODEX, &codex_text());
    let goes_on = String::from_utf8(codex_text()).unwrap();
    let goes_on = goes_on.replace("01a22b80-efc0-7b2f-8dc8-e6f315882441", "turn-2");
    let goes_on = goes_on.replace("T08:1", "T09:1");
    bed.put(
        &CODEX.replace(".jsonl", "_01a22b9c-6700-7ab9-9c7e-edde36149b1f.jsonl"),
        goes_on.as_bytes(),
    );
    bed.pass();
    let twice =
        r#"{"primary":2,"fallback":0}|{"primary":2,"fallback":0}|{"primary":2,"fallback":0}"#;
    assert_eq!(told(&bed), (format!("{twice}\n"), "0\n".to_owned()));
}

#[test]
fn a_rollout_and_its_copies_count_once_whichever_is_read_first() {
    let rollout = codex_text();
    let [before, _] = CODEX.split(".jsonl").collect::<Vec<_>>()[..] else { panic!() };
    let synced = format!("{before}.sync-conflict-20261130-080000-ABCDEFG.jsonl");
    let bed = Home::new();
    bed.put(CODEX, &rollout);
    bed.pass();
    let alone = facts(&bed);
    bed.put(&synced, &rollout);
    bed.put(&format!("{before} (conflicted copy).jsonl"), &[&rollout[..], &rollout[..]].concat());
    let name = CODEX.rsplit('/').next().unwrap();
    bed.put(&format!(".codex/archived_sessions/{name}"), &rollout);
    bed.pass();
    assert_eq!(facts(&bed), alone);

    let bed = Home::new();
    let copy = bed.put(&synced, &rollout);
    bed.pass();
    assert_eq!(facts(&bed), alone, "a copy alone is the rollout");
    bed.put(CODEX, &rollout);
    bed.pass();
    assert_eq!(facts(&bed), alone);
    std::fs::remove_file(copy).unwrap();
    bed.pass();
    assert_eq!(facts(&bed), alone);
}

#[test]
fn tokens_that_stand_in_two_sessions_count_for_the_one_that_began_first() {
    let other = "ffff2589-6919-4be1-ac4b-9de9d22c854c";
    let copy = String::from_utf8(claude_text()).unwrap().replace(SESSION, other);
    let later = claude_answer(7, "own").replace(SESSION, other);
    let sum = |bed: &Home| {
        bed.query("SELECT native_id, facts ->> '$.tokens.output' FROM sessions ORDER BY native_id")
    };
    let mut sums = Vec::new();
    for order in [[0, 1], [1, 0]] {
        let bed = Home::new();
        for which in order {
            if which == 0 {
                bed.put(CLAUDE, &claude_text());
            } else {
                bed.put(&CLAUDE.replace(SESSION, other), format!("{copy}{later}\n").as_bytes());
            }
            bed.pass();
        }
        sums.push(sum(&bed));
    }
    assert_eq!(sums[0], format!("{SESSION}|15\n{other}|7\n"));
    assert_eq!(sums[0], sums[1], "the order of files does not matter");
}

#[test]
fn links_are_followed_once_and_loops_end() {
    let bed = Home::new();
    bed.put(CLAUDE, &claude_text());
    let projects = bed.home().join(".claude/projects");
    std::os::unix::fs::symlink(&projects, projects.join("-tmp-demo/loop")).unwrap();
    std::os::unix::fs::symlink(projects.join("-tmp-demo"), projects.join("-tmp-twin")).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        projects.join("-tmp-demo/ffffffff-6919-4be1-ac4b-9de9d22c854c.jsonl"),
        rustix::fs::Mode::RUSR,
    )
    .unwrap();
    bed.pass();
    assert_eq!((count(&bed, "sessions"), count(&bed, "source_files")), (1, 1));
}

#[test]
fn a_sub_agents_activity_climbs_to_its_session() {
    let bed = Home::new();
    let folder = CLAUDE.trim_end_matches(".jsonl");
    let child = claude_line(30, "task")
        .replace(r#""isSidechain":false"#, r#""isSidechain":true,"agentId":"a1""#);
    bed.put(&format!("{folder}/subagents/agent-a1.jsonl"), (child + "\n").as_bytes());
    bed.put(CLAUDE, &claude_text());
    bed.pass();
    let clocks = bed.query(
        "SELECT native_id, (last_activity_ms - 1796025600000) / 60000 FROM sessions ORDER BY 1",
    );
    assert_eq!(clocks, format!("{SESSION}|30\na1|30\n"));
}

#[test]
fn a_file_without_any_stamp_is_a_session_only_if_it_appeared_after_the_first_pass() {
    let bed = Home::new();
    let summary = |name: &str| {
        let path =
            bed.put(&CLAUDE.replace(SESSION, name), b"{\"type\":\"mode\",\"mode\":\"normal\"}\n");
        filetime(&path, NOW);
    };
    summary("aaaaaaaa-6919-4be1-ac4b-9de9d22c854c");
    bed.pass_at(NOW);
    summary("bbbbbbbb-6919-4be1-ac4b-9de9d22c854c");
    bed.put(
        &CLAUDE.replace(SESSION, "cccccccc-6919-4be1-ac4b-9de9d22c854c"),
        b"{\"type\":\"mode\"}\n",
    );
    bed.pass_at(NOW + 60_000);
    assert_eq!(
        bed.query("SELECT substr(native_id, 1, 1), own_clock_ms FROM sessions ORDER BY 1"),
        format!("a|\nb|\nc|{}\n", NOW + 60_000),
        "b was there already, although it was read late"
    );
}

fn filetime(path: &std::path::Path, at_ms: i64) {
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(at_ms.cast_unsigned());
    fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
}

/// A pass of that host's mirror over the same store, in which the same paths are other files.
fn pass_of(bed: &Home, host: &str) -> Mirror {
    let mut store = bed.store();
    let mut mirror = Mirror::new(&mut store, host.to_owned(), bed.roots()).unwrap();
    mirror.scan(&mut store, NOW).unwrap();
    while mirror.step(&mut store, NOW).unwrap() {}
    while mirror.tidy(&mut store).unwrap() {}
    mirror
}

#[test]
fn two_hosts_with_the_same_paths_stay_two() {
    use lullwatch::source::Agent;
    use lullwatch::store::{evidence, runs::links};
    let bed = Home::new();
    let path = bed.put(CLAUDE, &claude_text());
    bed.put(DSH, &dsh_text());
    bed.pass();
    // On the other host the same paths hold something else, titles addressed to the session too.
    let line = claude_line(1, "of another host") + "\n";
    let title = format!(r#"{{"type":"ai-title","aiTitle":"Theirs","sessionId":"{SESSION}"}}"#);
    bed.put(CLAUDE, (line + &title + "\n").as_bytes());
    pass_of(&bed, "other");
    let of = |host: &str, what: &str| {
        bed.query(&format!(
            "SELECT {what} FROM sessions WHERE agent = 'claude' AND host = '{host}'"
        ))
    };
    let prompts = "json_extract(facts, '$.prompts.primary'), json_extract(facts, '$.title')";
    assert_eq!((of("h", prompts), of("other", prompts)), ("6|T\n".into(), "1|Theirs\n".into()));
    assert_eq!(bed.query("SELECT count(*) FROM source_files WHERE live = 1"), "4\n");
    let mut store = bed.store();
    let host_of = |id: i64| bed.query(&format!("SELECT host FROM sessions WHERE id = {id}"));
    for host in ["h", "other"] {
        let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
        let mut folder = path.parent().unwrap().as_os_str().as_encoded_bytes().to_vec();
        folder.push(b'/');
        let found = store
            .read(|tx| {
                let claude = Agent::Claude.word();
                let at = evidence::session_at(tx, host, bytes)?.unwrap().0;
                let named = evidence::session_named(tx, host, claude, SESSION)?.unwrap().0;
                let inside = evidence::sessions_in(tx, host, &folder)?;
                Ok([vec![at, named], inside].concat())
            })
            .unwrap();
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|id| host_of(*id) == format!("{host}\n")), "{host}: {found:?}");
        let dsh = bed.home().join(".dsh/sessions/--tmp-demo--/session-1");
        let bytes = dsh.as_os_str().as_encoded_bytes();
        assert_eq!(store.read(|tx| links::in_folder(tx, host, bytes)).unwrap().len(), 1);
    }
    // What is gone here is not gone there, and the other one's pass has changed nothing of ours.
    fs::remove_file(&path).unwrap();
    pass_of(&bed, "other");
    assert_eq!(of("h", "transcript") + &of("other", "transcript"), "present\nmissing\n");
}

/// A sub-agent whose own file ends inside its turn, and the files that tell of its end.
mod returned {
    use super::*;
    use rstest::rstest;

    const PARENT: &str = "11111111-2222-4333-8444-555555555554";

    fn record(kind: &str, minute: u32, rest: &str) -> String {
        format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"{kind}-{minute}\",\"sessionId\":\"{PARENT}\",\
             \"timestamp\":\"2026-11-30T08:{minute:02}:00.000Z\",{rest}}}\n"
        )
    }

    fn prompt(minute: u32, text: &str) -> String {
        record("user", minute, &format!("\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}"))
    }

    fn notification(minute: u32, status: &str) -> String {
        let text =
            format!("<task-notification>\\n<task-id>a1</task-id>\\n<status>{status}</status>");
        prompt(minute, &text)
    }

    fn stage(parent: &str, child: &str) -> Home {
        let home = Home::new();
        home.put(&format!(".claude/projects/-tmp/{PARENT}.jsonl"), parent.as_bytes());
        let folder = format!(".claude/projects/-tmp/{PARENT}/subagents");
        home.put(&format!("{folder}/agent-a1.jsonl"), child.as_bytes());
        home
    }

    fn turn(home: &Home) -> String {
        home.query(
            "SELECT json_extract(facts, '$.turn') || ' ' ||
                 coalesce(json_extract(facts, '$.last_turn'), '-')
             FROM sessions WHERE native_id = 'a1'",
        )
    }

    #[rstest]
    #[case::completed("completed", "closed completed")]
    #[case::failed("failed", "closed error")]
    #[case::killed("killed", "closed aborted")]
    fn the_parents_word_ends_it(#[case] status: &str, #[case] want: &str) {
        let home = stage(&(prompt(1, "go") + &notification(5, status)), &prompt(2, "task"));
        home.pass();
        assert_eq!(turn(&home).trim(), want);
    }

    #[test]
    fn only_for_what_it_did_until_then() {
        let home = stage(&(prompt(1, "go") + &notification(5, "completed")), &prompt(6, "again"));
        home.pass();
        assert_eq!(turn(&home).trim(), "open -");
        let told = prompt(1, "go") + &notification(5, "completed") + &notification(7, "killed");
        home.put(&format!(".claude/projects/-tmp/{PARENT}.jsonl"), told.as_bytes());
        home.pass();
        assert_eq!(turn(&home).trim(), "closed aborted");
    }

    #[test]
    fn whichever_file_comes_first_and_until_the_word_is_gone() {
        let home = stage(&prompt(1, "go"), &prompt(2, "task"));
        home.pass();
        assert_eq!(turn(&home).trim(), "open -");
        let told = prompt(1, "go") + &notification(5, "completed");
        let path = format!(".claude/projects/-tmp/{PARENT}.jsonl");
        home.put(&path, told.as_bytes());
        home.pass();
        assert_eq!(turn(&home).trim(), "closed completed");
        home.put(&path, prompt(1, "rewritten").as_bytes());
        home.pass();
        assert_eq!(turn(&home).trim(), "open -");
    }

    #[test]
    fn its_meta_file_ends_it_whenever_it_worked() {
        let home = stage(&prompt(1, "go"), &prompt(2, "task"));
        let meta = format!(".claude/projects/-tmp/{PARENT}/subagents/agent-a1.meta.json");
        home.put(&meta, b"{\"description\":\"Look\",\"finished\":true}");
        home.pass();
        assert_eq!(turn(&home).trim(), "closed completed");
        home.put(&meta, b"{\"description\":\"Look again\"}");
        home.pass();
        assert_eq!(turn(&home).trim(), "open -");
    }
}

#[test]
fn what_has_grown_is_told_from_what_waits_and_from_what_was_only_touched() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let file = home.put(CODEX, &codex_text());
    let mut store = home.store();
    let mut mirror = Mirror::new(&mut store, "h".to_owned(), home.roots()).unwrap();
    let mut grown = || {
        let scanned = mirror.scan(&mut store, NOW).unwrap();
        while mirror.step(&mut store, NOW).unwrap() {}
        scanned.grown
    };
    let append = |text: &[u8]| {
        fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(text).unwrap();
    };
    assert_eq!(grown(), std::slice::from_ref(&file));
    for half in [&br#"{"timestamp":"#[..], &br#""2026"#[..]] {
        append(half);
        assert_eq!(grown(), std::slice::from_ref(&file));
        // The unfinished line waits, and is looked at by every scan.
        assert_eq!(grown().len(), 0);
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(grown().len(), 0);
    fs::hard_link(&file, home.home().join("backup")).unwrap();
    assert_eq!(grown().len(), 0);
    let other = home.put("other", &codex_text());
    fs::rename(other, &file).unwrap();
    assert_eq!(grown(), [file]);
}

#[test]
fn a_rewrite_that_keeps_size_and_both_ends_is_noticed() {
    for (place, text) in [(CLAUDE, claude_text()), (CODEX, codex_text())] {
        let text = String::from_utf8(text).unwrap();
        let (was, is) = if place == CLAUDE { ("prompt 3", "PROMPT 3") } else { ("exec_", "EXEC_") };
        let bed = Home::new();
        let path = bed.put(place, text.as_bytes());
        bed.pass();
        let rewritten = text.replace(was, is);
        assert!(rewritten != text && rewritten.len() == text.len());
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .write_all(rewritten.as_bytes())
            .unwrap();
        bed.pass();
        assert_eq!(difference(&strip(&bed), &fresh(place, rewritten.as_bytes())), "");
        // A change of its mode alone costs one reading and says nothing new.
        let before = strip(&bed);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
        fs::set_permissions(&path, mode).unwrap();
        bed.pass();
        assert_eq!(strip(&bed), before);
        assert_eq!(bed.pass().work().files_opened, 0);
    }
}
