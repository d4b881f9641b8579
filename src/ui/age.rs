//! Numbers for people: ages, sizes, counts. Ages are coarse on purpose, so that a
//! screen at rest does not change: every ten seconds below a minute, then every minute.

/// What stands where something is not known.
pub const UNKNOWN: &str = "─";

const MINUTE_S: i64 = 60;
const HOUR_S: i64 = 60 * MINUTE_S;
const DAY_S: i64 = 24 * HOUR_S;

/// An age in at most four cells.
pub fn age(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    match seconds {
        0..10 => "<10s".to_owned(),
        10..MINUTE_S => format!("{}s", seconds / 10 * 10),
        MINUTE_S..HOUR_S => format!("{}m", seconds / MINUTE_S),
        HOUR_S..36_000 => format!("{}h{:02}", seconds / HOUR_S, seconds % HOUR_S / MINUTE_S),
        36_000..DAY_S => format!("{}h", seconds / HOUR_S),
        _ => format!("{}d", (seconds / DAY_S).min(9_999)),
    }
}

/// An age, or the mark of the unknown.
pub fn age_or_unknown(ms: Option<i64>) -> String {
    ms.map_or_else(|| UNKNOWN.to_owned(), age)
}

/// A span as it was configured: `90s`, `5m`, `24h`.
pub fn window(ms: i64) -> String {
    let seconds = ms / 1_000;
    if seconds != 0 && seconds % HOUR_S == 0 {
        format!("{}h", seconds / HOUR_S)
    } else if seconds != 0 && seconds % MINUTE_S == 0 {
        format!("{}m", seconds / MINUTE_S)
    } else {
        format!("{seconds}s")
    }
}

/// A count in at most five cells: `950`, `1.2k`, `34k`, `1.2M`.
pub fn count(number: u64) -> String {
    scaled(number, ["", "k", "M", "G", "T"])
}

/// A size in at most seven cells: `950 B`, `1.2 MB`.
pub fn bytes(number: u64) -> String {
    scaled(number, [" B", " kB", " MB", " GB", " TB"])
}

fn scaled(number: u64, units: [&str; 5]) -> String {
    let mut divisor = 1_u64;
    let mut rest = units.into_iter();
    let mut unit = rest.next().unwrap_or_default();
    for larger in rest {
        if number / divisor < 1_000 {
            break;
        }
        divisor *= 1_000;
        unit = larger;
    }
    let tenths = number / (divisor / 10).max(1);
    if divisor > 1 && tenths < 100 {
        format!("{}.{}{unit}", tenths / 10, tenths % 10)
    } else {
        format!("{}{unit}", number / divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_coarse_and_fit_four_cells() {
        for (seconds, want) in [
            (-5, "<10s"),
            (9, "<10s"),
            (10, "10s"),
            (59, "50s"),
            (60, "1m"),
            (3_599, "59m"),
            (3_600, "1h00"),
            (35_999, "9h59"),
            (36_000, "10h"),
            (86_399, "23h"),
            (86_400, "1d"),
            (400 * 86_400, "400d"),
        ] {
            assert_eq!(age(seconds * 1_000), want, "{seconds} s");
        }
    }

    #[test]
    fn counts_and_sizes_keep_two_digits() {
        for (number, want) in
            [(0, "0"), (999, "999"), (1_000, "1.0k"), (34_567, "34k"), (1_234_567, "1.2M")]
        {
            assert_eq!(count(number), want);
        }
        assert_eq!(bytes(950), "950 B");
        assert_eq!(bytes(203_000_000), "203 MB");
        assert_eq!(count(u64::MAX), "18446744T");
    }

    #[test]
    fn a_window_reads_as_it_was_typed() {
        assert_eq!(window(300_000), "5m");
        assert_eq!(window(86_400_000), "24h");
        assert_eq!(window(90_000), "90s");
    }
}
