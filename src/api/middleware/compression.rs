//! gzip of lists, of the console's pages and of their files, for clients that accept it.
//!
//! None of them has a code or a secret. The length of a compressed response would tell something of a code
//! beside a text that an attacker chooses (BREACH): orders, and the responses of forms, which may show a new
//! secret, do not pass this step.

use actix_web::body::{BoxBody, MessageBody as _};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_ENCODING, ETAG, HeaderMap, HeaderValue, VARY};
use actix_web::middleware::Next;
use actix_web::web;
use flate2::Compression;

use crate::api::error::ApiError;
use crate::api::static_file::{accepts_gzip, gzip};

/// Smaller bodies fit into one packet.
const MIN_BYTES: usize = 1_400;

/// Compresses a list as fast as possible: partners read many.
pub(crate) async fn compress_list(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, actix_web::Error> {
    compress(request, next, Compression::fast()).await
}

/// Compresses a page of the console or a file of its pages.
pub(crate) async fn compress_page(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, actix_web::Error> {
    compress(request, next, Compression::default()).await
}

/// Compresses the response on a thread that serves no requests.
async fn compress(
    request: ServiceRequest,
    next: Next<BoxBody>,
    level: Compression,
) -> Result<ServiceResponse, actix_web::Error> {
    let is_accepted = accepts_gzip(request.request());
    let mut response = next.call(request).await?;
    response
        .headers_mut()
        .append(VARY, HeaderValue::from_static("Accept-Encoding"));
    if !is_accepted || response.status() != StatusCode::OK {
        return Ok(response);
    }
    let (request, response) = response.into_parts();
    let (mut response, body) = response.into_parts();
    let body = match body.try_into_bytes() {
        Ok(bytes) if bytes.len() >= MIN_BYTES => {
            set_encoding(response.headers_mut());
            let compressed = web::block(move || gzip(&bytes, level)).await;
            BoxBody::new(compressed.map_err(|_| ApiError::unavailable())?)
        }
        Ok(bytes) => BoxBody::new(bytes),
        Err(body) => body,
    };
    Ok(ServiceResponse::new(request, response.set_body(body)))
}

/// A strong tag names the bytes, which are others now.
fn set_encoding(headers: &mut HeaderMap) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    let tag = headers.get(ETAG).and_then(|tag| tag.to_str().ok());
    let weak = tag.and_then(|tag| HeaderValue::from_str(&format!("W/{tag}")).ok());
    if let Some(weak) = weak {
        headers.insert(ETAG, weak);
    }
}
