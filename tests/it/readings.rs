//! A store that an older adapter filled: its files are read anew, and nobody is told news of it.

use std::fs;
use std::io::Write;
use std::time::Duration;

use lullwatch::delivery;
use lullwatch::lifecycle::Windows;
use lullwatch::mirror::{Limits, Mirror};
use lullwatch::reconcile::{self, Look, Options, Pass};
use lullwatch::source::Agent;
use lullwatch::store::Store;
use rusqlite::Connection;

use crate::bed::{DAY, MINUTE, T0, WINDOWS};
use crate::home::{Home, NOW};

const SESSION: &str = "26f52589-6919-4be1-ac4b-9de9d22c854c";
const CLAUDE: &str = ".claude/projects/-tmp-demo/26f52589-6919-4be1-ac4b-9de9d22c854c.jsonl";
const DSH: &str = ".dsh/sessions/--tmp-demo--/session-1/session.jsonl.zstd";

fn prompt(minute: usize) -> String {
    format!(
        r#"{{"type":"user","message":{{"role":"user","content":"prompt {minute}"}},"uuid":"u-{minute}","timestamp":"2026-11-30T08:{minute:02}:00.000Z","cwd":"/tmp/demo","sessionId":"{SESSION}","version":"2.1.270"}}
{{"type":"assistant","message":{{"id":"msg_{minute}","role":"assistant","model":"m","content":[{{"type":"text","text":"answer {minute}"}}],"stop_reason":"end_turn","usage":{{"input_tokens":3,"output_tokens":{minute}}}}},"requestId":"req_{minute}","uuid":"a-{minute}","timestamp":"2026-11-30T08:{minute:02}:30.000Z","sessionId":"{SESSION}","version":"2.1.270"}}
"#
    )
}

fn claude_text() -> String {
    (1..8).map(prompt).collect::<String>() + "{\"type\":\"assistant\",\"unfinished"
}

fn dsh_frames() -> Vec<u8> {
    let rows = r#"{"type":"session","version":0,"id":"session-1","createdAt":1796028240000,"cwd":"/tmp/demo","delegationDepth":0}
{"type":"turn/start","seq":0,"time":1796028241000,"data":{"turn":1}}
{"type":"user/message","seq":1,"time":1796028242000,"data":{"id":"m1","role":"user","source":{"kind":"user"},"content":[{"type":"text","text":"hi"}]},"surfaceOp":"append"}
{"type":"turn/end","seq":2,"time":1796028247000,"data":{"turn":1,"reason":{"kind":"completed"}}}
"#;
    let mut packed: Vec<u8> = rows
        .split_inclusive('\n')
        .flat_map(|row| zstd::stream::encode_all(row.as_bytes(), 1).unwrap())
        .collect();
    packed.extend(b"damage behind the last frame");
    packed
}

fn raw(bed: &Home, sql: &str) {
    #[expect(clippy::disallowed_methods, reason = "makes what an older program has left")]
    let connection = Connection::open(bed.db()).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    connection.execute_batch(sql).unwrap();
}

/// Makes of the store one that version 1 of the adapters filled, which took prompts for nothing.
fn filled_by_version_1(bed: &Home) {
    raw(
        bed,
        "UPDATE source_files SET reading = 1;
         DELETE FROM messages WHERE kind = 'prompt';
         DELETE FROM usage;
         UPDATE messages SET text = 'as version 1 read it';
         UPDATE facts SET body = json_remove(body, '$.prompts', '$.flaws', '$.cwd');
         UPDATE sessions SET facts = json_remove(facts, '$.prompts', '$.flaws', '$.cwd'),
             own_clock_ms = own_clock_ms - 120000, last_activity_ms = last_activity_ms - 120000;",
    );
}

fn tick(store: &mut Store, now_ms: i64) -> Pass {
    let windows = Windows { ..WINDOWS };
    reconcile::tick(store, &Look::default(), windows, now_ms, Options::default()).unwrap()
}

fn story(bed: &Home) -> String {
    bed.query(
        "SELECT coalesce(previous_status, 'none') || '>' || status FROM status_transitions
         ORDER BY id",
    )
}

