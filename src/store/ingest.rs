//! What the mirror writes: sessions, facts, messages, usage and titles, in the transaction that
//! moves the cursor; and the merge that makes a session of its live generations.

use rusqlite::{OptionalExtension, params};

use super::{Result, StoreError, Tx};
use crate::source::facts::{self, Counts, Facts, Part, TitleRow};
use crate::source::{Kind, Message, MessageSource, Record, SessionKey, Title, TitleKind, Tokens};

/// Rows of one physical object get ids next to each other; an object is longer than its rows are
/// many, so they cannot reach the next one's.
const GENERATION_SHIFT: i64 = 40;

/// The row of a session, made if it is not there.
pub fn session(tx: &Tx<'_>, host: &str, agent: &str, key: &SessionKey, root: i64) -> Result<i64> {
    let parent = key.parent.as_deref().unwrap_or("");
    let find = "SELECT id FROM sessions
        WHERE agent = ?1 AND native_id = ?2 AND parent_native_id = ?3 AND host = ?4";
    let found: Option<i64> =
        tx.0.prepare_cached(find)?
            .query_row(params![agent, key.native, parent, host], |row| row.get(0))
            .optional()?;
    if let Some(id) = found {
        return Ok(id);
    }
    tx.0.prepare_cached(
        "INSERT INTO sessions (host, agent, native_id, parent_native_id, root_id)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![host, agent, key.native, parent, root])?;
    Ok(tx.0.last_insert_rowid())
}

/// The session with that key, if there is one.
pub fn find_session(tx: &Tx<'_>, host: &str, agent: &str, key: &SessionKey) -> Result<Option<i64>> {
    let sql = "SELECT id FROM sessions
        WHERE agent = ?1 AND native_id = ?2 AND parent_native_id = ?3 AND host = ?4";
    let parent = key.parent.as_deref().unwrap_or("");
    let mut statement = tx.0.prepare_cached(sql)?;
    Ok(statement
        .query_row(params![agent, key.native, parent, host], |row| row.get(0))
        .optional()?)
}

/// What a generation says of a session so far.
pub fn load_facts(tx: &Tx<'_>, generation: i64, session: i64) -> Result<Facts> {
    let sql = "SELECT body FROM facts WHERE generation = ?1 AND session_id = ?2";
    let body: Option<String> =
        tx.0.prepare_cached(sql)?.query_row([generation, session], |row| row.get(0)).optional()?;
    body.map_or(Ok(Facts::default()), |body| parse(&body))
}

/// Keeps what a generation says of a session.
pub fn save_facts(tx: &Tx<'_>, generation: i64, session: i64, facts: &Facts) -> Result<()> {
    tx.0.prepare_cached(
        "INSERT INTO facts (generation, session_id, body) VALUES (?1, ?2, ?3)
         ON CONFLICT (generation, session_id) DO UPDATE SET body = excluded.body",
    )?
    .execute(params![generation, session, to_json(facts)?])?;
    Ok(())
}

/// A message row to insert.
#[derive(Debug, Clone, Copy)]
pub struct NewMessage<'a> {
    /// Its generation.
    pub generation: i64,
    /// Its session.
    pub session: i64,
    /// The record it comes from.
    pub record: &'a Record,
    /// The message in it.
    pub message: &'a Message,
    /// How many rows of the same object came before.
    pub nth: i64,
    /// Hash of its native id.
    pub native: Option<i64>,
    /// Hash of the object's bytes.
    pub hash: i64,
}

