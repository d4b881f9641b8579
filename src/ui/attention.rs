//! What is worth telling a human who is not looking: the difference of two pictures, as text.
//!
//! An event is an edge: a session that begins to need a human, or ends. The first picture is no
//! news, and while the mirror is still catching up neither is a row that just came in.

use std::collections::BTreeMap;

use crate::snapshot::{Picture, Session};
use crate::text;

/// One line about what happened between two pictures; `None`: nothing worth it.
pub fn news(before: &Picture, after: &Picture) -> Option<String> {
    let old: BTreeMap<i64, &Session> =
        before.snapshot.sessions.iter().map(|session| (session.row_id, session)).collect();
    let settled = before.snapshot.mirror.complete;
    let mut needing = Vec::new();
    let mut ended = Vec::new();
    for session in &after.snapshot.sessions {
        let was = old.get(&session.row_id);
        let needed = was.map_or(!settled, |was| was.attention);
        let lived = was.is_some_and(|was| was.status.is_live());
        if session.attention && !needed {
            needing.push(session);
        } else if session.status.is_terminal() && lived && session.kind != "subagent" {
            ended.push(session);
        }
    }
    match (needing.as_slice(), ended.as_slice()) {
        ([], []) => None,
        ([one], []) => {
            let phase = one.phase.map_or("needs you", crate::snapshot::Phase::word);
            Some(format!("lullwatch: {phase}: {}", name(one)))
        }
        ([], [one]) => Some(format!("lullwatch: {}: {}", one.status.word(), name(one))),
        (needing, []) => Some(format!("lullwatch: {} sessions need you", needing.len())),
        ([], ended) => Some(format!("lullwatch: {} sessions ended", ended.len())),
        (needing, ended) => {
            Some(format!("lullwatch: {} need you, {} ended", needing.len(), ended.len()))
        }
    }
}

fn name(session: &Session) -> String {
    let name = session.title.as_deref().unwrap_or(&session.native_id);
    // A semicolon ends a field of OSC 777.
    text::line_up_to(name, 60).replace(';', ",")
}
