//! A lazy JSON reader for lines that agents really write.
//!
//! Why not `serde_json`: it refuses what occurs in the wild (lone surrogates, bad UTF-8, doubled
//! keys, deep nesting) and a line so refused would be lost; and it reads every byte of a megabyte
//! of tool output for the three fields we want. This reader walks keys, skips strings with
//! `memchr` and containers by depth, and decodes only what is asked for. It checks the grammar
//! while it skips, since a record cut short and glued to the next one must not pass for one record
//! (`performance.md` 3.5). A differential test against `serde_json` and a mutation test hold it.

mod salvage;
mod skeleton;

use std::borrow::Cow;

use memchr::memchr;

pub use salvage::{Piece, pieces};
pub use skeleton::{OVERSIZED_FIELD, skeleton};

/// One JSON value, not yet read. Cheap to copy; reading never fails, it answers `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value<'a> {
    raw: &'a [u8],
}

/// What a value is, judged by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// `null`, or nothing readable.
    Null,
}

impl<'a> Value<'a> {
    /// The value that these bytes hold; surrounding white space is not part of it.
    pub fn new(raw: &'a [u8]) -> Self {
        Self { raw: raw.trim_ascii() }
    }

    /// The bytes of the value.
    pub fn raw(self) -> &'a [u8] {
        self.raw
    }

    /// What it is.
    pub fn shape(self) -> Shape {
        match self.raw.first() {
            Some(b'{') => Shape::Object,
            Some(b'[') => Shape::Array,
            Some(b'"') => Shape::String,
            Some(b't' | b'f') => Shape::Bool,
            Some(b'-' | b'0'..=b'9') => Shape::Number,
            _ => Shape::Null,
        }
    }

    /// The fields of an object, in order; nothing for any other value.
    pub fn fields(self) -> Fields<'a> {
        let at = if self.shape() == Shape::Object { 1 } else { self.raw.len() };
        Fields { raw: self.raw, at }
    }

    /// The items of an array, in order; nothing for any other value.
    pub fn items(self) -> Items<'a> {
        let at = if self.shape() == Shape::Array { 1 } else { self.raw.len() };
        Items { raw: self.raw, at }
    }

    /// The field of that name; of doubled keys the last one.
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        let [value] = self.pick([name]);
        value
    }

    /// Several fields in one walk; of doubled keys the last one.
    pub fn pick<const N: usize>(self, names: [&str; N]) -> [Option<Value<'a>>; N] {
        let mut found = [None; N];
        for (key, value) in self.fields() {
            for (name, slot) in names.iter().zip(found.iter_mut()) {
                if key.is(name) {
                    *slot = Some(value);
                }
            }
        }
        found
    }

    /// A path of fields.
    pub fn at(self, path: &[&str]) -> Option<Value<'a>> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    /// A string, decoded: an unpaired surrogate or a bad byte becomes one U+FFFD.
    pub fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.inner()?;
        match memchr(b'\\', inner) {
            None => Some(String::from_utf8_lossy(inner)),
            Some(_) => Some(Cow::Owned(unescape(inner, usize::MAX))),
        }
    }

    /// At most the first `chars` characters of a string; costs no more than they do.
    pub fn text_up_to(self, chars: usize) -> Option<String> {
        Some(unescape(self.inner()?, chars))
    }

    /// Whether it is a string that starts with these plain characters (no escapes among them).
    pub fn starts_with(self, prefix: &str) -> bool {
        self.inner().is_some_and(|inner| inner.starts_with(prefix.as_bytes()))
    }

    /// Whether it is this very string (compared without escapes).
    pub fn is(self, text: &str) -> bool {
        self.inner().is_some_and(|inner| inner == text.as_bytes())
    }

    /// Bytes of a string as written, without its quotes: its size, for size notes.
    pub fn string_bytes(self) -> Option<usize> {
        self.inner().map(<[u8]>::len)
    }

    /// An integer. Fractions, exponents and what does not fit are `None`.
    pub fn int(self) -> Option<i64> {
        std::str::from_utf8(self.raw).ok()?.parse().ok()
    }

    /// An integer of at least zero.
    pub fn uint(self) -> Option<u64> {
        std::str::from_utf8(self.raw).ok()?.parse().ok()
    }

    /// `true` or `false`.
    pub fn bool(self) -> Option<bool> {
        match self.raw {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.raw == b"null"
    }

    /// An RFC 3339 time stamp in a string, in ms since 1970 UTC.
    pub fn time_ms(self) -> Option<i64> {
        let inner = std::str::from_utf8(self.inner()?).ok()?;
        let stamp: jiff::Timestamp = inner.parse().ok()?;
        Some(stamp.as_millisecond())
    }

    fn inner(self) -> Option<&'a [u8]> {
        match self.raw {
            [b'"', inner @ .., b'"'] => Some(inner),
            _ => None,
        }
    }
}

