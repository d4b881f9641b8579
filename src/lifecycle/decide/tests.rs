//! The four rules, at their edges.

use proptest::prelude::*;
use rstest::rstest;

use super::*;

const LIVE: i64 = 300_000;
const ENDED: i64 = 86_400_000;
const WINDOWS: Windows = Windows { live_ms: LIVE, ended_ms: ENDED };
const NOW: i64 = 1_796_029_200_000;

/// Silent for so long, with no end and no process known.
fn silent(silence_ms: i64) -> Known {
    let last = NOW - silence_ms;
    Known {
        last_activity_ms: last,
        own_activity_ms: Some(last),
        child_activity_ms: None,
        sign_of_life_ms: last,
        ends: Vec::new(),
        left: Vec::new(),
        holder: Holder::Unknown,
        seen: Vec::new(),
    }
}

fn end(ending: Ending, at_ms: i64) -> End {
    End { ending, at_ms: Some(at_ms), observed_ms: None }
}

fn check(known: &Known) -> (Status, Rule) {
    let verdict = decide(known, WINDOWS, NOW);
    (verdict.status, verdict.rule)
}

#[rstest]
#[case::ahead_of_the_clock(-1, Status::Running, Rule::LiveWindow)]
#[case::active_now(0, Status::Running, Rule::LiveWindow)]
#[case::just_inside_the_live_window(LIVE - 1, Status::Running, Rule::LiveWindow)]
#[case::exactly_at_the_live_window(LIVE, Status::Running, Rule::LiveWindow)]
#[case::just_past_the_live_window(LIVE + 1, Status::Idle, Rule::EndedWindow)]
#[case::just_inside_the_ended_window(ENDED - 1, Status::Idle, Rule::EndedWindow)]
#[case::exactly_at_the_ended_window(ENDED, Status::Idle, Rule::EndedWindow)]
#[case::just_past_the_ended_window(ENDED + 1, Status::Completed, Rule::Silence)]
#[case::forty_days(40 * ENDED, Status::Completed, Rule::Silence)]
fn silence(#[case] silence_ms: i64, #[case] status: Status, #[case] rule: Rule) {
    assert_eq!(check(&silent(silence_ms)), (status, rule));
}

#[rstest]
#[case::unknown(Holder::Unknown, [Status::Running, Status::Idle, Status::Completed])]
#[case::nobody(Holder::Nobody, [Status::Running, Status::Idle, Status::Completed])]
#[case::dedicated(Holder::Dedicated { pid: 42 }, [Status::Running, Status::Idle, Status::Idle])]
#[case::shared(Holder::Shared { pid: 42 }, [Status::Running, Status::Idle, Status::Completed])]
fn only_a_dedicated_holder_holds_against_silence(
    #[case] holder: Holder,
    #[case] expected: [Status; 3],
) {
    let silences = [LIVE, ENDED, ENDED + 1];
    let statuses = silences.map(|silence| check(&Known { holder, ..silent(silence) }).0);
    assert_eq!(statuses, expected);
}

#[test]
fn a_live_process_vetoes_every_end_but_the_models_own() {
    for holder in [Holder::Dedicated { pid: 42 }, Holder::Shared { pid: 42 }] {
        for ending in Ending::ALL {
            let known = Known { ends: vec![end(ending, NOW - 10)], holder, ..silent(10) };
            let expected = if ending == Ending::EndedByModel {
                (Status::Completed, Rule::EndEvidence)
            } else {
                (Status::Running, Rule::LiveWindow)
            };
            assert_eq!(check(&known), expected, "{holder:?} {ending:?}");
        }
    }
}

#[test]
fn any_end_stands_where_no_process_is_known() {
    for holder in [Holder::Unknown, Holder::Nobody] {
        for ending in Ending::ALL {
            let known = Known { ends: vec![end(ending, NOW - 10)], holder, ..silent(10) };
            assert_eq!(check(&known), (Status::Completed, Rule::EndEvidence), "{ending:?}");
        }
    }
}

