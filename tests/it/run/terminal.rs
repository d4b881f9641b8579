//! The same in a terminal: keys that make signals reach the command once, and stops go both ways.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::stage::Stage;

/// A program in a pseudo terminal, and all that it wrote.
struct Terminal {
    writer: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    seen: Arc<Mutex<String>>,
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    fn open(stage: &Stage, program: &str, arguments: &[&str]) -> Self {
        let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(arguments);
        command.env_clear();
        command.env("PS1", "$ ");
        command.cwd(stage.path("work"));
        for (name, value) in stage.environment() {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let seen = Arc::new(Mutex::new(String::new()));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let theirs = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                theirs.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
        });
        let writer = pair.master.take_writer().unwrap();
        Self { writer, child, seen, _master: pair.master }
    }

    fn send(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).unwrap();
        self.writer.flush().unwrap();
    }

    /// Waits for a text behind what was waited for before.
    #[track_caller]
    fn wait_for(&mut self, stage: &Stage, text: &str) {
        let seen = Arc::clone(&self.seen);
        stage.until(text, |_| {
            let mut seen = seen.lock().unwrap();
            let Some(at) = seen.find(text) else { return false };
            seen.replace_range(..at + text.len(), "");
            true
        });
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const LULLWATCH: &str = env!("CARGO_BIN_EXE_lullwatch");

#[test]
fn an_interrupt_from_the_keyboard_reaches_the_command_once() {
    let stage = Stage::new();
    let log = stage.path("log").display().to_string();
    stage.program(
        "agent",
        &format!(
            "trap 'echo int >> {log}' INT\necho ready\n\
            while [ ! -s {log} ]; do sleep 0.01; done\nsleep 0.1\nexit 130"
        ),
    );
    let mut terminal = Terminal::open(&stage, LULLWATCH, &["run", "--", "agent"]);
    terminal.wait_for(&stage, "ready");
    terminal.send("\u{3}");
    stage.until("ended", |_| terminal.child.try_wait().unwrap().is_some());
    assert_eq!(terminal.child.wait().unwrap().exit_code(), 130);
    assert_eq!(stage.text("log"), "int\n");
    let end = stage.query("SELECT status, reason_code, exit_code FROM runs");
    assert_eq!(end, "cancelled|run.cancelled.sigint|130\n");
}

#[test]
fn a_stop_from_the_keyboard_stops_both_and_fg_goes_on() {
    let stage = Stage::new();
    stage.program("agent", "echo ready; read line; echo \"got $line\"; read line; exit 5");
    let mut terminal = Terminal::open(&stage, "/bin/sh", &["-i"]);
    terminal.send(&format!("{LULLWATCH} run -- agent\n"));
    terminal.wait_for(&stage, "ready");
    for round in ["one", "two"] {
        terminal.send("\u{1a}");
        terminal.wait_for(&stage, "Stopped");
        terminal.send("fg\n");
        terminal.wait_for(&stage, "agent");
        if round == "one" {
            terminal.send("one\n");
            terminal.wait_for(&stage, "got one");
        }
    }
    terminal.send("\n");
    terminal.send("echo code=$?\n");
    terminal.wait_for(&stage, "code=5");
    assert_eq!(stage.query("SELECT status, exit_code FROM runs"), "failed|5\n");
}

#[test]
fn a_command_that_stops_itself_gives_the_shell_its_prompt_back() {
    let stage = Stage::new();
    stage.program("agent", "echo ready; kill -TSTP $$; echo back; exit 6");
    let mut terminal = Terminal::open(&stage, "/bin/sh", &["-i"]);
    terminal.send(&format!("{LULLWATCH} run -- agent\n"));
    terminal.wait_for(&stage, "ready");
    terminal.wait_for(&stage, "Stopped");
    terminal.send("fg\n");
    terminal.wait_for(&stage, "back");
    terminal.send("echo code=$?\n");
    terminal.wait_for(&stage, "code=6");
}
