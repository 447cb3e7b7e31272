//! The bytes of a request's body: read as they came, and never larger, slower or more wrapped than they may be.

use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, TRANSFER_ENCODING};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;

use crate::errors::{ApiError, Code};

/// Largest body (contract §2). Bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// How long a whole body may take (contract §2). Seconds.
const BODY_DEADLINE_S: u64 = 10;

/// Refuses what is compressed: a small request is not to become a large one, and a signature is over plain bytes.
///
/// # Errors
/// `UNSUPPORTED_MEDIA_TYPE`.
pub(crate) fn check_plain(headers: &HeaderMap) -> Result<(), ApiError> {
    if headers.contains_key(CONTENT_ENCODING) {
        let message = "Content-Encoding is not supported; send the plain bytes";
        return Err(ApiError::new(Code::UnsupportedMediaType, message));
    }
    Ok(())
}

/// Refuses a body that says it is something else than JSON.
///
/// # Errors
/// `UNSUPPORTED_MEDIA_TYPE`.
pub(crate) fn check_json(headers: &HeaderMap) -> Result<(), ApiError> {
    match essence(headers) {
        Some(essence) if !essence.eq_ignore_ascii_case("application/json") => Err(ApiError::new(
            Code::UnsupportedMediaType,
            "send Content-Type: application/json",
        )),
        _ => Ok(()),
    }
}

/// The media type without its parameters, in lower case; `None` where none is given.
#[must_use]
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    essence(headers).map(str::to_ascii_lowercase)
}

/// The media type without its parameters, as it was sent.
fn essence(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(CONTENT_TYPE)?.to_str().unwrap_or_default();
    text.split(';').next().map(str::trim)
}

/// Whether the head of a request says that no body follows.
#[must_use]
pub(crate) fn is_absent(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0") && !headers.contains_key(TRANSFER_ENCODING)
}

/// Reads the whole body.
///
/// # Errors
/// `PAYLOAD_TOO_LARGE`, `REQUEST_TIMEOUT`, and `MALFORMED_REQUEST` for one that breaks off.
pub(crate) async fn read(headers: &HeaderMap, payload: Payload) -> Result<Bytes, ApiError> {
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > MAX_BODY_BYTES) {
        return Err(too_large());
    }
    let deadline = Duration::from_secs(BODY_DEADLINE_S);
    match tokio::time::timeout(deadline, collect(payload, length.unwrap_or(0))).await {
        Ok(body) => body,
        Err(_) => {
            let message = format!("the body did not arrive within {BODY_DEADLINE_S} seconds");
            Err(ApiError::new(Code::RequestTimeout, message))
        }
    }
}

/// Most bodies come in one part, which is then not copied.
async fn collect(mut payload: Payload, expected: usize) -> Result<Bytes, ApiError> {
    let mut whole = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(part) = payload.next().await {
        let part = part.map_err(|_| broken())?;
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

/// The client went away, or what it sent is no HTTP.
#[must_use]
pub(crate) fn broken() -> ApiError {
    ApiError::new(Code::MalformedRequest, "the body broke off")
}

fn too_large() -> ApiError {
    let message = format!("a body has at most {MAX_BODY_BYTES} bytes");
    ApiError::new(Code::PayloadTooLarge, message)
}
