//! The verification arms of ADR-0109, each a test of that name.
//!
//! All go through `lifecycle::apply`. The sessions are active after their root's epoch, so that
//! admission alone satisfies none; what is asserted are counts, not presence.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use lullwatch::delivery::AuditTotals;
use lullwatch::lifecycle::apply::{Outcome, Request};
use lullwatch::lifecycle::consumers::stream_open;
use lullwatch::lifecycle::migrate::{self, Migrated};
use lullwatch::lifecycle::policy::{self, EdgeKind, Refusal, reason, reconciler};
use lullwatch::lifecycle::run::{Cause, Ended};
use lullwatch::lifecycle::{
    self, Actor, ActorType, Basis, EndStamp, Entity, Status, Windows, windows,
};
use lullwatch::reconcile::{self, Options};
use lullwatch::store::runs::{self, NewRun};
use lullwatch::store::transitions::{self, NewTransition};

use crate::bed::{Bed, DAY, ENDED, HOUR, LIVE, MINUTE, SECOND, T0, WINDOWS, request};

fn claude() -> Actor {
    reconciler("claude").unwrap()
}

/// A session that was active after the epoch and admitted running.
fn running(bed: &mut Bed, native: &str) -> i64 {
    let id = bed.session("claude", native, bed.now + SECOND);
    bed.pass_at(bed.now + 2 * SECOND);
    assert_eq!(bed.status(id), Some(Status::Running));
    id
}

/// A lull past the live window, told to whatever reconciler there is.
fn quiet_script(reconcile: fn(&mut Bed)) -> Result<(), String> {
    let mut bed = Bed::new();
    let id = bed.session("claude", "a", T0 + SECOND);
    bed.now = T0 + 2 * SECOND;
    reconcile(&mut bed);
    if bed.status(id) != Some(Status::Running) {
        return Err(format!("not running: {:?}", bed.status(id)));
    }
    bed.now = T0 + SECOND + LIVE + 1;
    reconcile(&mut bed);
    let status = bed.status(id).unwrap();
    if status.is_terminal() {
        return Err(format!("{} after a lull", status.word()));
    }
    let since: i64 = bed.value("SELECT status_since_ms FROM sessions WHERE id = ?1", [id]);
    if stream_open(status, since, bed.now + 2 * MINUTE) {
        Ok(())
    } else {
        Err("its stream has closed".to_owned())
    }
}

/// What mirrors did before ADR-0109: silence past the live window is the end. For these tests only.
fn two_status_reconciler(bed: &mut Bed) {
    bed.sql(
        "UPDATE sessions SET status_since_ms = ?1, status =
            CASE WHEN ?1 - last_activity_ms <= ?2 THEN 'running' ELSE 'completed' END",
        [bed.now, LIVE],
    );
}

#[test]
fn quiet_past_live_window_is_not_terminal_and_its_stream_stays_open() {
    let ours = quiet_script(|bed| {
        bed.pass();
    });
    assert_eq!(ours, Ok(()));
    let theirs = quiet_script(two_status_reconciler);
    assert_eq!(theirs, Err("completed after a lull".to_owned()));
}

#[test]
fn ended_transcript_reaches_a_terminal_status() {
    let mut bed = Bed::new();
    let id = running(&mut bed, "a");
    bed.end_marker(id, T0 + MINUTE);
    bed.pass_at(T0 + 2 * MINUTE);
    assert_eq!(bed.status(id), Some(Status::Completed));
    let since = bed.now;
    assert!(!stream_open(Status::Completed, since, since + MINUTE + 1));
    assert_eq!(
        bed.story(id),
        ["none>running session.admitted.activity", "running>completed session.completed.exited"]
    );
    assert_eq!(bed.pending(), 1);
}

