//! File names of the three layouts: what a file is, by its path alone.
//!
//! Directory names are lossy encodings of a working directory and are never decoded; identity comes
//! from file stems, from the folder that names a session, and from the lines themselves.
//! Sources: `formats/claude-and-codex.md` 1.1–1.2, `formats/dsh.md` 1.1–1.2.

use jiff::civil::DateTime;

use crate::source::{Hint, Place};

/// How a file's bytes become lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    Plain,
    /// dsh: many small zstd frames, each ending on a line; a torn one counts as nothing.
    ZstdFrames,
    /// Codex: one zstd stream, written whole.
    ZstdStream,
}

/// A file name recognised as part of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// What it tells an adapter.
    pub hint: Hint,
    /// How it is read.
    pub encoding: Encoding,
    /// What stands for the same log: of several files of an agent with one `twin`, wherever they
    /// lie, the highest `rank` counts. `None`: each file counts.
    pub twin: Option<String>,
    /// See `twin`.
    pub rank: u32,
}

/// A file in `projects/<enc>/`.
pub fn claude_project_file(name: &str) -> Option<Named> {
    let stem = name.strip_suffix(".jsonl")?;
    if is_uuid(stem) {
        return Some(plain(Place::Transcript, stem, None));
    }
    is_agent_stem(stem).then(|| plain(Place::SubAgent, stem, None))
}

/// A file in `projects/<enc>/<session>/` itself.
pub fn claude_session_file(name: &str, session: &str) -> Option<Named> {
    (name == "custom-title.json").then(|| plain(Place::CustomTitle, "custom-title", Some(session)))
}

/// A file below `projects/<enc>/<session>/subagents/`.
pub fn claude_agent_file(name: &str, session: &str) -> Option<Named> {
    if let Some(stem) = name.strip_suffix(".meta.json") {
        return is_agent_stem(stem).then(|| plain(Place::AgentMeta, stem, Some(session)));
    }
    let stem = name.strip_suffix(".jsonl")?;
    is_agent_stem(stem).then(|| plain(Place::SubAgent, stem, Some(session)))
}

/// A file in `sessions/**` or `archived_sessions/`. The plain file is never older than its
/// compressed twin, so it wins; both before a copy that a synchroniser or a person made beside it
/// (`rollout-…(conflict)`), in which Codex never writes.
pub fn codex_rollout(name: &str) -> Option<Named> {
    let (whole, encoding, rank) = match name.strip_suffix(".jsonl") {
        Some(stem) => (stem, Encoding::Plain, 1),
        None => (name.strip_suffix(".jsonl.zst")?, Encoding::ZstdStream, 0),
    };
    let rest = whole.strip_prefix("rollout-")?;
    let stem = rollout_name(whole);
    let rank = if stem == whole { rank + 2 } else { rank };
    let named_ms = rest.get(..19).and_then(file_name_time_ms);
    let hint = Hint { place: Place::Transcript, stem: stem.to_owned(), folder: None, named_ms };
    Some(Named { hint, encoding, twin: Some(stem.to_owned()), rank })
}

/// `rollout-<time>-<thread>[_<rollout>]` without what a copy has behind it.
fn rollout_name(stem: &str) -> &str {
    let id_ends = |from: usize| {
        let end = from.checked_add(UUID_BYTES)?;
        stem.get(from..end).filter(|id| is_uuid(id)).map(|_| end)
    };
    let Some(end) = stem.match_indices('-').find_map(|(at, _)| id_ends(at + 1)) else {
        return stem;
    };
    let goes_on = stem.get(end..).is_some_and(|rest| rest.starts_with('_'));
    let end = if goes_on { id_ends(end + 1).unwrap_or(end) } else { end };
    stem.get(..end).unwrap_or(stem)
}

/// `session_index.jsonl` of a Codex home.
pub fn codex_index(name: &str) -> Option<Named> {
    (name == "session_index.jsonl").then(|| plain(Place::SessionIndex, "session_index", None))
}

/// A file in `sessions/<cwd key>/<id>/`: `session[.vN].jsonl[.zstd]`; the highest N counts.
pub fn dsh_log(name: &str, folder: &str) -> Option<Named> {
    let (stem, encoding, plainness) = match name.strip_suffix(".jsonl") {
        Some(stem) => (stem, Encoding::Plain, 1),
        None => (name.strip_suffix(".jsonl.zstd")?, Encoding::ZstdFrames, 0),
    };
    let version: u32 = match stem.strip_prefix("session")? {
        "" => 0,
        rest => rest.strip_prefix(".v")?.parse().ok().filter(|n| (1..1000).contains(n))?,
    };
    let hint = Hint {
        place: Place::Transcript,
        stem: stem.to_owned(),
        folder: Some(folder.to_owned()),
        named_ms: None,
    };
    Some(Named { hint, encoding, twin: Some(folder.to_owned()), rank: version * 2 + plainness })
}

/// `storages/workspace.json` of a dsh home.
pub fn dsh_workspace(name: &str) -> Option<Named> {
    (name == "workspace.json").then(|| plain(Place::Workspace, "workspace", None))
}

fn plain(place: Place, stem: &str, folder: Option<&str>) -> Named {
    let hint =
        Hint { place, stem: stem.to_owned(), folder: folder.map(str::to_owned), named_ms: None };
    Named { hint, encoding: Encoding::Plain, twin: None, rank: 0 }
}

/// `agent-` and something that names one: hex, or a given name. A copy that a synchroniser or a person
/// made beside it has a dot, a space or a bracket in its name, and its records are there already.
fn is_agent_stem(stem: &str) -> bool {
    let part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    stem.strip_prefix("agent-").is_some_and(|id| !id.is_empty() && id.chars().all(part))
}

