//! A pass whose look at processes hangs.

use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::app::probe::Probe;
use crate::cli::Globals;
use crate::config::{self, Surroundings};
use crate::lifecycle::Status;
use crate::snapshot::{Query, Snapshot};
use crate::store::Reader;

/// 2026-11-30T09:00:00Z.
const T0: i64 = 1_796_029_200_000;
const HOUR: i64 = 3_600_000;
const ID: &str = "01a22b80-efc0-70bc-a6a2-339c6bb9adef";

fn setting(home: &Path, now_ms: i64) -> Setting {
    let vars = BTreeMap::from([("HOME".to_owned(), home.into())]);
    let around = Surroundings { vars, cwd: home.to_owned() };
    Setting {
        config: config::load(&Globals::default(), &around).unwrap(),
        clock: Clock::new(Some(now_ms)),
        host: "h".to_owned(),
        json: false,
        children: false,
        exit_code: false,
        zone: crate::text::Zone::default(),
    }
}

fn shown(setting: &Setting, engine: &mut Engine) -> Snapshot {
    let beside = engine.beside("h").unwrap();
    let now_ms = setting.clock.now_ms();
    let mut reader = Reader::open(&setting.config.db).unwrap();
    reader.read(|tx| snapshot::load(tx, &Query::default(), &beside, now_ms)).unwrap()
}

#[test]
fn a_pass_whose_look_hangs_leaves_the_status_and_counts_it_as_unchecked() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".codex/sessions/2026/11/30");
    fs::create_dir_all(&folder).unwrap();
    let at = "2026-11-30T09:00:00.000Z";
    let line = |kind: &str, payload: &str| {
        format!("{{\"timestamp\":\"{at}\",\"type\":\"{kind}\",\"payload\":{payload}}}\n")
    };
    let meta = format!(r#"{{"id":"{ID}","timestamp":"{at}","cwd":"/w","source":"cli"}}"#);
    let said = r#"{"type":"agent_message","message":"hello"}"#;
    let text = line("session_meta", &meta) + &line("event_msg", said);
    let name = format!("rollout-2026-11-30T09-00-00-{ID}.jsonl");
    let early = setting(home.path(), T0 - HOUR);
    drop(try_open(&early, Duration::ZERO).unwrap().map(|mut engine| engine.pass().unwrap()));
    fs::write(folder.join(name), text).unwrap();
    let first = setting(home.path(), T0 + 1_000);
    let mut engine = try_open(&first, Duration::ZERO).unwrap().unwrap();
    engine.pass().unwrap();
    assert_eq!(shown(&first, &mut engine).sessions[0].status, Status::Running);
    drop(engine);

    let later = setting(home.path(), T0 + HOUR);
    let mut engine = try_open(&later, Duration::ZERO).unwrap().unwrap();
    let release = engine.probe.hang();
    engine.pass().unwrap();
    let seen = shown(&later, &mut engine);
    assert_eq!((seen.sessions[0].status, seen.sessions[0].unchecked), (Status::Running, true));
    assert_eq!((seen.counts.unchecked, seen.as_of_ms), (1, None));
    assert!(seen.sessions[0].notices.iter().any(|notice| notice.code == "unobserved"));
    drop(release);
    engine.probe = Probe::new("h", &later.config.db, &later.config.roots);
    engine.pass().unwrap();
    let seen = shown(&later, &mut engine);
    assert_eq!((seen.sessions[0].status, seen.sessions[0].unchecked), (Status::Idle, false));
    assert!(seen.sessions[0].notices.iter().all(|notice| notice.code != "unobserved"));
}
