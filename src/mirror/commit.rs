//! What was read of one file, into the store: cursor and rows in one transaction.
//!
//! The cursor moves only if it still stands where the reader found it; else somebody was faster and
//! the whole batch is dropped, to be read again from where the cursor stands now.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::plan::Cursor;
use super::read::hash;
use crate::source::facts::Facts;
use crate::source::{Agent, Flaws, Of, Place, Record, Returned, SessionKey, Tokens, What};
use crate::store::files::Counts;
use crate::store::{self, Tx, files, ingest, merge, returns};

/// A contiguous part of one file, read and parsed.
#[derive(Debug)]
pub struct Batch {
    /// The generation it continues; `None`: it begins one.
    pub generation: Option<i64>,
    /// Whose place it takes.
    pub replaces: Replaces,
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
    /// What its lines say.
    pub parts: Vec<Part>,
    /// Damaged frames in it.
    pub damaged: u64,
}

/// Whose place a generation takes, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaces {
    /// Nobody's: the file is new, or it goes on.
    Nothing,
    /// At once that of this generation: the file holds something else now.
    AtOnce(i64),
    /// The same bytes, read anew.
    WhenRead(Rereading),
}

/// A file read anew because its agent's adapter has learnt something since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rereading {
    /// The generation that counts until then.
    pub old: i64,
    /// How far that one was read, bytes: what lies behind is news, and read when they have changed
    /// places.
    pub position: u64,
    /// This batch reaches it.
    pub done: bool,
}

/// Lines in a row of which the file tells the same session. Nearly always there is one; a file whose
/// first lines tell none, or that tells another later, must not depend on where batches end.
#[derive(Debug, Default)]
pub struct Part {
    /// The session; `None` says nothing of anybody.
    pub key: Option<SessionKey>,
    /// Records, each message with the hash of its object.
    pub records: Vec<(Record, i64)>,
    /// Flaws of the lines.
    pub flaws: Flaws,
}

/// What a batch changed.
#[derive(Debug, Default)]
pub struct Changed {
    /// Its generation.
    pub generation: i64,
    /// Sessions that are to be merged anew.
    pub sessions: BTreeSet<i64>,
    /// What changed of them was in the file all along.
    pub reread: bool,
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
    let Some(generation) = generation(tx, host, batch, &mut changed)? else { return Ok(None) };
    changed.generation = generation;
    let mut writer = Writer { tx, host, batch, generation, usage: HashMap::new() };
    let mut untold = untold(tx, generation, batch)?;
    for (nth, part) in batch.parts.iter().enumerate() {
        let damaged = if nth + 1 == batch.parts.len() { batch.damaged } else { 0 };
        let untold = if part.key.is_some() { std::mem::take(&mut untold) } else { 0 };
        writer.part(part, damaged + untold, now_ms, &mut changed)?;
    }
    writer.finish(&mut changed)?;
    if let Replaces::WhenRead(rereading) = batch.replaces {
        changed.reread = true;
        changed.sessions.clear();
        if rereading.done {
            change_places(tx, rereading.old, generation, &mut changed.sessions)?;
        }
    }
    Ok(Some(changed))
}

/// What was skipped of a file before it told of a session: it counts for the first that it tells of,
/// wherever the reading was interrupted.
fn untold(tx: &Tx<'_>, generation: i64, batch: &Batch) -> store::Result<u64> {
    let told: Vec<&Part> = batch.parts.iter().filter(|part| part.key.is_some()).collect();
    if told.is_empty() || !files::sessions_of(tx, generation)?.is_empty() {
        return Ok(0);
    }
    let last = batch.parts.last().is_some_and(|part| part.key.is_some());
    let now: u64 = told.iter().map(|part| part.flaws.skipped).sum();
    let now = now.saturating_add(if last { batch.damaged } else { 0 });
    Ok(files::skipped(tx, generation)?.cast_unsigned().saturating_sub(now))
}

