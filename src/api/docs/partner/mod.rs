//! OpenAPI document of the partner API, served at `/openapi.json`.

mod catalogue;
mod certification;
mod credentials;
mod money;
mod orders;
mod reconciliation;
mod webhooks;

use std::sync::LazyLock;

use actix_web::{HttpResponse, web};
use bytes::Bytes;
use utoipa::openapi::HttpMethod;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use vouchsafe_wire::error_code::Code;

pub(crate) use self::certification::example as example_certification;
pub(crate) use self::orders::delivered_order as example_order;
use crate::api::docs::openapi::{self, DocumentInfo, Operation};
use crate::service::Service;
use crate::settings::Preview;

const ORDERS: &str = "Orders";
const CATALOGUE: &str = "Catalogue";
const MONEY: &str = "Money";
const EVENTS: &str = "Events";
const ACCESS: &str = "Access";
const HEALTH: &str = "Health";

const TAGS: &[(&str, &str)] = &[
    (
        CATALOGUE,
        "Categories and products you can order, with availability.",
    ),
    (
        ORDERS,
        "Place, track and cancel orders, and retrieve voucher codes.",
    ),
    (MONEY, "Wallets, transactions and payouts."),
    (EVENTS, "Webhook endpoints and the event feed."),
    (ACCESS, "Credentials and certification."),
    (HEALTH, "Health checks and this document."),
];

/// Security schemes of an unsigned request.
const CREDENTIAL_SCHEMES: [&str; 2] = ["ApiKey", "ApiSecret"];

/// Security schemes of a signed request.
const SIGNATURE_SCHEMES: [&str; 4] = ["ApiKey", "ApiSecret", "Timestamp", "Signature"];

const DESCRIPTION: &str = "\
The Vouchsafe partner API: order digital vouchers, retrieve their codes, and receive events about them.

**Authentication.** Send `X-API-Key` and `X-API-Secret` with every request, from an address on your allowlist.

**Signing.** Sign POST and DELETE requests and the retrieval of codes: send `X-Timestamp` (Unix time in seconds, ten digits, \
within 300 seconds of the server's clock) and `X-Signature: t=<timestamp>,v1=<hex>`. The signature is the HMAC-SHA256 of \
timestamp, method, path and body, concatenated without separators, with the API secret as the key. The path is that of the \
request line, for example `/api/v1/orders`. Signed requests must not have a query string. The signature does not cover \
`Idempotency-Key`; TLS and the allowlist protect it.

**Idempotency.** `POST /orders` and `POST /payouts` require an `Idempotency-Key`. The server executes a request once per key and, \
for 24 hours, answers repetitions with the stored response and `Idempotent-Replayed: true`.

**Money** is a JSON number with up to the decimals of its currency. Parse it as a decimal, not as a float.

**Lists** return `data`, `has_more` and `next_cursor`. For the next page, pass `next_cursor` as `cursor` with the same filters.

**Errors** share one format; branch on `code`. Every response has an `X-Trace-ID`: quote it when you contact support.

**Versioning.** Within v1 we only add endpoints, optional parameters, response fields and enum values. Ignore those that you do \
not know.";

/// `GET /openapi.json`.
pub async fn serve(service: web::Data<Service>) -> HttpResponse {
    static BYTES: LazyLock<Bytes> = LazyLock::new(|| openapi::to_bytes(&document()));
    static WITH_PREVIEW: LazyLock<Bytes> = LazyLock::new(|| openapi::to_bytes(&document_with_preview()));
    openapi::document_response(match service.reconciliation_preview {
        Preview::Off => &BYTES,
        Preview::On => &WITH_PREVIEW,
    })
}

/// The OpenAPI document of the partner API.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    build_document(operations())
}

/// The document with the reconciliation preview enabled.
fn document_with_preview() -> utoipa::openapi::OpenApi {
    let mut operations = operations();
    operations.push(reconciliation::get());
    build_document(operations)
}

fn build_document(operations: Vec<Operation>) -> utoipa::openapi::OpenApi {
    let info = DocumentInfo {
        title: "Vouchsafe partner API",
        description: DESCRIPTION,
        tags: TAGS,
        security: security_schemes(),
    };
    openapi::build_document(info, operations)
}

fn operations() -> Vec<Operation> {
    let mut all = vec![
        catalogue::list_categories(),
        catalogue::list_products(),
        catalogue::get_product(),
        orders::place(),
        orders::list(),
        orders::get(),
        orders::get_codes(),
        orders::cancel(),
        money::list_wallets(),
        money::list_transactions(),
        money::request_payout(),
        money::list_payouts(),
        money::get_payout(),
        credentials::rotate(),
        certification::get(),
    ];
    all.extend(webhooks::operations());
    all.extend(openapi::public_operations(HEALTH));
    all
}

fn security_schemes() -> Vec<(&'static str, SecurityScheme)> {
    let header = |name, description| {
        SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(name, description)))
    };
    vec![
        ("ApiKey", header("X-API-Key", "API key of your credential.")),
        (
            "ApiSecret",
            header("X-API-Secret", "API secret of the same credential."),
        ),
        (
            "Timestamp",
            header(
                "X-Timestamp",
                "Unix time in seconds, ten digits, within 300 seconds of the server's clock.",
            ),
        ),
        (
            "Signature",
            header(
                "X-Signature",
                "`t=<timestamp>,v1=<hex>`: HMAC-SHA256 of timestamp, method, path and body, with the API secret as the key.",
            ),
        ),
    ]
}

/// An operation below `/api/v1` that needs credentials only.
fn unsigned_operation(method: HttpMethod, path: &str, id: &'static str) -> Operation {
    authenticated_operation(method, path, id).secured(&CREDENTIAL_SCHEMES)
}

/// An operation below `/api/v1` that needs a signature.
fn signed_operation(method: HttpMethod, path: &str, id: &'static str) -> Operation {
    authenticated_operation(method, path, id)
        .secured(&SIGNATURE_SCHEMES)
        .errors(&[
            Code::MalformedRequest,
            Code::UnexpectedQuery,
            Code::InvalidSignature,
            Code::TimestampOutOfRange,
            Code::RequestTimeout,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
        ])
}

/// An operation below `/api/v1`, with the errors that all of them share.
fn authenticated_operation(method: HttpMethod, path: &str, id: &'static str) -> Operation {
    Operation::new(method, format!("/api/v1{path}"), id)
        .rate_limited()
        .errors(&[
            Code::InvalidCredentials,
            Code::IpNotAllowed,
            Code::PartnerSuspended,
            Code::RateLimitExceeded,
            Code::InternalError,
        ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::docs::openapi::check::{assert_complete, declared_routes, documented_routes};

    #[test]
    fn document_lists_exactly_the_routes() {
        let document = openapi::to_value(&document());
        let tables = [
            include_str!("../../partner/mod.rs"),
            include_str!("../../health.rs"),
        ];
        assert_eq!(documented_routes(&document), declared_routes(&tables));
    }

    #[test]
    fn document_is_complete() {
        assert_complete(&openapi::to_value(&document()));
    }

    #[test]
    fn preview_document_adds_the_reconciliation_route() {
        let preview = openapi::to_value(&document_with_preview());
        assert_complete(&preview);
        let mut paths = documented_routes(&preview);
        assert!(paths.remove("/api/v1/reconciliation/{date}").is_some());
        assert_eq!(paths, documented_routes(&openapi::to_value(&document())));
    }
}
