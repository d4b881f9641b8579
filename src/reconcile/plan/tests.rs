//! Which moves a verdict asks for, from every status.

use rstest::rstest;

use super::*;
use crate::lifecycle::Ending;
use crate::lifecycle::decide::{End, Holder, decide};
use crate::lifecycle::known::Process;

const LIVE: i64 = 300_000;
const ENDED: i64 = 86_400_000;
const WINDOWS: Windows = Windows { live_ms: LIVE, ended_ms: ENDED };
const NOW: i64 = 1_796_029_200_000;

fn row(status: Option<Status>, last_ms: i64) -> SessionRow {
    SessionRow {
        id: 1,
        agent: "claude".to_owned(),
        native_id: "a".to_owned(),
        origin: "mirror".to_owned(),
        epoch_ms: Some(NOW - 60_000),
        dirty: true,
        version: 0,
        own_clock_ms: Some(last_ms),
        first_activity_ms: Some(last_ms - 5_000),
        last_activity_ms: Some(last_ms),
        child_activity_ms: None,
        sign_of_life_ms: None,
        anchored_ms: None,
        reread_ms: None,
        status,
        status_since_ms: None,
        basis: None,
        rule: None,
        ended_ms: None,
        deadline_ms: None,
        marker: None,
        started_ms: None,
        facts_unreadable: false,
    }
}

fn known(row: &SessionRow, ends: Vec<End>) -> Known {
    let last = row.last_activity_ms.unwrap();
    Known {
        last_activity_ms: last,
        own_activity_ms: Some(last),
        child_activity_ms: None,
        sign_of_life_ms: last,
        ends,
        left: Vec::new(),
        holder: Holder::Unknown,
        seen: Vec::new(),
    }
}

fn planned(row: &SessionRow, ends: Vec<End>, silence: Silence) -> Plan {
    let known = known(row, ends);
    plan(row, &known, decide(&known, WINDOWS, NOW), WINDOWS, silence)
}

fn hops(row: &SessionRow, ends: Vec<End>) -> Vec<(Status, &'static str)> {
    let plan = planned(row, ends, Silence::Judged);
    plan.hops.iter().map(|hop| (hop.to, hop.reason)).collect()
}

fn exited(at_ms: i64) -> Vec<End> {
    vec![End { ending: Ending::CostState, at_ms: Some(at_ms), observed_ms: None }]
}

const RUNNING: Status = Status::Running;
const IDLE: Status = Status::Idle;
const COMPLETED: Status = Status::Completed;

#[rstest]
#[case::active(0, &[(RUNNING, reason::ADMITTED_ACTIVITY)])]
#[case::silent(LIVE + 1, &[(IDLE, reason::ADMITTED_SILENCE)])]
// It ended a millisecond past `epoch`: while the monitor was off.
#[case::over_after_the_epoch(ENDED + 59_999, &[
    (IDLE, reason::ADMITTED_SILENCE),
    (COMPLETED, reason::COMPLETED_SILENCE),
])]
#[case::over_at_the_epoch(ENDED + 60_000, &[(COMPLETED, reason::ADMITTED_ENDED)])]
#[case::over_long_before(40 * ENDED, &[(COMPLETED, reason::ADMITTED_ENDED)])]
fn admission(#[case] silence_ms: i64, #[case] expected: &[(Status, &'static str)]) {
    assert_eq!(hops(&row(None, NOW - silence_ms), Vec::new()), expected);
}

#[test]
fn an_exit_is_history_by_its_own_time() {
    let row = row(None, NOW - 70_000);
    assert_eq!(hops(&row, exited(NOW - 60_000)), [(COMPLETED, reason::ADMITTED_ENDED)]);
    let after = [(IDLE, reason::ADMITTED_SILENCE), (COMPLETED, reason::COMPLETED_EXITED)];
    assert_eq!(hops(&row, exited(NOW - 59_999)), after);
}

