//! The home in the pictures: three agents, two days, a dozen sessions. All of it is made up.

use serde_json::json;

use super::scene::{Claude, HOUR, MINUTE, SECOND, Scene};

/// The moment of the pictures: 2026-11-30T09:00:00Z.
pub(crate) const NOW_MS: i64 = 1_796_029_200_000;
const DAY: i64 = 24 * HOUR;

/// The home, with the passes that the program made over it in those two days.
pub(crate) fn told() -> Scene {
    let scene = Scene::new(env!("CARGO_BIN_EXE_lullwatch"));
    let long_ago = claude(&scene, "payments", 0, "Draft the refund policy");
    long_ago.prompt(NOW_MS - 9 * DAY, "Draft the refund policy");
    long_ago.answer(NOW_MS - 9 * DAY, "A first draft is in docs/refunds.md.");
    scene.once(NOW_MS - 2 * DAY);
    ended(&scene);
    scene.once(NOW_MS - 30 * HOUR);
    scene.once(NOW_MS - 5 * HOUR);
    needing(&scene);
    running(&scene);
    resting(&scene);
    compacting(&scene);
    scene.once(NOW_MS);
    scene
}

fn claude(scene: &Scene, project: &str, number: u8, title: &str) -> Claude {
    let id = format!("5f0c{number:04x}-9b1e-4c57-8a2d-0d4c6e1f7a{number:02x}");
    let session = scene.claude(project, &id);
    session.title(title);
    session
}

/// What went silent while nobody looked; the second came back afterwards.
fn ended(scene: &Scene) {
    for (number, project, title, quiet) in [
        (1, "harbour-api", "Nightly dependency update", 31 * HOUR),
        (2, "search", "Rank by recency", 32 * HOUR),
        (3, "site", "Fix the broken anchors", 30 * HOUR + 20 * MINUTE),
    ] {
        let session = claude(scene, project, number, title);
        session.prompt(NOW_MS - quiet, title);
        session.call(NOW_MS - quiet + 9 * SECOND, "Bash", &json!({"command": "cargo test"}));
        session.result(NOW_MS - quiet + 50 * SECOND, "test result: ok. 214 passed");
        session.answer(NOW_MS - quiet + 70 * SECOND, "All green; the branch is pushed.");
    }
}

fn needing(scene: &Scene) {
    let refunds = claude(scene, "payments", 4, "Move refunds to the new ledger");
    refunds.prompt(NOW_MS - 26 * MINUTE, "Move refunds to the new ledger, keep the old ids.");
    refunds.call(NOW_MS - 25 * MINUTE, "Grep", &json!({"pattern": "refund_id"}));
    refunds.result(NOW_MS - 25 * MINUTE, "src/refunds.rs:41: pub refund_id: Uuid,");
    refunds.answer(NOW_MS - 6 * MINUTE, "Two tables still use the old ids.");
    refunds.call(NOW_MS - 4 * MINUTE, "AskUserQuestion", &json!({"question": "Backfill now?"}));

    let release = claude(scene, "site", 5, "Deploy the release notes");
    release.prompt(NOW_MS - 3 * MINUTE, "Deploy the release notes");
    release.error(NOW_MS - 2 * MINUTE, "API Error: 529 overloaded");

    let harbour = scene.dsh("harbour-api", "session-7c1a90e2", NOW_MS - HOUR);
    harbour.prompt(NOW_MS - 12 * MINUTE, "Drop the unused berth tables");
    harbour.event(NOW_MS - 8 * MINUTE, "approval/asked", &json!({"id": "p1", "toolName": "bash"}));
}

fn running(scene: &Scene) {
    let index = claude(scene, "search", 6, "Speed up the index");
    index.prompt(NOW_MS - 18 * MINUTE, "Speed up the index; measure before and after.");
    index.call(NOW_MS - 2 * MINUTE, "Agent", &json!({"description": "Profile the merge"}));
    for (name, task) in [("a1", "Profile the merge"), ("a2", "Read the old benchmarks")] {
        let agent = index.sub_agent(name, task);
        agent.prompt(NOW_MS - 2 * MINUTE, task);
        agent.call(NOW_MS - 40 * SECOND, "Bash", &json!({"command": "perf record"}));
    }
    let tokenizer = "01a22b80-efc0-70bc-a6a2-339c6bb9adef";
    let tokenizer = scene.codex("parser", tokenizer, NOW_MS - 40 * MINUTE);
    tokenizer.prompt(NOW_MS - 40 * MINUTE, "Rework the tokenizer for nested quotes");
    tokenizer.call(NOW_MS - 90 * SECOND, "cargo bench tokenizer");

    let lexer = scene.codex("parser", "01a22b10-efc0-70bc-a6a2-339c6bb9adef", NOW_MS - 3 * HOUR);
    lexer.prompt(NOW_MS - 2 * HOUR, "Name the tokens after the grammar");
    lexer.answer(NOW_MS - 95 * MINUTE, "Renamed, and the fixtures with them.");

    let docs = claude(scene, "docs", 7, "Explain the retry policy");
    docs.prompt(NOW_MS - 5 * MINUTE, "Explain the retry policy");
    docs.answer(NOW_MS - 110 * SECOND, "The page now has the three cases and an example.");

    // Called ended, and back.
    let back = claude(scene, "search", 2, "Rank by recency");
    let text = json!({"uuid": "later", "message": {"role": "user", "content": "One more case"}});
    back.record(NOW_MS - 20 * SECOND, "user", text);
}

fn resting(scene: &Scene) {
    for (number, project, title, quiet) in [
        (8, "payments", "Rename the currency type", 47 * MINUTE),
        (9, "site", "A darker dark mode", 3 * HOUR),
        (10, "harbour-api", "Paginate the berth list", 7 * HOUR),
    ] {
        let mut session = claude(scene, project, number, title);
        session.context = 40_000 + 17_000 * u64::from(number);
        session.prompt(NOW_MS - quiet - MINUTE, title);
        session.answer(NOW_MS - quiet, "Done; please have a look.");
    }
}

fn compacting(scene: &Scene) {
    let long = claude(scene, "parser", 11, "Port the grammar tests");
    long.prompt(NOW_MS - 90 * MINUTE, "Port the grammar tests");
    long.compacted(NOW_MS - 61 * MINUTE, "auto", 166_900, 851);
    long.answer(NOW_MS - 58 * MINUTE, "All 412 are ported.");

    let quay = scene.dsh("quay", "session-1d77b3c4", NOW_MS - 3 * HOUR);
    quay.prompt(NOW_MS - 20 * MINUTE, "Tidy the crane scheduler");
    let start = json!({"compactionId": "c1", "turn": 1, "trigger": "auto"});
    quay.event(NOW_MS - 150 * SECOND, "compaction/start", &start);

    let tide = scene.dsh("tide", "session-2e88c4d5", NOW_MS - 6 * HOUR);
    tide.prompt(NOW_MS - 5 * HOUR, "Cache the tide tables");
    tide.event(NOW_MS - 5 * HOUR, "compaction/start", &start);
    tide.event(NOW_MS - 2 * HOUR, "session/end-seed", &json!({}));
    tide.answer(NOW_MS - 2 * HOUR, "Cached, with a day of slack.");
}
