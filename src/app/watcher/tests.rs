//! Real folders and real events; and the trust in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use super::*;

/// How long an event may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(10);

struct Bed {
    folder: tempfile::TempDir,
    watcher: Watcher,
    orders: Receiver<Order>,
}

impl Bed {
    fn new() -> Self {
        let (send, orders) = mpsc::sync_channel(64);
        let watcher = Watcher::new(send);
        assert_eq!(watcher.mode, Mode::Events);
        Self { folder: tempfile::tempdir().unwrap(), watcher, orders }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cover(&mut self, name: &str) {
        let folder = self.path(name);
        self.watcher.cover(&[(folder, Depth::Tree)]);
    }

    /// Hears until this holds.
    #[track_caller]
    fn until(&mut self, holds: impl Fn(&Heard) -> bool) {
        let mut all = Heard::default();
        while !holds(&all) {
            let order = self.orders.recv_timeout(LIMIT);
            let Ok(Order::Hints(hints)) = order else { panic!("no more hints: {all:?}") };
            let heard = self.watcher.hear(hints);
            all.paths.extend(heard.paths);
            all.rescan |= heard.rescan;
        }
    }

    /// Hears what there is.
    fn until_quiet(&mut self) {
        while let Ok(Order::Hints(hints)) = self.orders.recv_timeout(Duration::from_millis(100)) {
            self.watcher.hear(hints);
        }
    }

    #[track_caller]
    fn until_heard(&mut self, path: &Path) {
        self.until(|all| all.paths.iter().any(|heard| heard == path));
    }
}

fn append(path: &Path) {
    use std::io::Write as _;
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(b"{}\n").unwrap();
}

#[test]
fn an_append_a_new_folder_and_what_is_written_in_it_at_once_are_heard() {
    let mut bed = Bed::new();
    fs::create_dir_all(bed.path("projects/old")).unwrap();
    let old = bed.path("projects/old/a.jsonl");
    append(&old);
    bed.cover("projects");
    append(&old);
    bed.until_heard(&old);

    let at_once = bed.path("projects/new/s/subagents/agent-1.jsonl");
    fs::create_dir_all(at_once.parent().unwrap()).unwrap();
    append(&at_once);
    bed.until_heard(&at_once);
    append(&at_once);
    bed.until_heard(&at_once);
}

#[test]
fn a_root_that_comes_later_is_noticed() {
    let mut bed = Bed::new();
    bed.cover(".claude/projects");
    fs::create_dir_all(bed.path(".claude/projects/p")).unwrap();
    bed.until(|all| all.rescan);
    bed.cover(".claude/projects");
    let file = bed.path(".claude/projects/p/a.jsonl");
    append(&file);
    bed.until_heard(&file);
}

#[test]
fn what_happens_on_the_way_to_a_missing_folder_does_not_matter() {
    let mut bed = Bed::new();
    let folders = |bed: &Bed| {
        [(bed.path("home/.codex/sessions"), Depth::Tree), (bed.path("home/inbox"), Depth::Folder)]
    };
    fs::create_dir_all(bed.path("home/inbox")).unwrap();
    let wanted = folders(&bed);
    bed.watcher.cover(&wanted);
    append(&bed.path("home/notes.json"));
    fs::create_dir(bed.path("home/holiday")).unwrap();
    bed.until_quiet();
    append(&bed.path("home/notes.json"));
    assert!(bed.orders.recv_timeout(Duration::from_millis(200)).is_err(), "we may write there");
    let note = bed.path("home/inbox/event");
    append(&note);
    bed.until(|all| {
        assert!(!all.rescan, "{all:?}");
        all.paths.contains(&note)
    });
    fs::create_dir(bed.path("home/.codex")).unwrap();
    bed.until(|all| all.rescan);
}

#[test]
fn a_folder_that_is_moved_away_or_deleted_asks_for_a_scan_and_loses_its_watch() {
    let mut bed = Bed::new();
    fs::create_dir_all(bed.path("projects/a/b")).unwrap();
    fs::create_dir_all(bed.path("projects/c")).unwrap();
    bed.cover("projects");
    fs::rename(bed.path("projects/a"), bed.path("elsewhere")).unwrap();
    bed.until(|all| all.rescan);
    append(&bed.path("elsewhere/b/unheard.jsonl"));
    fs::remove_dir_all(bed.path("projects/c")).unwrap();
    bed.until(|all| {
        assert!(all.paths.is_empty(), "{all:?}");
        all.rescan
    });
}

#[test]
fn our_own_reading_and_what_is_no_transcript_say_nothing() {
    let mut bed = Bed::new();
    fs::create_dir_all(bed.path("projects/p")).unwrap();
    let file = bed.path("projects/p/a.jsonl");
    append(&file);
    bed.cover("projects");
    assert_eq!(fs::read_dir(bed.path("projects/p")).unwrap().count(), 1);
    assert_eq!(fs::read(&file).unwrap(), b"{}\n");
    fs::write(bed.path("projects/p/output.txt"), "much").unwrap();
    append(&file);
    bed.until(|all| {
        assert!(all.paths.iter().all(|heard| *heard == file) && !all.rescan, "{all:?}");
        !all.paths.is_empty()
    });
}

#[test]
fn hints_that_found_no_room_are_remembered_as_such() {
    let (send, orders) = mpsc::sync_channel(1);
    let mut watcher = Watcher::new(send);
    assert_eq!(watcher.mode, Mode::Events);
    let folder = tempfile::tempdir().unwrap();
    watcher.cover(&[(folder.path().to_owned(), Depth::Tree)]);
    for number in 0.. {
        append(&folder.path().join(format!("{number}.jsonl")));
        if watcher.overflow.load(Ordering::Relaxed) {
            break;
        }
        assert!(number < 1_000_000, "never full");
    }
    // Events of the last appends may still be on their way: nobody listens any more once the flag
    // is ours alone.
    watcher.events = None;
    while Arc::strong_count(&watcher.overflow) > 1 {
        std::thread::yield_now();
    }
    assert!(watcher.take_overflow());
    assert!(!watcher.take_overflow(), "said once");
    drop(orders);
}

#[test]
fn growth_that_nothing_announces_twice_in_a_row_ends_the_trust() {
    let path = |name: &str| PathBuf::from(name);
    let scan = |trust: &mut Trust, grown: &[&str], at_ms: i64| {
        let grown: Vec<PathBuf> = grown.iter().map(PathBuf::from).collect();
        trust.scanned(&grown, at_ms, &mut |path| path != Path::new("linked"))
    };
    let mut trust = Trust::default();
    assert_eq!(scan(&mut trust, &["there before"], 0), 0);
    // An event that comes late is an event.
    assert_eq!(scan(&mut trust, &["late"], 1_000), 0);
    trust.announced(&[path("late")]);
    assert_eq!(scan(&mut trust, &["silent"], 5_000), 0);
    // Nor is one that has had no time to come.
    for at_ms in [5_001, 5_002, 6_999] {
        assert_eq!(scan(&mut trust, &["silent"], at_ms), 0);
    }
    assert_eq!(scan(&mut trust, &["linked"], 7_000), 1);
    assert_eq!(scan(&mut trust, &["silent"], 9_000), 0);
    assert_eq!(scan(&mut trust, &["silent"], 11_000), 1);
    assert_eq!(scan(&mut trust, &[], 13_000), 2);

    let mut shaken = Trust::default();
    scan(&mut shaken, &[], 0);
    shaken.suspend();
    scan(&mut shaken, &["after an overflow"], 1_000);
    assert_eq!(scan(&mut shaken, &[], 9_000), 0);
}

#[test]
fn a_file_system_without_events_is_polled_and_that_is_said() {
    let mut bed = Bed::new();
    fs::create_dir_all(bed.path("projects")).unwrap();
    let silent = bed.path("projects/silent.jsonl");
    append(&silent);
    bed.cover("projects");
    for at_ms in [0, 4_000, 8_000, 12_000] {
        bed.watcher.scanned(std::slice::from_ref(&silent), at_ms);
    }
    let Mode::Polling(why) = bed.watcher.mode() else { panic!("still trusted") };
    assert!(why.contains("do not arrive"), "{why}");
}

/// What scans find grown without any event, again and again.
#[track_caller]
fn stays_trusted(bed: &mut Bed, grown: &Path) {
    for at_ms in (0..10).map(|scan| scan * 4_000) {
        bed.watcher.scanned(&[grown.to_owned()], at_ms);
    }
    assert_eq!(bed.watcher.mode, Mode::Events);
}

#[test]
fn what_no_event_can_announce_is_no_test_of_events() {
    let mut bed = Bed::new();
    fs::create_dir_all(bed.path("projects/p")).unwrap();
    fs::create_dir_all(bed.path("elsewhere")).unwrap();
    bed.cover("projects");
    let elsewhere = bed.path("elsewhere/a.jsonl");
    append(&elsewhere);
    let (link, name) = (bed.path("projects/p/link.jsonl"), bed.path("projects/p/name.jsonl"));
    std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
    stays_trusted(&mut bed, &link);
    fs::hard_link(&elsewhere, &name).unwrap();
    stays_trusted(&mut bed, &name);
    // Beside the trees.
    stays_trusted(&mut bed, &elsewhere);
}

#[test]
fn one_file_beside_the_trees_is_heard_and_nothing_else_there() {
    let mut bed = Bed::new();
    let home = bed.path("codex");
    fs::create_dir_all(home.join("sessions")).unwrap();
    let index = home.join("session_index.jsonl");
    let folders = [
        (home.join("sessions"), Depth::Tree),
        (home.join("archived_sessions"), Depth::Tree),
        (home.clone(), Depth::File("session_index.jsonl")),
    ];
    bed.watcher.cover(&folders);
    for other in ["history.jsonl", "auth.json", "logs_2.sqlite-wal"] {
        append(&home.join(other));
    }
    append(&index);
    bed.until(|all| {
        assert!(all.paths.iter().all(|heard| *heard == index) && !all.rescan, "{all:?}");
        !all.paths.is_empty()
    });
    fs::create_dir(home.join("archived_sessions")).unwrap();
    bed.until(|all| all.rescan);
    stays_trusted(&mut bed, &index);
}

#[test]
fn a_link_to_a_folder_that_is_made_later_is_followed() {
    let mut bed = Bed::new();
    fs::create_dir_all(bed.path("projects")).unwrap();
    fs::create_dir_all(bed.path("elsewhere")).unwrap();
    bed.cover("projects");
    std::os::unix::fs::symlink(bed.path("elsewhere"), bed.path("projects/linked")).unwrap();
    let file = bed.path("projects/linked/a.jsonl");
    bed.until_quiet();
    append(&bed.path("elsewhere/a.jsonl"));
    bed.until_heard(&file);
}

#[test]
fn a_folder_that_was_overlooked_is_watched_once_something_grows_in_it() {
    let mut bed = Bed::new();
    fs::create_dir_all(bed.path("projects/p")).unwrap();
    bed.cover("projects");
    let folder = bed.path("projects/p");
    bed.watcher.events.as_mut().unwrap().overlook(&folder);
    let file = folder.join("a.jsonl");
    append(&file);
    bed.until_quiet();
    for at_ms in [0, 4_000] {
        bed.watcher.scanned(std::slice::from_ref(&file), at_ms);
    }
    append(&file);
    bed.until_heard(&file);
    assert_eq!(bed.watcher.mode, Mode::Events);
}
