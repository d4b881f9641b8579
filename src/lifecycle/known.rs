//! What the store has of one session, as `decide` wants it.

use super::decide::{END_SLACK_MS, End, Holder, Known};
use super::presence::{has_left, holds, told};
use super::work::WORKING_MAX_MS;
use super::{judged_ms, sign_of_life_ms};
use crate::store::evidence::Evidence;
use crate::store::sessions::SessionRow;

/// What a look found out about the process of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Process {
    /// Who has it open.
    pub holder: Holder,
    /// When it was last seen working on the session, ms.
    pub working_ms: Option<i64>,
}

/// What is known of a session at `now_ms`; `None` if it has no clock, and so is no session.
pub fn known(
    row: &SessionRow,
    evidence: &[Evidence],
    process: Process,
    now_ms: i64,
) -> Option<Known> {
    let written_ms = row.last_activity_ms?;
    let stored = sign_of_life_ms(written_ms, row.sign_of_life_ms, row.anchored_ms);
    let noted = (row.sign_of_life_ms, row.anchored_ms);
    let judged = |at_ms: i64| judged_ms(at_ms, written_ms, noted, now_ms);
    let last_activity_ms = judged(written_ms);
    let believed = last_activity_ms.saturating_add(WORKING_MAX_MS);
    let working = process.working_ms.map_or(stored, |at| at.min(believed));
    let marker = row.marker.map(|(ending, at_ms)| End { ending, at_ms, observed_ms: None });
    let observed = evidence.iter().filter_map(observed_end);
    Some(Known {
        last_activity_ms,
        own_activity_ms: row.own_clock_ms.map(judged),
        child_activity_ms: row.child_activity_ms.map(judged),
        sign_of_life_ms: stored.max(working),
        ends: marker.into_iter().chain(observed).collect(),
        left: left(evidence),
        holder: process.holder,
        seen: told(evidence),
    })
}

/// An observation whose subject is over proves an end; one that goes on proves none.
pub(super) fn observed_end(evidence: &Evidence) -> Option<End> {
    let at_ms = evidence.ended_ms?;
    let ending = super::Ending::of_observation(&evidence.source, &evidence.says)?;
    // The time of an exact end is that of the end itself, whenever somebody learned of it.
    let observed_ms = (!ending.is_exact()).then_some(evidence.since_ms.max(at_ms));
    Some(End { ending, at_ms: Some(at_ms), observed_ms })
}