/// A key as written, without its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<'a>(&'a [u8]);

impl Key<'_> {
    /// Whether it is this name.
    pub fn is(self, name: &str) -> bool {
        self.0 == name.as_bytes()
            || (memchr(b'\\', self.0).is_some() && unescape(self.0, usize::MAX) == name)
    }

    /// The bytes as written; compare these in a `match` where keys are plain.
    pub fn bytes(&self) -> &[u8] {
        self.0
    }
}

/// See [`Value::fields`].
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    raw: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Key<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let mut at = skip(self.raw, self.at, b',');
        let key_end = string_end(self.raw, at)?;
        let key = Key(self.raw.get(at + 1..key_end - 1)?);
        at = skip(self.raw, key_end, b':');
        let end = value_end(self.raw, at)?;
        let value = Value { raw: self.raw.get(at..end)? };
        self.at = end;
        Some((key, value))
    }
}

/// See [`Value::items`].
#[derive(Debug, Clone)]
pub struct Items<'a> {
    raw: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = skip(self.raw, self.at, b',');
        if matches!(self.raw.get(at), None | Some(b']')) {
            return None;
        }
        let end = value_end(self.raw, at)?;
        self.at = end;
        Some(Value { raw: self.raw.get(at..end)? })
    }
}

/// One past the object that starts at `at`; `None` if none does, or it is not whole.
pub fn object_end(raw: &[u8], at: usize) -> Option<usize> {
    if raw.get(at) != Some(&b'{') {
        return None;
    }
    container_end(raw, at)
}

fn value_end(raw: &[u8], at: usize) -> Option<usize> {
    match raw.get(at)? {
        b'"' => string_end(raw, at),
        b'{' | b'[' => container_end(raw, at),
        b'}' | b']' | b',' | b':' => None,
        _ => {
            let rest = raw.get(at..)?;
            let len = rest
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace())
                .unwrap_or(rest.len());
            Some(at + len)
        }
    }
}

/// One past the container that starts at `at`, its grammar checked as far as a skip can: what may
/// stand behind what, not whether brackets pair by kind.
fn container_end(raw: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut before = b':';
    loop {
        let byte = *raw.get(at)?;
        match byte {
            b'"' => {
                if !matches!(before, b'{' | b'[' | b',' | b':') {
                    return None;
                }
                at = string_end(raw, at)?;
                before = b'"';
                continue;
            }
            b'{' | b'[' => {
                if !matches!(before, b'[' | b',' | b':') {
                    return None;
                }
                depth += 1;
                before = byte;
            }
            b'}' | b']' => {
                if matches!(before, b',' | b':') {
                    return None;
                }
                depth -= 1;
                before = b'}';
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b',' => {
                if matches!(before, b'{' | b'[' | b',' | b':') {
                    return None;
                }
                before = byte;
            }
            b':' => {
                if before != b'"' {
                    return None;
                }
                before = byte;
            }
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.' => {
                if !matches!(before, b'[' | b',' | b':' | b'0') {
                    return None;
                }
                before = b'0';
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => return None,
        }
        at += 1;
    }
}

/// One past the closing quote of the string that starts at `at`.
fn string_end(raw: &[u8], at: usize) -> Option<usize> {
    if raw.get(at) != Some(&b'"') {
        return None;
    }
    let mut from = at + 1;
    loop {
        let quote = from + memchr(b'"', raw.get(from..)?)?;
        let slashes =
            raw.get(at + 1..quote)?.iter().rev().take_while(|byte| **byte == b'\\').count();
        if slashes % 2 == 0 {
            return Some(quote + 1);
        }
        from = quote + 1;
    }
}

/// Past white space and one kind of separator.
fn skip(raw: &[u8], mut at: usize, separator: u8) -> usize {
    while raw.get(at).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == separator) {
        at += 1;
    }
    at
}