/// A completed session as an import brings it: its last transition written by that actor.
fn imported(bed: &mut Bed, native: &str, last: i64, actor: (ActorType, &str)) -> i64 {
    let id = bed.session("claude", native, last);
    bed.sql(
        "UPDATE sessions SET status = 'completed', status_since_ms = ?2, basis = 'inferred',
            rule = 'silence', ended_ms = ?2, ended_approx = 1, origin = 'lionagi', dirty = 0
        WHERE id = ?1",
        [id, last + LIVE],
    );
    let steps =
        [(None, Status::Running, last), (Some(Status::Running), Status::Completed, last + LIVE)];
    for (previous, status, created_ms) in steps {
        let row = NewTransition {
            entity: Entity::session(id),
            previous,
            status,
            reason: "run.completed.ok",
            summary: "mirror session became idle",
            basis: Basis::Inferred,
            rule: "",
            evidence: "[]",
            actor_type: actor.0.word(),
            actor_id: actor.1,
            created_ms,
            ended_ms: None,
            origin: "lionagi",
            metadata: "{}",
        };
        bed.store.write(|tx| transitions::append(tx, &row)).unwrap();
    }
    id
}

fn migrate_all(bed: &mut Bed) -> Migrated {
    migrate::migrate(&mut bed.store, WINDOWS, bed.now, 2).unwrap()
}

const MIRROR: (ActorType, &str) = (ActorType::System, "claude-mirror-reconcile");

