//! What observations say together, and what a later reader may still believe of them.

use rstest::rstest;

use super::*;

const NOW: i64 = 1_800_000_000_000;
const OURS: &str = r#"{"host":"h","boot_id":"b","pid_ns":1,"uid":0}"#;

fn row(source: &str, says: &str) -> Evidence {
    Evidence {
        source: source.to_owned(),
        subject: format!("{source} {says}"),
        says: says.to_owned(),
        scope: OURS.to_owned(),
        since_ms: NOW,
        first_ms: NOW,
        last_ms: NOW,
        pid: Some(42),
        why: "seen".to_owned(),
        ..Evidence::default()
    }
}

fn busy(state: &str) -> Evidence {
    let (state, state_ms) = (Some(state.to_owned()), Some(NOW));
    Evidence { state, state_ms, ..row("registry", "dedicated") }
}

fn hook(kind: &str, ago: i64) -> Evidence {
    Evidence { last_ms: NOW - ago, pid: None, ..row("hook", kind) }
}

fn fresh(rows: &[Evidence]) -> Presence {
    presence(rows, Trust::Fresh, Answers::default(), true)
}

#[rstest]
#[case::nothing(&[], None, Holder::Unknown)]
#[case::dedicated(&["dedicated"], Some(true), Holder::Dedicated { pid: 42 })]
#[case::shared(&["shared"], Some(true), Holder::Shared { pid: 42 })]
#[case::dedicated_and_shared(&["shared", "dedicated"], Some(true), Holder::Dedicated { pid: 42 })]
#[case::held_and_gone(&["gone", "shared"], Some(true), Holder::Shared { pid: 42 })]
#[case::gone(&["gone"], Some(false), Holder::Nobody)]
#[case::moved(&["moved"], Some(false), Holder::Nobody)]
#[case::exited(&["exited"], Some(false), Holder::Nobody)]
#[case::disproved(&["disproved"], Some(false), Holder::Nobody)]
#[case::unknown(&["unknown"], None, Holder::Unknown)]
#[case::unknown_and_gone(&["unknown", "gone"], None, Holder::Unknown)]
#[case::suspect(&["suspect"], None, Holder::Unknown)]
#[case::unloaded(&["unloaded"], None, Holder::Unknown)]
#[case::a_word_of_the_future(&["quantum"], None, Holder::Unknown)]
fn fates_together(#[case] says: &[&str], #[case] alive: Option<bool>, #[case] holder: Holder) {
    let rows: Vec<Evidence> = says.iter().map(|says| row("registry", says)).collect();
    let seen = fresh(&rows);
    assert_eq!((seen.alive, seen.holder), (alive, holder));
}

#[rstest]
#[case::here(OURS, Some(true), Some(false))]
#[case::as_another_user(
    r#"{"host":"h","boot_id":"b","pid_ns":1,"uid":7}"#,
    Some(true),
    Some(false)
)]
#[case::another_boot(r#"{"host":"h","boot_id":"c","pid_ns":1}"#, None, Some(false))]
#[case::another_container(r#"{"host":"h","boot_id":"b","pid_ns":2}"#, None, Some(false))]
#[case::another_host(r#"{"host":"g","boot_id":"b","pid_ns":1}"#, None, None)]
#[case::nowhere("", None, None)]
fn what_is_believed_elsewhere(
    #[case] scope: &str,
    #[case] alive: Option<bool>,
    #[case] gone: Option<bool>,
) {
    let here = Here::parse(scope).unwrap_or_default();
    let at =
        |rows: &[Evidence]| presence(rows, Trust::Standing(&here), Answers::default(), true).alive;
    assert_eq!(at(&[row("registry", "dedicated")]), alive);
    assert_eq!(at(&[row("registry", "gone")]), gone);
    let stale = presence(&[busy("waiting")], Trust::Stale, Answers::default(), true);
    assert_eq!((stale.alive, stale.holder, stale.wait), (None, Holder::Unknown, None));
    assert_eq!(stale.shown.unwrap().state, None);
}

