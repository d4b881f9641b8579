//! The merge: what a session is, made anew from the facts of its live generations and the titles
//! addressed to it; and how the activity of sub-agents climbs to those above them.
//!
//! It depends on what the store holds and on nothing else, so the order in which files were read
//! cannot show.

use std::collections::HashSet;

use rusqlite::{OptionalExtension, params};

use super::ingest::{FIRST_HOLDER, HOLDERS};
use super::ingest::{parse, to_json};
use super::{Result, Tx, returns};
use crate::source::facts::{self, Counts, Facts, Part, TitleRow};
use crate::source::{Kind, TitleKind, Tokens};

/// A session as the merge needs it.
struct Held {
    host: String,
    agent: String,
    native: String,
    parent: String,
    root: i64,
    epoch_ms: Option<i64>,
    shares: bool,
    facts: String,
    transcript: String,
    last_activity_ms: Option<i64>,
    clock_ahead: bool,
    own_clock_ms: Option<i64>,
    first_activity_ms: Option<i64>,
    known: bool,
}

impl Held {
    /// What decides, among several holders of the same tokens, who counts them.
    fn order_ms(&self) -> Option<i64> {
        self.first_activity_ms.or(self.own_clock_ms)
    }
}

/// What a merge did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Merged {
    /// Something of the session changed: its ancestors' clocks are due, see [`climb`].
    pub changed: bool,
    /// It shares tokens and its place among those who do changed: see `ingest::rivals`.
    pub reordered: bool,
}

/// Makes a session anew from its live generations.
pub fn merge(tx: &Tx<'_>, session: i64) -> Result<Merged> {
    let Some(held) = held(tx, session)? else { return Ok(Merged::default()) };
    let generations = live_generations(tx, session)?;
    let present = generations.iter().any(|generation| generation.present);
    let first_seen_ms = generations.iter().map(|generation| generation.first_seen_ms).min();
    let root =
        generations.iter().map(|generation| generation.root).next_back().unwrap_or(held.root);
    let live: Vec<i64> = generations.iter().map(|generation| generation.id).collect();
    let parts: Vec<Part> = generations.into_iter().map(|generation| generation.part).collect();
    // What a generation repeated may have been said by one that no longer counts.
    let repeats = parts.len() > 1 && parts.iter().any(|part| part.facts.repeats);
    let repeated = repeats.then(|| Chosen::of(&live, &parts));
    let Some(mut merged) = facts::merge(parts, &titles(tx, &held)?) else {
        return bury(tx, session, &held);
    };
    if let Some(chosen) = repeated {
        distinct_counts(tx, session, &chosen, &mut merged)?;
    }
    if !held.parent.is_empty()
        && let Some(word) =
            returns::newest(tx, &held.host, &held.agent, (&held.native, &held.parent))?
    {
        merged.returned(word.outcome, word.at_ms);
    }
    let keyed = tokens(tx, session, held.shares, &live)?;
    merged.tokens = merged.tokens.plus(keyed);
    let seen_after_epoch =
        first_seen_ms.filter(|seen| held.epoch_ms.is_some_and(|epoch| *seen > epoch));
    let own_clock_ms = merged.clock_ms().or(seen_after_epoch);
    save_merged(tx, session, &held, &merged, Place { own_clock_ms, present, root })
}

