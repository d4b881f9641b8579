//! What may be typed, set or written in a file, which of them wins, and how a mistake is told.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use clap::{CommandFactory, Parser};
use lullwatch::cli::Cli;

use super::paper::{
    CLAUDE_ID, CODEX_ID, DSH_ID, append, claude_call, claude_path, claude_prompt, claude_session,
    codex_session, dsh_session,
};
use super::tree::Tree;
use super::{DB, Home, MINUTE, NOW, Run, run};

fn three() -> Home {
    let home = Home::new();
    claude_session(&home, CLAUDE_ID, NOW - 2 * MINUTE, "Add a table");
    codex_session(&home, CODEX_ID, NOW - 12 * MINUTE, "Fix the parser", "Fixed.");
    dsh_session(&home, DSH_ID, NOW - 22 * MINUTE, "Write a page", "Written.");
    home
}

#[test]
fn a_mistake_on_the_command_line_is_usage_and_touches_nothing() {
    let home = Home::new();
    for (args, named) in [
        (&["--frobnicate"][..], "--frobnicate"),
        (&["frobnicate"], "frobnicate"),
        (&["--once", "--live-window", "5x"], "5x"),
        (&["--once", "--ended-window", ""], "--ended-window"),
        (&["--once", "--since=-5m"], "-5m"),
        (&["--once", "--agent", "gemini"], "claude, codex, dsh"),
        (&["--once", "--root", "nothing"], "AGENT=PATH"),
        (&["--once", "--root", "claude="], "AGENT=PATH"),
        (&["--once", "--root", "gemini=/x"], "claude, codex, dsh"),
        (&["--once", "--color", "sometimes"], "sometimes"),
        (&["--once", "--now", "yesterday"], "yesterday"),
        (&["show"], "ID"),
        (&["ledger", "ack"], "IDS"),
        (&["ledger", "ack", "--all", "1"], "--all"),
        (&["config", "--set-windows", "5m"], "--set-windows"),
        (&["config", "--set-windows", "5m", "1x"], "1x"),
    ] {
        let err = run(&home, args).refused(2);
        assert!(err.to_lowercase().contains(&named.to_lowercase()), "{args:?}: {err}");
    }
    assert!(!home.home().join(".local").exists());
}

#[test]
fn a_mistake_in_the_environment_is_usage_too() {
    let home = Home::new();
    for (name, value) in [
        ("LULLWATCH_LIVE_WINDOW", "5x"),
        ("LULLWATCH_AGENT", "gemini"),
        ("LULLWATCH_ROOT", "claude"),
        ("LULLWATCH_COLOR", "sometimes"),
        ("LULLWATCH_NOW", "later"),
    ] {
        let err = Run::new(&home, &["--once"]).env(name, value).said().refused(2);
        assert!(err.contains(value), "{name}: {err}");
    }
}

#[test]
fn a_mistake_in_the_config_file_names_line_and_key() {
    for (text, parts) in [
        ("consumer = \"me\"\nlive-windw = \"5m\"\n", &["line 2", "live-windw"][..]),
        ("[on_terminl]\ncommand = [\"x\"]\n", &["on_terminl", "line 1"]),
        ("[on_terminal]\ncommand = [\"x\"]\ntimeout = \"3x\"\n", &["line 3", "timeout"]),
        ("[roots]\ngemini = [\"/x\"]\n", &["gemini", "claude, codex, dsh"]),
        ("live-window = \"5x\"\n", &["live-window", "5x"]),
        ("color = \"sometimes\"\n", &["line 1", "sometimes"]),
        ("consumer = \n", &["line 1"]),
        ("consumer = 3\n", &["line 1", "consumer"]),
    ] {
        let home = Home::new();
        let path = home.put(".config/lullwatch/config.toml", text.as_bytes());
        let err = run(&home, &["--once"]).refused(2);
        assert!(
            err.contains(path.to_str().unwrap()) || text.contains("5x") || text.contains("gemini"),
            "{err}"
        );
        for part in parts {
            assert!(err.contains(part), "no `{part}` for {text:?} in {err}");
        }
    }
    let home = Home::new();
    let err = run(&home, &["--once", "--config", "gone.toml"]).refused(2);
    assert!(err.contains("gone.toml"), "{err}");
}

