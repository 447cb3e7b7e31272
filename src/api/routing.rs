//! Resources that reject unknown methods and paths with the API's error body.

use actix_web::http::header::{ALLOW, HeaderValue};
use actix_web::{HttpResponse, Resource, ResponseError as _, web};
use vouchsafe_wire::error_code::Code;

use super::error::ApiError;

/// A resource at `path` that answers methods not in `allowed` with 405 and an `Allow` header.
pub fn resource(path: &str, allowed: &'static str) -> Resource {
    let no_method = move || async move {
        let error = ApiError::new(
            Code::MethodNotAllowed,
            format!("the route does not support this method; use {allowed}"),
        );
        let mut response = error.error_response();
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static(allowed));
        response
    };
    web::resource(path).default_service(web::to(no_method))
}

/// Responds to a path without a route.
pub async fn route_not_found() -> HttpResponse {
    ApiError::new(
        Code::RouteNotFound,
        "no such route; the API reference at /docs/reference lists all routes",
    )
    .error_response()
}
