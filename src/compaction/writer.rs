//! The writer's side: how a new lifecycle of a dsh session says that it does not own its seed.
//!
//! A log alone cannot tell a compaction under way from one whose process died: both are a start
//! without an end. So whoever constructs a session over an explicit seed appends one log-only
//! `session/end-seed` as the first write of the new lifecycle. lullwatch writes no such logs except
//! for `lullwatch demo` and its tests; this is the whole rule, pure, in one constructor through
//! which all six ways into a session pass.
//!
//! It knows no files. [`Log::first_batch`] is what reaches disk first and together; a caller whose
//! write of it fails has no session.

use serde_json::{Map, Value, json};

/// The type of the boundary row.
pub const END_SEED: &str = "session/end-seed";

/// One row of a session log.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its type.
    pub kind: String,
    /// Its position, contiguous from 0.
    pub seq: u64,
    /// Its stamp, ms.
    pub at_ms: i64,
    /// Its payload.
    pub data: Value,
}

impl Row {
    /// The line as written, newline included.
    pub fn line(&self) -> String {
        let mut object = Map::new();
        object.insert("type".to_owned(), json!(self.kind));
        object.insert("seq".to_owned(), json!(self.seq));
        object.insert("time".to_owned(), json!(self.at_ms));
        object.insert("data".to_owned(), self.data.clone());
        if matches!(self.kind.as_str(), "user/message" | "assistant/message" | "tool/result") {
            object.insert("surfaceOp".to_owned(), json!("append"));
        }
        format!("{}\n", Value::Object(object))
    }
}

/// A session log in the hands of its writer.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    rows: Vec<Row>,
    /// Rows that were on disk before this lifecycle.
    persisted: usize,
    /// Rows that the constructor put there; nobody can have subscribed before.
    constructed: usize,
    first_live_seq: u64,
}

impl Log {
    /// Resume: what stands on disk is read, repaired, and is the seed.
    pub fn resume(persisted: Vec<Row>, now_ms: i64) -> Self {
        let on_disk = persisted.len();
        Self::construct(Some(repaired(persisted)), on_disk, now_ms)
    }

    /// A configured agent's session: resumed where its id is on disk, fresh where it is not.
    pub fn configured_start(persisted: Option<Vec<Row>>, now_ms: i64) -> Self {
        match persisted {
            Some(rows) => Self::resume(rows, now_ms),
            None => Self::construct(None, 0, now_ms),
        }
    }

    /// Fork at the `turn/end` with `anchor_seq`: the seed goes on through what follows outside any
    /// turn, so an open standalone compaction of the source is copied too. The source stays as is.
    pub fn fork(source: &[Row], anchor_seq: u64, now_ms: i64) -> Self {
        let cut = source
            .iter()
            .position(|row| row.seq > anchor_seq && row.kind == "turn/start")
            .unwrap_or(source.len());
        Self::construct(Some(source.iter().take(cut).cloned().collect()), 0, now_ms)
    }

    /// A sub-agent that forks its parent: clipped to the parent's last `turn/end`.
    pub fn sub_agent_fork(parent: &[Row], now_ms: i64) -> Self {
        let last = parent.iter().rposition(|row| row.kind == "turn/end");
        let cut = last.map_or(0, |at| at + 1);
        Self::construct(Some(parent.iter().take(cut).cloned().collect()), 0, now_ms)
    }

    /// Adopt a prefix that lives in another process.
    pub fn adopt(prefix: Vec<Row>, now_ms: i64) -> Self {
        Self::construct(Some(prefix), 0, now_ms)
    }

    /// Bare creation. `Some` of no rows is an explicit, empty seed; `None` is a fresh session.
    pub fn create(seed: Option<Vec<Row>>, now_ms: i64) -> Self {
        Self::construct(seed, 0, now_ms)
    }

