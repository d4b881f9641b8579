//! Moments and spans in words, for summaries and evidence lines.

/// A moment, RFC 3339 UTC with milliseconds.
pub(crate) fn moment(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(at) => format!("{at:.3}"),
        // Only a damaged store has such a stamp; it is still worth showing.
        Err(_) => format!("{ms} ms"),
    }
}

/// A span in its two largest units (hours up to two days), rounded down.
///
/// Milliseconds are noise, except on a whole minute: there they may decide at a window's edge.
pub(crate) fn span(ms: i64) -> String {
    let (sign, ms) = if ms < 0 { ("-", ms.saturating_neg()) } else { ("", ms) };
    let (seconds, rest) = (ms / 1000, ms % 1000);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let at_edge = rest > 0 && minutes > 0 && seconds % 60 == 0;
    let fraction = if at_edge { format!(".{rest:03}") } else { String::new() };
    let text = if seconds == 0 && rest > 0 {
        "<1s".to_owned()
    } else if minutes == 0 {
        format!("{seconds}s")
    } else if hours == 0 {
        pair(minutes, "m", &format!("{}{fraction}", seconds % 60), "s")
    } else if days < 2 {
        pair(hours, "h", &(minutes % 60).to_string(), "m")
    } else {
        pair(days, "d", &(hours % 24).to_string(), "h")
    };
    format!("{sign}{text}")
}

fn pair(large: i64, large_unit: &str, small: &str, small_unit: &str) -> String {
    if small == "0" {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit} {small}{small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_name_two_units_and_keep_the_milliseconds_that_decide() {
        let cases = [
            (0, "0s"),
            (999, "<1s"),
            (59_999, "59s"),
            (59_000, "59s"),
            (300_000, "5m"),
            (300_001, "5m 0.001s"),
            (310_051, "5m 10s"),
            (5_400_000, "1h 30m"),
            (86_400_000, "24h"),
            (86_400_001, "24h"),
            (3 * 86_400_000, "3d"),
            (3 * 86_400_000 + 3_600_000, "3d 1h"),
            (-5_000, "-5s"),
        ];
        for (ms, words) in cases {
            assert_eq!(span(ms), words, "{ms}");
        }
    }

    #[test]
    fn a_moment_out_of_range_is_still_shown() {
        assert_eq!(moment(1_796_029_200_000), "2026-11-30T09:00:00.000Z");
        assert_eq!(moment(i64::MAX), "9223372036854775807 ms");
    }
}
