//! The documentation of partners as pages: `/docs` and what is below it, on both listeners.
//!
//! Rule: nothing but this service is needed to read them. No script, nothing fetched from elsewhere, and the policy that
//! is sent along forbids both. The pages are made at first use from the Markdown files of `docs/partner`.

mod book;
mod layout;
mod markdown;
pub mod reference;

use std::sync::LazyLock;

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, Header as _, IfNoneMatch, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use actix_web::{HttpRequest, HttpResponse, web};
pub use book::Book;
use book::File;

use super::{no_route, openapi, resource};
use crate::openapi::value_of;

/// What a page may do: have our style sheet, and nothing else.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The documentation on the partner's listener.
pub static PARTNER: LazyLock<Book> = LazyLock::new(|| Book::new(Some(&value_of(&openapi::document()))));

/// The routes of a book.
pub fn routes(config: &mut web::ServiceConfig, book: &'static LazyLock<Book>) {
    let open = move |request: HttpRequest| answer(book, request);
    config
        .service(resource("/docs", "GET").route(web::get().to(open)))
        .service(resource("/docs/{file:.*}", "GET").route(web::get().to(open)));
}

async fn answer(book: &Book, request: HttpRequest) -> HttpResponse {
    match book.file(request.match_info().query("file")) {
        Some(file) if is_held(file, &request) => HttpResponse::NotModified()
            .insert_header((ETAG, file.etag.clone()))
            .finish(),
        Some(file) => sent(file),
        None => no_route().await,
    }
}

/// Whether the reader has these very bytes.
fn is_held(file: &File, request: &HttpRequest) -> bool {
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(held)) => held.iter().any(|etag| etag.weak_eq(&file.etag)),
        Err(_) => false,
    }
}

fn sent(file: &File) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, file.content_type))
        .insert_header((CACHE_CONTROL, "no-cache"))
        .insert_header((ETAG, file.etag.clone()))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .body(file.body.clone())
}

#[cfg(test)]
mod tests;