#[rstest]
#[case::at_the_end(0, true)]
#[case::exactly_at_the_slack(END_SLACK_MS, true)]
#[case::just_past_the_slack(END_SLACK_MS + 1, false)]
fn own_activity_revokes_an_observed_end_past_two_seconds(#[case] later_ms: i64, #[case] ok: bool) {
    for ending in Ending::ALL {
        let known = Known { ends: vec![end(ending, NOW - 10_000)], ..silent(10_000 - later_ms) };
        // Position has the word on a marker, and the position was not revoked.
        let expected = ok || ending.is_marker();
        assert_eq!(check(&known).1 == Rule::EndEvidence, expected, "{ending:?}");
    }
}

#[rstest]
#[case::before_the_end(-5_000, true)]
#[case::exactly_at_the_slack(CHILD_SLACK_MS, true)]
#[case::just_past_the_slack(CHILD_SLACK_MS + 1, false)]
fn a_sub_agent_revokes_any_end_past_a_minute(#[case] later_ms: i64, #[case] ok: bool) {
    for ending in Ending::ALL {
        let at = NOW - 100_000;
        let child = at + later_ms;
        let known = Known {
            last_activity_ms: child.max(at),
            own_activity_ms: Some(at),
            child_activity_ms: Some(child),
            sign_of_life_ms: child.max(at),
            ends: vec![end(ending, at)],
            left: Vec::new(),
            holder: Holder::Unknown,
            seen: Vec::new(),
        };
        assert_eq!(check(&known).1 == Rule::EndEvidence, ok, "{ending:?}");
    }
}

#[test]
fn a_marker_stamped_too_early_is_measured_from_what_stands_before_it() {
    let own = NOW - 100_000;
    let known = Known {
        child_activity_ms: Some(own + CHILD_SLACK_MS),
        last_activity_ms: own + CHILD_SLACK_MS,
        ends: vec![end(Ending::CostState, own - 3_600_000)],
        ..silent(100_000)
    };
    assert_eq!(check(&known), (Status::Completed, Rule::EndEvidence));
}

#[rstest]
#[case::ended_by_model(Ending::EndedByModel, false)]
#[case::hook(Ending::SessionEndHook, false)]
#[case::child(Ending::ChildExited, false)]
#[case::cost_state(Ending::CostState, false)]
#[case::continued_in(Ending::ContinuedIn, false)]
#[case::later_life(Ending::LaterCostState, true)]
#[case::process_gone(Ending::ProcessGone, true)]
#[case::registry(Ending::RegistryMoved, true)]
fn an_end_has_the_time_of_its_evidence(#[case] ending: Ending, #[case] approximate: bool) {
    let stamp = |at_ms: Option<i64>| {
        let known =
            Known { ends: vec![End { ending, at_ms, observed_ms: None }], ..silent(10_000) };
        decide(&known, WINDOWS, NOW).end.unwrap()
    };
    let expected = |at_ms: i64, approximate| EndStamp { at_ms, approximate, duration_ms: None };
    assert_eq!(stamp(Some(NOW - 9_000)), expected(NOW - 9_000, approximate));
    // Between the last activity and the moment it was observed at.
    let last = NOW - 10_000;
    assert_eq!(stamp(Some(last - 500)), expected(last, approximate));
    assert_eq!(stamp(Some(NOW + 5_000)), expected(NOW, approximate));
    assert_eq!(stamp(None), expected(last, true));
}

#[test]
fn an_end_by_silence_is_the_last_activity_and_approximate() {
    let known = Known { sign_of_life_ms: NOW - ENDED - 5, ..silent(ENDED + 3_600_000) };
    let verdict = decide(&known, WINDOWS, NOW);
    let at_ms = NOW - ENDED - 3_600_000;
    assert_eq!(verdict.end, Some(EndStamp { at_ms, approximate: true, duration_ms: None }));
    assert_eq!(verdict.basis, Basis::Inferred);
}

#[test]
fn the_end_of_a_later_life_is_told_as_about() {
    let ends = vec![end(Ending::LaterCostState, NOW - 9_000)];
    let verdict = decide(&Known { ends, ..silent(10_000) }, WINDOWS, NOW);
    assert_eq!(verdict.summary, "ended: cost-state, about 2026-11-30T08:59:51.000Z");
}

