//! What can be typed: the flags and commands, nothing done yet.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{BoolishValueParser, OsStringValueParser, TypedValueParser};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{Color, Notify, Theme, parse_duration};
use crate::source::Agent;

/// A monitor for coding-agent sessions (Claude Code, Codex, DeepSeek Harness).
///
/// A lull is not an end. Without a command it opens the terminal interface; without a terminal it
/// prints what `--once` prints.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that can be typed")]
#[derive(Debug, Parser)]
#[command(name = "lullwatch", bin_name = "lullwatch", version, max_term_width = 100)]
pub struct Cli {
    /// Flags that every command takes.
    #[command(flatten)]
    pub globals: Globals,
    /// One pass: mirror, reconcile, print, exit.
    #[arg(long, env = "LULLWATCH_ONCE", value_parser = BoolishValueParser::new(), hide_env = true)]
    pub once: bool,
    /// JSON instead of a table (with --once, or a command).
    #[arg(long, global = true, env = "LULLWATCH_JSON",
          value_parser = BoolishValueParser::new(), hide_env = true)]
    pub json: bool,
    /// List sub-agents and internal threads too.
    #[arg(long, global = true, env = "LULLWATCH_CHILDREN",
          value_parser = BoolishValueParser::new(), hide_env = true)]
    pub children: bool,
    /// Exit with 3 when something needs attention.
    #[arg(long, global = true, env = "LULLWATCH_EXIT_CODE",
          value_parser = BoolishValueParser::new(), hide_env = true)]
    pub exit_code: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Flags that every command takes; each also as an environment variable.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options for every command")]
pub struct Globals {
    /// Silent for no longer than this is running; fixed when the database is made [default: 5m].
    #[arg(long, global = true, env = "LULLWATCH_LIVE_WINDOW", value_name = "DURATION",
          value_parser = parse_duration, hide_env = true)]
    pub live_window: Option<i64>,
    /// Silent for no longer than this is idle; fixed when the database is made [default: 24h].
    #[arg(long, global = true, env = "LULLWATCH_ENDED_WINDOW", value_name = "DURATION",
          value_parser = parse_duration, hide_env = true)]
    pub ended_window: Option<i64>,
    /// Show only this agent's sessions: claude, codex or dsh.
    #[arg(long, global = true, env = "LULLWATCH_AGENT", value_name = "AGENT",
          value_parser = parse_agent, hide_env = true)]
    pub agent: Option<Agent>,
    /// Show only sessions active within this time.
    #[arg(long, global = true, env = "LULLWATCH_SINCE", value_name = "DURATION",
          value_parser = parse_duration, hide_env = true)]
    pub since: Option<i64>,
    /// One more place to look: an agent's home, or its folder of transcripts. Repeatable.
    #[arg(long, global = true, env = "LULLWATCH_ROOT", value_name = "AGENT=PATH",
          value_parser = OsStringValueParser::new().try_map(|typed: OsString| parse_roots(&typed)), hide_env = true)]
    pub root: Vec<Roots>,
    /// The database [default: `$XDG_STATE_HOME/lullwatch/lullwatch.db`].
    #[arg(long, global = true, env = "LULLWATCH_DB", value_name = "PATH", hide_env = true)]
    pub db: Option<PathBuf>,
    /// The config file [default: `$XDG_CONFIG_HOME/lullwatch/config.toml`].
    #[arg(long, global = true, env = "LULLWATCH_CONFIG", value_name = "PATH", hide_env = true)]
    pub config: Option<PathBuf>,
    /// Whose ledger to show and acknowledge [default: operator].
    #[arg(long, global = true, env = "LULLWATCH_CONSUMER", value_name = "NAME", hide_env = true)]
    pub consumer: Option<String>,
    /// When to use colour [default: auto].
    #[arg(long, global = true, env = "LULLWATCH_COLOR", value_name = "WHEN", hide_env = true)]
    pub color: Option<Color>,
    /// Draw with ASCII only.
    #[arg(long, global = true, env = "LULLWATCH_ASCII", value_name = "YES|NO", num_args = 0..=1,
          require_equals = true, default_missing_value = "yes",
          value_parser = BoolishValueParser::new(), hide_env = true)]
    pub ascii: Option<bool>,
    /// Theme of the terminal interface [default: dark].
    #[arg(long, global = true, env = "LULLWATCH_THEME", value_name = "THEME", hide_env = true)]
    pub theme: Option<Theme>,
    /// Take the mouse in the terminal interface.
    #[arg(long, global = true, env = "LULLWATCH_MOUSE", value_name = "YES|NO", num_args = 0..=1,
          require_equals = true, default_missing_value = "yes",
          value_parser = BoolishValueParser::new(), hide_env = true)]
    pub mouse: Option<bool>,
    /// How the terminal interface calls when a session needs you or ends [default: off].
    #[arg(long, global = true, env = "LULLWATCH_NOTIFY", value_name = "HOW", hide_env = true)]
    pub notify: Option<Notify>,
    /// Write diagnostics to this file (never a transcript's content).
    #[arg(long, global = true, env = "LULLWATCH_LOG_FILE", value_name = "PATH", hide_env = true)]
    pub log_file: Option<PathBuf>,
    /// Print work counters on stderr.
    #[arg(long, global = true, env = "LULLWATCH_STATS",
          value_parser = BoolishValueParser::new(), hide_env = true)]
    pub stats: bool,
    /// Let every clock stand still at this time (for tests).
    #[arg(long, global = true, env = "LULLWATCH_NOW", value_name = "RFC3339",
          value_parser = parse_now, hide = true)]
    pub now: Option<i64>,
    /// Commit whenever so many bytes have been read (for tests).
    #[arg(long, global = true, env = "LULLWATCH_STEP_BYTES", value_name = "BYTES", hide = true)]
    pub step_bytes: Option<usize>,
}

