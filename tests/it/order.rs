//! Whatever happened to the files, in whatever order and with whatever kills between, the store
//! ends as if it had read what lies there now in one go.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests may panic")]

use std::fs;
use std::io::Write;

use proptest::prelude::*;
use proptest::sample::Index;

use crate::family::{Kind, Script, family};
use crate::home::{Home, NOW, difference};
use lullwatch::mirror::{Limits, Mirror};
use lullwatch::store::Store;

/// What may happen next.
#[derive(Debug, Clone)]
enum Action {
    /// The writer goes on by so many bytes.
    Append(Index, usize),
    /// The writer finishes.
    Finish(Index),
    Truncate(Index, Index),
    /// Another text (cut somewhere) in the same file, or in a new one renamed over it.
    Replace(Index, Index, Index, bool),
    Move(Index, Index),
    Delete(Index),
    /// The mirror looks, and takes at most so many steps.
    Look(usize),
    /// A whole pass.
    Tick,
    /// Steps of a pass begun earlier.
    Steps(usize),
    Tidy,
    /// The process dies, and a new one starts.
    Kill,
}

fn action() -> impl Strategy<Value = Action> {
    let which = any::<Index>;
    prop_oneof![
        6 => (which(), 1_usize..900).prop_map(|(file, bytes)| Action::Append(file, bytes)),
        3 => which().prop_map(Action::Finish),
        1 => (which(), any::<Index>()).prop_map(|(file, at)| Action::Truncate(file, at)),
        2 => (which(), any::<Index>(), any::<Index>(), any::<bool>())
            .prop_map(|(file, text, cut, rename)| Action::Replace(file, text, cut, rename)),
        2 => (which(), any::<Index>()).prop_map(|(file, place)| Action::Move(file, place)),
        1 => which().prop_map(Action::Delete),
        3 => (0_usize..4).prop_map(Action::Look),
        2 => Just(Action::Tick),
        2 => (1_usize..6).prop_map(Action::Steps),
        1 => Just(Action::Tidy),
        2 => Just(Action::Kill),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    (
        prop_oneof![Just(17_usize), Just(100), Just(1 << 20)],
        prop_oneof![Just(1_usize), Just(400), Just(4 << 20)],
        prop_oneof![Just(1_usize), Just(8), Just(8_000)],
        1_usize..4,
        prop_oneof![Just(1_u64), Just(500), Just(32 << 20)],
    )
        .prop_map(|(chunk_bytes, step_bytes, step_records, step_files, turn_bytes)| Limits {
            chunk_bytes,
            step_bytes,
            step_records,
            step_files,
            turn_bytes,
        })
}

/// More steps than the whole family has bytes.
const STEPS_MAX: usize = 30_000;

/// What one file is in the model.
#[derive(Debug, Clone, Default)]
struct Known {
    place: usize,
    text: usize,
    bytes: usize,
    present: bool,
    ever: bool,
}

struct Life {
    home: Home,
    scripts: Vec<Script>,
    files: Vec<Known>,
    store: Store,
    mirror: Mirror,
    limits: Limits,
}

impl Life {
    fn new(limits: Limits) -> Self {
        let home = Home::new();
        let scripts = family();
        let mut store = home.store();
        let mirror = new_mirror(&home, &mut store, limits);
        let files = vec![Known::default(); scripts.len()];
        Self { home, scripts, files, store, mirror, limits }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Append(file, bytes) => self.append(file.index(self.files.len()), *bytes),
            Action::Finish(file) => self.append(file.index(self.files.len()), usize::MAX),
            Action::Truncate(file, at) => self.truncate(file.index(self.files.len()), *at),
            Action::Replace(file, text, cut, rename) => {
                self.replace(file.index(self.files.len()), *text, *cut, *rename);
            }
            Action::Move(file, place) => self.relocate(file.index(self.files.len()), *place),
            Action::Delete(file) => {
                let which = file.index(self.files.len());
                if self.files[which].present && self.scripts[which].kind != Kind::Moved {
                    // What nobody ever read cannot be kept.
                    self.act(&Action::Tick);
                    fs::remove_file(self.path(which)).unwrap();
                    self.files[which].present = false;
                }
            }
            Action::Look(steps) => {
                self.mirror.scan(&mut self.store, NOW).unwrap();
                self.steps(*steps);
            }
            Action::Tick => {
                self.mirror.scan(&mut self.store, NOW).unwrap();
                self.steps(usize::MAX);
            }
            Action::Steps(steps) => self.steps(*steps),
            Action::Tidy => while self.mirror.tidy(&mut self.store).unwrap() {},
            Action::Kill => {
                self.store = self.home.store();
                self.mirror = new_mirror(&self.home, &mut self.store, self.limits);
            }
        }
    }

    fn steps(&mut self, steps: usize) {
        for _ in 0..steps.min(STEPS_MAX) {
            if !self.mirror.step(&mut self.store, NOW).unwrap() {
                return;
            }
        }
        assert!(steps < STEPS_MAX, "a pass that does not end");
    }

    fn path(&self, which: usize) -> std::path::PathBuf {
        self.home.home().join(&self.scripts[which].places[self.files[which].place])
    }

    fn append(&mut self, which: usize, bytes: usize) {
        let path = self.path(which);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let known = &mut self.files[which];
        if !known.present {
            known.bytes = 0;
        }
        let text = &self.scripts[which].texts[known.text];
        let to = known.bytes.saturating_add(bytes).min(text.len());
        let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(&text[known.bytes..to]).unwrap();
        known.bytes = to;
        known.present = true;
        known.ever = true;
    }

    fn truncate(&mut self, which: usize, at: Index) {
        let path = self.path(which);
        let known = &mut self.files[which];
        if known.present && self.scripts[which].kind != Kind::Moved {
            known.bytes = at.index(known.bytes + 1);
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(known.bytes as u64).unwrap();
        }
    }

    fn replace(&mut self, which: usize, text: Index, cut: Index, rename: bool) {
        let path = self.path(which);
        let known = &mut self.files[which];
        if !known.present || self.scripts[which].kind == Kind::Moved {
            return;
        }
        known.text = text.index(self.scripts[which].texts.len());
        let whole = &self.scripts[which].texts[known.text];
        known.bytes = cut.index(whole.len() + 1);
        if rename {
            let beside = path.with_extension("tmp");
            fs::write(&beside, &whole[..known.bytes]).unwrap();
            fs::rename(beside, path).unwrap();
        } else {
            fs::write(path, &whole[..known.bytes]).unwrap();
        }
    }

    fn relocate(&mut self, which: usize, place: Index) {
        if !self.files[which].present || self.scripts[which].kind == Kind::Rewritten {
            return;
        }
        let from = self.path(which);
        self.files[which].place = place.index(self.scripts[which].places.len());
        let to = self.path(which);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(from, to).unwrap();
    }

    /// The store after a last whole pass.
    fn end(mut self) -> (String, Vec<Known>) {
        self.act(&Action::Tick);
        self.act(&Action::Tidy);
        let folder = self.home.home().display().to_string();
        (self.home.dump().replace(&folder, "~"), self.files)
    }
}

