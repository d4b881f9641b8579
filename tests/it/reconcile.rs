//! Passes over stored rows: admission, windows, returns, clocks, and what is not written.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use lullwatch::delivery::{self, AuditTotals};
use lullwatch::lifecycle::apply::{After, Malformed, Outcome, Override};
use lullwatch::lifecycle::decide::Holder;
use lullwatch::lifecycle::known::Process;
use lullwatch::lifecycle::policy::{EdgeKind, Refusal, reason, reconciler};
use lullwatch::lifecycle::{self, Actor, EndStamp, Entity, Status};
use lullwatch::reconcile;
use lullwatch::store::evidence::{self, Evidence};
use rstest::rstest;

use crate::bed::{Bed, DAY, ENDED, HOUR, LIVE, MINUTE, SECOND, T0, request};

fn claude() -> Actor {
    reconciler("claude").unwrap()
}

#[rstest]
#[case::running(T0 + HOUR, T0 + HOUR, &["none>running session.admitted.activity"], 0)]
#[case::idle(T0 + HOUR, T0 + 2 * HOUR, &["none>idle session.admitted.silence"], 0)]
#[case::completed_long_before_the_epoch(
    T0 - 40 * DAY, T0 + HOUR, &["none>completed session.admitted.ended"], 0
)]
#[case::completed_at_the_epoch(
    T0 - ENDED, T0 + HOUR, &["none>completed session.admitted.ended"], 0
)]
#[case::completed_after_the_epoch(
    T0 - ENDED + 1, T0 + HOUR,
    &["none>idle session.admitted.silence", "idle>completed session.completed.silence"], 1
)]
fn admission(#[case] last: i64, #[case] now: i64, #[case] story: &[&str], #[case] pending: u64) {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", last);
    bed.pass_at(now);
    assert_eq!(bed.story(id), story);
    assert_eq!(bed.pending(), pending);
    assert_eq!(bed.audit(), AuditTotals::default());
}

#[test]
fn a_session_is_admitted_once_its_family_is_read_and_not_before() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.look.unobserved.insert(id);
    let pass = bed.pass_at(T0 + MINUTE);
    assert_eq!((pass.unobserved, pass.checked), (1, 0));
    assert_eq!(bed.status(id), None);
    bed.look.unobserved.clear();
    bed.pass();
    assert_eq!(bed.status(id), Some(Status::Running));
}

#[test]
fn without_a_clock_nothing_is_admitted_and_nothing_is_asked_again() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.sql("UPDATE sessions SET last_activity_ms = NULL, own_clock_ms = NULL", []);
    assert_eq!(bed.pass_at(T0 + MINUTE).checked, 0);
    assert_eq!(bed.status(id), None);
    let written = bed.store.rows_written();
    bed.pass();
    assert_eq!(bed.store.rows_written(), written);
}

#[test]
fn sub_agents_get_no_status() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.sql("UPDATE sessions SET nested = 1", []);
    let pass = bed.pass_at(T0 + MINUTE);
    assert_eq!(pass.checked, 0);
    assert_eq!(bed.status(id), None);
    let refused = request(&bed, id, Status::Running, reason::ADMITTED_ACTIVITY, claude());
    assert_eq!(bed.apply(refused), Outcome::Rejected(Refusal::NoEdge));
}

#[rstest]
#[case::just_inside_the_live_window(LIVE - 1, Status::Running)]
#[case::at_the_live_window(LIVE, Status::Running)]
#[case::past_the_live_window(LIVE + 1, Status::Idle)]
#[case::just_inside_the_ended_window(ENDED - 1, Status::Idle)]
#[case::at_the_ended_window(ENDED, Status::Idle)]
#[case::past_the_ended_window(ENDED + 1, Status::Completed)]
fn exactly_at_a_window_the_old_status_holds(#[case] silence: i64, #[case] status: Status) {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.pass_at(T0 + SECOND);
    bed.pass_at(T0 + SECOND + silence);
    assert_eq!(bed.status(id), Some(status));
}

