//! What does an operator's request say? JSON, whole, bounded in size and time, and nothing beside what is asked for.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::body;
use crate::errors::ApiError;
use crate::json::{self, Object};

/// Longest name of anything, in characters.
const MAX_NAME: usize = 200;

/// A JSON body.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest for Json<T> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let headers = request.headers();
            body::check_plain(headers)?;
            body::check_json(headers)?;
            let body = body::read(headers, payload).await?;
            // A list of the fields' values would be read as an object, too.
            if body.trim_ascii_start().starts_with(b"[") {
                return Err(ApiError::invalid("body", "expected an object"));
            }
            json::parse(&body).map(Self)
        })
    }
}

/// A JSON body that may be left out.
pub(super) struct JsonOrNothing<T>(pub(super) T);

impl<T: DeserializeOwned + Default + 'static> FromRequest for JsonOrNothing<T> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        if body::is_absent(request.headers()) {
            return Box::pin(std::future::ready(Ok(Self(T::default()))));
        }
        let body = Json::from_request(request, payload);
        Box::pin(async move { body.await.map(|Json(value)| Self(value)) })
    }
}

/// A field that may be left out. Where it is given, `null` is its type's affair.
pub(super) fn given<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Like [`given`], for what must be written as an object. A derived reader takes a list of the fields' values as well.
pub(super) fn given_object<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Object::deserialize(deserializer).map(|Object(value)| Some(value))
}

/// Like [`given_object`], where `null` is given, too.
pub(super) fn given_object_or_null<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let value = Option::<Object<T>>::deserialize(deserializer)?;
    Ok(Some(value.map(|Object(value)| value)))
}

/// A text for people, trimmed: 1 to 200 characters, none of them a control character.
pub(super) fn name(field: &str, text: &str) -> Result<String, ApiError> {
    bounded(field, text, MAX_NAME)
}

/// A text of 1 to `max` characters, trimmed, none of them a control character.
pub(super) fn bounded(field: &str, text: &str, max: usize) -> Result<String, ApiError> {
    let text = text.trim();
    if (1..=max).contains(&text.chars().count()) && !text.contains(char::is_control) {
        return Ok(text.to_owned());
    }
    let message = format!("expected 1 to {max} characters, without control characters");
    Err(ApiError::invalid(field, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::Code;

    #[test]
    fn a_name_is_trimmed_bounded_and_printable() {
        assert_eq!(name("name", " Acme & Söhne ").unwrap(), "Acme & Söhne");
        assert!(name("name", &"ß".repeat(200)).is_ok());
        for text in ["", "  ", "a\nb", "a\u{0}b", &"ß".repeat(201)] {
            let error = name("name", text).unwrap_err();
            assert_eq!(
                (error.code, error.details[0].field.as_str()),
                (Code::ValidationFailed, "name"),
                "{text:?}"
            );
        }
    }

    #[test]
    fn null_is_not_the_same_as_nothing() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Patch {
            #[serde(default, deserialize_with = "given")]
            clears: Option<Option<u32>>,
            #[serde(default, deserialize_with = "given")]
            stays: Option<bool>,
        }
        let patch = |text| serde_json::from_str::<Patch>(text);
        assert_eq!(
            patch("{}").unwrap(),
            Patch {
                clears: None,
                stays: None
            }
        );
        assert_eq!(patch(r#"{"clears":null}"#).unwrap().clears, Some(None));
        assert_eq!(patch(r#"{"clears":7}"#).unwrap().clears, Some(Some(7)));
        assert!(patch(r#"{"stays":null}"#).is_err());
    }
}
