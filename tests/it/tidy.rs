//! The rules of the house that no compiler checks: who may know whom, and the shape of files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Who may know whom: the arrows of `docs/architecture.md`. A room may always know itself.
const MAY_KNOW: [(&str, &[&str]); 18] = [
    ("text", &[]),
    ("clock", &[]),
    ("compaction", &[]),
    ("source", &["compaction"]),
    ("liveness", &["lifecycle"]),
    ("store", &["source", "lifecycle"]),
    ("mirror", &["source", "store"]),
    ("lifecycle", &["store"]),
    ("reconcile", &["lifecycle", "store", "compaction"]),
    ("delivery", &["store", "lifecycle"]),
    ("snapshot", &["store", "lifecycle", "text", "compaction"]),
    ("ui", &["snapshot", "lifecycle", "text"]),
    ("report", &["snapshot", "text"]),
    ("config", &["cli", "mirror", "source"]),
    ("cli", &["config", "source", "text"]),
    (
        "app",
        &[
            "cli",
            "clock",
            "compaction",
            "config",
            "delivery",
            "lifecycle",
            "liveness",
            "mirror",
            "reconcile",
            "report",
            "snapshot",
            "source",
            "store",
            "text",
            "ui",
        ],
    ),
    ("main", &["app", "cli"]),
    ("lib", &[]),
];

/// Parts of a room that must not know what the room may: the vocabulary and the pure rules of the
/// lifecycle know nothing of ours.
const PURE: [&str; 4] =
    ["lifecycle.rs", "lifecycle/decide.rs", "lifecycle/policy.rs", "lifecycle/work.rs"];

fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &mut |path| {
        if path.extension().is_some_and(|ending| ending == "rs") {
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            found.push((name, fs::read_to_string(path).unwrap()));
        }
    });
    found.sort();
    found
}

fn walk(folder: &Path, each: &mut impl FnMut(&PathBuf)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, each) } else { each(&path) }
    }
}

fn room(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap()
}

fn is_test_file(file: &str) -> bool {
    file.ends_with("tests.rs") || file.contains("/tests/") || file.ends_with("testing.rs")
}

/// The code before the first test module, without comments.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
    let plain = |line: &&str| !line.trim_start().starts_with("//");
    text[..end].lines().filter(plain).collect::<Vec<_>>().join("\n")
}

/// Rooms that a file names: `crate::room` and the members of `use crate::{…}`.
fn known_rooms(code: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for prefix in ["crate::", "lullwatch::"] {
        for (at, _) in code.match_indices(prefix) {
            let rest = &code[at + prefix.len()..];
            let names: Vec<&str> = match rest.strip_prefix('{') {
                Some(list) => list[..list.find('}').unwrap_or(0)].split(',').collect(),
                None => vec![rest],
            };
            for name in names {
                let word: String = name
                    .trim()
                    .chars()
                    .take_while(|letter| letter.is_ascii_lowercase() || *letter == '_')
                    .collect();
                rooms.push(word);
            }
        }
    }
    rooms
}

#[test]
fn rooms_know_only_whom_they_may() {
    let table: BTreeMap<&str, &[&str]> = MAY_KNOW.into_iter().collect();
    let mut broken = Vec::new();
    for (file, text) in sources() {
        let own = room(&file);
        let Some(allowed) = table.get(own) else {
            broken.push(format!("{file}: the room `{own}` is not in the table"));
            continue;
        };
        if own == "lib" {
            continue;
        }
        for known in known_rooms(&code(&text)) {
            let pure = PURE.contains(&file.as_str()) && known != own;
            let is_room = table.contains_key(known.as_str());
            if is_room && known != own && (pure || !allowed.contains(&known.as_str())) {
                broken.push(format!("{file}: {own} must not know {known}"));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn a_room_that_knows_too_much_is_found() {
    let code = "use crate::{lifecycle::Status, ui};\nfn f() { crate::store::open() }";
    assert_eq!(known_rooms(code), ["lifecycle", "ui", "store"]);
}

#[test]
fn foreign_crates_stay_in_their_rooms() {
    let homes: [(&str, &[&str]); 6] = [
        ("rusqlite::", &["store"]),
        ("ratatui::", &["ui", "app"]),
        ("crossterm::", &["ui", "app"]),
        ("tokio::", &["app"]),
        ("std::fs", &["mirror", "liveness", "app", "config", "store"]),
        ("clap::", &["cli", "config", "main"]),
    ];
    let mut broken = Vec::new();
    for (file, text) in sources() {
        if is_test_file(&file) {
            continue;
        }
        for (name, rooms) in homes {
            if code(&text).contains(name) && !rooms.contains(&room(&file)) {
                broken.push(format!("{file} uses {name}"));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn every_test_that_the_page_on_reliability_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/reliability.md")).unwrap();
    let mut code = String::new();
    for folder in ["src", "tests/it"] {
        walk(&root.join(folder), &mut |path| {
            if path.extension().is_some_and(|ending| ending == "rs") {
                code += &fs::read_to_string(path).unwrap();
            }
        });
    }
    // Of what stands in backticks the sentences are tests.
    let named = page.split('`').skip(1).step_by(2).filter(|name| name.matches('_').count() > 2);
    let named: BTreeSet<&str> = named.collect();
    assert!(named.len() > 60, "{named:?}");
    let gone = named.into_iter().filter(|name| !code.contains(&format!("fn {name}(")));
    assert_eq!(gone.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn files_tell_one_story_and_say_which() {
    let mut broken = Vec::new();
    for (file, text) in sources() {
        if !text.starts_with("//!") {
            broken.push(format!("{file} does not begin with its story"));
        }
        if file.ends_with("/mod.rs") {
            broken.push(format!("{file}: write foo.rs beside foo/"));
        }
        if is_test_file(&file) {
            continue;
        }
        let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
        let lines = text[..end].lines().count();
        // The contract of the source room and the plain data of the snapshot are lists of types.
        let limit = if ["source.rs", "snapshot.rs"].contains(&file.as_str()) { 700 } else { 500 };
        if lines > limit {
            broken.push(format!("{file} has {lines} lines before its tests"));
        }
        for forbidden in ["Arc<Mutex", "lazy_static", "static mut", "todo!(", "unimplemented!("] {
            if text[..end].contains(forbidden) {
                broken.push(format!("{file} has {forbidden}"));
            }
        }
        if room(&file) != "app" && code(&text).contains("async ") {
            broken.push(format!("{file}: nothing below app is async"));
        }
    }
    assert_eq!(broken, [""; 0]);
}

/// `.ci/run` checks with the real program what only the shared folder has; this checks that nothing
/// in the repository needs it.
#[test]
fn tests_do_not_need_the_shared_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let needle = ["..", "shared"].join("/");
    walk(&root, &mut |path| {
        let text = fs::read(path).unwrap();
        let found = String::from_utf8_lossy(&text).contains(&needle);
        assert!(!found, "{} needs the shared folder", path.display());
    });
}

/// Links of the papers that lead to a file lead to one that is there.
#[test]
fn papers_link_to_files_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let papers = ["README.md", "docs/architecture.md", "docs/screen.md", "docs/runs.md"];
    let mut links = 0;
    for paper in papers {
        let path = root.join(paper);
        let text = fs::read_to_string(&path).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") || target.starts_with('#') {
                continue;
            }
            links += 1;
            let file = path.parent().unwrap().join(target.split('#').next().unwrap());
            assert!(file.exists(), "{paper} links to {target}");
        }
    }
    assert!(links >= 2, "the README shows pictures");
}