/// None of its generations counts any more: the files that held it hold something else now. What was
/// counted there counts no longer; one that has a status keeps its row and its clock, as after the
/// deletion of a file, and of one that has none nothing stays.
fn bury(tx: &Tx<'_>, session: i64, held: &Held) -> Result<Merged> {
    let (facts, own_clock_ms) = if held.known {
        (parse(&held.facts)?.without_content(), held.own_clock_ms)
    } else {
        (Facts::default(), None)
    };
    let place = Place { own_clock_ms, present: false, root: held.root };
    save_merged(tx, session, held, &facts, place)
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
            r.epoch_ms, s.shares_usage, s.facts, s.transcript, s.last_activity_ms,
            s.clock_ahead, s.own_clock_ms, s.first_activity_ms, s.status IS NOT NULL, s.host
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
            own_clock_ms: row.get(10)?,
            first_activity_ms: row.get(11)?,
            known: row.get(12)?,
            host: row.get(13)?,
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
        WHERE t.agent = ?1 AND t.native_id = ?2 AND t.parent_native_id = ?3 AND g.live = 1
            AND g.host = ?4";
    let mut statement = tx.0.prepare_cached(sql)?;
    let mut rows = statement.query(params![held.agent, held.native, held.parent, held.host])?;
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

/// Which side of a generation counts, for prompts, answers and calls: 1 the fallback.
struct Chosen {
    generation: i64,
    fallback: [bool; 3],
}

impl Chosen {
    fn of(live: &[i64], parts: &[Part]) -> Vec<Self> {
        let side = |counts: Counts| counts.primary == 0;
        live.iter()
            .zip(parts)
            .map(|(generation, Part { facts, .. })| Self {
                generation: *generation,
                fallback: [side(facts.prompts), side(facts.answers), side(facts.tool_calls)],
            })
            .collect()
    }
}

/// Counts of a session whose generations repeat each other (a transcript copied to another place):
/// each native id once. By generation, since a row without a native id is in no index.
fn distinct_counts(tx: &Tx<'_>, session: i64, chosen: &[Chosen], merged: &mut Facts) -> Result<()> {
    let mut seen = HashSet::new();
    let mut counts = [0_u64; 3];
    let mut statement = tx.0.prepare_cached(
        "SELECT kind, native, fallback FROM messages
         WHERE id >= ?1 << 40 AND id < (?1 + 1) << 40 AND session_id = ?2 AND counted = 1",
    )?;
    for Chosen { generation, fallback: sides } in chosen {
        let mut rows = statement.query([*generation, session])?;
        while let Some(row) = rows.next()? {
            let (word, native): (String, Option<i64>) = (row.get(0)?, row.get(1)?);
            let fallback: bool = row.get(2)?;
            let kind = ["prompt", "answer", "tool_call"].iter().position(|kind| *kind == word);
            let Some(kind) = kind.filter(|kind| sides.get(*kind) == Some(&fallback)) else {
                continue;
            };
            if let Some(count) = counts.get_mut(kind)
                && native.is_none_or(|native| seen.insert((kind, native)))
            {
                *count += 1;
            }
        }
    }
    let [prompts, answers, calls] = counts.map(|primary| Counts { primary, fallback: 0 });
    (merged.prompts, merged.answers, merged.tool_calls) = (prompts, answers, calls);
    Ok(())
}

/// Tokens kept by key: of a key that stands in several sessions, only the holder with the earliest
/// activity (then the smallest native id) counts it; always the maximum of each counter.
fn tokens(tx: &Tx<'_>, session: i64, shares: bool, live: &[i64]) -> Result<Tokens> {
    let sum = "SELECT coalesce(sum(i), 0), coalesce(sum(r), 0), coalesce(sum(w), 0),
        coalesce(sum(o), 0)";
    let alone = "SELECT input i, cache_read r, cache_write w, output o
        FROM usage WHERE session_id = ?1 AND generation = ?2";
    let several = "SELECT max(u.input) i, max(u.cache_read) r, max(u.cache_write) w,
            max(u.output) o
        FROM usage u JOIN source_files f ON f.id = u.generation AND f.live = 1
        WHERE u.session_id = ?1 AND ?2 IS NOT NULL GROUP BY u.key";
    let elected = format!(
        "SELECT max(u.input) i, max(u.cache_read) r, max(u.cache_write) w, max(u.output) o,
            (SELECT p.session_id FROM usage p {HOLDERS}
             WHERE p.key = m.key ORDER BY {FIRST_HOLDER} LIMIT 1) holder
        FROM (SELECT DISTINCT key FROM usage WHERE session_id = ?1 AND ?2 IS NOT NULL) m
            JOIN usage u ON u.key = m.key
            JOIN source_files f ON f.id = u.generation AND f.live = 1
        GROUP BY m.key HAVING holder = ?1"
    );
    let rows = match (shares, live) {
        (true, _) => elected.as_str(),
        (false, [_]) => alone,
        (false, _) => several,
    };
    let sql = format!("{sum} FROM ({rows})");
    let first = live.first().copied().unwrap_or(0);
    let tokens = tx.0.prepare_cached(&sql)?.query_row([session, first], |row| {
        Ok(Tokens {
            input: row.get(0)?,
            cache_read: row.get(1)?,
            cache_write: row.get(2)?,
            output: row.get(3)?,
        })
    })?;
    Ok(tokens)
}

/// Where a session stands by its files, beside what they say.
struct Place {
    own_clock_ms: Option<i64>,
    present: bool,
    root: i64,
}

fn save_merged(
    tx: &Tx<'_>,
    session: i64,
    held: &Held,
    merged: &Facts,
    Place { own_clock_ms, present, root }: Place,
) -> Result<Merged> {
    let kind = match (merged.kind, held.parent.is_empty()) {
        (Some(Kind::Internal) | None, false) => Kind::SubAgent,
        (kind, _) => kind.unwrap_or(Kind::Main),
    };
    let body = to_json(merged)?;
    let child_activity_ms = child_activity(tx, session, (&held.agent, &held.native, &held.host))?;
    let last_activity_ms = own_clock_ms.max(child_activity_ms);
    let transcript = if present { "present" } else { "missing" };
    let same = body == held.facts
        && last_activity_ms == held.last_activity_ms
        && transcript == held.transcript
        && merged.clock_ahead == held.clock_ahead
        && root == held.root
        && own_clock_ms == held.own_clock_ms
        && merged.first_activity_ms == held.first_activity_ms;
    if same {
        return Ok(Merged::default());
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
    let order_ms = merged.first_activity_ms.or(own_clock_ms);
    Ok(Merged { changed: true, reordered: held.shares && order_ms != held.order_ms() })
}

/// Newest activity below a session: its sub-agents' own and what climbed to them.
fn child_activity(
    tx: &Tx<'_>,
    session: i64,
    (agent, native, host): (&str, &str, &str),
) -> Result<Option<i64>> {
    let sql = "SELECT last_activity_ms FROM sessions
        WHERE agent = ?1 AND parent_native_id = ?2 AND host = ?3 AND parent_native_id <> ''
            AND id <> ?4
        ORDER BY last_activity_ms DESC LIMIT 1";
    let mut statement = tx.0.prepare_cached(sql)?;
    let newest =
        statement.query_row(params![agent, native, host, session], |row| row.get(0)).optional()?;
    Ok(newest.flatten())
}

/// The newest activity of a session, sub-agents' too, ms.
pub fn last_activity_ms(tx: &Tx<'_>, session: i64) -> Result<Option<i64>> {
    let sql = "SELECT last_activity_ms FROM sessions WHERE id = ?1";
    let mut statement = tx.0.prepare_cached(sql)?;
    Ok(statement.query_row([session], |row| row.get(0)).optional()?.flatten())
}

/// Notes that what made a session's activity newer than `before_ms` is no news.
pub fn note_reread(tx: &Tx<'_>, session: i64, before_ms: Option<i64>) -> Result<()> {
    let sql = "UPDATE sessions SET reread_ms = last_activity_ms
        WHERE id = ?1 AND last_activity_ms IS NOT NULL
            AND (?2 IS NULL OR last_activity_ms > ?2)";
    tx.0.prepare_cached(sql)?.execute(params![session, before_ms])?;
    Ok(())
}

/// Levels of sub-agents that activity climbs.
const LEVELS_MAX: usize = 16;

/// Carries a changed sub-agent's activity up to its root.
pub fn climb(tx: &Tx<'_>, session: i64) -> Result<()> {
    type Parent = (i64, [String; 3], Option<i64>, Option<i64>);
    let mut at = session;
    for _ in 0..LEVELS_MAX {
        let sql = "SELECT p.id, p.agent, p.native_id, p.host, p.own_clock_ms, p.child_activity_ms
            FROM sessions c JOIN sessions p
                ON p.agent = c.agent AND p.native_id = c.parent_native_id AND p.host = c.host
            WHERE c.id = ?1 AND c.parent_native_id <> '' AND p.id <> c.id LIMIT 1";
        let parent: Option<Parent> =
            tx.0.prepare_cached(sql)?
                .query_row([at], |row| {
                    let names = [row.get(1)?, row.get(2)?, row.get(3)?];
                    Ok((row.get(0)?, names, row.get(4)?, row.get(5)?))
                })
                .optional()?;
        let Some((id, [agent, native, host], own_ms, was_ms)) = parent else { return Ok(()) };
        let child_ms = child_activity(tx, id, (&agent, &native, &host))?;
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
