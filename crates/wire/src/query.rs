//! Query strings: strict parsing into a struct, and formatting of one.

use std::collections::BTreeSet;

use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer, Visitor};
use serde::{Deserializer, Serialize, forward_to_deserialize_any};

use crate::error_body::InvalidRequest;

/// Parameters of a query, in the order of the request.
pub type Pairs = Vec<(String, String)>;

/// Why a query does not parse.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct QueryError {
    /// The missing parameter.
    missing: Option<&'static str>,
    /// Text for the client.
    message: String,
}

impl serde::de::Error for QueryError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self {
            missing: None,
            message: message.to_string(),
        }
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("expected one of {}", expected.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            missing: Some(field),
            message: "is missing".to_owned(),
        }
    }
}

/// Splits a query string.
///
/// # Errors
/// `VALIDATION_FAILED` if it does not consist of `name=value` pairs, or a name occurs more than once.
pub fn split(query: &str) -> Result<Pairs, InvalidRequest> {
    let pairs: Pairs = serde_urlencoded::from_str(query)
        .map_err(|_| InvalidRequest::field("query", "expected name=value pairs"))?;
    let mut names = BTreeSet::new();
    match pairs.iter().find(|(name, _)| !names.insert(name)) {
        Some((repeated, _)) => Err(InvalidRequest::field(repeated, "given more than once")),
        None => Ok(pairs),
    }
}

/// Parses the parameters of a query. The fields of the struct are the known parameters.
///
/// # Errors
/// `VALIDATION_FAILED` for an unknown or missing parameter, or a value that does not parse.
pub fn parse<T: Serialize + DeserializeOwned + Default>(pairs: &Pairs) -> Result<T, InvalidRequest> {
    if !pairs.is_empty() {
        let known = names::<T>();
        if let Some((unknown, _)) = pairs.iter().find(|(name, _)| !known.contains(name)) {
            return Err(InvalidRequest::field(unknown, "unknown parameter; remove it"));
        }
    }
    deserialize(pairs).map_err(|error| match error.missing {
        Some(field) => InvalidRequest::field(field, error.message),
        None => invalid_value::<T>(pairs, error),
    })
}

/// Formats a struct as a query string, without the fields that are `None`.
///
/// # Errors
/// For a field that is neither a text nor a number, which is a bug.
pub fn to_string(parameters: &impl Serialize) -> Result<String, serde_urlencoded::ser::Error> {
    serde_urlencoded::to_string(parameters)
}

/// Names of the parameters: those of the serialized fields.
#[must_use]
pub fn names<T: Serialize + Default>() -> BTreeSet<String> {
    match serde_json::to_value(T::default()) {
        Ok(serde_json::Value::Object(fields)) => fields.into_iter().map(|(name, _)| name).collect(),
        _ => BTreeSet::new(),
    }
}

fn deserialize<T: DeserializeOwned>(pairs: &[(String, String)]) -> Result<T, QueryError> {
    let values = pairs.iter().map(|(name, value)| (name.as_str(), Value(value)));
    T::deserialize(MapDeserializer::new(values))
}

/// Names the invalid parameter: the one that does not parse alone either.
fn invalid_value<T: DeserializeOwned>(pairs: &Pairs, error: QueryError) -> InvalidRequest {
    let invalid = pairs.iter().find_map(|pair| {
        let error = deserialize::<T>(std::slice::from_ref(pair)).err()?;
        error.missing.is_none().then_some((&pair.0, error.message))
    });
    match invalid {
        Some((name, message)) => InvalidRequest::field(name, message),
        None => InvalidRequest::field("query", error.message),
    }
}

/// Value of a parameter.
#[derive(Clone, Copy)]
struct Value<'a>(&'a str);

impl<'de> IntoDeserializer<'de, QueryError> for Value<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = QueryError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, QueryError> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, QueryError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, QueryError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, QueryError> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, QueryError> {
        match self.0 {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(serde::de::Error::custom("expected true or false")),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use vouchsafe_domain::order::filter::OrderSearch;
    use vouchsafe_domain::payout::PayoutSearch;

    use super::*;

    fn refusal<T: Serialize + DeserializeOwned + Default>(query: &str) -> String {
        let refused = split(query).and_then(|pairs| parse::<T>(&pairs)).err();
        refused.map(|error| error.message).unwrap_or_default()
    }

    #[test]
    fn invalid_parameter_is_named_with_what_is_expected() {
        for (query, message) in [
            (
                "partner_id=nobody",
                "partner_id: expected ptn_ followed by 32 lower-case hex digits",
            ),
            (
                "status=PAID&partner_id=",
                "partner_id: expected ptn_ followed by 32 lower-case hex digits",
            ),
            (
                "status=paid",
                "status: expected one of PENDING, PAID, REJECTED, FAILED",
            ),
            ("status=PAID&status=PAID", "status: given more than once"),
            ("colour=red", "colour: unknown parameter; remove it"),
        ] {
            assert_eq!(refusal::<PayoutSearch>(query), message, "{query}");
        }
        let time = "expected a date such as 2026-11-20 or a time such as 2026-11-20T12:00:00Z; write + as %2B in a query";
        assert_eq!(
            refusal::<OrderSearch>("reference=a&from=yesterday"),
            format!("from: {time}")
        );
    }

    #[test]
    fn flag_is_true_or_false() {
        #[derive(Default, Serialize, Deserialize)]
        struct Flag {
            #[serde(default)]
            is_set: bool,
        }
        let flag = |query: &str| parse::<Flag>(&split(query).unwrap()).map(|flag| flag.is_set).ok();
        assert_eq!(
            ["is_set=true", "is_set=false", "", "is_set=1"].map(flag),
            [Some(true), Some(false), Some(false), None]
        );
    }

    #[test]
    fn missing_parameter_is_named() {
        #[derive(Default, Serialize, Deserialize)]
        struct Needed {
            vendor: String,
        }
        assert_eq!(refusal::<Needed>(""), "vendor: is missing");
        assert_eq!(refusal::<Needed>("vendor=a"), "");
    }

    #[test]
    fn query_round_trips_with_flattened_parts() {
        let query = "partner_id=ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f&status=DELIVERED&reference=a+b&from=2026-11-20T00%3A00%3A00.000000Z";
        let search: OrderSearch = parse(&split(query).unwrap()).unwrap();
        assert_eq!(search.filter.reference.as_deref(), Some("a b"));
        assert_eq!(to_string(&search).unwrap(), query);
        assert_eq!(to_string(&OrderSearch::default()).unwrap(), "");
    }
}
