//! What the doctor says of a home that is empty, well, or broken; and that it leaves no trace.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use lullwatch::store::Store;
use rusqlite::Connection;
use serde_json::Value;

use crate::stage::{MINUTE, Stage};

const NATIVE: &str = "26f52589-6919-4be1-ac4b-9de9d22c854c";

/// What it says as JSON, and its exit code. Whatever it finds, it changes no file.
#[track_caller]
fn doctor(stage: &Stage) -> (Value, i32) {
    let before = tree(&stage.path(""));
    let done = stage.output(&["doctor", "--json"]);
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    assert_eq!(tree(&stage.path("")), before, "it has written something");
    (serde_json::from_slice(&done.stdout).unwrap(), done.status.code().unwrap())
}

/// Every file below a folder, with what a write would change. Of the memory that SQLite's readers
/// and writers share only that it is there.
fn tree(folder: &Path) -> BTreeMap<String, (u64, i64, i64)> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let meta = fs::symlink_metadata(entry.path()).unwrap();
            if meta.is_dir() {
                open.push(entry.path());
            }
            let shared = entry.path().to_string_lossy().ends_with("-shm");
            let state = (meta.size(), meta.mtime(), meta.mtime_nsec());
            let state = if shared { (0, 0, 0) } else { state };
            found.insert(entry.path().display().to_string(), state);
        }
    }
    found
}

/// The findings of a check, as `level found`.
fn of(said: &Value, check: &str) -> Vec<String> {
    let items = said["items"].as_array().unwrap();
    let own = items.iter().filter(|item| item["check"] == check);
    let text = |item: &Value, name: &str| item[name].as_str().unwrap().to_owned();
    own.map(|item| format!("{} {}", text(item, "level"), text(item, "found"))).collect()
}

/// A home with a Claude session that has been mirrored.
fn well() -> Stage {
    let stage = Stage::new();
    stage.answered_session(NATIVE, MINUTE);
    stage.put(".claude/projects/-w/11111111-1111-4111-8111-111111111111.jsonl", "{}\n");
    stage.pass();
    stage
}

#[test]
fn an_empty_home_is_told_what_is_missing() {
    let (said, code) = doctor(&Stage::new());
    assert_eq!(code, 1);
    assert_eq!(said["verdict"], "warning");
    let roots = of(&said, "root");
    assert_eq!(roots.iter().filter(|root| *root == "note not there").count(), 4, "{roots:?}");
    assert!(roots.contains(&"warning no agent's folder was found".to_owned()));
    assert_eq!(of(&said, "database"), ["note not there yet; the first run makes it"]);
}

#[test]
fn a_healthy_home_is_fine_and_its_numbers_are_right() {
    let stage = well();
    let (said, code) = doctor(&stage);
    assert_eq!((code, said["verdict"].as_str()), (0, Some("note")), "{said:#}");
    let fields: Vec<&String> = said.as_object().unwrap().keys().collect();
    assert_eq!(said["schema"], "lullwatch.doctor.v1");
    let expected = ["generated_at", "host", "items", "schema", "verdict", "version"];
    let mut sorted = fields.clone();
    sorted.sort();
    assert_eq!(sorted, expected);
    for item in said["items"].as_array().unwrap() {
        let mut fields: Vec<&String> = item.as_object().unwrap().keys().collect();
        fields.sort();
        assert_eq!(fields, ["advice", "check", "found", "level", "subject", "values"], "{item}");
    }
    let items = said["items"].as_array().unwrap();
    let claude = |item: &&Value| item["values"]["sessions"].is_number();
    let values = &items.iter().find(claude).unwrap()["values"];
    let counted = ["files", "sessions", "no_session", "unread_bytes"].map(|name| &values[name]);
    assert_eq!(counted, [2, 1, 1, 0]);
    let version = format!("version {}", lullwatch::store::schema::VERSION);
    assert!(of(&said, "database")[0].contains(&version), "{said:#}");
    let checks = [
        "program",
        "config",
        "disk",
        "database",
        "windows",
        "ledger",
        "runs",
        "writer",
        "root",
        "registry",
        "hooks",
        "inbox",
        "processes",
        "limits",
        "clock",
    ];
    for check in checks {
        assert!(!of(&said, check).is_empty(), "no {check}");
    }
}

#[test]
fn people_get_the_same_with_hints() {
    let stage = Stage::new();
    let done = stage.output(&["doctor"]);
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(said.contains("hint: give one with --root AGENT=PATH"), "{said}");
    assert!(said.ends_with(" looked at\n") && said.contains("\nwarning: 0 fault(s), "), "{said}");
    assert!(!said.contains('\u{1b}'));
}

