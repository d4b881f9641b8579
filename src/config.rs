//! What was typed, the environment and the config file made into one validated configuration.
//!
//! Flags win over the environment, the environment over the file, the file over the defaults. An
//! unknown key in the file is an error that names its line: a typo must not pass in silence.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

mod charset;

use serde::Deserialize;

use crate::cli::Globals;
use crate::mirror::discover::Root;
use crate::source::Agent;

/// A configuration that can be acted on: paths absolute, durations in ms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The config file that was read; `None`: there is none.
    pub file: Option<PathBuf>,
    /// The database.
    pub db: PathBuf,
    /// Where the agents keep their transcripts, in the agents' order.
    pub roots: Vec<Root>,
    /// Windows asked for, live and ended, ms.
    pub windows: (Option<i64>, Option<i64>),
    /// Display filter.
    pub agent: Option<Agent>,
    /// Display filter: only what was active within this, ms.
    pub since_ms: Option<i64>,
    /// Whose ledger is shown and acknowledged.
    pub consumer: String,
    /// Colour.
    pub color: Color,
    /// No glyphs beyond ASCII.
    pub ascii: bool,
    /// Diagnostics go here.
    pub log_file: Option<PathBuf>,
    /// Work counters on stderr.
    pub stats: bool,
    /// Every clock stands still here, ms.
    pub now_ms: Option<i64>,
    /// The mirror commits whenever it has read so many bytes.
    pub step_bytes: Option<usize>,
    /// Theme of the TUI.
    pub theme: Theme,
    /// Mouse in the TUI.
    pub mouse: bool,
    /// How the TUI calls for attention.
    pub notify: Notify,
    /// Command that gets each terminal delivery, argv.
    pub on_terminal: Option<OnTerminal>,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Colours of the TUI: all are the terminal's own sixteen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// For dark backgrounds.
    #[default]
    Dark,
    /// For light ones.
    Light,
    /// Without colour.
    Mono,
}

/// How the TUI calls for attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Notify {
    /// Not at all.
    #[default]
    Off,
    /// The terminal's bell.
    Bell,
    /// OSC 9.
    Osc9,
    /// OSC 777.
    Osc777,
}

/// The `on_terminal` command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnTerminal {
    /// Program and arguments; no shell.
    pub command: Vec<String>,
    /// Time limit of one call, ms; `timeout` in the file.
    #[serde(rename = "timeout", default = "default_limit_ms", deserialize_with = "written_ms")]
    pub timeout_ms: i64,
}

/// A duration as every other in the file.
fn written_ms<'de, D: serde::Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    DurationText::deserialize(from)?.ms().map_err(serde::de::Error::custom)
}

fn default_limit_ms() -> i64 {
    10_000
}

/// The config file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    db: Option<PathBuf>,
    live_window: Option<DurationText>,
    ended_window: Option<DurationText>,
    consumer: Option<String>,
    color: Option<Color>,
    ascii: Option<bool>,
    log_file: Option<PathBuf>,
    theme: Option<Theme>,
    mouse: Option<bool>,
    notify: Option<Notify>,
    #[serde(default)]
    roots: BTreeMap<String, Vec<PathBuf>>,
    #[serde(rename = "on_terminal", alias = "on-terminal")]
    on_terminal: Option<OnTerminal>,
}

/// A duration as written: a text with units, or a bare number of seconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum DurationText {
    Text(String),
    Seconds(u32),
}

impl DurationText {
    fn ms(&self) -> Result<i64, String> {
        match self {
            Self::Text(text) => parse_duration(text),
            Self::Seconds(seconds) => Ok(i64::from(*seconds) * 1000),
        }
    }
}

/// What the process's surroundings say; an argument, so that tests need no environment.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Environment variables that matter.
    pub vars: BTreeMap<String, OsString>,
    /// Where relative paths start.
    pub cwd: PathBuf,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_this_process() -> Self {
        let vars = env::vars_os()
            .filter_map(|(name, value)| name.into_string().ok().map(|name| (name, value)))
            .collect();
        Self { vars, cwd: env::current_dir().unwrap_or_else(|_| PathBuf::from("/")) }
    }

    fn var(&self, name: &str) -> Option<&OsString> {
        self.vars.get(name).filter(|value| !value.is_empty())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.var(name)?.to_str().map(str::trim).filter(|text| !text.is_empty())
    }

    fn home(&self) -> Result<PathBuf, String> {
        match self.var("HOME") {
            Some(home) => Ok(PathBuf::from(home)),
            None => etcetera::home_dir().map_err(|why| {
                format!("the home directory is unknown: {why}\nhint: set HOME, or give --db")
            }),
        }
    }

    /// A path made absolute; a leading `~` is the home directory.
    fn absolute(&self, path: &Path) -> Result<PathBuf, String> {
        match path.strip_prefix("~") {
            Ok(rest) => Ok(self.home()?.join(rest)),
            Err(_) => Ok(self.cwd.join(path)),
        }
    }
}

