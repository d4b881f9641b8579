//! The files of the store under a monitor: removed, replaced, foreign, with other names; and what is
//! left of them when it ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use lullwatch::app::lock;
use lullwatch::store::{self, Reader, Store, StoreError, meta};
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::Stage;

const BUSY: Duration = Duration::from_secs(5);
const LATE: Duration = Duration::from_secs(30);
const SESSION: &str = "26f52589-6919-4be1-ac4b-9de9d22c854c";

fn remark(store: &mut Store, key: &str) -> store::Result<()> {
    store.write(|tx| meta::set(tx, key, "told"))
}

fn remembers(db: &Path, key: &str) -> bool {
    let mut reader = Reader::open(db).unwrap();
    reader.read(|tx| meta::get(tx, key)).unwrap().is_some()
}

fn beside(db: &Path, ending: &str) -> std::path::PathBuf {
    let mut name = db.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[test]
fn what_lay_in_a_log_that_was_removed_is_saved_and_the_store_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("x.db");
    let mut held = Store::open(&db, BUSY, 1).unwrap();
    remark(&mut held, "before").unwrap();
    for ending in ["-wal", "-shm"] {
        fs::remove_file(beside(&db, ending)).unwrap();
    }
    let refused = remark(&mut held, "after").unwrap_err();
    assert!(matches!(&refused, StoreError::Replaced { path } if *path == beside(&db, "-wal")));
    drop(held);
    let mut again = Store::open(&db, BUSY, 2).unwrap();
    again.read_through().unwrap();
    remark(&mut again, "after").unwrap();
    drop(again);
    assert!(remembers(&db, "before") && remembers(&db, "after"));
}

#[test]
fn a_log_that_somebody_else_has_begun_is_left_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("x.db");
    let mut held = Store::open(&db, BUSY, 1).unwrap();
    held.checkpoint().unwrap();
    remark(&mut held, "lost").unwrap();
    let at_rest = fs::read(&db).unwrap();
    fs::write(folder.path().join("theirs"), b"theirs").unwrap();
    fs::rename(folder.path().join("theirs"), beside(&db, "-wal")).unwrap();
    assert!(matches!(remark(&mut held, "after"), Err(StoreError::Replaced { .. })));
    drop(held);
    assert_eq!(fs::read(&db).unwrap(), at_rest, "nothing is written through the stale one");
    assert_eq!(fs::read(beside(&db, "-wal")).unwrap(), b"theirs");
}

#[test]
fn a_backup_put_back_is_not_mixed_with_the_log_of_what_it_replaces() {
    for rename in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("x.db");
        drop(Store::open(&db, BUSY, 1).unwrap());
        let backup = folder.path().join("backup");
        fs::copy(&db, &backup).unwrap();
        let mut held = Store::open(&db, BUSY, 1).unwrap();
        for n in 0..200 {
            let key = format!("{n} {}", "x".repeat(200));
            remark(&mut held, &key).unwrap();
        }
        held.checkpoint().unwrap();
        remark(&mut held, "after").unwrap();
        if rename {
            fs::rename(&backup, &db).unwrap();
        } else {
            fs::copy(&backup, &db).unwrap();
        }
        assert!(matches!(remark(&mut held, "more"), Err(StoreError::Replaced { .. })));
        drop(held);
        Store::open(&db, BUSY, 2).unwrap().read_through().unwrap();
        assert!(!remembers(&db, "after"));
    }
}

