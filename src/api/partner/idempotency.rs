//! Requests with an `Idempotency-Key`: their identity, the error of an invalid body, and the stored response.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use actix_web::{HttpRequest, HttpResponse};
use vouchsafe_actors::flows::{FlowError, IdempotentResponse};
use vouchsafe_actors::ports::store::Store as _;
use vouchsafe_domain::idempotency::{Fingerprint, KeyHash, Response};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_security::idempotency::{IdempotencyKey, IdempotencyScope, KeyError};
use vouchsafe_wire::error_body::{ErrorBody, InvalidRequest};
use vouchsafe_wire::error_code::Code;

use crate::api::error::{ApiError, ErrorCode, keyed_request_error};
use crate::api::middleware::authentication::auth_headers;
use crate::api::partner::PartnerState;
use crate::service::Service;

/// The identity of a request with a key (contract §5).
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyedRequest {
    pub(super) key: KeyHash,
    pub(super) fingerprint: Fingerprint,
}

impl KeyedRequest {
    /// Reads the required `Idempotency-Key` header. `MISSING_IDEMPOTENCY_KEY` if it is absent,
    /// `INVALID_IDEMPOTENCY_KEY` if it is repeated or malformed.
    pub(super) async fn new(
        service: &PartnerState,
        request: &HttpRequest,
        partner_id: PartnerId,
        scope: IdempotencyScope,
        body: &[u8],
    ) -> Result<Self, ApiError> {
        let key = IdempotencyKey::parse(auth_headers(request).idempotency_key).map_err(|error| {
            let (code, message) = match error {
                KeyError::Missing => (
                    Code::MissingIdempotencyKey,
                    "the Idempotency-Key header is missing; send one of 1 to 255 visible ASCII characters",
                ),
                KeyError::Malformed => (
                    Code::InvalidIdempotencyKey,
                    "the Idempotency-Key header is malformed; send exactly one of 1 to 255 visible ASCII characters",
                ),
            };
            ApiError::new(code, message)
        })?;
        let key = key.hash_for(partner_id, scope);
        let advances = service.sandbox_clocks.of(partner_id);
        if !advances.is_empty() {
            service.store.sandbox_clocks.expire_key(key, advances).await?;
        }
        Ok(Self {
            key,
            fingerprint: service.keyring.vault().fingerprints().fingerprint(
                request.method().as_str(),
                request.path(),
                body,
            ),
        })
    }

    /// The response to a body that this version refuses: the stored one if an earlier version accepted the
    /// same request, `IDEMPOTENCY_KEY_REUSED` if the key was used with another request (contract §5), else
    /// the error.
    pub(super) async fn replay_or_error(
        self,
        service: &Service,
        error: InvalidRequest,
    ) -> Result<Response, ApiError> {
        match service.node.find_response(self.key).await {
            Ok(Some(stored)) if stored.fingerprint == self.fingerprint => Ok(stored.response),
            Ok(Some(_)) => Err(keyed_request_error(&FlowError::KeyReused)),
            Ok(None) => Err(error.into()),
            Err(_) => Err(ApiError::unavailable()),
        }
    }
}

/// The response, and whether an earlier request stored it.
pub(super) fn into_parts(response: IdempotentResponse) -> (Response, bool) {
    match response {
        IdempotentResponse::Fresh(response) => (response, false),
        IdempotentResponse::Replayed(response) => (response, true),
    }
}

/// Status and body are stored, so a replay is identical to the byte; headers are derived from them.
pub(super) fn stored_response(
    answer: Response,
    replayed: bool,
    location: impl FnOnce(&[u8]) -> Option<HeaderValue>,
) -> HttpResponse {
    let status = StatusCode::from_u16(answer.status).unwrap_or_default();
    let mut response = HttpResponse::build(status);
    response.insert_header((CONTENT_TYPE, "application/json"));
    if let Some(location) = location(&answer.body) {
        response.insert_header((LOCATION, location));
    }
    if replayed {
        response.insert_header(("Idempotent-Replayed", "true"));
    }
    let code = (answer.status >= 400)
        .then(|| ErrorBody::code_in(&answer.body))
        .flatten();
    let mut response = response.body(answer.body);
    if let Some(code) = code {
        response.extensions_mut().insert(ErrorCode(code));
    }
    response
}
