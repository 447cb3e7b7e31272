//! Routes of the operator listener: `/admin/v1`, health, metrics and documentation.
//!
//! Every route under `/admin/v1` requires an operator token. Every write takes an
//! [`AuditActor`](vouchsafe_store::AuditActor), which only [`Operator::authorize`](crate::api::middleware::operator::Operator::authorize) provides, and adds an audit entry.

mod actors;
mod audit;
mod body;
mod catalogue;
mod certification;
mod credentials;
mod decision;
mod line_blocks;
mod orders;
mod partner_id;
mod partners;
mod payouts;
mod purchases;
mod reconciliation;
mod stock;
mod vendors;
mod wallets;
mod webhooks;

use std::sync::LazyLock;

use actix_web::http::header::{Accept, Header as _, VARY};
use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, HttpResponse, Scope, web};
use utoipa::openapi::OpenApi;
use vouchsafe_domain::ledger::LedgerKind;
use vouchsafe_domain::payout::PayoutOutcome;

use crate::api::docs::openapi::{self, Endpoint, endpoints, register, resources};
use crate::api::docs::operator as docs;
use crate::api::docs::pages::{self, DocsSite};
use crate::api::health;
use crate::api::middleware::operator::authenticate;
use crate::api::routing::route_not_found;
use crate::api::static_file::StaticFile;
use crate::config_change;
use crate::metrics::MetricsFormat;
use crate::service::Service;

/// Prefix of the routes that need a token.
const ADMIN_PREFIX: &str = "/admin/v1";

static DOCUMENTATION: LazyLock<DocsSite> = LazyLock::new(|| DocsSite::new(&openapi::to_value(&document())));

/// Partner routes are 404 on this listener.
pub(crate) fn configure_listener(config: &mut web::ServiceConfig) {
    register(config, public_endpoints());
    config
        .configure(|config| pages::routes(config, &DOCUMENTATION))
        .configure(configure_routes)
        .default_service(web::to(route_not_found));
}

pub(crate) fn configure_routes(config: &mut web::ServiceConfig) {
    let scope = resources(endpoints()).fold(web::scope(ADMIN_PREFIX), Scope::service);
    let scope = scope.default_service(web::to(route_not_found));
    config.service(scope.wrap(from_fn(authenticate)));
}

/// The endpoints without authentication.
fn public_endpoints() -> impl Iterator<Item = Endpoint> {
    let own = endpoints! {
        GET "/openapi.json" => serve_document, openapi::health::document;
        HEAD "/openapi.json" => serve_document, |operation| openapi::health::document(operation).id("headOpenApi");
        GET "/metrics" => metrics, docs::monitoring::metrics;
    };
    health::endpoints().into_iter().chain(own)
}