#[test]
fn a_store_of_an_older_reading_becomes_what_a_fresh_one_is_and_then_rests() {
    assert!(Agent::ALL.iter().all(|agent| agent.reading_version() > 1));
    let bed = Home::new();
    bed.put(CLAUDE, claude_text().as_bytes());
    bed.put(DSH, &dsh_frames());
    bed.put(
        &format!(".claude/projects/-tmp-demo/{SESSION}/custom-title.json"),
        br#"{"customTitle":"T"}"#,
    );
    bed.pass();
    let fresh = bed.dump();
    filled_by_version_1(&bed);
    assert_ne!(bed.dump(), fresh);
    bed.pass();
    assert_eq!(crate::home::difference(&bed.dump(), &fresh), "");
    let generations =
        bed.query("SELECT live, agent, reading, count(*) FROM source_files GROUP BY 1, 2, 3");
    let [claude, dsh] = [Agent::Claude, Agent::Dsh].map(Agent::reading_version);
    assert_eq!(generations, format!("1|claude|{claude}|2\n1|dsh|{dsh}|1\n"));

    let mut store = bed.store();
    let mut mirror = Mirror::new(&mut store, "h".to_owned(), bed.roots()).unwrap();
    let before = store.rows_written();
    mirror.scan(&mut store, NOW + 1).unwrap();
    while mirror.step(&mut store, NOW + 1).unwrap() {}
    assert_eq!((store.rows_written() - before, mirror.work().files_opened), (0, 0));
}

#[test]
fn the_old_facts_stand_until_the_file_has_been_read_anew_to_its_end() {
    let bed = Home::new();
    bed.put(CLAUDE, claude_text().as_bytes());
    bed.pass();
    let fresh = bed.dump();
    filled_by_version_1(&bed);
    let old = bed.dump();
    let limits = Limits { turn_bytes: 1, ..Limits::with_step_bytes(700) };
    let mut bytes = 0;
    // Killed after every second step: what has been read anew so far is not read again.
    'restarts: loop {
        let mut store = bed.store();
        let mut mirror =
            Mirror::new(&mut store, "h".to_owned(), bed.roots()).unwrap().with_limits(limits);
        mirror.scan(&mut store, NOW).unwrap();
        for _ in 0..2 {
            let more = mirror.step(&mut store, NOW).unwrap();
            if !more {
                break 'restarts;
            }
            assert_eq!(crate::home::difference(&bed.dump(), &old), "");
            assert_eq!(mirror.unobserved(&mut store).unwrap().len(), 1);
        }
        bytes += mirror.work().bytes_parsed;
        assert!(bytes < 20_000, "it begins at the first byte again and again");
    }
    assert_eq!(crate::home::difference(&bed.dump(), &fresh), "");
    bed.pass();
    assert_eq!(bed.query("SELECT live FROM source_files"), "1\n");
}

#[test]
fn what_only_a_newer_reading_tells_is_no_news_and_what_follows_it_is() {
    let bed = Home::new();
    let path = bed.put(CLAUDE, (1..8).map(prompt).collect::<String>().as_bytes());
    bed.pass_at(T0);
    filled_by_version_1(&bed);
    let mut store = bed.store();
    tick(&mut store, T0);
    let ended = T0 + 3 * DAY;
    tick(&mut store, ended);
    drop(store);
    assert_eq!(story(&bed), "none>idle\nidle>completed\n");
    let pending = |store: &mut Store| {
        store.read(|tx| delivery::pending_count(tx, delivery::OPERATOR)).unwrap()
    };

    // The monitor was updated, and the agent had gone on in the meantime.
    let later = "2026-12-03T09:30";
    let line = prompt(9).replace("2026-11-30T08:09", later);
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(line.as_bytes()).unwrap();
    let mut store = bed.store();
    let before = pending(&mut store);
    let mut mirror = Mirror::new(&mut store, "h".to_owned(), bed.roots()).unwrap();
    let now = ended + 90 * MINUTE;
    mirror.scan(&mut store, now).unwrap();
    assert!(
        mirror.step(&mut store, now).unwrap(),
        "what was there before and what is news are two"
    );
    let newer = bed.query("SELECT last_activity_ms - ended_ms > 0 FROM sessions");
    assert_eq!(newer, "1\n", "the newer reading tells an activity behind the end");
    tick(&mut store, now);
    assert_eq!(story(&bed), "none>idle\nidle>completed\n");
    assert_eq!(pending(&mut store), before);

    while mirror.step(&mut store, now).unwrap() {}
    tick(&mut store, now);
    assert!(story(&bed).starts_with("none>idle\nidle>completed\ncompleted>running\n"));
    assert_eq!(bed.query("SELECT count(*) FROM admin_events"), "1\n");
}