/// Those who have left a session that another has open, or may have: what they wrote became visible
/// by when they were found gone, and before the other came, who first repairs what they left open
/// with the time of their last record (dsh's `turn/end`).
fn left(evidence: &[Evidence]) -> Vec<End> {
    let came = |row: &Evidence| row.started_ms.unwrap_or(row.first_ms);
    // The slack of an end is for what is written late; of the other's nothing is.
    let other_ms = evidence.iter().filter(|row| holds(row)).map(came).min();
    let limit_ms = other_ms.map_or(i64::MAX, |other| other.saturating_sub(END_SLACK_MS));
    let left = evidence.iter().filter(|row| row.ended_ms.is_none() && has_left(row));
    left.filter_map(|row| {
        let ending = super::Ending::of_observation(&row.source, &row.says)?;
        let found_ms = (!ending.is_exact()).then_some(row.since_ms.max(row.last_ms).min(limit_ms));
        Some(End { ending, at_ms: Some(row.last_ms.min(limit_ms)), observed_ms: found_ms })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::Ending;
    use crate::store::sessions::SessionRow;

    const NOW: i64 = i64::MAX;

    fn row() -> SessionRow {
        SessionRow {
            id: 1,
            agent: "claude".to_owned(),
            native_id: "a".to_owned(),
            origin: "mirror".to_owned(),
            epoch_ms: Some(0),
            dirty: true,
            version: 0,
            own_clock_ms: Some(1_000),
            first_activity_ms: Some(1_000),
            last_activity_ms: Some(1_000),
            child_activity_ms: None,
            sign_of_life_ms: None,
            anchored_ms: None,
            reread_ms: None,
            status: None,
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

    #[test]
    fn who_has_left_while_another_is_there_has_written_until_that_one_came() {
        let left = |rows: &[Evidence]| known(&row(), rows, Process::default(), NOW).unwrap().left;
        let gone = observation("lock", "gone", None);
        let end = |at_ms, observed_ms| End {
            ending: Ending::ProcessGone,
            at_ms: Some(at_ms),
            observed_ms: Some(observed_ms),
        };
        let unclear = observation("lock", "unknown", None);
        assert_eq!(left(&[gone.clone(), unclear]), [end(2_000, 4_000)]);
        let next = observation("lock", "dedicated", None);
        let started = |at_ms| Evidence { started_ms: Some(at_ms), ..next.clone() };
        assert_eq!(left(&[gone.clone(), started(5_500)]), [end(2_000, 3_500)]);
        let active = |at_ms| Known { own_activity_ms: Some(at_ms), ..Known::silent_since(at_ms) };
        assert!(end(2_000, 3_500).stands(&active(5_500)), "the repair");
        assert!(!end(2_000, 3_500).stands(&active(5_501)), "the first word of the new life");
        assert_eq!(left(&[gone.clone(), started(9_000)]), [end(2_000, 4_000)]);
        assert_eq!(left(&[gone.clone(), started(3_000)]), [end(1_000, 1_000)], "it came at once");
        assert_eq!(left(&[Evidence { ended_ms: Some(2_000), ..gone }]), [], "that is an end");
    }

    fn observation(source: &str, says: &str, ended_ms: Option<i64>) -> Evidence {
        Evidence {
            source: source.to_owned(),
            subject: "7".to_owned(),
            says: says.to_owned(),
            since_ms: 4_000,
            first_ms: 1_000,
            last_ms: 2_000,
            ended_ms,
            ..Evidence::default()
        }
    }

    #[test]
    fn without_a_clock_there_is_no_session() {
        let row = SessionRow { last_activity_ms: None, ..row() };
        assert_eq!(known(&row, &[], Process::default(), NOW), None);
    }

    #[test]
    fn a_working_process_is_believed_for_twelve_hours() {
        let at = |working: i64| {
            let process = Process { holder: Holder::Unknown, working_ms: Some(working) };
            known(&row(), &[], process, NOW).unwrap().sign_of_life_ms
        };
        assert_eq!(at(500), 1_000);
        assert_eq!(at(5_000), 5_000);
        assert_eq!(at(i64::MAX), 1_000 + WORKING_MAX_MS);
    }

    #[test]
    fn an_anchor_stands_in_for_the_stamp_it_names_and_for_no_other() {
        let anchored = SessionRow { sign_of_life_ms: Some(400), anchored_ms: Some(1_000), ..row() };
        assert_eq!(known(&anchored, &[], Process::default(), NOW).unwrap().sign_of_life_ms, 400);
        let newer = SessionRow { last_activity_ms: Some(1_001), ..anchored };
        assert_eq!(known(&newer, &[], Process::default(), NOW).unwrap().sign_of_life_ms, 1_001);
    }

    #[test]
    fn markers_and_ended_observations_are_ends_and_living_ones_are_not() {
        let row = SessionRow { marker: Some((Ending::CostState, Some(1_500))), ..row() };
        let evidence = [
            observation("registry", "gone", Some(2_000)),
            observation("registry", "dedicated", None),
            observation("lock", "gone", None),
            observation("run", "exited", Some(2_500)),
            observation("hook", "SessionEnd", Some(3_000)),
            observation("weather", "gone", Some(3_000)),
        ];
        let ends = known(&row, &evidence, Process::default(), NOW).unwrap().ends;
        let expected = [
            (Ending::CostState, 1_500, None),
            (Ending::ProcessGone, 2_000, Some(4_000)),
            (Ending::ChildExited, 2_500, None),
            (Ending::SessionEndHook, 3_000, None),
        ];
        let end = |(ending, at, observed_ms)| End { ending, at_ms: Some(at), observed_ms };
        assert_eq!(ends, expected.map(end));
    }
}
