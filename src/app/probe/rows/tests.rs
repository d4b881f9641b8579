//! From a look to rows and back: what is an end, what is worth a write, and that two rooms which do
//! not know each other mean the same by one word.

use super::*;
use crate::lifecycle::presence::{Answers, Trust, presence};
use crate::liveness::proc::{ProcessId, Run};
use crate::liveness::record::Fate;

const NOW: i64 = 1_800_000_000_000;

const FATES: [Fate; 8] = [
    Fate::Dedicated,
    Fate::Shared,
    Fate::Suspect,
    Fate::Unloaded,
    Fate::Unknown,
    Fate::Disproved,
    Fate::Gone,
    Fate::Moved,
];

fn record(pid: u32, fate: Fate) -> Record {
    let left = fate.is_end();
    let seen = (fate != Fate::Disproved).then_some(NOW - 1_000);
    Record {
        process: ProcessId { pid, start_ticks: Some(7) },
        uid: Some(0),
        source: Source::Registry,
        fate,
        fate_since_ms: NOW,
        why: "a test".to_owned(),
        scope: Scope::default(),
        first_alive_ms: seen,
        last_alive_ms: seen,
        ended_ms: if left { seen } else { None },
        names_other_since_ms: None,
        started_ms: Some(NOW - 9_000),
        run: Some(Run::Sleeping),
        says: None,
        waiting_for: None,
        says_since_ms: None,
        ever_said: false,
        entrypoint: None,
        server: false,
    }
}

fn seen(records: Vec<Record>) -> Observation {
    Observation { id: 1, records, lock: None, working: None, waiting: None, sole: None }
}

fn stored(records: &[Record]) -> Vec<Evidence> {
    rows(&seen(records.to_vec()), &[], None, &Scope::default(), NOW)
}

fn exited() -> Exited {
    Exited {
        subject: "5:7".to_owned(),
        pid: 5,
        ended_ms: NOW - 500,
        how: "exited with 0".to_owned(),
        scope: "{}".to_owned(),
    }
}

#[test]
fn the_words_of_two_processes_mean_the_same_to_those_who_look_and_to_those_who_decide() {
    for one in FATES {
        for other in FATES {
            let records = [record(1, one), record(2, other)];
            let rows = stored(&records);
            let looked = standing(&records);
            let decided = presence(&rows, Trust::Fresh, Answers::default(), true);
            assert_eq!(decided.alive, looked.alive, "{one:?} and {other:?}");
            let dedicated =
                matches!(decided.holder, crate::lifecycle::decide::Holder::Dedicated { .. });
            assert_eq!(dedicated, looked.vetoes_silence, "{one:?} and {other:?}");
            let ended = rows.iter().filter_map(|row| row.ended_ms).max();
            assert_eq!(ended, looked.end.map(|end| end.ended_ms), "{one:?} and {other:?}");
        }
    }
}

#[test]
fn records_come_back_from_their_rows_as_they_were() {
    let records: Vec<Record> =
        FATES.into_iter().zip(1..).map(|(fate, pid)| record(pid, fate)).collect();
    assert_eq!(super::records(&stored(&records)), records);
    let spoilt = Evidence { body: "{".to_owned(), ..stored(&records).remove(0) };
    assert_eq!(super::records(&[spoilt]), []);
}

#[test]
fn a_child_that_exited_ends_a_session_unless_another_process_is_on_it() {
    let ends = |records: Vec<Record>| {
        let rows = rows(&seen(records), &[exited()], None, &Scope::default(), NOW);
        rows.iter().find(|row| row.says == "exited").unwrap().ended_ms
    };
    assert_eq!(ends(vec![]), Some(NOW - 500));
    assert_eq!(ends(vec![record(1, Fate::Gone)]), Some(NOW - 500));
    assert_eq!(ends(vec![record(1, Fate::Dedicated)]), None);
    assert_eq!(ends(vec![record(1, Fate::Unknown)]), None);
}

#[test]
fn what_its_wrapper_saw_of_a_child_replaces_what_a_look_saw() {
    let child = Record { source: Source::Run, ..record(5, Fate::Gone) };
    let rows = rows(&seen(vec![child]), &[exited()], None, &Scope::default(), NOW);
    let says: Vec<&str> = rows.iter().map(|row| row.says.as_str()).collect();
    assert_eq!(says, ["exited"]);
}

#[test]
fn only_what_is_new_is_worth_a_write() {
    let before = record(1, Fate::Dedicated);
    let one = |record: &Record| stored(std::slice::from_ref(record));
    let worth = |now: &Record| news(&one(now), &one(&before));
    assert_eq!(worth(&before), News::None);
    let later = |ms: i64| Record { last_alive_ms: Some(NOW - 1_000 + ms), ..before.clone() };
    assert_eq!(worth(&later(59_999)), News::None);
    assert_eq!(worth(&later(60_000)), News::Seen);
    assert_eq!(worth(&Record { run: Some(Run::Running), ..before.clone() }), News::None);
    assert_eq!(worth(&Record { started_ms: Some(NOW - 8_000), ..before.clone() }), News::Seen);
    assert_eq!(worth(&Record { run: Some(Run::Stopped), ..before.clone() }), News::Said);
    assert_eq!(worth(&record(1, Fate::Unknown)), News::Said);
    assert_eq!(worth(&record(2, Fate::Dedicated)), News::Said);
    assert_eq!(news(&[], &one(&before)), News::Said);
}

#[test]
fn a_lock_that_stays_free_is_written_once() {
    let at = |now| {
        let writer = Writer::Lock(Observed::Free);
        rows(&seen(vec![]), &[], Some(&writer), &Scope::default(), now)
    };
    assert_eq!(news(&at(NOW), &[]), News::Said);
    assert_eq!(news(&at(NOW + 3_600_000), &at(NOW)), News::None);
}

#[test]
fn of_programs_the_oldest_is_told() {
    let process = |pid, started_ms| crate::liveness::proc::Process {
        id: ProcessId { pid, start_ticks: Some(1) },
        started_ms,
        run: Run::Sleeping,
        uid: None,
    };
    let told = |found: Vec<_>, whole| {
        let writer = Writer::Programs(Programs { found, whole });
        let row = of_writer(&writer, &Scope::default(), NOW);
        (row.says, row.pid)
    };
    assert_eq!(told(vec![], true), ("none".to_owned(), None));
    assert_eq!(told(vec![], false), ("unknown".to_owned(), None));
    let both = vec![process(1, Some(9)), process(2, Some(5))];
    assert_eq!(told(both, true), ("some".to_owned(), Some(2)));
    let unknown = vec![process(1, Some(9)), process(3, None)];
    assert_eq!(told(unknown, true), ("some".to_owned(), Some(3)));
}
