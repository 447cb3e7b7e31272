//! JSON values with fields in their original order and numbers with their original digits: an amount never
//! becomes a float.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use vouchsafe_domain::json_depth::nesting_depth;

/// More than a body of the API has. Each level of a value takes a frame of the stack, and an overflow would
/// abort the process.
const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// The digits.
    Number(String),
    Text(String),
    /// An ID, and what is shown for it.
    Id {
        id: String,
        label: String,
    },
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// A text that is not JSON, or is nested more deeply than [`MAX_DEPTH`], is null.
    pub(crate) fn parse(text: &[u8]) -> Self {
        if nesting_depth(text) > MAX_DEPTH {
            return Self::Null;
        }
        serde_json::from_slice(text).unwrap_or(Self::Null)
    }

    /// The value at a path of field names. `last` is the last entry of a list.
    pub(crate) fn get(&self, path: &str) -> &Self {
        path.split('.').fold(self, |value, name| {
            let found = match value {
                Self::Object(fields) => fields
                    .iter()
                    .find(|(known, _)| known == name)
                    .map(|(_, value)| value),
                Self::List(entries) if name == "last" => entries.last(),
                _ => None,
            };
            found.unwrap_or(&Self::Null)
        })
    }

    /// The text of a string, number or ID.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Number(text) | Self::Id { id: text, .. } => Some(text),
            _ => None,
        }
    }

    pub(crate) fn entries(&self) -> &[Self] {
        match self {
            Self::List(entries) => entries,
            _ => &[],
        }
    }

    pub(crate) fn is(&self, field: &str, text: &str) -> bool {
        self.get(field).text() == Some(text)
    }

    /// Whether it is null, or has nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Text(text) => text.is_empty(),
            Self::List(entries) => entries.is_empty(),
            Self::Object(fields) => fields.is_empty(),
            Self::Bool(_) | Self::Number(_) | Self::Id { .. } => false,
        }
    }

    /// Sets the value at a path, and makes the objects on the way.
    pub(crate) fn set(&mut self, path: &str, value: Self) {
        let (name, rest) = path
            .split_once('.')
            .map_or((path, None), |(name, rest)| (name, Some(rest)));
        if !matches!(self, Self::Object(_)) {
            *self = Self::Object(Vec::new());
        }
        let Self::Object(fields) = self else { return };
        let index = fields.iter().position(|(known, _)| known == name);
        let index = index.unwrap_or_else(|| {
            fields.push((name.to_owned(), Self::Null));
            fields.len() - 1
        });
        match rest {
            Some(rest) => fields[index].1.set(rest, value),
            None => fields[index].1 = value,
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Number(digits) => f.write_str(digits),
            Self::Text(text) | Self::Id { id: text, .. } => f.write_str(&quoted(text)),
            Self::List(entries) => {
                let entries: Vec<_> = entries.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", entries.join(","))
            }
            Self::Object(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| format!("{}:{value}", quoted(name)))
                    .collect();
                write!(f, "{{{}}}", fields.join(","))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        of_raw(&raw).map_err(serde::de::Error::custom)
    }
}

fn of_raw(raw: &RawValue) -> serde_json::Result<Json> {
    let text = raw.get();
    Ok(match text.as_bytes().first() {
        Some(b'{') => Json::Object(serde_json::from_str::<Fields>(text)?.0),
        Some(b'[') => Json::List(serde_json::from_str(text)?),
        Some(b'"') => Json::Text(serde_json::from_str(text)?),
        Some(b't' | b'f') => Json::Bool(serde_json::from_str(text)?),
        Some(b'n') | None => Json::Null,
        Some(_) => Json::Number(text.to_owned()),
    })
}

struct Fields(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_digits_and_order() {
        let text = r#"{"b":25.00,"a":[1,null,true,"x\"y"],"n":{"c":-0.10}}"#;
        let json = Json::parse(text.as_bytes());
        assert_eq!(json.to_string(), text);
        assert_eq!(json.get("b").text(), Some("25.00"));
        assert_eq!(json.get("n.c").text(), Some("-0.10"));
        assert_eq!(json.get("a.last").text(), Some("x\"y"));
        assert_eq!(json.get("a.missing"), &Json::Null);
        assert_eq!(Json::parse(b"<html>"), Json::Null);
    }

    #[test]
    fn deeply_nested_text_is_null() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_ne!(Json::parse(nested(MAX_DEPTH).as_bytes()), Json::Null);
        assert_eq!(Json::parse(nested(MAX_DEPTH + 1).as_bytes()), Json::Null);
        assert_eq!(Json::parse(nested(200_000).as_bytes()), Json::Null);
        let brackets_in_text = format!(r#"["\\\"{}"]"#, "[".repeat(100));
        assert_eq!(Json::parse(brackets_in_text.as_bytes()).entries().len(), 1);
    }

    #[test]
    fn value_is_set_at_a_path() {
        let mut json = Json::Null;
        json.set("limits.orders", Json::Number("1".to_owned()));
        json.set("limits.auth", Json::Null);
        json.set("reason", Json::Text("é\n".to_owned()));
        assert_eq!(
            json.to_string(),
            r#"{"limits":{"orders":1,"auth":null},"reason":"é\n"}"#
        );
    }
}
