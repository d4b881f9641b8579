//! The derived ledger, its acknowledgements, and the audit.

use super::*;
use crate::lifecycle::{Basis, Entity, Status};
use crate::store::Store;
use crate::store::transitions::{self, NewTransition};

/// A step of a history: entity, before, after, origin.
type Step = (Entity, Option<Status>, Status, &'static str);

fn history_of(store: &mut Store, steps: &[Step]) -> Vec<i64> {
    let add = |tx: &Tx<'_>| {
        let mut ids = Vec::new();
        for (place, (entity, previous, status, origin)) in steps.iter().enumerate() {
            let created_ms = i64::try_from(place).unwrap() * 1_000;
            ids.push(transitions::append(
                tx,
                &NewTransition {
                    entity: *entity,
                    previous: *previous,
                    status: *status,
                    reason: "session.completed.silence",
                    summary: "",
                    basis: Basis::Inferred,
                    rule: "silence",
                    evidence: "[]",
                    actor_type: "system",
                    actor_id: "claude-mirror-reconcile",
                    created_ms,
                    ended_ms: None,
                    origin,
                    metadata: "{}",
                },
            )?);
        }
        Ok(ids)
    };
    store.write(add).unwrap()
}

fn pending_ids(store: &mut Store, consumer: &str) -> Vec<i64> {
    let entries = store.read(|tx| pending(tx, consumer, 100)).unwrap();
    let count = store.read(|tx| pending_count(tx, consumer)).unwrap();
    assert_eq!(count, entries.len() as u64);
    entries.into_iter().map(|entry| entry.id).collect()
}

const A: i64 = 1;
const B: i64 = 2;

fn session(id: i64) -> Entity {
    Entity::session(id)
}

#[test]
fn only_a_change_to_a_terminal_status_written_here_is_news() {
    let mut store = Store::in_memory(1).unwrap();
    let ids = history_of(
        &mut store,
        &[
            (session(A), None, Status::Completed, "mirror"),
            (session(B), None, Status::Running, "mirror"),
            (session(B), Some(Status::Running), Status::Idle, "mirror"),
            (session(B), Some(Status::Idle), Status::Completed, "mirror"),
            (session(B), Some(Status::Completed), Status::Completed, "mirror"),
            (session(A), Some(Status::Idle), Status::Completed, "lionagi"),
            (Entity::run(A), Some(Status::Running), Status::Failed, "mirror"),
        ],
    );
    assert_eq!(pending_ids(&mut store, OPERATOR), [ids[3], ids[6]]);
    let all = store.read(|tx| history(tx, OPERATOR, 100)).unwrap();
    let shown: Vec<i64> = all.into_iter().map(|entry| entry.id).collect();
    assert_eq!(shown, [ids[0], ids[3], ids[4], ids[5], ids[6]]);
}

#[test]
fn an_acknowledgement_removes_one_entry_and_a_second_one_changes_nothing() {
    let mut store = Store::in_memory(1).unwrap();
    let ids = history_of(
        &mut store,
        &[
            (session(A), Some(Status::Idle), Status::Completed, "mirror"),
            (session(B), Some(Status::Running), Status::Idle, "mirror"),
            (session(B), Some(Status::Idle), Status::Completed, "mirror"),
        ],
    );
    let given = [ids[0], ids[1], 999, ids[0]];
    let first = store.write(|tx| ack(tx, OPERATOR, Which::Ids(&given), 50)).unwrap();
    let expected = Acked { acked: vec![ids[0]], already: vec![ids[0]], unknown: vec![ids[1], 999] };
    assert_eq!(first, expected);
    assert_eq!(pending_ids(&mut store, OPERATOR), [ids[2]]);
    let before = store.rows_written();
    let again = store.write(|tx| ack(tx, OPERATOR, Which::Ids(&given), 60)).unwrap();
    assert_eq!(again.acked, [0; 0]);
    assert_eq!(store.rows_written(), before);
    let rest = store.write(|tx| ack(tx, OPERATOR, Which::All(Narrow::NOTHING), 70)).unwrap();
    assert_eq!(rest.acked, [ids[2]]);
    assert_eq!(pending_ids(&mut store, OPERATOR), [0; 0]);
    let shown = store.read(|tx| history(tx, OPERATOR, 100)).unwrap();
    let acked: Vec<Option<i64>> = shown.into_iter().map(|entry| entry.acked_ms).collect();
    assert_eq!(acked, [Some(50), Some(70)]);
}

