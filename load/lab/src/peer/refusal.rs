//! Error responses of the peer: status, code and retryability.

use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;

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
    #[error("a signed request must not have a query string")]
    UnexpectedQuery,
    #[error("Content-Encoding is not supported")]
    UnsupportedMediaType,
    #[error("the body exceeds 256 KiB")]
    PayloadTooLarge,
    #[error("the body is not JSON")]
    MalformedRequest,
    #[error("{0}")]
    ValidationFailed(String),
    #[error("exactly one Idempotency-Key of 1 to 255 visible ASCII characters is required")]
    MissingIdempotencyKey,
    #[error("another request used this Idempotency-Key")]
    IdempotencyKeyReused,
    #[error("unknown product {0}")]
    ProductNotFound(String),
    #[error("product {0} does not have this denomination")]
    DenominationNotAllowed(String),
    #[error("all items must have the currency of the order")]
    CurrencyMismatch,
    #[error("order not found")]
    OrderNotFound,
    #[error("route not found")]
    RouteNotFound,
    #[error("insufficient balance")]
    InsufficientFunds,
    #[error("insufficient vouchers of product {0}")]
    InsufficientInventory(String),
    #[error("temporarily unavailable; retry with the same Idempotency-Key")]
    ServiceUnavailable,
}

#[derive(Serialize)]
struct ErrorEnvelope<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    name: String,
    code: &'a str,
    message: String,
    retryable: bool,
}

impl Refusal {
    /// Status and code of the API contract.
    const fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::InvalidCredentials => (StatusCode::UNAUTHORIZED, "INVALID_CREDENTIALS"),
            Self::InvalidSignature => (StatusCode::UNAUTHORIZED, "INVALID_SIGNATURE"),
            Self::TimestampOutOfRange => (StatusCode::UNAUTHORIZED, "TIMESTAMP_OUT_OF_RANGE"),
            Self::UnexpectedQuery => (StatusCode::BAD_REQUEST, "UNEXPECTED_QUERY"),
            Self::UnsupportedMediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE"),
            Self::PayloadTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE"),
            Self::MalformedRequest => (StatusCode::BAD_REQUEST, "MALFORMED_REQUEST"),
            Self::ValidationFailed(_) => (StatusCode::UNPROCESSABLE_ENTITY, "VALIDATION_FAILED"),
            Self::MissingIdempotencyKey => (StatusCode::BAD_REQUEST, "MISSING_IDEMPOTENCY_KEY"),
            Self::IdempotencyKeyReused => (StatusCode::UNPROCESSABLE_ENTITY, "IDEMPOTENCY_KEY_REUSED"),
            Self::ProductNotFound(_) => (StatusCode::NOT_FOUND, "PRODUCT_NOT_FOUND"),
            Self::DenominationNotAllowed(_) => (StatusCode::UNPROCESSABLE_ENTITY, "DENOMINATION_NOT_ALLOWED"),
            Self::CurrencyMismatch => (StatusCode::UNPROCESSABLE_ENTITY, "CURRENCY_MISMATCH"),
            Self::OrderNotFound => (StatusCode::NOT_FOUND, "ORDER_NOT_FOUND"),
            Self::RouteNotFound => (StatusCode::NOT_FOUND, "ROUTE_NOT_FOUND"),
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
        let envelope = ErrorEnvelope {
            error: ErrorBody {
                name: pascal_case(code),
                code,
                message: self.to_string(),
                retryable: *self == Self::ServiceUnavailable,
            },
        };
        let Ok(bytes) = serde_json::to_vec(&envelope) else {
            unreachable!("strings and a boolean serialize to JSON")
        };
        bytes
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

/// Converts `INSUFFICIENT_FUNDS` to `InsufficientFunds`.
fn pascal_case(code: &str) -> String {
    code.split('_').fold(String::new(), |mut name, segment| {
        let (first, rest) = segment.split_at(1);
        name.push_str(first);
        name.push_str(&rest.to_ascii_lowercase());
        name
    })
}

/// A stored response, returned for the first time or replayed.
pub(super) struct StoredResponse {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// Whether it is a replay.
    pub(super) replayed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_body_follows_contract() {
        let body = Refusal::InsufficientInventory("amzn-us".into()).body();
        let error: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            error,
            serde_json::json!({"error": {
                "name": "InsufficientInventory",
                "code": "INSUFFICIENT_INVENTORY",
                "message": "insufficient vouchers of product amzn-us",
                "retryable": false,
            }})
        );
        let unavailable = Refusal::ServiceUnavailable.error_response();
        assert_eq!(unavailable.status(), 503);
        assert_eq!(unavailable.headers().get(RETRY_AFTER).unwrap(), RETRY_AFTER_S);
    }
}
