//! Strict JSON: what is no JSON is malformed, what is JSON and not what was asked for names the field that is wrong.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use crate::errors::{ApiError, Code};

/// Deepest nesting of a body (contract §2). Far below where a parser would be in trouble.
const MAX_DEPTH: usize = 32;

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
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        refused(&field, error.inner())
    })?;
    json.end().map_err(|error| refused("body", &error))?;
    Ok(value)
}

fn refused(field: &str, error: &serde_json::Error) -> ApiError {
    // A number that no float can hold is JSON all the same.
    let out_of_range = error.to_string().starts_with("number out of range");
    if error.classify() == Category::Data || out_of_range {
        return ApiError::invalid(if field == "." { "body" } else { field }, reason(error));
    }
    ApiError::new(
        Code::MalformedRequest,
        format!("the body is not valid JSON: {error}"),
    )
}

/// The parser's words without the position, which says nothing next to the field. What the client sent is not quoted
/// beyond the name of a field.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
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
            (r#"{"items":[{"quantity":1,"quantity":2}]}"#, "items[0]"),
            (r#"{"items":[{"quantity":1,"amount":true}]}"#, "items[0].amount"),
            (r#"{"items":[[1,"2"]]}"#, "items[0]"),
            (r#"{"items":[],"more":1}"#, "more"),
            (r"{}", "body"),
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
    fn brackets_in_strings_do_not_nest() {
        assert_eq!(depth(br#"{"a":"[[[\"[["}"#), 1);
        assert_eq!(depth(br#"{"a":[{"b":[]}]}"#), 4);
    }
}