#[test]
fn every_flag_for_every_command_is_also_an_environment_variable() {
    let command = Cli::command();
    let mut without = Vec::new();
    for flag in command.get_arguments().filter(|arg| arg.get_long().is_some()) {
        let long = flag.get_long().unwrap();
        if ["help", "version"].contains(&long) {
            continue;
        }
        let want = format!("LULLWATCH_{}", long.replace('-', "_").to_uppercase());
        if flag.get_env().and_then(|name| name.to_str()) != Some(want.as_str()) {
            without.push(want);
        }
    }
    assert_eq!(without, [""; 0]);
}

#[test]
fn a_switch_in_the_environment_is_on_for_1_and_off_for_0_and_for_nothing() {
    let home = three();
    let glyphs = |value: &str| {
        let out = Run::new(&home, &["--once"]).env("LULLWATCH_ASCII", value).said().fine();
        !out.is_ascii()
    };
    for on in ["1", "true", "yes", "on"] {
        assert!(!glyphs(on), "{on}");
    }
    for off in ["0", "false", "no", "off", ""] {
        assert!(glyphs(off), "{off}");
    }
    for name in ["STATS", "JSON", "CHILDREN", "EXIT_CODE", "ONCE", "MOUSE"] {
        let said = Run::new(&home, &["--once"]).env(&format!("LULLWATCH_{name}"), "1").said();
        assert_eq!(said.code, Some(0), "{name}: {}", said.err);
        assert_eq!(said.out.starts_with('{'), name == "JSON", "{name}");
        assert_eq!(said.err.contains("bytes_parsed="), name == "STATS", "{name}");
    }
}

#[test]
fn an_empty_variable_is_one_that_is_not_set() {
    let home = three();
    let want = run(&home, &["--once"]).fine();
    let mut call = Run::new(&home, &["--once"]);
    for flag in Cli::command().get_arguments() {
        match flag.get_env().and_then(|name| name.to_str()) {
            Some("LULLWATCH_NOW") | None => {}
            Some(name) => call = call.env(name, ""),
        }
    }
    for name in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "DSH_HOME", "XDG_STATE_HOME", "NO_COLOR"] {
        call = call.env(name, "");
    }
    assert_eq!(call.said().fine(), want);
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let home = Home::new();
    let file = home.put(
        "c.toml",
        b"db = \"file.db\"\nlive-window = \"10m\"\nconsumer = \"of-file\"\nascii = true\n\
          color = \"always\"\n[roots]\nclaude = [\"more\"]\n",
    );
    let file = file.to_str().unwrap();
    let config = |args: &[&str], env: &[(&str, &str)]| {
        let mut call = Run::new(&home, &[&["config"], args].concat());
        for (name, value) in env {
            call = call.env(name, value);
        }
        let out = call.said().fine();
        toml::from_str::<toml::Table>(&out).unwrap_or_else(|why| panic!("{why}: {out}"))
    };
    let text = |table: &toml::Table, key: &str| table[key].as_str().unwrap().to_owned();
    let plain = config(&[], &[]);
    assert!(text(&plain, "db").ends_with(DB));
    assert_eq!(
        (text(&plain, "live-window"), text(&plain, "consumer")),
        ("5m".into(), "operator".into())
    );
    assert_eq!(plain["ascii"].as_bool(), Some(false));
    let filed = config(&["--config", file], &[]);
    assert!(text(&filed, "db").ends_with("/file.db"));
    assert_eq!(text(&filed, "live-window"), "10m");
    assert_eq!(
        (text(&filed, "consumer"), text(&filed, "color")),
        ("of-file".into(), "always".into())
    );
    assert_eq!(filed["ascii"].as_bool(), Some(true));
    assert!(filed["roots"]["claude"].to_string().contains("/more"), "{filed}");
    let env = [
        ("LULLWATCH_CONFIG", file),
        ("LULLWATCH_DB", "env.db"),
        ("LULLWATCH_LIVE_WINDOW", "11m"),
        ("LULLWATCH_CONSUMER", "of-env"),
        ("LULLWATCH_ASCII", "0"),
        ("LULLWATCH_ROOT", "claude=a,dsh=b"),
    ];
    let set = config(&[], &env);
    assert!(text(&set, "db").ends_with("/env.db"));
    assert_eq!(
        (text(&set, "live-window"), text(&set, "consumer")),
        ("11m".into(), "of-env".into())
    );
    assert_eq!(set["ascii"].as_bool(), Some(false), "a 0 in the environment wins over the file");
    assert!(set["roots"]["dsh"].to_string().contains("/b"), "{set}");
    let typed = config(&["--db", "typed.db", "--live-window", "12m", "--consumer", "typed"], &env);
    assert!(text(&typed, "db").ends_with("/typed.db"));
    assert_eq!(
        (text(&typed, "live-window"), text(&typed, "consumer")),
        ("12m".into(), "typed".into())
    );
    assert!(!home.home().join(".local").exists(), "showing it makes nothing");
}

