//! Test bed of the adapters: a whole transcript in, what was found in it out.

#![expect(clippy::wildcard_enum_match_arm, reason = "only messages carry a native id")]

use std::collections::{BTreeMap, HashSet};

use super::facts::{self, Facts};
use super::{
    Agent, Flaws, Hint, Of, Place, Record, SessionKey, State, Title, Usage, What, read_line,
};

/// What one transcript says.
#[derive(Debug)]
pub(crate) struct Read {
    /// State after the last line.
    pub(crate) state: State,
    /// Facts by whose they are.
    pub(crate) facts: BTreeMap<Of, Facts>,
    /// Every record in order.
    pub(crate) records: Vec<Record>,
    /// Flaws of all lines.
    pub(crate) flaws: Flaws,
}

impl Read {
    /// Facts of the file's own session.
    pub(crate) fn own(&self) -> &Facts {
        &self.facts[&Of::File]
    }

    /// The file's session.
    pub(crate) fn key(&self) -> SessionKey {
        self.state.key().unwrap()
    }

    /// Titles found, in order.
    pub(crate) fn titles(&self) -> Vec<&Title> {
        facts::titles(&self.records).map(|(_, title)| title).collect()
    }

    /// Usage records found, in order.
    pub(crate) fn usage(&self) -> Vec<&Usage> {
        self.records
            .iter()
            .filter_map(|record| {
                let What::Usage(usage) = &record.what else { return None };
                Some(usage)
            })
            .collect()
    }
}

/// A hint for a transcript with that stem.
pub(crate) fn hint(stem: &str) -> Hint {
    Hint { place: Place::Transcript, stem: stem.to_owned(), folder: None, named_ms: None }
}

/// Reads the complete lines of `bytes`; a message row counts once per native id, as in the store.
pub(crate) fn read(agent: Agent, hint: &Hint, bytes: &[u8], observed_ms: i64) -> Read {
    let mut state = State::new(agent, hint);
    let mut records = Vec::new();
    let mut flaws = Flaws::default();
    let mut offset = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if let Some(whole) = line.strip_suffix(b"\n") {
            flaws.add(read_line(&mut state, whole, offset, &mut records));
        }
        offset += line.len() as u64;
    }
    let mut seen = HashSet::new();
    let mut facts: BTreeMap<Of, Facts> = BTreeMap::new();
    facts.insert(Of::File, Facts::default());
    for record in &records {
        let fresh = match &record.what {
            What::Message(message) => message
                .native
                .as_ref()
                .is_none_or(|native| seen.insert((record.of.clone(), native.clone()))),
            _ => true,
        };
        facts.entry(record.of.clone()).or_default().fold(record, observed_ms, fresh);
    }
    Read { state, facts, records, flaws }
}