#[test]
fn a_row_is_due_at_its_deadline_and_nothing_is_written_before() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.pass_at(T0 + 2 * SECOND);
    let deadline = T0 + SECOND + LIVE + 1;
    assert_eq!(reconcile::next_deadline(&mut bed.store, 0).unwrap(), Some(deadline));
    let written = bed.store.rows_written();
    let pass = bed.pass_at(deadline - 1);
    assert_eq!((pass.checked, bed.store.rows_written()), (0, written));
    let pass = bed.pass_at(deadline);
    assert_eq!((pass.checked, pass.moved.len()), (1, 1));
    assert_eq!(bed.status(id), Some(Status::Idle));
    let next = reconcile::next_deadline(&mut bed.store, 0).unwrap();
    assert_eq!(next, Some(T0 + SECOND + ENDED + 1));
    bed.pass_at(T0 + SECOND + ENDED + 1);
    assert_eq!(reconcile::next_deadline(&mut bed.store, 0).unwrap(), None);
}

#[test]
fn a_second_run_writes_no_row() {
    let mut bed = Bed::new();
    for (place, last) in [T0, T0 - DAY, T0 - 40 * DAY, T0 + HOUR].into_iter().enumerate() {
        bed.session("claude", &place.to_string(), last);
    }
    bed.pass_at(T0 + HOUR);
    bed.reopen();
    let written = bed.store.rows_written();
    bed.pass();
    assert_eq!(bed.store.rows_written(), written);
}

#[test]
fn a_pass_in_small_batches_is_a_pass() {
    let mut bed = Bed::new();
    for number in 0..25 {
        bed.session("codex", &number.to_string(), T0 + SECOND);
    }
    let options = reconcile::Options { batch_rows: 4 };
    let (look, windows) = (bed.look.clone(), crate::bed::WINDOWS);
    let pass = reconcile::tick(&mut bed.store, &look, windows, T0 + MINUTE, options).unwrap();
    assert_eq!((pass.checked, pass.count(EdgeKind::Admission)), (25, 25));
}

#[test]
fn a_late_old_line_counts_and_changes_no_status() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + MINUTE);
    bed.pass_at(T0 + MINUTE);
    bed.pass_at(T0 + 2 * DAY);
    assert_eq!(bed.status(id), Some(Status::Completed));
    let story = bed.story(id);
    for stamp in [T0 + SECOND, T0 + MINUTE] {
        bed.activity(id, stamp);
        bed.pass_at(bed.now + MINUTE);
    }
    assert_eq!(bed.story(id), story);
    assert_eq!(bed.audit(), AuditTotals::default());
}

#[test]
fn a_line_stamped_after_the_end_brings_it_back_whatever_its_age_when_read() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + MINUTE);
    bed.pass_at(T0 + MINUTE);
    bed.pass_at(T0 + 2 * DAY);
    bed.activity(id, T0 + 3 * DAY);
    bed.pass_at(T0 + 10 * DAY);
    let story = bed.story(id);
    assert_eq!(
        story[3..],
        [
            "completed>running session.reactivated.activity",
            "running>idle session.idle.silence",
            "idle>completed session.completed.silence"
        ]
    );
    assert_eq!(bed.audit(), AuditTotals { overrides: 1, ..AuditTotals::default() });
    assert_eq!(bed.pending(), 2);
    let end = EndStamp { at_ms: T0 + 3 * DAY, approximate: true, duration_ms: None };
    assert_eq!(bed.end(id), Some(end));
}

#[test]
fn a_return_after_an_exit_is_counted_apart() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.end_marker(id, T0 + MINUTE);
    bed.pass_at(T0 + 2 * MINUTE);
    assert_eq!(bed.status(id), Some(Status::Completed));
    bed.activity(id, T0 + 3 * MINUTE);
    bed.pass_at(T0 + 3 * MINUTE);
    assert_eq!(bed.status(id), Some(Status::Running));
    let totals = AuditTotals { overrides_after_exit: 1, ..AuditTotals::default() };
    assert_eq!(bed.audit(), totals);
}

#[test]
fn a_sub_agent_that_finishes_after_its_parents_exit_brings_nobody_back() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.end_marker(id, T0 + MINUTE);
    bed.pass_at(T0 + MINUTE);
    bed.child_activity(id, T0 + 2 * MINUTE);
    bed.pass_at(T0 + 2 * MINUTE);
    assert_eq!(bed.status(id), Some(Status::Completed));
    bed.child_activity(id, T0 + 2 * MINUTE + 1);
    bed.pass_at(T0 + 2 * MINUTE + 1);
    assert_eq!(bed.status(id), Some(Status::Running));
}

