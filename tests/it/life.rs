//! The whole life of one session, told as the ADR tells it. After each step it is what is written
//! here: status and reason, what it does, whether it needs somebody, what that rests on, and how
//! many overrides and ledger entries there are.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fmt::Write;

use lullwatch::report::{Colour, Glyphs, Style, Width, table};
use lullwatch::snapshot::{Phase, Snapshot};
use lullwatch::text::Zone;
use serde_json::json;

use crate::monitor::{
    Agent, CLAUDE, DAY, HOUR, MINUTE, Monitor, SECOND, Said, T0, remove, session,
};

/// A step of the life, as it is compared.
fn told(name: &str, snapshot: &Snapshot, agents: &[&Agent]) -> String {
    let one = session(snapshot, CLAUDE);
    let mut text = format!(
        "{name}: {} by {} ({}), {}{}\n",
        one.status.word(),
        one.reason.code,
        one.reason.basis.word(),
        one.phase.map_or("nothing", Phase::word),
        if one.attention { ", needs somebody" } else { "" },
    );
    let process = match (one.process.alive, one.process.pid) {
        (Some(true), Some(_)) => "alive",
        (Some(false), _) => "gone",
        (Some(true), None) | (None, _) => "unknown",
    };
    let (audit, ledger) = (&snapshot.audit, &snapshot.ledger);
    writeln!(
        text,
        "  process {process}, ended {}, overrides {} after silence {} after exit, pending {}",
        one.ended_ms.map_or("never".to_owned(), |at| format!("T0+{}s", (at - T0) / SECOND)),
        audit.overrides,
        audit.overrides_after_exit,
        ledger.pending,
    )
    .unwrap();
    for line in &one.reason.evidence {
        writeln!(text, "  - {line}").unwrap();
    }
    for (number, agent) in agents.iter().enumerate() {
        text = text.replace(&format!("pid {}", agent.pid()), &format!("pid P{}", number + 1));
    }
    text
}

fn table(snapshot: &Snapshot) -> String {
    let style = Style {
        width: Width::Free,
        colour: Colour::Plain,
        glyphs: Glyphs::Ascii,
        zone: Zone::default(),
    };
    let mut out = Vec::new();
    table::sessions(&mut out, snapshot, style).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_whole_life_of_one_session_reads_like_the_adr() {
    let monitor = Monitor::new();
    let first = Agent::start_one();
    let mut life = String::new();
    let busy = json!({"status": "busy"});
    let said = |at: i64, said: Said<'_>| monitor.claude(CLAUDE, T0 + at, &said);

    // Work.
    said(SECOND, Said::Prompt("Add a table"));
    monitor.entry(&first, CLAUDE, T0 + SECOND, &busy);
    life += &told("work", &monitor.pass(T0 + 2 * SECOND), &[&first]);

    // A lull: the turn is over, nothing is said for ten minutes.
    said(MINUTE, Said::Answer("Done."));
    monitor.entry(&first, CLAUDE, T0 + MINUTE, &json!({"status": "idle"}));
    monitor.pass(T0 + MINUTE);
    life += &told("lull", &monitor.pass(T0 + 11 * MINUTE), &[&first]);

    // A tool that takes forty minutes, and says nothing meanwhile.
    said(12 * MINUTE, Said::Prompt("Build it all"));
    said(12 * MINUTE + SECOND, Said::Call("Bash"));
    monitor.entry(&first, CLAUDE, T0 + 12 * MINUTE, &busy);
    monitor.pass(T0 + 12 * MINUTE + SECOND);
    life += &told("long tool", &monitor.pass(T0 + 52 * MINUTE), &[&first]);
    let why = monitor.open(T0 + 52 * MINUTE, CLAUDE).why;
    let decided = why.iter().find(|tried| tried.decided).unwrap();
    assert_eq!((decided.rule.as_str(), decided.basis), ("live_window", "observed"));
    assert!(decided.evidence.iter().any(|line| line.contains("says busy")), "{decided:?}");

    // It asks for leave to go on.
    let asks = json!({"status": "waiting", "waitingFor": "permission prompt"});
    monitor.entry(&first, CLAUDE, T0 + 53 * MINUTE, &asks);
    life += &told("approval", &monitor.pass(T0 + 53 * MINUTE), &[&first]);

    // It gets it, finishes, and its process exits.
    said(54 * MINUTE, Said::Result);
    said(55 * MINUTE, Said::Answer("Built."));
    monitor.entry(&first, CLAUDE, T0 + 55 * MINUTE, &json!({"status": "idle"}));
    monitor.pass(T0 + 55 * MINUTE);
    remove(&monitor.entry_path(&first));
    let pid = first.pid();
    first.end();
    let ended = monitor.pass(T0 + 56 * MINUTE);
    let hide = |text: String| text.replace(&format!("pid {pid}"), "pid P1");
    life += &hide(told("end by exit", &ended, &[]));

    // After the weekend somebody opens it again, and says nothing yet.
    let monday = 2 * DAY + 12 * HOUR;
    let second = Agent::start_one();
    monitor.entry(&second, CLAUDE, T0 + monday, &json!({"status": "idle"}));
    let opened = hide(told("open again", &monitor.pass(T0 + monday), &[]));
    life += &opened.replace(&format!("pid {}", second.pid()), "pid P2");
    let said_nothing = format!("open again in pid {}, nothing said yet", second.pid());
    assert!(table(&monitor.pass(T0 + monday)).contains(&said_nothing));

    // And then does.
    said(monday + MINUTE, Said::Prompt("Where were we?"));
    monitor.entry(&second, CLAUDE, T0 + monday + MINUTE, &busy);
    let resumed = hide(told("weekend resume", &monitor.pass(T0 + monday + MINUTE), &[]));
    life += &resumed.replace(&format!("pid {}", second.pid()), "pid P2");

    // Its entry is lost, and nobody knows what became of it: silence alone decides, through a lull.
    said(monday + 2 * MINUTE, Said::Answer("Here."));
    remove(&monitor.entry_path(&second));
    let hide = |text: String| hide(text).replace(&format!("pid {}", second.pid()), "pid P2");
    monitor.pass(T0 + monday + 2 * MINUTE);
    life += &hide(told("lost", &monitor.pass(T0 + monday + HOUR), &[]));
    life += &hide(told("end by silence", &monitor.pass(T0 + monday + 2 * DAY), &[]));

    insta::assert_snapshot!("life", life);
    insta::assert_snapshot!("life_story", monitor.story(CLAUDE).join("\n"));
}
