//! OpenAPI document of the operator API.

pub mod catalogue;
pub mod change_requests;
pub mod monitoring;
pub mod operators;
pub mod orders;
pub mod partners;
pub mod payouts;
pub mod reconciliation;
pub mod search;
pub mod stock;
pub mod vendors;
pub mod webhooks;

use utoipa::PartialSchema as _;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi, RefOr, Schema};
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::ids::{
    ChangeRequestId, CredentialId, DeliveryId, DriftId, OperatorSessionId, OperatorTokenId, OrderId,
    PartnerId, PayoutId, WebhookId,
};
use vouchsafe_domain::money::Currency;
use vouchsafe_domain::operator::{OperatorName, Role};
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::schema::slug;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::actors::ActorKind;

use crate::openapi::{self, DocumentInfo, Operation, date, text};

const PARTNERS: &str = "Partners";
const CATALOGUE: &str = "Catalogue";
const VENDORS: &str = "Vendors";
const ORDERS: &str = "Orders";
const PAYOUTS: &str = "Payouts";
const RECONCILIATION: &str = "Reconciliation";
const STOCK: &str = "Stock";
const WEBHOOKS: &str = "Webhooks";
const MONITORING: &str = "Monitoring";
const OPERATORS: &str = "Operators";
const CHANGE_REQUESTS: &str = "Change requests";
const SERVICE: &str = openapi::health::TAG;

const TAGS: &[(&str, &str)] = &[
    (PARTNERS, "Partners, their credentials, terms and wallets."),
    (CATALOGUE, "Categories and products."),
    (VENDORS, "Vendors, and purchases from them."),
    (ORDERS, "Orders of all partners, and decisions on them."),
    (PAYOUTS, "Payouts requested by partners, and decisions on them."),
    (RECONCILIATION, "Comparison of vendor records with purchases."),
    (STOCK, "Import, levels and voiding of vouchers."),
    (WEBHOOKS, "Partners' webhook endpoints and their deliveries."),
    (OPERATORS, "Operators, their roles, API tokens and sessions."),
    (CHANGE_REQUESTS, "Changes that wait for a second operator."),
    (MONITORING, "Live actors and the audit trail."),
    (
        SERVICE,
        "Liveness, readiness and metrics, without authentication.",
    ),
];

/// Security scheme of all requests under `/admin/v1`.
const OPERATOR: &str = "Operator";