/// Makes the configuration. The error is a message for a person; it is a usage error.
pub fn load(globals: &Globals, around: &Surroundings) -> Result<Config, String> {
    let (path, file) = read_file(globals, around)?;
    let duration = |typed: Option<i64>, filed: &Option<DurationText>, key: &str| match typed {
        Some(ms) => Ok(Some(ms)),
        None => filed
            .as_ref()
            .map(DurationText::ms)
            .transpose()
            .map_err(|why| format!("`{key}` in the config file: {why}")),
    };
    let windows = (
        duration(globals.live_window, &file.live_window, "live-window")?,
        duration(globals.ended_window, &file.ended_window, "ended-window")?,
    );
    let db = match globals.db.as_ref().or(file.db.as_ref()) {
        Some(path) => real_path(around.absolute(path)?, LINKS_MAX),
        None => default_db(around)?,
    };
    let log_file = globals.log_file.as_ref().or(file.log_file.as_ref());
    Ok(Config {
        file: path,
        db,
        roots: roots(globals, &file, around)?,
        windows,
        agent: globals.agent,
        since_ms: globals.since,
        consumer: globals
            .consumer
            .clone()
            .or(file.consumer)
            .unwrap_or_else(|| "operator".to_owned()),
        color: globals.color.or(file.color).unwrap_or_default(),
        ascii: globals.ascii.or(file.ascii).unwrap_or_else(|| charset::is_ascii_alone(around)),
        log_file: log_file.map(|path| around.absolute(path)).transpose()?,
        stats: globals.stats,
        now_ms: globals.now,
        step_bytes: globals.step_bytes,
        theme: globals.theme.or(file.theme).unwrap_or_default(),
        mouse: globals.mouse.or(file.mouse).unwrap_or(false),
        notify: globals.notify.or(file.notify).unwrap_or_default(),
        on_terminal: file.on_terminal.filter(|on| !on.command.is_empty()),
    })
}

impl Config {
    /// The same as a config file would say it, with the windows that are in force, ms.
    #[must_use]
    pub fn written(&self, live_ms: i64, ended_ms: i64) -> String {
        let mut lines = vec![
            format!("db = {}", quoted(&self.db.to_string_lossy())),
            format!("live-window = {}", quoted(&duration(live_ms))),
            format!("ended-window = {}", quoted(&duration(ended_ms))),
            format!("consumer = {}", quoted(&self.consumer)),
            format!("color = {}", word(&self.color)),
            format!("ascii = {}", self.ascii),
            format!("theme = {}", word(&self.theme)),
            format!("mouse = {}", self.mouse),
            format!("notify = {}", word(&self.notify)),
        ];
        if let Some(path) = &self.log_file {
            lines.push(format!("log-file = {}", quoted(&path.to_string_lossy())));
        }
        lines.push("\n[roots]".to_owned());
        for agent in Agent::ALL {
            let own = self.roots.iter().filter(|root| root.agent == agent);
            let paths: Vec<String> = own.map(|root| quoted(&root.path.to_string_lossy())).collect();
            lines.push(format!("{} = [{}]", agent.word(), paths.join(", ")));
        }
        if let Some(on) = &self.on_terminal {
            let argv: Vec<String> = on.command.iter().map(|word| quoted(word)).collect();
            lines.push(format!("\n[on_terminal]\ncommand = [{}]", argv.join(", ")));
            lines.push(format!("timeout = {}", quoted(&format!("{}ms", on.timeout_ms))));
        }
        lines.join("\n") + "\n"
    }
}

fn word(value: &impl clap::ValueEnum) -> String {
    quoted(value.to_possible_value().as_ref().map_or("", clap::builder::PossibleValue::get_name))
}

/// A duration as [`parse_duration`] reads it, in the largest unit that loses nothing.
fn duration(ms: i64) -> String {
    match [(3_600_000, "h"), (60_000, "m"), (1_000, "s")].into_iter().find(|unit| ms % unit.0 == 0)
    {
        Some((unit_ms, unit)) => format!("{}{unit}", ms / unit_ms),
        None => format!("{ms}ms"),
    }
}

