//! A pseudo terminal with a program in it, read back through an emulator.
//!
//! Synchronised on what is on the screen, with a generous limit, never on time.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on shall stop; the library of tests is no test to clippy"
)]

use std::fs;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::mpsc;
use std::time::Duration;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
/// Between two looks when nothing is written.
const LOOK: Duration = Duration::from_millis(10);

/// A program in a pseudo terminal.
pub(crate) struct Screen {
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Option<Box<dyn Write + Send>>,
    child: Box<dyn Child + Send + Sync>,
    bytes: mpsc::Receiver<Vec<u8>>,
    raw: Vec<u8>,
    emulator: vt100::Parser,
    before: String,
}

impl Screen {
    /// Starts a program in a terminal of this size.
    pub(crate) fn start(command: CommandBuilder, columns: u16, rows: u16) -> Self {
        let pair = native_pty_system().openpty(size(columns, rows)).unwrap();
        let before = modes(pair.master.as_ref());
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, bytes) = mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            writer: Some(pair.master.take_writer().unwrap()),
            master: Some(pair.master),
            child,
            bytes,
            raw: Vec::new(),
            emulator: vt100::Parser::new(cells(rows), cells(columns), 0),
            before,
        }
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        let found = self.within(LIMIT, |screen| screen.text().contains(text));
        assert!(found, "no {text:?} on the screen:\n{}", self.text());
    }

    /// Whether a text is on the screen in time.
    pub(crate) fn shows_within(&mut self, text: &str, limit: Duration) -> bool {
        self.within(limit, |screen| screen.text().contains(text))
    }

    /// Waits until a text has gone from the screen.
    #[track_caller]
    pub(crate) fn wait_until_gone(&mut self, text: &str) {
        let gone = self.within(LIMIT, |screen| !screen.text().contains(text));
        assert!(gone, "still {text:?} on the screen:\n{}", self.text());
    }

    /// Waits until a text has been written, on whichever screen.
    #[track_caller]
    pub(crate) fn wait_for_raw(&mut self, text: &str) {
        let found = self.within(LIMIT, |screen| screen.raw().contains(text));
        assert!(found, "never wrote {text:?}:\n{:?}", self.raw());
    }

    /// Types.
    pub(crate) fn send(&mut self, keys: &str) {
        let writer = self.writer.as_mut().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    /// Another size, of the terminal and of the emulator.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        // What was written for the old size is shown at the old size; what is drawn for the new
        // one must find the emulator there already.
        self.take_in(Duration::ZERO);
        self.emulator.screen_mut().set_size(cells(rows), cells(columns));
        self.master.as_ref().unwrap().resize(size(columns, rows)).unwrap();
    }

    /// Another size of the terminal alone: the emulator could not hold it.
    pub(crate) fn resize_terminal(&mut self, columns: u16, rows: u16) {
        self.master.as_ref().unwrap().resize(size(columns, rows)).unwrap();
    }

    /// What is on the screen.
    pub(crate) fn text(&self) -> String {
        self.emulator.screen().contents()
    }

    /// What is on the screen, with its colours.
    pub(crate) fn emulated(&self) -> &vt100::Screen {
        self.emulator.screen()
    }

    /// Every byte that was written.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }

    /// Sends a signal to the program alone.
    pub(crate) fn kill(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits until the program is stopped.
    #[track_caller]
    pub(crate) fn wait_until_stopped(&mut self) {
        let stopped = |screen: &Self| {
            let stat = fs::read_to_string(format!("/proc/{}/stat", screen.pid().as_raw_pid()));
            stat.is_ok_and(|stat| stat.rsplit(')').next().unwrap_or("").starts_with(" T"))
        };
        assert!(self.within(LIMIT, stopped), "it does not stop");
    }

    /// Takes the terminal away.
    pub(crate) fn hang_up(&mut self) {
        self.writer = None;
        self.master = None;
        // The reader's copy keeps the terminal in being, so the signal that a terminal sends when
        // it goes is sent here.
        let _ = kill_process(self.pid(), Signal::HUP);
    }

    /// Whether the program ends in time.
    pub(crate) fn is_gone_within(&mut self, limit: Duration) -> bool {
        let mut looks = limit.as_millis() / LOOK.as_millis();
        while self.child.try_wait().unwrap().is_none() && looks > 0 {
            self.take_in(LOOK);
            looks -= 1;
        }
        self.child.try_wait().unwrap().is_some()
    }

    /// The exit code, once it has ended.
    #[track_caller]
    pub(crate) fn exit_code(&mut self) -> u32 {
        assert!(self.is_gone_within(LIMIT), "it does not end:\n{}", self.text());
        self.child.try_wait().unwrap().unwrap().exit_code()
    }

    /// Waits so long for bytes; how many came.
    pub(crate) fn written_within(&mut self, how_long: Duration) -> usize {
        let before = self.raw.len();
        self.take_in(how_long);
        self.raw.len() - before
    }

    /// Waits until nothing has been written for a while; how many bytes came until then.
    pub(crate) fn settle(&mut self) -> usize {
        let before = self.raw.len();
        while self.written_within(Duration::from_millis(500)) > 0 {}
        self.raw.len() - before
    }

    /// The terminal is as it was: its flags, and an off-switch behind every switch.
    #[track_caller]
    pub(crate) fn given_back(&mut self) {
        let restored = self.within(LIMIT, |screen| screen.left_on().is_empty());
        assert!(restored, "left on: {:?}", self.left_on());
    }

    /// What is not as it was.
    fn left_on(&self) -> Vec<&'static str> {
        let raw = self.raw();
        let is_on = |mode: &str| {
            raw.rfind(&format!("\u{1b}[?{mode}h")) > raw.rfind(&format!("\u{1b}[?{mode}l"))
        };
        let mut left: Vec<&str> =
            ["1049", "1000", "1002", "1003", "1006", "1004", "2004", "2026"].into();
        left.retain(|mode| is_on(mode));
        if raw.rfind("\u{1b}[?25l") > raw.rfind("\u{1b}[?25h") {
            left.push("no cursor");
        }
        if modes(self.master.as_ref().unwrap().as_ref()) != self.before {
            left.push("flags");
        }
        left
    }

    fn pid(&self) -> Pid {
        let pid = self.child.process_id().and_then(|pid| i32::try_from(pid).ok());
        pid.and_then(Pid::from_raw).unwrap()
    }

    fn within(&mut self, limit: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let mut looks = limit.as_millis() / LOOK.as_millis();
        while !holds(self) && looks > 0 {
            self.take_in(LOOK);
            looks -= 1;
        }
        holds(self)
    }

    /// Takes in what was written, waiting so long for the first of it.
    fn take_in(&mut self, how_long: Duration) {
        let first = self.bytes.recv_timeout(how_long);
        // A program that has ended writes no more; waiting for it is a wait all the same.
        if first == Err(mpsc::RecvTimeoutError::Disconnected) {
            std::thread::park_timeout(how_long);
        }
        for bytes in first.into_iter().chain(self.bytes.try_iter()) {
            self.emulator.process(&bytes);
            self.raw.extend(bytes);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn modes(master: &dyn MasterPty) -> String {
    let termios = master.get_termios().unwrap();
    format!("{:?} {:?} {:?}", termios.input_flags, termios.output_flags, termios.local_flags)
}

fn cells(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}
