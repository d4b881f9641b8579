//! `kill -9` at any moment of a first mirror: what the store holds is all there is to remember.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::family::{answer, dsh_text, frames, user};
use crate::home::{Home, difference, dump};
use lullwatch::store::Reader;

/// Kills at most.
const KILLS_MAX: u32 = 40;
/// Each comes so long after the process has begun, or, every other time, after a commit of it; ms.
const DELAYS_MS: [u64; 10] = [30, 7, 2, 3, 15, 1, 9, 12, 5, 0];
/// Bytes of a step: some two hundred commits.
const STEP_BYTES: &str = "40000";
/// How long a commit is waited for, looks of 1 ms.
const LOOKS_MAX: u32 = 20_000;

/// Some 8 MB, the same every time: Claude in many files and in one of several steps, Codex plain and
/// packed, dsh in frames.
fn plant(home: &Home) {
    let id = |n: u32, tail: &str| format!("{n:08}-6919-4be1-ac4b-{tail}");
    let filler = "lorem ipsum dolor sit amet ".repeat(20);
    for n in 0..40 {
        let session = id(n, "9de9d22c854c");
        let turns = if n == 0 { 3_000 } else { 60 };
        let mut text = String::new();
        for turn in 0..turns {
            text += &user(&session, turn % 60, &filler).replace("u-", &format!("u{n}-{turn}-"));
            text += &answer(&session, turn % 60, &filler)
                .replace("msg_", &format!("msg{n}_{turn}_"))
                .replace("\"a-", &format!("\"a{n}-{turn}-"));
        }
        home.put(&format!(".claude/projects/-p{}/{session}.jsonl", n % 5), text.as_bytes());
    }
    for n in 0..20 {
        let thread = id(n, "339c6bb9adef");
        let mut text = format!(
            "{{\"timestamp\":\"2026-11-30T08:10:00.000Z\",\"type\":\"session_meta\",\"payload\":{{\"id\":\"{thread}\",\"cwd\":\"/p\",\"source\":\"cli\"}}}}\n"
        );
        for turn in 0..100 {
            for kind in ["user_message", "agent_message"] {
                let stamp = format!("2026-11-30T08:10:{:02}.000Z", turn % 60);
                let message = format!("\"type\":\"{kind}\",\"message\":\"{turn} {filler}\"");
                text =
                    text + "{\"timestamp\":\"" + &stamp + "\",\"type\":\"event_msg\",\"payload\":{";
                text = text + &message + "}}\n";
            }
        }
        let place =
            format!(".codex/sessions/2026/11/30/rollout-2026-11-30T08-10-00-{thread}.jsonl");
        if n % 2 == 0 {
            home.put(&place, text.as_bytes());
        } else {
            let packed = zstd::stream::encode_all(text.as_bytes(), 3).unwrap();
            home.put(&format!("{place}.zst"), &packed);
        }
        let log = dsh_text(&format!("session-{n}"), &filler);
        home.put(&format!(".dsh/sessions/--p--/session-{n}/session.jsonl.zstd"), &frames(&log));
    }
}