#[test]
fn a_database_of_another_program_is_left_byte_for_byte_alone() {
    let stage = Stage::new();
    // Its tables bear names that ours have, as lionagi's do.
    let foreign = stage.path("state/foreign.db");
    #[expect(clippy::disallowed_methods, reason = "another program's database")]
    let other = rusqlite::Connection::open(&foreign).unwrap();
    let tables = "CREATE TABLE sessions (id TEXT); CREATE TABLE runs (id TEXT);
        CREATE TABLE messages (id TEXT); CREATE TABLE status_transitions (id TEXT, status TEXT);";
    other.execute_batch(tables).unwrap();
    drop(other);
    // So do not those of one that says whose it is.
    let named = stage.path("state/named.db");
    drop(Store::open(&named, BUSY, 1).unwrap());
    #[expect(clippy::disallowed_methods, reason = "another program's database")]
    let other = rusqlite::Connection::open(&named).unwrap();
    other.pragma_update(None, "application_id", 77).unwrap();
    other.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).unwrap();
    drop(other);
    for db in [&foreign, &named] {
        let before = (fs::read(db).unwrap(), fs::metadata(db).unwrap().mtime_nsec());
        for arguments in [
            &["--once"][..],
            &["--json"],
            &["watch"],
            &["ledger"],
            &["ledger", "ack", "1"],
            &["doctor"],
        ] {
            let path = db.display().to_string();
            let done = stage.output(&[&["--db", &path], arguments].concat());
            let said = String::from_utf8_lossy(&done.stderr).into_owned()
                + &String::from_utf8_lossy(&done.stdout);
            assert!(!done.status.success(), "{arguments:?}: {said}");
            assert!(said.contains("is not a database of lullwatch"), "{arguments:?}: {said}");
            assert!(said.lines().count() < 60, "{said}");
            assert!(said.contains("--db"), "{said}");
        }
        assert_eq!((fs::read(db).unwrap(), fs::metadata(db).unwrap().mtime_nsec()), before);
    }
    let mut left: Vec<_> =
        fs::read_dir(stage.path("state")).unwrap().map(|file| file.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["foreign.db", "named.db"]);
}

#[test]
fn a_store_from_before_the_application_id_gets_it_with_its_first_write() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("x.db");
    let id = |db: &Path| {
        #[expect(clippy::disallowed_methods, reason = "reads the head of the file")]
        let raw = rusqlite::Connection::open(db).unwrap();
        raw.pragma_query_value(None, "application_id", |row| row.get::<_, i64>(0)).unwrap()
    };
    #[expect(clippy::disallowed_methods, reason = "makes what an older program has left")]
    let raw = rusqlite::Connection::open(&db).unwrap();
    for sql in [
        include_str!("../../src/store/migrations/0001_init.sql"),
        include_str!("../../src/store/migrations/0002_pictures.sql"),
    ] {
        raw.execute_batch(sql).unwrap();
    }
    raw.pragma_update(None, "user_version", 2).unwrap();
    drop(raw);
    assert_eq!(id(&db), 0);
    drop(Store::open(&db, BUSY, 2).unwrap());
    assert_eq!(id(&db), i64::from(u32::from_be_bytes(*b"lull")));
}

#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let stage = Stage::new();
    let db = stage.db();
    let mkfifo = |path: &Path| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let refused = |stage: &Stage, words: &str| {
        for arguments in [&["--once"][..], &["watch"], &["doctor"], &["ledger"]] {
            let mut child = stage
                .lullwatch(arguments)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            stage.until("it ends", |_| child.try_wait().unwrap().is_some());
            let done = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr).into_owned()
                + &String::from_utf8_lossy(&done.stdout);
            assert!(!done.status.success() && said.contains(words), "{arguments:?}: {said}");
        }
    };
    mkfifo(&db);
    refused(&stage, "it is no regular file");
    fs::remove_file(&db).unwrap();
    let lock = lock::path_for(&db);
    drop(Store::open(&db, BUSY, 1).unwrap());
    mkfifo(&lock);
    refused(&stage, "it is no regular file");
    fs::remove_file(&lock).unwrap();
    // A link that somebody planted is not followed, and what holds anything else is not written over.
    let treasure = stage.put("treasure", "precious");
    symlink(&treasure, &lock).unwrap();
    refused(&stage, "it is a link");
    fs::remove_file(&lock).unwrap();
    fs::rename(&treasure, &lock).unwrap();
    refused(&stage, "it is not a lock file of lullwatch");
    assert_eq!(fs::read_to_string(&lock).unwrap(), "precious");
}

