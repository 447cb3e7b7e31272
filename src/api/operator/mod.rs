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

use actix_web::middleware::from_fn;
use actix_web::{HttpResponse, web};

use crate::api::docs::openapi::to_value;
use crate::api::docs::pages;
use crate::api::docs::pages::DocsSite;
use crate::api::health;
use crate::api::routing::{resource, route_not_found};
use crate::config_change;
use crate::service::Service;

static DOCUMENTATION: LazyLock<DocsSite> =
    LazyLock::new(|| DocsSite::new(Some(&to_value(&crate::api::docs::operator::document()))));

/// Partner routes are 404 on this listener.
pub fn configure_listener(config: &mut web::ServiceConfig) {
    config
        .configure(health::routes)
        .service(resource("/openapi.json", "GET").route(web::get().to(crate::api::docs::operator::get)))
        .service(resource("/metrics", "GET").route(web::get().to(metrics)))
        .configure(|config| pages::routes(config, &DOCUMENTATION))
        .configure(configure_routes)
        .default_service(web::to(route_not_found));
}

pub fn configure_routes(config: &mut web::ServiceConfig) {
    let (get, post, put) = (web::get, web::post, web::put);
    let scope = web::scope("/admin/v1")
        .service(
            resource("/partners", "GET, POST")
                .route(get().to(partners::list))
                .route(post().to(partners::create)),
        )
        .service(
            resource("/partners/{partner_id}", "GET, PATCH")
                .route(get().to(partners::get))
                .route(web::patch().to(partners::change)),
        )
        .service(
            resource("/partners/{partner_id}/credentials", "GET, POST")
                .route(get().to(credentials::list))
                .route(post().to(credentials::issue)),
        )
        .service(
            resource("/partners/{partner_id}/certification", "DELETE, GET")
                .route(get().to(certification::get))
                .route(web::delete().to(certification::restart)),
        )
        .service(
            resource("/partners/{partner_id}/wallets/{currency}/top-ups", "POST")
                .route(post().to(wallets::top_up)),
        )
        .service(
            resource("/partners/{partner_id}/wallets/{currency}/adjustments", "POST")
                .route(post().to(wallets::adjust)),
        )
        .service(
            resource("/credentials/{credential_id}", "DELETE").route(web::delete().to(credentials::revoke)),
        )
        .service(resource("/categories", "GET").route(get().to(catalogue::list_categories)))
        .service(resource("/categories/{category_id}", "PUT").route(put().to(catalogue::put_category)))
        .service(resource("/products", "GET").route(get().to(catalogue::list_products)))
        .service(
            resource("/products/{product_id}", "GET, PUT")
                .route(get().to(catalogue::get_product))
                .route(put().to(catalogue::put_product)),
        )
        .service(resource("/vendors", "GET").route(get().to(vendors::list)))
        .service(resource("/vendors/{vendor_id}", "PUT").route(put().to(vendors::put)))
        .service(
            resource("/stock", "GET, POST")
                .route(get().to(stock::list_levels))
                .route(post().to(stock::import)),
        )
        .service(resource("/stock/void", "POST").route(post().to(stock::void)))
        .service(resource("/orders", "GET").route(get().to(orders::list)))
        .service(resource("/orders/{order_id}", "GET").route(get().to(orders::get)))
        .service(resource("/orders/{order_id}/approve", "POST").route(post().to(orders::approve)))
        .service(resource("/orders/{order_id}/reject", "POST").route(post().to(orders::reject)))
        .service(resource("/orders/{order_id}/cancel", "POST").route(post().to(orders::cancel)))
        .service(resource("/orders/{order_id}/fulfil", "POST").route(post().to(orders::fulfil)))
        .service(resource("/purchases", "GET").route(get().to(purchases::list)))
        .service(resource("/purchases/{purchase_id}/end", "POST").route(post().to(purchases::end)))
        .service(resource("/payouts", "GET").route(get().to(payouts::list)))
        .service(resource("/payouts/{payout_id}", "GET").route(get().to(payouts::get)))
        .service(resource("/payouts/{payout_id}/pay", "POST").route(post().to(payouts::pay)))
        .service(resource("/payouts/{payout_id}/reject", "POST").route(post().to(payouts::reject)))
        .service(resource("/payouts/{payout_id}/fail", "POST").route(post().to(payouts::fail)))
        .service(resource("/reconciliation/{date}", "GET").route(get().to(reconciliation::get)))
        .service(resource("/reconciliation/{date}/run", "POST").route(post().to(reconciliation::run)))
        .service(resource("/reconciliation/{date}/records", "POST").route(post().to(reconciliation::upload)))
        .service(resource("/drifts", "GET").route(get().to(reconciliation::drifts::list)))
        .service(
            resource("/drifts/{drift_id}/resolve", "POST").route(post().to(reconciliation::drifts::resolve)),
        )
        .service(resource("/webhooks", "GET").route(get().to(webhooks::list_webhooks)))
        .service(resource("/webhooks/{webhook_id}/enable", "POST").route(post().to(webhooks::enable)))
        .service(resource("/deliveries", "GET").route(get().to(webhooks::list_deliveries)))
        .service(resource("/deliveries/{delivery_id}/replay", "POST").route(post().to(webhooks::replay)))
        .service(resource("/actors", "GET").route(get().to(actors::list)))
        .service(resource("/audit", "GET").route(get().to(audit::list)))
        .default_service(web::to(route_not_found));
    config.service(scope.wrap(from_fn(crate::api::middleware::operator::authenticate)));
}

/// `GET /metrics`.
async fn metrics(service: web::Data<Service>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/openmetrics-text; version=1.0.0; charset=utf-8")
        .body(service.metrics.render(
            &service.engine,
            &service.procurement,
            &service.deliveries,
            &service.rate_limits,
        ))
}
