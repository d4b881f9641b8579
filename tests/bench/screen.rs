//! What the screen costs: a frame, a key, a whole repaint, and a picture of a large store.
//!
//! ```console
//! cargo bench --bench screen
//! ```
//!
//! It prints milliseconds, and ratios that hold on any machine: the same with a hundredth of the
//! sessions. It asserts nothing; a slow machine is no fault.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a program for those who work on this one; it measures time"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use lullwatch::app::painter::Painter;
use lullwatch::lifecycle::Windows;
use lullwatch::reconcile::{self, Look};
use lullwatch::snapshot::{self, Beside, Picture, Query};
use lullwatch::store::Reader;
use lullwatch::ui::key::Key;
use lullwatch::ui::{Model, Msg, Options, update, view};

#[path = "../it/ui/fixture.rs"]
#[expect(dead_code, reason = "the tests of the screen use the rest of it")]
mod fixture;
#[path = "../it/home.rs"]
#[expect(dead_code, reason = "the tests of the mirror use the rest of it")]
mod home;

const SESSIONS: i64 = 2_000;
const FEW: i64 = 20;
const SUB_AGENTS: i64 = 4;

fn main() {
    frames();
    pictures();
}

/// The median of so many runs, ms.
fn median_ms(runs: usize, mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let began = Instant::now();
            run();
            began.elapsed().as_secs_f64() * 1_000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[runs / 2]
}

fn told(what: &str, many: f64, few: f64) {
    println!("{what:44} {many:8.3} ms   {:6.1} x with a hundredth", many / few);
}

fn picture_of(sessions: i64) -> Picture {
    let mut picture = fixture::many();
    let few = fixture::sessions();
    picture.snapshot.sessions = (0..sessions)
        .map(|number| {
            let mut session = few[usize::try_from(number).unwrap() % few.len()].clone();
            session.row_id = 1_000 + number;
            session.native_id = format!("{number:08x}-f36b-4af0-a1a4-2d4d9bf530fb");
            session
        })
        .collect();
    picture
}

fn model_of(sessions: i64) -> Model {
    let mut model = Model::new(Options::default(), 200, 60, fixture::NOW_MS);
    update(&mut model, Msg::Picture(Arc::new(picture_of(sessions))));
    model
}

fn frames() {
    let measure = |sessions: i64| {
        let mut model = model_of(sessions);
        let frame = median_ms(200, || {
            black_box(view(&model));
        });
        let mut painter = Painter::default();
        painter.paint(view(&model));
        let mut down = true;
        let key = median_ms(200, || {
            let letter = if down { 'j' } else { 'k' };
            down = !down;
            update(&mut model, Msg::Key(Key::char(letter)));
            black_box(painter.paint(view(&model)));
        });
        let picture = Arc::new(picture_of(sessions));
        let arrival = median_ms(40, || {
            update(&mut model, Msg::Picture(Arc::clone(&picture)));
        });
        (frame, key, arrival)
    };
    let (many, few) = (measure(SESSIONS), measure(FEW));
    println!("200x60, {SESSIONS} sessions");
    told("a frame", many.0, few.0);
    told("a key, to the bytes", many.1, few.1);
    told("a picture into the model", many.2, few.2);

    let mut model = Model::new(Options::default(), 120, 40, fixture::NOW_MS);
    update(&mut model, Msg::Picture(Arc::new(picture_of(SESSIONS))));
    let bytes = Painter::default().paint(view(&model)).len();
    println!("a whole repaint at 120x40 {bytes:25} bytes, {} % of 16 KiB", bytes * 100 / 16_384);
}

fn pictures() {
    let measure = |sessions: i64, sub_agents: i64| {
        let home = home::Home::new();
        for number in 0..sessions {
            write_session(&home, number, sub_agents);
        }
        home.pass();
        let mut store = home.store();
        let options = reconcile::Options::default();
        reconcile::tick(&mut store, &Look::default(), Windows::default(), home::NOW, options)
            .unwrap();
        let mut reader = Reader::open(&home.db()).unwrap();
        let (query, beside) = (Query::default(), Beside::default());
        median_ms(21, || {
            let made = reader.read(|tx| snapshot::picture(tx, &query, &beside, home::NOW));
            assert_eq!(i64::try_from(made.unwrap().snapshot.sessions.len()), Ok(sessions));
        })
    };
    println!("a picture of the store, from the page cache");
    let few = measure(FEW, SUB_AGENTS);
    told("of 2,000 sessions", measure(SESSIONS, 0), measure(FEW, 0));
    told("of 2,000 sessions and 8,000 sub-agents", measure(SESSIONS, SUB_AGENTS), few);
}

fn write_session(home: &home::Home, number: i64, sub_agents: i64) {
    let id = format!("{number:08x}-f36b-4af0-a1a4-2d4d9bf530fb");
    let folder = format!(".claude/projects/-home-ada-p{}", number % 40);
    let minute = number % 50;
    let lines = |agent: Option<&str>| {
        let mut text = String::new();
        let own = agent.unwrap_or(&id).to_owned();
        let agent = agent.map_or_else(String::new, |name| format!(r#""agentId":"{name}","#));
        for turn in 0..3 {
            let at = format!("2026-11-30T08:{minute:02}:{turn:02}.000Z");
            let every = format!(
                r#"{agent}"sessionId":"{id}","cwd":"/home/ada/p","version":"2.1.300","timestamp":"{at}""#
            );
            let _ = writeln!(
                text,
                r#"{{"type":"user","uuid":"u{turn}-{own}",{every},"message":{{"role":"user","content":"Fix number {number}"}}}}"#
            );
            let _ = writeln!(
                text,
                r#"{{"type":"assistant","uuid":"a{turn}-{own}",{every},"message":{{"id":"m{turn}-{own}","role":"assistant","model":"claude-opus-5","stop_reason":"end_turn","content":[{{"type":"text","text":"Fixed."}}],"usage":{{"input_tokens":3,"output_tokens":9}}}}}}"#
            );
        }
        text
    };
    home.put(&format!("{folder}/{id}.jsonl"), lines(None).as_bytes());
    for agent in 0..sub_agents {
        let name = format!("{number:08x}{agent:02x}");
        let path = format!("{folder}/{id}/subagents/agent-{name}.jsonl");
        home.put(&path, lines(Some(&name)).as_bytes());
    }
}