#[test]
fn two_names_of_one_database_have_one_writer() {
    let stage = Stage::new();
    stage.pass();
    let db = stage.db();
    let held = lock::try_take(&db, 1).unwrap().unwrap();
    let linked = stage.path("linked.db");
    symlink(&db, &linked).unwrap();
    for name in [linked.display().to_string(), "../state/x.db".to_owned()] {
        let done = stage.output(&["--db", &name, "show", "nobody"]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(said.contains("holds") && said.contains("/state/x.db"), "{name}: {said}");
    }
    drop(held);
    let hard = stage.path("hard.db");
    fs::hard_link(&db, &hard).unwrap();
    let done = stage.output(&["--db", &hard.display().to_string(), "--once"]);
    assert!(!done.status.success());
    assert!(String::from_utf8_lossy(&done.stderr).contains("several names"));
    assert!(!lock::path_for(&hard).exists());
}

#[test]
fn whether_somebody_writes_is_told_without_taking_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("x.db");
    let held = lock::try_take(&db, 1).unwrap().unwrap();
    assert!(lock::is_held(&db));
    drop(held);
    assert!(!lock::is_held(&db));
    // Looked at from many sides it can be taken all the time.
    std::thread::scope(|scope| {
        let looker = scope.spawn(|| (0..300).filter(|_| lock::is_held(&db)).count());
        for _ in 0..300 {
            assert!(lock::try_take(&db, 1).unwrap().is_some());
        }
        looker.join().unwrap();
    });
}

#[test]
fn a_lock_file_deleted_under_its_holder_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("x.db");
    let held = lock::try_take(&db, 1).unwrap().unwrap();
    assert!(held.is_new && !held.is_lost());
    fs::remove_file(lock::path_for(&db)).unwrap();
    assert!(held.is_lost());
    let other = lock::try_take(&db, 2).unwrap().unwrap();
    assert!(held.is_lost() && !other.is_lost());
}

#[test]
fn what_others_may_read_is_narrowed() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("lullwatch");
    let db = state.join("x.db");
    drop(Store::open(&db, BUSY, 1).unwrap());
    drop(lock::try_take(&db, 1).unwrap().unwrap());
    let files = [&db, &lock::path_for(&db), &state];
    for path in files {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    drop(Store::open(&db, BUSY, 1).unwrap());
    let modes = files.map(|path| fs::metadata(path).unwrap().mode() & 0o777);
    assert_eq!(modes, [0o600, 0o600, 0o700]);
}

/// `lullwatch watch` on a stage, and what it complains of.
struct Watch {
    child: Child,
    complaints: Receiver<String>,
}

impl Watch {
    fn start(stage: &Stage) -> Self {
        let mut child = stage
            .lullwatch(&["watch"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (tell, complaints) = channel();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).try_for_each(|line| tell.send(line)).ok()
        });
        Self { child, complaints }
    }

    #[track_caller]
    fn complains_of(&self, words: &str) {
        while !self.complaints.recv_timeout(LATE).unwrap().contains(words) {}
    }

    fn ends(mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _waited_already = self.child.wait();
    }
}

fn prompt(stage: &Stage) {
    let line = format!(
        r#"{{"type":"user","message":{{"role":"user","content":"Add a table"}},"uuid":"u-1","timestamp":"2026-11-30T08:00:00.000Z","cwd":"/tmp/demo","sessionId":"{SESSION}","version":"2.1.270"}}"#
    );
    stage.put(&format!(".claude/projects/-tmp-demo/{SESSION}.jsonl"), &(line + "\n"));
}

/// A further session is mirrored.
#[track_caller]
fn goes_on(stage: &Stage, name: &str) {
    let text = stage.text(&format!(".claude/projects/-tmp-demo/{SESSION}.jsonl"));
    let other = SESSION.replace("26f5", name);
    let text = text.replace(SESSION, &other);
    stage.put(&format!(".claude/projects/-tmp-demo/{other}.jsonl"), &text);
    stage.until("the work goes on", |stage| stage.query(SESSIONS).contains(&other));
}