#[test]
fn the_most_exact_standing_end_decides() {
    let ends = vec![
        end(Ending::ProcessGone, NOW - 9_000),
        end(Ending::CostState, NOW - 9_500),
        end(Ending::SessionEndHook, NOW - 60_000),
    ];
    let verdict = decide(&Known { ends, ..silent(10_000) }, WINDOWS, NOW);
    assert_eq!(verdict.end.unwrap().at_ms, NOW - 9_500);
    assert_eq!(verdict.summary, "ended: cost-state 2026-11-30T08:59:50.500Z");
    assert_eq!(
        verdict.evidence,
        [
            "process gone, last seen alive 2026-11-30T08:59:51.000Z",
            "cost-state 2026-11-30T08:59:50.500Z",
            "SessionEnd hook 2026-11-30T08:59:00.000Z, revoked by later activity",
        ]
    );
}

#[rstest]
#[case::within_the_slack(END_SLACK_MS, false)]
#[case::past_the_slack(END_SLACK_MS + 1, true)]
#[case::eight_seconds(8_000, true)]
fn a_look_that_saw_a_process_alive_after_an_exit_has_the_time_of_the_end(
    #[case] later_ms: i64,
    #[case] moves: bool,
) {
    let at = NOW - 60_000;
    let seen = at + later_ms;
    for ending in Ending::ALL.into_iter().filter(|ending| ending.is_exact()) {
        let ends = vec![end(ending, at), end(Ending::ProcessGone, seen)];
        let stamp = decide(&Known { ends, ..silent(70_000) }, WINDOWS, NOW).end.unwrap();
        // The model's own end stands whatever the process does after it.
        let moved = moves && !ending.outlives_a_holder();
        let at_ms = if moved { seen } else { at };
        assert_eq!((stamp.at_ms, stamp.approximate), (at_ms, moved), "{ending:?}");
    }
}

#[test]
fn a_look_whose_end_was_revoked_moves_no_other() {
    let own = NOW - 60_000;
    let gone = End { observed_ms: Some(own - 10_000), ..end(Ending::ProcessGone, own - 11_000) };
    let ends = vec![end(Ending::CostState, own - 20_000), gone];
    let verdict = decide(&Known { ends, ..silent(60_000) }, WINDOWS, NOW);
    assert_eq!(verdict.end, Some(EndStamp { at_ms: own, approximate: false, duration_ms: None }));
}

#[test]
fn a_working_process_keeps_a_silent_session_running_and_says_so() {
    let known = Known { sign_of_life_ms: NOW - 1_000, ..silent(LIVE + 60_000) };
    let verdict = decide(&known, WINDOWS, NOW);
    assert_eq!((verdict.status, verdict.reason), (Status::Running, reason::RUNNING_PROCESS));
    assert_eq!(verdict.until_ms, Some(NOW - 1_000 + LIVE + 1));
    let known = Known { sign_of_life_ms: NOW - 1_000, ..silent(LIVE) };
    assert_eq!(decide(&known, WINDOWS, NOW).reason, reason::RUNNING_ACTIVITY);
}

#[rstest]
#[case::running(0, "active 0s ago, within the live window of 5m")]
#[case::idle(LIVE + 1, "silent for just over 5m, longer than the live window of 5m")]
#[case::completed(2 * ENDED, "silent for 2d, longer than the ended window of 24h")]
fn a_verdict_says_why_in_one_sentence(#[case] silence_ms: i64, #[case] summary: &str) {
    assert_eq!(decide(&silent(silence_ms), WINDOWS, NOW).summary, summary);
}

