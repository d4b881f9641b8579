//! What can be typed: the flags and commands, nothing done yet.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::{Color, Notify, Theme, parse_duration};
use crate::source::Agent;

/// A monitor for coding-agent sessions (Claude Code, Codex, DeepSeek Harness).
///
/// A lull is not an end. Without a command it opens the terminal interface; without a terminal it
/// prints what `--once` prints.
#[derive(Debug, Parser)]
#[command(name = "lullwatch", version, max_term_width = 100)]
pub struct Cli {
    /// Flags that every command takes.
    #[command(flatten)]
    pub globals: Globals,
    /// One pass: mirror, reconcile, print, exit.
    #[arg(long)]
    pub once: bool,
    /// JSON instead of a table (with --once, or a command).
    #[arg(long, global = true)]
    pub json: bool,
    /// List sub-agents and internal threads too.
    #[arg(long, global = true)]
    pub children: bool,
    /// Exit with 3 when something needs attention.
    #[arg(long, global = true)]
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
          value_parser = parse_root, value_delimiter = ',', hide_env = true)]
    pub root: Vec<(Agent, PathBuf)>,
    /// The database [default: $XDG_STATE_HOME/lullwatch/lullwatch.db].
    #[arg(long, global = true, env = "LULLWATCH_DB", value_name = "PATH", hide_env = true)]
    pub db: Option<PathBuf>,
    /// The config file [default: $XDG_CONFIG_HOME/lullwatch/config.toml].
    #[arg(long, global = true, env = "LULLWATCH_CONFIG", value_name = "PATH", hide_env = true)]
    pub config: Option<PathBuf>,
    /// Whose ledger to show and acknowledge [default: operator].
    #[arg(long, global = true, env = "LULLWATCH_CONSUMER", value_name = "NAME", hide_env = true)]
    pub consumer: Option<String>,
    /// When to use colour [default: auto].
    #[arg(long, global = true, env = "LULLWATCH_COLOR", value_name = "WHEN", hide_env = true)]
    pub color: Option<Color>,
    /// Draw with ASCII only.
    #[arg(long, global = true, env = "LULLWATCH_ASCII", hide_env = true)]
    pub ascii: bool,
    /// Theme of the terminal interface [default: dark].
    #[arg(long, global = true, env = "LULLWATCH_THEME", value_name = "THEME", hide_env = true)]
    pub theme: Option<Theme>,
    /// Take the mouse in the terminal interface.
    #[arg(long, global = true, env = "LULLWATCH_MOUSE", hide_env = true)]
    pub mouse: bool,
    /// How the terminal interface calls when a session needs you or ends [default: off].
    #[arg(long, global = true, env = "LULLWATCH_NOTIFY", value_name = "HOW", hide_env = true)]
    pub notify: Option<Notify>,
    /// Write diagnostics to this file (never a transcript's content).
    #[arg(long, global = true, env = "LULLWATCH_LOG_FILE", value_name = "PATH", hide_env = true)]
    pub log_file: Option<PathBuf>,
    /// Print work counters on stderr.
    #[arg(long, global = true, env = "LULLWATCH_STATS", hide_env = true)]
    pub stats: bool,
    /// Let every clock stand still at this time (for tests).
    #[arg(long, global = true, env = "LULLWATCH_NOW", value_name = "RFC3339",
          value_parser = parse_now, hide = true)]
    pub now: Option<i64>,
    /// Commit whenever so many bytes have been read (for tests).
    #[arg(long, global = true, env = "LULLWATCH_STEP_BYTES", value_name = "BYTES", hide = true)]
    pub step_bytes: Option<usize>,
}

/// The commands.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Run for ever without a screen; print each transition.
    Watch,
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

fn parse_agent(word: &str) -> Result<Agent, String> {
    Agent::from_word(word).ok_or_else(|| "known agents: claude, codex, dsh".to_owned())
}

fn parse_root(text: &str) -> Result<(Agent, PathBuf), String> {
    let (word, path) = text.split_once('=').ok_or("write AGENT=PATH")?;
    if path.is_empty() {
        return Err("write AGENT=PATH".to_owned());
    }
    Ok((parse_agent(word)?, PathBuf::from(path)))
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
}
