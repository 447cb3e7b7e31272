//! The partner's listener: every route of `/api/v1` on one screen.

pub mod caller;
pub mod categories;
mod gate;
mod health;
pub mod list;
pub mod orders;
pub mod products;
pub mod transactions;
pub mod vouchers;
pub mod wallets;

use actix_web::{HttpResponse, ResponseError as _, web};
pub use gate::{Gate, partner_gate, operator_gate};
pub use health::{alive, ready};
pub use list::Page;
pub use orders::unanswered_error;
pub use transactions::TransactionBody;

use crate::errors::{ApiError, Code};

/// The routes of the partner's listener. A route of the operator's is 404 here.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(resource("/healthz").route(web::get().to(alive)))
        .service(resource("/readyz").route(web::get().to(ready)))
        .service(
            web::scope("/api/v1")
                .service(resource("/categories").route(web::get().to(categories::list)))
                .service(resource("/products").route(web::get().to(products::list)))
                .service(resource("/products/{product_id}").route(web::get().to(products::get)))
                .service(resource("/orders").route(web::post().to(orders::place)))
                .service(resource("/orders/{order_id}").route(web::get().to(orders::get)))
                .service(resource("/orders/{order_id}/vouchers").route(web::get().to(vouchers::get)))
                .service(resource("/wallets").route(web::get().to(wallets::list)))
                .service(resource("/transactions").route(web::get().to(transactions::list)))
                .default_service(web::to(no_route)),
        )
        .default_service(web::to(no_route));
}

/// A path that exists; a method that it does not have is 405.
fn resource(path: &str) -> actix_web::Resource {
    web::resource(path).default_service(web::to(no_method))
}

/// Answers a path that does not exist.
pub async fn no_route() -> HttpResponse {
    ApiError::new(Code::RouteNotFound, "there is no such route; see the reference for those there are").error_response()
}

/// Answers a method that a path does not have.
pub async fn no_method() -> HttpResponse {
    ApiError::new(Code::MethodNotAllowed, "the route does not have this method").error_response()
}
