//! Route table of the partner listener: every route below `/api/v1`, plus health and documentation.

pub mod categories;
pub mod certification;
pub mod credentials;
pub mod events;
pub mod orders;
pub mod payouts;
pub mod products;
pub mod reconciliation;
pub mod transactions;
pub mod vouchers;
pub mod wallets;
pub mod webhooks;

use actix_web::middleware::from_fn;
use actix_web::web;

use super::docs::{self, pages};
use super::health;
use super::middleware::rate_limit_headers;
use super::routing::{resource, route_not_found};

/// Registers the routes of the partner listener. Operator routes are 404 here.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(resource("/openapi.json", "GET").route(web::get().to(docs::partner::serve)))
        .service(
            web::scope("/api/v1")
                // actix tries routes and methods in this order: the most frequent ones come first, and literal paths, which are
                // compared, come before patterns, which run a regular expression.
                .service(
                    resource("/orders", "GET, POST")
                        .route(web::post().to(orders::place))
                        .route(web::get().to(orders::list)),
                )
                .service(resource("/wallets", "GET").route(web::get().to(wallets::list)))
                .service(resource("/events", "GET").route(web::get().to(events::list)))
                .service(resource("/transactions", "GET").route(web::get().to(transactions::list)))
                .service(resource("/products", "GET").route(web::get().to(products::list)))
                .service(resource("/categories", "GET").route(web::get().to(categories::list)))
                .service(
                    resource("/payouts", "GET, POST")
                        .route(web::get().to(payouts::list))
                        .route(web::post().to(payouts::request)),
                )
                .service(
                    resource("/webhooks", "GET, POST")
                        .route(web::get().to(webhooks::list))
                        .route(web::post().to(webhooks::put)),
                )
                .service(resource("/certification", "GET").route(web::get().to(certification::get)))
                .service(resource("/credentials/rotate", "POST").route(web::post().to(credentials::rotate)))
                .service(resource("/orders/{order_id}", "GET").route(web::get().to(orders::get)))
                .service(resource("/orders/{order_id}/vouchers", "GET").route(web::get().to(vouchers::get)))
                .service(
                    resource("/orders/{order_id}/cancel", "POST")
                        .route(web::post().to(orders::cancel::cancel)),
                )
                .service(resource("/products/{product_id}", "GET").route(web::get().to(products::get)))
                .service(resource("/payouts/{payout_id}", "GET").route(web::get().to(payouts::get)))
                .service(
                    resource("/webhooks/{webhook_id}", "DELETE").route(web::delete().to(webhooks::remove)),
                )
                .service(
                    resource("/webhooks/{webhook_id}/rotate", "POST").route(web::post().to(webhooks::rotate)),
                )
                .service(
                    resource("/webhooks/{webhook_id}/test", "POST").route(web::post().to(webhooks::test)),
                )
                .service(
                    resource("/webhooks/{webhook_id}/replay", "POST").route(web::post().to(webhooks::replay)),
                )
                .configure(reconciliation::preview_route)
                .default_service(web::to(route_not_found))
                .wrap(from_fn(rate_limit_headers::write_headers)),
        )
        .configure(health::routes)
        .configure(|config| pages::routes(config, &pages::PARTNER_DOCS))
        .default_service(web::to(route_not_found));
}