#[test]
fn a_broken_store_is_a_fault_and_everything_else_is_still_looked_at() {
    let stage = well();
    fs::write(stage.db(), "this is no database, and long enough to be seen as none").unwrap();
    let (said, code) = doctor(&stage);
    assert_eq!((code, said["verdict"].as_str()), (2, Some("fault")));
    assert!(of(&said, "database")[0].starts_with("fault "), "{said:#}");
    assert!(of(&said, "root")[0].contains("2 files"), "{said:#}");
    fs::remove_file(stage.db()).unwrap();
    fs::create_dir(stage.db()).unwrap();
    assert_eq!(doctor(&stage).1, 2);
}

#[test]
fn damage_inside_a_page_is_found() {
    let stage = well();
    #[expect(clippy::disallowed_methods, reason = "a test that damages a file")]
    let raw = Connection::open(stage.db()).unwrap();
    let root: i64 = raw
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'", [], |r| r.get(0))
        .unwrap();
    let size: i64 = raw.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
    drop(raw);
    let mut bytes = fs::read(stage.db()).unwrap();
    let from = usize::try_from((root - 1) * size).unwrap();
    bytes[from..from + 64].fill(0xff);
    fs::write(stage.db(), bytes).unwrap();
    let (said, code) = doctor(&stage);
    assert_eq!(code, 2);
    assert!(of(&said, "database")[0].starts_with("fault "), "{said:#}");
}

#[test]
fn a_newer_store_and_an_open_one_are_told() {
    let stage = well();
    #[expect(clippy::disallowed_methods, reason = "a test that plays a later version")]
    let raw = Connection::open(stage.db()).unwrap();
    raw.pragma_update(None, "user_version", 999).unwrap();
    drop(raw);
    fs::set_permissions(stage.db(), fs::Permissions::from_mode(0o644)).unwrap();
    let (said, code) = doctor(&stage);
    assert_eq!(code, 2);
    let database = of(&said, "database");
    assert!(database[0].starts_with("fault "), "{database:?}");
    assert!(database[0].contains("version 999"), "{database:?}");
    assert!(database[1].starts_with("warning mode 644"), "{database:?}");
}

#[test]
fn the_writer_and_its_silence_are_told() {
    let stage = well();
    let open = Store::open(&stage.db(), Duration::ZERO, 1).unwrap();
    let mut held =
        lullwatch::app::lock::try_take(&stage.db(), crate::stage::now()).unwrap().unwrap();
    let (said, code) = doctor(&stage);
    assert_eq!(code, 0);
    let pid = format!("fine pid {} writes", std::process::id());
    assert!(of(&said, "writer")[0].starts_with(&pid), "{said:#}");
    held.beat(crate::stage::now() - MINUTE).unwrap();
    let (said, code) = doctor(&stage);
    assert_eq!(code, 1);
    assert!(of(&said, "writer")[0].starts_with("warning pid "), "{said:#}");
    // Its log is gone: what it writes nobody sees, and a second one would damage the database.
    fs::remove_file(stage.path("state/x.db-wal")).unwrap();
    let (said, code) = doctor(&stage);
    assert_eq!(code, 2);
    assert!(of(&said, "writer")[0].contains("the log of the database is gone"), "{said:#}");
    drop(open);
}

#[test]
fn what_cannot_be_delivered_and_what_cannot_be_started_is_told() {
    let stage = well();
    let text = "[on_terminal]\ncommand = ['/no/such/program']\n";
    let file = stage.put(".config/lullwatch/config.toml", text);
    stage.pass();
    assert!(stage.output(&["run", "--", "true"]).status.success());
    stage.pass();
    let (said, code) = doctor(&stage);
    assert_eq!(code, 1);
    let config = of(&said, "config");
    assert_eq!(said["items"][1]["subject"], file.display().to_string());
    assert!(config.contains(&"warning `/no/such/program`".to_owned()), "{config:?}");
    assert!(of(&said, "ledger")[1].contains("1 could not be delivered yet"), "{said:#}");
}

#[test]
fn hooks_are_found_where_the_agents_look() {
    let stage = well();
    assert!(of(&doctor(&stage).0, "hooks")[0].starts_with("note not configured"));
    let hook = r#"{"hooks":{"Stop":[{"hooks":[{"command":"/bin/lullwatch hook Stop"}]}]}}"#;
    stage.put(".claude/settings.json", hook);
    assert_eq!(of(&doctor(&stage).0, "hooks")[0], "fine 1 events call lullwatch");
}
