//! The program's side: event messages, and the items of a paginated rollout.
//!
//! Prompts and answers are primary here. A paginated rollout tells of a call twice, as the model's
//! `function_call` and as the program's `CommandExecution` and its like; the model's side is the
//! one that has the call before its result, so it is primary, and these are its fallback.

use super::super::json::Value;
use super::super::{Message, MessageKind, MessageSource, What, errors};
use super::compactions::{Times, Witness};
use super::text::{self, Human, Preview, capped, oversized_note, plain, word};
use super::turns::{By, Ending, Start};
use super::{Entry, ID_CHARS, NAME_CHARS, State, plain_row};

/// Characters kept of an error's text.
const ERROR_CHARS: usize = 1000;

/// The fields of all kinds of events.
#[derive(Default)]
struct Event<'a> {
    kind: Option<Value<'a>>,
    turn_id: Option<Value<'a>>,
    message: Option<Value<'a>>,
    images: Option<Value<'a>>,
    local_images: Option<Value<'a>>,
    /// What kind of user message, in 2025.
    of: Option<Value<'a>>,
    info: Option<Value<'a>>,
    item: Option<Value<'a>>,
    error: Option<Value<'a>>,
    code: Option<Value<'a>>,
    reason: Option<Value<'a>>,
    answer: Option<Value<'a>>,
    window: Option<Value<'a>>,
    started_s: Option<Value<'a>>,
    started_ms: Option<Value<'a>>,
    completed_ms: Option<Value<'a>>,
    turns: Option<Value<'a>>,
    mode: Option<Value<'a>>,
    settings: Option<Value<'a>>,
    root_turn: Option<Value<'a>>,
    attribution: Option<Value<'a>>,
}

impl<'a> Event<'a> {
    fn read(payload: Value<'a>) -> Self {
        let mut event = Self::default();
        for (key, value) in payload.fields() {
            let slot = match key.bytes() {
                b"type" => &mut event.kind,
                b"turn_id" => &mut event.turn_id,
                b"message" => &mut event.message,
                b"images" => &mut event.images,
                b"local_images" => &mut event.local_images,
                b"kind" => &mut event.of,
                b"info" => &mut event.info,
                b"item" => &mut event.item,
                b"error" => &mut event.error,
                b"codex_error_info" => &mut event.code,
                b"reason" => &mut event.reason,
                b"last_agent_message" => &mut event.answer,
                b"model_context_window" => &mut event.window,
                b"started_at" => &mut event.started_s,
                b"started_at_ms" => &mut event.started_ms,
                b"completed_at_ms" => &mut event.completed_ms,
                b"num_turns" => &mut event.turns,
                b"root_turn_id" => &mut event.root_turn,
                b"turn_attribution" => &mut event.attribution,
                b"thread_settings" => &mut event.settings,
                b"collaboration_mode_kind" => &mut event.mode,
                _ => continue,
            };
            *slot = Some(value);
        }
        event
    }

    fn turn(&self) -> Option<String> {
        capped(self.turn_id, ID_CHARS)
    }

    fn times(&self) -> Times {
        Times {
            started_ms: self.started_ms.and_then(Value::int),
            completed_ms: self.completed_ms.and_then(Value::int),
        }
    }
}

/// Whether an event of that type starts a turn.
pub(super) fn is_start(kind: &str) -> bool {
    matches!(kind, "task_started" | "turn_started")
}

impl State {
    /// An event message. All but three kinds are activity.
    pub(super) fn event(&mut self, payload: Value<'_>, entry: &mut Entry<'_>) {
        let event = Event::read(payload);
        let kind = word(event.kind);
        match kind {
            "token_count" => {
                let estimate = self.meter.count(event.info, entry);
                return self.compactions.estimate(estimate);
            }
            "thread_settings_applied" => {
                let model = event.settings.and_then(|settings| settings.get("model"));
                if let Some(model) = capped(model, NAME_CHARS) {
                    entry.say(What::Model(model));
                }
                return;
            }
            "thread_goal_updated" => return,
            _ => entry.say(What::Activity),
        }
        match kind {
            kind if is_start(kind) => self.task_started(&event, entry),
            "task_complete" | "turn_complete" => self.task_complete(&event, entry),
            "turn_aborted" => {
                self.compactions.release(entry);
                let reason = capped(event.reason, NAME_CHARS);
                let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                entry.note(format!("turn aborted{reason}"));
                self.turns.abort(event.turn().as_deref(), entry);
            }
            "user_message" => self.user_message(&event, entry),
            "agent_message" => {
                let preview = Preview::content(event.message, Human::Everything);
                self.answer_event(preview, Counted::Yes, entry);
            }
            "context_compacted" => {
                self.compaction(Witness::Event, event.times(), None, entry);
            }
            "item_completed" => self.item_completed(&event, entry),
            "error" => {
                let (code, text) = error_of(event.code, event.message);
                entry.note(format!("error: {}", errors::in_words(&code, &text)));
                entry.say(What::Error { code, text });
                self.turns.error(entry);
            }
            "thread_rolled_back" => {
                let turns = event.turns.and_then(Value::uint).unwrap_or(0);
                entry.note(format!("rolled back {turns} turns"));
                entry.say(What::RolledBack(turns));
                self.turns.rolled_back();
                self.meter.rolled_back();
            }
            "entered_review_mode" => entry.note("review started".to_owned()),
            "exited_review_mode" => entry.note("review ended".to_owned()),
            kind if is_silent(kind) => {}
            _ => entry.unknown("event_msg", event.kind),
        }
    }

