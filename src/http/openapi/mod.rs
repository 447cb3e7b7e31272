//! The document of the partner's listener: what `/api/v1` takes and gives, for people's tools.

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

pub(crate) use self::certification::example as example_certification;
pub(crate) use self::orders::delivered as example_order;
use crate::errors::Code;
use crate::openapi::{self, About, Operation};
use crate::service::Service;
use crate::settings::Preview;

const ORDERS: &str = "Orders";
const CATALOGUE: &str = "Catalogue";
const MONEY: &str = "Money";
const EVENTS: &str = "Events";
const ACCESS: &str = "Access";
const SERVICE: &str = "Service";

const TAGS: &[(&str, &str)] = &[
    (CATALOGUE, "What can be ordered, and how much of it is there."),
    (ORDERS, "Placing orders, following them, retrieving their codes."),
    (MONEY, "What can be spent, and every movement of it."),
    (
        EVENTS,
        "Being told what happens: webhooks, and the feed to catch up with.",
    ),
    (ACCESS, "Changing what opens all this."),
    (SERVICE, "What the machine tells anybody."),
];

/// The schemes of a request without a signature.
const IDENTITY: [&str; 2] = ["ApiKey", "ApiSecret"];

/// The schemes of a signed request.
const SIGNED: [&str; 4] = ["ApiKey", "ApiSecret", "Timestamp", "Signature"];

const DESCRIPTION: &str = "\
Vouchsafe lets partners order digital vouchers.

**Who calls.** Every request carries `X-API-Key` and `X-API-Secret`, from an address on the partner's allowlist.

**Signature.** POST, PUT, DELETE and the retrieval of codes carry `X-Timestamp` (Unix time in seconds, ten digits, \
within 300 seconds of ours) and `X-Signature: t=<timestamp>,v1=<hex>`, the HMAC-SHA256 of timestamp, method, path and \
body, joined without a separator, under the API secret. The path is the one of the request line, `/api/v1/orders`; a \
signed request has no query string. The signature does not cover `Idempotency-Key`: TLS and the allowlist do.

**Repeating.** POST /orders and POST /payouts take an `Idempotency-Key`: the same request under the same key is executed once, and its \
answer is given again for 24 hours, with `Idempotent-Replayed: true`.

**Money** is a JSON number with the decimals of its currency, exact: read it as a decimal.

**Lists** have one form: `data`, `has_more`, `next_cursor`. Pass `next_cursor` as `cursor` to go on, with the same filters.

**Errors** have one form, and a `code` to branch on. `X-Trace-ID` is on every answer.

**Within v1** only endpoints, optional parameters, fields of answers and words of answers are added. Ignore what you do \
not know.";

/// `GET /openapi.json`.
pub(super) async fn get(service: web::Data<Service>) -> HttpResponse {
    static BYTES: LazyLock<Bytes> = LazyLock::new(|| openapi::bytes_of(&document()));
    static WITH_PREVIEW: LazyLock<Bytes> = LazyLock::new(|| openapi::bytes_of(&document_with_preview()));
    openapi::served(match service.reconciliation_preview {
        Preview::Off => &BYTES,
        Preview::On => &WITH_PREVIEW,
    })
}

/// The document.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    document_of(operations())
}

/// The document where partners see what is planned.
fn document_with_preview() -> utoipa::openapi::OpenApi {
    let mut operations = operations();
    operations.push(reconciliation::get());
    document_of(operations)
}

fn document_of(operations: Vec<Operation>) -> utoipa::openapi::OpenApi {
    let about = About {
        title: "Vouchsafe partner API",
        description: DESCRIPTION,
        tags: TAGS,
        security: security(),
    };
    openapi::describe(about, operations)
}

fn operations() -> Vec<Operation> {
    let mut all = vec![
        catalogue::list_categories(),
        catalogue::list_products(),
        catalogue::get_product(),
        orders::place(),
        orders::list(),
        orders::get(),
        orders::codes(),
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
    all.extend(openapi::anybodys(SERVICE));
    all
}

fn security() -> Vec<(&'static str, SecurityScheme)> {
    let header = |name, description| {
        SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(name, description)))
    };
    vec![
        ("ApiKey", header("X-API-Key", "The API key of a credential.")),
        (
            "ApiSecret",
            header("X-API-Secret", "The API secret that belongs to the key."),
        ),
        (
            "Timestamp",
            header(
                "X-Timestamp",
                "Unix time in seconds as ten digits, within 300 seconds of ours.",
            ),
        ),
        (
            "Signature",
            header(
                "X-Signature",
                "`t=<timestamp>,v1=<hex>`: HMAC-SHA256 of timestamp, method, path and body under the API secret.",
            ),
        ),
    ]
}

/// An operation below `/api/v1` whose caller shows key and secret.
fn identified(method: HttpMethod, path: &str, id: &'static str) -> Operation {
    authenticated(method, path, id).secured(&IDENTITY)
}

/// An operation below `/api/v1` whose request is signed.
fn signed(method: HttpMethod, path: &str, id: &'static str) -> Operation {
    authenticated(method, path, id).secured(&SIGNED).refuses(&[
        Code::MalformedRequest,
        Code::UnexpectedQuery,
        Code::InvalidSignature,
        Code::TimestampOutOfRange,
        Code::RequestTimeout,
        Code::PayloadTooLarge,
        Code::UnsupportedMediaType,
    ])
}

/// What both have in common.
fn authenticated(method: HttpMethod, path: &str, id: &'static str) -> Operation {
    Operation::new(method, format!("/api/v1{path}"), id)
        .limited()
        .refuses(&[
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
    use crate::openapi::check::{assert_whole, documented, routed};

    #[test]
    fn every_route_is_documented_and_no_other() {
        let document = openapi::value_of(&document());
        let tables = [include_str!("../mod.rs"), include_str!("../health.rs")];
        assert_eq!(documented(&document), routed(&tables));
    }

    #[test]
    fn the_document_is_whole() {
        assert_whole(&openapi::value_of(&document()));
    }

    #[test]
    fn what_is_planned_is_documented_where_it_is_shown() {
        let shown = openapi::value_of(&document_with_preview());
        assert_whole(&shown);
        let mut paths = documented(&shown);
        assert!(paths.remove("/api/v1/reconciliation/{date}").is_some());
        assert_eq!(paths, documented(&openapi::value_of(&document())));
    }
}
