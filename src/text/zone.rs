//! Moments as people read them: in the zone they live in, by the rules that hold at that moment. A
//! stamp of July keeps the time its clock showed, also when it is read in November. Programs get
//! RFC 3339 UTC instead, and so does the store.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Where people are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone(&'static TimeZone);

static UTC: TimeZone = TimeZone::UTC;

impl Default for Zone {
    fn default() -> Self {
        Self(&UTC)
    }
}

impl Zone {
    /// This zone, for the rest of the process: it is to be made once.
    pub fn new(zone: TimeZone) -> Self {
        Self(Box::leak(Box::new(zone)))
    }

    /// A day and a time of day, to the second: `11-30 09:00:05`.
    pub fn stamp(self, ms: i64) -> String {
        self.formatted(ms, "%m-%d %H:%M:%S")
    }

    /// A day: `11-30`.
    pub fn day(self, ms: i64) -> String {
        self.formatted(ms, "%m-%d")
    }

    /// A time of day, to the minute: `09:00`.
    pub fn clock(self, ms: i64) -> String {
        self.formatted(ms, "%H:%M")
    }

    /// A moment to the minute, with the distance to UTC: `2026-11-30 09:00Z`.
    pub fn minute(self, ms: i64) -> String {
        self.with_offset(ms, "%Y-%m-%d %H:%M")
    }

    /// A moment to the second, with the distance to UTC: `2026-11-30 10:00:05+01`.
    pub fn second(self, ms: i64) -> String {
        self.with_offset(ms, "%Y-%m-%d %H:%M:%S")
    }

    /// A sentence of ours with the moments in it, which are RFC 3339 UTC, as people read them.
    pub fn told(self, sentence: &str) -> Cow<'_, str> {
        let mut told = String::new();
        let mut rest = sentence;
        while let Some((before, moment, after)) = next_moment(rest) {
            told.push_str(before);
            told.push_str(&self.with_offset(moment, "%Y-%m-%d %H:%M:%S%.3f"));
            rest = after;
        }
        if told.is_empty() {
            return Cow::Borrowed(sentence);
        }
        told.push_str(rest);
        Cow::Owned(told)
    }

    fn formatted(self, ms: i64, format: &str) -> String {
        let Ok(moment) = Timestamp::from_millisecond(ms) else { return format!("{ms} ms") };
        self.0.to_datetime(moment).strftime(format).to_string()
    }

    fn with_offset(self, ms: i64, format: &str) -> String {
        let Ok(moment) = Timestamp::from_millisecond(ms) else { return format!("{ms} ms") };
        let minutes = self.0.to_offset(moment).seconds() / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        let offset = match (minutes.abs() / 60, minutes.abs() % 60) {
            (0, 0) => "Z".to_owned(),
            (hours, 0) => format!("{sign}{hours:02}"),
            (hours, minutes) => format!("{sign}{hours:02}:{minutes:02}"),
        };
        format!("{}{offset}", self.formatted(ms, format))
    }
}

/// How a moment is written in our sentences.
const WRITTEN: &str = "2026-11-30T09:00:00.000Z";

/// What stands before the first moment, the moment, ms, and what stands behind it.
fn next_moment(text: &str) -> Option<(&str, i64, &str)> {
    text.match_indices('Z').find_map(|(at, _)| {
        let end = at + 1;
        let begin = end.checked_sub(WRITTEN.len())?;
        let written = text.get(begin..end)?;
        let alike = written.bytes().zip(WRITTEN.bytes()).all(|(is, like)| match like {
            b'0'..=b'9' => is.is_ascii_digit(),
            _ => is == like,
        });
        let moment: Timestamp = written.parse().ok().filter(|_| alike)?;
        Some((text.get(..begin)?, moment.as_millisecond(), text.get(end..)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-30 09:00:05 UTC.
    const NOVEMBER: i64 = 1_796_029_205_000;
    const JULY: i64 = NOVEMBER - 140 * 86_400_000;

    fn berlin() -> Zone {
        Zone::new(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap())
    }

    #[test]
    fn each_moment_follows_the_rules_of_its_own_time() {
        assert_eq!(Zone::default().stamp(NOVEMBER), "11-30 09:00:05");
        assert_eq!(berlin().stamp(NOVEMBER), "11-30 10:00:05");
        assert_eq!(berlin().stamp(JULY), "07-13 11:00:05");
        assert_eq!(berlin().clock(JULY), "11:00");
        assert_eq!(berlin().day(NOVEMBER + 14 * 3_600_000), "12-01");
        assert_eq!(Zone::default().minute(NOVEMBER), "2026-11-30 09:00Z");
        assert_eq!(berlin().second(NOVEMBER), "2026-11-30 10:00:05+01");
        assert_eq!(berlin().second(JULY), "2026-07-13 11:00:05+02");
        // The night of the change: 02:30 comes twice.
        let first = 1_792_891_800_000;
        assert_eq!(berlin().second(first - 3_600_000), "2026-10-25 02:30:00+02");
        assert_eq!(berlin().second(first), "2026-10-25 02:30:00+01");
        let india = Zone::new(TimeZone::posix("IST-5:30").unwrap());
        assert_eq!(india.minute(NOVEMBER), "2026-11-30 14:30+05:30");
        assert_eq!(berlin().second(i64::MAX), "9223372036854775807 ms");
    }

    #[test]
    fn moments_in_a_sentence_are_told_like_all_others() {
        for (raw, want) in [
            ("ended 2026-11-30T09:00:05.000Z.", "ended 2026-11-30 10:00:05.000+01."),
            (
                "Z 2026-07-13T09:00:05.120Z 2026-11-30T09:00:05.000Z",
                "Z 2026-07-13 11:00:05.120+02 2026-11-30 10:00:05.000+01",
            ),
            ("2026-99-30T09:00:05.000Z", "2026-99-30T09:00:05.000Z"),
            ("修Z nothing here", "修Z nothing here"),
        ] {
            assert_eq!(berlin().told(raw), want);
        }
    }
}
