//! Strict JSON parsing of request bodies: malformed JSON is rejected as such, an invalid field is named.

mod secret_text;

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, IgnoredAny, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::error::Category;
use vouchsafe_domain::json_depth::nesting_depth;

pub use self::secret_text::SecretText;
use crate::error_body::InvalidRequest;
use crate::error_code::Code;

/// Maximum nesting of a body (contract §2), far below the depth that could overflow the parser's stack.
const MAX_DEPTH: usize = 32;

/// Maximum characters of a field path in an error: the client chose the names.
const MAX_FIELD_CHARS: usize = 100;

/// Maximum characters of the reason in an error.
const MAX_REASON_CHARS: usize = 200;

/// A struct that must be a JSON object. Derived deserializers also accept an array of the field values.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub struct JsonObject<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = JsonObject<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<JsonObject<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(JsonObject)
    }
}

/// Deserializes an enum from a text. Derived deserializers also accept an object with the variant as its only
/// key.
///
/// # Errors
/// Returns an error for any other type or value.
pub fn enum_value<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    T::deserialize(text.into_deserializer())
}

/// Like [`enum_value`], with `null` as `None`.
///
/// # Errors
/// Returns an error for any other type or value.
pub fn optional_enum_value<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| T::deserialize(text.into_deserializer()))
        .transpose()
}

/// Parses a request body.
///
/// # Errors
/// `MALFORMED_REQUEST` for invalid or too deeply nested JSON; `VALIDATION_FAILED` for unknown, missing or
/// repeated fields, wrong types and numbers out of range.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, InvalidRequest> {
    if nesting_depth(body) > MAX_DEPTH {
        let message = format!("the body is nested more than {MAX_DEPTH} levels deep");
        return Err(InvalidRequest::new(Code::MalformedRequest, message));
    }
    // Tracking field paths is slow, so only an invalid body is parsed a second time with it.
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        parse_error(body, &field, error.inner())
    })?;
    json.end().map_err(|error| parse_error(body, "body", &error))?;
    Ok(value)
}

/// Parses an optional request body; an empty one has the default of every field.
///
/// # Errors
/// Those of [`parse`], and `VALIDATION_FAILED` for anything but an object.
pub(crate) fn parse_optional<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, InvalidRequest> {
    if body.is_empty() {
        return Ok(T::default());
    }
    parse(body).map(|JsonObject(value)| value)
}

/// The first field of an object, a text with this name and length.
pub(crate) fn leading_text<'a>(body: &'a [u8], name: &str, length: usize) -> Option<&'a str> {
    let value = body
        .strip_prefix(b"{\"")?
        .strip_prefix(name.as_bytes())?
        .strip_prefix(b"\":\"")?;
    std::str::from_utf8(value.get(..length)?).ok()
}

fn parse_error(body: &[u8], field: &str, error: &serde_json::Error) -> InvalidRequest {
    if let Err(malformed) = check_syntax(body) {
        let message = format!("the body is not valid JSON: {malformed}");
        return InvalidRequest::new(Code::MalformedRequest, message);
    }
    let reason = describe_error(error);
    let field = match (field, field_named_in(&reason)) {
        (".", None) => "body".to_owned(),
        (".", Some(name)) => name.to_owned(),
        (path, None) => path.to_owned(),
        (path, Some(name)) => format!("{path}.{name}"),
    };
    InvalidRequest::field(truncate(&field, MAX_FIELD_CHARS), reason)
}

/// The missing or repeated field. It is safe to show: the name comes from our types.
fn field_named_in(reason: &str) -> Option<&str> {
    let name = reason
        .strip_prefix("missing field `")
        .or_else(|| reason.strip_prefix("duplicate field `"))?;
    name.strip_suffix('`')
}

/// Checks the syntax of the whole body, because the typed parser stops at the first invalid field.
fn check_syntax(body: &[u8]) -> Result<(), serde_json::Error> {
    serde_json::from_slice::<IgnoredAny>(body)?;
    match serde_json::from_slice::<serde_json::Value>(body) {
        Err(error) if !is_out_of_range(&error) => Err(error),
        _ => Ok(()),
    }
}

/// A number beyond the range of a float is still valid JSON.
fn is_out_of_range(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("number out of range")
}

/// Describes what was expected. The parser's own message would quote the input, which may be a code or a
/// secret.
fn describe_error(error: &serde_json::Error) -> String {
    if is_out_of_range(error) {
        return "is out of range".to_owned();
    }
    if error.classify() != Category::Data {
        return "has the wrong type".to_owned();
    }
    let text = error.to_string();
    let text = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(text, _)| text);
    let expected = text.rsplit_once(", expected ").map(|(_, expected)| expected);
    match (text.split_once([' ', ':']), expected) {
        (Some(("invalid", rest)), Some(expected)) => {
            let fault = if rest.starts_with("type") {
                "has the wrong type"
            } else {
                "is out of range"
            };
            format!("{fault}; expected {}", client_type_name(expected))
        }
        (Some(("unknown", _)), Some(expected)) => format!("is unknown; expected {expected}"),
        (Some(("unknown", _)), None) => "is unknown".to_owned(),
        _ => truncate(text, MAX_REASON_CHARS),
    }
}

