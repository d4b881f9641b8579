//! What kind of file system a path lies on, and whether others use it over a network: locks of
//! theirs are not seen here, and SQLite is not safe there.

use std::path::Path;

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// What the system calls it.
    pub name: String,
    /// Whether it lies on a network; `None` where that cannot be told.
    pub network: Option<bool>,
}

impl FileSystem {
    /// That of a path.
    pub fn of(path: &Path) -> Self {
        match rustix::fs::statfs(path) {
            Ok(stat) => told(&stat),
            Err(_) => Self { name: "unknown file system".to_owned(), network: None },
        }
    }
}

/// Kinds of file systems by their number, of linux/magic.h; true: on a network.
#[cfg(target_os = "linux")]
const KINDS: [(u64, &str, bool); 17] = [
    (0xef53, "ext4", false),
    (0x9123_683e, "btrfs", false),
    (0x5846_5342, "xfs", false),
    (0x2fc1_2fc1, "zfs", false),
    (0x0102_1994, "tmpfs", false),
    (0x794c_7630, "overlay", false),
    (0xf2f5_2010, "f2fs", false),
    (0xca45_1a4e, "bcachefs", false),
    (0x6969, "nfs", true),
    (0x517b, "smb", true),
    (0xff53_4d42, "cifs", true),
    (0xfe53_4d42, "smb2", true),
    (0x0102_1997, "9p", true),
    (0x00c3_6400, "ceph", true),
    (0x6573_5546, "fuse", true),
    (0x5346_414f, "afs", true),
    (0x7375_7245, "coda", true),
];

#[cfg(target_os = "linux")]
fn told(stat: &rustix::fs::StatFs) -> FileSystem {
    let number = u64::try_from(stat.f_type).unwrap_or(0) & 0xffff_ffff;
    match KINDS.iter().find(|(known, _, _)| *known == number) {
        Some((_, name, network)) => {
            FileSystem { name: (*name).to_owned(), network: Some(*network) }
        }
        None => FileSystem { name: format!("file system {number:#x}"), network: Some(false) },
    }
}

/// `MNT_LOCAL` of sys/mount.h: it is stored on this machine.
#[cfg(target_os = "macos")]
const LOCAL: u32 = 0x1000;

#[cfg(target_os = "macos")]
fn told(stat: &rustix::fs::StatFs) -> FileSystem {
    let name = stat.f_fstypename.iter().map(|byte| byte.cast_unsigned());
    let name: Vec<u8> = name.take_while(|byte| *byte != 0).collect();
    let name = String::from_utf8_lossy(&name).into_owned();
    FileSystem { name, network: Some(stat.f_flags & LOCAL == 0) }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn told(_stat: &rustix::fs::StatFs) -> FileSystem {
    FileSystem { name: "file system not told here".to_owned(), network: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_system_of_this_machine_is_none_of_a_network() {
        let proc = FileSystem::of(Path::new("/proc"));
        assert_eq!((proc.name.as_str(), proc.network), ("file system 0x9fa0", Some(false)));
        let nowhere = FileSystem::of(Path::new("/nowhere/at/all"));
        assert_eq!((nowhere.name.as_str(), nowhere.network), ("unknown file system", None));
    }
}
