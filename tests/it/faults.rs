//! Faults of the store and of the file system, made and not simulated: after each the rows and the
//! cursors agree, nothing is lost or doubled, and it works again when the fault is lifted.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests may panic")]

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use rusqlite::Connection;

use crate::family::{COPY, SESSION, THREAD, answer, dsh_text, family, user};
use crate::home::{Home, NOW, difference};
use lullwatch::mirror::{Limits, Mirror};
use lullwatch::store::{Reader, Store, StoreError};

const PROJECTS: &str = ".claude/projects/-tmp-demo";

/// The family, whole.
fn plant(home: &Home) {
    for script in family() {
        home.put(&script.places[0], &script.texts[0]);
    }
}

fn stripped(home: &Home) -> String {
    home.dump().replace(&home.home().display().to_string(), "~")
}

/// What an undisturbed mirror of the family holds.
fn undisturbed() -> String {
    let home = Home::new();
    plant(&home);
    home.pass();
    stripped(&home)
}

fn assert_undisturbed(home: &Home) {
    let (got, want) = (stripped(home), undisturbed());
    assert!(got == want, "{}", difference(&got, &want));
    let check = home.query("PRAGMA integrity_check");
    assert_eq!(check, "ok\n");
}

fn limits() -> Limits {
    Limits { step_files: 3, ..Limits::default() }
}

fn mirror(home: &Home, store: &mut Store) -> Mirror {
    Mirror::new(store, "h".to_owned(), home.roots()).unwrap().with_limits(limits())
}

/// A whole pass, or how it failed.
fn pass(mirror: &mut Mirror, store: &mut Store) -> Result<(), StoreError> {
    mirror.scan(store, NOW)?;
    while mirror.step(store, NOW)? {}
    while mirror.tidy(store)? {}
    Ok(())
}

/// Every message row and every fact lies before its file's cursor, and none is there twice.
fn assert_rows_and_cursors_agree(home: &Home) {
    let beyond = "SELECT m.id FROM messages m LEFT JOIN source_files f ON f.id = m.id >> 40
        WHERE f.id IS NULL OR m.position + m.bytes > f.position";
    assert_eq!(home.query(beyond), "");
    let empty = "SELECT f.path FROM source_files f WHERE f.position > 0
        AND f.place IN ('transcript', 'sub_agent')
        AND NOT EXISTS (SELECT 1 FROM facts WHERE generation = f.id)";
    assert_eq!(home.query(empty), "", "a cursor moved without its rows");
}

fn raw(path: &Path) -> Connection {
    #[expect(clippy::disallowed_methods, reason = "another program at the same file")]
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    connection
}

/// The binary on this home, with that database.
fn once(home: &Path, db: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lullwatch"))
        .args(["--once", "--now", "2026-11-30T09:00:00Z", "--db"])
        .arg(db)
        .env_clear()
        .env("HOME", home)
        .output()
        .unwrap()
}

fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("panicked"), "{text}");
    text
}

#[test]
fn a_step_that_fails_anywhere_leaves_all_or_nothing_and_the_next_pass_heals_it() {
    let want = undisturbed();
    for lasting in [false, true] {
        let (mut faults, mut after) = (0, 0);
        // Ever later in the work, until nothing is left to fail; the stride covers every phase.
        loop {
            let home = Home::new();
            plant(&home);
            let mut store = home.store();
            let mut mirror = mirror(&home, &mut store);
            mirror.scan(&mut store, NOW).unwrap();
            store.fail_after(Some(after), lasting).unwrap();
            let outcome = pass(&mut mirror, &mut store);
            if outcome.is_ok() {
                break;
            }
            faults += 1;
            assert_rows_and_cursors_agree(&home);
            store.fail_after(None, false).unwrap();
            pass(&mut mirror, &mut store).unwrap();
            let got = stripped(&home);
            assert!(got == want, "after {after} {lasting}:\n{}", difference(&got, &want));
            after += 1 + after / 7;
        }
        assert!(faults > 20, "{faults} faults");
    }
}

