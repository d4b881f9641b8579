//! What to do with a file, given what we remember of it and what it is now. Pure.
//!
//! `size`, `ctime`, device and inode equal means untouched: `ctime`, because `touch` and `rsync` can
//! restore `mtime`. Anything else is looked at: the bytes at the head and just before our position
//! must still be those we read, else it is another file under the same name (a new generation).

/// What `fstat` says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    /// Device.
    pub dev: i64,
    /// Inode.
    pub ino: i64,
    /// Bytes.
    pub size: i64,
    /// Change time, ns since 1970.
    pub ctime_ns: i64,
    /// Modification time, ms since 1970; orders the work, decides nothing.
    pub mtime_ms: i64,
}

/// Bytes of a window whose hash says that they have not changed.
pub const WINDOW_BYTES: u64 = 1024;

/// How far a generation has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    /// What the file was when it was last read to its end; zeros while there is more to read.
    pub stat: Stat,
    /// Decoded offset just behind the last complete line.
    pub position: u64,
    /// Where the frame in which to go on starts in the file; for plain files, `position`.
    pub frame_at: u64,
    /// Decoded offset of that frame's start; for plain files, `position`.
    pub frame_position: u64,
    /// `frame_at` lies inside a broken compressed part, which has been counted.
    pub in_damage: bool,
    /// Bytes at the head that were hashed, and their hash.
    pub head: (u64, i64),
    /// Bytes before the place to go on at that were hashed, and their hash.
    pub tail: (u64, i64),
}

impl Cursor {
    /// Fits no file: what it was is not known, and the file is read anew.
    pub const NOWHERE: Self = Self {
        stat: Stat { dev: 0, ino: 0, size: 0, ctime_ns: 0, mtime_ms: 0 },
        position: 0,
        frame_at: 0,
        frame_position: 0,
        in_damage: false,
        head: (0, -1),
        tail: (0, -1),
    };

    /// Whether a reader can have left it: a damaged row may say anything.
    pub fn is_possible(&self) -> bool {
        let within = |bytes: u64| i64::try_from(bytes).is_ok_and(|bytes| bytes < i64::MAX / 2);
        within(self.position)
            && within(self.frame_at)
            && self.frame_position <= self.position
            && self.head.0 <= WINDOW_BYTES
            && self.tail.0 <= WINDOW_BYTES
    }
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Nothing changed since it was read to its end.
    Unchanged,
    /// Verify the windows, then go on where we were.
    Continue,
    /// It is shorter than what we read: another content.
    Restart,
}

/// Whether a file that was read to its end may hold something else in its middle: it has changed, and
/// is as long as before. The same is told of one whose mode or links have changed.
pub fn is_rewritten(read: &Stat, now: &Stat) -> bool {
    (read.dev, read.ino, read.size) == (now.dev, now.ino, now.size)
        && read.ctime_ns != now.ctime_ns
        && read.size > 0
}

/// Decides by stat alone.
pub fn plan(cursor: &Cursor, now: &Stat) -> Plan {
    let same = Stat { mtime_ms: 0, ..cursor.stat } == Stat { mtime_ms: 0, ..*now };
    if same {
        Plan::Unchanged
    } else if u64::try_from(now.size).unwrap_or(0) < cursor.frame_at {
        Plan::Restart
    } else {
        Plan::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const READ: Stat = Stat { dev: 1, ino: 2, size: 100, ctime_ns: 5, mtime_ms: 9 };

    #[rstest]
    #[case::untouched(READ, Plan::Unchanged)]
    #[case::only_mtime_restored(Stat { mtime_ms: 1, ..READ }, Plan::Unchanged)]
    #[case::same_size_other_ctime(Stat { ctime_ns: 6, ..READ }, Plan::Continue)]
    #[case::grown(Stat { size: 120, ctime_ns: 6, ..READ }, Plan::Continue)]
    #[case::replaced(Stat { ino: 3, ..READ }, Plan::Continue)]
    #[case::a_pending_tail_was_cut(Stat { size: 95, ctime_ns: 6, ..READ }, Plan::Continue)]
    #[case::shorter_than_read(Stat { size: 89, ctime_ns: 6, ..READ }, Plan::Restart)]
    fn by_stat(#[case] now: Stat, #[case] want: Plan) {
        let cursor = Cursor { stat: READ, position: 90, frame_at: 90, ..Cursor::default() };
        assert_eq!(plan(&cursor, &now), want);
    }
}
