//! Refused requests: counters per error code and partner, and a log line per 4xx other than 429.

use actix_web::dev::ServiceResponse;
use actix_web::{HttpMessage as _, HttpRequest};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_domain::limits::RequestClass;

use crate::api::error::{ApiError, ErrorCode};
use crate::service::Service;
use vouchsafe_telemetry::refusal_log::RefusalKey;

/// The caller of a request, in its extensions.
#[derive(Debug, Clone, Copy)]
struct Origin {
    class: RequestClass,
    /// Known once the credentials are checked.
    partner_id: Option<PartnerId>,
}

/// Attaches the class of a request, and its partner as soon as it is known.
pub(super) fn attach(request: &HttpRequest, class: RequestClass, partner_id: Option<PartnerId>) {
    request.extensions_mut().insert(Origin { class, partner_id });
}

/// Counts and logs the response if it refuses the request.
pub(super) fn report<B>(service: &Service, result: &Result<ServiceResponse<B>, actix_web::Error>) {
    let (code, origin) = match result {
        Ok(response) if response.status().as_u16() < 400 => return,
        Ok(response) => {
            let code = response
                .response()
                .extensions()
                .get()
                .map(|ErrorCode(code)| *code);
            (code, response.request().extensions().get::<Origin>().copied())
        }
        Err(error) => (error.as_error().map(|error: &ApiError| error.code), None),
    };
    let Some(code) = code else { return };
    let partner_id = origin.and_then(|origin| origin.partner_id);
    let key = RefusalKey { partner_id, code };
    count(service, key, origin.map(|origin| origin.class));
    if matches!(code.status(), 400..500) && code.status() != 429 {
        service.refusals.record(key, service.clock.monotonic());
    }
}

/// Counts a refused request.
pub(super) fn count(service: &Service, key: RefusalKey, class: Option<RequestClass>) {
    service.metrics.record_refusal(key.code, class);
    service.refusal_counts.record(key, service.clock.monotonic());
}
