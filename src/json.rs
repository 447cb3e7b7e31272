//! Strict JSON: what is no JSON is malformed, what is JSON and not what was asked for names the field that is wrong.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, IgnoredAny, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use crate::errors::{ApiError, Code};

/// Deepest nesting of a body (contract §2). Far below where a parser would be in trouble.
const MAX_DEPTH: usize = 32;

/// How much of the path to a wrong field is told, in characters: its names may be the client's.
const MAX_FIELD: usize = 100;

/// How much is told of what is wrong with it, in characters.
const MAX_REASON: usize = 200;

/// What must be written as a JSON object. A derived reader takes a list of the fields' values as well.
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// A text that may be a code. What is no text is refused without being quoted.
pub struct SecretText(zeroize::Zeroizing<String>);

impl SecretText {
    /// The text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecretVisitor)
    }
}

struct SecretVisitor;

impl Visitor<'_> for SecretVisitor {
    type Value = SecretText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SecretText, E> {
        Ok(SecretText(text.to_owned().into()))
    }

    // A number is quoted by who says what else was expected.
    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<SecretText, E> {
        Err(E::custom("expected a string"))
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<SecretText, E> {
        Err(E::custom("expected a string"))
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<SecretText, E> {
        Err(E::custom("expected a string"))
    }
}

/// Reads one of several words. A derived reader takes an object as well, whose only key is the word.
///
/// # Errors
/// What is no text, or none of the words.
pub fn word<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    T::deserialize(text.into_deserializer())
}

/// Like [`word`], where `null` is no word.
///
/// # Errors
/// What is neither a text nor `null`, or none of the words.
pub fn word_or_null<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| T::deserialize(text.into_deserializer()))
        .transpose()
}

/// Reads a body.
///
/// # Errors
/// `MALFORMED_REQUEST` for what is no JSON or nested too deeply, `VALIDATION_FAILED` for unknown, missing or repeated
/// fields, wrong types and numbers out of range.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    if depth(body) > MAX_DEPTH {
        let message = format!("the body is nested more than {MAX_DEPTH} deep");
        return Err(ApiError::new(Code::MalformedRequest, message));
    }
    // Where a field stands is found out for those alone who sent a wrong one.
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        refused(body, &field, error.inner())
    })?;
    json.end().map_err(|error| refused(body, "body", &error))?;
    Ok(value)
}

fn refused(body: &[u8], field: &str, error: &serde_json::Error) -> ApiError {
    if let Err(malformed) = check(body) {
        let message = format!("the body is not valid JSON: {malformed}");
        return ApiError::new(Code::MalformedRequest, message);
    }
    let reason = reason(error);
    let field = match (field, absent(&reason)) {
        (".", None) => "body".to_owned(),
        (".", Some(name)) => name.to_owned(),
        (path, None) => path.to_owned(),
        (path, Some(name)) => format!("{path}.{name}"),
    };
    ApiError::invalid(cut(&field, MAX_FIELD), reason)
}

/// The field that is missing, or there twice: its name is ours.
fn absent(reason: &str) -> Option<&str> {
    let name = reason
        .strip_prefix("missing field `")
        .or_else(|| reason.strip_prefix("duplicate field `"))?;
    name.strip_suffix('`')
}

/// Whether a body that could not be read is JSON at all; a reader stops at the first thing that it did not ask for.
fn check(body: &[u8]) -> Result<(), serde_json::Error> {
    serde_json::from_slice::<IgnoredAny>(body)?;
    match serde_json::from_slice::<serde_json::Value>(body) {
        Err(error) if !is_out_of_range(&error) => Err(error),
        _ => Ok(()),
    }
}

/// A number that no float can hold is JSON all the same.
fn is_out_of_range(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("number out of range")
}

/// What was expected. The parser's own words quote what the client sent, which may be a code or a secret.
fn reason(error: &serde_json::Error) -> String {
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
            format!("{fault}; expected {}", in_words(expected))
        }
        (Some(("unknown", _)), Some(expected)) => format!("is not known; expected {expected}"),
        (Some(("unknown", _)), None) => "is not known".to_owned(),
        _ => cut(text, MAX_REASON),
    }
}

/// A type of the program, as a client would name it.
fn in_words(expected: &str) -> &str {
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

/// At most so many characters of a text that a client may have made.
fn cut(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// How deep brackets nest outside of strings.
fn depth(body: &[u8]) -> usize {
    let (mut open, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                open += 1;
                deepest = deepest.max(open);
            }
            b'}' | b']' if !in_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use vouchsafe_actors::domain::money::AmountText;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Outer {
        items: Vec<Object<Inner>>,
        #[serde(default, deserialize_with = "word")]
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
    fn amounts_are_read_exactly() {
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
    fn what_is_no_json_is_malformed() {
        let deep = format!("{}{}", "[".repeat(33), "]".repeat(33));
        for body in [
            "",
            "{",
            "nonsense",
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
    fn what_is_json_but_wrong_names_the_field() {
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
    fn a_refusal_says_what_is_expected_and_quotes_nothing() {
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
            (r#"{"items":[],"colour":"?"}"#, "is not known; expected `RED`"),
            (r#"{"items":[{}]}"#, "missing field `quantity`"),
            (
                r#"{"items":[],"?":1}"#,
                "is not known; expected `items` or `colour`",
            ),
        ] {
            let error = parse::<Outer>(body.replace('?', &secret).as_bytes()).unwrap_err();
            assert_eq!(error.details[0].message, expected, "{body}");
            assert!(error.details[0].field.len() <= MAX_FIELD, "{body}");
        }
    }

    #[test]
    fn brackets_in_strings_do_not_nest() {
        assert_eq!(depth(br#"{"a":"[[[\"[["}"#), 1);
        assert_eq!(depth(br#"{"a":[{"b":[]}]}"#), 4);
    }
}