#[test]
fn without_a_root_nothing_that_is_over_is_news() {
    let row = SessionRow { epoch_ms: None, ..row(None, NOW - 2 * ENDED) };
    assert_eq!(hops(&row, Vec::new()), [(COMPLETED, reason::ADMITTED_ENDED)]);
}

#[rstest]
#[case::running_active(RUNNING, 0, &[])]
#[case::running_at_the_live_window(RUNNING, LIVE, &[])]
#[case::running_past_the_live_window(RUNNING, LIVE + 1, &[(IDLE, reason::IDLE_SILENCE)])]
#[case::running_at_the_ended_window(RUNNING, ENDED, &[(IDLE, reason::IDLE_SILENCE)])]
#[case::running_past_the_ended_window(RUNNING, ENDED + 1, &[
    (IDLE, reason::IDLE_SILENCE),
    (COMPLETED, reason::COMPLETED_SILENCE),
])]
#[case::idle_active(IDLE, LIVE, &[(RUNNING, reason::RUNNING_ACTIVITY)])]
#[case::idle_past_the_live_window(IDLE, LIVE + 1, &[])]
#[case::idle_at_the_ended_window(IDLE, ENDED, &[])]
#[case::idle_past_the_ended_window(IDLE, ENDED + 1, &[(COMPLETED, reason::COMPLETED_SILENCE)])]
fn silence(
    #[case] status: Status,
    #[case] silence_ms: i64,
    #[case] expected: &[(Status, &'static str)],
) {
    assert_eq!(hops(&row(Some(status), NOW - silence_ms), Vec::new()), expected);
}

#[test]
fn an_exit_needs_no_lull() {
    let exit = [(COMPLETED, reason::COMPLETED_EXITED)];
    assert_eq!(hops(&row(Some(RUNNING), NOW - 10), exited(NOW)), exit);
    assert_eq!(hops(&row(Some(IDLE), NOW - LIVE - 10), exited(NOW)), exit);
}

fn over(ended_ms: i64, last_ms: i64) -> SessionRow {
    let basis = Some(Basis::Inferred);
    SessionRow { ended_ms: Some(ended_ms), basis, ..row(Some(COMPLETED), last_ms) }
}

#[rstest]
#[case::at_the_end(0, &[])]
#[case::before_the_end(-1, &[])]
#[case::after_the_end(1, &[(RUNNING, reason::REACTIVATED_ACTIVITY)])]
fn only_activity_stamped_after_the_end_brings_a_session_back(
    #[case] later_ms: i64,
    #[case] expected: &[(Status, &'static str)],
) {
    assert_eq!(hops(&over(NOW - 1_000, NOW - 1_000 + later_ms), Vec::new()), expected);
}

#[test]
fn a_session_back_from_its_end_goes_on_as_its_silence_asks() {
    let back = (RUNNING, reason::REACTIVATED_ACTIVITY);
    let lull = (IDLE, reason::IDLE_SILENCE);
    let end = (COMPLETED, reason::COMPLETED_SILENCE);
    let ended = NOW - 10 * ENDED;
    assert_eq!(hops(&over(ended, NOW - LIVE - 1), Vec::new()), [back, lull]);
    assert_eq!(hops(&over(ended, NOW - ENDED - 1), Vec::new()), [back, lull, end]);
}

#[test]
fn nothing_comes_back_on_which_end_evidence_stands() {
    let row = SessionRow {
        rule: Some(Rule::EndEvidence.word().to_owned()),
        ..over(NOW - 5_000, NOW - 1_000)
    };
    assert_eq!(hops(&row, exited(NOW - 500)), []);
}