#[test]
fn migration_leaves_run_written_terminal_rows_untouched() {
    let mut bed = Bed::new();
    bed.now = T0 + 2 * HOUR;
    let mirrored = imported(&mut bed, "mirrored", T0 + HOUR, MIRROR);
    let run = imported(&mut bed, "run", T0 + HOUR, (ActorType::Executor, "lullwatch-run"));
    let rows_of_the_run = |bed: &Bed| -> Vec<String> {
        let its = |row: &String| {
            row.contains(r#"Text("run")"#) || row.contains(r#"Text("lullwatch-run")"#)
        };
        bed.dump().into_iter().filter(its).collect()
    };
    let untouched = rows_of_the_run(&bed);
    assert_eq!(untouched.len(), 3);
    let done = migrate_all(&mut bed);
    assert_eq!((done.examined, done.moved), (2, 1));
    assert_eq!(bed.status(mirrored), Some(Status::Idle));
    assert_eq!(bed.end(mirrored), None);
    assert_eq!(bed.status(run), Some(Status::Completed));
    assert_eq!(bed.history(Entity::session(run)).len(), 2);
    assert_eq!(rows_of_the_run(&bed), untouched);
    let totals = AuditTotals { migrations: 1, ..AuditTotals::default() };
    assert_eq!(bed.audit(), totals);
    let last = bed.history(Entity::session(mirrored)).pop().unwrap();
    assert_eq!(last.reason, reason::IDLE_MIGRATED);
    assert_eq!(last.actor_id, policy::MIGRATION);
}

/// Each end by silence keeps the windows it was made under; those of others are taken back, and what
/// these windows or an exit ended stays.
#[test]
fn migration_takes_back_what_this_store_completed_under_other_windows() {
    const SHORT: Windows = Windows { live_ms: 3_000, ended_ms: 10_000 };
    let mut bed = Bed::new();
    let long_over = running(&mut bed, "over");
    bed.pass_at(T0 + 2 * DAY);
    let now = T0 + 2 * DAY;
    let early = bed.session("claude", "early", now);
    let noted = bed.session("claude", "noted before there were notes", now);
    let exited = bed.session("claude", "exited", now);
    bed.pass_at(now + SECOND);
    bed.end_marker(exited, now + SECOND);
    bed.now = now + MINUTE;
    let (look, options) = (bed.look.clone(), Options::default());
    windows::set_windows(&mut bed.store, SHORT).unwrap();
    reconcile::tick(&mut bed.store, &look, SHORT, bed.now, options).unwrap();
    bed.sql("UPDATE status_transitions SET metadata = '{}' WHERE entity_id = ?1", [noted]);
    let told = bed.pending();
    assert_eq!(bed.status(early), Some(Status::Completed));
    windows::set_windows(&mut bed.store, WINDOWS).unwrap();
    let count = |bed: &mut Bed| {
        let now_ms = bed.now;
        bed.store.read(|tx| migrate::count(tx, WINDOWS, now_ms)).unwrap()
    };
    assert_eq!(count(&mut bed), 2);
    assert_eq!(migrate_all(&mut bed).moved, 2);
    for id in [early, noted] {
        assert_eq!(bed.status(id), Some(Status::Idle));
    }
    for id in [exited, long_over] {
        assert_eq!(bed.status(id), Some(Status::Completed));
    }
    let last = bed.history(Entity::session(early)).pop().unwrap();
    assert_eq!(last.reason, reason::IDLE_MIGRATED);
    assert!(last.summary.contains("under windows of 3s and 10s"), "{}", last.summary);
    assert_eq!(bed.audit(), AuditTotals { migrations: 2, ..AuditTotals::default() });
    assert_eq!((count(&mut bed), migrate_all(&mut bed).moved), (0, 0));
    // What was told stays told; they go on by the windows that hold now.
    assert_eq!(bed.pending(), told);
    bed.pass();
    assert_eq!(bed.status(early), Some(Status::Running));
    bed.pass_at(now + ENDED);
    assert_eq!(bed.status(early), Some(Status::Idle));
    bed.pass_at(now + ENDED + MINUTE);
    assert_eq!(bed.status(early), Some(Status::Completed));
    assert_eq!(bed.audit().overrides, 0);
}

#[test]
fn pass_over_an_idle_session_emits_no_override() {
    let mut bed = Bed::new();
    let id = running(&mut bed, "a");
    bed.pass_at(T0 + LIVE + MINUTE);
    assert_eq!(bed.status(id), Some(Status::Idle));
    for minutes in 1..60 {
        bed.pass_at(T0 + LIVE + MINUTE + minutes * MINUTE);
    }
    assert_eq!(bed.status(id), Some(Status::Idle));
    assert_eq!(bed.audit(), AuditTotals::default());
    assert_eq!(bed.history(Entity::session(id)).len(), 2);
}

#[test]
fn silence_past_ended_window_reaches_completed_through_idle() {
    let mut bed = Bed::new();
    let id = running(&mut bed, "a");
    bed.pass_at(T0 + SECOND + LIVE + 1);
    bed.pass_at(T0 + SECOND + ENDED);
    assert_eq!(bed.status(id), Some(Status::Idle));
    bed.pass_at(T0 + SECOND + ENDED + 1);
    let through_idle = [
        "none>running session.admitted.activity",
        "running>idle session.idle.silence",
        "idle>completed session.completed.silence",
    ];
    assert_eq!(bed.story(id), through_idle);
    // And where both windows pass between two looks: two rows, in order.
    let other = running(&mut bed, "b");
    let pass = bed.pass_at(bed.now + 2 * DAY);
    assert_eq!(bed.story(other), through_idle);
    assert_eq!(pass.moved.len(), 2);
    assert_eq!((pass.moved[0].to, pass.moved[1].to), (Status::Idle, Status::Completed));
    assert!(pass.moved[0].transition_id < pass.moved[1].transition_id);
}

#[test]
fn idle_from_a_non_mirror_actor_is_rejected() {
    let mut bed = Bed::new();
    let id = running(&mut bed, "a");
    let strangers = [
        Actor::new(ActorType::System, "someone"),
        Actor::new(ActorType::Executor, policy::RUN),
        Actor::new(ActorType::System, policy::SWEEP),
        Actor::new(ActorType::System, policy::MIGRATION),
        reconciler("codex").unwrap(),
    ];
    for (place, stranger) in strangers.into_iter().enumerate() {
        let refused = request(&bed, id, Status::Idle, reason::IDLE_SILENCE, stranger);
        assert!(matches!(bed.apply(refused), Outcome::Rejected(_)));
        assert_eq!(bed.audit().rejections, place as u64 + 1);
    }
    assert_eq!(bed.status(id), Some(Status::Running));
    assert_eq!(bed.history(Entity::session(id)).len(), 1);
    let mirror = request(&bed, id, Status::Idle, reason::IDLE_SILENCE, claude());
    assert!(matches!(bed.apply(mirror), Outcome::Applied { .. }));
    assert_eq!(bed.status(id), Some(Status::Idle));
    assert_eq!(bed.history(Entity::session(id)).len(), 2);
    assert_eq!(bed.audit(), AuditTotals { rejections: 5, ..AuditTotals::default() });
}

fn run(bed: &mut Bed, name: &str) -> i64 {
    let row = NewRun {
        name,
        host: "h",
        agent: None,
        argv: "[]",
        scope: "{}",
        wrapper_pid: Some(1),
        wrapper_start: None,
        started_ms: bed.now,
    };
    bed.store.write(|tx| runs::insert(tx, &row)).unwrap()
}

/// A request for a run, as its current row is.
fn run_request(bed: &mut Bed, id: i64, to: Status, reason: &str, actor: &Actor) -> Request {
    let row = bed.store.read(|tx| runs::load(tx, id)).unwrap().unwrap();
    let end = EndStamp { at_ms: bed.now, approximate: false, duration_ms: Some(1) };
    Request {
        entity: Entity::run(id),
        expected_status: row.status,
        expected_version: row.version,
        to,
        reason: reason.to_owned(),
        summary: String::new(),
        basis: Basis::Observed,
        rule: String::new(),
        evidence: Vec::new(),
        actor: actor.clone(),
        end: to.is_terminal().then_some(end),
        override_by: None,
        windows: None,
        now_ms: bed.now,
    }
}

#[test]
fn permissive_update_status_stays_permissive_for_its_callers() {
    let mut bed = Bed::new();
    let caller = Actor::new(ActorType::Executor, "an-older-caller");
    let id = run(&mut bed, "r");
    let update = |bed: &mut Bed, request: Request| {
        let command = request.check().unwrap();
        bed.store.write(|tx| lifecycle::update_status(tx, &command)).unwrap()
    };
    // Moves that no edge declares, by an actor that no edge names.
    let start = run_request(&mut bed, id, Status::Running, reason::RUN_STARTED, &caller);
    assert!(matches!(bed.apply(start.clone()), Outcome::Rejected(_)));
    assert!(matches!(update(&mut bed, start), Outcome::Applied { .. }));
    let back = run_request(&mut bed, id, Status::Starting, reason::RUN_STARTED, &caller);
    assert_eq!(bed.apply(back.clone()), Outcome::Rejected(Refusal::NoEdge));
    assert!(matches!(update(&mut bed, back), Outcome::Applied { .. }));
    let end = run_request(&mut bed, id, Status::TimedOut, reason::RUN_DEADLINE, &caller);
    assert_eq!(bed.apply(end.clone()), Outcome::Rejected(Refusal::NoEdge));
    assert!(matches!(update(&mut bed, end), Outcome::Applied { .. }));
    // It leaves a terminal status only by override, though.
    let again = run_request(&mut bed, id, Status::Running, reason::RUN_REOPENED, &caller);
    assert_eq!(update(&mut bed, again), Outcome::Rejected(Refusal::OverrideMissing));
    // It knows no way to idle, and no session at all.
    let other = run(&mut bed, "s");
    let idle = run_request(&mut bed, other, Status::Idle, reason::RUN_STARTED, &caller);
    assert_eq!(update(&mut bed, idle), Outcome::Rejected(Refusal::NoEdge));
    let session = running(&mut bed, "a");
    let lull = request(&bed, session, Status::Idle, reason::IDLE_SILENCE, claude());
    assert_eq!(update(&mut bed, lull), Outcome::Rejected(Refusal::NoEdge));
    assert_eq!(bed.status(session), Some(Status::Running));
}

fn linked_run_teardown_treats_idle_as_live_for(agent: &str) {
    let mut bed = Bed::new();
    let end = bed.session(agent, "ended", T0 + SECOND);
    bed.end_marker(end, T0 + SECOND);
    bed.session(agent, "idle", T0 + SECOND);
    bed.session(agent, "running", T0 + LIVE);
    bed.sql(
        "UPDATE sessions SET facts = json_patch(facts,
            '{\"turn\":\"closed\",\"last_turn\":\"error\",\"last_error\":\"rate_limit x\"}')",
        [],
    );
    bed.pass_at(T0 + LIVE + MINUTE);
    let cases = [
        ("ended", Status::Completed, "run.completed.ok", false),
        ("running", Status::Running, "run.started.ok", true),
        ("idle", Status::Running, "run.started.ok", true),
        ("missing", Status::Failed, "run.failed.exit_nonzero", false),
    ];
    for (native, expected, reason, awaits) in cases {
        let id = run(&mut bed, native);
        let now = bed.now;
        bed.store
            .write(|tx| {
                lifecycle::run::admit(tx, id, now)?;
                lifecycle::run::start(tx, id, 2, Some("3"), now)?;
                runs::link(tx, id, agent, native)?;
                lifecycle::run::end(tx, id, Ended::Exit(1), Cause::Itself, now + SECOND)
            })
            .unwrap();
        let row = bed.store.read(|tx| runs::load(tx, id)).unwrap().unwrap();
        assert_eq!(row.status, Some(expected), "{agent} {native}");
        assert_eq!(row.ended_ms.is_none(), awaits, "{agent} {native}");
        let column = |name: &str| -> String {
            bed.value(&format!("SELECT {name} FROM runs WHERE id = ?1"), [id])
        };
        assert_eq!(column("reason_code"), reason, "{agent} {native}");
        let told = column("reason_summary") == "awaiting linked session";
        assert_eq!(told, awaits, "{agent} {native}");
    }
}

