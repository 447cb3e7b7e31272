//! JSON body extractors of the operator API: bounded in size and time, unknown fields rejected.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::api::body;
use crate::api::error::ApiError;
use vouchsafe_wire::json::{self, JsonObject};

/// In characters.
const MAX_NAME: usize = 200;

pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest for Json<T> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let headers = request.headers();
            body::check_not_compressed(headers)?;
            body::check_json_content_type(headers)?;
            let body = body::read(headers, payload).await?;
            // A derived `Deserialize` also accepts an array of the field values.
            if body.trim_ascii_start().starts_with(b"[") {
                return Err(ApiError::invalid_field("body", "expected an object"));
            }
            Ok(Self(json::parse(&body)?))
        })
    }
}

/// An optional JSON body; absent means the default.
pub(super) struct OptionalJson<T>(pub(super) T);

impl<T: DeserializeOwned + Default + 'static> FromRequest for OptionalJson<T> {
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

/// Distinguishes an absent field (`None`) from `null`, which `T` accepts or rejects.
pub(super) fn deserialize_some<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Like [`deserialize_some`], for objects only: a derived `Deserialize` also accepts an array of the field values.
pub(super) fn deserialize_some_object<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    JsonObject::deserialize(deserializer).map(|JsonObject(value)| Some(value))
}

/// Like [`deserialize_some_object`], but accepts `null`.
pub(super) fn deserialize_nullable_object<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let value = Option::<JsonObject<T>>::deserialize(deserializer)?;
    Ok(Some(value.map(|JsonObject(value)| value)))
}

/// Trims a display name and checks it: 1 to 200 characters, no control characters.
pub(super) fn validate_name(field: &str, text: &str) -> Result<String, ApiError> {
    validate_text(field, text, MAX_NAME)
}

/// Trims a text and checks it: 1 to `max` characters, no control characters.
pub(super) fn validate_text(field: &str, text: &str, max: usize) -> Result<String, ApiError> {
    let text = text.trim();
    if (1..=max).contains(&text.chars().count()) && !text.contains(char::is_control) {
        return Ok(text.to_owned());
    }
    let message = format!("expected 1 to {max} characters, without control characters");
    Err(ApiError::invalid_field(field, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vouchsafe_wire::error_code::Code;

    #[test]
    fn name_is_trimmed_and_checked_for_length_and_control_characters() {
        assert_eq!(validate_name("name", " Acme & Söhne ").unwrap(), "Acme & Söhne");
        assert!(validate_name("name", &"ß".repeat(200)).is_ok());
        for text in ["", "  ", "a\nb", "a\u{0}b", &"ß".repeat(201)] {
            let error = validate_name("name", text).unwrap_err();
            assert_eq!(
                (error.code, error.details[0].field.as_str()),
                (Code::ValidationFailed, "name"),
                "{text:?}"
            );
        }
    }

    #[test]
    fn null_differs_from_absent_field() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Patch {
            #[serde(default, deserialize_with = "deserialize_some")]
            clears: Option<Option<u32>>,
            #[serde(default, deserialize_with = "deserialize_some")]
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
