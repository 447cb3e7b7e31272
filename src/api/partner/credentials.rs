//! `POST /credentials/rotate`: credential rotation by the partner.
//!
//! Creates a credential and sets an expiry on the credential that signed the request. The secret is in this response only.
//! After a lost response the client repeats the request with the same credential: a new credential that was never used is
//! revoked and another one is created. A repetition may bring the expiry forward but never postpones it.

use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpResponse, web};
use time::OffsetDateTime;
use vouchsafe_security::credential::{ApiKeyPair, generate_key_pair};
use vouchsafe_store::{MAX_LIVE_CREDENTIALS, RotationOutcome, RotationRequest, RotationResult};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::credentials::{RotatedCredentialBody, parse_overlap};

use crate::api::error::ApiError;
use crate::api::middleware::authentication::{Auth, VerifiedRequest};
use crate::config_change;
use crate::service::Service;

/// The body is optional.
pub(super) async fn rotate(
    service: web::Data<Service>,
    signed: VerifiedRequest<Auth>,
) -> Result<HttpResponse, ApiError> {
    let overlap = parse_overlap(&signed.body)?;
    let partner_id = signed.caller.partner_id();
    let key_pair = generate_key_pair(service.environment, getrandom::fill).map_err(|error| {
        tracing::error!(error.message = %error, "cannot read random bytes from the operating system");
        ApiError::unavailable()
    })?;
    let now = service.clock.now();
    let rotation = RotationRequest {
        credential_id: signed.caller.credential_id,
        next: key_pair.to_credential(partner_id, now),
        overlap,
        now,
    };
    let actor = signed.caller.audit_actor();
    let rotated = config_change::apply(&service, |service| async move {
        let rotated = service.partner_store.credentials.rotate(rotation, actor).await?;
        if let RotationOutcome::Rotated(rotation) = &rotated {
            apply_rotation(&service, rotation, now);
        }
        Ok(rotated)
    });
    match rotated.await? {
        RotationOutcome::Rotated(rotation) => Ok(rotated_response(&key_pair, &rotation)),
        RotationOutcome::NotLive => Err(ApiError::new(
            Code::InvalidCredentials,
            "the credential that signed this request has expired or was revoked; use an active one",
        )),
        RotationOutcome::TooMany => Err(ApiError::new(
            Code::CredentialLimitReached,
            format!(
                "the limit of {MAX_LIVE_CREDENTIALS} active credentials is reached; wait until one expires, or ask \
                     the operator to revoke one"
            ),
        )),
    }
}

/// Applies the committed rotation in memory. The new credential comes first, so that the partner always has a valid one.
fn apply_rotation(service: &Service, rotation: &RotationResult, now: OffsetDateTime) {
    service.registry.upsert_credential(rotation.next.clone());
    service.registry.upsert_credential(rotation.previous.clone());
    for credential_id in &rotation.revoked {
        service.registry.revoke(*credential_id, now);
    }
}

fn rotated_response(key_pair: &ApiKeyPair, rotation: &RotationResult) -> HttpResponse {
    HttpResponse::Created()
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(RotatedCredentialBody::of(
            rotation.next.credential_id,
            key_pair,
            rotation.previous_ends_at,
        ))
}