const SESSIONS: &str = "SELECT native_id FROM sessions WHERE status IS NOT NULL";

#[test]
fn a_watch_makes_good_what_was_removed_or_replaced_under_it() {
    let stage = Stage::new();
    stage.pass();
    prompt(&stage);
    let watch = Watch::start(&stage);
    let mirrored = |stage: &Stage| stage.query(SESSIONS).contains(SESSION);
    stage.until("mirrored", mirrored);
    let db = stage.db();
    for ending in ["-wal", "-shm"] {
        fs::remove_file(beside(&db, ending)).unwrap();
    }
    // Another process waits until the writer has made it good, and then finds all.
    let acked = stage.output(&["ledger", "ack", "--all", "--consumer", "fred"]);
    assert!(acked.status.success(), "{}", String::from_utf8_lossy(&acked.stderr));
    watch.complains_of("x.db-wal was deleted or replaced");
    stage.until("good again", mirrored);
    // Nothing of the old files is in use any more, by whichever thread, so both write to one log.
    #[cfg(target_os = "linux")]
    for file in fs::read_dir(format!("/proc/{}/fd", watch.child.id())).unwrap() {
        let target = fs::read_link(file.unwrap().path()).unwrap_or_default();
        assert!(!target.to_string_lossy().ends_with("(deleted)"), "{}", target.display());
    }
    goes_on(&stage, "36f5");
    assert!(stage.query("SELECT name FROM consumers").contains("fred"));

    fs::remove_file(lock::path_for(&db)).unwrap();
    watch.complains_of("x.db.lock was deleted or replaced");
    goes_on(&stage, "46f5");
    assert!(lock::is_held(&db));

    // It writes meanwhile: a folder may get a file while it is emptied.
    stage.until("removed", |stage| fs::remove_dir_all(stage.path("state")).is_ok());
    watch.complains_of("x.db");
    stage.until("made anew", mirrored);
    watch.ends();
    let mut left: Vec<_> =
        fs::read_dir(stage.path("state")).unwrap().map(|file| file.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["x.db", "x.db.lock"], "an orderly end leaves one file");
    assert!(mirrored(&stage));
}

#[test]
fn a_viewer_sees_the_warnings_of_the_writer() {
    let stage = Stage::new();
    let row =
        r#"{"type":"session","version":0,"id":"session-1","createdAt":1796028240000,"cwd":"/"}"#;
    let mut packed = zstd::stream::encode_all(format!("{row}\n").as_bytes(), 1).unwrap();
    packed.extend([0x55; 64]);
    let log = stage.put(".dsh/sessions/--tmp--/session-1/session.jsonl.zstd", "");
    fs::write(&log, &packed).unwrap();
    stage.pass();
    let held =
        (Store::open(&stage.db(), BUSY, 1), lock::try_take(&stage.db(), 1).unwrap().unwrap());
    let seen = stage.output(&["compactions", "--json"]);
    assert!(seen.status.success());
    let warnings = stage.query("SELECT text FROM findings");
    assert!(warnings.contains("damaged compressed part"), "{warnings}");
    drop(held);
    fs::write(&log, packed.get(..packed.len() - 64).unwrap()).unwrap();
    stage.pass();
    assert_eq!(stage.query("SELECT text FROM findings"), "");
}

#[test]
fn what_could_mirror_nothing_does_not_show_that_there_is_nothing() {
    let stage = Stage::new();
    drop(Store::open(&stage.db(), BUSY, 1).unwrap());
    prompt(&stage);
    #[expect(clippy::disallowed_methods, reason = "plays another program that keeps it locked")]
    let other = rusqlite::Connection::open(stage.db()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let done = stage.output(&["audit"]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success() && said.contains("hint:"), "{said}");
    assert_eq!(said.matches("is locked").count(), 1, "the cause is told once: {said}");
    other.execute_batch("ROLLBACK").unwrap();
    stage.pass();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let done = stage.output(&["audit"]);
    assert!(done.status.success(), "what it held before is shown");
}
