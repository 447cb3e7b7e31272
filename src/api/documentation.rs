//! Routes of the documentation: pages below `/docs` and JSON Schemas below `/schemas`, rendered on first use.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use actix_web::http::StatusCode;
use actix_web::http::header::{
    CONTENT_SECURITY_POLICY, HeaderValue, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::{HttpRequest, HttpResponse, web};
use utoipa::openapi::OpenApi;
use vouchsafe_api_docs::openapi::{json_schema, to_value};
use vouchsafe_api_docs::pages::{Audience, FAVICON, Site};

use super::routing::{resource, route_not_found};
use super::static_file::StaticFile;

/// Allows only our own style sheet, script, search index and icon.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Methods of the documentation.
const METHODS: &str = "GET, HEAD";

/// Files by their paths.
pub(super) type Files = BTreeMap<String, StaticFile>;

/// The pages of a listener in their served form.
#[derive(Debug)]
pub(super) struct DocsSite {
    files: Files,
    not_found: StaticFile,
}

impl DocsSite {
    pub(super) fn new(document: &OpenApi, audience: Audience) -> Self {
        let site = Site::render(&to_value(document), audience);
        Self {
            files: served(site.files),
            not_found: site.not_found.into(),
        }
    }
}

/// The JSON Schemas of the bodies and events of a document.
pub(super) fn schemas(document: &OpenApi) -> Files {
    served(json_schema::files(&to_value(document)))
}

fn served<F: Into<StaticFile>>(files: BTreeMap<String, F>) -> Files {
    let files = files.into_iter();
    files.map(|(path, file)| (path, file.into())).collect()
}

/// Registers the routes of the pages.
pub(super) fn routes(config: &mut web::ServiceConfig, site: &'static LazyLock<DocsSite>) {
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
pub(super) fn home(config: &mut web::ServiceConfig) {
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
    let mut response = match site.files.get(path) {
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

/// Registers the routes of the JSON Schemas, with and without the slash of the index.
pub(super) fn schema_routes(config: &mut web::ServiceConfig, files: &'static LazyLock<Files>) {
    let open = move |request: HttpRequest| async move { respond_schema(files, request).await };
    for path in ["/schemas", "/schemas/{file}", json_schema::ROOT] {
        let route = resource(path, METHODS);
        config.service(route.route(web::get().to(open)).route(web::head().to(open)));
    }
}

async fn respond_schema(files: &Files, request: HttpRequest) -> HttpResponse {
    let Some(file) = files.get(request.match_info().query("file")) else {
        return route_not_found().await;
    };
    file.respond(&request)
}

#[cfg(test)]
mod tests;
