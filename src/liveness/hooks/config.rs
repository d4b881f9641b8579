//! The settings that make the agents call our hook. They are printed, never written: an agent's
//! settings are its user's.

use serde_json::{Map, Value, json};

use super::{HookAgent, Kind};

/// Seconds after which an agent may give the hook up; it gives up itself after one. Codex lets no
/// hook at the end of a session have more than three, and says so at each start.
const TIMEOUT_S: u32 = 3;

/// Settings to add, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// JSON, for standard output.
    pub json: String,
    /// What to do with it, for standard error.
    pub hint: &'static str,
}

/// The settings for an agent; `program` is how it calls us: a program and the arguments that say of
/// which store.
pub fn print_config(agent: HookAgent, program: &[String]) -> Settings {
    let (kinds, prefix, hint): (&[Kind], _, _) = match agent {
        HookAgent::Claude => (
            &[
                Kind::SessionStart,
                Kind::UserPromptSubmit,
                Kind::PermissionRequest,
                Kind::Notification,
                Kind::Stop,
                Kind::PreCompact,
                Kind::PostCompact,
                Kind::SessionEnd,
            ],
            "",
            "add this to `hooks` in ~/.claude/settings.json, beside what is there",
        ),
        HookAgent::Codex => (
            &[
                Kind::SessionStart,
                Kind::UserPromptSubmit,
                Kind::PermissionRequest,
                Kind::Stop,
                Kind::PreCompact,
                Kind::PostCompact,
                Kind::SessionEnd,
            ],
            "codex:",
            "add this to ~/.codex/hooks.json, then trust it with `/hooks` in Codex; older versions \
             also need `codex_hooks = true` under `[features]` in config.toml",
        ),
    };
    let program: Vec<String> = program.iter().map(|word| quote(word)).collect();
    let program = program.join(" ");
    let mut hooks = Map::new();
    for kind in kinds {
        let command = format!("{program} hook {prefix}{}", kind.name());
        let hook = json!({ "type": "command", "command": command, "timeout": TIMEOUT_S });
        hooks.insert(kind.name().to_owned(), json!([{ "hooks": [hook] }]));
    }
    let settings = Value::Object(Map::from_iter([("hooks".to_owned(), Value::Object(hooks))]));
    Settings { json: format!("{settings:#}\n"), hint }
}

/// One word for a shell.
fn quote(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
    if word.chars().all(plain) && !word.is_empty() {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
