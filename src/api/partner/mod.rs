//! Route table of the partner listener: every route below `/api/v1`, plus health and documentation.

mod authenticated_list;
mod categories;
pub(super) mod certification;
mod credentials;
mod endpoint;
mod events;
mod idempotency;
mod me;
pub(super) mod orders;
mod payouts;
mod products;
pub(super) mod reconciliation;
mod sandbox;
mod transactions;
mod voucher_access;
mod vouchers;
mod wallets;
pub(super) mod webhooks;

use std::sync::{Arc, LazyLock};

use actix_web::{HttpRequest, HttpResponse, Scope, web};
use utoipa::openapi::OpenApi;
use vouchsafe_api_docs::pages::Audience;
use vouchsafe_api_docs::{openapi, partner as docs};
use vouchsafe_security::framing::API_PREFIX;
use vouchsafe_store::PgStore;
use vouchsafe_wire::health::{GET_OPEN_API, HEAD_OPEN_API};
use vouchsafe_wire::partner::operations;
use vouchsafe_wire::preference::{PREFER, WaitPreference};

use self::endpoint::{bind, bind_list};
use super::documentation::{self, DocsSite, Files};
use super::endpoint::{Endpoint, register, resources};
use super::health;
use super::routing::route_not_found;
use super::static_file::StaticFile;
use crate::service::{Service, State};
use crate::settings::Preview;

/// The documentation site, without the preview.
pub(super) static DOCUMENTATION: LazyLock<DocsSite> =
    LazyLock::new(|| DocsSite::new(&document(Preview::Off), Audience::Partners));

/// The JSON Schemas of bodies and events, without the preview.
static SCHEMAS: LazyLock<Files> = LazyLock::new(|| documentation::schemas(&document(Preview::Off)));

/// Class of the connections for requests of partners.
struct PartnerConnections;

/// State of the handlers of this listener.
type PartnerState = State<PartnerConnections>;

/// The routes of the partner listener. Operator routes are 404 here.
pub(crate) fn routes(
    service: Arc<Service>,
    store: &PgStore,
) -> impl FnOnce(&mut web::ServiceConfig) + Clone + Send + use<> {
    let state = web::Data::new(PartnerState::new(service, store.for_partners()));
    |config| {
        config.app_data(state);
        configure(config);
    }
}

fn configure(config: &mut web::ServiceConfig) {
    let preview = resources(reconciliation::preview());
    let preview = preview.map(|resource| resource.guard(reconciliation::is_preview_on));
    let sandbox = resources(sandbox::endpoints());
    let sandbox = sandbox.map(|resource| resource.guard(sandbox::is_sandbox));
    let api = resources(api_endpoints())
        .chain(preview)
        .chain(sandbox)
        .fold(web::scope(API_PREFIX), Scope::service)
        .default_service(web::to(route_not_found));
    register(config, public_endpoints());
    config
        .service(api)
        .configure(|config| documentation::routes(config, &DOCUMENTATION))
        .configure(documentation::home)
        .configure(|config| documentation::schema_routes(config, &SCHEMAS))
        .default_service(web::to(route_not_found));
}

/// The endpoints without authentication.
fn public_endpoints() -> impl Iterator<Item = Endpoint> {
    let own = [
        Endpoint::public(&GET_OPEN_API, serve_document),
        Endpoint::public(&HEAD_OPEN_API, serve_document),
    ];
    own.into_iter().chain(health::endpoints())
}