/// Inserts a message; false when its native id is there already in this generation and session.
pub fn add_message(tx: &Tx<'_>, new: &NewMessage<'_>) -> Result<bool> {
    let offset = new.record.span.offset.cast_signed();
    let id = (new.generation << GENERATION_SHIFT) | (offset + new.nth);
    let changed =
        tx.0.prepare_cached(
            "INSERT INTO messages (id, session_id, native, kind, fallback, counted, at_ms, call,
                 name, text, position, bytes, hash)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
             ON CONFLICT (session_id, native, id >> 40) WHERE native IS NOT NULL DO NOTHING",
        )?
        .execute(params![
            id,
            new.session,
            new.native,
            new.message.kind.word(),
            new.message.source == MessageSource::Fallback,
            new.message.counted,
            new.record.at_ms,
            new.message.call,
            new.message.name,
            new.message.text,
            offset,
            new.record.span.len.cast_signed(),
            new.hash
        ])?;
    Ok(changed == 1)
}

/// Keeps tokens under their key: the maximum of each counter.
pub fn add_usage(tx: &Tx<'_>, generation: i64, session: i64, key: i64, used: Tokens) -> Result<()> {
    tx.0.prepare_cached(
        "INSERT INTO usage (session_id, key, generation, input, cache_read, cache_write, output)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (session_id, key, generation) DO UPDATE SET
             input = max(input, excluded.input),
             cache_read = max(cache_read, excluded.cache_read),
             cache_write = max(cache_write, excluded.cache_write),
             output = max(output, excluded.output)",
    )?
    .execute(params![
        session,
        key,
        generation,
        used.input,
        used.cache_read,
        used.cache_write,
        used.output
    ])?;
    Ok(())
}