#[test]
fn linked_run_teardown_treats_idle_as_live_claude() {
    linked_run_teardown_treats_idle_as_live_for("claude");
}

#[test]
fn linked_run_teardown_treats_idle_as_live_codex() {
    linked_run_teardown_treats_idle_as_live_for("codex");
}

#[test]
fn linked_run_teardown_treats_idle_as_live_dsh() {
    linked_run_teardown_treats_idle_as_live_for("dsh");
}

#[test]
fn idle_to_running_leaves_audit_and_ledger_unchanged() {
    let mut bed = Bed::new();
    let id = running(&mut bed, "a");
    // Something to be unchanged: an entry of the ledger, an event of the audit.
    let other = running(&mut bed, "b");
    bed.end_marker(other, bed.now);
    let stranger = Actor::new(ActorType::System, "someone");
    let refused = request(&bed, id, Status::Idle, reason::IDLE_SILENCE, stranger);
    bed.apply(refused);
    bed.pass_at(T0 + LIVE + MINUTE);
    assert_eq!(bed.status(id), Some(Status::Idle));
    let before = (bed.audit(), bed.pending());
    assert_eq!(before, (AuditTotals { rejections: 1, ..AuditTotals::default() }, 1));
    bed.activity(id, bed.now);
    let pass = bed.pass();
    assert_eq!(pass.moved[0].kind, EdgeKind::Ordinary);
    assert_eq!(bed.status(id), Some(Status::Running));
    assert_eq!((bed.audit(), bed.pending()), before);
}

