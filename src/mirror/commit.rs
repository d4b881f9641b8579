//! What was read of one file, into the store: cursor and rows in one transaction.
//!
//! The cursor moves only if it still stands where the reader found it; else somebody was faster and
//! the whole batch is dropped, to be read again from where the cursor stands now.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::plan::Cursor;
use super::read::hash;
use crate::source::facts::Facts;
use crate::source::{Agent, Flaws, Of, Place, Record, SessionKey, Tokens, What};
use crate::store::{self, Tx, files, ingest};

/// A contiguous part of one file, read and parsed.
#[derive(Debug)]
pub struct Batch {
    /// The generation it continues; `None`: it begins one.
    pub generation: Option<i64>,
    /// The generation whose place it takes.
    pub replaces: Option<i64>,
    /// Root id.
    pub root_id: i64,
    /// When the file was first seen, ms.
    pub first_seen_ms: i64,
    /// Its agent.
    pub agent: Agent,
    /// What the file is.
    pub place: Place,
    /// Raw bytes of the path.
    pub path: Vec<u8>,
    /// Stem of its name.
    pub stem: String,
    /// Position at which the reader began.
    pub from: u64,
    /// Cursor behind it.
    pub to: Cursor,
    /// Adapter state behind it, JSON.
    pub state: String,
    /// The file's session.
    pub key: Option<SessionKey>,
    /// Its records, each message with the hash of its object.
    pub records: Vec<(Record, i64)>,
    /// Flaws of its lines.
    pub flaws: Flaws,
    /// Damaged frames in it.
    pub damaged: u64,
}

/// What a batch changed.
#[derive(Debug, Default)]
pub struct Changed {
    /// Its generation.
    pub generation: i64,
    /// Sessions that are to be merged anew.
    pub sessions: BTreeSet<i64>,
    /// Message rows inserted.
    pub rows: u64,
}

/// Writes one batch; `None` when another reader was faster.
pub fn write(
    tx: &Tx<'_>,
    host: &str,
    batch: &Batch,
    now_ms: i64,
) -> store::Result<Option<Changed>> {
    let mut changed = Changed::default();
    let Some(generation) = generation(tx, batch, &mut changed)? else { return Ok(None) };
    changed.generation = generation;
    let mut writer =
        Writer { tx, host, batch, generation, facts: BTreeMap::new(), usage: HashMap::new() };
    writer.open_facts(&Of::File)?;
    for index in 0..batch.records.len() {
        writer.record(index, now_ms, &mut changed)?;
    }
    writer.finish(&mut changed)?;
    Ok(Some(changed))
}

/// Moves the cursor, or begins the generation with it.
fn generation(tx: &Tx<'_>, batch: &Batch, changed: &mut Changed) -> store::Result<Option<i64>> {
    let advance = advance(batch);
    if let Some(id) = batch.generation {
        let moved = files::advance(tx, id, batch.from.cast_signed(), &advance)?;
        return Ok(moved.then_some(id));
    }
    if let Some(old) = batch.replaces {
        changed.sessions.extend(files::sessions_of(tx, old)?);
        files::retire(tx, old)?;
    }
    let new = files::NewFile {
        root_id: batch.root_id,
        agent: batch.agent.word(),
        place: place_word(batch.place),
        path: &batch.path,
        stem: &batch.stem,
        first_seen_ms: batch.first_seen_ms,
    };
    let Some(id) = files::insert(tx, &new)? else { return Ok(None) };
    let moved = files::advance(tx, id, 0, &advance)?;
    Ok(moved.then_some(id))
}

fn advance(batch: &Batch) -> files::Advance {
    let to = &batch.to;
    let window = |(length, hash): (u64, i64)| (length.cast_signed(), hash);
    files::Advance {
        stat: [to.stat.dev, to.stat.ino, to.stat.size, to.stat.ctime_ns, to.stat.mtime_ms],
        position: to.position.cast_signed(),
        frame: (to.frame_at.cast_signed(), to.frame_position.cast_signed()),
        head: window(to.head),
        tail: window(to.tail),
        state: batch.state.clone(),
        skipped: batch.flaws.skipped.saturating_add(batch.damaged).cast_signed(),
        damaged: batch.damaged.cast_signed(),
    }
}

fn place_word(place: Place) -> &'static str {
    match place {
        Place::Transcript => "transcript",
        Place::SubAgent => "sub_agent",
        Place::AgentMeta => "agent_meta",
        Place::CustomTitle => "custom_title",
        Place::SessionIndex => "session_index",
        Place::Workspace => "workspace",
    }
}

/// Facts of one session being folded: its row id, its facts, rows of the current object so far.
struct Open {
    session: i64,
    facts: Facts,
}

