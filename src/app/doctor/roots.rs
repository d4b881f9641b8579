//! What the agents leave: transcripts, registries, locks, hooks.

use std::fs;
use std::path::{Path, PathBuf};

use super::bytes;
use crate::app::{Setting, hook};
use crate::liveness::Limits;
use crate::liveness::hooks::{self, Inbox};
use crate::liveness::proc::Proc;
use crate::liveness::registry::{self, Claim, FolderState};
use crate::mirror::discover::{self, Root, RootState, Scan};
use crate::report::doctor::{Finding, Level};
use crate::source::Agent;
use crate::store::{Reader, health};

/// Unreadable places named for each root.
const UNREADABLE_MAX: usize = 3;
/// Bytes of a settings file that are searched for our hook.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;
/// More files than this wait in the inbox only when nobody takes them.
const INBOX_FILES_MAX: usize = 1_000;

/// All of it.
pub(super) fn checks(setting: &Setting, mut store: Option<&mut Reader>) -> Vec<Finding> {
    let roots = &setting.config.roots;
    let scan = discover::scan(roots);
    let mut findings = Vec::new();
    for (index, root) in roots.iter().enumerate() {
        findings.push(place(setting, &scan, index, root, store.as_deref_mut()));
    }
    if !scan.roots.contains(&RootState::Present) {
        let finding = Finding::fine("root", "", "no agent's folder was found");
        let advice = "give one with --root AGENT=PATH, or run an agent first";
        findings.push(finding.at(Level::Warning).advise(advice));
    }
    findings.push(registries(roots));
    findings.extend(locks(roots));
    findings.extend(hook_settings(roots));
    findings.push(inbox(setting));
    findings
}

fn place(
    setting: &Setting,
    scan: &Scan,
    index: usize,
    root: &Root,
    store: Option<&mut Reader>,
) -> Finding {
    let subject = format!("{} {}", root.agent.word(), root.path.display());
    let finding = |found: String| Finding::fine("root", subject.clone(), found);
    let unreadable: Vec<&Path> = scan
        .unreadable
        .iter()
        .map(|(path, _)| path.as_path())
        .filter(|path| path.starts_with(&root.path))
        .collect();
    match scan.roots.get(index).copied().unwrap_or(RootState::Missing) {
        RootState::Missing => return finding("not there".to_owned()).at(Level::Note),
        RootState::Unreadable => {
            let advice = "see who owns it: nothing below it is seen, and nothing of it is judged";
            return finding("cannot be read".to_owned()).at(Level::Fault).advise(advice);
        }
        RootState::Present => {}
    }
    let own = scan.files.iter().filter(|file| file.root == index);
    let (files, size) = own.fold((0_i64, 0_i64), |(files, size), file| {
        (files + 1, size.saturating_add(file.stat.size))
    });
    let mut found = format!("{files} files, {}", bytes(size));
    let path = root.path.as_os_str().as_encoded_bytes();
    let totals = store.and_then(|reader| {
        let read =
            reader.read(|tx| health::root_totals(tx, &setting.host, root.agent.word(), path));
        read.ok().flatten()
    });
    let mut values = vec![("files", files), ("bytes", size)];
    if let Some(totals) = totals {
        let unread = bytes(totals.unread_bytes);
        found = format!(
            "{found}; {} sessions, {} files without one, {unread} not read yet",
            totals.sessions, totals.no_session,
        );
        values.push(("sessions", totals.sessions));
        values.push(("no_session", totals.no_session));
        values.push(("unread_bytes", totals.unread_bytes));
    } else {
        found += "; not mirrored yet";
    }
    let finding = Finding { values, ..finding(found) };
    if unreadable.is_empty() {
        return finding;
    }
    let shown: Vec<String> =
        unreadable.iter().take(UNREADABLE_MAX).map(|path| path.display().to_string()).collect();
    let advice = format!("{} cannot be read: {}", unreadable.len(), shown.join(", "));
    finding.at(Level::Warning).advise(advice)
}