#[test]
fn every_rule_is_explained_with_its_numbers() {
    let known = Known { holder: Holder::Dedicated { pid: 42 }, ..silent(2 * ENDED) };
    let told: Vec<String> = explain(&known, WINDOWS, NOW)
        .into_iter()
        .map(|tried| {
            let mark = if tried.decided { "=> " } else { "" };
            let held = if tried.held { "yes" } else { "no" };
            let evidence = tried.evidence.join("; ");
            format!("{mark}{}: {}? {held} [{evidence}]", tried.rule.word(), tried.test)
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    end_evidence: end evidence stands and no live process holds it? no [held by pid 42]
    live_window: silence 2d ≤ live window 5m? no [last activity 2026-11-28T09:00:00.000Z; held by pid 42]
    => ended_window: silence 2d ≤ ended window 24h, or a dedicated live process holds it? yes [last activity 2026-11-28T09:00:00.000Z; held by pid 42]
    silence: otherwise? yes [last activity 2026-11-28T09:00:00.000Z; held by pid 42]
    ");
}

fn any_known() -> impl Strategy<Value = Known> {
    let moment = -3 * ENDED..=1_000_i64;
    let holder = prop_oneof![
        Just(Holder::Unknown),
        Just(Holder::Nobody),
        Just(Holder::Dedicated { pid: 1 }),
        Just(Holder::Shared { pid: 1 }),
    ];
    let end = (proptest::sample::select(&Ending::ALL[..]), proptest::option::of(moment.clone()))
        .prop_map(|(ending, at)| {
            let at_ms = at.map(|at| NOW + at);
            End { ending, at_ms, observed_ms: at_ms.map(|at| (at + 60_000).min(NOW)) }
        });
    let ends = proptest::collection::vec(end, 0..4);
    let child = proptest::option::of(moment.clone());
    (moment.clone(), child, moment, ends, holder).prop_map(|(own, child, sign, ends, holder)| {
        let last = NOW + child.map_or(own, |child| child.max(own));
        Known {
            last_activity_ms: last,
            own_activity_ms: Some(NOW + own),
            child_activity_ms: child.map(|child| NOW + child),
            sign_of_life_ms: last.max(NOW + sign),
            ends,
            left: Vec::new(),
            holder,
            seen: Vec::new(),
        }
    })
}

/// How far along the way to an end a verdict is.
fn age(status: Status) -> u8 {
    match status {
        Status::Starting | Status::Running => 0,
        Status::Idle => 1,
        Status::Completed
        | Status::CompletedEmpty
        | Status::Failed
        | Status::TimedOut
        | Status::Aborted
        | Status::Cancelled => 2,
    }
}

proptest! {
    #[test]
    fn the_rule_explained_as_decisive_is_the_one_that_decided(known in any_known()) {
        let verdict = decide(&known, WINDOWS, NOW);
        let tried = explain(&known, WINDOWS, NOW);
        let decided: Vec<&Tried> = tried.iter().filter(|tried| tried.decided).collect();
        prop_assert_eq!(decided.len(), 1);
        prop_assert_eq!(decided[0].rule, verdict.rule);
        prop_assert!(decided[0].held);
        prop_assert_eq!(&decided[0].evidence, &verdict.evidence);
        let first = tried.iter().find(|tried| tried.held).unwrap();
        prop_assert_eq!(first.rule, verdict.rule);
    }

    #[test]
    fn more_silence_never_makes_a_session_more_alive(
        known in any_known(),
        later in 0..3 * ENDED,
    ) {
        let now = decide(&known, WINDOWS, NOW);
        let then = decide(&known, WINDOWS, NOW + later);
        prop_assert!(age(then.status) >= age(now.status));
    }

    #[test]
    fn a_verdict_holds_until_the_moment_it_names(known in any_known()) {
        let verdict = decide(&known, WINDOWS, NOW);
        if let Some(until) = verdict.until_ms.filter(|until| *until > NOW) {
            prop_assert_eq!(decide(&known, WINDOWS, until - 1).rule, verdict.rule);
        }
    }

    #[test]
    fn an_end_stands_with_a_terminal_verdict_and_only_there(known in any_known()) {
        let verdict = decide(&known, WINDOWS, NOW);
        prop_assert_eq!(verdict.end.is_some(), verdict.status.is_terminal());
        if let Some(end) = verdict.end {
            prop_assert!(end.at_ms >= known.last_activity_ms);
            prop_assert!(end.at_ms <= NOW.max(known.last_activity_ms));
        }
    }
}
