//! How is an error answered? By a code of the one table (`code.rs`), and in the one body they all have.
//!
//! `{"error":{"name","code","message","details"?,"retryable","trace_id"}}` (spec part 7, contract §7). `name` is `code` in
//! PascalCase. A message says what to do; it never holds internals, codes or secrets.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use actix_web::{HttpResponse, ResponseError};
use bytes::Bytes;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::Object;
use vouchsafe_actors::store::Unavailable;

use crate::openapi::open_words;
use crate::trace;

mod code;
#[cfg(test)]
mod page;

pub use self::code::Code;

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ErrorDetail)]
pub struct Detail {
    /// Where: a path such as `items[0].quantity`.
    pub field: String,
    /// What, and what is expected.
    pub message: String,
}

/// An error, ready to be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct ApiError {
    pub code: Code,
    /// For people: what happened and what to do.
    pub message: String,
    /// Which fields are wrong.
    pub details: Vec<Detail>,
    /// After how many seconds to try again.
    pub retry_after_s: Option<u32>,
}

impl ApiError {
    /// An error with a message.
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

    /// One field is wrong.
    #[must_use]
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid_fields(vec![Detail {
            field: field.into(),
            message: message.into(),
        }])
    }

    /// These fields are wrong.
    #[must_use]
    pub fn invalid_fields(details: Vec<Detail>) -> Self {
        let first = details
            .first()
            .map(|d| format!("{}: {}", d.field, d.message))
            .unwrap_or_default();
        Self {
            details,
            ..Self::new(Code::ValidationFailed, first)
        }
    }

    /// The service cannot do it now; nothing was done.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::new(
            Code::ServiceUnavailable,
            "the service cannot do this now; send the same request again",
        )
    }

    /// The body's bytes, with the trace id of the request that is being answered.
    #[must_use]
    pub fn body(&self) -> Bytes {
        let body = ErrorBody {
            error: ErrorFields {
                name: self.code.name(),
                code: self.code.as_str(),
                message: &self.message,
                details: &self.details,
                retryable: self.code.retryable(),
                trace_id: trace::current(),
            },
        };
        serde_json::to_vec(&body).unwrap_or_default().into()
    }
}

/// The one form of an error.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct ErrorBody<'a> {
    /// What went wrong.
    error: ErrorFields<'a>,
}

/// What went wrong, for programs and for people.
#[derive(Serialize, ToSchema)]
struct ErrorFields<'a> {
    #[schema(schema_with = name_schema)]
    name: &'static str,
    #[schema(schema_with = code_schema)]
    code: &'static str,
    /// For people: what happened, and what to do. Its words may change.
    message: &'a str,
    /// Which fields are wrong; with `VALIDATION_FAILED` alone.
    #[serde(skip_serializing_if = "<[Detail]>::is_empty")]
    details: &'a [Detail],
    /// Whether the same request with the same Idempotency-Key may succeed later.
    retryable: bool,
    /// The trace id of the request that was refused so; quote it when you ask for help.
    trace_id: String,
}

fn name_schema() -> Object {
    let names = Code::ALL.iter().map(|code| code.name());
    open_words("The code in PascalCase.", names)
}

fn code_schema() -> Object {
    let codes = Code::ALL.iter().map(|code| code.as_str());
    open_words(
        "What went wrong, for programs. A status says less: branch on the code.",
        codes,
    )
}

/// SQLSTATE of a text that Postgres cannot hold.
const NOT_A_TEXT: &str = "22021";

/// The database did not answer, or answered that it cannot: the one line about it is logged here.
impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> Self {
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code);
        if code.as_deref() == Some(NOT_A_TEXT) {
            return Self::invalid(
                "request",
                "a text in it holds the character NUL, which cannot be stored",
            );
        }
        tracing::error!(error = %crate::store::describe(&error), "the database failed a request");
        Self::unavailable()
    }
}

/// The same, of what the engine's port said.
impl From<Unavailable> for ApiError {
    fn from(error: Unavailable) -> Self {
        tracing::error!(error = %error.0, "the database failed a request");
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
    fn the_name_is_the_code_in_pascal_case() {
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
    fn the_body_has_the_specs_shape() {
        let body = ApiError::invalid("items[0].quantity", "expected 1 to 1000").body();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["error"]["name"], "ValidationFailed");
        assert_eq!(body["error"]["code"], "VALIDATION_FAILED");
        assert_eq!(body["error"]["details"][0]["field"], "items[0].quantity");
        assert_eq!(body["error"]["retryable"], false);
        assert!(body["error"]["message"].is_string() && body["error"]["trace_id"].is_string());
    }
}