#[test]
fn weekend_resume_emits_exactly_one_override() {
    let mut bed = Bed::new();
    let id = running(&mut bed, "a");
    // A lull and its end: no override.
    bed.pass_at(T0 + HOUR);
    bed.activity(id, bed.now);
    bed.pass();
    assert_eq!(bed.status(id), Some(Status::Running));
    assert_eq!(bed.audit().overrides, 0);
    let friday = bed.now;
    bed.pass_at(friday + 2 * DAY);
    assert_eq!(bed.status(id), Some(Status::Completed));
    assert_eq!(bed.pending(), 1);
    // Monday: three lines, three looks.
    for minutes in 0..3 {
        bed.now = friday + 3 * DAY + minutes * MINUTE;
        bed.activity(id, bed.now);
        bed.pass();
    }
    assert_eq!(bed.status(id), Some(Status::Running));
    assert_eq!(bed.end(id), None);
    assert_eq!(bed.audit(), AuditTotals { overrides: 1, ..AuditTotals::default() });
    // The old entry stays, and says that it is superseded.
    let entries = bed.store.read(|tx| lullwatch::delivery::pending(tx, "operator", 10)).unwrap();
    assert_eq!(entries.len(), 1);
    assert!(entries[0].superseded);
    let event = bed.store.read(|tx| lullwatch::delivery::audit(tx, 10)).unwrap().remove(0);
    assert_eq!(event.after.as_deref(), Some("silence"));
    assert_eq!(event.details.gap_ms, Some(3 * DAY));
    assert_eq!(event.name, "claude:a");
    assert_eq!(event.actor, "claude-mirror-reconcile");
}