#[test]
fn a_live_process_that_waits_says_for_what() {
    let what = Some("input needed".to_owned());
    let waiting = Evidence { waits_for: what.clone(), ..busy("waiting") };
    let wait = Wait { what, since_ms: Some(NOW), source: "registry" };
    assert_eq!(fresh(std::slice::from_ref(&waiting)).wait, Some(wait));
    let left = Evidence { says: "gone".to_owned(), ..waiting };
    assert_eq!(fresh(&[left]).wait, None);
}

#[rstest]
#[case::one_works(&["idle", "busy", "idle"], Some(Word::Busy), "busy")]
#[case::one_waits(&["busy", "waiting", "idle"], Some(Word::Waiting), "waiting")]
#[case::a_shell_behind_one(&["idle", "shell"], Some(Word::Shell), "shell")]
#[case::nobody_works(&["idle", "idle"], Some(Word::Idle), "idle")]
#[case::a_word_of_the_future(&["dreaming", "idle"], Some(Word::Idle), "idle")]
#[case::stopped(&["stopped"], None, "stopped")]
fn of_several_processes_the_word_that_counts(
    #[case] states: &[&str],
    #[case] word: Option<Word>,
    #[case] shown: &str,
) {
    let of = |(at, state): (usize, &&str)| {
        let pid = u32::try_from(at).unwrap();
        let started_ms = Some(NOW + i64::from(pid));
        Evidence { pid: Some(pid), started_ms, subject: pid.to_string(), ..busy(state) }
    };
    let rows: Vec<Evidence> = states.iter().enumerate().map(of).collect();
    let seen = fresh(&rows);
    assert_eq!(seen.said.map(|said| said.word), word);
    assert_eq!(seen.said.is_some_and(|said| said.one_of_several), states.len() > 1);
    let pid = states.iter().rposition(|state| *state == shown);
    let pid = pid.map(|at| u32::try_from(at).unwrap());
    let process = seen.shown.unwrap();
    assert_eq!((process.state.as_deref(), process.pid), (Some(shown), pid.or(process.pid)));
}

#[test]
fn of_the_dead_no_word_counts() {
    let dead = Evidence { says: "gone".to_owned(), ..busy("busy") };
    assert_eq!(fresh(std::slice::from_ref(&dead)).said, None);
    let seen = fresh(&[dead, busy("idle")]);
    assert_eq!(seen.said.map(|said| (said.word, said.one_of_several)), Some((Word::Idle, false)));
    assert_eq!(seen.shown.unwrap().state.as_deref(), Some("idle"));
    let stale = presence(&[busy("busy")], Trust::Stale, Answers::default(), true);
    assert_eq!(stale.said, None);
}

#[test]
fn a_menu_that_the_person_opened_asks_nobody() {
    let menu = Evidence { waits_for: Some("dialog open".to_owned()), ..busy("waiting") };
    let seen = fresh(std::slice::from_ref(&menu));
    assert_eq!((seen.wait, seen.said), (None, None));
    assert_eq!(seen.shown.unwrap().state.as_deref(), Some("waiting"));
    let seen = fresh(&[menu.clone(), busy("busy")]);
    assert_eq!(seen.said.map(|said| said.word), Some(Word::Busy));
    // What was asked before it was opened is answered: one dialog is open at a time.
    assert_eq!(fresh(&[hook("PermissionRequest", 5_000), menu]).wait, None);
}