    /// The one constructor: the only place that writes the boundary.
    fn construct(seed: Option<Vec<Row>>, persisted: usize, now_ms: i64) -> Self {
        let explicit = seed.is_some();
        let mut rows = seed.unwrap_or_default();
        let first_live_seq = rows.last().map_or(0, |row| row.seq.saturating_add(1));
        let marked = rows.last().is_some_and(|row| row.kind == END_SEED);
        if explicit && !marked {
            rows.push(Row {
                kind: END_SEED.to_owned(),
                seq: first_live_seq,
                at_ms: now_ms,
                data: json!({}),
            });
        }
        Self { constructed: rows.len(), rows, persisted, first_live_seq }
    }

    /// Appends a live row and returns its seq.
    pub fn append(&mut self, kind: &str, data: Value, at_ms: i64) -> u64 {
        let seq = self.rows.last().map_or(0, |row| row.seq.saturating_add(1));
        self.rows.push(Row { kind: kind.to_owned(), seq, at_ms, data });
        seq
    }

    /// The seq of the new lifecycle's first write: of the boundary, where one was written.
    pub fn first_live_seq(&self) -> u64 {
        self.first_live_seq
    }

    /// Every row, in order.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// What is to be written first, in one batch and in order: what of the seed is not on disk yet,
    /// and the boundary. If it is lost, all that comes after it is lost with it.
    pub fn first_batch(&self) -> &[Row] {
        self.rows.get(self.persisted..self.constructed).unwrap_or_default()
    }

    /// What subscribers see: only rows appended after construction.
    pub fn live(&self) -> &[Row] {
        self.rows.get(self.constructed..).unwrap_or_default()
    }

    /// The whole log as text, under that header.
    pub fn text(&self, header: &Value) -> String {
        let lines: String = self.rows.iter().map(Row::line).collect();
        format!("{header}\n{lines}")
    }
}

/// What a repair appends to a log whose process died: results for unanswered calls, the end of an
/// open step, the end of an open turn; all stamped like the last row. Inspecting a log computes
/// these and writes nothing. A compaction is not repaired: its close would be a lie.
pub fn closers(rows: &[Row]) -> Vec<Row> {
    let mut calls: Vec<&Value> = Vec::new();
    let mut step = None;
    let mut turn = None;
    for row in rows {
        match row.kind.as_str() {
            "turn/start" => turn = Some(&row.data),
            "turn/end" => turn = None,
            "step/start" => step = Some(&row.data),
            "step/end" => step = None,
            "tool/call" => calls.push(&row.data),
            "tool/result" => {
                let id = row.data.pointer("/message/source/callId");
                calls.retain(|call| call.get("callId") != id);
            }
            _ => {}
        }
    }
    let mut found: Vec<(&str, Value)> = Vec::new();
    for call in calls {
        found.push(("tool/result", unanswered(call)));
    }
    if let Some(step) = step {
        found.push(("step/end", step.clone()));
    }
    if let Some(turn) = turn.and_then(|data| data.get("turn")) {
        let data = json!({"turn": turn, "reason": {"kind": "interrupted"}});
        found.push(("turn/end", data));
    }
    let (next, at_ms) = rows.last().map_or((0, 0), |row| (row.seq.saturating_add(1), row.at_ms));
    (next..)
        .zip(found)
        .map(|(seq, (kind, data))| Row { kind: kind.to_owned(), seq, at_ms, data })
        .collect()
}

fn repaired(mut rows: Vec<Row>) -> Vec<Row> {
    let more = closers(&rows);
    rows.extend(more);
    rows
}

fn unanswered(call: &Value) -> Value {
    let id = call.get("callId");
    json!({
        "turn": call.get("turn"),
        "step": call.get("step"),
        "message": {
            "role": "user",
            "source": {"kind": "tool", "callId": id},
            "content": [{
                "type": "tool-result",
                "toolCallId": id,
                "isError": true,
                "content": [{"type": "text", "text": "The outcome of this call is unknown."}],
            }],
        },
    })
}

#[cfg(test)]
mod tests;
