//! The pictures of the README, made from the running program: a home full of made-up transcripts, the
//! real binary in a pseudo terminal, real keys, and what the emulated screen shows then as SVG.
//!
//! ```console
//! cargo test --test pictures -- write     # writes assets/*.svg
//! ```
//!
//! Without `write` it makes them all the same and throws them away, so that they can always be made.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    reason = "a program for those who work on this one, which may stop at the first surprise"
)]

use std::fs;
use std::path::Path;

#[path = "../it/pty/scene.rs"]
mod scene;
#[path = "../it/pty/screen.rs"]
#[expect(dead_code, reason = "the tests in a pseudo terminal use the rest of it")]
mod screen;
mod story;
mod svg;

use screen::Screen;

/// The size of every picture, cells.
const SIZE: (u16, u16) = (100, 30);
/// No picture is larger, bytes.
const BYTES_MAX: usize = 60_000;

/// Name, keys that lead there, and a text that is on the screen then.
const PICTURES: [(&str, &[(&str, &str)]); 5] = [
    ("sessions", &[("", "needs you")]),
    ("why", &[("/refunds\r", "1 of"), ("\r", "Transcript"), ("l", "2 decided")]),
    ("timeline", &[("/recency\r", "1 of"), ("\r", "Transcript"), ("ll", "completed → ")]),
    ("ledger", &[("3", "superseded"), ("xx", "superseded")]),
    ("compactions", &[("4", "end-seed")]),
];

fn main() {
    let write = std::env::args().any(|argument| argument == "write");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
    let told = story::told();
    for (name, steps) in PICTURES {
        let mut screen = Screen::start(told.at(story::NOW_MS, &[]), SIZE.0, SIZE.1);
        screen.wait_for("· writer");
        for (keys, seen) in steps {
            screen.send(keys);
            screen.wait_for(seen);
        }
        screen.settle();
        let picture = svg::draw(screen.emulated(), &format!("lullwatch: {name}"));
        assert!(picture.len() < BYTES_MAX, "{name} has {} bytes", picture.len());
        if write {
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("{name}.svg")), &picture).unwrap();
        }
        println!("picture {name}: {} bytes", picture.len());
        screen.send("q");
        assert_eq!(screen.exit_code(), 0);
    }
}