#[test]
fn consumers_are_independent_and_get_what_ends_after_their_registration() {
    let mut store = Store::in_memory(1).unwrap();
    let end = (session(A), Some(Status::Idle), Status::Completed, "mirror");
    let early = history_of(&mut store, &[end]);
    store.write(|tx| register(tx, "on_terminal", 5)).unwrap();
    let late = history_of(&mut store, &[(session(B), end.1, end.2, end.3)]);
    assert_eq!(pending_ids(&mut store, OPERATOR), [early[0], late[0]]);
    assert_eq!(pending_ids(&mut store, "on_terminal"), [late[0]]);
    assert_eq!(pending_ids(&mut store, "nobody"), [0; 0]);
    store.write(|tx| ack(tx, "on_terminal", Which::All(Narrow::NOTHING), 9)).unwrap();
    assert_eq!(pending_ids(&mut store, OPERATOR), [early[0], late[0]]);
    let outside = store.write(|tx| ack(tx, "on_terminal", Which::Ids(&early), 9)).unwrap();
    assert_eq!(outside.unknown, early);
    // A second registration moves no start.
    store.write(|tx| register(tx, "on_terminal", 99)).unwrap();
    let names: Vec<(String, i64)> = store
        .read(consumers)
        .unwrap()
        .into_iter()
        .map(|consumer| (consumer.name, consumer.since_seq))
        .collect();
    assert_eq!(names, [("on_terminal".to_owned(), early[0]), (OPERATOR.to_owned(), 0)]);
}

#[test]
fn an_entry_whose_session_came_back_stays_and_says_so() {
    let mut store = Store::in_memory(1).unwrap();
    history_of(
        &mut store,
        &[
            (session(A), Some(Status::Idle), Status::Completed, "mirror"),
            (session(A), Some(Status::Completed), Status::Running, "mirror"),
            (session(A), Some(Status::Idle), Status::Completed, "mirror"),
            (session(B), Some(Status::Idle), Status::Completed, "mirror"),
            (session(B), Some(Status::Completed), Status::Idle, "mirror"),
            (Entity::run(B), Some(Status::Running), Status::Completed, "mirror"),
        ],
    );
    let entries = store.read(|tx| pending(tx, OPERATOR, 100)).unwrap();
    let superseded: Vec<bool> = entries.iter().map(|entry| entry.superseded).collect();
    assert_eq!(superseded, [true, false, true, false]);
    // The rows themselves are not in this store: an entry still has a name.
    assert_eq!(entries[0].name, "session 1");
    assert_eq!(entries[3].name, "run 2");
}

#[test]
fn history_brought_later_supersedes_by_its_own_time() {
    let mut store = Store::in_memory(1).unwrap();
    // Created at 0 and 1,000; the import comes last, with an older return.
    let steps = [
        (session(A), Some(Status::Completed), Status::Running, "lionagi"),
        (session(A), Some(Status::Idle), Status::Completed, "mirror"),
    ];
    history_of(&mut store, &steps);
    history_of(&mut store, &steps[..1]);
    let entries = store.read(|tx| pending(tx, OPERATOR, 100)).unwrap();
    assert!(!entries[0].superseded, "{entries:?}");
}

#[test]
fn acknowledging_the_last_end_settles_those_it_supersedes() {
    let mut store = Store::in_memory(0).unwrap();
    let (one, other) = (Entity::session(1), Entity::session(2));
    let (running, completed) = (Status::Running, Status::Completed);
    let ids = history_of(
        &mut store,
        &[
            (one, Some(running), completed, "mirror"),
            (one, Some(completed), running, "mirror"),
            (one, Some(running), completed, "mirror"),
            (other, Some(running), completed, "mirror"),
            (one, Some(completed), running, "mirror"),
            (one, Some(running), completed, "mirror"),
        ],
    );
    let acked = store.write(|tx| ack(tx, OPERATOR, Which::Ids(&[ids[2]]), 10)).unwrap();
    assert_eq!(acked.acked, [ids[2], ids[0]], "not the later one, nor another session's");
    assert_eq!(pending_ids(&mut store, OPERATOR), [ids[3], ids[5]]);
    let acked = store.write(|tx| ack(tx, OPERATOR, Which::Ids(&[ids[5]]), 11)).unwrap();
    assert_eq!(acked.acked, [ids[5]]);
}
