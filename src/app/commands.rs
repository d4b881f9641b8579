//! The commands beside `--once` and the TUI.

use std::time::Duration;

use anyhow::bail;

use super::once::{self, Patience, View};
use super::run::Asked;
use super::{Exit, Setting, complain, engine};
use crate::cli::{Command, LedgerAction};
use crate::delivery::{self, Which};
use crate::lifecycle::{Windows, migrate, windows};
use crate::report;
use crate::snapshot::{self, LedgerWhich, PANE_ROWS_MAX, Resolved, age};
use crate::store::Store;

/// How long a command that writes a row or two waits for other programs.
const BUSY: Duration = Duration::from_secs(5);

/// Sessions migrated per transaction.
const MIGRATE_ROWS: i64 = 500;

/// Runs a command.
pub fn run(setting: &Setting, command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Watch => super::watch::watch(setting),
        Command::Run { name, timeout, command } => {
            super::run::run(setting, &Asked { name, limit_ms: timeout, command })
        }
        Command::Show { id } => show(setting, &id),
        Command::Audit => audit(setting),
        Command::Ledger { history, action: None } => ledger(setting, history),
        Command::Ledger { action: Some(LedgerAction::Ack { ids, all }), .. } => {
            acknowledge(setting, &ids, all)
        }
        Command::Doctor => super::doctor::doctor(setting),
        Command::Compactions => compactions(setting),
        Command::Migrate => migrate(setting),
        Command::Config { set_windows } => match set_windows.as_deref() {
            Some([live_ms, ended_ms]) => {
                set_windows_to(setting, Windows { live_ms: *live_ms, ended_ms: *ended_ms })
            }
            Some(_) | None => show_config(setting),
        },
    }
}

fn show(setting: &Setting, id: &str) -> anyhow::Result<Exit> {
    let mut view = once::up_to_date(setting, Patience::None)?;
    let now_ms = setting.clock.now_ms();
    let row = match view.reader.read(|tx| snapshot::resolve(tx, id))? {
        Resolved::One(row) => row,
        Resolved::None => {
            complain(&format!(
                "no session `{id}`\nhint: `lullwatch --once --children` lists every id"
            ));
            return Ok(Exit::Fault);
        }
        Resolved::Many(ids) => {
            let shown: Vec<&str> = ids.iter().map(String::as_str).take(5).collect();
            complain(&format!(
                "`{id}` fits {} sessions: {}{}\nhint: give more of the id",
                ids.len(),
                shown.join(", "),
                if ids.len() > shown.len() { ", …" } else { "" }
            ));
            return Ok(Exit::Fault);
        }
    };
    let windows = view.reader.read(windows::windows_of)?;
    let read = view.reader.read(|tx| snapshot::detail(tx, row, &view.beside, now_ms))?;
    let Some(detail) = read else {
        bail!("the session `{id}` is gone from the database");
    };
    let attention = detail.session.attention;
    once::print(|out| {
        if setting.json {
            report::json::show(out, &detail, windows, now_ms)
        } else {
            report::show::detail(out, &detail, windows, now_ms, setting.style())
        }
    })?;
    once::finish(setting, &view, attention)
}

fn audit(setting: &Setting) -> anyhow::Result<Exit> {
    let mut view = once::up_to_date(setting, Patience::None)?;
    let now_ms = setting.clock.now_ms();
    let rows = view.reader.read(|tx| snapshot::audit(tx, PANE_ROWS_MAX))?;
    once::print(|out| {
        if setting.json {
            report::json::audit(out, &rows, now_ms)
        } else {
            report::table::audit(out, &rows, setting.style())
        }
    })?;
    end(setting, &mut view)
}

fn ledger(setting: &Setting, history: bool) -> anyhow::Result<Exit> {
    let mut view = once::up_to_date(setting, Patience::None)?;
    let now_ms = setting.clock.now_ms();
    let consumer = &setting.config.consumer;
    let which = if history { LedgerWhich::History } else { LedgerWhich::Pending };
    let rows = view.reader.read(|tx| snapshot::ledger(tx, consumer, which, PANE_ROWS_MAX))?;
    once::print(|out| {
        if setting.json {
            report::json::ledger(out, &rows, now_ms)
        } else {
            report::table::ledger(out, &rows, consumer, setting.style())
        }
    })?;
    end(setting, &mut view)
}

