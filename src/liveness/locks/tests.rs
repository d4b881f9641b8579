use super::*;
use crate::liveness::testing::{Fake, lock_line};

fn lock_file(fake: &Fake, name: &str) -> PathBuf {
    let path = fake.beside("locks/thread-writer-locks").join(name);
    fs::write(&path, "").unwrap();
    path
}

fn seen(fake: &Fake, paths: &[&PathBuf]) -> Observed {
    let paths: Vec<PathBuf> = paths.iter().map(|path| (*path).clone()).collect();
    Locks::look(&fake.proc(), 100, 100).observe(&paths)
}

fn held(pids: &[u32]) -> Observed {
    Observed::Held(pids.iter().copied().collect())
}

#[test]
fn exclusive_locks_of_every_kind_count_and_waiters_do_not() {
    let line = |kind: &str| format!("3: {kind} 42 08:1f:1234 0 EOF");
    let wanted = Some(Line { major: 8, minor: 31, inode: 1234, pid: Some(42) });
    for kind in ["FLOCK  ADVISORY  WRITE", "POSIX  ADVISORY  WRITE", "OFDLCK ADVISORY  WRITE"] {
        assert_eq!(parse_line(&line(kind)), wanted);
    }
    for kind in ["-> FLOCK  ADVISORY  WRITE", "FLOCK  ADVISORY  READ", "LEASE  ACTIVE  WRITE"] {
        assert_eq!(parse_line(&line(kind)), None);
    }
    let nobody = parse_line("1: OFDLCK ADVISORY  WRITE -1 00:2d:77 0 EOF");
    assert_eq!(nobody, Some(Line { major: 0, minor: 45, inode: 77, pid: None }));
    for torn in ["", "1:", "1: FLOCK", "1: FLOCK ADVISORY WRITE 42", "1: FLOCK A WRITE 4 8:1"] {
        assert_eq!(parse_line(torn), None);
    }
}

#[test]
fn held_free_and_missing_are_told_apart() {
    let fake = Fake::new();
    let path = lock_file(&fake, "a.lock");
    assert_eq!(seen(&fake, &[&path]), Observed::Free);
    assert_eq!(seen(&fake, &[&path.with_file_name("none.lock")]), Observed::NoFile);
    assert_eq!(
        seen(&fake, &[&path.join("below-a-file")]),
        Observed::Unknown("its lock file cannot be looked at")
    );
    fake.process(42, 1);
    fake.opens(42, 3, &path);
    fake.locks(&[(42, &path)]);
    assert_eq!(seen(&fake, &[&path]), held(&[42]));
    // Held at any of its places is held.
    let other = lock_file(&fake, "b.lock");
    assert_eq!(seen(&fake, &[&other, &path]), held(&[42]));
}

#[test]
fn a_holder_whose_files_are_hidden_is_believed_on_the_exact_device() {
    let fake = Fake::new();
    let path = lock_file(&fake, "a.lock");
    fake.process(42, 1);
    fs::remove_dir(fake.path().join("42/fd")).unwrap();
    fake.locks(&[(42, &path)]);
    assert_eq!(seen(&fake, &[&path]), held(&[42]));
    let line = lock_line(1, 42, &path);
    let (device, _) = line.split_once(" 0 EOF").unwrap();
    let (_, device) = device.rsplit_once(' ').unwrap();
    let inode = device.rsplit_once(':').unwrap().1;
    fake.write("locks", &line.replace(device, &format!("fe:ee:{inode}")));
    assert!(matches!(seen(&fake, &[&path]), Observed::Unknown(_)));
}

#[test]
fn the_same_inode_on_another_device_is_settled_by_the_open_files() {
    let fake = Fake::new();
    let (path, other) = (lock_file(&fake, "a.lock"), lock_file(&fake, "b.lock"));
    fake.process(42, 1);
    let inode = fs::metadata(&path).unwrap().ino();
    fake.write("locks", &format!("1: FLOCK  ADVISORY  WRITE 42 00:ee:{inode} 0 EOF\n"));
    // A lock of another file system that happens to have that inode.
    fake.opens(42, 3, &other);
    assert_eq!(seen(&fake, &[&path]), Observed::Free);
    // The same file under another device (overlay, btrfs).
    fake.opens(42, 4, &path);
    assert_eq!(seen(&fake, &[&path]), held(&[42]));
}

#[test]
fn an_inherited_lock_is_held_by_the_heir() {
    let fake = Fake::new();
    let path = lock_file(&fake, "a.lock");
    fake.locks(&[(41, &path)]);
    let proc = fake.proc_as(fs::metadata(&path).unwrap().uid());
    let seen = || Locks::look(&proc, 100, 100).observe(std::slice::from_ref(&path));
    assert_eq!(seen(), held(&[]));
    fake.process(42, 1);
    fake.opens(42, 3, &path);
    assert_eq!(seen(), held(&[42]));
}

#[test]
fn without_a_table_the_open_files_tell_or_nothing_does() {
    let fake = Fake::new();
    let path = lock_file(&fake, "a.lock");
    fs::remove_file(fake.path().join("locks")).unwrap();
    fake.process(42, 1);
    assert_eq!(seen(&fake, &[&path]), Observed::Free);
    fake.opens(42, 3, &path);
    assert_eq!(seen(&fake, &[&path]), held(&[42]));
    fake.closes(42, 3);
    // One process whose files cannot be listed may be the holder.
    fake.process(43, 1);
    fs::remove_dir(fake.path().join("43/fd")).unwrap();
    assert!(matches!(seen(&fake, &[&path]), Observed::Unknown(_)));
}

#[test]
fn one_lock_is_dedicated_and_more_make_a_server() {
    let fake = Fake::new();
    let (own, child, other) =
        (lock_file(&fake, "a.lock"), lock_file(&fake, "child.lock"), lock_file(&fake, "b.lock"));
    fake.process(42, 1);
    for (number, path) in [&own, &child].into_iter().enumerate() {
        fake.opens(42, u32::try_from(number).unwrap(), path);
    }
    fake.locks(&[(42, &own), (42, &child)]);
    let others = |ids: &[&PathBuf]| {
        let ids = file_ids(ids.iter().copied());
        Locks::look(&fake.proc(), 100, 100).others_held(42, &ids)
    };
    assert_eq!(others(&[&own]), Some(1));
    assert_eq!(others(&[&own, &child]), Some(0));
    // Open, but not held: no server yet.
    fake.opens(42, 7, &other);
    assert_eq!(others(&[&own, &child]), Some(0));
    fake.locks(&[(42, &own), (42, &child), (42, &other)]);
    assert_eq!(others(&[&own, &child]), Some(1));
}

#[test]
fn lock_files_lie_where_the_agents_put_them() {
    let fake = Fake::new();
    let home = fake.beside("codex");
    let wanted = home.join("thread-writer-locks/t.lock");
    assert_eq!(codex_lock(&home, "t"), wanted);
    assert_eq!(codex_lock(&home.join("sessions"), "t"), wanted);
    assert_eq!(codex_lock(&home.join("archived_sessions"), "t"), wanted);
    assert_eq!(dsh_lock(Path::new("/a/s/session.jsonl")), Path::new("/a/s/session.lock"));
}
