//! API errors: the error type of all handlers, and the conversion of errors of the database and of flows.
//!
//! A message says what happened and what to do; it never contains internals, voucher codes or secrets.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, RETRY_AFTER};
use actix_web::{HttpResponse, ResponseError};
use bytes::Bytes;
use vouchsafe_actors::flows::FlowError;
use vouchsafe_domain::store_error::Unavailable;
use vouchsafe_store::{InvalidMac, StoreError};
use vouchsafe_wire::error_body::{ErrorBody, ErrorDetail, InvalidRequest};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::orders::cap_error::CapError;

use vouchsafe_telemetry::trace;

/// Response of a handler.
pub(crate) type ApiResult = Result<HttpResponse, ApiError>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.as_str())]
pub(crate) struct ApiError {
    pub(crate) code: Code,
    /// For humans: what happened and what to do.
    pub(crate) message: String,
    pub(crate) details: Vec<ErrorDetail>,
    /// Value of `Retry-After` in seconds.
    pub(crate) retry_after_s: Option<u32>,
    /// What the request changes may be committed. Reads and requests that can be repeated report that the
    /// service is unavailable.
    pub(crate) may_be_written: bool,
}

/// The code of an error response, in its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorCode(pub(crate) Code);

impl ApiError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Vec::new(),
            retry_after_s: code.retry_after_s(),
            may_be_written: false,
        }
    }

    /// `VALIDATION_FAILED` for one field.
    pub(crate) fn invalid_field(field: impl Into<String>, message: impl Into<String>) -> Self {
        InvalidRequest::field(field, message).into()
    }

    /// `SERVICE_UNAVAILABLE`, for a request without effects.
    pub(crate) fn unavailable() -> Self {
        Self::new(
            Code::ServiceUnavailable,
            "the service is temporarily unavailable; retry the same request",
        )
    }

    /// `OUTCOME_UNKNOWN`, for a change by an operator that may be committed.
    pub(crate) fn outcome_unknown() -> Self {
        Self::new(
            Code::OutcomeUnknown,
            "the database did not confirm the change: it may have been made. A change and its audit entry \
             are committed together: look for its entry with GET /admin/v1/audit, after a confirmation for \
             that of the confirmed change, and repeat the request if there is none",
        )
    }

    /// The JSON body, with the trace id of the current request.
    pub(crate) fn body(&self) -> Bytes {
        let body = ErrorBody::new(self.code, &self.message, &self.details, trace::current_trace_id());
        serde_json::to_vec(&body).unwrap_or_default().into()
    }
}

/// A request that the wire format does not permit.
impl From<InvalidRequest> for ApiError {
    fn from(invalid: InvalidRequest) -> Self {
        Self {
            details: invalid.details,
            ..Self::new(invalid.code, invalid.message)
        }
    }
}

/// SQLSTATE of text that Postgres cannot store.
const CHARACTER_NOT_IN_REPERTOIRE: &str = "22021";

/// A request that exceeds a cap of the partner.
impl From<CapError> for ApiError {
    fn from(error: CapError) -> Self {
        Self {
            retry_after_s: error.retry_after_s,
            details: error.details,
            ..Self::new(error.code, error.message)
        }
    }
}

/// A failed operation of the store. Logged here and nowhere else.
impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        if error.sqlstate() == Some(CHARACTER_NOT_IN_REPERTOIRE) {
            return Self::invalid_field(
                "request",
                "a text contains the character NUL, which cannot be stored; remove it",
            );
        }
        // Counted per connection class by the store: a line per request would tell nothing more.
        if error.is_overload() {
            return Self::new(
                Code::ServiceUnavailable,
                "too many requests wait for the database; retry the same request",
            );
        }
        if let Some(InvalidMac { table, id }) = error.invalid_mac() {
            let message = format!(
                "row {id} of {table} has no valid HMAC: it was changed without the service, and grants \
                 nothing; restore it, as the runbook of VouchsafeForgedGrant describes"
            );
            return Self::new(Code::InvalidRowHmac, message);
        }
        let may_be_written = matches!(error, StoreError::Unknown(_));
        tracing::error!(
            error.message = %vouchsafe_store::describe(error.cause()),
            request.may_be_written = may_be_written,
            "database statement of a request failed"
        );
        Self {
            may_be_written,
            ..Self::unavailable()
        }
    }
}

/// A response that cannot be serialized, which is a bug. Request bodies are parsed by `vouchsafe_wire` with
/// its own errors.
impl From<serde_json::Error> for ApiError {
    fn from(_: serde_json::Error) -> Self {
        Self::new(
            Code::InternalError,
            "the response could not be serialized; retry the same request",
        )
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
        if let Some(seconds) = self.retry_after_s {
            response.insert_header((RETRY_AFTER, seconds));
        }
        let mut response = response.body(self.body());
        response.extensions_mut().insert(ErrorCode(self.code));
        response
    }
}

/// Maps the failure of a request with an idempotency key, for all such endpoints.
pub(crate) fn keyed_request_error(error: &FlowError) -> ApiError {
    let code = match error {
        FlowError::KeyReused => Code::IdempotencyKeyReused,
        FlowError::KeyInFlight => Code::IdempotencyInProgress,
        FlowError::Overloaded | FlowError::Unavailable | FlowError::OutcomeUnknown => {
            Code::ServiceUnavailable
        }
        FlowError::StockQuarantined => Code::StockQuarantined,
        FlowError::Poisoned => Code::InternalError,
    };
    ApiError::new(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

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