/// What one `--root` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots(pub Vec<(Agent, PathBuf)>);

/// The commands.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Run for ever without a screen; print each transition.
    Watch,
    /// Run an agent under watch: its end, its exit code and its session are recorded.
    ///
    /// The command keeps the terminal, its signals and its exit code (128 and the number of the
    /// signal that ended it; 124 when its time was up; 126 or 127 when it cannot be started).
    Run {
        /// Name of the run [default: the program's name and a number].
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// End it after this time: SIGTERM, and SIGKILL 5 s later, to it and all below it.
        #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
        timeout: Option<i64>,
        /// Program and arguments; no shell.
        #[arg(last = true, required = true, value_name = "CMD")]
        command: Vec<OsString>,
    },
    /// One session: facts, why it has its status, timeline, brackets, last messages.
    Show {
        /// `agent:native_id`, or any unambiguous beginning of it or of the native id.
        id: String,
    },
    /// Overrides, rejections and migrations, newest first.
    Audit,
    /// Sessions that ended and that nobody acknowledged.
    Ledger {
        /// Those acknowledged, imported or older than the consumer too.
        #[arg(long)]
        history: bool,
        /// What to do with them.
        #[command(subcommand)]
        action: Option<LedgerAction>,
    },
    /// Compaction brackets: open ones first.
    Compactions,
    /// For the agents' hook settings: takes the hook's JSON on stdin, leaves one event, says nothing.
    Hook {
        /// Name of the event, with `codex:` before it in Codex's settings; else the JSON's own.
        event: Option<String>,
        /// Print the settings to add for this agent instead; nothing is changed.
        #[arg(long, value_name = "AGENT", value_parser = ["claude", "codex"],
              conflicts_with = "event")]
        print_config: Option<String>,
    },
    /// Every folder, limit, lock and version: what was looked at, what was found, what to do.
    ///
    /// Writes nothing, and works when the database does not. Exit code 0: nothing to do; 1: it
    /// works, with warnings; 2: something does not work.
    Doctor,
    /// Re-derive imported completions that silence alone decided; idempotent.
    Migrate,
    /// Show the configuration in force, or change the store's windows.
    Config {
        /// The new windows, live and ended.
        #[arg(long, num_args = 2, value_names = ["LIVE", "ENDED"], value_parser = parse_duration)]
        set_windows: Option<Vec<i64>>,
    },
}

/// What to do with ledger entries.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum LedgerAction {
    /// Acknowledge entries, by number or by session.
    Ack {
        /// Numbers of entries, or ids of sessions.
        #[arg(required_unless_present = "all")]
        ids: Vec<String>,
        /// All that are pending.
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
}