/// Other sessions in which a usage key stands.
pub fn sharers(tx: &Tx<'_>, session: i64, key: i64) -> Result<Vec<i64>> {
    let sql = "SELECT DISTINCT session_id FROM usage WHERE key = ?2 AND session_id <> ?1";
    let mut statement = tx.0.prepare_cached(sql)?;
    let rows =
        statement.query_map([session, key], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// Marks a session as one whose usage keys stand elsewhere too.
pub fn set_shares(tx: &Tx<'_>, session: i64) -> Result<()> {
    tx.0.prepare_cached("UPDATE sessions SET shares_usage = 1 WHERE id = ?1 AND shares_usage = 0")?
        .execute([session])?;
    Ok(())
}

/// Keeps a title: the last of its kind in a generation, of slash commands the first.
pub fn add_title(
    tx: &Tx<'_>,
    generation: i64,
    agent: &str,
    to: &SessionKey,
    record: &Record,
    title: &Title,
) -> Result<()> {
    tx.0.prepare_cached(
        "INSERT INTO titles (generation, position, kind, agent, native_id, parent_native_id, at_ms,
             text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (generation, kind, native_id, parent_native_id) DO UPDATE SET
             position = excluded.position, at_ms = excluded.at_ms, text = excluded.text
         WHERE kind <> 'first_command' AND excluded.position >= position",
    )?
    .execute(params![
        generation,
        record.span.offset.cast_signed(),
        title.kind.word(),
        agent,
        to.native,
        to.parent.as_deref().unwrap_or(""),
        record.at_ms.unwrap_or(0),
        title.text
    ])?;
    Ok(())
}

/// A session as the merge needs it.
struct Held {
    agent: String,
    native: String,
    parent: String,
    root: i64,
    epoch_ms: i64,
    shares: bool,
    facts: String,
    transcript: String,
    last_activity_ms: Option<i64>,
    clock_ahead: bool,
}

/// Makes a session anew from its live generations; true if anything of it changed. Then its
/// ancestors' clocks are due: see [`climb`].
pub fn merge(tx: &Tx<'_>, session: i64) -> Result<bool> {
    let Some(held) = held(tx, session)? else { return Ok(false) };
    let generations = live_generations(tx, session)?;
    let present = generations.iter().any(|generation| generation.present);
    let first_seen_ms = generations.iter().map(|generation| generation.first_seen_ms).min();
    let root =
        generations.iter().map(|generation| generation.root).next_back().unwrap_or(held.root);
    let live: Vec<i64> = generations.iter().map(|generation| generation.id).collect();
    let parts: Vec<Part> = generations.into_iter().map(|generation| generation.part).collect();
    let several = parts.len() > 1;
    let Some(mut merged) = facts::merge(parts, &titles(tx, &held)?) else {
        return set_transcript(tx, session, &held, false);
    };
    if several {
        distinct_counts(tx, session, &live, &mut merged)?;
    }
    let keyed = tokens(tx, session, held.shares, &live)?;
    merged.tokens = merged.tokens.plus(keyed);
    let seen_after_epoch = first_seen_ms.filter(|seen| *seen > held.epoch_ms);
    let own_clock_ms = merged.clock_ms().or(seen_after_epoch);
    save_merged(tx, session, &held, &merged, (own_clock_ms, present, root))
}

struct Generation {
    id: i64,
    root: i64,
    present: bool,
    first_seen_ms: i64,
    part: Part,
}

fn held(tx: &Tx<'_>, session: i64) -> Result<Option<Held>> {
    let sql = "SELECT s.agent, s.native_id, s.parent_native_id, s.root_id,
            coalesce(r.epoch_ms, 0), s.shares_usage, s.facts, s.transcript, s.last_activity_ms,
            s.clock_ahead
        FROM sessions s LEFT JOIN roots r ON r.id = s.root_id WHERE s.id = ?1";
    let mut statement = tx.0.prepare_cached(sql)?;
    let found = statement.query_row([session], |row| {
        Ok(Held {
            agent: row.get(0)?,
            native: row.get(1)?,
            parent: row.get(2)?,
            root: row.get(3)?,
            epoch_ms: row.get(4)?,
            shares: row.get(5)?,
            facts: row.get(6)?,
            transcript: row.get(7)?,
            last_activity_ms: row.get(8)?,
            clock_ahead: row.get(9)?,
        })
    });
    Ok(found.optional()?)
}

fn live_generations(tx: &Tx<'_>, session: i64) -> Result<Vec<Generation>> {
    let sql = "SELECT g.id, g.root_id, g.gone_ms IS NULL, g.first_seen_ms, g.stem, f.body
        FROM facts f JOIN source_files g ON g.id = f.generation
        WHERE f.session_id = ?1 AND g.live = 1 ORDER BY g.stem, g.path";
    let mut statement = tx.0.prepare_cached(sql)?;
    let mut rows = statement.query([session])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let body: String = row.get(5)?;
        found.push(Generation {
            id: row.get(0)?,
            root: row.get(1)?,
            present: row.get(2)?,
            first_seen_ms: row.get(3)?,
            part: Part { facts: parse(&body)?, tie: row.get(4)? },
        });
    }
    Ok(found)
}

fn titles(tx: &Tx<'_>, held: &Held) -> Result<Vec<TitleRow>> {
    let sql = "SELECT t.kind, t.at_ms, g.stem, t.position, t.text
        FROM titles t JOIN source_files g ON g.id = t.generation
        WHERE t.agent = ?1 AND t.native_id = ?2 AND t.parent_native_id = ?3 AND g.live = 1";
    let mut statement = tx.0.prepare_cached(sql)?;
    let mut rows = statement.query(params![held.agent, held.native, held.parent])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let word: String = row.get(0)?;
        let Some(kind) = TitleKind::from_word(&word) else { continue };
        let position: i64 = row.get(3)?;
        found.push(TitleRow {
            kind,
            at_ms: row.get(1)?,
            tie: row.get(2)?,
            offset: position.cast_unsigned(),
            text: row.get(4)?,
        });
    }
    Ok(found)
}

