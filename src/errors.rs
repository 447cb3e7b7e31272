//! The one table of errors: code, status, whether a repetition may succeed; and the one body they all have.
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

use crate::openapi::open_words;
use crate::trace;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $status:literal $word:literal $retryable:literal;)+) => {
        /// Every error that can be answered.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            /// All of them, in the order of the reference page.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The code on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// Whether the same request with the same key may succeed.
            #[must_use]
            pub const fn retryable(self) -> bool {
                match self { $(Self::$variant => $retryable,)+ }
            }

            /// The name on the wire: the code in PascalCase.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)+ }
            }

            /// What it means, in a sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

codes! {
    /// What came is no JSON, or no request.
    MalformedRequest = 400 "MALFORMED_REQUEST" false;
    /// The endpoint needs an Idempotency-Key of 1 to 255 visible ASCII characters, once.
    MissingIdempotencyKey = 400 "MISSING_IDEMPOTENCY_KEY" false;
    /// The cursor is not one of this list with these filters.
    InvalidCursor = 400 "INVALID_CURSOR" false;
    /// A signed request carries no query string.
    UnexpectedQuery = 400 "UNEXPECTED_QUERY" false;
    /// Key and secret do not belong together, or to nobody.
    InvalidCredentials = 401 "INVALID_CREDENTIALS" false;
    /// The signature is not that of the request.
    InvalidSignature = 401 "INVALID_SIGNATURE" false;
    /// The timestamp is missing, not the signed one, or too far from now.
    TimestampOutOfRange = 401 "TIMESTAMP_OUT_OF_RANGE" false;
    /// The wallet holds less than the request costs.
    InsufficientFunds = 402 "INSUFFICIENT_FUNDS" false;
    /// The address is not on the allowlist.
    IpNotAllowed = 403 "IP_NOT_ALLOWED" false;
    /// The partner is suspended.
    PartnerSuspended = 403 "PARTNER_SUSPENDED" false;
    /// The operator's role does not allow it.
    Forbidden = 403 "FORBIDDEN" false;
    /// There is no such product for this partner.
    ProductNotFound = 404 "PRODUCT_NOT_FOUND" false;
    /// This partner has no such order.
    OrderNotFound = 404 "ORDER_NOT_FOUND" false;
    /// This partner has no such webhook endpoint.
    WebhookNotFound = 404 "WEBHOOK_NOT_FOUND" false;
    /// This partner has no such event.
    EventNotFound = 404 "EVENT_NOT_FOUND" false;
    /// This partner has no such payout.
    PayoutNotFound = 404 "PAYOUT_NOT_FOUND" false;
    /// There is no such partner.
    PartnerNotFound = 404 "PARTNER_NOT_FOUND" false;
    /// There is no such credential.
    CredentialNotFound = 404 "CREDENTIAL_NOT_FOUND" false;
    /// There is no such category.
    CategoryNotFound = 404 "CATEGORY_NOT_FOUND" false;
    /// There is no such route.
    RouteNotFound = 404 "ROUTE_NOT_FOUND" false;
    /// The route has no such method.
    MethodNotAllowed = 405 "METHOD_NOT_ALLOWED" false;
    /// There are fewer vouchers than were asked for.
    InsufficientInventory = 409 "INSUFFICIENT_INVENTORY" false;
    /// Nothing of the order is allocated yet.
    OrderNotReady = 409 "ORDER_NOT_READY" true;
    /// The order can no longer be cancelled.
    OrderNotCancellable = 409 "ORDER_NOT_CANCELLABLE" false;
    /// The product is no longer sold.
    ProductUnavailable = 409 "PRODUCT_UNAVAILABLE" false;
    /// The first request with this key is still under way.
    IdempotencyInProgress = 409 "IDEMPOTENCY_IN_PROGRESS" true;
    /// Live credentials need a passed certification and a signed agreement.
    CertificationRequired = 409 "CERTIFICATION_REQUIRED" false;
    /// The body is too large.
    PayloadTooLarge = 413 "PAYLOAD_TOO_LARGE" false;
    /// The body is compressed, or not of the type the route takes.
    UnsupportedMediaType = 415 "UNSUPPORTED_MEDIA_TYPE" false;
    /// The body did not arrive in time.
    RequestTimeout = 408 "REQUEST_TIMEOUT" true;
    /// A field is unknown, missing, repeated, of the wrong type or out of range.
    ValidationFailed = 422 "VALIDATION_FAILED" false;
    /// The product is not sold at this denomination.
    DenominationNotAllowed = 422 "DENOMINATION_NOT_ALLOWED" false;
    /// The items of an order do not share one currency.
    CurrencyMismatch = 422 "CURRENCY_MISMATCH" false;
    /// The key was used with another request.
    IdempotencyKeyReused = 422 "IDEMPOTENCY_KEY_REUSED" false;
    /// Too many requests.
    RateLimitExceeded = 429 "RATE_LIMIT_EXCEEDED" true;
    /// A fault of the service.
    InternalError = 500 "INTERNAL_ERROR" true;
    /// Not now.
    ServiceUnavailable = 503 "SERVICE_UNAVAILABLE" true;
}

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
    /// Which.
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

/// The database did not answer, or answered that it cannot: the one line about it is logged here.
impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> Self {
        tracing::error!(error = %crate::store::describe(&error), trace.id = trace::current(), "the database failed a request");
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