#[test]
fn a_rewrite_and_a_move_that_fail_anywhere_are_healed_too() {
    let change = |home: &Home| {
        for script in family() {
            let place = home.home().join(&script.places[0]);
            if script.places.len() > 1 {
                let to = home.home().join(&script.places[1]);
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::rename(place, to).unwrap();
            } else if script.texts.len() > 1 {
                fs::write(place, &script.texts[1]).unwrap();
            } else {
                fs::remove_file(place).unwrap();
            }
        }
    };
    let after_change = |fault: Option<(u64, bool)>| {
        let home = Home::new();
        plant(&home);
        let mut store = home.store();
        let mut mirror = mirror(&home, &mut store);
        pass(&mut mirror, &mut store).unwrap();
        change(&home);
        let mut failed = false;
        if let Some((after, lasting)) = fault {
            store.fail_after(Some(after), lasting).unwrap();
            failed = pass(&mut mirror, &mut store).is_err();
            store.fail_after(None, false).unwrap();
        }
        pass(&mut mirror, &mut store).unwrap();
        (failed, stripped(&home))
    };
    let (_, want) = after_change(None);
    for lasting in [false, true] {
        let mut after = 0;
        loop {
            let (failed, got) = after_change(Some((after, lasting)));
            assert!(got == want, "after {after} {lasting}:\n{}", difference(&got, &want));
            if !failed {
                break;
            }
            after += 1 + after / 5;
        }
        assert!(after > 100, "{after}");
    }
}

#[test]
fn a_full_database_moves_neither_rows_nor_cursors() {
    let home = Home::new();
    plant(&home);
    let mut store = home.store();
    let pages: i64 = home.query("PRAGMA page_count").trim().parse().unwrap();
    let limit = |store: &mut Store, pages: i64| {
        store.read(|tx| tx.dump(&[&format!("PRAGMA max_page_count = {pages}")])).unwrap();
    };
    limit(&mut store, pages);
    let mut mirror = mirror(&home, &mut store);
    let error = pass(&mut mirror, &mut store).unwrap_err();
    assert!(matches!(&error, StoreError::Full { path } if *path == home.db()), "{error}");
    assert!(error.to_string().contains("hint:"), "{error}");
    assert_rows_and_cursors_agree(&home);
    assert_eq!(mirror.unobserved(&mut store).unwrap().len(), count(&home, "sessions"));
    limit(&mut store, 1_000_000);
    pass(&mut mirror, &mut store).unwrap();
    assert_undisturbed(&home);
}

fn count(home: &Home, table: &str) -> usize {
    home.query(&format!("SELECT count(*) FROM {table}")).trim().parse().unwrap()
}

/// A file system of its own below the home, as far as this user may mount one.
struct Mount(PathBuf);

impl Mount {
    fn new(home: &Home, size: &str) -> Option<Self> {
        let place = home.home().join("mount");
        fs::create_dir_all(&place).unwrap();
        let mount = Self(place);
        mount.mount(&format!("size={size},mode=700"), &["-t", "tmpfs", "none"]).then_some(mount)
    }

    fn mount(&self, options: &str, what: &[&str]) -> bool {
        let mut command = Command::new("mount");
        let output = command.args(["-o", options]).args(what).arg(&self.0).output();
        output.is_ok_and(|output| output.status.success())
    }

