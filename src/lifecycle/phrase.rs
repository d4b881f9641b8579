//! Moments and spans in words, for summaries and evidence lines.

/// A moment, RFC 3339 UTC with milliseconds.
pub(crate) fn moment(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(at) => format!("{at:.3}"),
        // Only a damaged store has such a stamp; it is still worth showing.
        Err(_) => format!("{ms} ms"),
    }
}

/// A span that was compared with some windows, ms: where it would read like one it is longer than,
/// what is above that is said too.
pub(crate) fn span_against(ms: i64, windows_ms: &[i64]) -> String {
    let same = |window: &&i64| ms > **window && span(ms) == span(**window);
    let Some(window) = windows_ms.iter().find(same) else { return span(ms) };
    match (ms - window) / 1000 {
        0 => format!("just over {}", span(*window)),
        seconds => format!("{} {seconds}s", span(*window)),
    }
}

/// A span in its two largest units (hours up to two days), rounded down.
pub(crate) fn span(ms: i64) -> String {
    let (sign, ms) = if ms < 0 { ("-", ms.saturating_neg()) } else { ("", ms) };
    let seconds = ms / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let text = if seconds == 0 && ms > 0 {
        "<1s".to_owned()
    } else if minutes == 0 {
        format!("{seconds}s")
    } else if hours == 0 {
        pair(minutes, "m", &(seconds % 60).to_string(), "s")
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
    fn spans_name_two_units() {
        let cases = [
            (0, "0s"),
            (999, "<1s"),
            (59_999, "59s"),
            (59_000, "59s"),
            (300_000, "5m"),
            (300_999, "5m"),
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
    fn what_is_just_above_a_window_reads_longer_than_it() {
        let windows = [300_000, 86_400_000];
        let cases = [
            (299_999, "4m 59s"),
            (300_000, "5m"),
            (300_001, "just over 5m"),
            (301_000, "5m 1s"),
            (360_668, "6m"),
            (86_400_001, "just over 24h"),
            (86_430_500, "24h 30s"),
        ];
        for (ms, words) in cases {
            assert_eq!(span_against(ms, &windows), words, "{ms}");
        }
    }

    #[test]
    fn a_moment_out_of_range_is_still_shown() {
        assert_eq!(moment(1_796_029_200_000), "2026-11-30T09:00:00.000Z");
        assert_eq!(moment(i64::MAX), "9223372036854775807 ms");
    }
}