#[rstest]
#[case::alone(&[], None, None, true)]
#[case::activity_before_it(&[], Some(-1_000), None, true)]
#[case::a_flush_within_the_slack(&[], Some(2_000), None, true)]
#[case::activity_after_it(&[], Some(2_001), None, false)]
#[case::an_earlier_turn_end(&[], Some(-1), Some(-1), true)]
#[case::a_turn_end_in_the_same_moment(&[], Some(0), Some(0), true)]
#[case::denied_at_once(&[], Some(1), Some(1), false)]
#[case::denied_at_once_and_asked_for_more(&[], Some(500), Some(1), false)]
#[case::an_earlier_stop(&[("Stop", 1_000)], None, None, true)]
#[case::a_later_stop(&[("Stop", -1_000)], None, None, false)]
#[case::a_later_prompt(&[("UserPromptSubmit", -1_000)], None, None, false)]
#[case::the_tool_has_run(&[("PostToolUse", -1_000)], None, None, false)]
#[case::a_compaction_says_nothing_of_it(&[("PreCompact", -1_000)], None, None, true)]
fn a_permission_hook_stands_until_something_answers_it(
    #[case] others: &[(&str, i64)],
    #[case] activity: Option<i64>,
    #[case] settled: Option<i64>,
    #[case] stands: bool,
) {
    let mut rows =
        vec![Evidence { waits_for: Some("Bash".to_owned()), ..hook("PermissionRequest", 0) }];
    rows.extend(others.iter().map(|(kind, ago)| hook(kind, *ago)));
    let at = |moment: Option<i64>| moment.map(|at| NOW + at);
    let answers = Answers { activity_ms: at(activity), settled_ms: at(settled) };
    let seen = presence(&rows, Trust::Stale, answers, false);
    let wait = Wait { what: Some("Bash".to_owned()), since_ms: Some(NOW), source: "hook" };
    assert_eq!(seen.wait, stands.then_some(wait));
    assert_eq!(seen.alive, None, "a hook shows no process");
}

#[test]
fn of_notifications_only_those_that_want_something_count() {
    let told = |kind: &str| {
        let waits_for = Some(kind.to_owned());
        let rows = [Evidence { waits_for, ..hook("Notification", 0) }];
        fresh(&rows).wait.is_some()
    };
    assert!(told("permission_prompt"));
    assert!(told("elicitation_dialog"));
    assert!(!told("idle_prompt"));
}

#[test]
fn what_the_registry_says_since_a_hook_is_newer() {
    let asked = hook("PermissionRequest", 5_000);
    assert_eq!(fresh(&[asked.clone(), busy("busy")]).wait, None);
    let before = Evidence { state_ms: Some(NOW - 6_000), ..busy("busy") };
    assert!(fresh(&[asked, before]).wait.is_some());
}

#[rstest]
#[case::busy(&[], Some("busy"), true, true)]
#[case::idle(&[], Some("idle"), true, false)]
#[case::no_registry_to_ask(&[], None, false, true)]
#[case::not_in_the_registry(&[], None, true, false)]
#[case::finished(&["PostCompact"], Some("busy"), true, false)]
#[case::given_up(&["UserPromptSubmit"], Some("busy"), true, false)]
fn a_compaction_that_a_hook_announced_runs_until_something_ends_it(
    #[case] later: &[&str],
    #[case] state: Option<&str>,
    #[case] in_registry: bool,
    #[case] runs: bool,
) {
    let trigger = Some("auto".to_owned());
    let mut rows = vec![Evidence { state: trigger.clone(), ..hook("PreCompact", 9_000) }];
    rows.extend(later.iter().map(|kind| hook(kind, 1_000)));
    rows.extend(state.map(busy));
    let answers = Answers { activity_ms: Some(NOW - 10_000), settled_ms: None };
    let seen = presence(&rows, Trust::Fresh, answers, in_registry);
    let pid = state.map(|_| 42);
    let wanted = Compacting { since_ms: NOW - 9_000, trigger, pid };
    assert_eq!(seen.compacting, runs.then_some(wanted));
}

#[test]
fn a_compaction_of_a_process_that_is_gone_does_not_run() {
    let rows = [hook("PreCompact", 9_000), row("lock", "gone")];
    assert_eq!(presence(&rows, Trust::Fresh, Answers::default(), false).compacting, None);
}

#[test]
fn what_was_seen_is_told_with_when() {
    let waiting = Evidence { waits_for: Some("permission prompt".to_owned()), ..busy("waiting") };
    let told = told(&[waiting, hook("Stop", 0), row("writer", "free")]);
    let at = "2027-01-15T08:00:00.000Z";
    assert_eq!(
        told,
        [
            format!("seen, says waiting (permission prompt) (registry, since {at})"),
            format!("seen (hook, at {at})"),
        ]
    );
}