/// The name of a Rust type for clients.
fn client_type_name(expected: &str) -> &str {
    let is_integer = matches!(
        expected,
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64"
    );
    match expected {
        _ if is_integer => "a whole number",
        "a map" => "an object",
        "f64" => "a number",
        _ if expected.starts_with("struct ") => "an object",
        _ if expected.starts_with("a sequence") || expected.starts_with("tuple") => "a list",
        _ => expected,
    }
}

/// Shortens a text that a client may have chosen.
fn truncate(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

#[cfg(test)]
mod tests {
    use vouchsafe_domain::money::AmountText;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Outer {
        items: Vec<JsonObject<Inner>>,
        #[serde(default, deserialize_with = "enum_value")]
        colour: Colour,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "UPPERCASE")]
    enum Colour {
        #[default]
        Red,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Inner {
        quantity: u32,
        amount: Option<AmountText>,
    }

    fn refusal(body: &str) -> (Code, String) {
        let error = parse::<Outer>(body.as_bytes()).unwrap_err();
        (
            error.code,
            error.details.first().map(|d| d.field.clone()).unwrap_or_default(),
        )
    }

    #[test]
    fn amount_beyond_float_precision_is_parsed_exactly() {
        let outer: Outer = parse(br#"{"items":[{"quantity":1,"amount":90071992547409.93}]}"#).unwrap();
        let amount = outer.items[0]
            .0
            .amount
            .as_ref()
            .unwrap()
            .parse("USD".parse().unwrap());
        assert_eq!(amount.unwrap().minor(), 9_007_199_254_740_993);
    }

    #[test]
    fn invalid_json_is_malformed() {
        let deep = format!("{}{}", "[".repeat(33), "]".repeat(33));
        for body in [
            "",
            "{",
            "{nonsense}",
            "nonsense",
            r#"{"items":[],}"#,
            r#"{"items":[]}{}"#,
            r#"{"items":NaN}"#,
            "{\"items\":[\"a\nb\"]}",
            "\u{feff}{}",
            r#"{"items":[]} x"#,
            r#"{"items":["\ud800"]}"#,
            r#"{"items":5"#,
            r#"{"more":1"#,
            r#"{"more":1 garbage"#,
            r#"{"items":[{"quantity":1e400}]"#,
            &deep,
        ] {
            assert_eq!(refusal(body).0, Code::MalformedRequest, "{body}");
        }
    }

    #[test]
    fn invalid_field_is_named_in_the_error() {
        for (body, field) in [
            (r#"{"items":[{"quantity":1.0}]}"#, "items[0].quantity"),
            (r#"{"items":[{"quantity":-1}]}"#, "items[0].quantity"),
            (r#"{"items":[{"quantity":1e400}]}"#, "items[0].quantity"),
            (r#"{"items":[{"quantity":1,"quantity":2}]}"#, "items[0].quantity"),
            (r#"{"items":[{}]}"#, "items[0].quantity"),
            (r#"{"items":[],"items":[]}"#, "items"),
            (r#"{"items":[{"quantity":1,"amount":true}]}"#, "items[0].amount"),
            (r#"{"items":[[1,"2"]]}"#, "items[0]"),
            (r#"{"items":[],"more":1}"#, "more"),
            (r#"{"items":[],"colour":5}"#, "colour"),
            (r#"{"items":[],"colour":null}"#, "colour"),
            (r#"{"items":[],"colour":["RED"]}"#, "colour"),
            (r#"{"items":[],"colour":{"RED":null}}"#, "colour"),
            (r"{}", "items"),
            ("5", "body"),
        ] {
            let (code, found) = refusal(body);
            assert_eq!(
                (code, found.starts_with(field)),
                (Code::ValidationFailed, true),
                "{body}: {found}"
            );
        }
    }

    #[test]
    fn error_names_the_expected_type_and_quotes_no_input() {
        let secret = "CANARY".repeat(50);
        for (body, expected) in [
            (
                r#"{"items":[{"quantity":"?"}]}"#,
                "has the wrong type; expected a whole number",
            ),
            (r#"{"items":"?"}"#, "has the wrong type; expected a list"),
            (r#"{"items":["?"]}"#, "has the wrong type; expected an object"),
            (
                r#"{"items":[{"quantity":-1}]}"#,
                "is out of range; expected a whole number",
            ),
            (r#"{"items":[],"colour":"?"}"#, "is unknown; expected `RED`"),
            (r#"{"items":[{}]}"#, "missing field `quantity`"),
            (
                r#"{"items":[],"?":1}"#,
                "is unknown; expected `items` or `colour`",
            ),
        ] {
            let error = parse::<Outer>(body.replace('?', &secret).as_bytes()).unwrap_err();
            assert_eq!(error.details[0].message, expected, "{body}");
            assert!(error.details[0].field.len() <= MAX_FIELD_CHARS, "{body}");
        }
    }
}