fn compactions(setting: &Setting) -> anyhow::Result<Exit> {
    let mut view = once::up_to_date(setting, Patience::None)?;
    let snapshot = once::load(setting, &mut view)?;
    let rows = snapshot::compactions(&snapshot);
    once::print(|out| {
        if setting.json {
            report::json::compactions(out, &rows, snapshot.at_ms)
        } else {
            report::table::compactions(out, &rows, snapshot.at_ms, setting.style())
        }
    })?;
    once::finish(setting, &view, snapshot.counts.attention > 0)
}

/// The exit code of a command whose own rows do not tell whether something needs attention.
fn end(setting: &Setting, view: &mut View) -> anyhow::Result<Exit> {
    let attention = setting.exit_code && once::load(setting, view)?.counts.attention > 0;
    once::finish(setting, view, attention)
}

/// An acknowledgement is a short transaction that any process may commit; it takes no writer lock.
fn acknowledge(setting: &Setting, typed: &[String], all: bool) -> anyhow::Result<Exit> {
    let now_ms = setting.clock.now_ms();
    let mut store = Store::open(&setting.config.db, BUSY, now_ms)?;
    let consumer = &setting.config.consumer;
    if all {
        let acked = store.write(|tx| delivery::ack(tx, consumer, Which::All, now_ms))?;
        complain(&format!("{} acknowledged for `{consumer}`", acked.acked.len()));
        return Ok(Exit::Fine);
    }
    let (mut ids, mut unknown) = (Vec::new(), Vec::new());
    for word in typed {
        match entries(&mut store, consumer, word)? {
            found if found.is_empty() => unknown.push(word.clone()),
            found => ids.extend(found),
        }
    }
    let acked = store.write(|tx| delivery::ack(tx, consumer, Which::Ids(&ids), now_ms))?;
    for id in &acked.unknown {
        unknown.push(id.to_string());
    }
    for word in &unknown {
        complain(&format!("no ledger entry `{word}` for `{consumer}`; nothing changed for it"));
    }
    complain(&format!("{} acknowledged for `{consumer}`", acked.acked.len()));
    let matched = ids.len() > acked.unknown.len();
    Ok(if matched { Exit::Fine } else { Exit::Fault })
}

/// The entries that a word stands for: the number of one, or all of a session.
fn entries(store: &mut Store, consumer: &str, word: &str) -> anyhow::Result<Vec<i64>> {
    if let Ok(number) = word.parse::<i64>() {
        return Ok(vec![number]);
    }
    let found = store.read(|tx| {
        let Resolved::One(row) = snapshot::resolve(tx, word)? else { return Ok(Vec::new()) };
        delivery::of_session(tx, consumer, row)
    })?;
    Ok(found)
}

fn migrate(setting: &Setting) -> anyhow::Result<Exit> {
    let Some(mut engine) = engine::try_open(setting, BUSY)? else {
        let holder = super::lock::read(&setting.config.db).unwrap_or_default();
        bail!(
            "the database is being written by pid {}\nhint: end it, or wait, and run this again",
            holder.pid
        );
    };
    let (windows, now_ms) = (engine.windows(), setting.clock.now_ms());
    let done = migrate::migrate(&mut engine.store, windows, now_ms, MIGRATE_ROWS)?;
    complain(&format!("{} looked at, {} made idle again", done.examined, done.moved));
    Ok(Exit::Fine)
}

fn set_windows_to(setting: &Setting, wanted: Windows) -> anyhow::Result<Exit> {
    let mut store = Store::open(&setting.config.db, BUSY, setting.clock.now_ms())?;
    windows::set_windows(&mut store, wanted)?;
    complain("the windows are changed; processes that run with others must be started again");
    Ok(Exit::Fine)
}

/// The configuration in force, as the config file would say it.
fn show_config(setting: &Setting) -> anyhow::Result<Exit> {
    let config = &setting.config;
    let stored = crate::store::Reader::open(&config.db)
        .and_then(|mut reader| reader.read(windows::windows_of))
        .unwrap_or_default();
    once::print(|out| {
        writeln!(out, "db = {:?}", config.db.display().to_string())?;
        writeln!(out, "live-window = {:?}", age::span(stored.live_ms))?;
        writeln!(out, "ended-window = {:?}", age::span(stored.ended_ms))?;
        writeln!(out, "consumer = {:?}", config.consumer)?;
        writeln!(out, "\n[roots]")?;
        for agent in crate::source::Agent::ALL {
            let paths: Vec<String> = config
                .roots
                .iter()
                .filter(|root| root.agent == agent)
                .map(|root| format!("{:?}", root.path.display().to_string()))
                .collect();
            writeln!(out, "{} = [{}]", agent.word(), paths.join(", "))?;
        }
        Ok(())
    })?;
    Ok(Exit::Fine)
}