/// Whoever resumes a session first repairs what the one before left open, with the time of the last
/// record: that is stamped after the end that was noted, and is no word of the new life.
#[test]
fn a_live_process_lets_nothing_back_that_an_end_still_stands_on() {
    let end = NOW - 10_000;
    let repaired = end + 500;
    let row = over(end, repaired);
    let ends = vec![End {
        ending: Ending::ProcessGone,
        at_ms: Some(end),
        observed_ms: Some(repaired + 1_000),
    }];
    let held = Known { holder: Holder::Dedicated { pid: 7 }, ..known(&row, ends) };
    let verdict = decide(&held, WINDOWS, NOW);
    assert_eq!(verdict.rule, Rule::LiveWindow, "a live holder vetoes the end");
    assert_eq!(plan(&row, &held, verdict.clone(), WINDOWS, Silence::Judged).hops, Vec::new());
    // The same once the end counts as none any more, because another is there.
    let held = Known { ends: Vec::new(), left: held.ends.clone(), ..held };
    assert_eq!(plan(&row, &held, verdict, WINDOWS, Silence::Judged).hops, Vec::new());
}

#[test]
fn what_an_override_took_back_is_named() {
    let taken = |basis| {
        let row = SessionRow { basis, ..over(NOW - 5_000, NOW - 1_000) };
        let plan = planned(&row, Vec::new(), Silence::Judged);
        let actor = crate::lifecycle::policy::reconciler("claude").unwrap();
        plan.hops[0].taken_back.unwrap().on_account_of(&actor)
    };
    let over = taken(Some(Basis::Inferred));
    assert_eq!((over.after, over.gap_ms), (After::Silence, Some(4_000)));
    assert_eq!(
        over.justification,
        "activity stamped 2026-11-30T08:59:59.000Z lies after the end at 2026-11-30T08:59:55.000Z"
    );
    assert_eq!(taken(Some(Basis::Observed)).after, After::Exit);
}

#[test]
fn an_imported_row_comes_back_only_by_activity_after_its_roots_epoch() {
    let row = |last| SessionRow {
        origin: "lionagi".to_owned(),
        status: Some(Status::Failed),
        ..over(NOW - 10 * ENDED, last)
    };
    assert_eq!(hops(&row(NOW - 60_000), Vec::new()), []);
    let back = [(RUNNING, reason::REACTIVATED_ACTIVITY)];
    assert_eq!(hops(&row(NOW - 59_999), Vec::new()), back);
}

#[test]
fn an_inferred_end_that_is_seen_later_keeps_its_status_and_gains_evidence() {
    let row = SessionRow { rule: Some("silence".to_owned()), ..over(NOW - 5_000, NOW - 5_000) };
    assert_eq!(hops(&row, exited(NOW - 4_000)), [(COMPLETED, reason::COMPLETED_EXITED)]);
}

#[test]
fn while_silence_is_held_a_session_goes_idle_and_no_further() {
    let row = |status| row(status, NOW - ENDED - 1);
    let plan = planned(&row(Some(RUNNING)), Vec::new(), Silence::Held);
    assert_eq!(plan.hops.len(), 1);
    assert_eq!(plan.hops[0].to, IDLE);
    assert!(plan.held);
    // It stays due until the hold ends.
    assert_eq!(plan.deadline_ms, Some(NOW));
    let plan = planned(&row(Some(IDLE)), Vec::new(), Silence::Held);
    assert_eq!((plan.hops.len(), plan.deadline_ms), (0, Some(NOW)));
    // History waits for its admission: admitted now it would be news later.
    let history = SessionRow { epoch_ms: Some(NOW), ..row(None) };
    assert_eq!(planned(&history, Vec::new(), Silence::Held).hops, []);
    let news = SessionRow { epoch_ms: Some(NOW - 2), ..row(None) };
    let plan = planned(&news, Vec::new(), Silence::Held);
    assert_eq!(plan.hops.iter().map(|hop| hop.to).collect::<Vec<_>>(), [IDLE]);
    // An exit is no verdict by silence.
    let plan = planned(&row(Some(RUNNING)), exited(NOW - 5), Silence::Held);
    assert_eq!(plan.hops[0].to, COMPLETED);
}

