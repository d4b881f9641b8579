//! A family of transcripts that depend on each other: a session with sub-agents of every layout, its
//! resumed copy with the same tokens, titles that one file addresses to another's session, a Codex
//! thread with its index, a dsh log plain and in frames.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests may panic")]

/// One transcript: where it may lie, and what it may hold (the first text is the usual one).
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) places: Vec<String>,
    pub(crate) texts: Vec<Vec<u8>>,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of two that lie apart both count, so what is moved is not rewritten as well.
    Moved,
    /// Rewritten in place.
    Rewritten,
    /// One of a name counts: both may happen.
    Both,
}

pub(crate) const SESSION: &str = "26f52589-6919-4be1-ac4b-9de9d22c854c";
pub(crate) const COPY: &str = "ffff2589-6919-4be1-ac4b-9de9d22c854c";
pub(crate) const THREAD: &str = "01a22b80-efc0-70bc-a6a2-339c6bb9adef";

pub(crate) fn user(session: &str, n: u32, text: &str) -> String {
    format!(
        r#"{{"parentUuid":null,"isSidechain":false,"type":"user","message":{{"role":"user","content":"{text}"}},"uuid":"u-{n}","timestamp":"2026-11-30T08:{n:02}:00.000Z","cwd":"/tmp/demo","sessionId":"{session}","version":"2.1.270","gitBranch":"main"}}"#
    ) + "\n"
}

