//! The commands beside `--once` and the TUI.

use std::time::Duration;

use anyhow::bail;

use super::once::{self, Patience, View};
use super::run::Asked as AskedRun;
use super::{Exit, Setting, complain, engine};
use crate::cli::{Command, LedgerAction};
use crate::delivery::{self, Which};
use crate::lifecycle::windows::{Asked, WindowsError, windows_beside};
use crate::lifecycle::{Windows, migrate, windows};
use crate::report;
use crate::snapshot::{self, LedgerWhich, PANE_ROWS_MAX, Resolved};
use crate::store::{Reader, Store};

/// How long a command that writes a row or two waits for other programs.
const BUSY: Duration = Duration::from_secs(5);

/// Ids shown of those that a shortened one fits.
const IDS_SHOWN: usize = 5;

/// Sessions migrated per transaction.
const MIGRATE_ROWS: i64 = 500;

/// Runs a command.
pub fn run(setting: &Setting, command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Watch => super::watch::watch(setting),
        Command::Run { name, timeout, command } => {
            super::run::run(setting, &AskedRun { name, limit_ms: timeout, command })
        }
        Command::Show { id } => show(setting, &id),
        Command::Audit => audit(setting),
        Command::Ledger { history, action: None } => ledger(setting, history),
        Command::Ledger { action: Some(LedgerAction::Ack { ids, all }), .. } => {
            acknowledge(setting, &ids, all)
        }
        Command::Doctor => super::doctor::doctor(setting),
        Command::Compactions => compactions(setting),
        Command::Hook { print_config, .. } => {
            super::hook::print_config(setting, print_config.as_deref())
        }
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
    let row = match view.reader.read(|tx| snapshot::resolve(tx, &setting.host, id))? {
        Resolved::One(row) => row,
        Resolved::None => {
            complain(&format!(
                "no session `{id}`\nhint: `lullwatch --once --children` lists every id"
            ));
            return Ok(Exit::Fault);
        }
        Resolved::Many(ids) => {
            complain(&ambiguous(id, &ids));
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
    let query = once::query(setting);
    let narrow = query.narrow(now_ms);
    let rows = view.reader.read(|tx| snapshot::audit(tx, narrow, PANE_ROWS_MAX))?;
    once::print(|out| {
        if setting.json {
            report::json::audit(out, &rows, now_ms)
        } else {
            report::table::audit(out, &rows, &query.filters(), setting.style())
        }
    })?;
    end(setting, &mut view)
}

fn ledger(setting: &Setting, history: bool) -> anyhow::Result<Exit> {
    let mut view = once::up_to_date(setting, Patience::None)?;
    let now_ms = setting.clock.now_ms();
    let consumer = &setting.config.consumer;
    if !view.reader.read(|tx| delivery::is_known(tx, consumer))? {
        // Only beside another writer: our own pass would have introduced it.
        let mut store = Store::open(&setting.config.db, BUSY, now_ms)?;
        delivery::introduce(&mut store, consumer, now_ms)?;
        welcome(consumer);
    }
    let which = if history { LedgerWhich::History } else { LedgerWhich::Pending };
    let query = once::query(setting);
    let narrow = query.narrow(now_ms);
    let rows =
        view.reader.read(|tx| snapshot::ledger(tx, consumer, which, narrow, PANE_ROWS_MAX))?;
    once::print(|out| {
        if setting.json {
            report::json::ledger(out, &rows, now_ms)
        } else {
            report::table::ledger(out, &rows, consumer, &query.filters(), setting.style())
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
    once::await_log(setting)?;
    let mut store = Store::open(&setting.config.db, BUSY, now_ms)?;
    let consumer = &setting.config.consumer;
    if delivery::introduce(&mut store, consumer, now_ms)? {
        welcome(consumer);
    }
    let mut ids = Vec::new();
    for word in typed {
        match entries(&mut store, setting, word)? {
            Entries::Some(found) => ids.extend(found),
            Entries::None => complain(&format!(
                "no ledger entry `{word}` for `{consumer}`; nothing changed for it\n\
                hint: `lullwatch ledger` lists what is pending"
            )),
            Entries::Ambiguous(sessions) => complain(&ambiguous(word, &sessions)),
        }
    }
    let query = once::query(setting);
    let which = if all { Which::All(query.narrow(now_ms)) } else { Which::Ids(&ids) };
    let acked = store.write(|tx| delivery::ack(tx, consumer, which, now_ms))?;
    let already = match acked.already.len() {
        0 => String::new(),
        already => format!(", {already} already were"),
    };
    complain(&format!("{} acknowledged for `{consumer}`{already}", acked.acked.len()));
    Ok(if all || !ids.is_empty() { Exit::Fine } else { Exit::Fault })
}

/// What a typed word stands for in a ledger.
enum Entries {
    /// These entries.
    Some(Vec<i64>),
    /// Nothing.
    None,
    /// One of these sessions.
    Ambiguous(Vec<String>),
}

/// The number of an entry, or all entries of a session.
fn entries(store: &mut Store, setting: &Setting, word: &str) -> anyhow::Result<Entries> {
    let consumer = &setting.config.consumer;
    let found = store.read(|tx| {
        if let Ok(number) = word.parse::<i64>()
            && delivery::is_for(tx, consumer, number)?
        {
            return Ok(Entries::Some(vec![number]));
        }
        Ok(match snapshot::resolve(tx, &setting.host, word)? {
            Resolved::One(row) => match delivery::of_session(tx, consumer, row)? {
                none if none.is_empty() => Entries::None,
                own => Entries::Some(own),
            },
            Resolved::Many(ids) => Entries::Ambiguous(ids),
            Resolved::None => Entries::None,
        })
    })?;
    Ok(found)
}

/// A message for an id that fits several sessions.
fn ambiguous(typed: &str, ids: &[String]) -> String {
    let shown: Vec<&str> = ids.iter().map(String::as_str).take(IDS_SHOWN).collect();
    let more = if ids.len() > shown.len() { ", ..." } else { "" };
    format!(
        "`{typed}` fits {} sessions: {}{more}\nhint: give more of the id",
        ids.len(),
        shown.join(", ")
    )
}

/// Says that a consumer is new: a typing error must not pass in silence.
pub fn welcome(consumer: &str) {
    complain(&format!("the consumer `{consumer}` is new: its ledger holds what ends from now on"));
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
    once::await_log(setting)?;
    let mut store = Store::open(&setting.config.db, BUSY, setting.clock.now_ms())?;
    windows::set_windows(&mut store, wanted)?;
    complain("the windows are changed; processes that run with others must be started again");
    let now_ms = setting.clock.now_ms();
    let early = store.read(|tx| migrate::count(tx, wanted, now_ms))?;
    if early > 0 {
        let sessions = if early == 1 { "session was" } else { "sessions were" };
        complain(&format!(
            "{early} {sessions} completed by silence under other windows, and these would not have\n\
            hint: `lullwatch migrate` makes them idle again"
        ));
    }
    Ok(Exit::Fine)
}

/// The configuration in force. Where other windows are asked for than the store has, the store's are.
fn show_config(setting: &Setting) -> anyhow::Result<Exit> {
    let config = &setting.config;
    let (live_ms, ended_ms) = config.windows;
    let defaults = Windows::default();
    let asked = Windows {
        live_ms: live_ms.unwrap_or(defaults.live_ms),
        ended_ms: ended_ms.unwrap_or(defaults.ended_ms),
    };
    let windows = match Reader::open(&config.db).map_err(WindowsError::from) {
        Ok(mut reader) => windows_beside(&mut reader, Asked { live_ms, ended_ms }),
        Err(_) if !config.db.exists() => Ok(asked),
        Err(error) => Err(error),
    };
    let windows = windows.or_else(|error| match error {
        WindowsError::Mismatch(stored) => {
            complain(&error.to_string());
            Ok(stored)
        }
        WindowsError::Invalid(_) | WindowsError::Store(_) => Err(error),
    })?;
    once::print(|out| out.write_all(config.written(windows.live_ms, windows.ended_ms).as_bytes()))?;
    Ok(Exit::Fine)
}