/// Counts of a session whose generations may repeat each other (a Claude transcript copied to
/// another project): each native id once.
fn distinct_counts(tx: &Tx<'_>, session: i64, live: &[i64], merged: &mut Facts) -> Result<()> {
    let named: bool =
        tx.0.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_native
                 WHERE session_id = ?1 AND native IS NOT NULL)",
        )?
        .query_row([session], |row| row.get(0))?;
    if !named {
        return Ok(());
    }
    let list: Vec<String> = live.iter().map(ToString::to_string).collect();
    let sql = format!(
        "SELECT kind, count(DISTINCT native) FROM messages
         WHERE session_id = ?1 AND native IS NOT NULL AND counted = 1 AND fallback = 0
             AND id >> 40 IN ({}) GROUP BY kind",
        list.join(",")
    );
    let mut statement = tx.0.prepare(&sql)?;
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        let word: String = row.get(0)?;
        let count: i64 = row.get(1)?;
        let counts = Counts { primary: count.cast_unsigned(), fallback: 0 };
        match word.as_str() {
            "prompt" => merged.prompts = counts,
            "answer" => merged.answers = counts,
            "tool_call" => merged.tool_calls = counts,
            _ => {}
        }
    }
    Ok(())
}

/// Tokens kept by key: of a key that stands in several sessions, only the holder with the earliest
/// activity (then the smallest native id) counts it; always the maximum of each counter.
fn tokens(tx: &Tx<'_>, session: i64, shares: bool, live: &[i64]) -> Result<Tokens> {
    let list: Vec<String> = live.iter().map(ToString::to_string).collect();
    let own = "SELECT coalesce(sum(i), 0), coalesce(sum(r), 0), coalesce(sum(w), 0),
            coalesce(sum(o), 0)
        FROM (SELECT max(input) i, max(cache_read) r, max(cache_write) w, max(output) o
              FROM usage WHERE session_id = ?1 AND generation IN (";
    let sql = if shares {
        "SELECT coalesce(sum(i), 0), coalesce(sum(r), 0), coalesce(sum(w), 0), coalesce(sum(o), 0)
         FROM (
             SELECT max(u.input) i, max(u.cache_read) r, max(u.cache_write) w, max(u.output) o,
                 (SELECT p.session_id FROM usage p
                      JOIN source_files g ON g.id = p.generation AND g.live = 1
                      JOIN sessions s ON s.id = p.session_id
                  WHERE p.key = m.key
                  ORDER BY coalesce(s.first_activity_ms, s.own_clock_ms, 1 << 62), s.native_id,
                      s.parent_native_id LIMIT 1) holder
             FROM (SELECT DISTINCT key FROM usage WHERE session_id = ?1) m
                 JOIN usage u ON u.key = m.key
                 JOIN source_files f ON f.id = u.generation AND f.live = 1
             GROUP BY m.key)
         WHERE holder = ?1"
            .to_owned()
    } else {
        format!("{own}{}) GROUP BY key)", list.join(","))
    };
    let tokens = tx.0.prepare_cached(&sql)?.query_row([session], |row| {
        Ok(Tokens {
            input: row.get(0)?,
            cache_read: row.get(1)?,
            cache_write: row.get(2)?,
            output: row.get(3)?,
        })
    })?;
    Ok(tokens)
}

fn save_merged(
    tx: &Tx<'_>,
    session: i64,
    held: &Held,
    merged: &Facts,
    (own_clock_ms, present, root): (Option<i64>, bool, i64),
) -> Result<bool> {
    let kind = match (merged.kind, held.parent.is_empty()) {
        (Some(Kind::Internal) | None, false) => Kind::SubAgent,
        (kind, _) => kind.unwrap_or(Kind::Main),
    };
    let body = to_json(merged)?;
    let child_activity_ms = child_activity(tx, &held.agent, &held.native)?;
    let last_activity_ms = own_clock_ms.max(child_activity_ms);
    let transcript = if present { "present" } else { "missing" };
    let same = body == held.facts
        && last_activity_ms == held.last_activity_ms
        && transcript == held.transcript
        && merged.clock_ahead == held.clock_ahead
        && root == held.root;
    if same {
        return Ok(false);
    }
    tx.0.prepare_cached(
        "UPDATE sessions SET facts = ?2, kind = ?3, nested = ?4, own_clock_ms = ?5,
             first_activity_ms = ?6, last_activity_ms = ?7, child_activity_ms = ?8,
             clock_ahead = ?9, transcript = ?10, root_id = ?11, dirty = 1,
             version = version + (last_activity_ms IS NOT ?7)
         WHERE id = ?1",
    )?
    .execute(params![
        session,
        body,
        kind.word(),
        kind.is_nested(),
        own_clock_ms,
        merged.first_activity_ms,
        last_activity_ms,
        child_activity_ms,
        merged.clock_ahead,
        transcript,
        root
    ])?;
    Ok(true)
}

/// Newest activity below a session: its sub-agents' own and what climbed to them.
fn child_activity(tx: &Tx<'_>, agent: &str, native: &str) -> Result<Option<i64>> {
    let sql = "SELECT max(last_activity_ms) FROM sessions
        WHERE agent = ?1 AND parent_native_id = ?2 AND parent_native_id <> ''";
    Ok(tx.0.prepare_cached(sql)?.query_row([agent, native], |row| row.get(0))?)
}

/// Levels of sub-agents that activity climbs.
const LEVELS_MAX: usize = 16;

/// Carries a changed sub-agent's activity up to its root.
pub fn climb(tx: &Tx<'_>, session: i64) -> Result<()> {
    let mut at = session;
    for _ in 0..LEVELS_MAX {
        let sql = "SELECT p.id, p.agent, p.native_id, p.own_clock_ms, p.child_activity_ms
            FROM sessions c JOIN sessions p
                ON p.agent = c.agent AND p.native_id = c.parent_native_id AND p.host = c.host
            WHERE c.id = ?1 AND c.parent_native_id <> '' AND p.id <> c.id LIMIT 1";
        type Parent = (i64, String, String, Option<i64>, Option<i64>);
        let parent: Option<Parent> =
            tx.0.prepare_cached(sql)?
                .query_row([at], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
                })
                .optional()?;
        let Some((id, agent, native, own_ms, was_ms)) = parent else { return Ok(()) };
        let child_ms = child_activity(tx, &agent, &native)?;
        if child_ms == was_ms {
            return Ok(());
        }
        tx.0.prepare_cached(
            "UPDATE sessions SET child_activity_ms = ?2, last_activity_ms = ?3, dirty = 1,
                 version = version + (last_activity_ms IS NOT ?3)
             WHERE id = ?1",
        )?
        .execute(params![id, child_ms, own_ms.max(child_ms)])?;
        at = id;
    }
    Ok(())
}

/// Session rows above each of these: a parent is not observed before its sub-agents are.
pub fn ancestors(tx: &Tx<'_>, session: i64) -> Result<Vec<i64>> {
    let mut found = Vec::new();
    let mut at = session;
    for _ in 0..LEVELS_MAX {
        let sql = "SELECT p.id FROM sessions c JOIN sessions p
                ON p.agent = c.agent AND p.native_id = c.parent_native_id AND p.host = c.host
            WHERE c.id = ?1 AND c.parent_native_id <> '' LIMIT 1";
        let parent: Option<i64> =
            tx.0.prepare_cached(sql)?.query_row([at], |row| row.get(0)).optional()?;
        match parent {
            Some(id) if id != session && !found.contains(&id) => {
                found.push(id);
                at = id;
            }
            _ => break,
        }
    }
    Ok(found)
}

fn set_transcript(tx: &Tx<'_>, session: i64, held: &Held, present: bool) -> Result<bool> {
    let transcript = if present { "present" } else { "missing" };
    if transcript == held.transcript {
        return Ok(false);
    }
    tx.0.prepare_cached("UPDATE sessions SET transcript = ?2 WHERE id = ?1")?
        .execute(params![session, transcript])?;
    Ok(true)
}

fn parse(body: &str) -> Result<Facts> {
    serde_json::from_str(body).map_err(|error| StoreError::Value(format!("facts: {error}")))
}

fn to_json(facts: &Facts) -> Result<String> {
    serde_json::to_string(facts).map_err(|error| StoreError::Value(format!("facts: {error}")))
}
