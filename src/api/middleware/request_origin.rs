//! Origin of browsers' requests, against cross-site request forgery.

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue, ORIGIN};
use vouchsafe_wire::error_code::Code;

use crate::api::error::ApiError;
use crate::service::Service;

static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether a browser sent the request for a page of another site, which can be a link that a person followed.
/// Any client can claim it in a request of their own, so it must not open anything.
pub(crate) fn is_from_other_site(headers: &HeaderMap) -> bool {
    headers
        .get(&SEC_FETCH_SITE)
        .is_some_and(|site| [&b"cross-site"[..], b"same-site"].contains(&site.as_bytes()))
}

/// Rejects a request that a browser did not send from a page of the console (cross-site request forgery).
///
/// # Errors
/// `FORBIDDEN`.
pub(crate) fn check_same_origin(service: &Service, headers: &HeaderMap) -> Result<(), ApiError> {
    let bytes = |name: &HeaderName| headers.get(name).map(HeaderValue::as_bytes);
    if service
        .console_url
        .is_same_origin(bytes(&SEC_FETCH_SITE), bytes(&ORIGIN))
    {
        return Ok(());
    }
    let message = format!(
        "the request does not come from a page of {}; open the console there, or send Authorization: Bearer TOKEN",
        service.console_url
    );
    Err(ApiError::new(Code::Forbidden, message))
}
