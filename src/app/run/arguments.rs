//! A command as it is kept: bounded, and without the secrets that stand in a command line.
//!
//! What looks like a secret is told by its name alone: the value of `NAME=value`, and of a flag whose
//! name ends like that of one, behind `=` or as the next argument; in a script that is one argument,
//! by its words. A secret by another name is kept.

use std::ffi::OsString;

/// Characters kept of one argument.
const CHARS_MAX: usize = 256;
/// Arguments kept.
const ARGUMENTS_MAX: usize = 32;
/// How the names of flags end that take a secret, in any case.
const SECRETS: [&str; 4] = ["key", "token", "secret", "password"];
/// What is kept of a secret.
const MASK: &str = "***";

/// The command as it is kept (JSON list).
pub(super) fn kept(command: &[OsString]) -> String {
    let mut list = Vec::new();
    let mut before = Next::Any;
    for argument in command.iter().take(ARGUMENTS_MAX) {
        let (shown, next) = masked(&argument.to_string_lossy(), before);
        list.push(shown.chars().take(CHARS_MAX).collect::<String>());
        before = next;
    }
    serde_json::Value::from(list).to_string()
}

/// What the argument behind one is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Nothing is known of it.
    Any,
    /// The value of a flag that takes a secret.
    Secret,
}

fn masked(argument: &str, is: Next) -> (String, Next) {
    // A flag whose name only ends so, as a switch, is followed by the next flag.
    if is == Next::Secret && !argument.starts_with("--") {
        return (MASK.to_owned(), Next::Any);
    }
    let (name, value) = match argument.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (argument, None),
    };
    let flag = name.strip_prefix('-').map(|name| name.trim_start_matches('-'));
    let secret = flag.is_some_and(names_a_secret);
    match value {
        None if secret => (argument.to_owned(), Next::Secret),
        Some(_) if secret || is_variable(name) => (format!("{name}={MASK}"), Next::Any),
        // `--env=NAME=value`
        Some(value) if flag.is_some() => {
            (format!("{name}={}", masked(value, Next::Any).0), Next::Any)
        }
        Some(_) | None => (masked_words(argument), Next::Any),
    }
}

/// A script handed over as one argument (`sh -c`) is a command line of its own.
fn masked_words(argument: &str) -> String {
    if !argument.contains(char::is_whitespace) {
        return argument.to_owned();
    }
    let mut before = Next::Any;
    let mut text = String::with_capacity(argument.len());
    for piece in argument.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        // `a==b` compares.
        let (shown, next) = if word.is_empty() || word.contains("==") {
            (word.to_owned(), before)
        } else {
            masked(word, before)
        };
        before = next;
        text.push_str(&shown);
        text.push_str(piece.get(word.len()..).unwrap_or_default());
    }
    text
}

fn names_a_secret(flag: &str) -> bool {
    let flag = flag.to_ascii_lowercase();
    SECRETS.iter().any(|end| flag.ends_with(end))
}

/// A name as a shell takes it for a variable.
fn is_variable(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let mut bytes = name.bytes();
    bytes.next().is_some_and(letter) && bytes.all(|byte| letter(byte) || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &[&str]) -> Vec<String> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        serde_json::from_str(&kept(&command)).unwrap()
    }

    #[test]
    fn the_values_of_variables_and_of_flags_for_secrets_are_masked() {
        let cases: [(&[&str], &[&str]); 13] = [
            (&["env", "API=x y", "_a1=", "claude"], &["env", "API=***", "_a1=***", "claude"]),
            (&["a", "--api-key=s3", "-p", "go"], &["a", "--api-key=***", "-p", "go"]),
            (&["a", "--api-key", "s3", "go"], &["a", "--api-key", "***", "go"]),
            (&["a", "--auth_TOKEN", "-s3", "go"], &["a", "--auth_TOKEN", "***", "go"]),
            (&["a", "-password", "s3"], &["a", "-password", "***"]),
            (&["a", "--client-secret=a=b"], &["a", "--client-secret=***"]),
            (&["a", "--no-password", "--json", "x"], &["a", "--no-password", "--json", "x"]),
            (&["a", "--env=KEY=s3", "--model=opus"], &["a", "--env=KEY=***", "--model=opus"]),
            (&["a", "--env=--token=s3"], &["a", "--env=--token=***"]),
            (&["a", "--key-file=k", "key", "x"], &["a", "--key-file=k", "key", "x"]),
            (&["a", "if a==b", "1=2", "./x=y"], &["a", "if a==b", "1=2", "./x=y"]),
            (&["a", "--token"], &["a", "--token"]),
            (
                &["sh", "-c", "a KEY=s3 --api-key=s3\n b --token s3 c"],
                &["sh", "-c", "a KEY=*** --api-key=***\n b --token *** c"],
            ),
        ];
        for (command, expected) in cases {
            assert_eq!(of(command), expected);
        }
    }

    #[test]
    fn a_command_is_bounded_and_a_secret_is_masked_before_it_is_cut() {
        let long = "x".repeat(1_000);
        let mut command =
            vec!["a".to_owned(), long.clone(), format!("{long}=s3"), "--key".to_owned()];
        command.push(long);
        command.extend((0..50).map(|number| number.to_string()));
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let kept = of(&command);
        assert_eq!(kept.len(), ARGUMENTS_MAX);
        assert!(kept.iter().all(|argument| argument.chars().count() <= CHARS_MAX));
        assert!(!kept.iter().any(|argument| argument.contains("s3")));
        assert_eq!(kept[4], MASK);
    }
}
