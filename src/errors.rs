//! API errors: the error type, its JSON body, and the conversion of database errors.
//!
//! Body: `{"error":{"name","code","message","details"?,"retryable","trace_id"}}` (spec part 7, contract §7). `name` is `code`
//! in PascalCase. A message says what happened and what to do; it never contains internals, voucher codes or secrets.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use actix_web::{HttpResponse, ResponseError};
use bytes::Bytes;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::Object;
use vouchsafe_actors::store::Unavailable;

use crate::openapi::extensible_enum;
use crate::trace;

mod code;
#[cfg(test)]
mod page;

pub use self::code::Code;

/// An invalid field of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ErrorDetail)]
pub struct FieldError {
    /// Path of the field, such as `items[0].quantity`.
    pub field: String,
    /// What is wrong, and what is expected.
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct ApiError {
    pub code: Code,
    /// For humans: what happened and what to do.
    pub message: String,
    pub details: Vec<FieldError>,
    /// Value of `Retry-After` in seconds.
    pub retry_after_s: Option<u32>,
}

impl ApiError {
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let retry_after_s =
            matches!(code, Code::ServiceUnavailable | Code::IdempotencyInProgress).then_some(1);
        Self {
            code,
            message: message.into(),
            details: Vec::new(),
            retry_after_s,
        }
    }

    /// `VALIDATION_FAILED` for one field.
    #[must_use]
    pub fn invalid_field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid_fields(vec![FieldError {
            field: field.into(),
            message: message.into(),
        }])
    }

    /// `VALIDATION_FAILED` for several fields.
    #[must_use]
    pub fn invalid_fields(details: Vec<FieldError>) -> Self {
        let first = details
            .first()
            .map(|d| format!("{}: {}", d.field, d.message))
            .unwrap_or_default();
        Self {
            details,
            ..Self::new(Code::ValidationFailed, first)
        }
    }

    /// `SERVICE_UNAVAILABLE`, for a request without effects.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::new(
            Code::ServiceUnavailable,
            "the service is temporarily unavailable; retry the same request",
        )
    }

    /// The JSON body, with the trace id of the current request.
    #[must_use]
    pub fn body(&self) -> Bytes {
        let body = ErrorBody {
            error: ErrorFields {
                name: self.code.name(),
                code: self.code.as_str(),
                message: &self.message,
                details: &self.details,
                retryable: self.code.retryable(),
                trace_id: trace::current_trace_id(),
            },
        };
        serde_json::to_vec(&body).unwrap_or_default().into()
    }
}

/// The body of every error response.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct ErrorBody<'a> {
    /// The error.
    error: ErrorFields<'a>,
}

/// An error, for programs and for humans.
#[derive(Serialize, ToSchema)]
struct ErrorFields<'a> {
    #[schema(schema_with = name_schema)]
    name: &'static str,
    #[schema(schema_with = code_schema)]
    code: &'static str,
    /// For humans: what happened and what to do. The wording may change.
    message: &'a str,
    /// The invalid fields. Only with `VALIDATION_FAILED`.
    #[serde(skip_serializing_if = "<[FieldError]>::is_empty")]
    details: &'a [FieldError],
    /// Whether the same request with the same `Idempotency-Key` may succeed later.
    retryable: bool,
    /// Trace id of the failed request. Quote it when you contact support.
    trace_id: String,
}

fn name_schema() -> Object {
    let names = Code::ALL.iter().map(|code| code.name());
    extensible_enum("The `code` in PascalCase.", names)
}

fn code_schema() -> Object {
    let codes = Code::ALL.iter().map(|code| code.as_str());
    extensible_enum(
        "Identifies the error for programs. Branch on it: several errors share an HTTP status.",
        codes,
    )
}

/// SQLSTATE of text that Postgres cannot store.
const CHARACTER_NOT_IN_REPERTOIRE: &str = "22021";

/// A failed statement. Logged here and nowhere else.
impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> Self {
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code);
        if code.as_deref() == Some(CHARACTER_NOT_IN_REPERTOIRE) {
            return Self::invalid_field(
                "request",
                "a text contains the character NUL, which cannot be stored; remove it",
            );
        }
        tracing::error!(error.message = %crate::store::describe(&error), "database statement of a request failed");
        Self::unavailable()
    }
}

/// A failed statement behind the engine's store port.
impl From<Unavailable> for ApiError {
    fn from(error: Unavailable) -> Self {
        tracing::error!(error.message = %error.0, "database statement of a request failed");
        Self::unavailable()
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        response.insert_header((CONTENT_TYPE, "application/json"));
        response.insert_header((CACHE_CONTROL, "no-store"));
        if let Some(seconds) = self.retry_after_s {
            response.insert_header((RETRY_AFTER, seconds));
        }
        response.body(self.body())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_name_is_the_code_in_pascal_case() {
        for code in Code::ALL {
            let pascal: String = code
                .as_str()
                .split('_')
                .map(|word| [&word[..1], &word[1..].to_lowercase()].concat())
                .collect();
            assert_eq!(code.name(), pascal);
        }
    }

    #[test]
    fn error_body_matches_the_spec() {
        let body = ApiError::invalid_field("items[0].quantity", "expected 1 to 1000").body();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["error"]["name"], "ValidationFailed");
        assert_eq!(body["error"]["code"], "VALIDATION_FAILED");
        assert_eq!(body["error"]["details"][0]["field"], "items[0].quantity");
        assert_eq!(body["error"]["retryable"], false);
        assert!(body["error"]["message"].is_string() && body["error"]["trace_id"].is_string());
    }
}
