//! Resources that reject unknown methods and paths with the API's error body.

use std::future;

use actix_web::http::header::{ALLOW, HeaderValue};
use actix_web::{HttpResponse, Resource, ResponseError as _, web};
use vouchsafe_wire::error_code::Code;

use super::error::ApiError;

/// A resource at `path` that answers methods not in `allowed` with 405 and an `Allow` header.
pub(crate) fn resource(path: &str, allowed: &str) -> Resource {
    let message = format!("the route does not support this method; use {allowed}");
    let error = ApiError::new(Code::MethodNotAllowed, message);
    let allowed = HeaderValue::from_str(allowed).ok();
    let no_method = move || {
        let mut response = error.error_response();
        if let Some(allowed) = allowed.clone() {
            response.headers_mut().insert(ALLOW, allowed);
        }
        future::ready(response)
    };
    web::resource(path).default_service(web::to(no_method))
}

/// Responds to a path without a route.
pub(crate) async fn route_not_found() -> HttpResponse {
    ApiError::new(
        Code::RouteNotFound,
        "no such route; the API reference at /docs/reference lists all routes",
    )
    .error_response()
}