/// The endpoints below `/admin/v1`.
fn endpoints() -> Vec<Endpoint> {
    endpoints! {
        GET "/partners" => partners::list, docs::partners::list;
        POST "/partners" => partners::create, docs::partners::create;
        GET "/partners/{partner_id}" => partners::get, docs::partners::get;
        PATCH "/partners/{partner_id}" => partners::change, docs::partners::change;
        GET "/partners/{partner_id}/credentials" => credentials::list, docs::partners::list_credentials;
        POST "/partners/{partner_id}/credentials" => credentials::issue, docs::partners::issue;
        GET "/partners/{partner_id}/certification" => certification::get, docs::partners::certification;
        DELETE "/partners/{partner_id}/certification" => certification::restart, docs::partners::restart_certification;
        GET "/partners/{partner_id}/wallets" => wallets::list, docs::partners::list_wallets;
        GET "/partners/{partner_id}/transactions" => wallets::list_transactions, docs::partners::list_transactions;
        POST "/partners/{partner_id}/wallets/{currency}/top-ups"
            => |posting| wallets::post(posting, LedgerKind::TopUp), docs::partners::top_up;
        POST "/partners/{partner_id}/wallets/{currency}/adjustments"
            => |posting| wallets::post(posting, LedgerKind::Adjustment), docs::partners::adjust;
        DELETE "/credentials/{credential_id}" => credentials::revoke, docs::partners::revoke;
        GET "/categories" => catalogue::list_categories, docs::catalogue::list_categories;
        PUT "/categories/{category_id}" => catalogue::put_category, docs::catalogue::put_category;
        GET "/products" => catalogue::list_products, docs::catalogue::list_products;
        GET "/products/{product_id}" => catalogue::get_product, docs::catalogue::get_product;
        PUT "/products/{product_id}" => catalogue::put_product, docs::catalogue::put_product;
        GET "/vendors" => vendors::list, docs::vendors::list;
        PUT "/vendors/{vendor_id}" => vendors::put, docs::vendors::put;
        GET "/stock" => stock::list_levels, docs::stock::levels;
        POST "/stock" => stock::import, docs::stock::import;
        POST "/stock/void" => stock::void, docs::stock::void;
        GET "/orders" => orders::list, docs::orders::search;
        GET "/orders/{order_id}" => orders::get, docs::orders::get;
        POST "/orders/{order_id}/approve" => |request| orders::decide(request, true), docs::orders::approve;
        POST "/orders/{order_id}/reject" => |request| orders::decide(request, false), docs::orders::reject;
        POST "/orders/{order_id}/cancel" => orders::cancel, docs::orders::cancel;
        POST "/orders/{order_id}/fulfil" => orders::fulfil, docs::orders::fulfil;
        GET "/purchases" => purchases::list, docs::vendors::purchases;
        POST "/purchases/{purchase_id}/end" => purchases::end, docs::vendors::end_purchase;
        GET "/payouts" => payouts::list, docs::payouts::list;
        GET "/payouts/{payout_id}" => payouts::get, docs::payouts::get;
        POST "/payouts/{payout_id}/pay" => |request| payouts::decide(request, PayoutOutcome::Paid), docs::payouts::pay;
        POST "/payouts/{payout_id}/reject"
            => |request| payouts::decide(request, PayoutOutcome::Rejected), docs::payouts::reject;
        POST "/payouts/{payout_id}/fail" => |request| payouts::decide(request, PayoutOutcome::Failed), docs::payouts::fail;
        GET "/reconciliation/{date}" => reconciliation::get, docs::reconciliation::get;
        POST "/reconciliation/{date}/run" => reconciliation::run, docs::reconciliation::run;
        POST "/reconciliation/{date}/records" => reconciliation::upload, docs::reconciliation::upload;
        GET "/drifts" => reconciliation::drifts::list, docs::reconciliation::list_drifts;
        POST "/drifts/{drift_id}/resolve" => reconciliation::drifts::resolve, docs::reconciliation::resolve;
        GET "/webhooks" => webhooks::list_webhooks, docs::webhooks::list;
        POST "/webhooks/{webhook_id}/enable" => webhooks::enable, docs::webhooks::enable;
        POST "/webhooks/{webhook_id}/retry" => webhooks::retry, docs::webhooks::retry;
        GET "/deliveries" => webhooks::list_deliveries, docs::webhooks::deliveries;
        POST "/deliveries/{delivery_id}/replay" => webhooks::replay, docs::webhooks::replay;
        GET "/actors" => actors::list, docs::monitoring::actors;
        GET "/audit" => audit::list, docs::monitoring::audit;
    }
}

fn document() -> OpenApi {
    let api = endpoints()
        .into_iter()
        .map(|endpoint| endpoint.operation(ADMIN_PREFIX));
    docs::document(api.chain(public_endpoints().map(|endpoint| endpoint.operation(""))))
}

/// `GET /openapi.json`.
async fn serve_document(request: HttpRequest) -> HttpResponse {
    static FILE: LazyLock<StaticFile> = LazyLock::new(|| openapi::to_file(&document()));
    FILE.respond(&request)
}

/// `GET /metrics`.
async fn metrics(service: web::Data<Service>, request: HttpRequest) -> HttpResponse {
    // A header that is not ASCII expresses no preference.
    let accept = Accept::parse(&request).unwrap_or_else(|_| Accept::star());
    let format = MetricsFormat::negotiate(&accept);
    HttpResponse::Ok()
        .content_type(format.content_type())
        .insert_header((VARY, "Accept"))
        .body(service.metrics.render(
            format,
            &service.engine,
            &service.procurement,
            &service.deliveries,
            &service.rate_limits,
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::docs::openapi::check::assert_complete;

    #[test]
    fn document_is_complete() {
        assert_complete(&openapi::to_value(&document()));
    }
}