/// Lets a generation count that was read anew: until now nobody looked to it.
fn change_places(
    tx: &Tx<'_>,
    old: i64,
    new: i64,
    sessions: &mut BTreeSet<i64>,
) -> store::Result<()> {
    named_by(tx, old, sessions)?;
    files::change_places(tx, old, new)?;
    for (session, key) in ingest::keys_of(tx, new)? {
        share(tx, session, key, sessions)?;
    }
    for session in files::sessions_of(tx, new)? {
        note_repeats(tx, new, session)?;
    }
    named_by(tx, new, sessions)
}

/// Compares the messages of a generation with those of the others, now that it counts beside them.
fn note_repeats(tx: &Tx<'_>, generation: i64, session: i64) -> store::Result<()> {
    if ingest::has_others(tx, generation, session)? && ingest::repeats(tx, generation, session)? {
        let mut facts = ingest::load_facts(tx, generation, session)?;
        facts.repeats = true;
        ingest::save_facts(tx, generation, session, &facts)?;
    }
    Ok(())
}

/// Marks those who hold the same tokens, now that this session does.
fn share(tx: &Tx<'_>, session: i64, key: i64, sessions: &mut BTreeSet<i64>) -> store::Result<()> {
    // Of further holders each became one beside a rival, and is marked already.
    if let Some(other) = ingest::rival(tx, session, key)? {
        ingest::set_shares(tx, session)?;
        ingest::set_shares(tx, other)?;
        sessions.insert(other);
    }
    Ok(())
}

/// Moves the cursor, or begins the generation with it.
fn generation(
    tx: &Tx<'_>,
    host: &str,
    batch: &Batch,
    changed: &mut Changed,
) -> store::Result<Option<i64>> {
    let advance = advance(batch);
    if let Replaces::WhenRead(Rereading { old, position, .. }) = batch.replaces
        && !files::stands_at(tx, old, &batch.path, position.cast_signed())?
    {
        return Ok(None);
    }
    if let Some(id) = batch.generation {
        if files::is_gone(tx, id)? {
            // It is back, for every session it tells of.
            changed.sessions.extend(files::sessions_of(tx, id)?);
        }
        let moved = files::advance(tx, id, &batch.path, batch.from.cast_signed(), &advance)?;
        return Ok(moved.then_some(id));
    }
    let (replaces, counts) = match batch.replaces {
        Replaces::Nothing => (None, Counts::AtOnce),
        Replaces::AtOnce(old) => {
            retire(tx, old, &mut changed.sessions)?;
            (Some(old), Counts::AtOnce)
        }
        Replaces::WhenRead(rereading) => {
            files::drop_rereading(tx, rereading.old)?;
            (Some(rereading.old), Counts::Later)
        }
    };
    let new = files::NewFile {
        root_id: batch.root_id,
        host,
        agent: batch.agent.word(),
        place: batch.place.word(),
        path: &batch.path,
        stem: &batch.stem,
        first_seen_ms: batch.first_seen_ms,
        replaces,
        counts,
        reading: batch.agent.reading_version(),
    };
    let Some(id) = files::insert(tx, &new)? else { return Ok(None) };
    let moved = files::advance(tx, id, &batch.path, 0, &advance)?;
    Ok(moved.then_some(id))
}

/// Ends a generation, and names the sessions that looked to it: for facts, for a title, or for
/// tokens that now count elsewhere.
pub fn retire(tx: &Tx<'_>, generation: i64, sessions: &mut BTreeSet<i64>) -> store::Result<()> {
    named_by(tx, generation, sessions)?;
    files::retire(tx, generation)
}

fn named_by(tx: &Tx<'_>, generation: i64, sessions: &mut BTreeSet<i64>) -> store::Result<()> {
    sessions.extend(files::sessions_of(tx, generation)?);
    sessions.extend(ingest::titled_by(tx, generation)?);
    sessions.extend(returns::told_by(tx, generation)?);
    sessions.extend(ingest::sharers_of(tx, generation)?);
    Ok(())
}

