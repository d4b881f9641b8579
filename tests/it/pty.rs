//! The screen in a real terminal: what is written, what is given back, and when it ends.
//!
//! In this file the program under test is this test binary itself, run again in a pseudo terminal
//! with [`other_side`] alone: the real loop, fed with made-up pictures. So the terminal's way in and
//! out is proved without a store. [`real`] and [`hostile`] run the real program in a home.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use lullwatch::app::tui::{self, Exit, Fault, Feed, Notify, Request};
use lullwatch::snapshot::Picture;
use lullwatch::ui::{self, Reply};
use portable_pty::CommandBuilder;
use rustix::process::Signal;

use crate::ui::fixture;

mod hostile;
mod real;
mod scene;
mod screen;

use screen::Screen;

/// How the other side is to fail.
const FAULT: &str = "LULLWATCH_TEST_FAULT";

#[test]
#[ignore = "the other side of the tests here, not a test"]
fn other_side() {
    let fault = match std::env::var(FAULT).as_deref() {
        Ok("error") => Some(Fault::ErrorAtStart),
        Ok("panic") => Some(Fault::PanicAfterFrame),
        _ => None,
    };
    let (pictures, watched) = tokio::sync::watch::channel(None);
    let (replies, answers) = tokio::sync::mpsc::channel(8);
    let (requests, asked) = mpsc::sync_channel(8);
    let (_hope, hopeless) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        let mut picture = fixture::many();
        let mut stopped = false;
        pictures.send(Some(Arc::new(picture.clone()))).unwrap();
        while let Ok(request) = asked.recv() {
            match request {
                Request::Query(query) => {
                    picture.detail = query.open.map(|_| fixture::detail());
                    picture.snapshot.host = if stopped { "back".into() } else { "ghost".into() };
                }
                Request::Acknowledge { ids, consumer } => {
                    picture.ledger.retain(|row| !ids.contains(&row.id));
                    replies.blocking_send(Reply::Acknowledged { ids, consumer }).unwrap();
                }
                Request::ReadMessage { id, .. } => {
                    let text = Ok("the whole text".to_owned());
                    replies.blocking_send(Reply::Message { id, text }).unwrap();
                }
                Request::Suspend(done) => {
                    stopped = true;
                    done.send(()).unwrap();
                }
                Request::Resumed => picture.snapshot.host = "back".to_owned(),
                Request::Rescan => panic!("the worker fell over"),
            }
            let next: Arc<Picture> = Arc::new(picture.clone());
            pictures.send(Some(next)).unwrap();
        }
    });
    let options = tui::Options {
        ui: ui::Options::default(),
        notify: Notify::Off,
        tmux: false,
        now: Box::new(|| fixture::NOW_MS),
        fault,
    };
    let feed = Feed { pictures: watched, replies: answers, hopeless, requests };
    match tui::run(feed, options) {
        Ok(Exit::Quit) => println!("left by the user"),
        Ok(Exit::Signal(number)) => println!("left by signal {number}"),
        // Nobody is there to be told.
        Ok(Exit::HangUp) => {}
        Err(error) => panic!("left by an error: {error:#}"),
    }
}

fn open() -> Screen {
    failing(&[])
}

/// The other side of the tests, which may be told to fail.
fn failing(environment: &[(&str, &str)]) -> Screen {
    started(CommandBuilder::new(std::env::current_exe().unwrap()), environment)
}

/// The other side of the tests, started by a shell that ignores these signals.
fn ignoring(signals: &str) -> Screen {
    let mut command = CommandBuilder::new("sh");
    command.args(["-c", &format!("trap '' {signals}; exec \"$0\" \"$@\"")]);
    command.arg(std::env::current_exe().unwrap());
    started(command, &[])
}

/// The other side of the tests as a job of a shell with job control, which runs `script`; `"$0" "$@"`
/// starts it there, `stopped` waits until a job is stopped, and `gone` until it has ended well.
fn under_job_control(script: &str) -> Screen {
    let stopped = "stopped() { until grep -q '^State:.T' /proc/$1/status; do sleep 0.01; done; }";
    // The shell's `wait` also returns when a job stops.
    let gone = "gone() { until wait $1; do kill -0 $1 || return; done; echo gone; }";
    let mut command = CommandBuilder::new("sh");
    command.args(["-c", &format!("set -m; {stopped}; {gone}; {script}")]);
    command.arg(std::env::current_exe().unwrap());
    started(command, &[])
}