    fn remount(&self, options: &str) {
        assert!(self.mount(&format!("remount,{options}"), &[]));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_is_said_and_the_work_goes_on_when_there_is_room() {
    let home = Home::new();
    plant(&home);
    let Some(mount) = Mount::new(&home, "320k") else { return };
    for n in 0..40 {
        let text = user(COPY, n, &"x".repeat(9_000)) + &answer(COPY, n, &"y".repeat(9_000));
        home.put(&format!("{PROJECTS}/{n:08}-6919-4be1-ac4b-9de9d22c854c.jsonl"), text.as_bytes());
    }
    let db = mount.0.join("x.db");
    let output = once(home.home(), &db);
    let said = complaint(&output);
    assert!(said.contains("no space left") && said.contains("x.db"), "{said}");
    mount.remount("size=64m");
    let output = once(home.home(), &db);
    assert!(output.status.success(), "{}", complaint(&output));
    let calm = home.home().join("calm/x.db");
    once(home.home(), &calm);
    let (got, want) = (crate::home::dump(&db), crate::home::dump(&calm));
    assert!(got == want, "{}", difference(&got, &want));
}

#[test]
fn a_store_that_can_only_be_read_is_shown_with_a_word_why() {
    let home = Home::new();
    plant(&home);
    let Some(mount) = Mount::new(&home, "8m") else { return };
    let db = mount.0.join("lull?watch #1.db");
    assert!(once(home.home(), &db).status.success());
    mount.remount("ro");
    let output = once(home.home(), &db);
    let said = complaint(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("showing what it held before"), "{said}");
    assert!(!output.stdout.is_empty());
    mount.remount("rw");
    assert_eq!(complaint(&once(home.home(), &db)), "");
}

#[test]
fn a_locked_store_is_busy_and_works_again() {
    let home = Home::new();
    plant(&home);
    drop(home.store());
    let mut store = Store::open(&home.db(), Duration::ZERO, NOW).unwrap();
    let mut mirror = mirror(&home, &mut store);
    let other = raw(&home.db());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = pass(&mut mirror, &mut store).unwrap_err();
    assert!(matches!(&error, StoreError::Busy { path } if *path == home.db()), "{error}");
    assert_eq!(count(&home, "source_files"), 0);
    other.execute_batch("ROLLBACK").unwrap();
    pass(&mut mirror, &mut store).unwrap();
    assert_undisturbed(&home);
}

/// A store of the family whose bytes have been tampered with, opened again.
fn tampered(tamper: impl Fn(&Path)) -> (Home, String) {
    let home = Home::new();
    plant(&home);
    home.pass();
    tamper(&home.db());
    let before = fs::read(home.db()).unwrap();
    let output = once(home.home(), &home.db());
    let said = complaint(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&home.db().display().to_string()), "{said}");
    assert!(said.contains("hint:"), "{said}");
    assert_eq!(fs::read(home.db()).unwrap(), before, "left as it is");
    (home, said)
}

#[test]
fn a_damaged_store_is_named_and_left_alone() {
    let page_2 = |path: &Path| {
        let mut file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        let mut header = [0; 18];
        file.read_exact(&mut header).unwrap();
        let page_bytes = u64::from(u16::from_be_bytes([header[16], header[17]]));
        for page in 1..8 {
            file.seek(SeekFrom::Start(page * page_bytes)).unwrap();
            file.write_all(&[0x55; 512]).unwrap();
        }
    };
    let (home, said) = tampered(page_2);
    assert!(said.contains("damaged"), "{said}");
    // The advice helps.
    fs::rename(home.db(), home.home().join("bad.db")).unwrap();
    assert!(once(home.home(), &home.db()).status.success());
    let (_, said) = tampered(|path| fs::write(path, "not a database\n".repeat(900)).unwrap());
    assert!(said.contains("damaged"), "{said}");
    let (_, said) = tampered(|path| {
        let other = raw(path);
        other.pragma_update(None, "user_version", 999).unwrap();
        other.pragma_update(None, "journal_mode", "DELETE").unwrap();
        other.pragma_update(None, "journal_mode", "WAL").unwrap();
    });
    assert!(said.contains("version 999"), "{said}");
}

#[test]
fn a_store_deleted_under_us_is_noticed_and_begun_again() {
    let home = Home::new();
    plant(&home);
    let mut store = home.store();
    let mut mirror = mirror(&home, &mut store);
    pass(&mut mirror, &mut store).unwrap();
    let mut reader = Reader::open(&home.db()).unwrap();
    fs::remove_dir_all(home.db().parent().unwrap()).unwrap();
    let error = pass(&mut mirror, &mut store).unwrap_err();
    assert!(matches!(&error, StoreError::Replaced { path } if *path == home.db()), "{error}");
    let gone = reader.read(|tx| tx.dump(&["SELECT 1"])).unwrap_err();
    assert!(matches!(gone, StoreError::Replaced { .. }), "{gone}");
    drop((store, reader));
    home.pass();
    assert_undisturbed(&home);
}

#[test]
fn two_mirrors_on_one_store_double_nothing() {
    let home = Home::new();
    plant(&home);
    let small = Limits { chunk_bytes: 300, step_bytes: 300, step_files: 2, ..Limits::default() };
    let mut stores = [home.store(), home.store()];
    let mut mirrors: Vec<Mirror> = stores
        .iter_mut()
        .map(|store| Mirror::new(store, "h".to_owned(), home.roots()).unwrap().with_limits(small))
        .collect();
    for (mirror, store) in mirrors.iter_mut().zip(&mut stores) {
        mirror.scan(store, NOW).unwrap();
    }
    let mut open = [true, true];
    for turn in 0..4_000_usize {
        let which = (turn * 7 / 3) % 2;
        open[which] = mirrors[which].step(&mut stores[which], NOW).unwrap();
        if open == [false, false] {
            break;
        }
    }
    assert_eq!(open, [false, false]);
    let dropped: u64 = mirrors.iter().map(|mirror| mirror.work().batches_dropped).sum();
    assert!(dropped > 0);
    assert_undisturbed(&home);
    let unseen = mirrors[0].unobserved(&mut stores[0]).unwrap();
    assert!(unseen.is_empty(), "each has read, or taken over, all there is");
}

#[test]
fn a_batch_that_another_writer_overtook_is_read_again_before_anything_is_concluded() {
    let home = Home::new();
    let path = home.put(&format!("{PROJECTS}/{SESSION}.jsonl"), user(SESSION, 1, "hi").as_bytes());
    let (mut store, mut other_store) = (home.store(), home.store());
    let mut mirror = mirror(&home, &mut store);
    mirror.scan(&mut store, NOW).unwrap();
    let mut other = self::mirror(&home, &mut other_store);
    pass(&mut other, &mut other_store).unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(user(SESSION, 2, "more").as_bytes()).unwrap();
    // It finds the file begun by the other one, and with a line that the other one has not read.
    while mirror.step(&mut store, NOW).unwrap() {}
    assert_eq!(mirror.work().batches_dropped, 1);
    assert_eq!(count(&home, "messages"), 2);
}

#[test]
fn a_root_that_vanishes_between_the_scan_and_the_reading_ends_nothing() {
    let home = Home::new();
    plant(&home);
    let mut store = home.store();
    let mut mirror = mirror(&home, &mut store);
    pass(&mut mirror, &mut store).unwrap();
    for script in family() {
        let mut file =
            fs::OpenOptions::new().append(true).open(home.home().join(&script.places[0])).unwrap();
        file.write_all(b"\n").unwrap();
    }
    mirror.scan(&mut store, NOW).unwrap();
    let roots = [".claude", ".codex", ".dsh"];
    for root in roots {
        fs::rename(home.home().join(root), home.home().join(format!("away{root}"))).unwrap();
    }
    while mirror.step(&mut store, NOW).unwrap() {}
    let sessions = count(&home, "sessions");
    assert_eq!(mirror.unobserved(&mut store).unwrap().len(), sessions);
    mirror.scan(&mut store, NOW).unwrap();
    assert_eq!(mirror.unobserved(&mut store).unwrap().len(), sessions);
    assert_eq!(home.query("SELECT count(*) FROM sessions WHERE transcript = 'missing'"), "0\n");
    for root in roots {
        fs::rename(home.home().join(format!("away{root}")), home.home().join(root)).unwrap();
    }
    pass(&mut mirror, &mut store).unwrap();
    assert!(mirror.unobserved(&mut store).unwrap().is_empty());
    assert_eq!(mirror.work().message_rows, count(&home, "messages") as u64, "nothing twice");
}

#[test]
fn a_file_not_yet_read_holds_back_the_session_that_its_name_tells() {
    let home = Home::new();
    let copy = format!(".claude/projects/-tmp-other/{SESSION}.jsonl");
    home.put(&format!("{PROJECTS}/{SESSION}.jsonl"), user(SESSION, 1, "hi").as_bytes());
    let rollout = family()[5].clone();
    home.put(&rollout.places[0], &rollout.texts[0]);
    let mut store = home.store();
    let mut mirror = mirror(&home, &mut store);
    pass(&mut mirror, &mut store).unwrap();
    home.put(&copy, user(SESSION, 9, "elsewhere").as_bytes());
    home.put(&rollout.places[1], &[&rollout.texts[0][..], b"\n"].concat());
    mirror.scan(&mut store, NOW).unwrap();
    assert_eq!(mirror.unobserved(&mut store).unwrap().len(), 2);
    while mirror.step(&mut store, NOW).unwrap() {}
    assert!(mirror.unobserved(&mut store).unwrap().is_empty());
}

#[test]
fn a_file_rewritten_while_it_is_read_is_found_out_at_the_next_look() {
    let home = Home::new();
    let text = |word: &str| -> String { (0..50).map(|n| user(SESSION, n, word)).collect() };
    let path = home.put(&format!("{PROJECTS}/{SESSION}.jsonl"), text("old").as_bytes());
    let mut store = home.store();
    let small = Limits { chunk_bytes: 500, step_bytes: 500, ..Limits::default() };
    let mut mirror = self::mirror(&home, &mut store).with_limits(small);
    mirror.scan(&mut store, NOW).unwrap();
    for _ in 0..4 {
        assert!(mirror.step(&mut store, NOW).unwrap());
    }
    fs::write(path, text("new")).unwrap(); // the same inode and the same length
    while mirror.step(&mut store, NOW).unwrap() {}
    pass(&mut mirror, &mut store).unwrap();
    assert_eq!(home.query("SELECT DISTINCT text FROM messages"), "new\n");
}

#[test]
fn two_copies_that_move_into_one_place_do_not_stop_the_pass() {
    let home = Home::new();
    let place = |project: &str| format!(".claude/projects/{project}/{SESSION}.jsonl");
    for project in ["-a", "-b"] {
        home.put(&place(project), user(SESSION, 1, "hi").as_bytes());
    }
    home.pass();
    fs::create_dir_all(home.home().join(".claude/projects/-c")).unwrap();
    fs::rename(home.home().join(place("-a")), home.home().join(place("-c"))).unwrap();
    fs::remove_file(home.home().join(place("-b"))).unwrap();
    home.pass();
    assert_eq!(home.query("SELECT count(*) FROM source_files WHERE gone_ms IS NULL"), "1\n");
    let facts = home.query("SELECT facts FROM sessions");
    assert!(facts.contains(r#""prompts":{"primary":1"#), "{facts}");
}

#[test]
fn sub_agents_of_one_name_in_two_sessions_are_two() {
    let home = Home::new();
    let place = |session: &str| format!("{PROJECTS}/{session}/subagents/agent-a1.jsonl");
    let first = home.put(&place(SESSION), b"{\"type\":\"half");
    home.pass();
    fs::remove_file(first).unwrap();
    home.put(&place(COPY), user(COPY, 3, "task").as_bytes());
    home.pass();
    let parents = home
        .query("SELECT parent_native_id FROM sessions WHERE native_id = 'a1' AND own_clock_ms > 0");
    assert_eq!(parents.trim(), COPY);
}

#[test]
fn a_title_goes_with_the_file_that_gave_it() {
    let home = Home::new();
    let scripts = family();
    home.put(&scripts[5].places[0], &scripts[5].texts[0]);
    let index = home.put(&scripts[6].places[0], &scripts[6].texts[0]);
    home.pass();
    let title = "SELECT facts ->> '$.title' FROM sessions";
    assert_eq!(home.query(title), "A second\n");
    fs::write(index, b"{}\n").unwrap();
    home.pass();
    assert_eq!(home.query(title), "Add a table\n");
}

#[test]
fn tokens_count_for_another_holder_when_the_first_one_loses_them() {
    let home = Home::new();
    let place = |session: &str| format!("{PROJECTS}/{session}.jsonl");
    let text = |session: &str| user(session, 1, "hi") + &answer(session, 7, "x");
    let early = user(SESSION, 0, "early");
    home.put(&place(SESSION), (early.clone() + &text(SESSION)).as_bytes());
    home.put(&place(COPY), text(COPY).as_bytes());
    home.pass();
    let tokens = "SELECT facts ->> '$.tokens.output' FROM sessions ORDER BY native_id";
    assert_eq!(home.query(tokens), "7\n0\n");
    home.put(&place(SESSION), early.as_bytes());
    home.pass();
    assert_eq!(home.query(tokens), "0\n7\n");
    // And back, by a record that only makes the other one the earlier.
    home.put(&place(SESSION), text(SESSION).as_bytes());
    home.pass();
    assert_eq!(home.query(tokens), "7\n0\n", "the smaller id, both began together");
    let mut file = fs::OpenOptions::new().append(true).open(home.home().join(place(COPY))).unwrap();
    file.write_all(user(COPY, 0, "earlier").as_bytes()).unwrap();
    home.pass();
    assert_eq!(home.query(tokens), "0\n7\n");
}

#[test]
fn a_file_that_becomes_another_session_leaves_the_first_one_empty() {
    let home = Home::new();
    let place = ".dsh/sessions/--tmp--/s/session.jsonl";
    home.put(place, dsh_text("one", "hi").as_bytes());
    home.pass();
    raw(&home.db()).execute("UPDATE sessions SET status = 'completed'", []).unwrap();
    home.put(place, dsh_text("two", "ho").as_bytes());
    home.pass();
    let rows = "SELECT native_id, transcript, facts ->> '$.prompts.primary',
            facts ->> '$.tokens.output', last_activity_ms IS NOT NULL
        FROM sessions ORDER BY native_id";
    assert_eq!(home.query(rows), "one|missing|0|0|1\ntwo|present|1|2|1\n");
    // One without a status leaves nothing at all.
    home.put(place, dsh_text("three", "ha").as_bytes());
    home.pass();
    assert_eq!(home.query("SELECT native_id FROM sessions ORDER BY 1"), "one\nthree\n");
}

#[test]
fn a_thread_under_another_file_name_is_the_same_file() {
    let home = Home::new();
    let rollout = family()[5].clone();
    let path = home.put(&rollout.places[0], &rollout.texts[0]);
    home.pass();
    let renamed = path.with_file_name(format!("rollout-2026-11-30T09-00-00-{THREAD}.jsonl"));
    fs::rename(path, renamed).unwrap();
    let mirror = home.pass();
    assert_eq!(mirror.work().message_rows, 0);
    assert_eq!(count(&home, "source_files"), 1);
}

#[test]
fn the_hot_statements_use_their_indexes() {
    let home = Home::new();
    plant(&home);
    home.pass();
    let plans = [
        "SELECT last_activity_ms FROM sessions WHERE agent = ?1 AND parent_native_id = ?2
            AND host = ?3 AND parent_native_id <> '' AND id <> ?4
            ORDER BY last_activity_ms DESC LIMIT 1",
        "SELECT DISTINCT session_id FROM usage WHERE key = ?2 AND session_id <> ?1",
        "SELECT g.id FROM facts f JOIN source_files g ON g.id = f.generation
            WHERE f.session_id = ?1 AND g.live = 1 ORDER BY g.stem, g.path",
        "SELECT sum(input) FROM usage WHERE session_id = ?1 AND generation = ?2",
        "SELECT s.id FROM titles t JOIN sessions s ON s.agent = t.agent
            AND s.native_id = t.native_id AND s.parent_native_id = t.parent_native_id
            WHERE t.generation = ?1",
        "SELECT id FROM source_files WHERE live = 1 AND path = ?1",
        "SELECT EXISTS (SELECT 1 FROM source_files WHERE live = 0)",
        "SELECT id FROM messages WHERE id >= ?1 << 40 AND id < (?1 + 1) << 40 LIMIT ?2",
    ];
    for sql in plans {
        let bound = (1..5).fold(sql.to_owned(), |sql, n| sql.replace(&format!("?{n}"), "7"));
        let plan = home.query(&format!("EXPLAIN QUERY PLAN {bound}"));
        // A scan of the partial index of dead generations is a scan of nothing.
        let scans = plan.contains("SCAN") && !plan.contains("source_files_dead");
        assert!(!scans, "{sql}\n{plan}");
        assert!(!plan.contains("parent_native_id=?") || !plan.contains("TEMP B-TREE"), "{plan}");
    }
}
