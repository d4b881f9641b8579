//! The command that resumes a session, and what to know before typing it. It is shown, never run.

use crate::lifecycle::Status;
use crate::snapshot::Session;
use crate::text;

/// How a session is resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    /// The command line, fit for a POSIX shell.
    pub command: String,
    /// One sentence about who has the session open.
    pub gate: String,
}

/// How to resume a session; `None` for what has no command of its own.
pub fn resume(session: &Session) -> Option<Resume> {
    if matches!(session.kind, "subagent" | "internal") {
        return None;
    }
    let id = quoted(&session.native_id);
    let start = match session.agent {
        "claude" => format!("claude --resume {id}"),
        "codex" => format!("codex resume {id}"),
        "dsh" => format!("dsh --resume {id}"),
        _ => return None,
    };
    let command = match &session.cwd {
        Some(cwd) => format!("cd {} && {start}", quoted(cwd)),
        None => start,
    };
    Some(Resume { command, gate: gate(session) })
}

/// The resume gate: three ways, on the status and on who holds it.
fn gate(session: &Session) -> String {
    if session.process.alive == Some(true) {
        let holder = session.process.pid.map_or_else(
            || "open in a live process".to_owned(),
            |pid| format!("open in pid {pid}"),
        );
        return format!("{holder}; a second terminal would interleave");
    }
    match session.status {
        Status::Starting | Status::Running => {
            "running; a second terminal would interleave".to_owned()
        }
        Status::Idle => "not known to be open".to_owned(),
        Status::Completed
        | Status::CompletedEmpty
        | Status::Failed
        | Status::TimedOut
        | Status::Aborted
        | Status::Cancelled => "ended; nothing is known to hold it".to_owned(),
    }
}

/// One word of a shell command line. Filtered first: what is copied is what was seen.
fn quoted(raw: &str) -> String {
    let clean = text::line(raw);
    let safe = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@%+=".contains(letter);
    if !clean.is_empty() && !clean.starts_with('-') && clean.chars().all(safe) {
        clean.into_owned()
    } else {
        format!("'{}'", clean.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_hostile_id_stays_one_word() {
        for (raw, want) in [
            ("ca28c2a5-f36b", "ca28c2a5-f36b"),
            ("a b", "'a b'"),
            ("$(rm -rf ~)", "'$(rm -rf ~)'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("--yolo", "'--yolo'"),
            ("a\u{1b}]52;c;x\u{7}b", "ab"),
        ] {
            assert_eq!(quoted(raw), want);
        }
    }
}
