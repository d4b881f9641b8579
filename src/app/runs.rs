//! What a pass does for runs: it links them to their sessions before it judges, and then sweeps
//! those whose processes are proven gone and settles those that waited for their session.
//!
//! Only the writer does it, and only with the runs of this host.

use crate::clock::Clock;
use crate::lifecycle::apply::Outcome;
use crate::lifecycle::consumers::{Existence, Host, Sweep, Swept, sweep};
use crate::lifecycle::run;
use crate::liveness::proc::Proc;
use crate::liveness::{Probe, probe};
use crate::mirror::discover::Root;
use crate::store::runs::links::Among;
use crate::store::runs::{self, RunRow};
use crate::store::{Result, Store, Tx};

use super::link::{self, Link};

/// Processes are gone through for links this often at most, ms.
const LOOK_MS: i64 = 2_000;

/// The drivers of runs.
#[derive(Debug, Clone)]
pub struct Runs {
    host: String,
    roots: Vec<Root>,
    /// When processes were last gone through, by the clock that runs while awake, ms.
    looked_ms: Option<i64>,
}

impl Runs {
    /// Those of this host; the roots are where the agents keep their registries.
    pub fn new(host: String, roots: Vec<Root>) -> Self {
        Self { host, roots, looked_ms: None }
    }

    /// Before a pass judges: links runs.
    /// `read_ms`: everything written up to then has been read.
    pub fn before(&mut self, store: &mut Store, clock: Clock, read_ms: Option<i64>) -> Result<()> {
        let open = store.read(|tx| link::open(tx, &self.host))?;
        if open.is_empty() {
            return Ok(());
        }
        let links = self.links(store, &open, clock, read_ms)?;
        if links.is_empty() {
            return Ok(());
        }
        let link =
            |tx: &Tx<'_>, link: &Link| runs::link(tx, link.run, &link.agent, &link.native_id);
        store.write(|tx| links.iter().try_for_each(|found| link(tx, found)))
    }

    fn links(
        &mut self,
        store: &mut Store,
        open: &[RunRow],
        clock: Clock,
        read_ms: Option<i64>,
    ) -> Result<Vec<Link>> {
        let (now_ms, awake_ms) = (clock.now_ms(), clock.awake_ms());
        let look = self.looked_ms.is_none_or(|at| awake_ms - at >= LOOK_MS);
        let alive: Vec<&RunRow> = open.iter().filter(|row| run::ended(row).is_none()).collect();
        let mut links = Vec::new();
        if look && !alive.is_empty() {
            self.looked_ms = Some(awake_ms);
            let proc = Proc::system();
            for row in alive {
                links.extend(store.read(|tx| link::by_process(tx, row, &self.roots, &proc))?);
            }
        }
        // Of a child that lives its processes will tell; a place alone might name another's.
        let ended = open.iter().filter(|row| row.ended_ms.is_some());
        let rest: Vec<RunRow> = ended.cloned().collect();
        let host = self.host.as_str();
        let place = |tx: &Tx<'_>| link::by_place(tx, host, &rest, Among::Fresh, now_ms, read_ms);
        let placed = store.read(place)?;
        links.extend(placed);
        Ok(links)
    }

    /// After a pass has judged: the transitions of the runs that were swept or settled.
    /// `looked_ms`: when processes were last looked at, ms.
    pub fn after(&self, store: &mut Store, looked_ms: i64, now_ms: i64) -> Result<Vec<i64>> {
        let host = self.host.as_str();
        let open = store.read(|tx| runs::open(tx, host))?;
        if open.is_empty() {
            return Ok(Vec::new());
        }
        let proc = Proc::system();
        let mut moved = Vec::new();
        for row in &open {
            let outcome = match run::ended(row) {
                // Who was there at an earlier look may have been its child.
                Some(_) if row.exit_ms.is_some_and(|at| at > looked_ms) => continue,
                Some(_) => store.write(|tx| run::settle(tx, row, now_ms))?,
                None => match gone(row, host, &proc) {
                    Some(proof) => store.write(|tx| run::sweep(tx, row, proof, now_ms))?,
                    None => continue,
                },
            };
            if let Outcome::Applied { transition_id, .. } = outcome {
                moved.push(transition_id);
            }
        }
        Ok(moved)
    }
}

/// What proves that a run's processes are gone; `None` if it is not to be swept.
fn gone(row: &RunRow, host: &str, proc: &Proc) -> Option<Vec<String>> {
    let scope = link::scope_of(row);
    let mut proof = Vec::new();
    let mut look = |process: Option<&(i64, Option<String>)>| {
        let Some(process) = process else { return Existence::NeverRecorded };
        let Some(process) = link::process_of(process) else { return Existence::Unknown };
        match probe(process, Some(scope.uid), &scope, proc) {
            Probe::Alive(_) => Existence::Alive,
            Probe::Unknown(_) => Existence::Unknown,
            Probe::Gone(why) => {
                proof.push(why);
                Existence::Gone
            }
        }
    };
    let seen = Swept {
        status: row.status?,
        host: if row.host == host { Host::Own } else { Host::Other },
        wrapper: look(row.wrapper.as_ref()),
        child: look(row.child.as_ref()),
    };
    match sweep(seen) {
        Sweep::Abort => Some(proof),
        Sweep::Leave => None,
    }
}