/// A TOML string in which whatever a terminal might obey, or not show, is escaped.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\'' => quoted.push(letter),
            odd if odd.escape_debug().len() > 1 => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(odd));
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

/// Links followed from one name of a database to the file.
const LINKS_MAX: u32 = 16;

/// The one path of a file that may have several, so that whoever names it finds the same lock beside
/// it; the file need not be there yet.
fn real_path(path: PathBuf, links_max: u32) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return path };
    match fs::read_link(&path) {
        Ok(target) if links_max > 0 => real_path(folder.join(target), links_max - 1),
        Ok(_) | Err(_) => folder.canonicalize().map_or(path.clone(), |folder| folder.join(name)),
    }
}

/// The database where none is named: in `$XDG_STATE_HOME/lullwatch`.
pub fn default_db(around: &Surroundings) -> Result<PathBuf, String> {
    let xdg = around.var("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = match xdg {
        Some(folder) => folder,
        None => around.home()?.join(".local/state"),
    };
    Ok(real_path(state.join("lullwatch/lullwatch.db"), LINKS_MAX))
}

fn read_file(
    globals: &Globals,
    around: &Surroundings,
) -> Result<(Option<PathBuf>, Written), String> {
    let (path, asked) = if let Some(path) = &globals.config {
        (around.absolute(path)?, true)
    } else {
        let xdg =
            around.var("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = match (xdg, around.home()) {
            (Some(folder), _) => folder,
            (None, Ok(home)) => home.join(".config"),
            (None, Err(_)) => return Ok((None, Written::default())),
        };
        (folder.join("lullwatch/config.toml"), false)
    };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !asked => {
            return Ok((None, Written::default()));
        }
        Err(error) => return Err(format!("cannot read `{}`: {error}", path.display())),
    };
    let written = toml::from_str(&text)
        .map_err(|error| format!("in `{}`: {}", path.display(), error.to_string().trim_end()))?;
    Ok((Some(path), written))
}

/// The parts of a list with commas. A folder that is there is itself, whatever is in its name.
fn listed(list: &str) -> Vec<&str> {
    if Path::new(list).is_dir() {
        return vec![list];
    }
    list.split(',').map(str::trim).filter(|path| !path.is_empty()).collect()
}

/// Default roots first, then those of the file, then those of the flags; each once.
fn roots(globals: &Globals, file: &Written, around: &Surroundings) -> Result<Vec<Root>, String> {
    let mut found = Vec::new();
    let mut add = |agent: Agent, path: PathBuf| {
        let root = Root { agent, path };
        if !found.contains(&root) {
            found.push(root);
        }
    };
    let claude: Vec<&str> = around.text("CLAUDE_CONFIG_DIR").map(listed).unwrap_or_default();
    for path in &claude {
        add(Agent::Claude, around.absolute(Path::new(path))?);
    }
    // A list of nothing is no list.
    if let (true, Ok(home)) = (claude.is_empty(), around.home()) {
        add(Agent::Claude, home.join(".claude"));
        add(Agent::Claude, home.join(".config/claude"));
    }
    for (agent, variable, folder) in
        [(Agent::Codex, "CODEX_HOME", ".codex"), (Agent::Dsh, "DSH_HOME", ".dsh")]
    {
        if let Some(path) = around.text(variable) {
            add(agent, around.absolute(Path::new(path))?);
        } else if let Ok(home) = around.home() {
            add(agent, home.join(folder));
        }
    }
    for (word, paths) in &file.roots {
        let agent = Agent::from_word(word).ok_or_else(|| {
            format!("`roots.{word}` in the config file: no such agent; known: claude, codex, dsh")
        })?;
        for path in paths {
            add(agent, around.absolute(path)?);
        }
    }
    for (agent, path) in globals.root.iter().flat_map(|roots| &roots.0) {
        add(*agent, around.absolute(path)?);
    }
    found.sort_by_key(|root| root.agent);
    Ok(found)
}

