//! Running programs by name: for logs of a time when their program took no locks.
//!
//! A dsh of version 0 leaves nothing on disk that says it runs. What can be told is whether any dsh
//! runs here at all, and since when: none means that nobody writes such a log, and some means that
//! somebody may. Facts: formats/dsh.md section 3.1.

use std::path::Path;

use super::proc::{Proc, Process, Seen, Sight};

/// Arguments looked at for what a program is.
const ARGUMENTS_MAX: usize = 8;

/// The running processes of one program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Programs {
    /// Those found.
    pub found: Vec<Process>,
    /// There can be no other: every process was seen, with its arguments.
    pub whole: bool,
}

/// The running dsh processes, among at most `processes_max`.
pub fn dsh(proc: &Proc, processes_max: usize) -> Programs {
    let Some((pids, all)) = proc.pids(processes_max) else { return Programs::default() };
    let mut programs = Programs { found: Vec::new(), whole: all && proc.sight() == Sight::Whole };
    for pid in pids {
        let Seen::Alive(process) = proc.look(pid, None) else { continue };
        match proc.argv(pid) {
            Some(argv) if is_dsh(&argv) => programs.found.push(process),
            Some(_) => {}
            None => programs.whole &= proc.has_ended_since(pid),
        }
    }
    programs
}

/// Whether this is a server, which loads sessions and unloads them: Codex's daemon, `dsh web`. It
/// is one even while it holds a single session.
pub(super) fn is_server(argv: &[String]) -> bool {
    // Its options come first; what comes late is what somebody has typed.
    let mut words = argv.iter().skip(1).take(ARGUMENTS_MAX);
    words.any(|word| word == "app-server" || word == "--managed-daemon")
        || (is_dsh(argv) && argv.iter().take(ARGUMENTS_MAX).any(|word| word == "web"))
}

/// `dsh …`, or an interpreter with `…/dsh` or `…/dsh…/lib/bin.js`.
fn is_dsh(argv: &[String]) -> bool {
    argv.iter().take(3).any(|word| {
        let path = Path::new(word);
        let in_package = || path.iter().any(|part| part.to_string_lossy().contains("dsh"));
        match path.file_name().and_then(|name| name.to_str()) {
            Some("dsh" | "dsh.js") => true,
            Some("bin.js") => in_package(),
            Some(_) | None => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::super::testing::Fake;
    use super::*;

    /// A process that is there when its state is read, and is gone before its arguments are.
    #[test]
    fn a_process_that_ends_while_it_is_looked_at_hides_nothing() {
        let fake = Fake::new();
        fake.process(7, 100);
        let stat = fake.path().join("7/stat");
        let text = fs::read_to_string(&stat).unwrap();
        fs::remove_file(&stat).unwrap();
        // Whoever reads the pipe has not read to its end before the process is gone.
        mknodat(CWD, &stat, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let ends = std::thread::spawn(move || {
            let mut pipe = fs::OpenOptions::new().write(true).open(&stat).unwrap();
            fs::remove_dir_all(stat.parent().unwrap()).unwrap();
            std::io::Write::write_all(&mut pipe, text.as_bytes()).unwrap();
        });
        let seen = dsh(&fake.proc(), 99);
        ends.join().unwrap();
        assert_eq!(seen, Programs { found: Vec::new(), whole: true });
    }

    #[test]
    fn a_process_whose_arguments_cannot_be_read_may_be_anything() {
        let fake = Fake::new();
        fake.process(7, 100);
        fs::remove_file(fake.path().join("7/cmdline")).unwrap();
        assert!(!dsh(&fake.proc(), 99).whole);
    }

    fn is_dsh_line(line: &str) -> bool {
        is_dsh(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn dsh_is_known_by_its_program_not_by_its_arguments() {
        assert!(is_dsh_line("dsh web"));
        assert!(is_dsh_line("node /usr/local/bin/dsh --resume x"));
        assert!(is_dsh_line("node /opt/node_modules/@dsh/cli/lib/bin.js"));
        assert!(!is_dsh_line("node /opt/other/lib/bin.js"));
        assert!(!is_dsh_line("vim a b dsh"));
        assert!(!is_dsh_line("tail dsh.log"));
    }

    #[test]
    fn a_server_is_known_by_its_command() {
        let is_server =
            |line: &str| is_server(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(is_server("codex app-server --listen unix:///x.sock --managed-daemon"));
        assert!(is_server("/opt/codex -c a=b app-server"));
        assert!(is_server("node /usr/bin/dsh web"));
        assert!(!is_server("codex"));
        let asked = ["codex", "exec", "fix the app-server"].map(str::to_owned);
        assert!(!super::is_server(&asked));
        assert!(!is_server("node /usr/bin/dsh --resume x"));
    }
}