/// A monitor of this home with the store there.
fn once(home: &Path, db: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lullwatch"));
    command
        .args(["--once", "--json", "--now", "2026-11-30T09:00:00Z", "--db"])
        .arg(db)
        .env_clear()
        .env("HOME", home)
        .env("LULLWATCH_STEP_BYTES", STEP_BYTES)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// How much of the tree is in the store.
fn progress(db: &Path) -> i64 {
    let sum = "SELECT coalesce(sum(position), 0) FROM source_files";
    let read = || Reader::open(db)?.read(|tx| tx.dump(&[sum]));
    read().ok().and_then(|sum| sum.trim().parse().ok()).unwrap_or(0)
}

/// Kills a first mirror over and over, lets it finish, and returns how many kills hit it, and how
/// many of them found the cursors further on than the one before.
fn kill_over_and_over(home: &Path, db: &Path) -> (u32, u32) {
    let (mut kills, mut moved, mut before) = (0, 0, 0);
    let (_keep, never) = mpsc::channel::<()>();
    let wait = |ms: u64| never.recv_timeout(Duration::from_millis(ms)).is_ok();
    for nth in 0..KILLS_MAX {
        let mut child = once(home, db).spawn().unwrap();
        if nth % 2 == 1 {
            let looks = (0..LOOKS_MAX).take_while(|_| {
                wait(1);
                progress(db) == before && child.try_wait().unwrap().is_none()
            });
            assert!(looks.count() < LOOKS_MAX as usize, "nothing is ever committed");
        }
        wait(DELAYS_MS[nth as usize % DELAYS_MS.len()]);
        let ended = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        if ended {
            break;
        }
        kills += 1;
        let now = progress(db);
        assert!(now >= before, "a kill took back what had been committed");
        moved += u32::from(now > before);
        before = now;
    }
    assert!(once(home, db).status().unwrap().success());
    (kills, moved)
}

fn assert_same_as_undisturbed(home: &Path, killed: &Path, calm: &Path) {
    assert!(once(home, calm).status().unwrap().success());
    let (got, want) = (dump(killed), dump(calm));
    assert!(got == want, "{}", difference(&got, &want));
    let check = Reader::open(killed).unwrap().read(|tx| tx.dump(&["PRAGMA integrity_check"]));
    assert_eq!(check.unwrap(), "ok\n");
    let orphans = [
        "SELECT 'message', id FROM messages WHERE id >> 40 NOT IN (SELECT id FROM source_files)",
        "SELECT 'usage', key FROM usage WHERE generation NOT IN (SELECT id FROM source_files)",
    ];
    assert_eq!(Reader::open(killed).unwrap().read(|tx| tx.dump(&orphans)).unwrap(), "");
}

#[test]
fn a_first_mirror_killed_at_any_moment_ends_as_if_undisturbed() {
    let home = Home::new();
    plant(&home);
    let (killed, calm) = (home.home().join("killed/x.db"), home.home().join("calm/x.db"));
    let (kills, moved) = kill_over_and_over(home.home(), &killed);
    println!("{kills} kills, the cursors moved between {moved}");
    assert!(kills >= 10 && moved >= 5, "{kills} kills, {moved} moved: too quick or too slow");
    assert_same_as_undisturbed(home.home(), &killed, &calm);
}

#[test]
fn a_log_of_commits_deleted_after_a_kill_takes_rows_and_cursors_back_together() {
    let home = Home::new();
    plant(&home);
    let (killed, calm) = (home.home().join("killed/x.db"), home.home().join("calm/x.db"));
    for delay in [150, 60] {
        let (_keep, never) = mpsc::channel::<()>();
        let mut child = once(home.home(), &killed).spawn().unwrap();
        let _ = never.recv_timeout(Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        let beside = |ending: &str| PathBuf::from(format!("{}{ending}", killed.display()));
        let _ = fs::remove_file(beside("-wal"));
        let _ = fs::remove_file(beside("-shm"));
    }
    assert!(once(home.home(), &killed).status().unwrap().success());
    assert_same_as_undisturbed(home.home(), &killed, &calm);
}

/// With `SLOW=1` and `LULLWATCH_TREE` naming a home of `gen_transcripts.py`, some 40 MB.
#[test]
fn a_large_tree_killed_at_any_moment_ends_as_if_undisturbed() {
    let (Some(tree), Some(_)) = (std::env::var_os("LULLWATCH_TREE"), std::env::var_os("SLOW"))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (killed, calm) = (folder.path().join("killed/x.db"), folder.path().join("calm/x.db"));
    let (kills, moved) = kill_over_and_over(Path::new(&tree), &killed);
    println!("{kills} kills, the cursors moved between {moved}");
    assert_same_as_undisturbed(Path::new(&tree), &killed, &calm);
}
