//! What the mirror writes: sessions, facts, messages, usage and titles, in the transaction that
//! moves the cursor. What a session is in sum, [`super::merge`] makes of it.

use rusqlite::{OptionalExtension, params};

use super::{Result, StoreError, Tx};
use crate::source::facts::Facts;
use crate::source::{Message, MessageSource, Record, SessionKey, Title, Tokens};

/// Rows of one physical object get ids next to each other; an object is longer than its rows are
/// many, so they cannot reach the next one's.
const GENERATION_SHIFT: i64 = 40;
/// More tokens than any request has; so sums of them stay in 64 bits, whatever a file says.
const TOKENS_MAX: i64 = 1 << 40;

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

/// Inserts a message; false when its native id is there already in this generation and session, or
/// when it lies beyond what an id can tell (1 TiB).
pub fn add_message(tx: &Tx<'_>, new: &NewMessage<'_>) -> Result<bool> {
    let offset = new.record.span.offset.cast_signed();
    if offset < 0 || offset.saturating_add(new.nth) >> GENERATION_SHIFT != 0 {
        return Ok(false);
    }
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

/// Whether other generations tell of this session too.
pub fn has_others(tx: &Tx<'_>, generation: i64, session: i64) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM facts WHERE session_id = ?1 AND generation <> ?2)";
    Ok(tx.0.prepare_cached(sql)?.query_row([session, generation], |row| row.get(0))?)
}

/// Whether a message with that native id stands in another live generation of the session.
pub fn stands_elsewhere(tx: &Tx<'_>, generation: i64, session: i64, native: i64) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM messages m INDEXED BY messages_native
            JOIN source_files g ON g.id = m.id >> 40 AND g.live = 1
        WHERE m.session_id = ?1 AND m.native = ?2 AND g.id <> ?3)";
    let mut statement = tx.0.prepare_cached(sql)?;
    Ok(statement.query_row([session, native, generation], |row| row.get(0))?)
}

/// Whether any message of a generation stands in another live generation of the session too.
pub fn repeats(tx: &Tx<'_>, generation: i64, session: i64) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM messages m
        WHERE m.id >= ?1 << 40 AND m.id < (?1 + 1) << 40 AND m.session_id = ?2
            AND m.native IS NOT NULL
            AND EXISTS (SELECT 1 FROM messages o INDEXED BY messages_native
                    JOIN source_files g ON g.id = o.id >> 40 AND g.live = 1
                WHERE o.session_id = ?2 AND o.native = m.native AND g.id <> ?1))";
    Ok(tx.0.prepare_cached(sql)?.query_row([generation, session], |row| row.get(0))?)
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
        used.input.clamp(0, TOKENS_MAX),
        used.cache_read.clamp(0, TOKENS_MAX),
        used.cache_write.clamp(0, TOKENS_MAX),
        used.output.clamp(0, TOKENS_MAX)
    ])?;
    Ok(())
}

/// Keys of the tokens that a generation tells of, each with its session.
pub fn keys_of(tx: &Tx<'_>, generation: i64) -> Result<Vec<(i64, i64)>> {
    let sql = "SELECT u.session_id, u.key FROM facts f
            JOIN usage u ON u.session_id = f.session_id AND u.generation = f.generation
        WHERE f.generation = ?1";
    let mut statement = tx.0.prepare_cached(sql)?;
    let rows = statement.query_map([generation], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Of the other sessions in which a usage key stands, the one that counts it unless this one does.
pub fn rival(tx: &Tx<'_>, session: i64, key: i64) -> Result<Option<i64>> {
    let mut statement = tx.0.prepare_cached(&rival_sql())?;
    Ok(statement.query_row([session, key], |row| row.get(0)).optional()?)
}

/// A session's own rows are not walked: there may be as many as it has copies, for each key of each.
fn rival_sql() -> String {
    format!(
        "SELECT p.session_id FROM
            (SELECT session_id, generation FROM usage WHERE key = ?2 AND session_id < ?1
             UNION ALL
             SELECT session_id, generation FROM usage WHERE key = ?2 AND session_id > ?1) p
            {HOLDERS} ORDER BY {FIRST_HOLDER} LIMIT 1"
    )
}

/// The rivals of a session over all its usage keys. When its place among the holders changes, a key
/// goes to it, or from it to one of these: no other session counts more or less than before.
pub fn rivals(tx: &Tx<'_>, session: i64) -> Result<Vec<i64>> {
    let sql = format!(
        "SELECT DISTINCT rival FROM (SELECT (SELECT p.session_id FROM usage p {HOLDERS}
                WHERE p.key = u.key AND p.session_id <> ?1
                ORDER BY {FIRST_HOLDER} LIMIT 1) rival
            FROM usage u WHERE u.session_id = ?1) WHERE rival IS NOT NULL"
    );
    ids(tx, &sql, session)
}

/// Joins holders `p` of a usage key with what decides among them; of dead generations none counts.
pub(super) const HOLDERS: &str = "JOIN source_files g ON g.id = p.generation AND g.live = 1
    JOIN sessions s ON s.id = p.session_id";
/// Who counts a key that stands in several sessions comes first.
pub(super) const FIRST_HOLDER: &str =
    "coalesce(s.first_activity_ms, s.own_clock_ms, 1 << 62), s.native_id, s.parent_native_id";

/// Sessions whose tokens depend on who else holds a key of this generation.
pub fn sharers_of(tx: &Tx<'_>, generation: i64) -> Result<Vec<i64>> {
    let sql = "SELECT DISTINCT o.session_id FROM facts f
            JOIN sessions s ON s.id = f.session_id AND s.shares_usage = 1
            JOIN usage u ON u.session_id = s.id AND u.generation = f.generation
            JOIN usage o ON o.key = u.key
        WHERE f.generation = ?1";
    ids(tx, sql, generation)
}

/// Sessions to which a generation addresses a title.
pub fn titled_by(tx: &Tx<'_>, generation: i64) -> Result<Vec<i64>> {
    let sql = "SELECT DISTINCT s.id FROM titles t JOIN source_files g ON g.id = t.generation
            JOIN sessions s ON s.agent = t.agent AND s.native_id = t.native_id
                AND s.parent_native_id = t.parent_native_id AND s.host = g.host
        WHERE t.generation = ?1";
    ids(tx, sql, generation)
}

fn ids(tx: &Tx<'_>, sql: &str, of: i64) -> Result<Vec<i64>> {
    let mut statement = tx.0.prepare_cached(sql)?;
    let rows = statement.query_map([of], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
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

pub(super) fn parse(body: &str) -> Result<Facts> {
    serde_json::from_str(body).map_err(|error| StoreError::Value(format!("facts: {error}")))
}

pub(super) fn to_json(facts: &Facts) -> Result<String> {
    serde_json::to_string(facts).map_err(|error| StoreError::Value(format!("facts: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn a_rival_is_looked_for_beside_the_sessions_own_rows_and_not_among_them() {
        let mut store = Store::in_memory(1).unwrap();
        let steps: Vec<String> = store
            .read(|tx| {
                let mut plan = tx.0.prepare(&format!("EXPLAIN QUERY PLAN {}", rival_sql()))?;
                let rows = plan.query_map([1, 2], |row| row.get(3))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .unwrap();
        let of_usage: Vec<_> = steps.iter().filter(|step| step.contains("usage")).collect();
        let ranges = ["(key=? AND session_id<?)", "(key=? AND session_id>?)"];
        assert_eq!(of_usage.len(), 2, "{steps:?}");
        for (step, range) in of_usage.iter().zip(ranges) {
            assert!(step.contains(range), "{steps:?}");
        }
    }
}
