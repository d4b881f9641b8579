//! The dsh adapter: header, lineage, events, turns, usage, brackets.

use proptest::prelude::*;
use rstest::rstest;

use super::super::facts::{Counts, Facts};
use super::super::testing::{self, Read};
use super::super::{Agent, Place, Tokens, Turn, read_line, read_oversized};
use super::*;
use crate::compaction::{Bracket, Owner, Trigger};

const OBSERVED_MS: i64 = 1_800_000_000_000;
const HEADER: &str = r#"{"type":"session","version":0,"id":"s","createdAt":500,"cwd":"/w"}"#;

/// Reads a header and rows.
fn under(header: &str, rows: &[&str]) -> Read {
    let text = [&[header], rows, &[""]].concat().join("\n");
    testing::read(Agent::Dsh, &testing::hint("session"), text.as_bytes(), OBSERVED_MS)
}

fn read(rows: &[&str]) -> Read {
    under(HEADER, rows)
}

/// A row; its stamp is a thousand times one more than its seq.
fn row(kind: &str, seq: u64, data: &str) -> String {
    let time = (seq + 1) * 1000;
    format!(r#"{{"type":"{kind}","seq":{seq},"time":{time},"data":{data}}}"#)
}

fn prompt(seq: u64, text: &str) -> String {
    from(seq, r#"{"kind":"user"}"#, text)
}

fn from(seq: u64, source: &str, text: &str) -> String {
    let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
    row("user/message", seq, &format!(r#"{{"source":{source},"content":{content}}}"#))
}

fn answer(seq: u64, step: u64, usage: &str) -> String {
    let content = r#"[{"type":"reasoning","text":"hm"},{"type":"text","text":"ok"}]"#;
    let message = format!(r#"{{"content":{content},"source":{{"kind":"model","model":"m1"}}}}"#);
    let data = format!(r#"{{"turn":1,"step":{step},"message":{message}{usage}}}"#);
    row("assistant/message", seq, &data)
}

fn lines(rows: &[String]) -> Vec<&str> {
    rows.iter().map(String::as_str).collect()
}

fn codes(facts: &Facts) -> Vec<&str> {
    facts.notices.iter().map(|notice| notice.code.as_str()).collect()
}

fn one(count: u64) -> Counts {
    Counts { primary: count, fallback: 0 }
}

#[test]
fn a_turn_gives_its_facts() {
    let usage = r#","usage":{"inputTokens":900,"outputTokens":20,"cacheReadTokens":100}"#;
    let rows = [
        row("turn/start", 0, r#"{"turn":1}"#),
        prompt(1, "hello"),
        row("session/title", 2, r#"{"title":"Greeting"}"#),
        row("request/header", 3, r#"{"header":{"config":{"model":"m0"}}}"#),
        row("request/context", 4, r#"{"contextWindow":131072}"#),
        answer(5, 1, usage),
        row("tool/call", 6, r#"{"callId":"c1","name":"bash","arguments":"{}"}"#),
    ];
    let found = read(&lines(&rows));
    let facts = found.own();
    assert_eq!(found.key(), SessionKey::top("s"));
    assert_eq!((facts.turn, facts.last_turn), (Turn::Open, None));
    assert_eq!((facts.started_ms, facts.last_activity_ms), (Some(500), Some(7000)));
    let counts = (facts.prompts, facts.answers, facts.tool_calls);
    assert_eq!(counts, (one(1), one(1), one(1)));
    let tokens = Tokens { input: 900, cache_read: 100, cache_write: 0, output: 20 };
    assert_eq!((facts.tokens, facts.context_used), (tokens, Some(1000)));
    assert_eq!(facts.context_window, Some(131_072));
    assert_eq!((facts.model.as_deref(), facts.cwd.as_deref()), (Some("m1"), Some("/w")));
    assert_eq!((facts.newest_text(), facts.kind), (Some("ok"), None));
    assert_eq!(facts.open_calls[0].name, "bash");
    assert_eq!(found.titles()[0].text, "Greeting");
    assert_eq!(found.titles()[0].kind, TitleKind::Generated);
    assert_eq!(codes(facts), [""; 0]);
}

/// The clock at which a line is read may be the wrong one, so its stamp is kept as written.
#[test]
fn a_stamp_ahead_of_the_clock_is_kept_until_a_later_line_shows_it_wrong() {
    let stamped = |times: &[i64]| {
        let row = |(seq, time): (usize, &i64)| {
            format!(r#"{{"type":"turn/start","seq":{seq},"time":{time},"data":{{}}}}"#)
        };
        let rows: Vec<String> = times.iter().enumerate().map(row).collect();
        let found = read(&lines(&rows));
        (found.own().last_activity_ms, found.own().read_ahead_ms, found.own().clock_ahead)
    };
    let (now, year) = (OBSERVED_MS, 31_536_000_000);
    assert_eq!(stamped(&[now - 5]), (Some(now - 5), None, false));
    assert_eq!(stamped(&[now - 5, now + year]), (Some(now + year), Some(now), true));
    // What stands behind it was written later: the clock was ahead, and has been set right.
    assert_eq!(stamped(&[now + year, now - 5]), (Some(now - 5), Some(now), true));
    // Within the clock's slack nothing is wrong, and the newest stamp counts wherever it stands.
    assert_eq!(stamped(&[now + 4_000, now - 5]), (Some(now + 4_000), None, false));
}

/// dsh 0.2.1-rc.2 writes a job's records around every call of bash (`formats/dsh.md`, the last part).
#[test]
fn the_records_of_a_job_are_known_and_no_activity() {
    let job = r#"{"jobId":"bash-1","owner":"s","kind":"bash","label":"ls","startedAt":1}"#;
    let rows = [
        row("turn/start", 0, r#"{"turn":1}"#),
        row("job/registered", 1, job),
        row("job/settled", 2, job),
    ];
    let found = read(&lines(&rows));
    assert_eq!(codes(found.own()), [""; 0]);
    assert!(found.own().unknown.is_empty(), "{:?}", found.own().unknown);
    assert_eq!(found.own().last_activity_ms, Some(1000));
}

#[rstest]
#[case::completed(r#"{"kind":"completed"}"#, Some(Outcome::Completed), None)]
#[case::max_tokens(r#"{"kind":"max-tokens"}"#, Some(Outcome::Completed), None)]
#[case::aborted(r#"{"kind":"aborted","reason":{"kind":"user"}}"#, Some(Outcome::Aborted), None)]
#[case::interrupted(r#"{"kind":"interrupted"}"#, Some(Outcome::Aborted), None)]
#[case::blocked(
    r#"{"kind":"blocked"}"#,
    Some(Outcome::Error),
    Some("blocked the turn was blocked")
)]
#[case::error(
    r#"{"kind":"error","error":{"message":"503 up\u001bstream","code":"PROVIDER ERROR"}}"#,
    Some(Outcome::Error),
    Some("503 up\u{1b}stream")
)]
#[case::error_of_text(r#"{"kind":"error","error":"no"}"#, Some(Outcome::Error), Some("error no"))]
#[case::later_kind(r#"{"kind":"forked"}"#, None, None)]
#[case::no_reason("null", None, None)]
fn a_turn_ends_for_a_reason(
    #[case] reason: &str,
    #[case] outcome: Option<Outcome>,
    #[case] error: Option<&str>,
) {
    let end = row("turn/end", 1, &format!(r#"{{"turn":1,"reason":{reason}}}"#));
    let found = read(&[&row("turn/start", 0, r#"{"turn":1}"#), &end]);
    let facts = found.own();
    assert_eq!((facts.turn, facts.last_turn), (Turn::Closed, outcome));
    assert_eq!(facts.last_error.as_deref(), error);
}

#[test]
fn an_error_is_forgotten_after_a_completed_turn() {
    let failed = r#"{"reason":{"kind":"error","error":{"code":"X","message":"y"}}}"#;
    let rows = [
        row("turn/end", 0, failed),
        row("turn/start", 1, "{}"),
        row("turn/end", 2, r#"{"reason":{"kind":"completed"}}"#),
    ];
    assert_eq!(read(&lines(&rows[..2])).own().last_error.as_deref(), Some("X y"));
    assert_eq!(read(&lines(&rows)).own().last_error, None);
}

#[rstest]
#[case::user(r#"{"kind":"user"}"#, 1, true)]
#[case::agent(r#"{"kind":"agent"}"#, 0, true)]
#[case::tool(r#"{"kind":"tool"}"#, 0, true)]
#[case::injected(r#"{"kind":"plugin","plugin":"agent-instructions"}"#, 0, false)]
#[case::checkpoint(r#"{"kind":"plugin","plugin":"compact"}"#, 0, false)]
#[case::checkpoint_v4(r#"{"kind":"compact-checkpoint","compactionId":"c"}"#, 0, false)]
#[case::none("null", 0, false)]
fn only_the_users_own_message_is_a_prompt(
    #[case] source: &str,
    #[case] prompts: u64,
    #[case] active: bool,
) {
    let found = read(&[&from(0, source, "text")]);
    assert_eq!(found.own().prompts.chosen(), prompts);
    assert_eq!(found.own().last_activity_ms.is_some(), active);
}

#[rstest]
#[case("turn/start", true)]
#[case("step/end", true)]
#[case("assistant/chunk", true)]
#[case("tool/ptc-dispatch", true)]
#[case("compaction/start", true)]
#[case("compact/start", true)]
#[case("approval/asked", true)]
#[case("command/run", true)]
#[case("llm/retry", true)]
#[case("approval/policy", true)]
#[case("session/end-seed", false)]
#[case("session/title", false)]
#[case("permission/preset", false)]
#[case("request/header", false)]
#[case("subagent/descriptor", false)]
#[case("agent/inbox/spliced", false)]
#[case("tool-workflow/run-start", false)]
#[case("todo/write", false)]
fn activity_is_a_matter_of_the_type(#[case] kind: &str, #[case] active: bool) {
    let found = read(&[&row(kind, 0, "{}")]);
    assert_eq!(found.own().last_activity_ms, active.then_some(1000));
    assert_eq!(codes(found.own()), [""; 0]);
}

#[test]
fn a_compaction_is_a_bracket_and_resets_the_context() {
    let usage = r#","usage":{"inputTokens":10,"outputTokens":1}"#;
    let summary = r#"{"shadowedTokenCount":1200,"usage":{"inputTokens":9,"outputTokens":60}}"#;
    let rows = [
        answer(0, 1, usage),
        row("compaction/start", 1, r#"{"turn":3}"#),
        row("compaction/summary", 2, summary),
        from(3, r#"{"kind":"plugin","plugin":"compact"}"#, "summary"),
        row("compaction/end", 4, r#"{"turn":3}"#),
        answer(5, 2, usage),
    ];
    let found = read(&lines(&rows[..5]));
    let attempt = found.own().compaction.verdict().attempt.unwrap();
    assert_eq!((attempt.bracket, attempt.owner), (Bracket::Closed, Some(Owner::Turn(3))));
    assert_eq!(attempt.trigger, Some(Trigger::Auto));
    assert_eq!((attempt.before_tokens, attempt.after_tokens), (Some(1200), Some(60)));
    assert_eq!((attempt.started_ms, attempt.ended_ms), (Some(2000), Some(5000)));
    assert_eq!((found.own().context_used, found.own().prompts.chosen()), (None, 0));
    // The request of the summary is not among the tokens.
    assert_eq!(found.own().tokens.total(), 11);
    assert_eq!(read(&lines(&rows)).own().context_used, Some(10));
}

#[rstest]
#[case::text(r#""no room""#, Some("no room"))]
#[case::object(r#"{"code":1}"#, Some("{\"code\":1}"))]
#[case::empty(r#""""#, None)]
#[case::null("null", None)]
fn an_end_with_an_error_failed(#[case] error: &str, #[case] expected: Option<&str>) {
    let end = row("compaction/end", 1, &format!(r#"{{"error":{error}}}"#));
    let found = read(&[&row("compact/start", 0, r#"{"turn":null}"#), &end]);
    let attempt = found.own().compaction.verdict().attempt.unwrap();
    assert_eq!(attempt.error.as_deref(), expected);
    assert_eq!(attempt.bracket == Bracket::Failed, expected.is_some());
    assert_eq!(found.own().compaction.count, u64::from(expected.is_none()));
}

#[test]
fn a_done_command_is_told_to_its_bracket() {
    let rows = [
        row("command/run", 0, r#"{"commandId":"k","name":"compact","args":""}"#),
        row("compaction/start", 1, r#"{"turn":null,"sourceCommandId":"k"}"#),
        row("command/done", 2, r#"{"commandId":"k","kind":"error"}"#),
    ];
    let found = read(&lines(&rows));
    let verdict = found.own().compaction.verdict();
    assert_eq!(verdict.bracket, Bracket::Open);
    assert_eq!(verdict.attempt.unwrap().command_done_seq, Some(2));
}

#[test]
fn text_that_quotes_a_marker_is_text() {
    let quote = r#"{\"type\":\"session/end-seed\",\"seq\":9} compaction/end"#;
    let rows = [row("compaction/start", 0, r#"{"turn":1}"#), prompt(1, quote)];
    let verdict = read(&lines(&rows)).own().compaction.verdict();
    assert_eq!((verdict.bracket, verdict.end_seed_seq), (Bracket::Open, None));
}

#[test]
fn the_order_of_keys_does_not_matter() {
    let found = read(&[
        r#"{"data":{"turn":null},"time":1000,"seq":4,"type":"compaction/start"}"#,
        r#"{"seq":9,"data":{"type":"compaction/end"},"time":2000,"type":"session/end-seed"}"#,
    ]);
    let verdict = found.own().compaction.verdict();
    assert_eq!((verdict.bracket, verdict.decisive_seq), (Bracket::Stale, Some(4)));
    assert_eq!(verdict.end_seed_seq, Some(9));
}

#[test]
fn packed_rows_move_position_and_clock() {
    let found = read(&[
        r#"{"type":"text-chunks","seq0":4,"time0":1000,"data":{"dt":[12,-9],"texts":["","",""]}}"#,
        r#"{"type":"compaction/start","time":1005,"data":{"turn":null}}"#,
        r#"{"type":"tool-call-chunks","seq0":9,"time0":1,
            "data":{"dt":[9223372036854775807],"args":["",""]}}"#
            .replace('\n', "")
            .as_str(),
        r#"{"type":"reasoning-chunks","seq0":11}"#,
        r#"{"type":"session/end-seed","data":{}}"#,
    ]);
    let verdict = found.own().compaction.verdict();
    assert_eq!((verdict.decisive_seq, verdict.end_seed_seq), (Some(7), Some(12)));
    let latest_ms = 253_402_300_799_999;
    assert_eq!(found.own().last_activity_ms, Some(latest_ms), "the end of the calendar");
    assert_eq!(found.own().read_ahead_ms, Some(OBSERVED_MS));
    assert!(found.own().clock_ahead);
    assert_eq!(found.own().first_activity_ms, Some(1005));
}

#[rstest]
#[case::chunk_then_message(
    r#"{"turn":1,"step":1,"chunk":{"type":"usage","usage":{"inputTokens":5,"outputTokens":9}}}"#
)]
#[case::streamed_then_message(
    r#"{"turn":1,"step":1,"stream":[{"chunk":{"type":"usage","usage":{"inputTokens":7}}}]}"#
)]
#[case::nothing_then_message(r#"{"turn":1,"step":1,"chunk":{"type":"text-delta"}}"#)]
fn the_last_sample_of_a_step_counts(#[case] earlier: &str) {
    let last = r#","usage":{"inputTokens":3,"outputTokens":2,"cacheWriteTokens":1}"#;
    let rows = [row("assistant/attempt", 0, earlier), answer(1, 1, last), answer(2, 2, last)];
    let found = read(&lines(&rows));
    let tokens = Tokens { input: 6, cache_read: 0, cache_write: 2, output: 4 };
    assert_eq!((found.own().tokens, found.own().context_used), (tokens, Some(4)));
    assert!(found.usage().iter().all(|usage| usage.key.is_none()));
}

#[test]
fn in_format_4_the_usage_is_in_the_stream() {
    let chunk = |usage| format!(r#"{{"chunk":{{"type":"usage","usage":{usage}}}}}"#);
    let (first, last) = (r#"{"inputTokens":1}"#, r#"{"inputTokens":8,"outputTokens":2}"#);
    let stream = format!(r#","stream":[{},{}]"#, chunk(first), chunk(last));
    assert_eq!(read(&[&answer(0, 1, &stream)]).own().tokens.total(), 10);
}

#[rstest]
#[case::source(
    r#"{"message":{"source":{"callId":"c"},"content":[{"content":[{"type":"text","text":"r"}]}]}}"#
)]
#[case::block(
    r#"{"message":{"content":[{"toolCallId":"c","content":[{"type":"text","text":"r"}]}]}}"#
)]
#[case::own_role(
    r#"{"message":{"role":"tool","toolCallId":"c","content":[{"type":"text","text":"r"}]}}"#
)]
fn a_result_answers_its_call(#[case] result: &str) {
    let call = row("tool/call", 0, r#"{"callId":"c","name":"bash"}"#);
    assert_eq!(read(&[&call]).own().open_calls.len(), 1);
    let found = read(&[&call, &row("tool/result", 1, result)]);
    assert_eq!(found.own().open_calls, []);
    let texts = found.records.iter().filter_map(|record| {
        let What::Message(message) = &record.what else { return None };
        (message.kind == MessageKind::ToolResult).then_some(&message.text)
    });
    assert_eq!(texts.collect::<Vec<_>>(), ["r"]);
}

#[test]
fn an_approval_stands_until_it_is_decided() {
    let asked = row("approval/asked", 0, r#"{"id":"a1","toolName":"bash"}"#);
    assert_eq!(read(&[&asked]).own().approvals, ["a1"]);
    let decided = row("approval/decided", 1, r#"{"id":"a1","outcome":"rejected"}"#);
    assert_eq!(read(&[&asked, &decided]).own().approvals, [""; 0]);
}

/// What a fork copied: a finished turn with a compaction, then the cut, then what is its own.
fn forked(cut: &str) -> Vec<String> {
    let usage = r#","usage":{"inputTokens":10,"outputTokens":1}"#;
    vec![
        row("turn/start", 0, "{}"),
        prompt(1, "old"),
        row("session/title", 2, r#"{"title":"Old"}"#),
        row("tool/call", 3, r#"{"callId":"c","name":"bash"}"#),
        answer(4, 1, usage),
        row("approval/asked", 5, r#"{"id":"a"}"#),
        row("compaction/start", 6, r#"{"turn":null}"#),
        row("session/end-seed", 7, cut),
        prompt(8, "new"),
    ]
}

#[rstest]
#[case::v0(
    r#"{"type":"session","version":0,"id":"f","parentSession":"p","createdAt":1,"seedLength":7}"#,
    "{}"
)]
#[case::v4(
    r#"{"type":"session","version":4,"id":"f","parentSession":"p","createdAt":1,"isSeeded":true}"#,
    r#"{"inherited":true}"#
)]
#[case::v4_without_notice(
    r#"{"type":"session","version":4,"id":"f","parentSession":"p","createdAt":1}"#,
    r#"{"inherited":true}"#
)]
fn what_a_fork_copied_is_not_its_own(#[case] header: &str, #[case] cut: &str) {
    let found = under(header, &lines(&forked(cut)));
    let facts = found.own();
    assert_eq!((facts.kind, facts.fork_of.as_deref()), (Some(Kind::Fork), Some("p")));
    assert_eq!((facts.prompts, facts.answers, facts.tool_calls), (one(1), one(0), one(0)));
    assert_eq!(facts.first_prompt.as_ref().unwrap().text, "new");
    assert_eq!((facts.first_activity_ms, facts.last_activity_ms), (Some(9000), Some(9000)));
    assert_eq!((facts.turn, facts.last_text.clone()), (Turn::None, None));
    assert_eq!((facts.tokens, facts.context_used), (Tokens::default(), None));
    assert!(facts.open_calls.is_empty() && facts.approvals.is_empty());
    let verdict = facts.compaction.verdict();
    assert_eq!((verdict.bracket, verdict.orphans), (Bracket::Stale, 1));
    assert!(verdict.attempt.unwrap().inherited);
    // The harness carries title and model over.
    assert_eq!(found.titles().len(), 1);
    assert_eq!(facts.model.as_deref(), Some("m1"));
}

#[test]
fn each_inherited_marker_resets_again() {
    let header = r#"{"type":"session","version":2,"id":"f","isSeeded":true,"createdAt":1}"#;
    let rows = [
        row("session/end-seed", 0, r#"{"inherited":true}"#),
        prompt(1, "middle"),
        row("session/end-seed", 2, "{}"),
        row("session/end-seed", 3, r#"{"inherited":true}"#),
    ];
    assert_eq!(under(header, &lines(&rows[..3])).own().prompts, one(1));
    let facts = under(header, &lines(&rows)).own().clone();
    assert_eq!((facts.prompts, facts.clock_ms()), (one(0), Some(1)));
}

#[test]
fn a_sub_agent_is_named_by_its_label() {
    let header = concat!(
        r#"{"type":"session","version":0,"id":"k","origin":"subagent","#,
        r#""parentSession":"p","seedLength":2}"#,
    );
    let rows = [
        row("session/title", 0, r#"{"title":"Of the parent"}"#),
        row("subagent/descriptor", 1, r#"{"label":"Also of the parent"}"#),
        row("session/title", 2, r#"{"title":"Fallback"}"#),
        row("subagent/descriptor", 3, r#"{"version":2,"label":"Look it up"}"#),
        row("session/title", 4, r#"{"title":"Too late"}"#),
        from(5, r#"{"kind":"agent"}"#, "task"),
    ];
    let found = under(header, &lines(&rows));
    assert_eq!(found.key(), SessionKey::child("k", "p"));
    assert_eq!((found.own().kind, found.own().fork_of.clone()), (Some(Kind::SubAgent), None));
    let titles: Vec<_> =
        found.titles().iter().map(|title| (title.kind, title.text.as_str())).collect();
    let expected = [(TitleKind::Generated, "Fallback"), (TitleKind::Description, "Look it up")];
    assert_eq!(titles, expected);
    assert_eq!(found.own().prompts.chosen(), 0);
    let orphan = under(r#"{"type":"session","version":0,"id":"k","origin":"subagent"}"#, &[]);
    assert_eq!(orphan.key(), SessionKey::top("k"));
    assert_eq!(orphan.own().kind, Some(Kind::SubAgent));
}

#[rstest]
#[case::old(r#"{"type":"session","version":0,"id":"s"}"#, &[])]
#[case::newest(r#"{"type":"session","version":4,"id":"s"}"#, &[])]
#[case::newer(r#"{"type":"session","version":5,"id":"s"}"#, &["format"])]
#[case::none(r#"{"type":"session","id":"s"}"#, &["format"])]
#[case::text(r#"{"type":"session","version":"1","id":"s"}"#, &["format"])]
fn an_unknown_version_is_noticed_and_read(#[case] header: &str, #[case] expected: &[&str]) {
    let found = under(header, &[&prompt(0, "still read")]);
    assert_eq!(codes(found.own()), expected);
    assert_eq!(found.own().prompts, one(1));
}

#[test]
fn an_unknown_type_is_counted_and_noticed_unless_ignorable() {
    let ignorable = r#"{"type":"future/a","seq":0,"time":1,"data":{},"ignorable":true}"#;
    let found = read(&[ignorable]);
    assert_eq!((codes(found.own()), found.own().unknown["future/a"]), (vec![], 1));
    let required = row("future/b", 1, "{}");
    let found = read(&[ignorable, &required, &required, &prompt(2, "goes on")]);
    assert_eq!((codes(found.own()), found.own().unknown["future/b"]), (vec!["format"], 2));
    assert_eq!(found.own().prompts, one(1));
    assert_eq!(read(&[r#"{"seq":0}"#]).own().unknown["(no type)"], 1);
}

#[rstest]
#[case::torn("{\"type\":\"session\",\"ver", Some("a b"), 1)]
#[case::without_id(r#"{"type":"session","version":0,"createdAt":7}"#, Some("a b"), 0)]
#[case::whole(r#"{"type":"session","version":0,"id":"x"}"#, Some("x"), 0)]
fn a_damaged_header_leaves_the_folder_to_name_the_session(
    #[case] header: &str,
    #[case] id: Option<&str>,
    #[case] skipped: u64,
) {
    let hint = Hint { folder: Some("a~0020b".to_owned()), ..testing::hint("session") };
    let text = format!("{header}\n{}\n", prompt(0, "hi"));
    let found = testing::read(Agent::Dsh, &hint, text.as_bytes(), OBSERVED_MS);
    assert_eq!(found.state.key(), id.map(SessionKey::top));
    assert_eq!((found.flaws.skipped, found.own().prompts), (skipped, one(1)));
    assert_eq!(codes(found.own()).contains(&"identity"), id == Some("x"));
    assert_eq!(State::new(&hint).key(), None);
}

#[test]
fn the_workspace_document_gives_nothing() {
    let hint = Hint { place: Place::Workspace, ..testing::hint("workspace") };
    let text = "{\"type\":\"session\",\"id\":\"s\",\"global\":{\"archivedSessionIds\":[\"s\"]}}\n";
    let found = testing::read(Agent::Dsh, &hint, text.as_bytes(), OBSERVED_MS);
    assert_eq!((found.records, found.state.key()), (vec![], None));
}

#[test]
fn an_oversized_row_keeps_its_place() {
    let mut state = super::super::State::new(Agent::Dsh, &testing::hint("session"));
    let mut records = Vec::new();
    let head = br#"{"type":"compaction/start","seq":41,"time":5,"data":{"turn":2,"junk":"xxxx"#;
    let span = Span { offset: 0, len: 20 << 20 };
    read_oversized(&mut state, head, b"xxxx\"}}", span, &mut records);
    let mut facts = Facts::default();
    for record in &records {
        facts.fold(record, OBSERVED_MS, true);
    }
    let attempt = facts.compaction.verdict().attempt.unwrap();
    assert_eq!((attempt.start_seq, attempt.owner), (Some(41), Some(Owner::Turn(2))));
}

#[test]
fn an_oversized_answer_still_counts() {
    let mut state = super::super::State::new(Agent::Dsh, &testing::hint("session"));
    let mut records = Vec::new();
    let head = br#"{"type":"assistant/message","seq":4,"time":5,"data":{"turn":2,"message":{"x"#;
    let span = Span { offset: 0, len: 20 << 20 };
    read_oversized(&mut state, head, b"xxxx\"}}", span, &mut records);
    let mut facts = Facts::default();
    for record in &records {
        facts.fold(record, OBSERVED_MS, true);
    }
    assert_eq!((facts.answers, facts.last_activity_ms), (one(1), Some(5)));
}

#[test]
fn a_log_without_end_needs_bounded_state() {
    let mut state = super::super::State::new(Agent::Dsh, &testing::hint("session"));
    for seq in 0..5000 {
        let line = answer(seq, seq, r#","usage":{"inputTokens":1}"#);
        read_line(&mut state, line.as_bytes(), 0, &mut Vec::new());
    }
    assert!(serde_json::to_string(&state).unwrap().len() < 2000);
}

/// A line of any kind of row, with fields of any kind.
fn any_line() -> impl Strategy<Value = String> {
    let kinds = vec![
        "session",
        "turn/start",
        "turn/end",
        "user/message",
        "assistant/message",
        "tool/call",
        "tool/result",
        "session/end-seed",
        "session/title",
        "compaction/start",
        "compaction/summary",
        "compaction/end",
        "command/done",
        "text-chunks",
        "approval/asked",
        "what/ever",
    ];
    let values = vec![
        "null",
        "-1",
        "1.5",
        "7",
        "18446744073709551615",
        r#""text""#,
        r#"{"kind":"user"}"#,
        r#"{"kind":"error","error":{}}"#,
        r#"{"source":{"model":"m"},"content":[{"type":"text","text":"x"}]}"#,
        "[1,2]",
        "true",
        r#"{"inherited":true}"#,
    ];
    let names = vec!["turn", "step", "id", "message", "usage", "reason", "content", "source"];
    let value = prop::sample::select(values);
    let field = (prop::sample::select(names), value.clone());
    let data = prop::collection::vec(field, 0..4);
    (prop::sample::select(kinds), value.clone(), value, data).prop_map(|(kind, seq, time, data)| {
        let data: Vec<String> =
            data.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let data = data.join(",");
        format!(r#"{{"type":"{kind}","seq":{seq},"time":{time},"id":"i","data":{{{data}}}}}"#)
    })
}

fn step(state: &mut super::super::State, facts: &mut Facts, line: &[u8]) {
    let mut records = Vec::new();
    facts.flaws.add(read_line(state, line, 0, &mut records));
    for record in &records {
        facts.fold(record, OBSERVED_MS, true);
    }
}

fn carried<T: Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn state_and_facts_survive_being_stored_between_any_two_lines(
        lines in prop::collection::vec(any_line(), 0..24),
    ) {
        let fresh = || super::super::State::new(Agent::Dsh, &testing::hint("session"));
        let (mut state, mut facts) = (fresh(), Facts::default());
        let (mut stored, mut kept) = (fresh(), Facts::default());
        for line in &lines {
            step(&mut state, &mut facts, line.as_bytes());
            (stored, kept) = (carried(&stored), carried(&kept));
            step(&mut stored, &mut kept, line.as_bytes());
            prop_assert_eq!(&stored, &state);
            prop_assert_eq!(&kept, &facts);
        }
    }

    #[test]
    fn mutated_lines_never_panic(
        lines in prop::collection::vec(any_line(), 1..6),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let mut bytes = lines.join("\n").into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.push(b'\n');
        testing::read(Agent::Dsh, &testing::hint("session"), &bytes, OBSERVED_MS);
    }
}