fn advance(batch: &Batch) -> files::Advance {
    let to = &batch.to;
    let mut flaws = Flaws::default();
    batch.parts.iter().for_each(|part| flaws.add(part.flaws));
    let window = |(length, hash): (u64, i64)| (length.cast_signed(), hash);
    files::Advance {
        stat: [to.stat.dev, to.stat.ino, to.stat.size, to.stat.ctime_ns, to.stat.mtime_ms],
        position: to.position.cast_signed(),
        frame: (to.frame_at.cast_signed(), to.frame_position.cast_signed()),
        in_damage: to.in_damage,
        head: window(to.head),
        tail: window(to.tail),
        state: batch.state.clone(),
        skipped: flaws.skipped.saturating_add(batch.damaged).cast_signed(),
        damaged: batch.damaged.cast_signed(),
    }
}

/// Facts of one session being folded: its row id, its facts, rows of the current object so far.
struct Open {
    session: i64,
    /// Other files tell of it too, and so far not of the same.
    compare: bool,
    facts: Facts,
}

struct Writer<'a> {
    tx: &'a Tx<'a>,
    host: &'a str,
    batch: &'a Batch,
    generation: i64,
    usage: HashMap<(i64, i64), Tokens>,
}

impl Writer<'_> {
    /// Writes what some lines say of their session and of the sub-agents in it.
    fn part(
        &mut self,
        part: &Part,
        damaged: u64,
        now_ms: i64,
        changed: &mut Changed,
    ) -> store::Result<()> {
        let Some(own) = &part.key else { return self.addressed(part, changed) };
        let mut facts = BTreeMap::from([(Of::File, self.open(own, &Of::File)?)]);
        let (mut nth, mut span) = (0, None);
        for (record, hash) in &part.records {
            if span != Some(record.span) {
                (nth, span) = (0, Some(record.span));
            }
            if !facts.contains_key(&record.of) {
                facts.insert(record.of.clone(), self.open(own, &record.of)?);
            }
            let Some(open) = facts.get_mut(&record.of) else { continue };
            if let What::Title(title) = &record.what {
                let own = key_of(own, &record.of);
                self.title(title.to.as_ref().unwrap_or(&own), record, title, changed)?;
                continue;
            }
            if let What::Returned(returned) = &record.what {
                self.returned(returned, record, changed)?;
                continue;
            }
            let mut fresh = true;
            if let What::Message(message) = &record.what {
                let new = ingest::NewMessage {
                    generation: self.generation,
                    session: open.session,
                    record,
                    message,
                    nth,
                    native: message.native.as_ref().map(|native| self::hash(native.as_bytes())),
                    hash: *hash,
                };
                fresh = ingest::add_message(self.tx, &new)?;
                changed.rows += u64::from(fresh);
                nth += 1;
                self.compare(open, new.native)?;
            }
            self.spend(open.session, record);
            open.facts.fold(record, now_ms, fresh);
        }
        if let Some(open) = facts.get_mut(&Of::File) {
            open.facts.flaws.add(part.flaws);
            open.facts.flaws.skipped = open.facts.flaws.skipped.saturating_add(damaged);
        }
        for open in facts.values() {
            ingest::save_facts(self.tx, self.generation, open.session, &open.facts)?;
            changed.sessions.insert(open.session);
        }
        Ok(())
    }

    /// Of lines without a session only what is addressed to one says anything.
    fn addressed(&self, part: &Part, changed: &mut Changed) -> store::Result<()> {
        for (record, _) in &part.records {
            if let What::Title(title) = &record.what
                && let Some(to) = &title.to
            {
                self.title(to, record, title, changed)?;
            }
            if let What::Returned(returned) = &record.what {
                self.returned(returned, record, changed)?;
            }
        }
        Ok(())
    }

    fn returned(
        &self,
        returned: &Returned,
        record: &Record,
        changed: &mut Changed,
    ) -> store::Result<()> {
        let agent = self.batch.agent.word();
        returns::add(self.tx, self.generation, agent, returned, record.at_ms)?;
        changed.sessions.extend(ingest::find_session(self.tx, self.host, agent, &returned.to)?);
        Ok(())
    }

    /// What this generation says so far of a session.
    fn open(&self, own: &SessionKey, of: &Of) -> store::Result<Open> {
        let (agent, root) = (self.batch.agent.word(), self.batch.root_id);
        let session = ingest::session(self.tx, self.host, agent, &key_of(own, of), root)?;
        let facts = ingest::load_facts(self.tx, self.generation, session)?;
        // One that is read anew finds its messages in the one whose place it takes.
        let counts = !matches!(self.batch.replaces, Replaces::WhenRead(_));
        let compare =
            counts && !facts.repeats && ingest::has_others(self.tx, self.generation, session)?;
        Ok(Open { session, compare, facts })
    }

    /// Notes the first message that another file tells of too: only then a merge has to count rows.
    fn compare(&self, open: &mut Open, native: Option<i64>) -> store::Result<()> {
        if let Some(native) = native.filter(|_| open.compare)
            && ingest::stands_elsewhere(self.tx, self.generation, open.session, native)?
        {
            open.facts.repeats = true;
            open.compare = false;
        }
        Ok(())
    }

    /// Keeps the tokens of a key: of each counter the most.
    fn spend(&mut self, session: i64, record: &Record) {
        if let What::Usage(usage) = &record.what
            && let Some(key) = &usage.key
        {
            let slot = self.usage.entry((session, self::hash(key.as_bytes()))).or_default();
            slot.input = slot.input.max(usage.tokens.input);
            slot.cache_read = slot.cache_read.max(usage.tokens.cache_read);
            slot.cache_write = slot.cache_write.max(usage.tokens.cache_write);
            slot.output = slot.output.max(usage.tokens.output);
        }
    }

    fn title(
        &self,
        to: &SessionKey,
        record: &Record,
        title: &crate::source::Title,
        changed: &mut Changed,
    ) -> store::Result<()> {
        let agent = self.batch.agent.word();
        ingest::add_title(self.tx, self.generation, agent, to, record, title)?;
        changed.sessions.extend(ingest::find_session(self.tx, self.host, agent, to)?);
        Ok(())
    }

    fn finish(self, changed: &mut Changed) -> store::Result<()> {
        for ((session, key), used) in self.usage {
            ingest::add_usage(self.tx, self.generation, session, key, used)?;
            share(self.tx, session, key, &mut changed.sessions)?;
        }
        Ok(())
    }
}

