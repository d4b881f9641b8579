//! What `doctor` found: as text for people, as `lullwatch.doctor.v1` for programs.

use std::io;

use serde::Serialize;

use super::{Colour, Style, words};
use crate::text;

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Fine,
    /// Worth knowing, and nothing to be done.
    Note,
    /// It works, with less than there could be, or not for long.
    Warning,
    /// It does not work.
    Fault,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Fault => "fault",
        }
    }

    fn paint(self) -> &'static str {
        match self {
            Self::Fine => "32",
            Self::Note => "2",
            Self::Warning => "33",
            Self::Fault => "31",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind of thing, one word.
    pub check: &'static str,
    /// Which one: a path, a name.
    pub subject: String,
    /// How bad.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub advice: Option<String>,
    /// Its numbers.
    pub values: Vec<(&'static str, i64)>,
}

impl Finding {
    /// Something that is as it should be.
    pub fn fine(check: &'static str, subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            check,
            subject: subject.into(),
            level: Level::Fine,
            found: found.into(),
            advice: None,
            values: Vec::new(),
        }
    }

    /// The same at that level, at least.
    #[must_use]
    pub fn at(self, level: Level) -> Self {
        Self { level: self.level.max(level), ..self }
    }

    /// The same with what to do.
    #[must_use]
    pub fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    /// The same with a number.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: i64) -> Self {
        self.values.push((name, value));
        self
    }
}

/// All that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkup {
    /// When, ms.
    pub at_ms: i64,
    /// Version of the program.
    pub version: &'static str,
    /// This host.
    pub host: String,
    /// The findings, in the order in which they were made.
    pub findings: Vec<Finding>,
}

impl Checkup {
    /// The worst of it.
    pub fn verdict(&self) -> Level {
        self.findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Fine)
    }
}

/// Writes it for people.
pub fn table(out: &mut dyn io::Write, checkup: &Checkup, style: Style) -> io::Result<()> {
    for finding in &checkup.findings {
        let word = format!("{:<7}", finding.level.word());
        let word = match style.colour {
            Colour::Plain => word,
            Colour::Ansi => format!("\u{1b}[{}m{word}\u{1b}[0m", finding.level.paint()),
        };
        let subject = text::line(&finding.subject);
        let gap = if subject.is_empty() { "" } else { ": " };
        writeln!(out, "{word}  {:<9} {subject}{gap}{}", finding.check, text::line(&finding.found))?;
        if let Some(advice) = &finding.advice {
            writeln!(out, "{:>19} hint: {}", "", text::line(advice))?;
        }
    }
    let count = |level| checkup.findings.iter().filter(|found| found.level == level).count();
    writeln!(
        out,
        "\n{}: {} fault(s), {} warning(s), {} looked at",
        checkup.verdict().word(),
        count(Level::Fault),
        count(Level::Warning),
        checkup.findings.len()
    )
}

#[derive(Serialize)]
struct Out<'a> {
    schema: &'static str,
    generated_at: Option<String>,
    version: &'a str,
    host: std::borrow::Cow<'a, str>,
    verdict: Level,
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    check: &'a str,
    subject: std::borrow::Cow<'a, str>,
    level: Level,
    found: std::borrow::Cow<'a, str>,
    advice: Option<std::borrow::Cow<'a, str>>,
    values: serde_json::Map<String, serde_json::Value>,
}

/// Writes `lullwatch.doctor.v1`.
pub fn json(out: &mut dyn io::Write, checkup: &Checkup) -> io::Result<()> {
    let item = |finding: &'_ Finding| -> serde_json::Map<String, serde_json::Value> {
        finding.values.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect()
    };
    let items = checkup.findings.iter().map(|finding| Item {
        check: finding.check,
        subject: text::line(&finding.subject),
        level: finding.level,
        found: text::line(&finding.found),
        advice: finding.advice.as_deref().map(text::line),
        values: item(finding),
    });
    let value = Out {
        schema: "lullwatch.doctor.v1",
        generated_at: words::rfc3339(checkup.at_ms),
        version: checkup.version,
        host: text::line(&checkup.host),
        verdict: checkup.verdict(),
        items: items.collect(),
    };
    let mut line = serde_json::to_vec(&value)?;
    line.push(b'\n');
    out.write_all(&line)
}
