//! What a terminal can be trusted to draw, by what is said of it: the locale, and its name.

use super::Surroundings;

/// Whether only ASCII can be. Where nobody said anything about characters, more is taken for
/// granted: most terminals today can, and those who start us there seldom set a locale.
pub(super) fn is_ascii_alone(around: &Surroundings) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| around.text(name));
    locale.is_some_and(|locale| !is_utf8(locale)) || around.text("TERM").is_some_and(draws_ascii)
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// The console of Linux has 256 or 512 glyphs, and terminals of glass have fewer.
fn draws_ascii(term: &str) -> bool {
    let family = term.split('-').next().unwrap_or_default();
    let glass = family
        .strip_prefix("vt")
        .is_some_and(|number| number.starts_with(|digit: char| digit.is_ascii_digit()));
    glass || matches!(family, "linux" | "ansi")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    #[test]
    fn ascii_where_the_locale_or_the_terminal_says_so() {
        for (vars, want) in [
            ("", false),
            ("LANG=C", true),
            ("LANG=POSIX", true),
            ("LANG=en_US.ISO-8859-1", true),
            ("LANG=de_DE@euro", true),
            ("LANG=C.UTF-8", false),
            ("LANG=de_DE.utf8", false),
            ("LANG=C LC_ALL=en_US.UTF-8", false),
            ("LANG=en_US.UTF-8 LC_ALL=C", true),
            ("LANG=C LC_CTYPE=UTF-8", false),
            ("LANG=en_US.UTF-8 LC_ALL=", false),
            ("LANG=C.UTF-8 TERM=xterm-256color", false),
            ("LANG=C.UTF-8 TERM=linux", true),
            ("LANG=C.UTF-8 TERM=linux-16color", true),
            ("LANG=C.UTF-8 TERM=vt100", true),
            ("LANG=C.UTF-8 TERM=vt220-w", true),
            ("LANG=C.UTF-8 TERM=vte-256color", false),
            ("TERM=dumb", false),
        ] {
            let vars: BTreeMap<_, _> = vars
                .split_whitespace()
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect();
            let around = Surroundings { vars: vars.clone(), cwd: PathBuf::new() };
            assert_eq!(is_ascii_alone(&around), want, "{vars:?}");
        }
    }
}
