//! Reader of request bodies: size limit, deadline, and content type checks.

use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, TRANSFER_ENCODING};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use vouchsafe_wire::error_code::Code;

use crate::api::error::ApiError;

/// Maximum size of a body (contract §2).
const MAX_BODY_BYTES: usize = 256 * 1024;

/// Maximum time to receive a body (contract §2).
const BODY_DEADLINE_S: u64 = 10;

/// Rejects a compressed body: it could expand beyond the size limit, and the signature covers the plain
/// bytes.
pub(crate) fn check_not_compressed(headers: &HeaderMap) -> Result<(), ApiError> {
    if headers.contains_key(CONTENT_ENCODING) {
        let message = "Content-Encoding is not supported; send the body uncompressed";
        return Err(ApiError::new(Code::UnsupportedMediaType, message));
    }
    Ok(())
}

/// Rejects a body with another content type than JSON. A missing `Content-Type` is accepted.
pub(crate) fn check_json_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    match essence(headers) {
        Some(essence) if !essence.eq_ignore_ascii_case("application/json") => Err(ApiError::new(
            Code::UnsupportedMediaType,
            "unsupported Content-Type; send application/json",
        )),
        _ => Ok(()),
    }
}

/// The media type without parameters, in lower case; `None` without a `Content-Type`.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    essence(headers).map(str::to_ascii_lowercase)
}

/// The media type without parameters, as sent.
fn essence(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(CONTENT_TYPE)?.to_str().unwrap_or_default();
    text.split(';').next().map(str::trim)
}

/// Whether the headers announce no body.
pub(crate) fn is_absent(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0") && !headers.contains_key(TRANSFER_ENCODING)
}

/// Reads the whole body into memory.
pub(crate) async fn read(headers: &HeaderMap, payload: Payload) -> Result<Bytes, ApiError> {
    read_at_most(MAX_BODY_BYTES, headers, payload).await
}

/// Reads a body of at most this size.
pub(crate) async fn read_at_most(
    max_bytes: usize,
    headers: &HeaderMap,
    payload: Payload,
) -> Result<Bytes, ApiError> {
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > max_bytes) {
        return Err(too_large(max_bytes));
    }
    let deadline = Duration::from_secs(BODY_DEADLINE_S);
    match tokio::time::timeout(deadline, collect(payload, length.unwrap_or(0), max_bytes)).await {
        Ok(body) => body,
        Err(_) => {
            let message =
                format!("the body did not arrive within {BODY_DEADLINE_S} seconds; retry the same request");
            Err(ApiError::new(Code::RequestTimeout, message))
        }
    }
}

/// Takes a body off the connection and keeps none of it. It ends early at the maximum size, at the deadline,
/// or at an error: actix then closes the connection.
pub(crate) async fn discard(mut payload: Payload) {
    let reading = async {
        let mut received = 0;
        while let Some(Ok(part)) = payload.next().await {
            received += part.len();
            if received > MAX_BODY_BYTES {
                break;
            }
        }
    };
    // Too slow a body is the same as one that is too large.
    drop(tokio::time::timeout(Duration::from_secs(BODY_DEADLINE_S), reading).await);
}

/// Collects the parts of a body. Most bodies arrive in one part, which is not copied.
async fn collect(mut payload: Payload, expected: usize, max_bytes: usize) -> Result<Bytes, ApiError> {
    let mut single = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(part) = payload.next().await {
        let part = part.map_err(|_| incomplete())?;
        if single.len() + joined.len() + part.len() > max_bytes {
            return Err(too_large(max_bytes));
        }
        if single.is_empty() && joined.is_empty() {
            single = part;
            continue;
        }
        if joined.is_empty() {
            joined.reserve(expected);
            joined.extend_from_slice(&std::mem::take(&mut single));
        }
        joined.extend_from_slice(&part);
    }
    Ok(if joined.is_empty() {
        single
    } else {
        joined.freeze()
    })
}

/// The client disconnected, or the transfer encoding is invalid.
pub(crate) fn incomplete() -> ApiError {
    ApiError::new(
        Code::MalformedRequest,
        "the body is incomplete; send the whole body",
    )
}

fn too_large(max_bytes: usize) -> ApiError {
    let message = format!("the body exceeds {max_bytes} bytes; send less");
    ApiError::new(Code::PayloadTooLarge, message)
}
