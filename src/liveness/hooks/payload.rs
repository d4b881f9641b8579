//! The JSON that a hook gets on its standard input, read as a stream and kept by name.
//!
//! Only the named fields are looked at; the rest (prompts, commands, answers, which may be long) is
//! passed over as it is read. What was read before the input broke off counts.

use std::fmt;
use std::io::{BufReader, Read};
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::{Event, HookAgent, Kind};
use crate::liveness::scope::Scope;

/// Bytes read of one payload.
const PAYLOAD_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a value that names something; a longer one names nothing.
const NAME_BYTES_MAX: usize = 4096;

/// The event in a hook's input, if it says of which session it is. `named` is the event's name as
/// given on the command line, `codex:` or `claude:` before it if the settings say whose it is.
pub fn parse(input: impl Read, named: &str, at_ms: i64, scope: &Scope) -> Option<Event> {
    let mut fields = Fields::default();
    let input = BufReader::new(input.take(PAYLOAD_BYTES_MAX));
    let mut reader = serde_json::Deserializer::from_reader(input);
    // It ends at the closing brace: the agent may keep the pipe open.
    let _broken_off = fields.deserialize(&mut reader);
    let (agent, name) = match named.split_once(':') {
        Some((agent, name)) => (HookAgent::from_word(agent), name),
        None => (None, named),
    };
    let mut kind = Kind::from_name(name);
    if kind == Kind::Other {
        kind = Kind::from_name(fields.event.as_deref().unwrap_or_default());
    }
    if fields.session_id.is_none() && fields.transcript_path.is_none() {
        return None;
    }
    Some(Event {
        agent: agent.or_else(|| agent_by_path(fields.transcript_path.as_deref()?)),
        kind,
        at_ms,
        session_id: fields.session_id,
        transcript_path: fields.transcript_path,
        agent_id: fields.agent_id,
        reason: fields.reason.or(fields.source).or(fields.notification_type),
        trigger: fields.trigger,
        tool_name: fields.tool_name,
        turn_id: fields.turn_id,
        scope: scope.clone(),
        start_ticks: None,
    })
}

/// Codex names its transcripts `rollout-…`, Claude puts them below `projects`.
fn agent_by_path(path: &str) -> Option<HookAgent> {
    let path = Path::new(path);
    if path.file_name()?.to_str()?.starts_with("rollout-") {
        return Some(HookAgent::Codex);
    }
    path.iter().any(|part| part == "projects").then_some(HookAgent::Claude)
}

#[derive(Debug, Default)]
struct Fields {
    event: Option<String>,
    session_id: Option<String>,
    transcript_path: Option<String>,
    agent_id: Option<String>,
    reason: Option<String>,
    source: Option<String>,
    notification_type: Option<String>,
    trigger: Option<String>,
    tool_name: Option<String>,
    turn_id: Option<String>,
}

impl Fields {
    fn slot(&mut self, name: &str) -> Option<&mut Option<String>> {
        Some(match name {
            "hook_event_name" => &mut self.event,
            "session_id" => &mut self.session_id,
            "transcript_path" => &mut self.transcript_path,
            "agent_id" => &mut self.agent_id,
            "reason" => &mut self.reason,
            "source" => &mut self.source,
            "notification_type" => &mut self.notification_type,
            "trigger" => &mut self.trigger,
            "tool_name" => &mut self.tool_name,
            "turn_id" => &mut self.turn_id,
            _ => return None,
        })
    }
}

impl<'de> DeserializeSeed<'de> for &mut Fields {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Fields {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a hook's JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let Some(slot) = self.slot(&name) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if let Value::String(text) = map.next_value()?
                && !text.is_empty()
                && text.len() <= NAME_BYTES_MAX
            {
                *slot = Some(text);
            }
        }
        Ok(())
    }
}