/// The endpoints below `/api/v1`. actix tries routes and methods in this order: the most frequent ones come
/// first, and literal paths, which are compared, come before patterns, which run a regular expression.
fn api_endpoints() -> [Endpoint; operations::OPERATIONS.len()] {
    [
        bind(operations::PLACE_ORDER, orders::place),
        bind_list(operations::LIST_ORDERS, orders::list),
        bind_list(operations::LIST_WALLETS, wallets::list),
        bind_list(operations::LIST_EVENTS, events::list),
        bind_list(operations::LIST_TRANSACTIONS, transactions::list),
        bind_list(operations::LIST_PRODUCTS, products::list),
        bind_list(operations::LIST_CATEGORIES, categories::list),
        bind_list(operations::LIST_PAYOUTS, payouts::list),
        bind(operations::REQUEST_PAYOUT, payouts::request),
        bind_list(operations::LIST_WEBHOOKS, webhooks::list),
        bind(operations::PUT_WEBHOOK, webhooks::put),
        bind(operations::GET_CERTIFICATION, certification::get),
        bind(operations::GET_ME, me::get),
        bind_list(operations::LIST_CREDENTIALS, credentials::list),
        bind(operations::ROTATE_CREDENTIAL, credentials::rotate),
        bind(operations::GET_ORDER, orders::get),
        bind(operations::GET_VOUCHER_CODES, vouchers::get),
        bind_list(operations::LIST_VOUCHER_ACCESS, voucher_access::list),
        bind(operations::CANCEL_ORDER, orders::cancel::cancel),
        bind(operations::GET_PRODUCT, products::get),
        bind(operations::GET_PAYOUT, payouts::get),
        bind(operations::GET_TRANSACTION, transactions::get),
        bind(operations::GET_EVENT, events::get),
        bind(operations::GET_WEBHOOK, webhooks::get),
        bind(operations::CANCEL_PAYOUT, payouts::cancel),
        bind_list(operations::LIST_WEBHOOK_DELIVERIES, webhooks::list_attempts),
        bind(operations::DELETE_WEBHOOK, webhooks::remove),
        bind(operations::ROTATE_WEBHOOK, webhooks::rotate),
        bind(operations::TEST_WEBHOOK, webhooks::test),
        bind(operations::RETRY_WEBHOOK, webhooks::retry),
        bind(operations::REPLAY_WEBHOOK, webhooks::replay),
    ]
}

/// The wait that a request asks for.
fn wait_preference(request: &HttpRequest) -> Option<WaitPreference> {
    let preferences = request.headers().get_all(PREFER);
    WaitPreference::requested(preferences.filter_map(|line| line.to_str().ok()))
}

/// `GET /openapi.json`.
async fn serve_document(service: web::Data<Service>, request: HttpRequest) -> HttpResponse {
    static FILE: LazyLock<StaticFile> = LazyLock::new(|| openapi::to_file(&document(Preview::Off)).into());
    static WITH_PREVIEW: LazyLock<StaticFile> =
        LazyLock::new(|| openapi::to_file(&document(Preview::On)).into());
    let file = match service.reconciliation_preview {
        Preview::Off => &FILE,
        Preview::On => &WITH_PREVIEW,
    };
    file.respond(&request)
}