#[test]
fn a_session_that_only_a_newer_reading_finds_is_history() {
    let bed = Home::new();
    bed.put(CLAUDE, claude_text().as_bytes());
    bed.pass_at(T0 - DAY);
    raw(&bed, "UPDATE roots SET epoch_ms = 1;");
    // Version 1 made nothing of the file.
    raw(
        &bed,
        "UPDATE source_files SET reading = 1; DELETE FROM sessions; DELETE FROM facts;
         DELETE FROM messages; DELETE FROM usage;",
    );
    bed.pass_at(T0 + 3 * DAY);
    tick(&mut bed.store(), T0 + 3 * DAY);
    assert_eq!(story(&bed), "none>completed\n");
}

#[test]
fn a_file_that_is_gone_keeps_what_an_older_reading_said() {
    let bed = Home::new();
    let path = bed.put(CLAUDE, claude_text().as_bytes());
    bed.pass();
    filled_by_version_1(&bed);
    fs::remove_file(path).unwrap();
    bed.pass();
    let texts = bed.query("SELECT DISTINCT text FROM messages");
    assert_eq!(texts, "as version 1 read it\n");
    assert_eq!(bed.query("SELECT live, reading FROM source_files"), "1|1\n");
}

#[test]
fn tokens_that_two_files_share_count_once_after_both_were_read_anew() {
    let bed = Home::new();
    let last = prompt(9).lines().next().unwrap().replace("prompt 9", &"word ".repeat(1000));
    let text = (1..8).map(prompt).collect::<String>() + &last + "\n";
    bed.put(CLAUDE, text.as_bytes());
    let other = "36f52589-6919-4be1-ac4b-9de9d22c854d";
    let copy = text.replace(SESSION, other);
    bed.put(&format!(".claude/projects/-tmp-demo/{other}.jsonl"), copy.as_bytes());
    bed.pass();
    let fresh = bed.dump();
    filled_by_version_1(&bed);
    raw(&bed, "UPDATE sessions SET shares_usage = 0;");
    // In turns, so that neither counts while the other one's tokens are read.
    let limits = Limits { turn_bytes: 1, ..Limits::with_step_bytes(700) };
    let mut store = bed.store();
    let mut mirror =
        Mirror::new(&mut store, "h".to_owned(), bed.roots()).unwrap().with_limits(limits);
    mirror.scan(&mut store, NOW).unwrap();
    while mirror.step(&mut store, NOW).unwrap() {}
    assert_eq!(crate::home::difference(&bed.dump(), &fresh), "");
}

#[test]
fn two_copies_of_a_session_count_once_after_both_were_read_anew() {
    let bed = Home::new();
    bed.put(CLAUDE, claude_text().as_bytes());
    bed.put(&CLAUDE.replace("-tmp-demo", "-tmp-copy"), claude_text().as_bytes());
    bed.pass();
    let counts = "SELECT json_extract(facts, '$.prompts'), json_extract(facts, '$.answers'),
        json_extract(facts, '$.tokens') FROM sessions";
    let fresh = bed.query(counts);
    assert!(fresh.contains('7'), "{fresh}");
    filled_by_version_1(&bed);
    // Nothing of what version 1 kept is of the same name.
    raw(
        &bed,
        "UPDATE messages SET native = id; UPDATE facts SET body = json_remove(body, '$.repeats');",
    );
    let limits = Limits { turn_bytes: 1, ..Limits::with_step_bytes(700) };
    let mut store = bed.store();
    let mut mirror =
        Mirror::new(&mut store, "h".to_owned(), bed.roots()).unwrap().with_limits(limits);
    mirror.scan(&mut store, NOW).unwrap();
    while mirror.step(&mut store, NOW).unwrap() {}
    assert_eq!(bed.query(counts), fresh);
}

#[test]
fn a_damaged_cursor_costs_its_file_a_reading_and_nothing_else() {
    for (place, bytes) in [(CLAUDE, claude_text().into_bytes()), (DSH, dsh_frames())] {
        let bed = Home::new();
        let path = bed.put(place, &bytes);
        bed.pass();
        let fresh = bed.dump();
        for column in ["position", "frame_at", "frame_position", "head_len", "tail_len"] {
            for value in [-1, i64::MIN, i64::MAX] {
                raw(&bed, &format!("UPDATE source_files SET {column} = {value}, ctime_ns = 0;"));
                bed.pass();
                assert_eq!(crate::home::difference(&bed.dump(), &fresh), "", "{column} {value}");
            }
        }
        assert!(path.exists());
    }
}