fn started(mut command: CommandBuilder, environment: &[(&str, &str)]) -> Screen {
    crate::stage::heed_signals();
    command.args(["--exact", "pty::other_side", "--ignored", "--nocapture", "-q"]);
    command.env("TERM", "xterm-256color");
    command.env("RUST_BACKTRACE", "0");
    for (name, value) in environment {
        command.env(name, value);
    }
    Screen::start(command, 80, 24)
}

#[test]
fn keys_drive_the_screen_and_quit_gives_the_terminal_back() {
    let mut screen = open();
    screen.wait_for("needs you 3");
    screen.send("jjj\r");
    screen.wait_for("FOLLOW");
    screen.send("\u{1b}");
    screen.wait_for("f status");
    screen.send("3");
    screen.wait_for("superseded");
    screen.send("ay");
    screen.wait_for("1 entry acknowledged for operator");
    screen.send("/zzz");
    screen.wait_for("nothing matches /zzz");
    screen.send("\u{1b}q");
    screen.wait_for("left by the user");
    screen.given_back();
}

#[test]
fn signals_give_the_terminal_back() {
    for (signal, number) in [
        (Signal::TERM, 15),
        (Signal::INT, 2),
        (Signal::QUIT, 3),
        (Signal::XCPU, 24),
        (Signal::ABORT, 6),
        (Signal::SYS, 31),
    ] {
        let mut screen = open();
        screen.wait_for("needs you 3");
        // These need not end anything.
        for needless in [Signal::USR1, Signal::USR2, Signal::ALARM, Signal::PROF, Signal::IO] {
            screen.kill(needless);
        }
        screen.send("jjj\r");
        screen.wait_for("FOLLOW");
        screen.kill(signal);
        screen.wait_for(&format!("left by signal {number}"));
        screen.given_back();
    }
    let mut screen = open();
    screen.wait_for("needs you 3");
    screen.kill(Signal::HUP);
    assert_eq!(screen.exit_code(), 0);
    screen.given_back();
}

#[test]
fn signals_ignored_at_the_start_stay_ignored() {
    let mut screen = ignoring("TERM INT QUIT HUP TSTP");
    screen.wait_for("needs you 3");
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP, Signal::TSTP] {
        screen.kill(signal);
    }
    // The key too: nobody would make us go on.
    screen.send("\u{1a}");
    screen.wait_for("has no job control");
    screen.send("q");
    screen.wait_for("left by the user");
    screen.given_back();
}

#[test]
fn failures_give_the_terminal_back_before_they_are_told() {
    for (fault, message) in [
        ("error", "left by an error: failed on purpose"),
        ("panic", "failed on purpose"),
        ("thread", "a background thread failed: "),
    ] {
        let mut screen = failing(&[(FAULT, fault)]);
        if fault == "thread" {
            screen.wait_for("needs you 3");
            screen.send("R");
        }
        screen.wait_for(message);
        assert_eq!(screen.exit_code(), 101, "{fault}");
        screen.given_back();
        let raw = screen.raw();
        let parts: Vec<&str> = raw.split("\u{1b}[?1049l").collect();
        let [_, normal] = parts.as_slice() else { panic!("{fault}: not exactly once:\n{raw}") };
        assert!(normal.contains(message), "{fault}: told on the alternate screen");
    }
}

#[test]
fn stopping_gives_the_terminal_back_and_going_on_takes_it_again() {
    let mut screen = open();
    screen.wait_for("needs you 3");
    screen.send("j\u{1a}");
    screen.wait_until_stopped();
    screen.given_back();
    screen.kill(Signal::CONT);
    screen.wait_for("lullwatch back");
    assert!(screen.text().contains("needs you 3"), "drawn whole:\n{}", screen.text());
    screen.send("q");
    screen.wait_for("left by the user");
    screen.given_back();
    // A stop from outside, for this process alone.
    let mut screen = open();
    screen.wait_for("needs you 3");
    screen.kill(Signal::TSTP);
    screen.wait_until_stopped();
    screen.given_back();
    screen.kill(Signal::CONT);
    screen.wait_for("lullwatch back");
    screen.send("\u{3}");
    screen.wait_for("left by the user");
    screen.given_back();
}

