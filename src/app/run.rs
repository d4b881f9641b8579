//! `lullwatch run -- CMD…`: an agent under watch, with its terminal untouched.
//!
//! The command keeps our terminal, our process group and our place in the foreground, so the keys
//! that make signals reach it as without us; what is sent to us alone is passed on; our exit code is
//! its own. What is seen of it is kept as a *run*, in short transactions that need no writer lock.
//! The command comes first: whatever is wrong with the database, it runs, and one line says so.
//!
//! - [`arguments`]: the command as it is kept, without its secrets;
//! - [`child`]: the command itself, its signals, its stops, its time limit;
//! - [`record`]: the run's row.

mod arguments;
mod child;
mod record;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use super::{Exit, Setting, complain};
use crate::lifecycle::run::{Cause, Ended};
use crate::liveness::proc::{Proc, Seen};
use crate::source::Agent;
use child::Watch;
use record::Record;

/// Exit code when the time was up, as that of timeout(1).
const TIMED_OUT: u8 = 124;

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Name of the run.
    pub name: Option<String>,
    /// Time limit, ms.
    pub limit_ms: Option<i64>,
    /// Program and arguments.
    pub command: Vec<OsString>,
}

/// Runs the command, and ends as it does.
pub fn run(setting: &Setting, asked: &Asked) -> anyhow::Result<Exit> {
    let Some((program, arguments)) = asked.command.split_first() else { return Ok(Exit::Usage) };
    // Before the child, so that none of its signals is missed.
    let watch = Watch::prepare()?;
    let mut record = Record::new(setting, asked, agent_of(Path::new(program)));
    record.begin();
    let spawned = Command::new(program).args(arguments).spawn();
    let child = match spawned {
        Ok(child) => child,
        Err(error) => return Ok(never_started(&mut record, program, &error)),
    };
    let proc = Proc::system();
    let start = match proc.look(child.id(), None) {
        Seen::Alive(seen) | Seen::Exited(seen) => seen.id.start_ticks,
        Seen::Missing | Seen::Unknown(_) => None,
    };
    record.running(child.id(), start);
    let outcome = watch.until_ended(child.id(), asked.limit_ms, &mut || record.look());
    let cause =
        if outcome.timed_out { Cause::Deadline } else { Cause::of(outcome.ended, outcome.signal) };
    record.ended(outcome.ended, cause);
    Ok(exit(outcome.ended, cause))
}

fn exit(ended: Ended, cause: Cause) -> Exit {
    match cause {
        Cause::Deadline => Exit::Child(TIMED_OUT),
        Cause::Itself | Cause::Interrupt | Cause::Terminate | Cause::User => {
            Exit::Child(u8::try_from(ended.code()).unwrap_or(1))
        }
    }
}

/// Says so, as shells do, and with their exit codes.
fn never_started(record: &mut Record<'_>, program: &OsString, error: &io::Error) -> Exit {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let denied = error.kind() == io::ErrorKind::PermissionDenied;
    let missing = error.kind() == io::ErrorKind::NotFound || denied && !is_found(program, &path);
    let (code, kind) = if missing { (127, io::ErrorKind::NotFound) } else { (126, error.kind()) };
    record.never_started(code, &kind.to_string());
    let why = match (missing, denied) {
        (true, true) => "it is in no folder of PATH that can be searched".to_owned(),
        (true | false, _) => error.to_string(),
    };
    complain(&format!("cannot start `{}`: {why}", program.display()));
    Exit::Child(u8::try_from(code).unwrap_or(1))
}

/// Whether there is a file that a refusal to start a program can be about. The system also says
/// *denied* when it found nothing but came by a folder of `PATH` that it must not search, or by a
/// folder of that name.
fn is_found(program: &OsStr, path: &OsStr) -> bool {
    // With a separator in it, a name is a path.
    if program.as_bytes().contains(&b'/') {
        return true;
    }
    std::env::split_paths(path).any(|folder| folder.join(program).is_file())
}

/// The agent that a program is, by its name.
fn agent_of(program: &Path) -> Option<Agent> {
    let name = program.file_name()?.to_str()?;
    Agent::from_word(name.strip_suffix(".js").unwrap_or(name))
}
