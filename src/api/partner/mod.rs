//! Route table of the partner listener: every route below `/api/v1`, plus health and documentation.

mod authenticated_list;
mod categories;
pub(super) mod certification;
mod credentials;
mod endpoint;
mod events;
mod idempotency;
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

use std::sync::LazyLock;

use actix_web::{HttpRequest, HttpResponse, Scope, web};
use utoipa::openapi::OpenApi;
use vouchsafe_api_docs::{openapi, partner as docs};
use vouchsafe_domain::api_scope::ApiScope::{Codes, Credentials, Orders, Payouts, Read, Webhooks};
use vouchsafe_security::framing::API_PREFIX;

use self::endpoint::{PartnerEndpoint, partner_endpoints};
use super::documentation::{self, DocsSite, Files};
use super::endpoint::{Endpoint, endpoints, register, resources};
use super::health;
use super::routing::route_not_found;
use super::static_file::StaticFile;
use crate::service::Service;
use crate::settings::Preview;

/// The documentation site, without the preview.
pub(super) static DOCUMENTATION: LazyLock<DocsSite> =
    LazyLock::new(|| DocsSite::new(&document(Preview::Off)));

/// The JSON Schemas of bodies and events, without the preview.
static SCHEMAS: LazyLock<Files> = LazyLock::new(|| documentation::schemas(&document(Preview::Off)));

/// Registers the routes of the partner listener. Operator routes are 404 here.
pub(crate) fn routes(config: &mut web::ServiceConfig) {
    let preview = resources(
        reconciliation::preview()
            .into_iter()
            .map(PartnerEndpoint::into_endpoint),
    );
    let preview = preview.map(|resource| resource.guard(reconciliation::is_preview_on));
    let sandbox = resources(
        sandbox::endpoints()
            .into_iter()
            .map(PartnerEndpoint::into_endpoint),
    );
    let sandbox = sandbox.map(|resource| resource.guard(sandbox::is_sandbox));
    let api = resources(api_endpoints().into_iter().map(PartnerEndpoint::into_endpoint))
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
    let own = endpoints! {
        GET "/openapi.json" => serve_document, openapi::health::document;
        HEAD "/openapi.json" => serve_document, |operation| openapi::health::document(operation).id("headOpenApi");
    };
    own.into_iter().chain(health::endpoints())
}

/// The endpoints below `/api/v1`. actix tries routes and methods in this order: the most frequent ones come first, and literal
/// paths, which are compared, come before patterns, which run a regular expression.
fn api_endpoints() -> Vec<PartnerEndpoint> {
    partner_endpoints! {
        POST "/orders" Orders => orders::place, docs::orders::place;
        GET "/orders" Read => orders::list, docs::orders::list;
        GET "/wallets" Read => wallets::list, docs::money::list_wallets;
        GET "/events" Read => events::list, docs::webhooks::events;
        GET "/transactions" Read => transactions::list, docs::money::list_transactions;
        GET "/products" Read => products::list, docs::catalogue::list_products;
        GET "/categories" Read => categories::list, docs::catalogue::list_categories;
        GET "/payouts" Read => payouts::list, docs::money::list_payouts;
        POST "/payouts" Payouts => payouts::request, docs::money::request_payout;
        GET "/webhooks" Read => webhooks::list, docs::webhooks::list;
        POST "/webhooks" Webhooks => webhooks::put, docs::webhooks::put;
        GET "/certification" Read => certification::get, docs::certification::get;
        POST "/credentials/rotate" Credentials => credentials::rotate, docs::credentials::rotate;
        GET "/orders/{order_id}" Read => orders::get, docs::orders::get;
        GET "/orders/{order_id}/vouchers" Codes => vouchers::get, docs::orders::get_codes;
        GET "/orders/{order_id}/vouchers/access" Read => voucher_access::list, docs::orders::list_code_reads;
        POST "/orders/{order_id}/cancel" Orders => orders::cancel::cancel, docs::orders::cancel;
        GET "/products/{product_id}" Read => products::get, docs::catalogue::get_product;
        GET "/payouts/{payout_id}" Read => payouts::get, docs::money::get_payout;
        GET "/webhooks/{webhook_id}/deliveries" Read => webhooks::list_attempts, docs::webhooks::attempts;
        DELETE "/webhooks/{webhook_id}" Webhooks => webhooks::remove, docs::webhooks::remove;
        POST "/webhooks/{webhook_id}/rotate" Webhooks => webhooks::rotate, docs::webhooks::rotate;
        POST "/webhooks/{webhook_id}/test" Webhooks => webhooks::test, docs::webhooks::test;
        POST "/webhooks/{webhook_id}/retry" Webhooks => webhooks::retry, docs::webhooks::retry;
        POST "/webhooks/{webhook_id}/replay" Webhooks => webhooks::replay, docs::webhooks::replay;
    }
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
    let preview = (preview == Preview::On)
        .then(reconciliation::preview)
        .into_iter()
        .flatten();
    let api = api_endpoints()
        .into_iter()
        .chain(preview)
        .chain(sandbox::endpoints());
    let api = api.map(|endpoint| endpoint.operation(API_PREFIX));
    docs::document(api.chain(public_endpoints().map(|endpoint| endpoint.operation(""))))
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;
    use vouchsafe_domain::event_kind::EventKind;

    use super::*;
    use crate::api::openapi_check::assert_complete;

    #[test]
    fn document_is_complete() {
        assert_complete(&openapi::to_value(&document(Preview::Off)));
    }

    #[test]
    fn json_schemas_compile_alone_and_accept_the_samples() {
        let document = openapi::to_value(&document(Preview::Off));
        let parse = |file: &StaticFile| -> serde_json::Value { serde_json::from_slice(&file.body).unwrap() };
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
        assert!(paths.remove("/api/v1/reconciliation/{date}").is_some());
        assert_eq!(
            preview["paths"],
            openapi::to_value(&document(Preview::Off))["paths"]
        );
    }
}
