//! Ages as people read them: one unit, and coarse enough to hold still.

/// Milliseconds of a minute.
const MINUTE_MS: i64 = 60_000;

/// How long ago `then_ms` was, in whole minutes, seen from the begin of the minute `now_ms` is in.
///
/// Two looks in the same minute of the clock get the same answer, so that what is printed with it
/// does not differ without anything having happened. It is at most one minute too small.
pub fn minutes_since(now_ms: i64, then_ms: i64) -> i64 {
    let minute = now_ms.saturating_sub(now_ms.rem_euclid(MINUTE_MS));
    minute.saturating_sub(then_ms).max(0) / MINUTE_MS
}

/// An age in one unit: `<1m`, `59m`, `47h`, `12d`.
pub fn coarse(minutes: i64) -> String {
    match minutes {
        ..=0 => "<1m".to_owned(),
        1..=59 => format!("{minutes}m"),
        60..=2_879 => format!("{}h", minutes / 60),
        _ => format!("{}d", minutes / 1_440),
    }
}

/// How long ago, in one unit: see [`minutes_since`] and [`coarse`].
pub fn ago(now_ms: i64, then_ms: i64) -> String {
    coarse(minutes_since(now_ms, then_ms))
}

/// A length of time in its two largest units: `850ms`, `12s`, `3m 5s`, `2h 10m`, `3d 4h`.
pub fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    let two = |large: i64, one: &str, small: i64, other: &str| {
        if small == 0 { format!("{large}{one}") } else { format!("{large}{one} {small}{other}") }
    };
    match seconds {
        0 => format!("{}ms", ms.max(0)),
        1..=59 => format!("{seconds}s"),
        60..=3_599 => two(seconds / 60, "m", seconds % 60, "s"),
        3_600..=86_399 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_looks_in_one_minute_agree_whatever_the_second() {
        let then = 1_764_000_000_000;
        for minute in [0, 1, 7, 61, 5_000] {
            let begin = (then / MINUTE_MS + minute) * MINUTE_MS;
            let ages: Vec<_> = (0..60).map(|second| ago(begin + second * 1_000, then)).collect();
            assert!(ages.iter().all(|age| *age == ages[0]), "{ages:?}");
        }
    }

    #[test]
    fn one_unit_is_enough() {
        for (minutes, want) in [
            (-3, "<1m"),
            (0, "<1m"),
            (1, "1m"),
            (59, "59m"),
            (60, "1h"),
            (2_879, "47h"),
            (2_880, "2d"),
            (525_600, "365d"),
        ] {
            assert_eq!(coarse(minutes), want);
        }
        assert_eq!(ago(10, 5_000_000), "<1m");
    }

    #[test]
    fn a_span_names_its_two_largest_units() {
        for (ms, want) in [
            (-5, "0ms"),
            (850, "850ms"),
            (12_999, "12s"),
            (185_000, "3m 5s"),
            (300_000, "5m"),
            (7_800_000, "2h 10m"),
            (86_400_000, "1d"),
            (273_600_000, "3d 4h"),
        ] {
            assert_eq!(span(ms), want);
        }
    }
}