struct Writer<'a> {
    tx: &'a Tx<'a>,
    host: &'a str,
    batch: &'a Batch,
    generation: i64,
    facts: BTreeMap<Of, Open>,
    usage: HashMap<(i64, i64), Tokens>,
}

impl Writer<'_> {
    fn open_facts(&mut self, of: &Of) -> store::Result<()> {
        if self.facts.contains_key(of) {
            return Ok(());
        }
        let Some(own) = &self.batch.key else { return Ok(()) };
        let key = match of {
            Of::File => own.clone(),
            Of::Inline(id) => SessionKey::child(id.clone(), own.native.clone()),
        };
        let agent = self.batch.agent.word();
        let session = ingest::session(self.tx, self.host, agent, &key, self.batch.root_id)?;
        let facts = ingest::load_facts(self.tx, self.generation, session)?;
        self.facts.insert(of.clone(), Open { session, facts });
        Ok(())
    }

    fn record(&mut self, index: usize, now_ms: i64, changed: &mut Changed) -> store::Result<()> {
        let Some((record, hash)) = self.batch.records.get(index) else { return Ok(()) };
        self.open_facts(&record.of)?;
        if let What::Title(title) = &record.what {
            return self.title(record, title, changed);
        }
        let Some(open) = self.facts.get_mut(&record.of) else { return Ok(()) };
        let mut fresh = true;
        if let What::Message(message) = &record.what {
            let new = ingest::NewMessage {
                generation: self.generation,
                session: open.session,
                record,
                message,
                nth: nth_of_object(&self.batch.records, index),
                native: message.native.as_ref().map(|native| self::hash(native.as_bytes())),
                hash: *hash,
            };
            fresh = ingest::add_message(self.tx, &new)?;
            changed.rows += u64::from(fresh);
        }
        if let What::Usage(usage) = &record.what
            && let Some(key) = &usage.key
        {
            let slot = self.usage.entry((open.session, self::hash(key.as_bytes()))).or_default();
            slot.input = slot.input.max(usage.tokens.input);
            slot.cache_read = slot.cache_read.max(usage.tokens.cache_read);
            slot.cache_write = slot.cache_write.max(usage.tokens.cache_write);
            slot.output = slot.output.max(usage.tokens.output);
        }
        open.facts.fold(record, now_ms, fresh);
        Ok(())
    }

    fn title(
        &mut self,
        record: &Record,
        title: &crate::source::Title,
        changed: &mut Changed,
    ) -> store::Result<()> {
        let own = match &record.of {
            Of::File => self.batch.key.clone(),
            Of::Inline(id) => {
                self.batch.key.as_ref().map(|own| SessionKey::child(id.clone(), own.native.clone()))
            }
        };
        let Some(to) = title.to.clone().or(own) else { return Ok(()) };
        let agent = self.batch.agent.word();
        ingest::add_title(self.tx, self.generation, agent, &to, record, title)?;
        changed.sessions.extend(ingest::find_session(self.tx, self.host, agent, &to)?);
        Ok(())
    }

    fn finish(mut self, changed: &mut Changed) -> store::Result<()> {
        if let Some(open) = self.facts.get_mut(&Of::File) {
            open.facts.flaws.add(self.batch.flaws);
            open.facts.flaws.skipped += self.batch.damaged;
        }
        for open in self.facts.values() {
            ingest::save_facts(self.tx, self.generation, open.session, &open.facts)?;
            changed.sessions.insert(open.session);
        }
        for ((session, key), used) in self.usage {
            let sharers = ingest::sharers(self.tx, session, key)?;
            ingest::add_usage(self.tx, self.generation, session, key, used)?;
            if !sharers.is_empty() {
                ingest::set_shares(self.tx, session)?;
            }
            for other in sharers {
                ingest::set_shares(self.tx, other)?;
                changed.sessions.insert(other);
            }
        }
        Ok(())
    }
}

/// How many message rows of the same object come before this one: rows of one object lie together.
fn nth_of_object(records: &[(Record, i64)], index: usize) -> i64 {
    let Some((own, _)) = records.get(index) else { return 0 };
    let before = records.get(..index).unwrap_or_default().iter().rev();
    let count = before
        .take_while(|(record, _)| record.span == own.span)
        .filter(|(record, _)| matches!(record.what, What::Message(_)))
        .count();
    i64::try_from(count).unwrap_or(0)
}

/// Merges sessions anew and lets sub-agents' activity climb. Sessions that share tokens depend on
/// each other's first activity, so each is merged again after all of them.
pub fn merge(tx: &Tx<'_>, sessions: &BTreeSet<i64>) -> store::Result<()> {
    for round in 0..2 {
        for session in sessions {
            let changed = ingest::merge(tx, *session)?;
            if changed {
                ingest::climb(tx, *session)?;
            }
        }
        if round == 0 && sessions.len() < 2 {
            break;
        }
    }
    Ok(())
}