#[test]
fn a_grown_window_or_a_live_process_revives_nothing() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.pass_at(T0 + SECOND);
    bed.pass_at(T0 + 2 * DAY);
    bed.look.processes.insert(
        id,
        Process { holder: Holder::Dedicated { pid: 42 }, working_ms: Some(T0 + 2 * DAY) },
    );
    let wide = lifecycle::Windows { live_ms: LIVE, ended_ms: 30 * DAY };
    bed.sql("UPDATE sessions SET dirty = 1", []);
    let look = bed.look.clone();
    let pass = reconcile::tick(&mut bed.store, &look, wide, bed.now, reconcile::Options::default());
    assert_eq!(pass.unwrap().moved, []);
    assert_eq!(bed.status(id), Some(Status::Completed));
}

#[test]
fn the_ends_of_a_session_have_their_own_times() {
    let mut bed = Bed::new();
    let exact = bed.session("claude", "exact", T0 + SECOND);
    bed.end_marker(exact, T0 + MINUTE);
    let silent = bed.session("claude", "silent", T0 + SECOND);
    let gone = bed.session("claude", "gone", T0 + SECOND);
    let process = Evidence {
        source: "registry".to_owned(),
        subject: "42".to_owned(),
        says: "gone".to_owned(),
        since_ms: T0 + HOUR,
        first_ms: T0,
        last_ms: T0 + MINUTE,
        ended_ms: Some(T0 + MINUTE),
        ..Evidence::default()
    };
    bed.store.write(|tx| evidence::record(tx, gone, &process)).unwrap();
    bed.pass_at(T0 + 2 * DAY);
    let end = |at_ms, approximate, duration_ms| Some(EndStamp { at_ms, approximate, duration_ms });
    assert_eq!(bed.end(exact), end(T0 + MINUTE, false, Some(59 * SECOND)));
    assert_eq!(bed.end(silent), end(T0 + SECOND, true, None));
    assert_eq!(bed.end(gone), end(T0 + MINUTE, true, None));
    assert_eq!(bed.story(gone)[1], "idle>completed session.completed.exited");
}

#[test]
fn a_dedicated_holder_keeps_a_session_idle_until_it_lets_go() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.pass_at(T0 + SECOND);
    let process = Process { holder: Holder::Dedicated { pid: 42 }, working_ms: None };
    bed.look.processes.insert(id, process);
    bed.pass_at(T0 + 2 * DAY);
    assert_eq!(bed.status(id), Some(Status::Idle));
    let written = bed.store.rows_written();
    let pass = bed.pass_at(T0 + 3 * DAY);
    assert_eq!((pass.checked, bed.store.rows_written()), (1, written));
    bed.look.processes.clear();
    bed.pass_at(T0 + 3 * DAY + 1);
    assert_eq!(bed.status(id), Some(Status::Completed));
}

#[test]
fn a_working_process_brings_an_idle_session_back_by_its_own_reason() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.pass_at(T0 + SECOND);
    bed.pass_at(T0 + HOUR);
    let process = Process { holder: Holder::Dedicated { pid: 42 }, working_ms: Some(T0 + HOUR) };
    bed.look.processes.insert(id, process);
    bed.pass();
    assert_eq!(bed.story(id)[2], "idle>running session.running.process");
    let last: i64 = bed.value("SELECT last_activity_ms FROM sessions", []);
    assert_eq!(last, T0 + SECOND, "a status moves no clock");
}

#[test]
fn an_unobserved_row_keeps_its_status() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.pass_at(T0 + SECOND);
    bed.look.unobserved.insert(id);
    let written = bed.store.rows_written();
    let pass = bed.pass_at(T0 + 3 * DAY);
    assert_eq!((pass.unobserved, pass.moved.len()), (1, 0));
    assert_eq!(bed.store.rows_written(), written);
    bed.look.unobserved.clear();
    assert_eq!(bed.pass().moved.len(), 2);
    assert_eq!(bed.status(id), Some(Status::Completed));
}

#[test]
fn after_a_jump_of_the_clock_silence_ends_nothing_until_the_hold_is_over() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.pass_at(T0 + SECOND);
    bed.look.hold_silence = true;
    let pass = bed.pass_at(T0 + 3 * DAY);
    assert_eq!((pass.held, bed.status(id)), (1, Some(Status::Idle)));
    let written = bed.store.rows_written();
    assert_eq!(bed.pass().held, 1);
    assert_eq!(bed.store.rows_written(), written);
    bed.look.hold_silence = false;
    bed.pass();
    assert_eq!(bed.status(id), Some(Status::Completed));
}