pub(crate) fn answer(session: &str, n: u32, text: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"msg_{n}","type":"message","role":"assistant","model":"claude-opus-5","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn","usage":{{"input_tokens":3,"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"output_tokens":{n}}}}},"requestId":"req_{n}","uuid":"a-{n}","timestamp":"2026-11-30T08:{n:02}:30.000Z","sessionId":"{session}","version":"2.1.270"}}"#
    ) + "\n"
}

fn session_text(n: u32) -> String {
    let mut text = String::new();
    for at in n..n + 3 {
        text += &user(SESSION, at, &format!("prompt {at} é"));
        text += &answer(SESSION, at, &format!("answer {at}"));
    }
    text += "not json\n\n";
    text += &inline(n + 3, "inl1");
    text += "{\"type\":\"assistant\",\"cut";
    text += &user(SESSION, n + 4, "glued");
    let title = format!("\"customTitle\":\"for the copy {n}\",\"sessionId\":\"{COPY}\"");
    text = text + "{\"type\":\"custom-title\"," + &title + "}\n";
    text += &answer(SESSION, n + 5, "last");
    text
}

/// A line of a sub-agent in its parent's file.
fn inline(n: u32, agent: &str) -> String {
    format!(
        r#"{{"isSidechain":true,"agentId":"{agent}","type":"user","message":{{"role":"user","content":"task"}},"uuid":"i-{n}","timestamp":"2026-11-30T08:{n:02}:10.000Z","sessionId":"{SESSION}","version":"1.0.80"}}"#
    ) + "\n"
}

fn copy_text() -> String {
    let own = user(COPY, 20, "own").replace("u-20", "u-own") + &answer(COPY, 21, "own");
    let title = format!(
        "{{\"type\":\"ai-title\",\"aiTitle\":\"Made up\",\"sessionId\":\"{SESSION}\"}}\n{{\"type\":\"summary\",\"summary\":\"A sum\",\"leafUuid\":\"u-1\"}}\n"
    );
    session_text(1).replace(SESSION, COPY) + &own + &title
}

fn agent_text(agent: &str, n: u32) -> String {
    inline(n, agent).replace("i-", "s-")
        + &inline(n + 1, agent).replace("i-", "s-")
        + &answer(SESSION, 2, "shared").replace("a-2", "s-a2")
        + &answer(SESSION, n + 1, "own").replace("msg_", "msg_s").replace("req_", "req_s")
}

fn codex_text(prompt: &str) -> String {
    let turn = "01a22b80-efc0-7b2f-8dc8-e6f315882441";
    let line = |second: u32, kind: &str, payload: &str| {
        format!(
            r#"{{"timestamp":"2026-11-30T08:10:{second:02}.000Z","type":"{kind}","payload":{payload}}}"#
        ) + "\n"
    };
    let meta = format!(
        r#"{{"id":"{THREAD}","timestamp":"2026-11-30T08:10:00.000Z","cwd":"/tmp/demo","originator":"codex_cli_rs","cli_version":"0.151.0","source":"cli","git":{{"branch":"main"}}}}"#
    );
    let started = format!(r#"{{"type":"task_started","turn_id":"{turn}"}}"#);
    let asked = format!(r#"{{"type":"user_message","message":"{prompt}","images":[]}}"#);
    let call = r#"{"type":"function_call","name":"exec","arguments":"{}","call_id":"call_1"}"#;
    let tokens = r#"{"type":"token_count","info":{"total_token_usage":{"input_tokens":900,"cached_input_tokens":0,"output_tokens":100,"total_tokens":1000},"last_token_usage":{"total_tokens":1000}}}"#;
    let done =
        format!(r#"{{"type":"task_complete","turn_id":"{turn}","last_agent_message":"Done."}}"#);
    line(0, "session_meta", &meta)
        + &line(0, "event_msg", &started)
        + &line(1, "event_msg", &asked)
        + &line(2, "response_item", call)
        + &line(3, "event_msg", r#"{"type":"agent_message","message":"Done."}"#)
        + &line(4, "event_msg", tokens)
        + &line(5, "event_msg", &done)
}

fn index_text(name: &str) -> String {
    format!(
        "{{\"id\":\"{THREAD}\",\"thread_name\":\"{name}\",\"updated_at\":\"2026-11-30T08:20:00.000Z\"}}\n"
    )
}

pub(crate) fn dsh_text(id: &str, prompt: &str) -> String {
    format!(
        r#"{{"type":"session","version":0,"id":"{id}","createdAt":1796028240000,"cwd":"/tmp/demo","delegationDepth":0}}
{{"type":"turn/start","seq":0,"time":1796028241000,"data":{{"turn":1}}}}
{{"type":"user/message","seq":1,"time":1796028242000,"data":{{"id":"m1","role":"user","source":{{"kind":"user"}},"content":[{{"type":"text","text":"{prompt}"}}]}},"surfaceOp":"append"}}
{{"type":"text-chunks","seq0":2,"time0":1796028243000,"data":{{"turn":1,"step":1,"index":0,"dt":[1,1],"texts":["a","b","c"]}}}}
{{"type":"assistant/message","seq":5,"time":1796028244000,"data":{{"turn":1,"step":1,"message":{{"id":"a1","role":"assistant","source":{{"kind":"model","provider":"p","model":"m"}},"content":[{{"type":"text","text":"hello"}}]}},"usage":{{"inputTokens":9,"outputTokens":2}}}},"surfaceOp":"append"}}
{{"type":"compaction/start","seq":6,"time":1796028245000,"data":{{"compactionId":"c1","turn":1}}}}
{{"type":"session/end-seed","seq":7,"time":1796028246000,"data":{{}}}}
{{"type":"turn/end","seq":8,"time":1796028247000,"data":{{"turn":1,"reason":{{"kind":"completed"}}}}}}
"#
    )
}

/// One frame for each row, as dsh writes them.
pub(crate) fn frames(text: &str) -> Vec<u8> {
    text.split_inclusive('\n')
        .flat_map(|row| zstd::stream::encode_all(row.as_bytes(), 1).unwrap())
        .collect()
}

/// Frames of which one has lost its magic number and another a byte of its content.
pub(crate) fn damaged_frames(text: &str) -> Vec<u8> {
    let mut packed = Vec::new();
    for (nth, row) in text.split_inclusive('\n').enumerate() {
        let mut frame = zstd::stream::encode_all(row.as_bytes(), 1).unwrap();
        match nth {
            2 => frame[1] ^= 0xff,
            4 => frame[9] ^= 0x55,
            _ => {}
        }
        packed.extend(frame);
    }
    packed
}

/// The family.
pub(crate) fn family() -> Vec<Script> {
    let bytes = |texts: &[String]| texts.iter().map(|text| text.clone().into_bytes()).collect();
    let projects = ".claude/projects/-tmp-demo";
    let rollout = format!("rollout-2026-11-30T08-10-00-{THREAD}.jsonl");
    let dsh = ".dsh/sessions/--tmp-demo--";
    vec![
        Script {
            places: vec![
                format!("{projects}/{SESSION}.jsonl"),
                format!(".claude/projects/-tmp-other/{SESSION}.jsonl"),
            ],
            texts: bytes(&[session_text(1)]),
            kind: Kind::Moved,
        },
        Script {
            places: vec![format!("{projects}/{COPY}.jsonl")],
            texts: bytes(&[copy_text(), user(COPY, 0, "early")]),
            kind: Kind::Rewritten,
        },
        Script {
            places: vec![format!("{projects}/{SESSION}/subagents/agent-a1.jsonl")],
            texts: bytes(&[agent_text("a1", 30), agent_text("a1", 40)]),
            kind: Kind::Rewritten,
        },
        Script {
            places: vec![format!("{projects}/{SESSION}/subagents/agent-a1.meta.json")],
            texts: bytes(&[r#"{"agentType":"x","description":"An agent"}"#.to_owned()]),
            kind: Kind::Rewritten,
        },
        Script {
            places: vec![format!("{projects}/agent-b1.jsonl")],
            texts: bytes(&[agent_text("b1", 50), agent_text("b1", 10)]),
            kind: Kind::Rewritten,
        },
        Script {
            places: vec![
                format!(".codex/sessions/2026/11/30/{rollout}"),
                format!(".codex/archived_sessions/{rollout}"),
            ],
            texts: bytes(&[codex_text("Add a table"), codex_text("Another one")]),
            kind: Kind::Both,
        },
        Script {
            places: vec![".codex/session_index.jsonl".to_owned()],
            texts: bytes(&[index_text("A name") + &index_text("A second"), index_text("Other")]),
            kind: Kind::Rewritten,
        },
        Script {
            places: vec![
                format!("{dsh}/session-1/session.jsonl"),
                ".dsh/sessions/--tmp-other--/session-1/session.jsonl".to_owned(),
            ],
            texts: bytes(&[dsh_text("session-1", "hi"), dsh_text("session-9", "renamed")]),
            kind: Kind::Both,
        },
        Script {
            places: vec![format!("{dsh}/session-2/session.jsonl.zstd")],
            texts: vec![
                frames(&dsh_text("session-2", "packed")),
                damaged_frames(&dsh_text("session-2", "broken")),
            ],
            kind: Kind::Both,
        },
    ]
}
