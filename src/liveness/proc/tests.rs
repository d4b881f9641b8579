//! Processes told apart by their start, and what an absent entry proves.

use super::*;
use crate::liveness::testing::{BOOT_MS, FIRST_NS, Fake, UID};

fn alive(run: Run) -> Seen {
    Seen::Alive(Process {
        id: ProcessId { pid: 42, start_ticks: Some(12_345) },
        started_ms: Some(BOOT_MS + 123_450),
        run,
        uid: Some(UID),
    })
}

#[test]
fn a_name_with_parentheses_does_not_shift_the_fields() {
    let stat = "7 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 5 0 777 1";
    assert_eq!(parse_stat(stat), Some((Run::Sleeping, 5, 777)));
    assert_eq!(parse_stat("7 (a) S 1 2"), None);
    assert_eq!(parse_stat("half of it"), None);
}

#[test]
fn a_process_has_start_state_and_user() {
    let fake = Fake::new();
    for (letter, run) in [("R", Run::Running), ("D", Run::Sleeping), ("T", Run::Stopped)] {
        fake.process_as(42, 12_345, letter, 4);
        assert_eq!(fake.proc().look(42, None), alive(run));
    }
    // The main thread has ended, the others work on.
    fake.process_as(42, 12_345, "Z", 3);
    assert_eq!(fake.proc().look(42, None), alive(Run::Zombie));
    fake.process_as(42, 12_345, "Z", 1);
    assert!(matches!(fake.proc().look(42, None), Seen::Exited(_)));
}

#[test]
fn a_missing_entry_counts_only_where_it_would_be_seen() {
    let fake = Fake::new();
    assert_eq!(fake.proc().look(42, Some(UID)), Seen::Missing);
    assert!(matches!(fake.proc().look(42, Some(0)), Seen::Unknown(_)));
    assert!(matches!(fake.proc().look(42, None), Seen::Unknown(_)));
    let root = Proc::at(&fake.path(), 100, Scope::default());
    assert_eq!(root.look(42, Some(UID)), Seen::Missing);
    for (options, sight) in [
        ("rw,hidepid=0", Sight::Whole),
        ("rw,hidepid=off", Sight::Whole),
        ("rw,hidepid=2", Sight::Hidden),
        ("rw,hidepid=invisible", Sight::Hidden),
    ] {
        fake.write("self/mounts", &format!("x / ext4 rw 0 0\nproc /proc proc {options} 0 0\n"));
        assert_eq!(fake.proc().sight(), sight);
        let hidden = matches!(fake.proc().look(42, Some(UID)), Seen::Unknown(_));
        assert_eq!(hidden, sight == Sight::Hidden);
    }
}

#[test]
fn without_proc_everything_is_unknown() {
    let empty = tempfile::tempdir().unwrap();
    let proc = Proc::at(empty.path(), 100, Scope { uid: UID, ..Scope::default() });
    assert_eq!(proc.sight(), Sight::None);
    assert!(matches!(proc.look(42, Some(UID)), Seen::Unknown(_)));
}

#[test]
fn the_scope_is_read_from_the_tree() {
    let fake = Fake::new();
    let scope = fake.proc().scope().clone();
    assert_eq!(scope.boot_id.as_deref(), Some("boot-1"));
    assert_eq!(scope.pid_ns, Some(FIRST_NS));
}

#[test]
fn this_very_process_is_seen_on_this_system() {
    let proc = Proc::system();
    let pid = std::process::id();
    let Seen::Alive(process) = proc.look(pid, None) else { panic!("not seen") };
    assert_eq!(process.uid, Some(proc.scope().uid));
    assert!(process.started_ms.is_some_and(|at_ms| at_ms > 1_600_000_000_000));
    assert!(proc.argv(pid).is_some_and(|argv| !argv.is_empty()));
    assert_eq!(proc.scope().relation(proc.scope()), crate::liveness::scope::Relation::Same);
}

#[test]
fn what_stands_behind_a_long_line_is_read_too() {
    let fake = Fake::new();
    // A big server: one number for each of its interrupts, in front of the boot time.
    let interrupts = "17 ".repeat(200_000);
    fake.write("stat", &format!("cpu 1 2\nintr 9 {interrupts}\nctxt 1\nbtime 1700000000\n"));
    assert_eq!(fake.proc().started_ms(100), Some(BOOT_MS + 1_000));
    fake.process(42, 7);
    let groups = "100000 ".repeat(60_000);
    fake.write("42/status", &format!("Name:\tx\nGroups:\t{groups}\nUid:\t{UID}\t0\t0\t0\n"));
    let Seen::Alive(process) = fake.proc().look(42, None) else { panic!("not there") };
    assert_eq!(process.uid, Some(UID));
}

#[test]
fn a_mount_that_hides_processes_is_found_behind_thousands_of_others() {
    let fake = Fake::new();
    let others = "overlay /var/lib/containers/x/merged overlay rw 0 0\n".repeat(4_000);
    let first = "proc /proc proc rw 0 0\n";
    let newest = "proc /proc proc rw,hidepid=2 0 0\n";
    fake.write("self/mounts", &format!("{first}{others}{newest}"));
    assert_eq!(fake.proc().sight(), Sight::Hidden);
}

#[test]
fn a_flag_behind_a_long_argument_is_read_too() {
    let fake = Fake::new();
    fake.process(42, 7);
    let prompt = "x".repeat(100_000);
    fake.argv(42, &["claude", &prompt, "--bg-spare"]);
    let argv = fake.proc().argv(42).unwrap();
    assert_eq!(argv.last().map(String::as_str), Some("--bg-spare"));
    assert_eq!(argv.len(), 3);
}

#[test]
fn a_table_of_locks_is_bounded_by_what_one_look_shows() {
    let fake = Fake::new();
    let lines = |bytes: usize| "1: FLOCK  ADVISORY  WRITE 7 08:01:99 0 EOF\n".repeat(bytes / 44);
    fake.write("locks", &lines(3 << 20));
    assert!(fake.proc().locks().is_some(), "three looks together are longer than one may be");
    fake.write("locks", &lines(9 << 20));
    assert_eq!(fake.proc().locks(), None, "cut short it would say that locks are free");
}