/// The inside of a string, decoded, up to `chars_max` characters.
fn unescape(inner: &[u8], chars_max: usize) -> String {
    let mut text = String::with_capacity(inner.len().min(chars_max.saturating_mul(2)).min(4096));
    let mut left = chars_max;
    let mut at = 0;
    while left > 0 && at < inner.len() {
        let rest = inner.get(at..).unwrap_or_default();
        let plain = memchr(b'\\', rest).unwrap_or(rest.len());
        // Four bytes hold at least one character, so a longer chunk is never needed.
        let chunk = rest.get(..plain.min(left.saturating_mul(4))).unwrap_or_default();
        for letter in String::from_utf8_lossy(chunk).chars().take(left) {
            text.push(letter);
            left -= 1;
        }
        at += chunk.len();
        if chunk.len() < plain || left == 0 {
            continue;
        }
        if at < inner.len() {
            let (letter, length) = escape(inner.get(at..).unwrap_or_default());
            text.push(letter);
            left -= 1;
            at += length;
        }
    }
    text
}

/// The character of the escape sequence at the start, and its length in bytes.
fn escape(raw: &[u8]) -> (char, usize) {
    let letter = match raw.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => return unicode_escape(raw),
        Some(byte) if byte.is_ascii() => char::from(*byte),
        _ => return (char::REPLACEMENT_CHARACTER, 1),
    };
    (letter, 2)
}

fn unicode_escape(raw: &[u8]) -> (char, usize) {
    let Some(first) = hex4(raw, 2) else { return (char::REPLACEMENT_CHARACTER, 2) };
    if let Some(letter) = char::from_u32(first) {
        return (letter, 6);
    }
    let paired = (0xd800..0xdc00).contains(&first) && raw.get(6..8) == Some(b"\\u");
    if let Some(second) = hex4(raw, 8).filter(|low| paired && (0xdc00..0xe000).contains(low)) {
        let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::REPLACEMENT_CHARACTER, 6)
}