fn new_mirror(home: &Home, store: &mut Store, limits: Limits) -> Mirror {
    Mirror::new(store, "h".to_owned(), home.roots()).unwrap().with_limits(limits)
}

/// A store that saw each file once: as it lies there, or as it was before it was deleted.
fn undisturbed(files: &[Known]) -> String {
    let mut life = Life::new(Limits::default());
    let scripts = life.scripts.clone();
    for (script, known) in scripts.iter().zip(files).filter(|(_, known)| known.ever) {
        life.home.put(&script.places[known.place], &script.texts[known.text][..known.bytes]);
    }
    life.act(&Action::Tick);
    for (script, known) in scripts.iter().zip(files).filter(|(_, known)| known.ever) {
        if !known.present {
            fs::remove_file(life.home.home().join(&script.places[known.place])).unwrap();
        }
    }
    life.end().0
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(), failure_persistence: None, max_shrink_iters: 400,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_life_of_the_files_ends_as_one_read_of_what_is_left(
        limits in limits(),
        actions in prop::collection::vec(action(), 1..60),
    ) {
        let mut life = Life::new(limits);
        for action in &actions {
            life.act(action);
        }
        let (dump, files) = life.end();
        let other = undisturbed(&files);
        prop_assert!(dump == other, "{}", difference(&dump, &other));
    }
}

