//! JSON with the order of its keys kept, and a check of it against a list written by hand.

use std::fmt::{self, Write};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A value whose objects remember the order in which they were written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Object(Vec<(String, Tree)>),
    List(Vec<Tree>),
    Leaf(Value),
}

/// What a place in the contract may hold.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    Time,
    Number,
    Bool,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Exactly these keys, in this order.
    Object(&'static [(&'static str, Kind)]),
    /// Any number of the same.
    List(&'static Kind),
    /// Or null.
    Or(&'static Kind),
}

impl Tree {
    #[track_caller]
    pub(super) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// What lies at a path of keys and indices: `sessions.0.reason.code`.
    #[track_caller]
    pub(super) fn at(&self, path: &str) -> &Tree {
        let mut here = self;
        for step in path.split('.') {
            let next = match here {
                Self::Object(pairs) => pairs.iter().find(|(key, _)| key == step).map(|(_, to)| to),
                Self::List(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
                Self::Leaf(_) => None,
            };
            here = next.unwrap_or_else(|| panic!("no `{step}` of `{path}` in {self}"));
        }
        here
    }

    /// The same as one line of JSON.
    #[track_caller]
    pub(super) fn get(&self, path: &str) -> String {
        self.at(path).to_string()
    }

    pub(super) fn items(&self) -> &[Tree] {
        match self {
            Self::List(items) => items,
            Self::Object(_) | Self::Leaf(_) => panic!("no list: {self}"),
        }
    }

    /// One `key: value` per line, paths whole, for a comparison that a reader can follow.
    pub(super) fn lines(&self) -> String {
        let mut out = String::new();
        self.flatten("", &mut out);
        out
    }

    fn flatten(&self, path: &str, out: &mut String) {
        let join =
            |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match self {
            Self::Object(pairs) => {
                for (key, value) in pairs {
                    value.flatten(&join(key), out);
                }
            }
            Self::List(items) if !items.is_empty() => {
                for (index, value) in items.iter().enumerate() {
                    value.flatten(&join(&index.to_string()), out);
                }
            }
            Self::List(_) | Self::Leaf(_) => {
                let _ = writeln!(out, "{path}: {self}");
            }
        }
    }

    /// What differs from the contract, a line each.
    pub(super) fn breaches(&self, kind: Kind) -> Vec<String> {
        let mut found = Vec::new();
        self.compare("", kind, &mut found);
        found
    }

    fn compare(&self, path: &str, kind: Kind, found: &mut Vec<String>) {
        match (kind, self) {
            (Kind::Object(want), Self::Object(pairs)) => {
                let keys: Vec<&str> = pairs.iter().map(|(key, _)| key.as_str()).collect();
                let wanted: Vec<&str> = want.iter().map(|(key, _)| *key).collect();
                if keys != wanted {
                    found.push(format!("{path}: keys {keys:?}, not {wanted:?}"));
                }
                for ((key, value), (_, kind)) in pairs.iter().zip(want) {
                    value.compare(&format!("{path}.{key}"), *kind, found);
                }
            }
            (Kind::List(kind), Self::List(items)) => {
                for (index, item) in items.iter().enumerate() {
                    item.compare(&format!("{path}.{index}"), *kind, found);
                }
            }
            (Kind::Or(_), Self::Leaf(Value::Null))
            | (Kind::Text, Self::Leaf(Value::String(_)))
            | (Kind::Bool, Self::Leaf(Value::Bool(_))) => {}
            (Kind::Or(kind), other) => other.compare(path, *kind, found),
            (Kind::Number, Self::Leaf(Value::Number(number))) if number.as_i64().is_some() => {}
            (Kind::Time, Self::Leaf(Value::String(text))) if is_time(text) => {}
            (Kind::Word(words), Self::Leaf(Value::String(text)))
                if words.contains(&text.as_str()) => {}
            (kind, other) => found.push(format!("{path}: {other} is no {kind:?}")),
        }
    }
}

/// RFC 3339, UTC, with milliseconds.
fn is_time(text: &str) -> bool {
    let shape: String =
        text.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    shape == "0000-00-00T00:00:00.000Z" && text.parse::<jiff::Timestamp>().is_ok()
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(pairs) => {
                f.write_str("{")?;
                for (index, (key, value)) in pairs.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}\"{key}\":{value}")?;
                }
                f.write_str("}")
            }
            Self::List(items) => {
                f.write_str("[")?;
                for (index, value) in items.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{value}")?;
                }
                f.write_str("]")
            }
            Self::Leaf(value) => write!(f, "{value}"),
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Tree;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any JSON")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Tree::Object(pairs))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Tree::List(items))
            }
            fn visit_unit<E>(self) -> Result<Tree, E> {
                Ok(Tree::Leaf(Value::Null))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
                Ok(Tree::Leaf(value.into()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
                Ok(Tree::Leaf(value.into()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
                Ok(Tree::Leaf(value.into()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
                Ok(Tree::Leaf(value.into()))
            }
            fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
                Ok(Tree::Leaf(value.into()))
            }
        }
        deserializer.deserialize_any(Reading)
    }
}
