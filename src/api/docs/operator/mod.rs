//! OpenAPI document of the operator API.

mod catalogue;
mod monitoring;
mod orders;
mod partners;
mod payouts;
mod reconciliation;
mod stock;
mod vendors;
mod webhooks;

use std::sync::LazyLock;

use actix_web::HttpResponse;
use bytes::Bytes;
use utoipa::openapi::HttpMethod;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use vouchsafe_wire::error_code::Code;

use crate::api::docs::openapi::{self, DocumentInfo, Operation};

const PARTNERS: &str = "Partners";
const CATALOGUE: &str = "Catalogue";
const VENDORS: &str = "Vendors";
const ORDERS: &str = "Orders";
const PAYOUTS: &str = "Payouts";
const RECONCILIATION: &str = "Reconciliation";
const STOCK: &str = "Stock";
const WEBHOOKS: &str = "Webhooks";
const MONITORING: &str = "Monitoring";
const SERVICE: &str = "Health";

const TAGS: &[(&str, &str)] = &[
    (PARTNERS, "Partners, their credentials, terms and wallets."),
    (CATALOGUE, "Categories and products."),
    (VENDORS, "Vendors, and purchases from them."),
    (ORDERS, "Orders of all partners, and decisions on them."),
    (PAYOUTS, "Payouts requested by partners, and decisions on them."),
    (RECONCILIATION, "Comparison of vendor records with purchases."),
    (STOCK, "Import, levels and voiding of vouchers."),
    (WEBHOOKS, "Partners' webhook endpoints and their deliveries."),
    (MONITORING, "Live actors and the audit trail."),
    (
        SERVICE,
        "Liveness, readiness and metrics, without authentication.",
    ),
];

/// Security scheme of all requests under `/admin/v1`.
const OPERATOR: &str = "Operator";

const DESCRIPTION: &str = "\
Administration of Vouchsafe: partners, catalogue, vendors, stock, wallets, orders and payouts.

**Authentication.** Every request under `/admin/v1` carries `Authorization: Bearer` with an operator token. A viewer reads, \
an operator manages daily business, an admin also manages access. Every write adds an entry to the audit trail.

**Money** is an exact JSON number with the decimals of its currency. Requests also accept a string.

**Lists** return `data`, `has_more` and `next_cursor`. Pass `next_cursor` as `cursor`, with the same filters, to get the next \
page.

**Errors** have one format, with a `code` for your program. Every response has the header `X-Trace-ID`.";

/// `GET /openapi.json`.
pub async fn get() -> HttpResponse {
    static BYTES: LazyLock<Bytes> = LazyLock::new(|| openapi::to_bytes(&document()));
    openapi::document_response(&BYTES)
}

pub(crate) fn document() -> utoipa::openapi::OpenApi {
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("Operator token."))
        .build();
    let info = DocumentInfo {
        title: "Vouchsafe operator API",
        description: DESCRIPTION,
        tags: TAGS,
        security: vec![(OPERATOR, SecurityScheme::Http(token))],
    };
    openapi::build_document(info, operations())
}

fn operations() -> Vec<Operation> {
    let mut all = Vec::new();
    all.extend(partners::operations());
    all.extend(catalogue::operations());
    all.extend(vendors::operations());
    all.extend(orders::operations());
    all.extend(payouts::operations());
    all.extend(stock::operations());
    all.extend(reconciliation::operations());
    all.extend(webhooks::operations());
    all.extend(monitoring::operations());
    all.extend(openapi::public_operations(SERVICE));
    all
}

/// A read under `/admin/v1`.
fn read_operation(path: &str, id: &'static str) -> Operation {
    operation(HttpMethod::Get, path, id)
}

/// A write under `/admin/v1`.
fn write_operation(method: HttpMethod, path: &str, id: &'static str) -> Operation {
    operation(method, path, id).errors(&[Code::Forbidden])
}

/// A write under `/admin/v1` with a JSON body.
fn json_write_operation(method: HttpMethod, path: &str, id: &'static str) -> Operation {
    write_operation(method, path, id).errors(&[
        Code::MalformedRequest,
        Code::RequestTimeout,
        Code::PayloadTooLarge,
        Code::UnsupportedMediaType,
        Code::ValidationFailed,
    ])
}

fn operation(method: HttpMethod, path: &str, id: &'static str) -> Operation {
    Operation::new(method, format!("/admin/v1{path}"), id)
        .secured(&[OPERATOR])
        .errors(&[Code::InvalidCredentials, Code::InternalError])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::docs::openapi::check::{assert_complete, declared_routes, documented_routes};

    #[test]
    fn documented_routes_equal_registered_routes() {
        let document = openapi::to_value(&document());
        let tables = [
            include_str!("../../operator/mod.rs"),
            include_str!("../../health.rs"),
        ];
        assert_eq!(documented_routes(&document), declared_routes(&tables));
    }

    #[test]
    fn document_is_complete() {
        assert_complete(&openapi::to_value(&document()));
    }
}