#[test]
fn only_an_exact_end_has_a_duration() {
    let row = row(Some(RUNNING), NOW - 10_000);
    let end = |ends| planned(&row, ends, Silence::Judged).hops[0].end.unwrap();
    assert_eq!(end(exited(NOW - 9_000)).duration_ms, Some(6_000));
    let gone =
        vec![End { ending: Ending::ProcessGone, at_ms: Some(NOW - 9_000), observed_ms: None }];
    assert_eq!(end(gone).duration_ms, None);
    let started = SessionRow { started_ms: Some(NOW - 20_000), ..row.clone() };
    let plan = planned(&started, exited(NOW - 9_000), Silence::Judged);
    assert_eq!(plan.hops[0].end.unwrap().duration_ms, Some(11_000));
}

/// Sign of life and anchor after looking at a row at `NOW`.
fn anchored(row: &SessionRow) -> (i64, Option<i64>, bool) {
    let mut known = crate::lifecycle::known::known(row, &[], Process::default(), NOW).unwrap();
    let anchor = anchor(row, &mut known, WINDOWS, NOW);
    (known.sign_of_life_ms - NOW, anchor.anchored_ms.map(|at| at - NOW), anchor.fresh)
}

#[test]
fn a_stamp_ahead_of_the_clock_is_anchored_once_per_news() {
    let hour = 3_600_000;
    let running = SessionRow { dirty: false, ..row(Some(RUNNING), NOW + hour) };
    assert_eq!(anchored(&running), (0, Some(hour), true));
    let stands = SessionRow {
        sign_of_life_ms: Some(NOW - 7_000),
        anchored_ms: Some(NOW + hour),
        ..running.clone()
    };
    assert_eq!(anchored(&stands), (-7_000, Some(hour), false));
    let news = SessionRow { dirty: true, ..stands.clone() };
    assert_eq!(anchored(&news), (0, Some(hour), true));
    // Once the clock has passed the stamp, nothing happens to one that is idle …
    let passed = SessionRow {
        last_activity_ms: Some(NOW - 1_000),
        anchored_ms: Some(NOW - 1_000),
        ..stands
    };
    let idle = SessionRow { status: Some(IDLE), ..passed.clone() };
    assert_eq!(anchored(&idle), (-7_000, Some(-1_000), false));
    // … but the anchor makes nobody older than its stamp does.
    assert_eq!(anchored(&passed), (-1_000, None, false));
    let over = SessionRow { sign_of_life_ms: Some(NOW - ENDED - 1), ..idle };
    assert_eq!(anchored(&over), (-1_000, None, false));
}

#[test]
fn of_a_session_that_is_over_the_first_anchor_stands() {
    let hour = 3_600_000;
    let over = SessionRow {
        sign_of_life_ms: Some(NOW - 7_000),
        anchored_ms: Some(NOW + hour),
        ..over(NOW - 5_000, NOW + hour)
    };
    assert_eq!(anchored(&over), (-7_000, Some(hour), false));
    let hops_of = |row: &SessionRow| {
        let mut known = crate::lifecycle::known::known(row, &[], Process::default(), NOW).unwrap();
        anchor(row, &mut known, WINDOWS, NOW);
        plan(row, &known, decide(&known, WINDOWS, NOW), WINDOWS, Silence::Judged).hops.len()
    };
    assert_eq!(hops_of(&over), 0);
    // A later record is news, wherever its stamp lies.
    let news = SessionRow { last_activity_ms: Some(NOW + 2 * hour), ..over };
    assert_eq!(hops_of(&news), 1);
}

#[test]
fn a_clock_set_back_makes_no_idle_session_work() {
    let idle = SessionRow { dirty: false, ..row(Some(IDLE), NOW + 3_600_000) };
    assert_eq!(anchored(&idle), (-LIVE - 1, Some(3_600_000), true));
    let news = SessionRow { dirty: true, ..idle };
    assert_eq!(anchored(&news).0, 0);
}

#[test]
fn a_stamp_that_is_not_ahead_is_left_alone() {
    assert_eq!(anchored(&row(Some(RUNNING), NOW)), (0, None, false));
    assert_eq!(anchored(&row(Some(RUNNING), NOW - 5)), (-5, None, false));
}