type PathParameter = (&'static str, &'static str, fn() -> RefOr<Schema>, &'static [Code]);

/// Path parameters with their descriptions, and the errors of an ID without an object.
const PATH_PARAMETERS: [PathParameter; 19] = [
    (
        "partner_id",
        "Partner ID.",
        PartnerId::schema,
        &[Code::PartnerNotFound],
    ),
    (
        "currency",
        "Currency of the wallet, which is created if necessary.",
        Currency::schema,
        &[],
    ),
    (
        "credential_id",
        "Credential ID.",
        CredentialId::schema,
        &[Code::CredentialNotFound],
    ),
    (
        "category_id",
        "Category ID.",
        || slug("Category ID", "gaming").into(),
        &[],
    ),
    ("product_id", "Product ID.", ProductId::schema, &[]),
    (
        "vendor_id",
        "Vendor ID.",
        || slug("Vendor ID", "acme-cards").into(),
        &[],
    ),
    ("order_id", "Order ID.", OrderId::schema, &[Code::OrderNotFound]),
    (
        "purchase_id",
        "Purchase ID.",
        || text("0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f").into(),
        &[Code::PurchaseNotFound],
    ),
    (
        "payout_id",
        "Payout ID.",
        PayoutId::schema,
        &[Code::PayoutNotFound],
    ),
    ("date", "Day in UTC.", || date("2026-11-20").into(), &[]),
    ("drift_id", "Drift ID.", DriftId::schema, &[Code::DriftNotFound]),
    (
        "webhook_id",
        "Endpoint ID.",
        WebhookId::schema,
        &[Code::WebhookNotFound],
    ),
    (
        "delivery_id",
        "Delivery ID.",
        DeliveryId::schema,
        &[Code::DeliveryNotFound],
    ),
    (
        "request_id",
        "Request ID.",
        ChangeRequestId::schema,
        &[Code::ChangeRequestNotFound],
    ),
    (
        "name",
        "Name of the operator.",
        OperatorName::schema,
        &[Code::OperatorNotFound],
    ),
    (
        "token_id",
        "Token ID.",
        OperatorTokenId::schema,
        &[Code::OperatorTokenNotFound],
    ),
    (
        "session_id",
        "Session ID.",
        OperatorSessionId::schema,
        &[Code::OperatorSessionNotFound],
    ),
    ("kind", "Kind of the actor.", ActorKind::schema, &[]),
    (
        "key",
        "Key of the actor, as in the list.",
        || text("ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f").into(),
        &[Code::ActorNotFound],
    ),
];

const DESCRIPTION: &str = "\
Administration of Vouchsafe: partners, catalogue, vendors, stock, wallets, orders and payouts.

**Authentication.** Every request under `/admin/v1` carries `Authorization: Bearer` with an operator token, or from a browser the cookie \
of a session; a change with a session must come from a page of the console. A `viewer` reads, \
an `operator` also decides on orders, imports stock and repeats deliveries, an `admin` also manages money, partners, what is \
sold, and operators; each operation names the role that it requires. Every write adds an entry with the operator's name to the \
audit trail.

**Second operator.** Depending on the setting `VOUCHSAFE_FOUR_EYES`, a change of money, payouts, approvals or access responds with 202 and a \
change request, which another operator confirms or declines under `/admin/v1/requests`.

**Money** is an exact JSON number with the decimals of its currency. Requests also accept a string.

**Numbers.** An integer may be written with a zero fraction: `2.0` is `2`. Other fractions are refused.

**Lists** return `data`, `has_more` and `next_cursor`. Pass `next_cursor` as `cursor`, with the same filters, to get the next \
page.

**Errors** have one format, with a `code` for your program. Every response has the header `X-Trace-ID`.";

/// The document of these operations.
pub fn document(operations: impl IntoIterator<Item = Operation>) -> OpenApi {
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
    openapi::build_document(info, operations, [])
}

/// An operation under `/admin/v1` without a body.
fn read_operation(operation: Operation, id: &'static str) -> Operation {
    let operation = operation.id(id).errors(&[
        Code::InvalidCredentials,
        Code::RateLimitExceeded,
        Code::InternalError,
    ]);
    let in_path = PATH_PARAMETERS
        .into_iter()
        .filter(|(name, ..)| operation.has_path_parameter(name));
    let in_path: Vec<_> = in_path.collect();
    in_path
        .into_iter()
        .fold(operation, |operation, (name, about, schema, errors)| {
            operation.path_parameter(name, about, schema()).errors(errors)
        })
}

/// Adds the role that the route requires, and the error of the others.
pub fn require_role(operation: Operation, role: Role) -> Operation {
    let operation = operation.require_role(OPERATOR, role.into_str());
    match role {
        Role::Viewer => operation,
        Role::Operator | Role::Admin => operation.errors(&[Code::Forbidden]),
    }
}

/// The need of a second operator (four-eyes principle), if the settings require one at all.
#[derive(Debug, Clone, Copy)]
pub enum SecondOperator {
    Never,
    Always(&'static [ChangeKind]),
    /// Depends on the content of the request or on the settings.
    Sometimes(&'static [ChangeKind]),
}

impl SecondOperator {
    /// The label in the documentation.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Always(_) => "always",
            Self::Sometimes(_) => "sometimes",
        }
    }

    /// The kinds of the change requests.
    #[must_use]
    pub const fn kinds(self) -> &'static [ChangeKind] {
        match self {
            Self::Never => &[],
            Self::Always(kinds) | Self::Sometimes(kinds) => kinds,
        }
    }
}

/// Adds the need of a second operator, and the response of a change that waits for one.
pub fn require_second_operator(operation: Operation, second: SecondOperator) -> Operation {
    let operation = operation.extension("x-second-operator", second.as_str());
    match second {
        SecondOperator::Never => operation,
        SecondOperator::Always(_) | SecondOperator::Sometimes(_) => change_requests::may_wait(operation),
    }
}

/// A write under `/admin/v1` with a JSON body.
fn json_write_operation(operation: Operation, id: &'static str) -> Operation {
    read_operation(operation, id).errors(&[
        Code::MalformedRequest,
        Code::RequestTimeout,
        Code::PayloadTooLarge,
        Code::UnsupportedMediaType,
        Code::ValidationFailed,
    ])
}
