//! The operator's listener: every route of `/admin/v1` on one screen, and what the machine asks beside it.
//!
//! Rule: nothing below `/admin/v1` is reached without an operator's token; and every write takes a
//! [`By`](crate::store::By), which is had from [`Operator::may`] alone, and leaves an entry in the trail.

mod actors;
mod audit;
mod body;
mod catalogue;
mod change;
mod credentials;
mod operator;
mod orders;
mod partners;
mod products;
mod stock;
mod wallets;

use actix_web::http::header::{ALLOW, HeaderValue};
use actix_web::middleware::from_fn;
use actix_web::{HttpResponse, Resource, ResponseError as _, web};

pub use operator::{Operator, OperatorToken, Role};

use crate::errors::{ApiError, Code};
use crate::http;
use crate::service::Service;

/// Everything on the operator's listener. A route of the partners' is 404 here.
pub fn listener(config: &mut web::ServiceConfig) {
    config
        .service(resource("/healthz", "GET").route(web::get().to(http::alive)))
        .service(resource("/readyz", "GET").route(web::get().to(http::ready)))
        .service(resource("/metrics", "GET").route(web::get().to(metrics)))
        .configure(routes)
        .default_service(web::to(http::no_route));
}

/// The routes of `/admin/v1`.
pub fn routes(config: &mut web::ServiceConfig) {
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
        .service(resource("/partners/{partner_id}/credentials", "POST").route(post().to(credentials::issue)))
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
        .service(
            resource("/stock", "GET, POST")
                .route(get().to(stock::levels))
                .route(post().to(stock::import)),
        )
        .service(resource("/stock/void", "POST").route(post().to(stock::void)))
        .service(resource("/orders", "GET").route(get().to(orders::list)))
        .service(resource("/orders/{order_id}", "GET").route(get().to(orders::get)))
        .service(resource("/actors", "GET").route(get().to(actors::list)))
        .service(resource("/audit", "GET").route(get().to(audit::list)))
        .default_service(web::to(http::no_route));
    config.service(scope.wrap(from_fn(operator::authorized)));
}

/// A path that exists. A method that it does not have is 405, with those that it has.
fn resource(path: &str, allowed: &'static str) -> Resource {
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

/// `GET /metrics`.
async fn metrics(service: web::Data<Service>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/openmetrics-text; version=1.0.0; charset=utf-8")
        .body(service.metrics.render(&service.engine))
}
