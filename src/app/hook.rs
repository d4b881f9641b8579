//! `lullwatch hook`: what an agent's hook runs, inside the agent's turn.
//!
//! It must be quick, must not fail and must print nothing, whatever happens: an agent reads what a
//! hook prints, and may take a failure for a refusal. So it does not even complain about a
//! configuration that cannot be read; it never opens the database, and leaves one small file.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Exit, Setting, once};
use crate::cli::Globals;
use crate::clock::Clock;
use crate::config::{self, Surroundings};
use crate::lifecycle::moment;
use crate::liveness::hooks::{self, HookAgent, Inbox};

/// Leaves the event on stdin in the inbox. Fine, always.
pub fn record(globals: &Globals, event: Option<&str>) -> Exit {
    if let Some(db) = database(globals, &Surroundings::of_this_process()) {
        let now_ms = Clock::new(globals.now).now_ms();
        let inbox = Inbox::of(&db).folder;
        hooks::record_hook(io::stdin(), &inbox, event.unwrap_or_default(), now_ms);
    }
    Exit::Fine
}

/// Whose inbox it is. A config file that cannot be read has no say, as if it were not there.
fn database(globals: &Globals, around: &Surroundings) -> Option<PathBuf> {
    match (config::load(globals, around), &globals.db) {
        (Ok(config), _) => Some(config.db),
        (Err(_), Some(db)) => Some(around.cwd.join(db)),
        (Err(_), None) => config::default_db(around).ok(),
    }
}

/// Prints the settings to add for an agent: JSON on stdout, what to do with it on stderr.
pub fn print_config(setting: &Setting, agent: Option<&str>) -> anyhow::Result<Exit> {
    let Some(agent) = agent.and_then(HookAgent::from_word) else { return Ok(Exit::Usage) };
    let mut command = vec![program()];
    // The hook must come to the same store, whatever is set where the agent runs.
    let db = &setting.config.db;
    if config::default_db(&Surroundings::of_this_process()).as_ref() != Ok(db) {
        command.extend(["--db".to_owned(), db.display().to_string()]);
    }
    let settings = hooks::print_config(agent, &command);
    once::print(|out| out.write_all(settings.json.as_bytes()))?;
    // Nobody reads stderr: there is nobody to tell.
    let _unread = writeln!(io::stderr(), "{}", settings.hint);
    Ok(Exit::Fine)
}

/// That events were lost, for warnings and for doctor.
pub fn lost_phrase(inbox: &Path, lost: hooks::Lost) -> String {
    format!(
        "{} events of hooks were lost, the last {}: the machine was too busy, or {} is full or \
         cannot be written; what they would have said of waits and ends is seen later, or not",
        lost.events,
        moment(lost.last_ms),
        inbox.display(),
    )
}

/// How an agent calls us: by name where that leads here, else by the whole path.
fn program() -> String {
    let Ok(own) = env::current_exe() else { return "lullwatch".to_owned() };
    let paths = env::var_os("PATH").unwrap_or_default();
    let mut found = env::split_paths(&paths).map(|folder| folder.join("lullwatch"));
    let first = found.find_map(|path| path.canonicalize().ok());
    let by_name = first.is_some() && first == own.canonicalize().ok();
    if by_name { "lullwatch".to_owned() } else { own.display().to_string() }
}
