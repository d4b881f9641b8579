//! Who a rollout is: its name on disk, the time inside its id, and what its meta says of it.

use super::super::json::Value;
use super::super::{Base, Kind, What};
use super::text::{capped, word};
use super::{Entry, ID_CHARS, NAME_CHARS};

/// What the name of a rollout tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stem<'a> {
    /// The thread's id.
    pub(super) thread: &'a str,
    /// The rollout goes on with a thread that began in another file.
    pub(super) continues: bool,
}

/// Bytes of a uuid in text.
const UUID_BYTES: usize = 36;

/// Reads `rollout-<time>-<thread>[_<rollout>]`.
pub(super) fn stem(stem: &str) -> Option<Stem<'_>> {
    let (rest, last) = split_uuid(stem)?;
    let first = rest.strip_suffix('_').and_then(split_uuid);
    Some(Stem { thread: first.map_or(last, |(_, thread)| thread), continues: first.is_some() })
}

fn split_uuid(text: &str) -> Option<(&str, &str)> {
    let (rest, last) = text.split_at_checked(text.len().checked_sub(UUID_BYTES)?)?;
    is_uuid(last).then_some((rest, last))
}

fn is_uuid(text: &str) -> bool {
    text.len() == UUID_BYTES
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// The time in a version 7 uuid: its first 48 bits, ms since 1970.
pub(super) fn v7_ms(id: &str) -> Option<i64> {
    if !is_uuid(id) || id.as_bytes().get(14) != Some(&b'7') {
        return None;
    }
    let high = i64::from_str_radix(id.get(..8)?, 16).ok()?;
    let low = i64::from_str_radix(id.get(9..13)?, 16).ok()?;
    Some((high << 16) | low)
}

/// The fields of a `session_meta`, or of a bare header.
#[derive(Debug, Default)]
pub(super) struct Meta<'a> {
    id: Option<Value<'a>>,
    pub(super) timestamp: Option<Value<'a>>,
    pub(super) cwd: Option<Value<'a>>,
    version: Option<Value<'a>>,
    source: Option<Value<'a>>,
    thread_source: Option<Value<'a>>,
    forked_from: Option<Value<'a>>,
    parent: Option<Value<'a>>,
    agent_path: Option<Value<'a>>,
    git: Option<Value<'a>>,
    pub(super) history_base: Option<Value<'a>>,
    pub(super) history_start: Option<Value<'a>>,
}

/// Where a thread comes from.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) kind: Kind,
    /// The parent of a sub-agent.
    pub(super) parent: Option<String>,
    pub(super) fork_of: Option<String>,
}

impl<'a> Meta<'a> {
    pub(super) fn read(payload: Value<'a>) -> Self {
        let mut meta = Self::default();
        for (key, value) in payload.fields() {
            let slot = match key.bytes() {
                b"id" => &mut meta.id,
                b"timestamp" => &mut meta.timestamp,
                b"cwd" => &mut meta.cwd,
                b"cli_version" => &mut meta.version,
                b"source" => &mut meta.source,
                b"thread_source" => &mut meta.thread_source,
                b"forked_from_id" => &mut meta.forked_from,
                b"parent_thread_id" => &mut meta.parent,
                b"agent_path" => &mut meta.agent_path,
                b"git" => &mut meta.git,
                b"history_base" => &mut meta.history_base,
                b"subagent_history_start_ordinal" => &mut meta.history_start,
                _ => continue,
            };
            *slot = Some(value);
        }
        meta
    }

    /// The path of a sub-agent among the agents.
    pub(super) fn agent_path(&self) -> Option<String> {
        let spawn = self.source.and_then(|source| source.at(&["subagent", "thread_spawn"]));
        let path = spawn.and_then(|spawn| spawn.get("agent_path"));
        capped(path, NAME_CHARS).or_else(|| capped(self.agent_path, NAME_CHARS))
    }

    /// The rollout with which this one goes on, and from where.
    pub(super) fn base(&self) -> Option<Base> {
        let [rollout, ordinal, offset] =
            self.history_base?.pick(["thread_id", "end_ordinal_exclusive", "end_byte_offset"]);
        Some(Base {
            rollout: capped(rollout, ID_CHARS)?,
            end_ordinal: ordinal.and_then(Value::uint),
            end_offset: offset.and_then(Value::uint),
        })
    }

    /// The thread's id; never `session_id`, which a parent shares with its sub-agents.
    pub(super) fn id(&self) -> Option<String> {
        capped(self.id, ID_CHARS)
    }

    /// What started it, where that is a word.
    pub(super) fn source(&self) -> Option<String> {
        capped(self.source, NAME_CHARS)
    }

    /// What a repeated meta may renew.
    pub(super) fn newest(&self, entry: &mut Entry<'_>) {
        let branch = self.git.and_then(|git| git.get("branch"));
        if let Some(branch) = capped(branch, NAME_CHARS) {
            entry.say(What::Branch(branch));
        }
        if let Some(version) = capped(self.version, NAME_CHARS) {
            entry.say(What::Version(version));
        }
    }

    /// Design section 8, *kind*: the first that fits.
    pub(super) fn origin(&self, id: &str) -> Origin {
        let part = |name| self.source?.get(name).filter(|value| !value.is_null());
        let sub_agent = part("subagent");
        let spawn = sub_agent.and_then(|sub_agent| sub_agent.get("thread_spawn"));
        let internal = part("internal").is_some();
        let thread_source = word(self.thread_source);
        let for_itself =
            thread_source.starts_with("guardian") || thread_source.starts_with("memory");
        let spawned = spawn.is_some() || (sub_agent.is_none() && thread_source == "subagent");
        if spawned {
            let named = spawn.and_then(|spawn| spawn.get("parent_thread_id"));
            let parent = capped(named, ID_CHARS).or_else(|| capped(self.parent, ID_CHARS));
            let parent = parent.filter(|parent| parent != id);
            return Origin { kind: Kind::SubAgent, parent, fork_of: None };
        }
        if sub_agent.is_some() || internal || for_itself {
            return Origin { kind: Kind::Internal, parent: None, fork_of: None };
        }
        let fork_of = capped(self.forked_from, ID_CHARS);
        let kind = match (fork_of.is_some(), word(self.source)) {
            (true, _) => Kind::Fork,
            (false, "exec" | "mcp") => Kind::Sdk,
            (false, _) => Kind::Main,
        };
        Origin { kind, parent: None, fork_of }
    }
}
