//! The words of a dsh log: event types, old names, what counts as activity, folder names.

/// Event types of format versions 0 to 4, sorted. A type that is not among them is counted by name,
/// and noticed unless its row says `ignorable`.
const KNOWN: [&str; 68] = [
    "agent-preset/selected",
    "agent/inbox/spliced",
    "approval/asked",
    "approval/decided",
    "approval/policy",
    "assistant/attempt",
    "assistant/chunk",
    "assistant/message",
    "command/done",
    "command/run",
    "compaction/end",
    "compaction/prune",
    "compaction/start",
    "compaction/summary",
    "connection/reset",
    "deliverables/presented",
    "developer/message",
    "feedback/message-delete",
    "feedback/message-put",
    "feedback/record",
    "goal/change",
    "hook/invoked",
    "hook/result",
    "image/offload",
    "job/registered",
    "job/settled",
    "llm/retry",
    "llm/retry-started",
    "model/selection",
    "permission/preset",
    "plan/mode",
    "request/context",
    "request/header",
    "sandbox/mode",
    "schedule/change",
    "session-log-deepseek/delivery-accepted",
    "session/end-seed",
    "session/flush",
    "session/queue",
    "session/status",
    "session/title",
    "session/title-llm-request",
    "step/end",
    "step/start",
    "subagent/catalog",
    "subagent/descriptor",
    "subagent/model-selection-policy",
    "system/message",
    "team/member",
    "team/message/delivered",
    "team/message/queued",
    "team/task",
    "todo/write",
    "tool-workflow/agent-end",
    "tool-workflow/agent-start",
    "tool-workflow/run-end",
    "tool-workflow/run-start",
    "tool/call",
    "tool/code-dispatch",
    "tool/code-dispatch-start",
    "tool/ptc-dispatch",
    "tool/ptc-dispatch-start",
    "tool/result",
    "turn/end",
    "turn/start",
    "user/message",
    "web/deepseek-search-llm-request",
    "workspace/changes",
];

/// First parts of the types whose rows are activity (design section 2).
const ACTIVE: [&str; 8] =
    ["turn/", "step/", "assistant/", "tool/", "compaction/", "approval/", "command/", "llm/"];

/// The present name of an event type: logs from before August 2026 say `compact/…`.
pub(super) fn current(kind: &str) -> &str {
    match kind {
        "compact/start" => "compaction/start",
        "compact/end" => "compaction/end",
        "compact/summary" => "compaction/summary",
        "compact/prune" => "compaction/prune",
        "steering/message" => "user/message",
        kind => kind,
    }
}

/// Whether a row packs a run of stream deltas.
pub(super) fn is_packed(kind: &str) -> bool {
    matches!(kind, "text-chunks" | "reasoning-chunks" | "tool-call-chunks")
}

/// Whether this version knows the type.
pub(super) fn is_known(kind: &str) -> bool {
    KNOWN.binary_search(&kind).is_ok()
}

/// Whether such a row is activity by its type alone. `user/message` depends on its author.
pub(super) fn is_activity(kind: &str) -> bool {
    ACTIVE.iter().any(|part| kind.starts_with(part))
}

/// The session id that a folder's name encodes: `~XXXX` is one UTF-16 unit.
pub(super) fn decode_folder(name: &str) -> String {
    let mut units: Vec<u16> = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        let code = rest.strip_prefix('~').and_then(|tail| tail.get(..4));
        let unit = code
            .filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|code| u16::from_str_radix(code, 16).ok());
        let length = if let Some(unit) = unit {
            units.push(unit);
            5
        } else {
            units.extend(letter.encode_utf16(&mut [0; 2]).iter());
            letter.len_utf8()
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_known_types_are_sorted_for_the_search() {
        assert!(KNOWN.is_sorted());
        assert!(KNOWN.iter().all(|kind| is_known(kind) && kind.contains('/')));
    }

    #[rstest]
    #[case("session-1", "session-1")]
    #[case("~002E~002E", "..")]
    #[case("a~0020b", "a b")]
    #[case("~65E5~672C", "日本")]
    #[case("~D83D~DE80", "🚀")]
    #[case("~D83D", "\u{fffd}")]
    #[case("~12", "~12")]
    #[case("~zzzz", "~zzzz")]
    #[case("~é€é", "~é€é")]
    fn a_folder_decodes_to_the_id_it_was_made_of(#[case] name: &str, #[case] id: &str) {
        assert_eq!(decode_folder(name), id);
    }
}