fn registries(roots: &[Root]) -> Finding {
    let claude = roots.iter().filter(|root| root.agent == Agent::Claude);
    let folders: Vec<PathBuf> = claude.map(|root| registry::folder_of(&root.path)).collect();
    let registry = registry::read(&folders, Limits::default().entries_max);
    let proc = Proc::system();
    let proven = registry
        .entries
        .iter()
        .filter(|entry| matches!(registry::judge(entry, &proc).claim, Claim::Proven(_)))
        .count();
    let bad: Vec<String> = registry
        .folders
        .iter()
        .filter(|(_, state)| *state == FolderState::Unreadable)
        .map(|(folder, _)| folder.display().to_string())
        .collect();
    let there = registry.folders.iter().filter(|(_, state)| *state == FolderState::Present).count();
    let found = format!(
        "{there} folder(s), {} entries, {proven} of live processes, {} unreadable",
        registry.entries.len(),
        registry.unreadable.len()
    );
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let finding = Finding::fine("registry", "claude", found)
        .with("entries", count(registry.entries.len()))
        .with("live", count(proven))
        .with("unreadable", count(registry.unreadable.len()));
    if !bad.is_empty() {
        let advice = format!("cannot be read, so what it would say is unknown: {}", bad.join(", "));
        return finding.at(Level::Warning).advise(advice);
    }
    if registry.truncated {
        return finding.at(Level::Warning).advise("there are more entries than are read");
    }
    if there == 0 {
        return finding.at(Level::Note);
    }
    finding
}

/// Codex's folder of locks; dsh's lie beside its logs.
fn locks(roots: &[Root]) -> Vec<Finding> {
    let codex = roots.iter().filter(|root| root.agent == Agent::Codex && root.path.is_dir());
    let each = |root: &Root| {
        let folder = root.path.join("thread-writer-locks");
        let subject = folder.display().to_string();
        match fs::read_dir(&folder) {
            Ok(entries) => {
                let found =
                    format!("{} lock files; who holds one is seen in /proc", entries.count());
                Finding::fine("locks", subject, found)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let found = "not there: Codex before 0.147, or none ran; the windows decide";
                Finding::fine("locks", subject, found).at(Level::Note)
            }
            Err(error) => Finding::fine("locks", subject, error.to_string())
                .at(Level::Warning)
                .advise("see who owns it: without it nobody knows which threads are open"),
        }
    };
    codex.map(each).collect()
}

/// Whether the agents call our hook, by their own settings files.
fn hook_settings(roots: &[Root]) -> Vec<Finding> {
    let file = |root: &Root| match root.agent {
        Agent::Claude => Some((root.path.join("settings.json"), "claude")),
        Agent::Codex => Some((root.path.join("hooks.json"), "codex")),
        Agent::Dsh => None,
    };
    let each = |(path, agent): (PathBuf, &str)| {
        let text = read(&path).unwrap_or_default();
        // Between the program and its command may stand which store is meant.
        let calls = |word: &&str| word.contains("lullwatch") && word.contains(" hook ");
        let events = text.split('"').filter(calls).count();
        let count = i64::try_from(events).unwrap_or(i64::MAX);
        let subject = path.display().to_string();
        if events > 0 {
            let found = format!("{events} events call lullwatch");
            return Finding::fine("hooks", subject, found).with("events", count);
        }
        Finding::fine("hooks", subject, "not configured; approvals and ends are seen later")
            .at(Level::Note)
            .with("events", 0)
            .advise(format!("`lullwatch hook --print-config {agent}` prints what to add"))
    };
    roots.iter().filter(|root| root.path.is_dir()).filter_map(file).map(each).collect()
}

fn read(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(SETTINGS_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn inbox(setting: &Setting) -> Finding {
    let folder = Inbox::of(&setting.config.db).folder;
    let subject = folder.display().to_string();
    match hooks::read_inbox(&folder, INBOX_FILES_MAX + 1, setting.clock.now_ms()) {
        Ok(_) if !folder.is_dir() => {
            Finding::fine("inbox", subject, "not there: no hook has called yet")
        }
        Ok(files) => {
            let waiting = files.iter().filter(|(_, event)| event.is_ok()).count();
            let lost = hooks::lost(&folder);
            let events = lost.map_or(0, |lost| lost.events);
            let finding = |found: String| {
                Finding::fine("inbox", subject.clone(), found)
                    .with("waiting", i64::try_from(waiting).unwrap_or(i64::MAX))
                    .with("lost", i64::try_from(events).unwrap_or(i64::MAX))
            };
            if let Some(lost) = lost {
                let found = format!("{waiting} wait; {}", hook::lost_phrase(&folder, lost));
                return finding(found).at(Level::Warning).advise(
                    "let `lullwatch watch` run, which takes them; a day after the last they are \
                     counted anew",
                );
            }
            let found = finding(format!("{waiting} events of hooks wait for the writer"));
            if waiting > INBOX_FILES_MAX {
                return found.at(Level::Warning).advise("run `lullwatch --once`: it takes them");
            }
            found
        }
        Err(error) => Finding::fine("inbox", subject, error.to_string())
            .at(Level::Warning)
            .advise("see who owns it: what hooks left there is not taken"),
    }
}
