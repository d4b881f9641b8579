//! Test bed: a scratch home, a store, a mirror over it, and a dump of all that was mirrored.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lullwatch::mirror::Mirror;
use lullwatch::mirror::discover::Root;
use lullwatch::source::Agent;
use lullwatch::store::{Reader, Store};

/// A moment after everything the tests write: 2026-11-30T09:00:00Z.
pub(crate) const NOW: i64 = 1_796_029_200_000;

pub(crate) struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        // In memory where there is such a place: a thousand small stores wait for no disk.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self { folder: folder.unwrap() }
    }

    pub(crate) fn home(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.folder.path().join("state/x.db")
    }

    pub(crate) fn put(&self, rel: &str, bytes: &[u8]) -> PathBuf {
        let path = self.home().join(rel);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn roots(&self) -> Vec<Root> {
        [(Agent::Claude, ".claude"), (Agent::Codex, ".codex"), (Agent::Dsh, ".dsh")]
            .map(|(agent, folder)| Root { agent, path: self.home().join(folder) })
            .into()
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.db(), Duration::from_secs(5), NOW).unwrap()
    }

    /// One whole pass of a mirror that remembers nothing but the store, as after a restart.
    pub(crate) fn pass(&self) -> Mirror {
        self.pass_at(NOW)
    }

    /// The same at a given moment, ms.
    pub(crate) fn pass_at(&self, now_ms: i64) -> Mirror {
        let mut store = self.store();
        let mut mirror = Mirror::new(&mut store, "h".to_owned(), self.roots()).unwrap();
        mirror.scan(&mut store, now_ms).unwrap();
        while mirror.step(&mut store, now_ms).unwrap() {}
        while mirror.tidy(&mut store).unwrap() {}
        mirror
    }

    /// Rows of a query, columns joined by `|`.
    pub(crate) fn query(&self, sql: &str) -> String {
        let mut reader = Reader::open(&self.db()).unwrap();
        reader.read(|tx| tx.dump(&[sql])).unwrap()
    }

    /// Everything mirrored, as text, without the ids that depend on order.
    pub(crate) fn dump(&self) -> String {
        dump(&self.db())
    }
}

/// See [`Home::dump`].
pub(crate) fn dump(db: &Path) -> String {
    let lines = [
        "SELECT agent, native_id, parent_native_id, kind, nested, facts, transcript, own_clock_ms,
             first_activity_ms, last_activity_ms, child_activity_ms, clock_ahead
         FROM sessions ORDER BY agent, native_id, parent_native_id",
        "SELECT s.agent, s.native_id, f.stem, f.place, m.id & ((1 << 40) - 1), m.native, m.kind,
             m.fallback, m.counted, m.at_ms, m.call, m.name, m.text, m.position, m.bytes, m.hash
         FROM messages m JOIN sessions s ON s.id = m.session_id
             JOIN source_files f ON f.id = m.id >> 40
         WHERE f.live = 1 ORDER BY s.agent, s.native_id, f.stem, f.path, m.id & ((1 << 40) - 1)",
        "SELECT s.native_id, s.parent_native_id, u.key, f.stem, u.input, u.cache_read,
             u.cache_write, u.output
         FROM usage u JOIN sessions s ON s.id = u.session_id JOIN source_files f
             ON f.id = u.generation
         WHERE f.live = 1 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8",
        "SELECT t.agent, t.native_id, t.parent_native_id, t.kind, t.at_ms, t.position, t.text, f.stem
         FROM titles t JOIN source_files f ON f.id = t.generation
         WHERE f.live = 1 ORDER BY 1, 2, 3, 4, 8, 5, 6, 7",
        "SELECT r.agent, r.native_id, r.parent_native_id, r.at_ms, r.outcome, f.stem
         FROM returns r JOIN source_files f ON f.id = r.generation
         WHERE f.live = 1 ORDER BY 1, 2, 3, 6, 4, 5",
        "SELECT agent, place, path, stem, position, frame_at, frame_position, head_len, head_hash,
             tail_len, tail_hash, state, skipped_lines, damaged
         FROM source_files WHERE live = 1 ORDER BY path",
    ];
    let mut reader = Reader::open(db).unwrap();
    reader.read(|tx| tx.dump(&lines)).unwrap()
}

/// The lines in which two dumps differ: a dump is too long to be read.
pub(crate) fn difference(got: &str, want: &str) -> String {
    let only = |here: &str, there: &str, sign: &str| -> String {
        let lines = here.lines().filter(|line| !there.lines().any(|other| other == *line));
        lines.flat_map(|line| [sign, " ", line, "\n"]).collect()
    };
    only(got, want, "-") + &only(want, got, "+")
}
