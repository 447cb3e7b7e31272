//! Partner documentation served as HTML below `/docs`, on both listeners.
//!
//! Pages are rendered from the Markdown files of `docs/partner` and from the OpenAPI document on first use. They load nothing
//! from other hosts and run one script of our own; the content security policy forbids everything else.

mod code;
mod highlight;
mod layout;
mod markdown;
mod outline;
pub(crate) mod reference;
mod site;

use std::sync::LazyLock;

use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT_ENCODING, AcceptEncoding, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    ETAG, Encoding, EntityTag, Header as _, LOCATION, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, web};
pub(crate) use site::DocsSite;
use site::{FAVICON, StaticFile};

use crate::api::etag::is_cached_by_client;
use crate::api::routing::resource;

/// Allows only our own style sheet, script, search index and icon.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Methods of the documentation.
const METHODS: &str = "GET, HEAD";

/// Registers the routes of the documentation.
pub(crate) fn routes(config: &mut web::ServiceConfig, site: &'static LazyLock<DocsSite>) {
    let open = move |request: HttpRequest| async move {
        let path = request.match_info().query("file");
        respond(site, &request, path).await
    };
    let icon = move |request: HttpRequest| async move { respond(site, &request, FAVICON).await };
    config
        .service(
            resource("/", METHODS)
                .route(web::get().to(redirect))
                .route(web::head().to(redirect)),
        )
        .service(
            resource("/favicon.ico", METHODS)
                .route(web::get().to(icon))
                .route(web::head().to(icon)),
        )
        .service(
            resource("/docs", METHODS)
                .route(web::get().to(open))
                .route(web::head().to(open)),
        )
        .service(
            resource("/docs/{file:.*}", METHODS)
                .route(web::get().to(open))
                .route(web::head().to(open)),
        );
}

/// `/` leads to the documentation.
async fn redirect() -> HttpResponse {
    HttpResponse::TemporaryRedirect()
        .insert_header((LOCATION, "/docs"))
        .finish()
}

async fn respond(site: &DocsSite, request: &HttpRequest, path: &str) -> HttpResponse {
    match site.file(path) {
        Some(file) if is_cached_by_client(request, &file.etag) => {
            response(StatusCode::NOT_MODIFIED, &file.etag).finish()
        }
        Some(file) => file_response(StatusCode::OK, file, request),
        None => file_response(StatusCode::NOT_FOUND, &site.not_found, request),
    }
}

fn accepts_gzip(request: &HttpRequest) -> bool {
    // Without the header any encoding is acceptable, but simple clients do not decode.
    let is_sent = request.headers().contains_key(ACCEPT_ENCODING);
    let accepted = AcceptEncoding::parse(request).ok().filter(|_| is_sent);
    let supported = [Encoding::gzip(), Encoding::identity()];
    accepted.and_then(|accepted| accepted.negotiate(supported.iter())) == Some(Encoding::gzip())
}

/// A response with the headers that a file and its 304 share.
fn response(status: StatusCode, etag: &EntityTag) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(status);
    response
        .insert_header((CACHE_CONTROL, "no-cache"))
        .insert_header((ETAG, etag.clone()))
        .insert_header((VARY, "Accept-Encoding"));
    response
}

fn file_response(status: StatusCode, file: &StaticFile, request: &HttpRequest) -> HttpResponse {
    let mut response = response(status, &file.etag);
    response
        .insert_header((CONTENT_TYPE, file.content_type))
        .insert_header((CONTENT_SECURITY_POLICY, CONTENT_POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((REFERRER_POLICY, "no-referrer"));
    if accepts_gzip(request) {
        return response
            .insert_header((CONTENT_ENCODING, "gzip"))
            .body(file.gzip());
    }
    response.body(file.body.clone())
}

#[cfg(test)]
mod tests;