#[test]
fn what_config_prints_is_a_config_file() {
    let home = Home::new();
    let odd = "--db=odd \"\u{202e}\u{7} é.db";
    let out = run(&home, &["config", odd, "--ascii", "--log-file", "x.log"]).fine();
    let path = home.put("again.toml", out.as_bytes());
    let again = run(&home, &["config", "--config", path.to_str().unwrap()]).fine();
    assert_eq!(out, again);
    assert!(!out.contains(['\u{202e}', '\u{7}']), "{out}");
}

#[test]
fn the_config_files_of_the_papers_are_config_files() {
    for (paper, text) in [
        ("README", include_str!("../../../README.md")),
        ("on-terminal", include_str!("../../../docs/on-terminal.md")),
    ] {
        let blocks: Vec<&str> = text
            .split("```toml\n")
            .skip(1)
            .filter_map(|rest| rest.split_once("```").map(|(block, _)| block))
            .collect();
        assert!(!blocks.is_empty(), "{paper}");
        for block in blocks {
            let home = Home::new();
            home.put(".config/lullwatch/config.toml", block.as_bytes());
            run(&home, &["config"]).fine();
        }
    }
}

#[test]
fn the_readme_names_every_command_and_none_that_is_not() {
    let readme = include_str!("../../../README.md");
    let named: BTreeSet<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("lullwatch ")?.split([' ', '\n']).next())
        .filter(|word| !word.starts_with('-'))
        .collect();
    let known = Cli::command();
    let known: BTreeSet<&str> = known
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(clap::Command::get_name)
        .collect();
    assert_eq!(named, known);
}

#[test]
fn more_roots_are_looked_at_whether_home_or_folder_of_transcripts() {
    let home = Home::new();
    claude_session(&home, CLAUDE_ID, NOW - 2 * MINUTE, "Add a table");
    let claude = home.home().join(".claude");
    std::fs::rename(&claude, home.home().join("elsewhere")).unwrap();
    for root in ["claude=elsewhere", "claude=elsewhere/projects", "claude=~/elsewhere"] {
        let out = run(&home, &["--once", "--db", &format!("{}.db", root.len()), "--root", root]);
        assert!(out.fine().contains("Add a table"), "{root}");
    }
    let out =
        Run::new(&home, &["--once", "--db", "env.db"]).env("CLAUDE_CONFIG_DIR", "x, elsewhere");
    assert!(out.said().fine().contains("Add a table"));
}

