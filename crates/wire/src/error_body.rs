//! Body of every error response, and the error of a request that the wire format does not permit.
//!
//! Body: `{"error":{"name","code","message","details"?,"retryable","trace_id"}}` (spec part 7, contract §7).
//! `name` is `code` in PascalCase.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::Object;

use crate::error_code::Code;
use crate::schema::extensible_enum;

/// Characters of a name that an error quotes.
const MAX_FIELD_NAME: usize = 200;

/// An invalid field of a request, an item that cannot be ordered, or the missing scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// Path of the field, such as `items[0].quantity`.
    pub field: String,
    /// What is wrong, and what is expected.
    pub message: String,
    /// With `INSUFFICIENT_INVENTORY`: a quantity that was in stock, rounded down; 0 if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_quantity: Option<u32>,
}

impl ErrorDetail {
    #[must_use]
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
            max_quantity: None,
        }
    }
}

/// A request that the wire format does not permit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub struct InvalidRequest {
    pub code: Code,
    /// For humans: what happened and what to do.
    pub message: String,
    pub details: Vec<ErrorDetail>,
}

impl InvalidRequest {
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Vec::new(),
        }
    }

    /// `VALIDATION_FAILED` for one field.
    #[must_use]
    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        let mut errors = FieldErrors::default();
        errors.push(field, message);
        Self::fields(errors.0)
    }

    /// `VALIDATION_FAILED` for several fields.
    #[must_use]
    pub fn fields(details: Vec<ErrorDetail>) -> Self {
        let first = details
            .first()
            .map(|d| format!("{}: {}", d.field, d.message))
            .unwrap_or_default();
        Self {
            details,
            ..Self::new(Code::ValidationFailed, first)
        }
    }
}

/// The invalid fields of a request, all of which the error names.
#[derive(Debug, Default)]
pub(crate) struct FieldErrors(Vec<ErrorDetail>);

impl FieldErrors {
    pub(crate) fn push(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(ErrorDetail::new(shorten(field.into()), message));
    }

    /// The value, if every field is valid.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` if a field is invalid.
    pub(crate) fn or<T>(self, value: Option<T>) -> Result<T, InvalidRequest> {
        value
            .filter(|_| self.0.is_empty())
            .ok_or_else(|| InvalidRequest::fields(self.0))
    }
}

/// The name of an unknown field or parameter may be as long as the request.
fn shorten(mut name: String) -> String {
    if let Some((end, _)) = name.char_indices().nth(MAX_FIELD_NAME) {
        name.truncate(end);
        name.push('…');
    }
    name
}

/// The body of every error response.
#[derive(Serialize, ToSchema)]
#[schema(as = ErrorResponse)]
pub struct ErrorBody<'a> {
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
    /// The invalid fields with `VALIDATION_FAILED`; every item of an order that cannot be ordered, and why;
    /// the amounts of a limit that an order exceeds; with `MISSING_SCOPE` one entry whose `field` is `scope`
    /// and whose `message` is the scope.
    #[serde(skip_serializing_if = "<[ErrorDetail]>::is_empty")]
    details: &'a [ErrorDetail],
    /// Whether the same request with the same `Idempotency-Key` may succeed later.
    retryable: bool,
    /// Trace id of the failed request. Quote it when you contact support.
    trace_id: String,
}

impl<'a> ErrorBody<'a> {
    /// The body of an error; `trace_id` is that of the failed request.
    #[must_use]
    pub fn new(code: Code, message: &'a str, details: &'a [ErrorDetail], trace_id: String) -> Self {
        Self {
            error: ErrorFields {
                name: code.name(),
                code: code.as_str(),
                message,
                details,
                retryable: code.retryable(),
                trace_id,
            },
        }
    }
}

impl ErrorBody<'_> {
    /// Name of the schema with the fields of an error, and its properties that list these codes.
    #[must_use]
    pub fn code_properties(codes: &[Code]) -> (Cow<'static, str>, [(&'static str, Object); 2]) {
        (
            ErrorFields::name(),
            [("name", names_of(codes)), ("code", labels_of(codes))],
        )
    }

    /// The code of an error body.
    #[must_use]
    pub fn code_in(body: &[u8]) -> Option<Code> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            error: Error<'a>,
        }
        #[derive(Deserialize)]
        struct Error<'a> {
            code: &'a str,
        }
        let body: Body<'_> = serde_json::from_slice(body).ok()?;
        let code = body.error.code;
        Code::ALL.iter().find(|known| known.as_str() == code).copied()
    }
}

fn name_schema() -> Object {
    names_of(Code::ALL)
}

fn code_schema() -> Object {
    labels_of(Code::ALL)
}

fn names_of(codes: &[Code]) -> Object {
    extensible_enum("The `code` in PascalCase.", codes.iter().map(|code| code.name()))
}

fn labels_of(codes: &[Code]) -> Object {
    extensible_enum(
        "Identifies the error for programs. Branch on it: several errors share an HTTP status.",
        codes.iter().map(|code| code.as_str()),
    )
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
    fn code_is_found_in_an_error_body_only() {
        for &code in Code::ALL {
            let body = ErrorBody::new(code, "a \"quoted\" message", &[], String::new());
            let body = serde_json::to_vec(&body).unwrap();
            assert_eq!(ErrorBody::code_in(&body), Some(code));
        }
        for other in ["", "{}", r#"{"error":{"code":"OTHER"}}"#] {
            assert_eq!(ErrorBody::code_in(other.as_bytes()), None, "{other}");
        }
    }
}