/// An empty variable is one that is not set: that is how a service file or a shell takes one back.
///
/// What was typed; else what to end with, after a help or a mistake has been told. A mistake in a line
/// that was meant to record a hook is not told: an agent takes a usage error for a refusal, and a
/// broken environment variable must not stop its user's prompt.
pub fn parse() -> Result<Cli, ExitCode> {
    let command = Cli::command().mut_args(|arg| {
        let empty = arg.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
        if empty { arg.env(None::<&'static str>) } else { arg }
    });
    let parsed = command.try_get_matches().and_then(|typed| Cli::from_arg_matches(&typed));
    match parsed {
        Ok(cli) => Ok(cli),
        Err(error) if error.use_stderr() && is_meant_as_hook(std::env::args_os()) => {
            Err(ExitCode::SUCCESS)
        }
        Err(error) => {
            tell(&error);
            Err(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)))
        }
    }
}

/// Prints a help, or a mistake, which quotes what was typed or stood in the environment.
fn tell(error: &clap::Error) {
    if error.use_stderr() {
        let told = crate::text::block(&error.render().to_string());
        // Nobody reads stderr: there is nobody to tell.
        let _ = io::stderr().write_all(told.as_bytes());
    } else {
        // A closed pipe is no error.
        let _ = error.print();
    }
}

/// Whether a command line that cannot be parsed was meant to record a hook.
fn is_meant_as_hook(args: impl Iterator<Item = OsString>) -> bool {
    let args: Vec<OsString> = args.skip(1).collect();
    let has = |word: &str| args.iter().any(|arg| arg.to_string_lossy().starts_with(word));
    args.iter().any(|arg| arg == "hook") && !has("--print-config")
}

fn parse_agent(word: &str) -> Result<Agent, String> {
    Agent::from_word(word).ok_or_else(|| "known agents: claude, codex, dsh".to_owned())
}

/// `AGENT=PATH`, and more of them behind commas. A comma before anything else belongs to the path,
/// which may be any bytes.
fn parse_roots(typed: &OsStr) -> Result<Roots, String> {
    let mut roots: Vec<(Agent, Vec<u8>)> = Vec::new();
    for piece in typed.as_bytes().split(|byte| *byte == b',') {
        let named = piece.iter().position(|byte| *byte == b'=').and_then(|at| {
            let (word, path) = piece.split_at(at);
            Some((Agent::from_word(std::str::from_utf8(word).ok()?)?, path.get(1..)?))
        });
        match (named, roots.last_mut()) {
            (Some((agent, path)), _) => roots.push((agent, path.to_vec())),
            (None, Some((_, path))) => path.extend([b",", piece].concat()),
            (None, None) => {
                return Err("write AGENT=PATH; known agents: claude, codex, dsh".to_owned());
            }
        }
    }
    if roots.iter().any(|(_, path)| path.is_empty()) {
        return Err("write AGENT=PATH".to_owned());
    }
    let path = |bytes: Vec<u8>| PathBuf::from(OsStr::from_bytes(&bytes));
    Ok(Roots(roots.into_iter().map(|(agent, bytes)| (agent, path(bytes))).collect()))
}

fn parse_now(text: &str) -> Result<i64, String> {
    let stamp: jiff::Timestamp = text.parse().map_err(|error: jiff::Error| error.to_string())?;
    Ok(stamp.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_root_may_be_any_path() {
        let roots = |typed: &[u8]| {
            let typed = OsStr::from_bytes(typed).to_owned();
            let cli = Cli::try_parse_from([OsStr::new("lullwatch"), OsStr::new("--root"), &typed]);
            cli.map(|cli| {
                cli.globals.root.into_iter().flat_map(|roots| roots.0).collect::<Vec<_>>()
            })
        };
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        assert_eq!(roots(b"codex=/a,b").unwrap(), [(Agent::Codex, path(b"/a,b"))]);
        assert_eq!(roots(b"dsh=/\xff=x").unwrap(), [(Agent::Dsh, path(b"/\xff=x"))]);
        let both = [(Agent::Claude, path(b"/a")), (Agent::Codex, path(b"/b"))];
        assert_eq!(roots(b"claude=/a,codex=/b").unwrap(), both);
        for bad in [&b"/a"[..], b"gemini=/a", b"claude=", b"claude=/a,codex="] {
            assert!(roots(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
