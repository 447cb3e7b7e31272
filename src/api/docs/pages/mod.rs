//! Partner documentation served as HTML below `/docs`, on both listeners.
//!
//! Pages are rendered from the Markdown files of `docs/partner` on first use. They contain no scripts and load nothing from
//! other hosts; the content security policy forbids both.

mod layout;
mod markdown;
pub(crate) mod reference;
mod site;

use std::sync::LazyLock;

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::{HttpRequest, HttpResponse, web};
pub(crate) use site::DocsSite;
use site::StaticFile;

use crate::api::etag::is_cached_by_client;
use crate::api::routing::{resource, route_not_found};

/// Allows only our own style sheet.
const CONTENT_POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Registers the routes of the documentation.
pub(crate) fn routes(config: &mut web::ServiceConfig, book: &'static LazyLock<DocsSite>) {
    let open = move |request: HttpRequest| serve(book, request);
    config
        .service(resource("/docs", "GET").route(web::get().to(open)))
        .service(resource("/docs/{file:.*}", "GET").route(web::get().to(open)));
}

async fn serve(book: &DocsSite, request: HttpRequest) -> HttpResponse {
    match book.file(request.match_info().query("file")) {
        Some(file) if is_cached_by_client(&request, &file.etag) => HttpResponse::NotModified()
            .insert_header((ETAG, file.etag.clone()))
            .finish(),
        Some(file) => file_response(file),
        None => route_not_found().await,
    }
}

fn file_response(file: &StaticFile) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, file.content_type))
        .insert_header((CACHE_CONTROL, "no-cache"))
        .insert_header((ETAG, file.etag.clone()))
        .insert_header((CONTENT_SECURITY_POLICY, CONTENT_POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .body(file.body.clone())
}

#[cfg(test)]
mod tests;
