//! `lullwatch doctor`: what was looked at, what was found, what to do.
//!
//! It works when nothing else does: each check stands alone, and one that cannot be made is itself a
//! finding. It writes nothing and makes no file; of the database's, it touches the memory that
//! SQLite's readers share where that lies there already. It takes no lock.
//!
//! - [`database`]: the file, its writer, what it holds;
//! - [`roots`]: the agents' folders, registries, locks and hooks;
//! - [`machine`]: `/proc`, limits, clocks.

mod database;
mod machine;
mod roots;

use super::{Exit, Setting, once};
use crate::report::doctor::{self, Checkup, Finding, Level};
use crate::store::Reader;

/// Runs every check.
pub fn doctor(setting: &Setting) -> anyhow::Result<Exit> {
    let mut findings = vec![program()];
    findings.extend(configuration(setting));
    let mut reader = Reader::inspect(&setting.config.db);
    findings.extend(database::checks(setting, &mut reader));
    let mut store = reader.ok();
    findings.extend(roots::checks(setting, store.as_mut()));
    findings.extend(machine::checks(setting, store.as_mut()));
    let checkup = Checkup {
        at_ms: setting.clock.now_ms(),
        version: env!("CARGO_PKG_VERSION"),
        host: setting.host.clone(),
        findings,
    };
    once::print(|out| {
        if setting.json {
            doctor::json(out, &checkup)
        } else {
            doctor::table(out, &checkup, setting.style())
        }
    })?;
    Ok(match checkup.verdict() {
        Level::Fine | Level::Note => Exit::Fine,
        Level::Warning => Exit::Fault,
        Level::Fault => Exit::Broken,
    })
}

fn program() -> Finding {
    let found = format!(
        "lullwatch {}, SQLite {}, {} {}",
        env!("CARGO_PKG_VERSION"),
        crate::store::sqlite_version(),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    Finding::fine("program", "", found)
}

/// Variables that decide where we look; each flag's own is found by its prefix.
const VARIABLES: [&str; 7] = [
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "DSH_HOME",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "NO_COLOR",
    "TERM",
];

fn configuration(setting: &Setting) -> Vec<Finding> {
    let config = &setting.config;
    let file = match &config.file {
        Some(path) => Finding::fine("config", path.display().to_string(), "in force"),
        None => Finding::fine("config", "", "there is no config file; the defaults are in force"),
    };
    let mut set: Vec<String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with("LULLWATCH_") || VARIABLES.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={}", value.display()))
        .collect();
    set.sort();
    let found = if set.is_empty() { "none that matters is set".to_owned() } else { set.join(", ") };
    let mut findings = vec![file, Finding::fine("config", "environment", found)];
    if let Some(now_ms) = config.now_ms {
        let frozen =
            Finding::fine("clock", "--now", format!("every clock stands still, {now_ms} ms"));
        findings.push(frozen.at(Level::Note));
    }
    if let Some(on) = &config.on_terminal {
        let program = on.command.first().cloned().unwrap_or_default();
        let finding = Finding::fine("config", "on_terminal", format!("`{program}`"));
        findings.push(if is_program(&program) {
            finding
        } else {
            finding.at(Level::Warning).advise("there is no such program: correct `command`")
        });
    }
    findings
}

/// Whether a program would be found.
fn is_program(name: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let runs = |path: &std::path::Path| {
        std::fs::metadata(path)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return runs(std::path::Path::new(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| runs(&folder.join(name)))
}

/// A size in words.
fn bytes(size: i64) -> String {
    const UNITS: [(&str, i64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| size >= *unit) {
        Some((name, unit)) => format!("{}.{} {name}", size / unit, size % unit * 10 / unit),
        None => format!("{size} bytes"),
    }
}
