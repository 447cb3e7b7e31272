//! The bytes of a signed request: read as they came, and never larger, slower or more wrapped than they may be.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;

use crate::errors::{ApiError, Code};

/// Largest body (contract §2). Bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// How long a whole body may take (contract §2).
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// What a signed request must be before its body is read.
///
/// # Errors
/// `UNEXPECTED_QUERY`, `MALFORMED_REQUEST` for a target that is no path, and `UNSUPPORTED_MEDIA_TYPE`.
pub(super) fn check_plain(request: &HttpRequest) -> Result<(), ApiError> {
    if request.uri().query().is_some() {
        let message = "a signed request carries no query string; the signature would not cover it";
        return Err(ApiError::new(Code::UnexpectedQuery, message));
    }
    if request.uri().authority().is_some() {
        return Err(ApiError::new(
            Code::MalformedRequest,
            "the request target must be a path",
        ));
    }
    if request.headers().contains_key(CONTENT_ENCODING) {
        let message = "Content-Encoding is not supported; send the plain bytes that are signed";
        return Err(ApiError::new(Code::UnsupportedMediaType, message));
    }
    json_or_nothing(request)
}

/// The type of what is not there does not matter.
fn json_or_nothing(request: &HttpRequest) -> Result<(), ApiError> {
    let headers = request.headers();
    let is_empty = headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0")
        && !headers.contains_key(TRANSFER_ENCODING);
    if is_empty {
        return Ok(());
    }
    let Some(content_type) = request.headers().get(CONTENT_TYPE) else {
        return Ok(());
    };
    let essence = content_type
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(ApiError::new(
        Code::UnsupportedMediaType,
        "send Content-Type: application/json",
    ))
}

/// Reads the whole body.
///
/// # Errors
/// `PAYLOAD_TOO_LARGE`, `REQUEST_TIMEOUT`, and `MALFORMED_REQUEST` for one that breaks off.
pub(super) async fn read(request: &HttpRequest, payload: Payload) -> Result<Bytes, ApiError> {
    let length = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > MAX_BODY_BYTES) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_DEADLINE, collect(payload, length.unwrap_or(0))).await {
        Ok(body) => body,
        Err(_) => Err(ApiError::new(
            Code::RequestTimeout,
            "the body did not arrive within 10 seconds",
        )),
    }
}

/// Most bodies come in one part, which is then not copied.
async fn collect(mut payload: Payload, expected: usize) -> Result<Bytes, ApiError> {
    let mut whole = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(part) = payload.next().await {
        let part = part.map_err(|_| ApiError::new(Code::MalformedRequest, "the body broke off"))?;
        if whole.len() + joined.len() + part.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        if whole.is_empty() && joined.is_empty() {
            whole = part;
            continue;
        }
        if joined.is_empty() {
            joined.reserve(expected);
            joined.extend_from_slice(&std::mem::take(&mut whole));
        }
        joined.extend_from_slice(&part);
    }
    Ok(if joined.is_empty() { whole } else { joined.freeze() })
}

fn too_large() -> ApiError {
    ApiError::new(Code::PayloadTooLarge, "a body has at most 262144 bytes")
}