#[test]
fn migration_rerun_after_a_partial_run_changes_nothing_more() {
    let script = |killed: bool| {
        let mut bed = Bed::new();
        bed.now = T0 + 2 * HOUR;
        for native in ["a", "b", "c", "d", "e"] {
            imported(&mut bed, native, T0 + HOUR, MIRROR);
        }
        let outside = imported(&mut bed, "z", T0 - 2 * DAY, MIRROR);
        if killed {
            let part = migrate::step(&mut bed.store, WINDOWS, bed.now, 2).unwrap();
            assert_eq!(part, Migrated { examined: 2, moved: 2, more: true });
            bed.reopen();
            let rest = migrate_all(&mut bed);
            assert_eq!((rest.examined, rest.moved), (4, 3));
        } else {
            assert_eq!(migrate_all(&mut bed).moved, 5);
        }
        assert_eq!(bed.status(outside), Some(Status::Completed));
        assert_eq!(bed.audit().migrations, 5);
        let done = bed.dump();
        let written = bed.store.rows_written();
        assert_eq!(migrate_all(&mut bed), Migrated::default());
        assert_eq!(bed.store.rows_written(), written);
        assert_eq!(bed.dump(), done);
        done
    };
    assert_eq!(script(true), script(false));
}

#[test]
fn the_migration_looks_at_the_last_transition_by_time_and_not_at_our_own() {
    let mut bed = Bed::new();
    bed.now = T0 + 2 * HOUR;
    // Ours, under these windows: not in question.
    let own = running(&mut bed, "own");
    bed.end_marker(own, bed.now);
    bed.pass();
    assert_eq!(bed.status(own), Some(Status::Completed));
    // The mirror's word came before a human's, though it has the higher sequence number.
    let overruled = imported(&mut bed, "overruled", T0 + HOUR, (ActorType::Operator, "doctor"));
    let row = NewTransition {
        entity: Entity::session(overruled),
        previous: Some(Status::Running),
        status: Status::Completed,
        reason: "run.completed.ok",
        summary: "",
        basis: Basis::Inferred,
        rule: "",
        evidence: "[]",
        actor_type: "system",
        actor_id: MIRROR.1,
        created_ms: T0 + HOUR,
        ended_ms: None,
        origin: "lionagi",
        metadata: "{}",
    };
    bed.store.write(|tx| transitions::append(tx, &row)).unwrap();
    assert_eq!(migrate_all(&mut bed).moved, 0);
    assert_eq!(bed.status(own), Some(Status::Completed));
    assert_eq!(bed.status(overruled), Some(Status::Completed));
}
