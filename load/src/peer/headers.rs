//! Which headers does a request present? Each that counts is taken once: one that is there twice counts as missing.

use actix_web::http::header::HeaderMap;

use super::signature::Presented;

/// The four authentication headers.
pub(super) fn presented(headers: &HeaderMap) -> Presented<'_> {
    Presented {
        api_key: single(headers, "x-api-key"),
        api_secret: single(headers, "x-api-secret"),
        timestamp: single(headers, "x-timestamp"),
        signature: single(headers, "x-signature"),
    }
}

/// The value of a header that is there once.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &'static str) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name);
    let first = values.next()?;
    values.next().is_none().then(|| first.as_bytes())
}