#[test]
fn history_waits_for_its_admission_while_silence_is_held() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 - 40 * DAY);
    bed.look.hold_silence = true;
    bed.pass_at(T0 + MINUTE);
    assert_eq!(bed.status(id), None);
    bed.look.hold_silence = false;
    bed.pass_at(T0 + 10 * MINUTE);
    assert_eq!(bed.story(id), ["none>completed session.admitted.ended"]);
    assert_eq!(bed.pending(), 0);
}

#[test]
fn an_idle_session_stays_idle_when_the_clock_is_set_back_and_ends_in_time() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + 10 * DAY);
    bed.pass_at(T0 + 10 * DAY);
    bed.pass_at(T0 + 10 * DAY + HOUR);
    assert_eq!(bed.status(id), Some(Status::Idle));
    let pass = bed.pass_at(T0 + HOUR);
    assert_eq!((pass.anchored, pass.moved.len()), (1, 0));
    bed.pass_at(T0 + HOUR + ENDED - LIVE - 1);
    assert_eq!(bed.status(id), Some(Status::Idle));
    bed.pass_at(T0 + HOUR + ENDED - LIVE);
    assert_eq!(bed.status(id), Some(Status::Completed));
}

#[test]
fn a_locked_store_fails_the_pass_and_loses_nothing() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.reopen_impatient();
    bed.sql("BEGIN IMMEDIATE", []);
    bed.now = T0 + MINUTE;
    let (look, options) = (bed.look.clone(), reconcile::Options::default());
    let failed = reconcile::tick(&mut bed.store, &look, crate::bed::WINDOWS, bed.now, options);
    assert!(matches!(failed, Err(lullwatch::store::StoreError::Busy { .. })));
    bed.sql("ROLLBACK", []);
    assert_eq!(bed.status(id), None);
    bed.pass();
    assert_eq!(bed.story(id), ["none>running session.admitted.activity"]);
}

#[test]
fn a_stamp_ahead_of_the_clock_is_set_back_once_and_goes_idle_in_time() {
    let mut bed = Bed::new();
    // Read while the clock was an hour ahead; then it was set right.
    let id = bed.session("claude", "a", T0 + HOUR);
    bed.pass_at(T0 + HOUR);
    assert_eq!(bed.status(id), Some(Status::Running));
    let pass = bed.pass_at(T0);
    assert_eq!(pass.anchored, 1);
    let ahead: i64 = bed.value("SELECT clock_ahead FROM sessions", []);
    assert_eq!(ahead, 1);
    assert_eq!(bed.pass_at(T0 + LIVE).anchored, 0);
    assert_eq!(bed.status(id), Some(Status::Running));
    bed.pass_at(T0 + LIVE + 1);
    assert_eq!(bed.status(id), Some(Status::Idle));
    // The stamp's own moment passes: nothing happened then.
    bed.pass_at(T0 + HOUR + SECOND);
    assert_eq!(bed.status(id), Some(Status::Idle));
    assert_eq!(bed.audit(), AuditTotals::default());
}

#[test]
fn one_bad_session_never_stops_the_others() {
    let mut bed = Bed::new();
    let facts = bed.session("claude", "facts", T0 + SECOND);
    bed.sql("UPDATE sessions SET facts = '{torn'", []);
    let word = bed.session("claude", "word", T0 + SECOND);
    bed.sql("UPDATE sessions SET status = 'napping' WHERE id = ?1", [word]);
    bed.session("emacs", "agent", T0 + SECOND);
    let good = bed.session("claude", "good", T0 + SECOND);
    let pass = bed.pass_at(T0 + MINUTE);
    assert_eq!(bed.status(good), Some(Status::Running));
    // Its columns speak where its facts do not.
    assert_eq!(pass.facts_unreadable, [facts]);
    assert_eq!(bed.status(facts), Some(Status::Running));
    let reasons: Vec<&str> = pass.set_aside.iter().map(|(_, why)| why.as_str()).collect();
    assert_eq!(reasons, ["status `napping`", "agent `emacs`"]);
    let written = bed.store.rows_written();
    bed.pass();
    assert_eq!(bed.store.rows_written(), written);
}

