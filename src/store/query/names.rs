//! Names and titles for rows that say whom they are about only by an id.

use std::collections::HashMap;

use super::super::{Result, Tx};
use crate::lifecycle::{Entity, EntityType};

/// The titles of these sessions, as stored; those without one are left out.
pub fn titles(tx: &Tx<'_>, sessions: &[i64]) -> Result<HashMap<i64, String>> {
    let mut statement = tx.0.prepare_cached(
        "SELECT id, title FROM (
            SELECT id, CASE WHEN json_valid(facts) THEN json_extract(facts, '$.title') END AS title
            FROM sessions WHERE id IN (SELECT value FROM json_each(?1)))
         WHERE typeof(title) = 'text'",
    )?;
    let list = serde_json::Value::from(sessions).to_string();
    let rows = statement
        .query_map([list], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}

/// What these entities are called: `agent:native_id`, or the run's name; those whose row is gone are
/// left out.
pub fn names(tx: &Tx<'_>, entities: &[Entity]) -> Result<HashMap<Entity, String>> {
    let mut names = HashMap::new();
    for kind in [EntityType::Session, EntityType::Run] {
        let sql = match kind {
            EntityType::Session => {
                "SELECT id, agent || ':' || native_id FROM sessions
                 WHERE id IN (SELECT value FROM json_each(?1))"
            }
            EntityType::Run => {
                "SELECT id, name FROM runs WHERE id IN (SELECT value FROM json_each(?1))"
            }
        };
        let ids = entities.iter().filter(|entity| entity.kind == kind).map(|entity| entity.id);
        let list = serde_json::Value::from(ids.collect::<Vec<_>>()).to_string();
        let mut statement = tx.0.prepare_cached(sql)?;
        let mut rows = statement.query([list])?;
        while let Some(row) = rows.next()? {
            names.insert(Entity { kind, id: row.get(0)? }, row.get(1)?);
        }
    }
    Ok(names)
}
