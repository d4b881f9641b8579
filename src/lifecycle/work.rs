//! Whether a session is worked on, by what its transcript and a live process say; pure.
//!
//! A transcript tells what was, a process what is, and neither tells all: Esc before the first token
//! leaves no line, and a compaction none until it is done. So the newer word counts (design section
//! 2, *phase*, and 3, *live evidence*). Those who look at processes and those who show sessions both
//! ask here.

/// A process that says it works is believed this long past the last activity, ms.
pub const WORKING_MAX_MS: i64 = 12 * 3_600_000;

/// What a transcript says of the work on its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Its own turn is open.
    pub turn_open: bool,
    /// A turn of one of its sub-agents is.
    pub child_turn_open: bool,
    /// Its own newest activity, ms.
    pub last_ms: Option<i64>,
    /// More than one live process has it open: of their turns the transcript tells only whose came
    /// last, and the last record may be the other's.
    pub several_writers: bool,
}

impl Written {
    /// A process that has said *busy* since then works on this session.
    pub fn busy_is_work(self, since_ms: Option<i64>) -> bool {
        self.turn_open
            || self.child_turn_open
            || self.several_writers
            || self.is_older_than(since_ms)
    }

    /// A process that has said *idle* or *shell* since then rests, although a turn looks open.
    pub fn idle_is_rest(self, since_ms: Option<i64>) -> bool {
        self.turn_open && self.is_older_than(since_ms)
    }

    /// The word is newer than the last record; without both times nothing is.
    fn is_older_than(self, since_ms: Option<i64>) -> bool {
        self.last_ms.zip(since_ms).is_some_and(|(last, since)| last < since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const LAST_MS: i64 = 1_000;
    const CLOSED: Written = Written {
        turn_open: false,
        child_turn_open: false,
        last_ms: Some(LAST_MS),
        several_writers: false,
    };
    const OPEN: Written = Written { turn_open: true, ..CLOSED };
    const CHILD: Written = Written { child_turn_open: true, ..CLOSED };
    const SHARED: Written = Written { several_writers: true, ..CLOSED };
    const UNDATED: Written = Written { last_ms: None, ..CLOSED };

    #[rstest]
    #[case::said_before_the_turn_was_closed(CLOSED, Some(LAST_MS), false)]
    #[case::said_since(CLOSED, Some(LAST_MS + 1), true)]
    #[case::said_at_no_time(CLOSED, None, false)]
    #[case::no_record_with_a_time(UNDATED, Some(LAST_MS), false)]
    #[case::in_a_turn(OPEN, Some(0), true)]
    #[case::in_a_turn_at_no_time(OPEN, None, true)]
    #[case::in_a_sub_agents_turn(CHILD, Some(0), true)]
    #[case::beside_another_process(SHARED, Some(0), true)]
    fn busy(#[case] written: Written, #[case] since_ms: Option<i64>, #[case] works: bool) {
        assert_eq!(written.busy_is_work(since_ms), works);
    }

    #[rstest]
    #[case::said_before_the_prompt(OPEN, Some(LAST_MS), false)]
    #[case::said_since(OPEN, Some(LAST_MS + 1), true)]
    #[case::said_at_no_time(OPEN, None, false)]
    #[case::nothing_looks_open(CLOSED, Some(LAST_MS + 1), false)]
    #[case::only_a_sub_agents_turn(CHILD, Some(LAST_MS + 1), false)]
    fn idle(#[case] written: Written, #[case] since_ms: Option<i64>, #[case] rests: bool) {
        assert_eq!(written.idle_is_rest(since_ms), rests);
    }
}
