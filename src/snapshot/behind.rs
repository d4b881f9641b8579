//! What goes on behind the conversation of a live session, in words: in full as a notice, and short for
//! a list. It is what the session says of itself, and no phase: the turn is over all the same.

use super::Notice;
use crate::lifecycle::Status;
use crate::store::query::Amounts;

/// The word of Claude's registry for a turn that is over while a shell runs.
const SHELL: &str = "shell";

/// The notice beside a session.
pub(super) fn notice(amounts: Amounts, status: Status) -> Option<Notice> {
    if !status.is_live() {
        return None;
    }
    let works = list(&[(amounts.shells, "shell"), (amounts.agents, "sub-agent")]);
    let waits = list(&[(amounts.monitors, "monitor"), (amounts.timers, "timer")]);
    let told: Vec<String> = [("at work in the background", works), ("armed", waits)]
        .into_iter()
        .filter_map(|(what, list)| Some(format!("{what}: {}", list?)))
        .collect();
    let text = format!("{}, as it says itself", told.join("; "));
    (!told.is_empty()).then(|| Notice { code: "background".to_owned(), text })
}

/// The same for a list, where sub-agents have a number of their own. `state` is what a verified
/// process says: it may know of a shell of which the transcript does not.
pub(super) fn short(amounts: Amounts, status: Status, state: Option<&str>) -> Option<String> {
    if !status.is_live() {
        return None;
    }
    let shells = amounts.shells.max(u64::from(state == Some(SHELL)));
    list(&[(shells, "shell"), (amounts.monitors, "monitor"), (amounts.timers, "timer")])
}

/// `1 shell and 2 timers`; `None`: nothing of all that.
fn list(of: &[(u64, &str)]) -> Option<String> {
    let told: Vec<String> = of
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(
            |(count, one)| if *count == 1 { format!("1 {one}") } else { format!("{count} {one}s") },
        )
        .collect();
    (!told.is_empty()).then(|| told.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_works_and_what_waits_are_told_apart() {
        let amounts = Amounts { shells: 1, agents: 2, monitors: 1, timers: 3 };
        let text = |amounts| notice(amounts, Status::Idle).map(|notice| notice.text);
        let all = "at work in the background: 1 shell and 2 sub-agents; \
                   armed: 1 monitor and 3 timers, as it says itself";
        assert_eq!(text(amounts).as_deref(), Some(all));
        let armed = Amounts { monitors: 1, ..Amounts::default() };
        assert_eq!(text(armed).as_deref(), Some("armed: 1 monitor, as it says itself"));
        assert_eq!(text(Amounts::default()), None);
        assert_eq!(notice(amounts, Status::Completed), None);
    }

    #[test]
    fn a_list_says_it_short_and_believes_the_process_of_a_shell() {
        let amounts = Amounts { shells: 2, agents: 2, ..Amounts::default() };
        let short = |amounts, state| short(amounts, Status::Running, state);
        assert_eq!(short(amounts, None).as_deref(), Some("2 shells"));
        assert_eq!(short(amounts, Some("shell")).as_deref(), Some("2 shells"));
        assert_eq!(short(Amounts::default(), Some("shell")).as_deref(), Some("1 shell"));
        assert_eq!(short(Amounts::default(), Some("idle")), None);
    }
}
