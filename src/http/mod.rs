//! The partner's listener: every route of `/api/v1` on one screen.

mod admission;
pub mod caller;
pub mod categories;
pub mod certification;
pub mod credentials;
pub mod etag;
pub mod events;
mod gate;
mod header;
mod health;
mod limits;
pub mod list;
pub(crate) mod openapi;
pub mod orders;
pub mod pages;
pub mod payouts;
pub mod period;
pub mod prefer;
pub mod products;
pub mod reconciliation;
pub mod transactions;
pub mod vouchers;
pub mod wallets;
pub mod webhooks;

use actix_web::http::header::{ALLOW, HeaderValue};
use actix_web::middleware::from_fn;
use actix_web::{HttpResponse, Resource, ResponseError as _, web};
pub use admission::admission;
pub(crate) use gate::method_word;
pub use gate::{Gate, operator_gate, partner_gate};
pub(crate) use health::HealthBody;
pub use health::routes as health_routes;
pub use list::Page;
pub use orders::{OrderBody, unanswered_error};
pub use transactions::TransactionBody;

use crate::errors::{ApiError, Code};

/// The routes of the partner's listener. A route of the operator's is 404 here.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(resource("/openapi.json", "GET").route(web::get().to(openapi::get)))
        .service(
            web::scope("/api/v1")
                // Routes and methods are tried one after the other: what is asked most comes first, and literal paths, which are
                // compared, before patterns, which are matched.
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
                .configure(reconciliation::preview)
                .default_service(web::to(no_route))
                .wrap(from_fn(limits::announced)),
        )
        .configure(health::routes)
        .configure(|config| pages::routes(config, &pages::PARTNER))
        .default_service(web::to(no_route));
}

/// A path that exists. A method that it does not have is 405, with those that it has.
pub fn resource(path: &str, allowed: &'static str) -> Resource {
    let no_method = move || async move {
        let refused = ApiError::new(Code::MethodNotAllowed, format!("the route takes {allowed}"));
        let mut response = refused.error_response();
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static(allowed));
        response
    };
    web::resource(path).default_service(web::to(no_method))
}

/// Answers a path that does not exist.
pub async fn no_route() -> HttpResponse {
    ApiError::new(
        Code::RouteNotFound,
        "there is no such route; see the reference for those there are",
    )
    .error_response()
}