fn hex4(raw: &[u8], at: usize) -> Option<u32> {
    let digits = raw.get(at..at + 4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(json: &str) -> String {
        Value::new(json.as_bytes()).text().unwrap().into_owned()
    }

    #[test]
    fn lone_surrogates_become_one_replacement_each_and_pairs_one_character() {
        assert_eq!(text(r#""a\ud83db""#), "a\u{fffd}b");
        assert_eq!(text(r#""\ude80\ud83d""#), "\u{fffd}\u{fffd}");
        assert_eq!(text(r#""\ud83d\ude80""#), "🚀");
        assert_eq!(text(r#""\ud83d\ud83d\ude80""#), "\u{fffd}🚀");
    }

    #[test]
    fn of_doubled_keys_the_last_one_counts() {
        let value = Value::new(br#"{"a":1,"a":2}"#);
        assert_eq!(value.get("a").and_then(Value::int), Some(2));
    }

    #[test]
    fn an_escaped_key_is_still_that_key() {
        assert_eq!(Value::new(br#"{"\u0061b":7}"#).get("ab").and_then(Value::int), Some(7));
    }

    #[test]
    fn a_hundred_thousand_levels_do_not_overflow() {
        let mut deep = b"{\"a\":".to_vec();
        deep.extend(std::iter::repeat_n(b'[', 100_000));
        deep.extend(std::iter::repeat_n(b']', 100_000));
        deep.push(b'}');
        assert_eq!(object_end(&deep, 0), Some(deep.len()));
    }

    #[test]
    fn glued_records_both_count() {
        let line = br#"{"type":"a","uuid":"1"}{"type":"b","uuid":"2"}"#;
        assert_eq!(
            pieces(line),
            [Piece::Object { start: 0, end: 23 }, Piece::Object { start: 23, end: 46 }]
        );
    }

    #[test]
    fn a_cut_record_before_a_whole_one_is_one_damage_and_the_record() {
        let line = br#"{"type":"a","message":{"content":"cu{"parentUuid":null,"uuid":"2"}"#;
        assert_eq!(pieces(line), [Piece::Damage, Piece::Object { start: 36, end: 66 }]);
        let line = br#"{"type":"a","n":12{"type":"b","uuid":"2"}"#;
        assert_eq!(pieces(line), [Piece::Damage, Piece::Object { start: 18, end: 41 }]);
    }

    #[test]
    fn a_content_block_of_a_torn_record_is_not_taken_for_a_record() {
        let line = br#"{"type":"a","c":[{"type":"text","text":"x"}{"parentUuid":null}"#;
        assert_eq!(pieces(line), [Piece::Damage, Piece::Object { start: 43, end: 62 }]);
    }

    #[test]
    fn nul_runs_beside_a_record_are_nothing_and_alone_are_one_damage() {
        let mut line = vec![0_u8; 50];
        assert_eq!(pieces(&line), [Piece::Damage]);
        line.extend_from_slice(b"{\"a\":1}");
        line.extend_from_slice(&[0; 9]);
        assert_eq!(pieces(&line), [Piece::Object { start: 50, end: 57 }]);
    }

    #[test]
    fn blank_lines_are_nothing_and_other_values_are_damage() {
        for blank in ["", "  ", "\r", "\u{feff}"] {
            assert_eq!(pieces(blank.as_bytes()), [], "{blank:?}");
        }
        for other in ["42", "null", "[1]", "\"massive\"", "not json at all", "[{\"type\":\"x\"}]"] {
            assert_eq!(pieces(other.as_bytes()), [Piece::Damage], "{other}");
        }
    }

    #[test]
    fn a_skeleton_keeps_the_scalars_of_both_ends() {
        let head = br#"{"parentUuid":null,"type":"user","message":{"role":"user","content":[{"ty"#;
        let tail = br#"AAAA"}}]},"uuid":"u-1","timestamp":"2026-01-01T00:00:00.000Z"}"#;
        let bytes = skeleton(head, tail, 99).unwrap();
        let value = Value::new(&bytes);
        assert_eq!(object_end(&bytes, 0), Some(bytes.len()));
        assert_eq!(value.get(OVERSIZED_FIELD).and_then(Value::int), Some(99));
        assert!(value.at(&["message", "role"]).unwrap().is("user"));
        assert_eq!(value.get("timestamp").and_then(Value::time_ms), Some(1_767_225_600_000));
        assert_eq!(skeleton(b"[1,2", b"3]", 9), None);
    }

    #[test]
    fn a_skeleton_shows_the_block_that_the_head_is_cut_in() {
        let origin = r#""type":"user","origin":{"kind":"human"}"#;
        let text = r#"{"type":"text","text":"Why?"}"#;
        let block = r#"{"type":"image","source":{"data":"AA"#;
        let head = format!(r#"{{{origin},"message":{{"role":"user","content":[{text},{block}"#);
        let bytes = skeleton(head.as_bytes(), br#"AA"}}]},"uuid":"u-1"}"#, 99).unwrap();
        let block = r#"{"cut":true,"type":"image","source":{"cut":true}}"#;
        let message = format!(r#"{{"cut":true,"role":"user","content":[{text},{block}]}}"#);
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            format!(r#"{{"{OVERSIZED_FIELD}":99,{origin},"message":{message},"uuid":"u-1"}}"#)
        );
    }

    #[test]
    fn a_skeleton_of_a_deep_head_is_shallow() {
        for opener in ["[", "{\"a\":", "[{\"a\":[", "[1,"] {
            let head = format!("{{\"a\":{}", opener.repeat(20_000));
            let bytes = skeleton(head.as_bytes(), b"}", 99).unwrap();
            assert_eq!(object_end(&bytes, 0), Some(bytes.len()), "{opener}");
            assert!(bytes.len() < 200, "{opener}");
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "\\PC{0,12}".prop_map(Into::into),
            "[\\x00-\\x7f]{0,12}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                prop::collection::hash_map("\\PC{0,6}", inner, 0..5)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn to_serde(value: Value<'_>) -> serde_json::Value {
        match value.shape() {
            Shape::Object => serde_json::Value::Object(
                value
                    .fields()
                    .map(|(key, inner)| (unescape(key.0, usize::MAX), to_serde(inner)))
                    .collect(),
            ),
            Shape::Array => value.items().map(to_serde).collect(),
            Shape::String => value.text().unwrap().into_owned().into(),
            Shape::Number => value.int().unwrap().into(),
            Shape::Bool => value.bool().unwrap().into(),
            Shape::Null => serde_json::Value::Null,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn reads_what_serde_json_writes(json in any_json(), pretty in any::<bool>()) {
            let wrapped = serde_json::json!({ "x": json });
            let text = if pretty {
                serde_json::to_string_pretty(&wrapped).unwrap()
            } else {
                wrapped.to_string()
            };
            prop_assert_eq!(object_end(text.as_bytes(), 0), Some(text.len()));
            prop_assert_eq!(to_serde(Value::new(text.as_bytes())), wrapped);
        }

        #[test]
        fn a_cut_object_is_never_whole(json in any_json(), cut in any::<prop::sample::Index>()) {
            let text = serde_json::json!({ "x": json }).to_string();
            let cut = cut.index(text.len());
            prop_assert_eq!(object_end(&text.as_bytes()[..cut], 0), None);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            for piece in pieces(&bytes) {
                if let Piece::Object { start, end } = piece {
                    let _ = to_serde_total(Value::new(&bytes[start..end]));
                }
            }
            let _ = skeleton(&bytes, &bytes, 1);
        }

        #[test]
        fn mutants_of_a_record_are_read_without_a_panic(
            json in any_json(), at in any::<prop::sample::Index>(), byte in any::<u8>()
        ) {
            let mut text = serde_json::json!({ "type": "x", "uuid": json }).to_string().into_bytes();
            let at = at.index(text.len());
            text[at] = byte;
            for piece in pieces(&text) {
                if let Piece::Object { start, end } = piece {
                    let _ = to_serde_total(Value::new(&text[start..end]));
                }
            }
        }

        #[test]
        fn a_prefix_of_a_text_is_its_first_characters(letters in "[\\PC\\n\"\\\\]{0,40}", count in 0_usize..50) {
            let json = serde_json::Value::from(letters.as_str()).to_string();
            let want: String = letters.chars().take(count).collect();
            prop_assert_eq!(Value::new(json.as_bytes()).text_up_to(count).unwrap(), want);
        }
    }

    /// Reads everything readable of a value, whatever it is.
    fn to_serde_total(value: Value<'_>) -> usize {
        let inner: usize = value.fields().map(|(_, inner)| to_serde_total(inner)).sum();
        let items: usize = value.items().map(to_serde_total).sum();
        inner
            + items
            + value.text().map_or(0, |text| text.len())
            + usize::from(value.int().is_some())
    }
}