/// A duration in ms: `90s`, `5m`, `24h`, `1d`, `1h30m`; a bare number is seconds.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let bad = || format!("`{text}` is no duration; write for example 90s, 5m, 24h, 1d");
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(bad());
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at(digits);
        let letters = behind.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, next) = behind.split_at(letters);
        let unit_ms: i64 = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "" if next.is_empty() && total == 0 => 1000,
            _ => return Err(bad()),
        };
        let number: i64 = number.parse().ok().ok_or_else(bad)?;
        let part = number.checked_mul(unit_ms).ok_or_else(bad)?;
        total = total.checked_add(part).ok_or_else(bad)?;
        rest = next;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn around(vars: &[(&str, &str)]) -> Surroundings {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        Surroundings { vars, cwd: PathBuf::from("/w") }
    }

    fn agents_paths(config: &Config) -> Vec<(&'static str, String)> {
        let show = |root: &Root| (root.agent.word(), root.path.display().to_string());
        config.roots.iter().map(show).collect()
    }

    #[rstest]
    #[case::seconds("90s", 90_000)]
    #[case::bare_number("3", 3_000)]
    #[case::minutes("5m", 300_000)]
    #[case::day("1d", 86_400_000)]
    #[case::mixed("1h30m", 5_400_000)]
    fn durations(#[case] text: &str, #[case] ms: i64) {
        assert_eq!(parse_duration(text), Ok(ms));
    }

    #[rstest]
    #[case("")]
    #[case("5x")]
    #[case("m")]
    #[case("-5m")]
    #[case("1.5h")]
    #[case("99999999999999999d")]
    #[case("5m 3")]
    fn no_durations(#[case] text: &str) {
        assert!(parse_duration(text).is_err(), "{text}");
    }

    #[test]
    fn roots_come_from_the_environment_or_the_home() {
        let config = load(&Globals::default(), &around(&[("HOME", "/h")])).unwrap();
        assert_eq!(
            agents_paths(&config),
            [
                ("claude", "/h/.claude".to_owned()),
                ("claude", "/h/.config/claude".to_owned()),
                ("codex", "/h/.codex".to_owned()),
                ("dsh", "/h/.dsh".to_owned()),
            ]
        );
        assert_eq!(config.db, Path::new("/h/.local/state/lullwatch/lullwatch.db"));
        let vars = [
            ("HOME", "/h"),
            ("CLAUDE_CONFIG_DIR", "/a, ~/b"),
            ("CODEX_HOME", "c"),
            ("DSH_HOME", "  "),
            ("XDG_STATE_HOME", "/s"),
        ];
        let config = load(&Globals::default(), &around(&vars)).unwrap();
        assert_eq!(
            agents_paths(&config),
            [
                ("claude", "/a".to_owned()),
                ("claude", "/h/b".to_owned()),
                ("codex", "/w/c".to_owned()),
                ("dsh", "/h/.dsh".to_owned()),
            ]
        );
        assert_eq!(config.db, Path::new("/s/lullwatch/lullwatch.db"));
    }

    #[test]
    fn a_folder_with_a_comma_is_no_list_and_a_list_of_nothing_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("c,d");
        fs::create_dir(&odd).unwrap();
        let odd = odd.to_str().unwrap();
        assert_eq!(listed(odd), [odd]);
        assert_eq!(listed(" /a , ,/b d"), ["/a", "/b d"]);
        let config =
            load(&Globals::default(), &around(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", ",")]))
                .unwrap();
        assert!(agents_paths(&config).contains(&("claude", "/h/.claude".to_owned())));
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_the_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, "live-window = \"10m\"\nended-window = 60\nconsumer = \"me\"\n").unwrap();
        let globals = Globals {
            config: Some(path),
            live_window: Some(7),
            root: vec![crate::cli::Roots(vec![(Agent::Dsh, PathBuf::from("/d"))])],
            ..Globals::default()
        };
        let config = load(&globals, &around(&[("HOME", "/h")])).unwrap();
        assert_eq!(config.windows, (Some(7), Some(60_000)));
        assert_eq!(config.consumer, "me");
        assert!(agents_paths(&config).contains(&("dsh", "/d".to_owned())));
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_its_line_and_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, "consumer = \"me\"\nlive-windw = \"5m\"\n").unwrap();
        let globals = Globals { config: Some(path), ..Globals::default() };
        let error = load(&globals, &around(&[("HOME", "/h")])).unwrap_err();
        assert!(error.contains("line 2") && error.contains("live-windw"), "{error}");
    }

    #[test]
    fn without_a_home_the_message_says_what_to_set() {
        let globals = Globals { db: Some("x.db".into()), ..Globals::default() };
        let config = load(&globals, &around(&[("HOME", "/h")])).unwrap();
        assert_eq!(config.db, Path::new("/w/x.db"));
    }
}