/// What a line of the table looks like with colours on.
fn coloured(call: Run) -> bool {
    call.said().fine().contains("\u{1b}[")
}

#[test]
fn colour_is_for_terminals_and_for_who_asks() {
    let home = three();
    for args in [&["--once"][..], &["ledger"], &["audit"], &["compactions"], &["show", CLAUDE_ID]] {
        assert!(!coloured(Run::new(&home, args)), "{args:?}");
    }
    assert!(coloured(Run::new(&home, &["--once", "--color", "always"])));
    assert!(coloured(Run::new(&home, &["--once"]).env("LULLWATCH_COLOR", "always")));
    assert!(!coloured(Run::new(&home, &["--once", "--color", "never"])));
    assert!(!coloured(Run::new(&home, &["--once", "--json", "--color", "always"])));
    // What is typed wins over what the environment wishes for every program.
    assert!(coloured(Run::new(&home, &["--once", "--color", "always"]).env("NO_COLOR", "1")));
    assert!(!coloured(Run::new(&home, &["--once"]).env("NO_COLOR", "1")));
}

/// On a terminal of 100 columns: what comes out of it.
fn on_a_terminal(home: &Home, env: &[(&str, &str)], args: &[&str]) -> String {
    let size = portable_pty::PtySize { rows: 30, cols: 100, pixel_width: 0, pixel_height: 0 };
    let pair = portable_pty::native_pty_system().openpty(size).unwrap();
    let mut command = portable_pty::CommandBuilder::new(env!("CARGO_BIN_EXE_lullwatch"));
    command.env_clear();
    command.args(args);
    command.cwd(home.home());
    command.env("HOME", home.home());
    command.env("LULLWATCH_NOW", super::stamp(NOW));
    command.env("TERM", "xterm-256color");
    for (name, value) in env {
        command.env(name, value);
    }
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut bytes = Vec::new();
    // A terminal whose other end is closed reads as an error on Linux.
    let _ = std::io::Read::read_to_end(&mut reader, &mut bytes);
    assert!(child.wait().unwrap().success());
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_terminal_gets_colour_and_lines_that_fit_unless_it_wants_none() {
    let home = three();
    let out = on_a_terminal(&home, &[], &["--once"]);
    assert!(out.contains("\u{1b}["), "{out}");
    for (env, args) in [
        (("NO_COLOR", "1"), &["--once"][..]),
        (("TERM", "dumb"), &["--once"]),
        (("TERM", "dumb"), &[]),
        (("LULLWATCH_COLOR", "never"), &["--once"]),
    ] {
        let out = on_a_terminal(&home, &[env], args);
        assert!(!out.contains('\u{1b}') && out.contains("Add a table"), "{env:?}: {out}");
        for line in out.lines() {
            assert!(lullwatch::text::width(line.trim_end()) <= 100, "{line}");
        }
    }
}

#[test]
fn ascii_means_ascii_in_every_command_but_for_words_of_a_transcript() {
    let home = three();
    let lines = [
        claude_prompt(CLAUDE_ID, NOW - 9 * MINUTE, &"long ".repeat(80)),
        claude_call(CLAUDE_ID, NOW - 8 * MINUTE, "Bash", &serde_json::json!({"command": "ls"})),
    ];
    append(&home, &claude_path("0badcafe-0000-4be1-ac4b-9de9d22c854c"), &lines);
    run(&home, &["--once"]).fine();
    for args in [
        &["--once"][..],
        &["--once", "--children", "--color", "always"],
        &["show", CLAUDE_ID],
        &["show", DSH_ID],
        &["show", "0badcafe"],
        &["audit"],
        &["ledger", "--history"],
        &["compactions"],
        &["config"],
    ] {
        let said = run(&home, &[args, &["--ascii"]].concat());
        assert_eq!(said.code, Some(0));
        let odd: Vec<&str> = said.out.lines().filter(|line| !line.is_ascii()).collect();
        assert_eq!(odd, [""; 0], "{args:?}");
    }
    let err = run(&Home::new(), &["show", "x", "--ascii"]).refused(1);
    assert!(err.is_ascii(), "{err}");
}

#[test]
fn help_names_every_command_and_every_flag_and_the_version_is_ours() {
    let home = Home::new();
    let help = run(&home, &["--help"]).fine();
    for command in Cli::command().get_subcommands() {
        assert!(help.contains(&format!("\n  {} ", command.get_name())), "{}", command.get_name());
        assert!(command.get_about().is_some(), "{} says what it does", command.get_name());
        let own = run(&home, &[command.get_name(), "--help"]).fine();
        assert!(own.contains("Usage:"), "{own}");
    }
    for flag in Cli::command().get_arguments().filter(|flag| !flag.is_hide_set()) {
        let long = flag.get_long().unwrap();
        assert!(help.contains(&format!("--{long}")), "{long}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 100));
    assert_eq!(
        run(&home, &["--version"]).fine(),
        concat!("lullwatch ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

/// `lullwatch …` as somebody would type it, out of a text.
fn commands_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced && line.starts_with("lullwatch") {
            found.push(line.split('#').next().unwrap().trim().to_owned());
        }
        for code in line.split('`').skip(1).step_by(2) {
            if code.starts_with("lullwatch ") && !code.contains("lullwatch.") {
                found.push(code.to_owned());
            }
        }
    }
    found
}

fn parses(command: &str) -> Result<Cli, clap::Error> {
    let words = command.split_whitespace().map(|word| word.replace('…', ""));
    Cli::try_parse_from(words)
}

#[test]
fn every_command_of_the_readme_can_be_typed() {
    let readme = include_str!("../../../README.md");
    let commands = commands_in(readme);
    assert!(commands.len() >= 8, "{commands:?}");
    for command in commands {
        if let Err(error) = parses(&command) {
            panic!("`{command}`: {error}");
        }
    }
    for command in Cli::command().get_subcommands().map(clap::Command::get_name) {
        assert!(readme.contains(&format!("lullwatch {command}")), "the README lacks {command}");
    }
}

#[test]
fn every_command_that_a_message_names_can_be_typed() {
    let mut unknown = Vec::new();
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![sources];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let said = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                for command in said.flat_map(commands_in) {
                    let typed =
                        command.replace("LIVE ENDED", "5m 24h").replace("{agent}", "claude");
                    // Said of evidence that only a process started by that command can leave.
                    if typed != "lullwatch run" && parses(&typed).is_err() {
                        unknown.push(format!("{}: {command}", path.display()));
                    }
                }
            }
        }
    }
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn a_log_file_is_private_and_tells_what_was_done() {
    let home = three();
    run(&home, &["--once", "--log-file", "logs/x.log"]).fine();
    let path = home.home().join("logs/x.log");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let first = std::fs::read_to_string(&path).unwrap();
    assert!(first.contains("lullwatch") && first.contains("files=3"), "{first}");
    run(&home, &["show", "nobody", "--log-file", "logs/x.log"]).refused(1);
    let both = std::fs::read_to_string(&path).unwrap();
    assert!(both.starts_with(&first) && both.contains("no session `nobody`"), "{both}");
    assert!(!both.contains('\u{1b}'), "{both}");
    let err = run(&home, &["--once", "--log-file", "logs/x.log/y"]).refused(1);
    assert!(err.contains("logs/x.log/y") && err.lines().count() <= 2, "{err}");
}

#[test]
fn json_of_a_command_is_the_same_whatever_colour_or_width_is_asked_for() {
    let home = three();
    let plain = run(&home, &["show", DSH_ID, "--json"]).fine();
    let odd = run(&home, &["show", DSH_ID, "--json", "--color", "always", "--ascii"]).fine();
    assert_eq!(Tree::parse(&plain), Tree::parse(&odd));
}