    fn task_started(&mut self, event: &Event<'_>, entry: &mut Entry<'_>) {
        self.compactions.over(entry);
        let started_s = event.started_s.and_then(Value::int);
        let at_ms = entry.at_ms.or(started_s.and_then(|seconds| seconds.checked_mul(1000)));
        let mode = capped(event.mode, NAME_CHARS);
        let planning = mode.map(|mode| mode == "plan");
        let by = match (event.root_turn, event.attribution) {
            (Some(_), None) => By::Nobody,
            (Some(_) | None, _) => By::Anybody,
        };
        let id = event.turn();
        if id.is_none() || id != self.turns.newest() {
            self.compactions.another_turn();
        }
        self.turns.start(Start { id, at_ms, by, planning }, entry);
        self.meter.window(event.window, entry);
    }

    fn task_complete(&mut self, event: &Event<'_>, entry: &mut Entry<'_>) {
        self.compactions.release(entry);
        let [message, code] =
            event.error.map_or([None, None], |error| error.pick(["message", "codex_error_info"]));
        let whole = capped(event.error, ERROR_CHARS);
        let carried = whole.is_some() || event.error.is_some_and(|e| e.fields().next().is_some());
        let error = carried.then(|| error_of(code, message.or(event.error)));
        if let Some((code, text)) = &error {
            entry.note(format!("error: {}", errors::in_words(code, text)));
        }
        let ending = Ending { error, answer: capped(event.answer, 1).is_some() };
        self.turns.complete(event.turn().as_deref(), ending, entry);
    }

    fn user_message(&mut self, event: &Event<'_>, entry: &mut Entry<'_>) {
        // In 2025 the same event told of Codex's own context, and said so.
        if matches!(word(event.of), "user_instructions" | "environment_context") {
            return;
        }
        let mut preview = Preview::content(event.message, Human::Event);
        preview.pictures(event.images);
        preview.pictures(event.local_images);
        self.prompt_event(preview, entry);
    }

    fn prompt_event(&mut self, preview: Preview, entry: &mut Entry<'_>) {
        if let Some(text) = preview.words().or_else(|| oversized_note(entry)) {
            self.compactions.over(entry);
            entry.row(MessageKind::Prompt, MessageSource::Primary, text);
            self.turns.prompt_event(entry);
        }
    }

    fn answer_event(&mut self, preview: Preview, counted: Counted, entry: &mut Entry<'_>) {
        self.meter.spoke();
        if entry.summary {
            return;
        }
        if let Some(text) = preview.words().or_else(|| oversized_note(entry)) {
            self.compactions.over(entry);
            entry.call_row(Message {
                counted: counted == Counted::Yes,
                ..plain_row(MessageKind::Answer, MessageSource::Primary, text)
            });
            self.turns.answer(entry);
        }
    }

