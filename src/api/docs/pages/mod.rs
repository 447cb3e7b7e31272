//! Partner documentation served as HTML below `/docs`, on both listeners.
//!
//! Pages are rendered from the Markdown files of `docs/partner` and from the OpenAPI document on first use. They load nothing
//! from other hosts and run one script of our own; the content security policy forbids everything else.

mod code;
mod highlight;
mod layout;
mod markdown;
mod outline;
mod page;
pub(crate) mod reference;
mod site;

use std::sync::LazyLock;

use actix_web::http::StatusCode;
use actix_web::http::header::{
    CONTENT_SECURITY_POLICY, HeaderValue, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::{HttpRequest, HttpResponse, web};
pub(crate) use site::DocsSite;
use site::FAVICON;

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

/// Registers `/` of a listener without other pages: it leads to the documentation.
pub(crate) fn home(config: &mut web::ServiceConfig) {
    config.service(
        resource("/", METHODS)
            .route(web::get().to(redirect))
            .route(web::head().to(redirect)),
    );
}

async fn redirect() -> HttpResponse {
    HttpResponse::TemporaryRedirect()
        .insert_header((LOCATION, "/docs"))
        .finish()
}

async fn respond(site: &DocsSite, request: &HttpRequest, path: &str) -> HttpResponse {
    let mut response = match site.file(path) {
        Some(file) => file.respond(request),
        None => site.not_found.respond_with(StatusCode::NOT_FOUND, request),
    };
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests;
