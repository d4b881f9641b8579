//! The settings that make the agents call our hook. They are printed, never written: an agent's
//! settings are its user's.

use serde_json::{Map, Value, json};

use super::{HookAgent, Kind};

/// Seconds after which an agent may give the hook up; it needs a quarter of one.
const TIMEOUT_S: u32 = 5;

/// Settings to add, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// JSON, for standard output.
    pub json: String,
    /// What to do with it, for standard error.
    pub hint: &'static str,
}

/// The settings for an agent; `program` is how it calls us.
pub fn print_config(agent: HookAgent, program: &str) -> Settings {
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
    let mut hooks = Map::new();
    for kind in kinds {
        let command = format!("{} hook {prefix}{}", quote(program), kind.name());
        let hook = json!({ "type": "command", "command": command, "timeout": TIMEOUT_S });
        hooks.insert(kind.name().to_owned(), json!([{ "hooks": [hook] }]));
    }
    let settings = Value::Object(Map::from_iter([("hooks".to_owned(), Value::Object(hooks))]));
    Settings { json: format!("{settings:#}\n"), hint }
}

/// One word for a shell.
fn quote(program: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
    if program.chars().all(plain) && !program.is_empty() {
        return program.to_owned();
    }
    format!("'{}'", program.replace('\'', r"'\''"))
}