fn key_of(own: &SessionKey, of: &Of) -> SessionKey {
    match of {
        Of::File => own.clone(),
        Of::Inline(id) => SessionKey::child(id.clone(), own.native.clone()),
    }
}

/// The same for what was in the files all along: a newer activity that only a newer reading told is
/// noted as no news, of the sessions above too.
pub fn merge_reread(tx: &Tx<'_>, sessions: &BTreeSet<i64>) -> store::Result<()> {
    let mut family = sessions.clone();
    for session in sessions {
        family.extend(merge::ancestors(tx, *session)?);
    }
    let mut before = Vec::with_capacity(family.len());
    for session in family {
        before.push((session, merge::last_activity_ms(tx, session)?));
    }
    merge(tx, sessions)?;
    for (session, activity_ms) in before {
        merge::note_reread(tx, session, activity_ms)?;
    }
    Ok(())
}

/// Merges sessions anew, lets sub-agents' activity climb, and settles again who counts the tokens
/// that stand in several sessions wherever the order of their first activity has changed.
pub fn merge(tx: &Tx<'_>, sessions: &BTreeSet<i64>) -> store::Result<()> {
    let mut again = BTreeSet::new();
    let mut changed = BTreeSet::new();
    for session in sessions {
        let outcome = merge::merge(tx, *session)?;
        if outcome.changed {
            changed.insert(*session);
        }
        if outcome.reordered {
            again.insert(*session);
            again.extend(ingest::rivals(tx, *session)?);
        }
    }
    for session in again {
        if merge::merge(tx, session)?.changed {
            changed.insert(session);
        }
    }
    for session in changed {
        merge::climb(tx, session)?;
    }
    Ok(())
}