/// More with `LULLWATCH_CASES`, for a night.
fn cases() -> u32 {
    std::env::var("LULLWATCH_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

/// Files whose session is told late, or told anew.
fn late_identities() -> Vec<(String, String)> {
    let agent = crate::family::user(crate::family::SESSION, 3, "task");
    let nameless = agent.replace(&format!(r#""sessionId":"{}","#, crate::family::SESSION), "");
    let thread = crate::family::THREAD;
    let rollout = String::from_utf8(family()[5].texts[0].clone()).unwrap();
    let other = thread.replace("01a2", "01a3");
    let (meta, rest) = rollout.split_once('\n').unwrap();
    let log = crate::family::dsh_text("other", "hi");
    let (header, rows) = log.split_once('\n').unwrap();
    let place =
        |id: &str| format!(".codex/sessions/2026/11/30/rollout-2026-11-30T08-10-00-{id}.jsonl");
    let old = ".claude/projects/-tmp-demo/agent-b1.jsonl".to_owned();
    let dsh = ".dsh/sessions/--tmp--/folder/session.jsonl".to_owned();
    vec![
        (old.clone(), format!("{nameless}{nameless}{agent}{nameless}")),
        (old, nameless),
        (place(thread), format!("{rest}{meta}\n{rest}")),
        (place(thread), format!("{}\n{rest}{meta}\n{rest}", meta.replace(thread, &other))),
        (place("nothing"), format!("{rest}{meta}\n{rest}")),
        (place("nothing"), rest.to_owned()),
        (dsh.clone(), format!("{rows}{header}\n{rows}")),
        (dsh.clone(), rows.to_owned()),
        (dsh, format!("{header}\n{}\n{rows}", header.replace("other", "third"))),
    ]
}

#[test]
fn a_session_told_late_is_told_for_all_lines_however_they_are_read() {
    for (nth, (place, text)) in late_identities().into_iter().enumerate() {
        let read = |limits: Limits| {
            let home = Home::new();
            home.put(&place, text.as_bytes());
            let mut store = home.store();
            let mut mirror = new_mirror(&home, &mut store, limits);
            mirror.scan(&mut store, NOW).unwrap();
            while mirror.step(&mut store, NOW).unwrap() {}
            home.dump().replace(&home.home().display().to_string(), "~")
        };
        let (got, want) = (read(Limits::with_step_bytes(100)), read(Limits::default()));
        assert!(got == want, "{nth}: {place}\n{}", difference(&got, &want));
    }
}

/// Lines of four sessions that hold the same few usage keys: whose, when it spoke, which key or none.
fn shared_keys() -> impl Strategy<Value = Vec<(usize, u32, Option<u32>)>> {
    proptest::collection::vec((0_usize..4, 0_u32..8, proptest::option::of(50_u32..53)), 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn tokens_that_several_sessions_hold_count_the_same_in_whatever_order_they_come(
        lines in shared_keys(),
        step_bytes in 200_usize..3_000,
    ) {
        let tokens = "SELECT native_id, facts ->> '$.tokens' FROM sessions ORDER BY native_id";
        let (slow, whole) = (Home::new(), Home::new());
        let mut texts = vec![String::new(); 4];
        for (session, minute, key) in lines {
            let id = format!("26f5258{session}-6919-4be1-ac4b-9de9d22c854c");
            let place = format!(".claude/projects/-tmp-demo/{id}.jsonl");
            texts[session] += &match key {
                Some(key) => crate::family::answer(&id, key, "x"),
                None => crate::family::user(&id, minute, "hi"),
            };
            slow.put(&place, texts[session].as_bytes());
            whole.put(&place, texts[session].as_bytes());
            let mut store = slow.store();
            let mut mirror = new_mirror(&slow, &mut store, Limits::with_step_bytes(step_bytes));
            mirror.scan(&mut store, NOW).unwrap();
            while mirror.step(&mut store, NOW).unwrap() {}
        }
        whole.pass();
        prop_assert_eq!(slow.query(tokens), whole.query(tokens));
    }
}