/// The OpenAPI document, with or without the reconciliation preview.
pub(super) fn document(preview: Preview) -> OpenApi {
    docs::document(preview == Preview::On)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};
    use strum::VariantArray as _;
    use vouchsafe_domain::event_kind::EventKind;

    use super::*;
    use crate::api::openapi_check::{assert_complete, assert_documented};

    #[test]
    fn document_is_complete() {
        assert_complete(&openapi::to_value(&document(Preview::Off)));
    }

    /// The compiler compares the numbers of operations and handlers only.
    #[test]
    fn each_operation_has_one_handler_and_one_description() {
        let below = api_endpoints()
            .into_iter()
            .chain(reconciliation::preview())
            .chain(sandbox::endpoints());
        let handled: Vec<_> = below.map(|endpoint| endpoint.label("")).collect();
        let all = [
            operations::OPERATIONS,
            vouchsafe_wire::partner::reconciliation::OPERATIONS,
            vouchsafe_wire::partner::sandbox::OPERATIONS,
        ];
        let all = all.into_iter().flatten();
        let all: Vec<_> = all
            .map(|operation| format!("{} {}", <&str>::from(operation.method), operation.path))
            .collect();
        assert_eq!(handled, all);
        let public = public_endpoints().map(|endpoint| endpoint.label(""));
        let document = openapi::to_value(&document(Preview::On));
        assert_documented(&document, handled.into_iter().chain(public));
    }

    /// Generated clients take the documented base URL, or that of the document.
    #[test]
    fn server_is_the_base_url_and_probes_are_at_the_root() {
        let document = openapi::to_value(&document(Preview::Off));
        assert_eq!(document["servers"], json!([{ "url": API_PREFIX }]));
        for (path, item) in document["paths"].as_object().unwrap() {
            for operation in item.as_object().unwrap().values() {
                let is_public = operation["security"] == json!([]);
                let servers = if is_public {
                    json!([{ "url": "/" }])
                } else {
                    Value::Null
                };
                assert_eq!(operation["servers"], servers, "{path}");
            }
        }
    }

    /// A client generated from a closed list or from a union fails on an event type that was added later.
    #[test]
    fn event_types_are_open() {
        let document = openapi::to_value(&document(Preview::Off));
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["EventKind"]["enum"], Value::Null);
        let known = schemas["EventKind"]["x-extensible-enum"].as_array().unwrap();
        assert_eq!(known.len(), EventKind::VARIANTS.len());
        let event = &schemas["Event"];
        assert_eq!(
            event["properties"]["event"]["allOf"][0]["$ref"],
            "#/components/schemas/EventKind"
        );
        assert!(event["oneOf"].is_null() && event["discriminator"].is_null());
    }

    /// A code of operators tells partners nothing, and each other code belongs to an operation or to the
    /// routing.
    #[test]
    fn document_lists_the_codes_that_partners_receive() {
        let document = openapi::to_value(&document(Preview::On));
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let listed = schemas
            .values()
            .find_map(|schema| schema["properties"]["code"]["x-extensible-enum"].as_array());
        let listed: BTreeSet<&str> = listed.unwrap().iter().filter_map(Value::as_str).collect();
        let operations = document["paths"].as_object().unwrap().values();
        let responses = operations
            .flat_map(|item| item.as_object().unwrap().values())
            .flat_map(|operation| operation["responses"].as_object().unwrap().values());
        let examples =
            responses.filter_map(|response| response["content"]["application/json"]["examples"].as_object());
        let mut received: BTreeSet<&str> = examples
            .flat_map(|codes| codes.keys().map(String::as_str))
            .collect();
        received.extend(["ROUTE_NOT_FOUND", "METHOD_NOT_ALLOWED"]);
        assert_eq!(listed, received);
    }

    /// Examples show amounts as responses print them.
    #[test]
    fn amounts_of_examples_have_the_decimals_of_their_currency() {
        const AMOUNTS: [&str; 8] = [
            "denomination",
            "total_amount",
            "refunded_amount",
            "amount",
            "balance",
            "balance_after",
            "pending_orders",
            "pending_payouts",
        ];
        let text = openapi::json_text::compact(&openapi::to_value(&document(Preview::Off)));
        for name in AMOUNTS {
            let field = format!("\"{name}\":");
            let values = text.split(&field).skip(1);
            let values = values.map(|rest| rest.split([',', '}']).next().unwrap_or_default());
            let values: Vec<_> = values.filter(|value| value.parse::<f64>().is_ok()).collect();
            assert!(!values.is_empty(), "no example of {name}");
            for value in values {
                let decimals = value.split_once('.').map_or(0, |(_, decimals)| decimals.len());
                assert_eq!(decimals, 2, "{name}: {value}");
            }
        }
    }

    /// Some generators write code that does not compile for a range such as `4XX`.
    #[test]
    fn responses_of_operations_have_explicit_codes() {
        for preview in [Preview::Off, Preview::On] {
            let document = openapi::to_value(&document(preview));
            let items = document["paths"].as_object().unwrap().values();
            for operation in items.flat_map(|item| item.as_object().unwrap().values()) {
                for status in operation["responses"].as_object().unwrap().keys() {
                    assert!(
                        status.parse::<u16>().is_ok(),
                        "{}: {status}",
                        operation["operationId"]
                    );
                }
            }
        }
    }

    #[test]
    fn json_schemas_compile_alone_and_accept_the_samples() {
        let document = openapi::to_value(&document(Preview::Off));
        let parse = |file: &StaticFile| -> Value { serde_json::from_slice(&file.body).unwrap() };
        for (file, schema) in SCHEMAS.iter().filter(|(file, _)| !file.is_empty()) {
            let schema = parse(schema);
            assert_eq!(schema["$id"], format!("/schemas/{file}"));
            jsonschema::draft202012::new(&schema).unwrap();
        }
        for kind in EventKind::VARIANTS {
            let name: &str = kind.into();
            let sample =
                &document["webhooks"][name]["post"]["requestBody"]["content"]["application/json"]["example"];
            assert!(
                jsonschema::draft202012::is_valid(&parse(&SCHEMAS[&format!("{name}.json")]), sample),
                "{sample}"
            );
        }
        for file in [
            "order.json",
            "order-request.json",
            "product.json",
            "wallet.json",
            "webhook.json",
        ] {
            assert!(SCHEMAS.contains_key(file), "{file}");
        }
    }

    #[test]
    fn preview_document_adds_the_reconciliation_route() {
        let mut preview = openapi::to_value(&document(Preview::On));
        assert_complete(&preview);
        let paths = preview["paths"].as_object_mut().unwrap();
        assert!(paths.remove("/reconciliation/{date}").is_some());
        assert_eq!(
            preview["paths"],
            openapi::to_value(&document(Preview::Off))["paths"]
        );
    }
}
