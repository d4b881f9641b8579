//! `session_index.jsonl`.

use serde_json::json;

use super::super::super::testing::read;
use super::super::super::{Agent, Hint, Place, SessionKey, Title, TitleKind};
use super::{NOW, T0, iso};

#[test]
fn the_index_names_threads_and_is_no_session() {
    let hint = Hint {
        place: Place::SessionIndex,
        stem: "session_index".to_owned(),
        folder: None,
        named_ms: None,
    };
    let mut bytes = Vec::new();
    for (id, name, second) in [("t-1", "old", 1), ("t-2", "other", 2), ("t-1", "new", 3)] {
        let line = json!({"id": id, "thread_name": name, "updated_at": iso(second)});
        bytes.extend_from_slice(format!("{line}\n").as_bytes());
    }
    bytes.extend_from_slice(b"{\"id\":\"t-3\"}\n{\"id\":[],\"thread_name\":\"x\"}\n");
    let read = read(Agent::Codex, &hint, &bytes, NOW);
    assert_eq!(read.state.key(), None);
    let title = |id: &str, text: &str| Title {
        kind: TitleKind::Custom,
        to: Some(SessionKey::top(id)),
        text: text.to_owned(),
    };
    let want = [title("t-1", "old"), title("t-2", "other"), title("t-1", "new")];
    assert_eq!(read.titles(), want.iter().collect::<Vec<_>>());
    let stamps: Vec<_> = read.records.iter().map(|record| record.at_ms.unwrap() - T0).collect();
    assert_eq!(stamps, [1000, 2000, 3000], "by them the last one wins");
}
