//! JSON body extractors of the operator API: bounded in size and time, unknown fields rejected.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use serde::de::DeserializeOwned;
use vouchsafe_wire::json;

use crate::api::body;
use crate::api::error::ApiError;

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
