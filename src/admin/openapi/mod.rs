//! The document of the operator's listener: what `/admin/v1` takes and gives, and what the machine asks beside it.

mod catalogue;
mod orders;
mod partners;
mod payouts;
mod reconciliation;
mod stock;
mod vendors;
mod watch;
mod webhooks;

use std::sync::LazyLock;

use actix_web::HttpResponse;
use bytes::Bytes;
use utoipa::openapi::HttpMethod;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

use crate::errors::Code;
use crate::openapi::{self, About, Operation};

const PARTNERS: &str = "Partners";
const CATALOGUE: &str = "Catalogue";
const VENDORS: &str = "Vendors";
const ORDERS: &str = "Orders";
const PAYOUTS: &str = "Payouts";
const RECONCILIATION: &str = "Reconciliation";
const STOCK: &str = "Stock";
const WEBHOOKS: &str = "Webhooks";
const WATCH: &str = "Watching";
const SERVICE: &str = "Service";

const TAGS: &[(&str, &str)] = &[
    (PARTNERS, "Who may call, on which terms, and their money."),
    (CATALOGUE, "What can be ordered at all."),
    (VENDORS, "Who vouchers are bought from, how, and what they said."),
    (
        ORDERS,
        "What was ordered, by whom, and where it stands; deciding on it.",
    ),
    (
        PAYOUTS,
        "Money that partners have sent out, and what became of it.",
    ),
    (
        RECONCILIATION,
        "Whether the vendors' books and ours are the same, and what is said where they are not.",
    ),
    (
        STOCK,
        "Vouchers coming in, what became of them, taking them out of sale.",
    ),
    (
        WEBHOOKS,
        "How partners are told what happens, and what did not arrive.",
    ),
    (WATCH, "What happens inside, and who did what."),
    (SERVICE, "What the machine tells anybody."),
];

/// The scheme of every request below `/admin/v1`.
const OPERATOR: &str = "Operator";

const DESCRIPTION: &str = "\
What operators of Vouchsafe do: taking partners in, keeping the catalogue and its vendors, importing stock, booking money, \
deciding on orders and payouts.

**Who calls.** Every request below `/admin/v1` carries `Authorization: Bearer` with an operator's token. A viewer looks, \
an operator runs the business, an admin hands out access as well. Every write leaves an entry in the trail.

**Money** is a JSON number with the decimals of its currency, exact; in a request a text will do as well.

**Lists** have one form: `data`, `has_more`, `next_cursor`. Pass `next_cursor` as `cursor` to go on, with the same filters.

**Errors** have one form, and a `code` to branch on. `X-Trace-ID` is on every answer.";

/// `GET /openapi.json`.
pub(super) async fn get() -> HttpResponse {
    static BYTES: LazyLock<Bytes> = LazyLock::new(|| openapi::bytes_of(&document()));
    openapi::served(&BYTES)
}

/// The document.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("The token of an operator."))
        .build();
    let about = About {
        title: "Vouchsafe operator API",
        description: DESCRIPTION,
        tags: TAGS,
        security: vec![(OPERATOR, SecurityScheme::Http(token))],
    };
    openapi::describe(about, operations())
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
    all.extend(watch::operations());
    all.extend(openapi::anybodys(SERVICE));
    all
}

/// An operation below `/admin/v1` that looks.
fn looks(path: &str, id: &'static str) -> Operation {
    operation(HttpMethod::Get, path, id)
}

/// An operation below `/admin/v1` that writes.
fn writes(method: HttpMethod, path: &str, id: &'static str) -> Operation {
    operation(method, path, id).refuses(&[Code::Forbidden])
}

/// An operation below `/admin/v1` that writes what its JSON body says.
fn writes_json(method: HttpMethod, path: &str, id: &'static str) -> Operation {
    writes(method, path, id).refuses(&[
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
        .refuses(&[Code::InvalidCredentials, Code::InternalError])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::check::{assert_whole, documented, routed};

    #[test]
    fn every_route_is_documented_and_no_other() {
        let document = openapi::value_of(&document());
        let tables = [include_str!("../mod.rs"), include_str!("../../http/health.rs")];
        assert_eq!(documented(&document), routed(&tables));
    }

    #[test]
    fn the_document_is_whole() {
        assert_whole(&openapi::value_of(&document()));
    }
}
