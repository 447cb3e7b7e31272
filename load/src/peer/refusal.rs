//! How does the peer say no? One table of refusals: status, code, and whether the same request may succeed later.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;

/// After how many seconds a request that found no room may come again.
const RETRY_AFTER_S: &str = "1";

/// Everything that the peer refuses a request for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The key or the secret is unknown, missing or doubled.
    #[error("the API key or secret is not known")]
    InvalidCredentials,
    /// The signature is missing, malformed or of another message.
    #[error("the signature does not match this method, path and body")]
    InvalidSignature,
    /// The timestamp is missing, malformed, not the signed one, or too far off.
    #[error("X-Timestamp must be Unix seconds within 300 s of the server's clock, and the signed one")]
    TimestampOutOfRange,
    /// A signed request carries a query.
    #[error("a signed request carries no query string")]
    UnexpectedQuery,
    /// The body is compressed.
    #[error("Content-Encoding is not supported")]
    UnsupportedMediaType,
    /// The body is longer than it may be.
    #[error("the body is longer than 256 KiB")]
    PayloadTooLarge,
    /// The body is no JSON.
    #[error("the body is not JSON")]
    MalformedRequest,
    /// A field is missing, unknown, of another type or out of range.
    #[error("{0}")]
    ValidationFailed(String),
    /// The header is missing or not 1 to 255 visible characters.
    #[error("Idempotency-Key must appear once, as 1 to 255 visible ASCII characters")]
    MissingIdempotencyKey,
    /// The key was used for another request.
    #[error("the Idempotency-Key was used for another request")]
    IdempotencyKeyReused,
    /// The product is unknown.
    #[error("there is no product {0}")]
    ProductNotFound(String),
    /// The product is not sold at this denomination.
    #[error("product {0} is not sold at this denomination")]
    DenominationNotAllowed(String),
    /// The items have more than one currency, or another than the order names.
    #[error("all items must be of one currency, and of the order's")]
    CurrencyMismatch,
    /// The order is unknown to this partner.
    #[error("there is no such order")]
    OrderNotFound,
    /// Nothing is served here.
    #[error("there is no such route")]
    RouteNotFound,
    /// The wallet holds less than the order costs.
    #[error("the wallet holds less than the order costs")]
    InsufficientFunds,
    /// Fewer vouchers are free than the order wants.
    #[error("there are not enough vouchers of product {0}")]
    InsufficientInventory(String),
    /// The database gave no answer, or not in time.
    #[error("the order could not be decided; repeat it under the same key")]
    ServiceUnavailable,
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Body<'a>,
}

#[derive(Serialize)]
struct Body<'a> {
    name: String,
    code: &'a str,
    message: String,
    retryable: bool,
}

impl Refusal {
    /// Status and code, as the contract's table has them.
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

    /// The status, as it is kept under a key.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status_and_code().0
    }

    /// The bytes of the answer.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let (_, code) = self.status_and_code();
        let envelope = Envelope {
            error: Body {
                name: pascal_case(code),
                code,
                message: self.to_string(),
                retryable: *self == Self::ServiceUnavailable,
            },
        };
        let Ok(bytes) = serde_json::to_vec(&envelope) else {
            unreachable!("texts and a flag are JSON")
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

/// `INSUFFICIENT_FUNDS` becomes `InsufficientFunds`.
fn pascal_case(code: &str) -> String {
    code.split('_').fold(String::new(), |mut name, word| {
        let (first, rest) = word.split_at(1);
        name.push_str(first);
        name.push_str(&rest.to_ascii_lowercase());
        name
    })
}

/// An answer that is kept under a key, given for the first time or again.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredResponse {
    pub status: u16,
    pub body: Vec<u8>,
    /// Whether it was given before.
    pub replayed: bool,
}

impl fmt::Debug for StoredResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Kept {{ status: {}, replayed: {} }}",
            self.status, self.replayed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_worded_as_the_contract_says() {
        let body = Refusal::InsufficientInventory("amzn-us".into()).body();
        let error: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            error,
            serde_json::json!({"error": {
                "name": "InsufficientInventory",
                "code": "INSUFFICIENT_INVENTORY",
                "message": "there are not enough vouchers of product amzn-us",
                "retryable": false,
            }})
        );
        let busy = Refusal::ServiceUnavailable.error_response();
        assert_eq!(busy.status(), 503);
        assert_eq!(busy.headers().get(RETRY_AFTER).unwrap(), RETRY_AFTER_S);
    }
}