/// A value that cannot be read turns up behind the first of two moves: the row is as before, and due.
#[test]
fn a_walk_that_fails_half_way_leaves_the_row_as_it_was_and_due() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    let good = bed.session("claude", "b", T0 + SECOND);
    bed.pass_at(T0 + MINUTE);
    bed.execute(&format!(
        "CREATE TRIGGER spoil AFTER UPDATE OF status ON sessions
         WHEN new.id = {id} AND new.status = 'idle'
         BEGIN UPDATE sessions SET status = 'napping' WHERE id = new.id; END"
    ));
    let told = |bed: &mut Bed| (bed.story(id), bed.deadline(id), bed.version(id));
    let before = told(&mut bed);
    let pass = bed.pass_at(T0 + 2 * DAY);
    assert_eq!((bed.status(id), told(&mut bed)), (Some(Status::Running), before));
    assert_eq!(pass.undone, [(id, "status `napping`".to_owned())]);
    assert_eq!(pass.set_aside, []);
    assert!(pass.moved.iter().all(|moved| moved.session_id == good), "{:?}", pass.moved);
    assert_eq!(bed.status(good), Some(Status::Completed));
    bed.execute("DROP TRIGGER spoil");
    bed.pass();
    assert_eq!(bed.status(id), Some(Status::Completed));
}

#[test]
fn what_is_not_as_it_was_read_is_a_conflict_and_leaves_nothing() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.pass_at(T0 + 2 * SECOND);
    let before = bed.dump();
    let lull = request(&bed, id, Status::Idle, reason::IDLE_SILENCE, claude());
    let mut other_status = lull.clone();
    other_status.expected_status = Some(Status::Completed);
    assert_eq!(bed.apply(other_status), Outcome::Conflict);
    let mut old_version = lull.clone();
    old_version.expected_version -= 1;
    assert_eq!(bed.apply(old_version), Outcome::Conflict);
    assert_eq!(bed.dump(), before);
    // Activity between reading and writing moves the version, and a status that rests on silence
    // must not be written over it.
    bed.activity(id, T0 + 3 * SECOND);
    assert_eq!(bed.apply(lull), Outcome::Conflict);
    assert_eq!(bed.status(id), Some(Status::Running));
}

#[test]
fn a_status_moves_the_version_by_one_and_its_own_repetition_does_not() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.pass_at(T0 + 2 * SECOND);
    let version = bed.version(id);
    let lull = request(&bed, id, Status::Idle, reason::IDLE_SILENCE, claude());
    let applied = bed.apply(lull);
    assert!(matches!(applied, Outcome::Applied { version: next, .. } if next == version + 1));
    assert_eq!(bed.version(id), version + 1);
    let mut again = request(&bed, id, Status::Idle, reason::IDLE_SILENCE, claude());
    again.evidence = vec!["seen again".to_owned()];
    let rows = bed.history(Entity::session(id)).len();
    assert_eq!(bed.apply(again.clone()), Outcome::Unchanged);
    assert_eq!((bed.version(id), bed.history(Entity::session(id)).len()), (version + 1, rows));
    let kept: String = bed.value("SELECT evidence FROM sessions", []);
    assert_eq!(kept, r#"["seen again"]"#);
    let written = bed.store.rows_written();
    assert_eq!(bed.apply(again), Outcome::Unchanged);
    assert_eq!(bed.store.rows_written(), written);
}

#[test]
fn the_same_rejection_counts_up_and_another_is_another_row() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.pass_at(T0 + 2 * SECOND);
    let stranger = Actor::new(lifecycle::ActorType::System, "someone");
    for second in 0..3 {
        bed.now += second * SECOND;
        let mut refused = request(&bed, id, Status::Idle, reason::IDLE_SILENCE, stranger.clone());
        refused.evidence = vec![format!("look {second}")];
        assert_eq!(bed.apply(refused), Outcome::Rejected(Refusal::Actor));
    }
    let other = request(&bed, id, Status::Idle, reason::COMPLETED_SILENCE, claude());
    assert_eq!(bed.apply(other), Outcome::Rejected(Refusal::Reason));
    let events = bed.store.read(|tx| delivery::audit(tx, 10)).unwrap();
    let seen: Vec<(u64, &str)> =
        events.iter().map(|event| (event.repeats, event.details.why.as_str())).collect();
    assert_eq!(
        seen,
        [
            (1, "the edge does not take this reason (system)"),
            (3, "this actor may not write it (system)")
        ]
    );
    assert_eq!((events[1].created_ms, events[1].last_ms), (T0 + 2 * SECOND, T0 + 5 * SECOND));
    assert_eq!(bed.audit().rejections, 4);
}

