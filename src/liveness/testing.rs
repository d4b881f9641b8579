//! A `/proc` of our own making, for the tests of this room.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use super::locks::device;
use super::proc::Proc;
use super::scope::Scope;

/// Ticks per second of the fake.
pub(super) const TICKS: u64 = 100;
/// When the fake was started, ms.
pub(super) const BOOT_MS: i64 = 1_700_000_000_000;
/// User of the fake's processes, and ours.
pub(super) const UID: u32 = 1000;
/// The first pid namespace.
pub(super) const FIRST_NS: u64 = 4_026_531_836;

pub(super) struct Fake {
    folder: tempfile::TempDir,
}

impl Fake {
    pub(super) fn new() -> Self {
        let fake = Self { folder: tempfile::tempdir().unwrap() };
        fake.write("self/stat", "1 (us) S 0");
        fake.write("self/mounts", "proc /proc proc rw,nosuid,nodev 0 0\n");
        fake.write("sys/kernel/random/boot_id", "boot-1\n");
        fake.write("stat", &format!("cpu 1 2 3\nbtime {}\nprocesses 9\n", BOOT_MS / 1000));
        fake.write("locks", "");
        fake.namespace(FIRST_NS);
        fake
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("proc")
    }

    /// A folder beside it, for registries and lock files.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn namespace(&self, inode: u64) {
        let link = self.path().join("self/ns/pid");
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        let _none_yet = fs::remove_file(&link);
        symlink(format!("pid:[{inode}]"), link).unwrap();
    }

    pub(super) fn process(&self, pid: u32, start: u64) {
        self.process_as(pid, start, "S", 4);
    }

    pub(super) fn process_as(&self, pid: u32, start: u64, state: &str, threads: u32) {
        let middle = "1 ".repeat(16);
        let fields = format!("{pid} (a) (b) {state} {middle}{threads} 0 {start} 1 2 3\n");
        self.write(&format!("{pid}/stat"), &fields);
        self.write(&format!("{pid}/status"), &format!("Name:\tx\nUid:\t{UID}\t0\t0\t0\n"));
        self.argv(pid, &["claude", "--resume"]);
        fs::create_dir_all(self.path().join(format!("{pid}/fd"))).unwrap();
    }

    pub(super) fn argv(&self, pid: u32, argv: &[&str]) {
        self.write(&format!("{pid}/cmdline"), &(argv.join("\0") + "\0"));
    }

    pub(super) fn opens(&self, pid: u32, number: u32, file: &Path) {
        symlink(file, self.path().join(format!("{pid}/fd/{number}"))).unwrap();
    }

    pub(super) fn closes(&self, pid: u32, number: u32) {
        fs::remove_file(self.path().join(format!("{pid}/fd/{number}"))).unwrap();
    }

    pub(super) fn ends(&self, pid: u32) {
        fs::remove_dir_all(self.path().join(pid.to_string())).unwrap();
    }

    /// The table of locks: each pid holds that file.
    pub(super) fn locks(&self, held: &[(u32, &Path)]) {
        let lines: String = held
            .iter()
            .enumerate()
            .map(|(number, (pid, file))| lock_line(number, *pid, file))
            .collect();
        self.write("locks", &lines);
    }

    pub(super) fn proc(&self) -> Proc {
        self.proc_as(UID)
    }

    pub(super) fn proc_as(&self, uid: u32) -> Proc {
        let scope = Scope { host: "host".into(), machine: None, uid, ..Scope::default() };
        Proc::at(&self.path(), TICKS, scope)
    }
}

pub(super) fn lock_line(number: usize, pid: u32, file: &Path) -> String {
    let meta = fs::metadata(file).unwrap();
    let (major, minor) = device(meta.dev());
    format!("{number}: FLOCK  ADVISORY  WRITE {pid} {major:02x}:{minor:02x}:{} 0 EOF\n", meta.ino())
}
