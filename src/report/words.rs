//! Small things said in few cells: moments, paths, numbers, ids.

use jiff::Timestamp;

use crate::text;

/// RFC 3339, UTC, with milliseconds; `None` where a moment is out of the calendar.
pub(super) fn rfc3339(ms: i64) -> Option<String> {
    Timestamp::from_millisecond(ms).ok().map(|moment| format!("{moment:.3}"))
}

/// The last two parts of a path, or the last one where two are too wide.
pub(super) fn project(path: &str, cells: usize) -> String {
    let clean = text::line(path);
    let mut parts = text::path_parts(&clean);
    match (parts.next(), parts.next()) {
        (Some(last), Some(before)) => {
            let two = format!("{before}/{last}");
            if text::width(&two) <= cells { two } else { last.to_owned() }
        }
        (Some(last), None) => last.to_owned(),
        (None, _) => clean.to_string(),
    }
}

/// A number in at most four digits and a letter: `950`, `12.3k`, `4.6M`, `1.2G`.
pub(super) fn amount(number: i64) -> String {
    let size = number.unsigned_abs();
    let (unit, letter) = match size {
        0..=999 => return number.to_string(),
        1_000..=999_499 => (1_000, 'k'),
        999_500..=999_499_999 => (1_000_000, 'M'),
        _ => (1_000_000_000, 'G'),
    };
    let sign = if number < 0 { "-" } else { "" };
    let tenths = (size + unit / 20) / (unit / 10);
    if tenths >= 1_000 {
        return format!("{sign}{}{letter}", (size + unit / 2) / unit);
    }
    format!("{sign}{}.{}{letter}", tenths / 10, tenths % 10)
}

/// A native id short enough for a column and long enough to tell sessions apart, as typed to name
/// one: without the word that all of dsh's begin with; of an id that begins with its time, so much
/// that the millisecond is in it.
pub(super) fn short_id(native_id: &str) -> String {
    let clean = text::line(native_id);
    let bare = clean.strip_prefix("session-").unwrap_or(&clean);
    let by_time = bare.len() == 36 && bare.as_bytes().get(14) == Some(&b'7');
    bare.chars().take(if by_time { 13 } else { 8 }).collect()
}

/// `1 session`, `3 sessions`.
pub(super) fn plural(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_short() {
        for (number, want) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (12_345, "12.3k"),
            (99_949, "99.9k"),
            (345_678, "346k"),
            (999_499, "999k"),
            (999_500, "1.0M"),
            (4_567_890, "4.6M"),
            (1_234_567_890, "1.2G"),
            (-1_500, "-1.5k"),
        ] {
            assert_eq!(amount(number), want, "{number}");
        }
    }

    #[test]
    fn a_project_is_its_last_two_parts() {
        assert_eq!(project("/home/me/src/lullwatch", 24), "src/lullwatch");
        assert_eq!(project("/home/me/a-very-long-name/lullwatch", 16), "lullwatch");
        assert_eq!(project("/", 24), "/");
        assert_eq!(project(r"C:\Users\Ann Smith\code\my-app", 24), "code/my-app");
        assert_eq!(project(r"C:\Users\Ann Smith\code\second-app", 12), "second-app");
        assert_eq!(project("demo\u{1b}[2J", 24), "demo");
    }

    #[test]
    fn short_ids_name_what_they_stand_for() {
        assert_eq!(short_id("ca28c2a5-f36b-4af0-a1a4-2d4d9bf530fb"), "ca28c2a5");
        assert_eq!(short_id("01a22ba8-4de0-7ed1-b6c9-748555166064"), "01a22ba8-4de0");
        assert_eq!(short_id("session-36ff7ae3-2273-46f2-99a4-3d775e289a80"), "36ff7ae3");
    }

    #[test]
    fn moments_for_programs_are_utc() {
        assert_eq!(rfc3339(1_796_029_200_000).as_deref(), Some("2026-11-30T09:00:00.000Z"));
        assert_eq!(rfc3339(i64::MAX), None);
    }
}
