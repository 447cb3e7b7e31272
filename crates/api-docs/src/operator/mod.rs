//! OpenAPI document of the operator API.

mod bulk_jobs;
mod catalogue;
mod change_requests;
mod monitoring;
mod operators;
mod orders;
mod partners;
mod payouts;
mod reconciliation;
mod stock;
mod vendors;
mod webhooks;

use utoipa::PartialSchema as _;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use vouchsafe_domain::ids::{
    BulkJobId, ChangeRequestId, CredentialId, DeliveryId, DriftId, OperatorSessionId, OperatorTokenId,
    OrderId, PartnerId, PayoutId, WebhookId,
};
use vouchsafe_domain::language::Language;
use vouchsafe_domain::money::Currency;
use vouchsafe_domain::operator::{OperatorName, Role};
use vouchsafe_domain::product::ProductId;
use vouchsafe_domain::schema::slug;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operation;
use vouchsafe_wire::operator::actors::ActorKind;
use vouchsafe_wire::operator::operation::{self as wire, ADMIN_PREFIX, SecondOperator};

use crate::openapi::{
    self, Description, DocumentInfo, Operation, PathParameter, date, path_parameters, text,
};

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
const BULK_JOBS: &str = "Bulk jobs";
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
    (BULK_JOBS, "One action on many objects, with a result for each."),
    (MONITORING, "Live actors and the audit trail."),
    (
        SERVICE,
        "Liveness, readiness and metrics, without authentication.",
    ),
];

/// Security scheme of all requests under `/admin/v1`.
const OPERATOR: &str = "Operator";

/// Path parameters with their descriptions, and the errors of an ID without an object.
const PATH_PARAMETERS: &[PathParameter] = path_parameters! {
    "partner_id", "Partner ID.", PartnerId::schema, PartnerNotFound;
    "currency", "Currency of the wallet, which is created if necessary.", Currency::schema;
    "credential_id", "Credential ID.", CredentialId::schema, CredentialNotFound;
    "category_id", "Category ID.", || slug("Category ID", "gaming").into();
    "product_id", "Product ID.", ProductId::schema;
    "language", "Language of the texts, such as `de`.", Language::schema;
    "vendor_id", "Vendor ID.", || slug("Vendor ID", "acme-cards").into();
    "order_id", "Order ID.", OrderId::schema, OrderNotFound;
    "purchase_id", "Purchase ID.", || text("0198c1f2-a3b4-7c5d-8e9f-0a1b2c3d4e5f").into(), PurchaseNotFound;
    "payout_id", "Payout ID.", PayoutId::schema, PayoutNotFound;
    "date", "Day in UTC.", || date("2026-11-20").into();
    "drift_id", "Drift ID.", DriftId::schema, DriftNotFound;
    "webhook_id", "Endpoint ID.", WebhookId::schema, WebhookNotFound;
    "delivery_id", "Delivery ID.", DeliveryId::schema, DeliveryNotFound;
    "job_id", "Job ID.", BulkJobId::schema, BulkJobNotFound;
    "request_id", "Request ID.", ChangeRequestId::schema, ChangeRequestNotFound;
    "name", "Name of the operator.", OperatorName::schema, OperatorNotFound;
    "token_id", "Token ID.", OperatorTokenId::schema, OperatorTokenNotFound;
    "session_id", "Session ID.", OperatorSessionId::schema, OperatorSessionNotFound;
    "kind", "Kind of the actor.", ActorKind::schema;
    "key", "Key of the actor, as in the list.", || text("ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f").into(), ActorNotFound;
};

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
page. With `count=true` a page has `count`, the entries of the whole list that match the filters, up to 10,000; ask for it only when you show it. \
With `Accept: text/csv` and without `limit` and `cursor` a list is one file with all entries that match the filters: a line of field names and a \
line for each entry, in UTF-8. A text that a spreadsheet would calculate begins with an apostrophe. A response whose connection ends early is incomplete: send \
the request again.

**Errors** have one format, with a `code` for your program. Every response has the header `X-Trace-ID`.";

/// All operations.
pub fn operations() -> Vec<Operation> {
    let groups: [(&'static str, Vec<Operation>); 14] = [
        (PARTNERS, partners::partners().into()),
        (PARTNERS, partners::credentials().into()),
        (PARTNERS, partners::wallets().into()),
        (CATALOGUE, catalogue::catalogue().into()),
        (VENDORS, vendors::vendors().into()),
        (ORDERS, orders::orders().into()),
        (PAYOUTS, payouts::payouts().into()),
        (RECONCILIATION, reconciliation::reconciliation().into()),
        (STOCK, stock::stock().into()),
        (WEBHOOKS, webhooks::webhooks().into()),
        (OPERATORS, operators::operators().into()),
        (CHANGE_REQUESTS, change_requests::change_requests().into()),
        (BULK_JOBS, bulk_jobs::bulk_jobs().into()),
        (MONITORING, monitoring::monitoring().into()),
    ];
    let groups = groups
        .into_iter()
        .flat_map(|(tag, operations)| operations.into_iter().map(move |operation| operation.tag(tag)));
    let public = [
        monitoring::metrics().tag(SERVICE),
        operators::activation().tag(OPERATORS),
    ];
    groups
        .chain(public)
        .chain(openapi::health::operations())
        .collect()
}

pub fn document() -> OpenApi {
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("Operator token."))
        .build();
    let info = DocumentInfo {
        title: "Vouchsafe operator API",
        server: "/",
        description: DESCRIPTION,
        tags: TAGS,
        error_codes: Code::ALL.to_vec(),
        security: vec![(OPERATOR, SecurityScheme::Http(token))],
    };
    openapi::build_document(info, operations(), [])
}

/// An operation under `/admin/v1`, with the parameters and errors that follow from its path, its method and
/// what it requires.
fn describe<Q, R>(operation: wire::Operation<Q, R>, description: &'static str) -> Description<Q, R> {
    Description::new(describe_route(&operation.route, description), &operation)
}

fn describe_route(route: &wire::Route, description: &'static str) -> Operation {
    let wire::Route {
        method, path, access, ..
    } = *route;
    let described = Operation::new(ADMIN_PREFIX, route, description)
        .errors(&[
            Code::InvalidCredentials,
            Code::RateLimitExceeded,
            Code::InternalError,
        ])
        .require_role(OPERATOR, access.role.into_str())
        .extension("x-second-operator", access.second.as_str());
    let described = described.path_parameters(path, PATH_PARAMETERS);
    let described = match access.role {
        Role::Viewer => described,
        Role::Operator | Role::Admin => described.errors(&[Code::Forbidden]),
    };
    let described = match access.second {
        SecondOperator::Never => described,
        SecondOperator::Always(_) | SecondOperator::Sometimes(_) => {
            described.may_wait(change_requests::waiting_response())
        }
    };
    match method.is_read() {
        true => described,
        false => described.errors(&[Code::OutcomeUnknown]),
    }
}

/// An operation of the listener outside of `/admin/v1`.
fn describe_public<Q, R>(
    operation: operation::Operation<Q, R, ()>,
    description: &'static str,
) -> Description<Q, R> {
    Description::new(Operation::new("", &operation.route, description), &operation)
}