#[test]
fn a_job_in_the_background_waits_for_the_terminal_and_ends_when_told_to() {
    // As `timeout 5 lullwatch` in a script: never in front, then told to end.
    let mut screen =
        under_job_control(r#""$0" "$@" & stopped $!; kill -TERM $!; kill -CONT $!; gone $!"#);
    screen.wait_for("left by signal 15");
    screen.wait_for("gone");
    assert!(!screen.raw().contains("\u{1b}[?1049h"), "it took a terminal that is not its own");
    screen.given_back();
    // Stopped by the user, then sent into the background.
    let mut screen = under_job_control(
        r#""$0" "$@" & j=$!; fg; bg; stopped $j; kill -TERM $j; kill -CONT $j; gone $j"#,
    );
    screen.wait_for("needs you 3");
    screen.send("\u{1a}");
    screen.wait_for("gone");
    screen.given_back();
    // Started in the background, then called to the front.
    let mut screen = under_job_control(r#""$0" "$@" & stopped $!; fg && echo gone"#);
    screen.wait_for("needs you 3");
    screen.send("q");
    screen.wait_for("gone");
    screen.given_back();
}

#[test]
fn after_a_hang_up_the_process_is_gone_at_once() {
    let mut screen = open();
    screen.wait_for("needs you 3");
    screen.hang_up();
    assert!(screen.is_gone_within(Duration::from_secs(2)), "it lives on without a terminal");
}

#[test]
fn a_storm_of_sizes_is_survived() {
    let mut screen = open();
    screen.wait_for("needs you 3");
    screen.send("?");
    let sizes = [(0, 0), (1, 1), (2, 2), (5, 3), (20, 5), (53, 10), (80, 1), (1, 50), (500, 200)];
    for (columns, rows) in sizes.into_iter().cycle().take(40) {
        screen.resize(columns, rows);
    }
    screen.resize(80, 24);
    screen.wait_for("keys");
    screen.send("\u{1b}");
    screen.wait_for("needs you 3");
    screen.send("q");
    screen.wait_for("left by the user");
}

#[test]
fn what_nobody_typed_does_nothing_and_a_flood_of_keys_delays_nobody() {
    let mut screen = open();
    screen.wait_for("needs you 3");
    // A click in column 81 the old way, whose last bytes read `q(`; then the answer about a colour.
    screen.send("\u{1b}[M q(\u{1b}]11;rgb:aaaa/ffff/qqqq\u{1b}\\/abc");
    screen.wait_for("nothing matches /abc");
    screen.send("\u{1b}");
    screen.wait_for("needs you 3");
    screen.send(&"z".repeat(20_000));
    screen.send("\u{3}");
    screen.wait_for("left by the user");
    screen.given_back();
}

#[test]
fn a_terminal_of_any_size_is_survived_and_a_huge_one_refused() {
    let mut screen = open();
    screen.wait_for("needs you 3");
    screen.resize_terminal(65_535, 65_535);
    screen.wait_for("draws up to 1000x500, is 65535x65535");
    screen.resize(80, 24);
    screen.wait_for("needs you 3");
    screen.send("q");
    screen.wait_for("left by the user");
    screen.given_back();
}

#[test]
fn a_screen_at_rest_writes_nothing() {
    let mut screen = open();
    screen.wait_for("needs you 3");
    screen.send("j");
    screen.wait_for("quiet 17m");
    assert_eq!(screen.written_within(Duration::from_millis(700)), 0);
    // Selecting the selected changes nothing that is seen.
    screen.send("gj");
    screen.wait_for("quiet 17m");
    screen.written_within(Duration::from_millis(200));
    screen.send("z");
    assert_eq!(screen.written_within(Duration::from_millis(300)), 0, "a key that means nothing");
    screen.send("q");
    screen.wait_for("left by the user");
}

#[test]
fn mouse_and_paste_are_switched_off_again() {
    let mut screen = open();
    screen.wait_for("needs you 3");
    assert!(!screen.raw().contains("\u{1b}[?1000h"), "off by default");
    screen.send("M");
    screen.wait_for("mouse on");
    screen.send("\u{1b}[<0;5;7M");
    screen.wait_for("Which database");
    screen.send("/\u{1b}[200~q\u{3}x\u{1b}[201~");
    screen.wait_for("/qx");
    screen.kill(Signal::TERM);
    screen.wait_for("left by signal 15");
    screen.given_back();
}
