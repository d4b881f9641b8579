//! The model's side: response items, bare or wrapped.
//!
//! Calls and results are primary here, in every era. Prompts and answers are fallbacks: where the
//! program's own events tell of them too ([`super::events`]), those count, since an item of the
//! user's role is often Codex's own.

use super::super::json::Value;
use super::super::{Message, MessageKind, MessageSource, PREVIEW_CHARS, What};
use super::text::{self, Human, Preview, capped, oversized_note, plain, word};
use super::{Entry, ID_CHARS, NAME_CHARS, State, plain_row};

/// The fields of all kinds of items.
#[derive(Default)]
struct Item<'a> {
    kind: Option<Value<'a>>,
    role: Option<Value<'a>>,
    content: Option<Value<'a>>,
    id: Option<Value<'a>>,
    call_id: Option<Value<'a>>,
    name: Option<Value<'a>>,
    recipient: Option<Value<'a>>,
    /// `arguments` or `input`.
    arguments: Option<Value<'a>>,
    action: Option<Value<'a>>,
    /// `output`, `tools` or `result`.
    output: Option<Value<'a>>,
}

impl<'a> Item<'a> {
    fn read(payload: Value<'a>) -> Self {
        let mut item = Self::default();
        for (key, value) in payload.fields() {
            let slot = match key.bytes() {
                b"type" => &mut item.kind,
                b"role" => &mut item.role,
                b"content" => &mut item.content,
                b"id" => &mut item.id,
                b"call_id" => &mut item.call_id,
                b"name" => &mut item.name,
                b"recipient" => &mut item.recipient,
                b"arguments" | b"input" => &mut item.arguments,
                b"action" => &mut item.action,
                b"output" | b"tools" | b"result" => &mut item.output,
                _ => continue,
            };
            *slot = Some(value);
        }
        item
    }
}

/// What an item is to a transcript.
enum Sort {
    Message,
    Mail,
    Call,
    Result,
    Thought,
    Silent,
}

fn sort(kind: &str) -> Option<Sort> {
    Some(match kind {
        "message" => Sort::Message,
        "agent_message" => Sort::Mail,
        "function_call"
        | "custom_tool_call"
        | "local_shell_call"
        | "tool_search_call"
        | "web_search_call"
        | "image_generation_call" => Sort::Call,
        "function_call_output"
        | "custom_tool_call_output"
        | "local_shell_call_output"
        | "tool_search_output" => Sort::Result,
        "reasoning" => Sort::Thought,
        "compaction" | "compaction_summary" | "context_compaction" | "compaction_trigger"
        | "ghost_snapshot" | "additional_tools" | "other" => Sort::Silent,
        _ => return None,
    })
}

/// Whether a bare line of that type is an item.
pub(super) fn is_item(kind: &str) -> bool {
    sort(kind).is_some()
}

impl State {
    /// A response item; always activity.
    pub(super) fn response_item(&mut self, payload: Value<'_>, entry: &mut Entry<'_>) {
        entry.say(What::Activity);
        let item = Item::read(payload);
        self.name(item.id.filter(|id| !id.is_null()).or(item.call_id), None, entry);
        match sort(word(item.kind)) {
            Some(Sort::Message) => self.message_item(&item, entry),
            Some(Sort::Mail) => {
                // Other mail between agents: worth a line, but nobody's prompt or answer.
                if let Some(task) = self.task(item.content, item.recipient) {
                    self.compactions.over(entry);
                    entry.row(MessageKind::Prompt, MessageSource::Primary, task);
                    self.turns.prompt_event(entry);
                } else if let Some(text) = Preview::content(item.content, Human::Everything).all() {
                    entry.note(text);
                }
            }
            Some(Sort::Call) => self.call_item(&item, entry),
            Some(Sort::Result) => self.result_item(&item, entry),
            Some(Sort::Thought) => self.meter.spoke(),
            Some(Sort::Silent) => {}
            None => entry.unknown("response_item", item.kind),
        }
    }

    fn message_item(&mut self, item: &Item<'_>, entry: &mut Entry<'_>) {
        match word(item.role) {
            "user" => {
                let preview = Preview::content(item.content, Human::Item);
                if let Some(text) = preview.words().or_else(|| oversized_note(entry)) {
                    self.compactions.over(entry);
                    entry.row(MessageKind::Prompt, MessageSource::Fallback, text);
                    self.turns.prompt(entry);
                }
            }
            "assistant" => {
                self.meter.spoke();
                if entry.summary {
                    return;
                }
                if self.turns.is_planning()
                    && let Some(plan) = item.content.and_then(text::proposed_plan)
                {
                    self.turns.plan(plan);
                }
                let preview = Preview::content(item.content, Human::Everything);
                if let Some(text) = preview.words().or_else(|| oversized_note(entry)) {
                    self.compactions.over(entry);
                    entry.row(MessageKind::Answer, MessageSource::Fallback, text);
                    self.turns.answer(entry);
                }
            }
            // `developer` and `system` texts are Codex's instructions.
            _ => {}
        }
    }

    fn call_item(&mut self, item: &Item<'_>, entry: &mut Entry<'_>) {
        self.compactions.over(entry);
        self.meter.spoke();
        let kind = word(item.kind);
        // The provider runs these itself: what is written is finished, and no result follows.
        let finished = matches!(kind, "web_search_call" | "image_generation_call");
        let given = capped(item.call_id, ID_CHARS);
        let call = match kind {
            _ if finished => None,
            "local_shell_call" => given.or_else(|| capped(item.id, ID_CHARS)),
            _ => given,
        };
        let name = capped(item.name, NAME_CHARS)
            .unwrap_or_else(|| kind.strip_suffix("_call").unwrap_or(kind).to_owned());
        let text = call_text(item).or_else(|| oversized_note(entry)).unwrap_or_default();
        if name == "spawn_agent" {
            self.spawns(call.as_ref(), item.arguments);
        }
        self.turns.call(call.as_ref(), entry);
        entry.call_row(Message {
            counted: true,
            call,
            name: Some(name),
            ..plain_row(MessageKind::ToolCall, MessageSource::Primary, text)
        });
    }

    fn result_item(&mut self, item: &Item<'_>, entry: &mut Entry<'_>) {
        let call = capped(item.call_id.or(item.id), ID_CHARS);
        if let Some(call) = &call {
            self.turns.result(call);
        }
        let preview = Preview::content(item.output, Human::Everything).all();
        let text = preview
            .or_else(|| item.output.and_then(nested_output))
            .or_else(|| oversized_note(entry))
            .unwrap_or_default();
        entry.call_row(Message {
            call,
            ..plain_row(MessageKind::ToolResult, MessageSource::Primary, text)
        });
    }
}

/// What a call asks for.
fn call_text(item: &Item<'_>) -> Option<String> {
    if let Some(arguments) = item.arguments {
        return text::arguments(arguments);
    }
    if let Some(action) = item.action {
        let [query, queries, url] = action.pick(["query", "queries", "url"]);
        return text::command(action)
            .or_else(|| query.or(queries).or(url).and_then(text::words))
            .or_else(|| plain(action));
    }
    let bytes = item.output.and_then(Value::string_bytes)?;
    Some(text::size_note("image", bytes as u64))
}

/// An output that is an object: `{content, success}` of some builds.
fn nested_output(output: Value<'_>) -> Option<String> {
    let content = output.get("content");
    Preview::content(content, Human::Everything)
        .all()
        .or_else(|| output.fields().next().and_then(|_| plain(output)))
        .map(|text| text.chars().take(PREVIEW_CHARS).collect())
}
