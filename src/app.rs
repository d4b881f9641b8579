//! The shell: what touches the world. It opens the store, takes the writer lock, runs passes, and
//! hands values to the rooms that draw or print. Nothing imports it.
//!
//! - [`engine`]: one pass, and one bounded step of it, for whoever holds the writer lock;
//! - [`probe`]: the look at processes in a pass, between `liveness` and the store;
//! - [`hook`]: what an agent's hook runs, inside the agent's turn;
//! - [`once`]: `--once` and the commands that read;
//! - [`worker`]: the writer's loop behind the TUI and `watch`, with [`watcher`] for its hints;
//! - [`screen`]: the TUI's threads; [`tui`] its loop, [`terminal`] the way back;
//! - [`signals`]: which of them end what runs on;
//! - [`lock`]: who writes; [`log`]: what was done, for `--log-file`.
//! - [`deliver`]: the `on_terminal` command, [`attempt`] one call of it;
//! - [`doctor`]: what is wrong, without writing anything;
//! - [`mod@run`]: a command under watch; [`link`] finds its session, [`runs`] is its part of a
//!   pass;

pub mod attempt;
mod clocks;
pub mod commands;
pub mod deliver;
pub mod doctor;
pub mod engine;
pub mod hook;
pub mod input;
pub mod link;
pub mod lock;
pub mod log;
pub mod once;
pub mod painter;
pub mod probe;
pub mod reader;
pub mod run;
pub mod runs;
pub mod screen;
pub mod signals;
pub mod terminal;
pub mod tui;
pub mod watch;
pub mod watcher;
pub mod worker;

use std::io::{self, IsTerminal, Write};

use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::cli::{Cli, Command};
use crate::clock::Clock;
use crate::config::{self, Color, Config, Surroundings};
use crate::report::{Colour, Glyphs, Style, Width};
use crate::text::Zone;

/// How a command ended; the numbers are those of the design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Fine.
    Fine,
    /// A fault; it has been told.
    Fault,
    /// The command line or the config file is wrong.
    Usage,
    /// Asked for with `--exit-code`: something needs attention.
    Attention,
    /// A signal ended it; said as shells say it.
    Signal(i32),
    /// Only of `doctor`: something does not work.
    Broken,
    /// As the command under `run` ended.
    Child(u8),
}

impl Exit {
    /// The process's exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Fault => 1,
            Self::Usage | Self::Broken => 2,
            Self::Attention => 3,
            Self::Signal(signal) => u8::try_from(128 + signal).unwrap_or(1),
            Self::Child(code) => code,
        }
    }
}

/// What every command works with.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The configuration.
    pub config: Config,
    /// The clock, perhaps frozen.
    pub clock: Clock,
    /// This host's name.
    pub host: String,
    /// JSON instead of tables.
    pub json: bool,
    /// Sub-agents too.
    pub children: bool,
    /// Exit with 3 when something needs attention.
    pub exit_code: bool,
    /// Whose clock people are told moments by.
    pub zone: Zone,
}

impl Setting {
    /// How a report on stdout looks.
    pub fn style(&self) -> Style {
        let terminal = io::stdout().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let colour = match self.config.color {
            Color::Always => Colour::Ansi,
            Color::Auto if terminal && !plain => Colour::Ansi,
            Color::Auto | Color::Never => Colour::Plain,
        };
        let width = match crossterm::terminal::size() {
            Ok((columns, _)) if terminal && columns > 0 => {
                Width::Cells(usize::from(columns.min(crate::ui::layout::WIDTH_MAX)))
            }
            _ => Width::Free,
        };
        let glyphs = if self.config.ascii { Glyphs::Ascii } else { Glyphs::Unicode };
        Style { width, colour, glyphs, zone: self.zone }
    }
}

/// Runs what was typed. Errors have been told on stderr when it returns.
pub fn run(cli: Cli) -> Exit {
    signals::outlive_file_limit();
    if let Some(Command::Hook { event, print_config: None }) = &cli.command {
        return hook::record(&cli.globals, event.as_deref());
    }
    let config = match config::load(&cli.globals, &Surroundings::of_this_process()) {
        Ok(config) => config,
        Err(message) => {
            complain(&message);
            return Exit::Usage;
        }
    };
    let setting = Setting {
        clock: Clock::new(config.now_ms),
        config,
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        json: cli.json,
        children: cli.children,
        exit_code: cli.exit_code,
        zone: local_zone(),
    };
    if let Err(error) = start_log(&setting, cli.command.as_ref()) {
        complain(&format!("{error:#}"));
        return Exit::Fault;
    }
    let settles =
        !matches!(cli.command, Some(Command::Doctor | Command::Config { set_windows: None }));
    let outcome = match cli.command {
        Some(command) => commands::run(&setting, command),
        None if cli.once || cli.json || !has_screen() => once::once(&setting),
        None => screen::run(&setting),
    };
    // Whoever leaves last leaves one file.
    if settles && !lock::is_held(&setting.config.db) {
        crate::store::settle(&setting.config.db);
    }
    match outcome {
        Ok(exit) => exit,
        Err(error) if is_closed_pipe(&error) => Exit::Fine,
        Err(error) => {
            complain(&format!("{error:#}"));
            Exit::Fault
        }
    }
}

/// The zone of `TZ`, else of this machine. The system's own files know the newest rules; a container
/// without them, or with a few of them, still gets what is compiled in.
fn local_zone() -> Zone {
    let bundled = || {
        let name = std::env::var("TZ").ok()?;
        TimeZoneDatabase::bundled().get(name.trim_start_matches(':')).ok()
    };
    TimeZone::try_system().ok().or_else(bundled).map_or_else(Zone::default, Zone::new)
}

fn start_log(setting: &Setting, command: Option<&Command>) -> anyhow::Result<()> {
    let Some(path) = &setting.config.log_file else { return Ok(()) };
    log::start(path)?;
    log::note(&format!(
        "lullwatch {}, pid {}, {}, on {}",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        command.map_or_else(|| "no command".to_owned(), |command| format!("{command:?}")),
        setting.config.db.display()
    ));
    Ok(())
}

/// Whether there is a terminal to draw on and to read keys from.
fn has_screen() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    io::stdout().is_terminal() && io::stdin().is_terminal() && !dumb
}

/// Whether a command is one that only reads.
pub fn reads_only(command: &Command) -> bool {
    match command {
        Command::Show { .. } | Command::Audit | Command::Compactions => true,
        Command::Ledger { action, .. } => action.is_none(),
        Command::Watch
        | Command::Run { .. }
        | Command::Hook { .. }
        | Command::Doctor
        | Command::Migrate
        | Command::Config { .. } => false,
    }
}

/// One line on stderr, filtered: it may quote a path.
pub fn complain(message: &str) {
    log::warn(message);
    let clean = crate::text::block(message);
    // Nobody reads stderr: there is nobody to tell.
    let _ = writeln!(io::stderr(), "lullwatch: {}", clean.trim_end());
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