#[test]
fn a_terminal_exit_by_an_old_version_is_rejected_before_it_is_a_conflict() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.end_marker(id, T0 + SECOND);
    bed.pass_at(T0 + MINUTE);
    let mut back = request(&bed, id, Status::Running, reason::REACTIVATED_ACTIVITY, claude());
    back.expected_version -= 1;
    assert_eq!(bed.apply(back.clone()), Outcome::Rejected(Refusal::OverrideMissing));
    back.override_by = Some(Override {
        actor: claude().id,
        justification: "a test".to_owned(),
        after: After::Exit,
        gap_ms: None,
    });
    assert_eq!(bed.apply(back.clone()), Outcome::Conflict);
    assert_eq!(bed.audit().overrides_after_exit, 0);
    back.expected_version += 1;
    assert!(matches!(bed.apply(back), Outcome::Applied { kind: EdgeKind::OverrideOnly, .. }));
    assert_eq!(bed.audit().overrides_after_exit, 1);
}

#[test]
fn a_malformed_request_never_becomes_a_command() {
    let bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    let good = || request(&bed, id, Status::Idle, reason::ADMITTED_SILENCE, claude());
    assert!(good().check().is_ok());
    let mut nobody = good();
    nobody.actor.id = String::new();
    assert_eq!(nobody.check(), Err(Malformed::NoActor));
    let mut reasonless = good();
    reasonless.reason = "session.idle.whim".to_owned();
    let why = reasonless.check();
    assert_eq!(why, Err(Malformed::Reason("session.idle.whim".to_owned())));
    let mut ended = good();
    ended.end = Some(EndStamp { at_ms: T0, approximate: true, duration_ms: None });
    assert_eq!(ended.check(), Err(Malformed::End("idle")));
    let mut endless = good();
    endless.to = Status::Completed;
    assert_eq!(endless.clone().check(), Err(Malformed::End("completed")));
    endless.end = Some(EndStamp { at_ms: T0, approximate: true, duration_ms: Some(1) });
    assert_eq!(endless.clone().check(), Err(Malformed::Duration));
    endless.end = Some(EndStamp { at_ms: T0, approximate: false, duration_ms: Some(-1) });
    assert_eq!(endless.check(), Err(Malformed::Duration));
    let mut unjustified = good();
    unjustified.override_by = Some(Override {
        actor: claude().id,
        justification: " ".to_owned(),
        after: After::Exit,
        gap_ms: None,
    });
    assert_eq!(unjustified.check(), Err(Malformed::Override));
}

#[test]
fn history_row_and_audit_stand_or_fall_with_the_callers_transaction() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    let before = bed.dump();
    let command =
        request(&bed, id, Status::Running, reason::ADMITTED_ACTIVITY, claude()).check().unwrap();
    let failed: lullwatch::store::Result<()> = bed.store.write(|tx| {
        let outcome = lifecycle::apply(tx, &command)?;
        assert!(matches!(outcome, Outcome::Applied { .. }));
        Err(lullwatch::store::StoreError::Value("and then something failed".to_owned()))
    });
    assert!(failed.is_err());
    assert_eq!(bed.dump(), before);
}

#[test]
fn an_end_that_was_inferred_and_is_seen_later_is_confirmed_without_a_row() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.pass_at(T0 + SECOND);
    bed.pass_at(T0 + 2 * DAY);
    let story = bed.story(id);
    bed.end_marker(id, T0 + MINUTE);
    bed.pass();
    assert_eq!(bed.story(id), story);
    let evidence: String = bed.value("SELECT evidence FROM sessions", []);
    assert_eq!(evidence, r#"["cost-state 2026-11-30T09:01:00.000Z"]"#);
    let written = bed.store.rows_written();
    bed.pass();
    assert_eq!(bed.store.rows_written(), written);
}

#[test]
fn new_windows_have_every_live_session_decided_on_again() {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.pass_at(T0 + MINUTE);
    assert_eq!(bed.status(id), Some(Status::Running));
    let short = lifecycle::Windows { live_ms: 10 * SECOND, ended_ms: HOUR };
    lifecycle::windows::set_windows(&mut bed.store, short).unwrap();
    let look = bed.look.clone();
    let options = reconcile::Options::default();
    reconcile::tick(&mut bed.store, &look, short, bed.now, options).unwrap();
    assert_eq!(bed.status(id), Some(Status::Idle));
}