    /// An item of a paginated rollout, written when it is finished.
    fn item_completed(&mut self, event: &Event<'_>, entry: &mut Entry<'_>) {
        let Some(item) =
            event.item.filter(|item| item.get("cut").is_none() || item.get("type").is_some())
        else {
            // The head of a line too long to read ends before it says what the item is.
            if let Some(text) = oversized_note(entry) {
                entry.note(text);
            }
            return;
        };
        let [kind, content, words, id] = item.pick(["type", "content", "text", "id"]);
        self.name(id, event.turn(), entry);
        match word(kind) {
            "UserMessage" => {
                self.prompt_event(Preview::content(content, Human::Event), entry);
            }
            "AgentMessage" => {
                let preview = Preview::content(content.or(words), Human::Everything);
                self.answer_event(preview, Counted::Yes, entry);
            }
            // A plan is a part of an answer, cut out of it: an answer to the turn, not to count.
            "Plan" => {
                let preview = Preview::content(words, Human::Everything);
                self.turns.plan(preview.text.clone());
                self.answer_event(preview, Counted::No, entry);
            }
            "ContextCompaction" => {
                self.compaction(Witness::Item, event.times(), None, entry);
            }
            "CommandExecution"
            | "FileChange"
            | "McpToolCall"
            | "DynamicToolCall"
            | "CollabAgentToolCall"
            | "WebSearch"
            | "ImageView"
            | "ImageGeneration"
            | "Extension" => self.call_event(word(kind), item, entry),
            "EnteredReviewMode" => entry.note("review started".to_owned()),
            "ExitedReviewMode" => entry.note("review ended".to_owned()),
            "SubAgentActivity" => self.sub_agent(item, entry),
            "Reasoning" | "HookPrompt" => {}
            _ => entry.unknown("item_completed", kind),
        }
    }

    fn call_event(&mut self, kind: &str, item: Value<'_>, entry: &mut Entry<'_>) {
        self.compactions.over(entry);
        let [tool, query, path, status] = item.pick(["tool", "query", "path", "status"]);
        let [arguments, prompt, changes] = item.pick(["arguments", "prompt", "changes"]);
        let text = text::command(item)
            .or_else(|| query.or(path).or(prompt).and_then(plain))
            .or_else(|| changes.and_then(changed_paths))
            .or_else(|| arguments.and_then(plain))
            .unwrap_or_default();
        // The only trace of a refusal that is written down.
        let text = match word(status) {
            "declined" => format!("declined: {}", short(&text)),
            _ => text,
        };
        self.turns.call(None, entry);
        entry.call_row(Message {
            counted: true,
            name: Some(capped(tool, NAME_CHARS).unwrap_or_else(|| kind.to_owned())),
            ..plain_row(MessageKind::ToolCall, MessageSource::Fallback, text)
        });
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    Yes,
    No,
}

/// Leaves room for the word before it in a preview.
fn short(text: &str) -> String {
    text.chars().take(super::super::PREVIEW_CHARS - 16).collect()
}

/// The files of a `FileChange`.
fn changed_paths(changes: Value<'_>) -> Option<String> {
    let quoted = |key: super::super::json::Key<'_>| {
        String::from_utf8_lossy(key.bytes()).chars().take(super::super::PREVIEW_CHARS).collect()
    };
    let paths: Vec<String> = changes.fields().take(4).map(|(key, _)| quoted(key)).collect();
    let text: String = paths.join(" ").chars().take(super::super::PREVIEW_CHARS).collect();
    (!text.is_empty()).then_some(text)
}

/// Code and text of an error. The code is a word, or an object with one key; where that holds the
/// status with which the server answered, it is the code.
fn error_of(code: Option<Value<'_>>, message: Option<Value<'_>>) -> (String, String) {
    let named = code.and_then(|code| {
        let Some((key, more)) = code.fields().next() else { return code.text_up_to(NAME_CHARS) };
        let status = more.get("http_status_code").and_then(Value::uint);
        let key = String::from_utf8_lossy(key.bytes()).into_owned();
        Some(status.map_or(key, |status| status.to_string()))
    });
    let code: String = named
        .unwrap_or_default()
        .chars()
        .map(|letter| if letter.is_whitespace() { '_' } else { letter })
        .take(NAME_CHARS)
        .collect();
    let code = if code.is_empty() { "error".to_owned() } else { code };
    let text = capped(message, ERROR_CHARS).or_else(|| message.and_then(plain));
    (code, text.unwrap_or_default())
}

/// Events that are known, and say nothing that another record does not say better. Most are never
/// written; builds with extended persistence wrote some.
fn is_silent(kind: &str) -> bool {
    const FAMILIES: [&str; 14] = [
        "agent_reasoning",
        "exec_command_",
        "exec_approval_",
        "mcp_tool_call_",
        "patch_apply_",
        "web_search_",
        "image_generation_",
        "apply_patch_",
        "collab_",
        "hook_",
        "reasoning_",
        "agent_message_",
        "undo_",
        "sub_agent_",
    ];
    FAMILIES.iter().any(|family| kind.starts_with(family))
        || matches!(
            kind,
            "stream_error"
                | "warning"
                | "item_started"
                | "plan_update"
                | "turn_diff"
                | "background_event"
                | "request_permissions"
                | "request_user_input"
                | "elicitation_request"
                | "view_image_tool_call"
                | "session_configured"
                | "shutdown_complete"
                | "deprecation_notice"
                | "thread_name_updated"
        )
}
