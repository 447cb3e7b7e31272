//! OpenAPI document of the partner API, served at `/openapi.json`.

mod catalogue;
mod certification;
mod credentials;
pub(crate) mod events;
pub(crate) mod money;
mod orders;
mod reconciliation;
mod sandbox;
pub(crate) mod webhooks;

use utoipa::PartialSchema as _;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use vouchsafe_domain::api_scope::ApiScope;
use vouchsafe_domain::ids::{EventId, OrderId, PayoutId, TransactionId, WebhookId};
use vouchsafe_domain::product::ProductId;
use vouchsafe_security::framing::API_PREFIX;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::operation as wire;

pub(crate) use self::certification::example as example_certification;
pub(crate) use self::orders::delivered_order as example_order;
use crate::openapi::{self, Description, DocumentInfo, Operation, PathParameter, date, path_parameters};

const ORDERS: &str = "Orders";
const CATALOGUE: &str = "Catalogue";
const MONEY: &str = "Money";
const EVENTS: &str = "Events";
const ACCESS: &str = "Access";
const SANDBOX: &str = "Sandbox";

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
    (ACCESS, "Your account, credentials and certification."),
    (
        SANDBOX,
        "Drive orders and request faults in tests. These routes exist in the sandbox only; in production they are 404.",
    ),
    (openapi::health::TAG, "Health checks and this document."),
];

/// Security schemes of an unsigned request.
const CREDENTIAL_SCHEMES: [&str; 2] = ["ApiKey", "ApiSecret"];

/// Security schemes of a signed request.
const SIGNATURE_SCHEMES: [&str; 4] = ["ApiKey", "ApiSecret", "Timestamp", "Signature"];

const DESCRIPTION: &str = "\
The Vouchsafe partner API: order digital vouchers, retrieve their codes, and receive events about them.

**Base URL.** It ends with `/api/v1`, and all paths below are relative to it: give it to generated clients. The health checks and this \
document are at the root of the host.

**Authentication.** Send `X-API-Key` and `X-API-Secret` with every request, from an address on your allowlist.

**Scopes.** A credential may be restricted to scopes; each operation names the one that it requires. Without it the response is 403 \
`MISSING_SCOPE`.

**Signing.** Sign POST and DELETE requests and the retrieval of codes: send `X-Timestamp` (Unix time in seconds, ten digits, \
within 300 seconds of the server's clock) and `X-Signature: t=<timestamp>,v1=<hex>`. The signature is the HMAC-SHA256 of \
timestamp, method, path and body, concatenated without separators, with the API secret as the key. The path is that of the \
request line, for example `/api/v1/orders`. Signed requests must not have a query string. The signature does not cover \
`Idempotency-Key`; TLS and the allowlist protect it.

**Idempotency.** `POST /orders` and `POST /payouts` require an `Idempotency-Key`. The server executes a request once per key and, \
for 24 hours, answers repetitions with the stored response and `Idempotent-Replayed: true`.

**Money** is a JSON number with exactly the decimals of its currency: `25.00` USD, `1000` JPY, `10.500` KWD. Parse it as a decimal, not \
as a float. Requests may write a number or a text, with fewer decimals.

**Lists** return `data`, `has_more` and `next_cursor`. For the next page, pass `next_cursor` as `cursor` with the same filters.

**Errors** share one format; branch on `code`. Every response has an `X-Trace-ID`: quote it when you contact support.

**Numbers.** An integer may be written with a zero fraction: `2.0` is `2`. Other fractions are refused.

**HEAD** is served like GET, without the body and with the same rate limit, by every GET but that of codes.

**Versioning.** Within v1 we only add endpoints, optional parameters, response fields and values of `x-extensible-enum`. Ignore \
those that you do not know. Every `enum` is final.

**JSON Schemas** of the bodies and events, for validators: [/schemas/](/schemas/).";

/// All operations, with or without the reconciliation preview.
pub fn operations(with_preview: bool) -> impl Iterator<Item = Operation> {
    let preview = match with_preview {
        true => Vec::from(reconciliation::reconciliation()),
        false => Vec::new(),
    };
    let groups: [(&'static str, Vec<Operation>); 8] = [
        (ORDERS, orders::orders()),
        (ORDERS, preview),
        (MONEY, money::money()),
        (CATALOGUE, catalogue::catalogue()),
        (EVENTS, webhooks::webhooks()),
        (ACCESS, certification::certification()),
        (ACCESS, credentials::credentials()),
        (SANDBOX, sandbox::sandbox().into()),
    ];
    let groups = groups
        .into_iter()
        .flat_map(|(tag, operations)| operations.into_iter().map(move |operation| operation.tag(tag)));
    groups.chain(openapi::health::operations())
}

/// The document, with or without the reconciliation preview.
pub fn document(with_preview: bool) -> OpenApi {
    let info = DocumentInfo {
        title: "Vouchsafe partner API",
        server: API_PREFIX,
        description: DESCRIPTION,
        tags: TAGS,
        error_codes: Code::ALL
            .iter()
            .copied()
            .filter(|code| !code.is_for_operators_only())
            .collect(),
        security: security_schemes(),
    };
    openapi::build_document(info, operations(with_preview), events::webhooks())
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

/// Path parameters with their descriptions, and the errors of an ID without an object.
const PATH_PARAMETERS: &[PathParameter] = path_parameters! {
    "order_id", "Order id.", OrderId::schema, OrderNotFound;
    "payout_id", "Payout id.", PayoutId::schema, PayoutNotFound;
    "product_id", "Product id.", ProductId::schema, ProductNotFound;
    "transaction_id", "Transaction id.", TransactionId::schema, TransactionNotFound;
    "event_id", "Event id.", EventId::schema, EventNotFound;
    "webhook_id", "Webhook endpoint id.", WebhookId::schema, WebhookNotFound;
    "date", "Day (UTC).", || date("2026-11-20").into();
};

/// An operation below the base URL, with the parameters and errors that follow from its path, its method and
/// its scope.
fn describe<Q, R>(operation: wire::Operation<Q, R>, description: &'static str) -> Description<Q, R> {
    Description::new(describe_route(&operation.route, description), &operation)
}

fn describe_route(route: &wire::Route, description: &'static str) -> Operation {
    let wire::Route {
        method, path, access, ..
    } = *route;
    let described = Operation::new("", route, description)
        .rate_limited()
        .require_scope(access.into_str())
        .errors(&[
            Code::InvalidCredentials,
            Code::IpNotAllowed,
            Code::MissingScope,
            Code::PartnerSuspended,
            Code::RateLimitExceeded,
            Code::TooManyRequestsInFlight,
            Code::InternalError,
        ]);
    let described = described.path_parameters(path, PATH_PARAMETERS);
    // Changes and reads of codes are signed.
    if method.is_read() && access != ApiScope::Codes {
        return described.secured(&CREDENTIAL_SCHEMES);
    }
    described.secured(&SIGNATURE_SCHEMES).errors(&[
        Code::MalformedRequest,
        Code::UnexpectedQuery,
        Code::InvalidSignature,
        Code::TimestampOutOfRange,
        Code::RequestTimeout,
        Code::PayloadTooLarge,
        Code::UnsupportedMediaType,
    ])
}
