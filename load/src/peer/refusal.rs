//! Error responses of the peer: status, code and retryability.

use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpResponse, ResponseError};
use serde_json::json;

/// `Retry-After` of 503 responses, in seconds.
const RETRY_AFTER_S: &str = "1";

/// Reasons for rejecting a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("unknown API key or secret")]
    InvalidCredentials,
    #[error("the signature does not match this method, path and body")]
    InvalidSignature,
    #[error("X-Timestamp must be the signed Unix time in seconds, within 300 s of the server's clock")]
    TimestampOutOfRange,
    #[error("{0}")]
    ValidationFailed(String),
    #[error("exactly one Idempotency-Key is required")]
    MissingIdempotencyKey,
    #[error("another request used this Idempotency-Key")]
    IdempotencyKeyReused,
    #[error("order not found")]
    OrderNotFound,
    #[error("insufficient balance")]
    InsufficientFunds,
    #[error("insufficient vouchers of product {0}")]
    InsufficientInventory(String),
    #[error("temporarily unavailable; retry with the same Idempotency-Key")]
    ServiceUnavailable,
}

impl Refusal {
    /// Status and code of the API contract.
    const fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::InvalidCredentials => (StatusCode::UNAUTHORIZED, "INVALID_CREDENTIALS"),
            Self::InvalidSignature => (StatusCode::UNAUTHORIZED, "INVALID_SIGNATURE"),
            Self::TimestampOutOfRange => (StatusCode::UNAUTHORIZED, "TIMESTAMP_OUT_OF_RANGE"),
            Self::ValidationFailed(_) => (StatusCode::UNPROCESSABLE_ENTITY, "VALIDATION_FAILED"),
            Self::MissingIdempotencyKey => (StatusCode::BAD_REQUEST, "MISSING_IDEMPOTENCY_KEY"),
            Self::IdempotencyKeyReused => (StatusCode::UNPROCESSABLE_ENTITY, "IDEMPOTENCY_KEY_REUSED"),
            Self::OrderNotFound => (StatusCode::NOT_FOUND, "ORDER_NOT_FOUND"),
            Self::InsufficientFunds => (StatusCode::PAYMENT_REQUIRED, "INSUFFICIENT_FUNDS"),
            Self::InsufficientInventory(_) => (StatusCode::CONFLICT, "INSUFFICIENT_INVENTORY"),
            Self::ServiceUnavailable => (StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE"),
        }
    }

    /// HTTP status.
    pub(super) const fn status(&self) -> StatusCode {
        self.status_and_code().0
    }

    /// Response body.
    pub(super) fn body(&self) -> Vec<u8> {
        let (_, code) = self.status_and_code();
        let (message, retryable) = (self.to_string(), *self == Self::ServiceUnavailable);
        let error = json!({ "error": { "code": code, "message": message, "retryable": retryable } });
        error.to_string().into_bytes()
    }
}

impl ResponseError for Refusal {
    fn status_code(&self) -> StatusCode {
        self.status()
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status());
        if *self == Self::ServiceUnavailable {
            response.insert_header((RETRY_AFTER, RETRY_AFTER_S));
        }
        response.content_type("application/json").body(self.body())
    }
}