/// Bytes of a UUID in text.
const UUID_BYTES: usize = 36;

/// A UUID as the agents write it.
pub fn is_uuid(text: &str) -> bool {
    text.len() == UUID_BYTES
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// `2026-11-30T08-10-00` as if it were UTC (it is local time), ms.
fn file_name_time_ms(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('T')?;
    let stamp: DateTime = format!("{date}T{}", time.replace('-', ":")).parse().ok()?;
    Some(jiff::tz::TimeZone::UTC.to_timestamp(stamp).ok()?.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const ID: &str = "26f52589-6919-4be1-ac4b-9de9d22c854c";

    #[rstest]
    #[case::session("26f52589-6919-4be1-ac4b-9de9d22c854c.jsonl", Some(Place::Transcript))]
    #[case::old_agent("agent-1a2b3c4d.jsonl", Some(Place::SubAgent))]
    #[case::named_agent("agent-areviewer-9f8e7d6c.jsonl", Some(Place::SubAgent))]
    #[case::journal("journal.jsonl", None)]
    #[case::checkpoints("26f52589-6919-4be1-ac4b-9de9d22c854c.checkpoints.jsonl", None)]
    #[case::bare_agent("agent-.jsonl", None)]
    #[case::synced_agent("agent-a1.sync-conflict-20261130-080000-ABCDEFG.jsonl", None)]
    #[case::conflicted_agent("agent-a1 (conflicted copy 2026-11-30).jsonl", None)]
    #[case::second_agent("agent-a1 2.jsonl", None)]
    #[case::sums("26f52589-6919-4be1-ac4b-9de9d22c854c.json", None)]
    fn claude_project_files(#[case] name: &str, #[case] place: Option<Place>) {
        assert_eq!(claude_project_file(name).map(|named| named.hint.place), place);
    }

    #[test]
    fn claude_agent_files_name_their_session() {
        let meta = claude_agent_file("agent-a1.meta.json", ID).unwrap();
        assert_eq!((meta.hint.place, meta.hint.stem.as_str()), (Place::AgentMeta, "agent-a1"));
        assert_eq!(meta.hint.folder.as_deref(), Some(ID));
        assert_eq!(claude_agent_file("journal.jsonl", ID), None);
    }

    #[test]
    fn a_plain_rollout_outranks_its_compressed_twin() {
        let name = format!("rollout-2026-11-30T08-10-00-{ID}.jsonl");
        let plain = codex_rollout(&name).unwrap();
        let packed = codex_rollout(&format!("{name}.zst")).unwrap();
        assert_eq!(plain.twin, packed.twin);
        assert!(plain.rank > packed.rank);
        assert_eq!(plain.hint.named_ms, Some(1_796_026_200_000));
        assert_eq!(codex_rollout("rollout-compress-1.tmp"), None);
        assert_eq!(codex_rollout(&format!("{name}.zst.decompress.1.2.tmp")), None);
    }

    #[rstest]
    #[case::by_hand(" 2")]
    #[case::bracketed("(conflict)")]
    #[case::dropbox(" (conflicted copy 2026-11-30)")]
    #[case::syncthing(".sync-conflict-20261130-080000-ABCDEFG")]
    #[case::like_an_id("_26f52589-6919-4be1-ac4b-9de9d22c854")]
    fn a_copy_stands_for_its_rollout_and_comes_after_it(#[case] mark: &str) {
        let stem = format!("rollout-2026-11-30T08-10-00-{ID}");
        let rollout = codex_rollout(&format!("{stem}.jsonl.zst")).unwrap();
        let copy = codex_rollout(&format!("{stem}{mark}.jsonl")).unwrap();
        assert_eq!((copy.twin.as_ref(), &copy.hint), (rollout.twin.as_ref(), &rollout.hint));
        assert!(copy.rank < rollout.rank);
        let packed = codex_rollout(&format!("{stem}{mark}.jsonl.zst")).unwrap();
        assert!(packed.rank < copy.rank);
    }

    #[test]
    fn a_rollout_that_goes_on_with_another_stands_for_itself() {
        let stem = format!("rollout-2026-11-30T08-10-00-{ID}");
        let first = codex_rollout(&format!("{stem}.jsonl")).unwrap();
        let next = codex_rollout(&format!("{stem}_{ID}.jsonl")).unwrap();
        assert_ne!(first.twin, next.twin);
        assert_eq!((next.rank, next.hint.stem), (first.rank, format!("{stem}_{ID}")));
        let copy = codex_rollout(&format!("{stem}_{ID} 2.jsonl")).unwrap();
        assert_eq!(copy.twin, next.twin);
        for other in ["rollout-x.jsonl", "rollout-2026-11-30T08-10-00-é.jsonl"] {
            let named = codex_rollout(other).unwrap();
            assert_eq!(named.twin.as_deref(), other.strip_suffix(".jsonl"), "no id, no copy");
        }
    }

    #[test]
    fn the_highest_dsh_version_counts() {
        let rank = |name: &str| dsh_log(name, "id").map(|named| named.rank);
        assert!(rank("session.v4.jsonl") > rank("session.v3.jsonl.zstd"));
        assert!(rank("session.v1.jsonl.zstd") > rank("session.jsonl"));
        for other in ["session.jsonl.0a1b2c.tmp", "session.lock", "session.v0.jsonl", "x.jsonl"] {
            assert_eq!(rank(other), None, "{other}");
        }
    }
}
