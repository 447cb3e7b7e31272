//! Extraction of request headers. A header that occurs twice counts as missing.

use actix_web::http::header::HeaderMap;

use super::signature::AuthHeaders;

pub(super) fn auth_headers(headers: &HeaderMap) -> AuthHeaders<'_> {
    AuthHeaders {
        api_key: single_value(headers, "x-api-key"),
        api_secret: single_value(headers, "x-api-secret"),
        timestamp: single_value(headers, "x-timestamp"),
        signature: single_value(headers, "x-signature"),
    }
}

/// Value of a header that occurs exactly once.
pub(super) fn single_value<'a>(headers: &'a HeaderMap, name: &'static str) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name);
    let first = values.next()?;
    values.next().is_none().then(|| first.as_bytes())
}
