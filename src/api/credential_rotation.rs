//! Rotation of a credential, by its partner or by an operator.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::header::CACHE_CONTROL;
use time::Duration;
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_security::credential::{self, ApiKeyPair};
use vouchsafe_store::{AuditActor, RotationOutcome, RotationRequest, RotationResult};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::credentials::RotatedCredential;

use super::error::ApiError;
use crate::config_change;
use crate::service::{Service, State};

/// The credential that a rotation replaces.
pub(super) struct PreviousCredential {
    pub(super) credential_id: CredentialId,
    pub(super) partner_id: PartnerId,
    /// How long it stays valid.
    pub(super) overlap: Duration,
    /// Rotations of its family within 24 hours. None for an operator: the holder of a leaked secret could use
    /// them up, and with them the operator's means against it.
    pub(super) max_per_day: Option<u32>,
    /// ID of the successor; `None` generates one.
    pub(super) next_id: Option<CredentialId>,
}

/// Why a credential was not rotated.
pub(super) enum RotationRefusal {
    /// There is a credential with the ID of the successor.
    RotatedBefore(CredentialId),
    /// It has ended or was revoked.
    NotLive,
    /// The partner has as many credentials as it may have.
    TooMany,
}

/// Issues the successor of a credential; only the response has its secret. After a lost response the rotation
/// is repeated: the unused successor is revoked and another one is issued.
pub(super) async fn rotate<C: 'static>(
    service: &Arc<State<C>>,
    previous: PreviousCredential,
    actor: AuditActor,
) -> Result<Result<HttpResponse, RotationRefusal>, ApiError> {
    let key_pair = generate_key_pair(service)?;
    let now = service.clock.now();
    let mut next = key_pair.to_credential(previous.partner_id, now);
    next.credential_id = previous.next_id.unwrap_or(next.credential_id);
    let rotation = RotationRequest {
        credential_id: previous.credential_id,
        next,
        overlap: previous.overlap,
        max_per_day: previous.max_per_day,
        now,
    };
    let rotated = config_change::apply(service, |service| async move {
        let rotated = service.store.credentials.rotate(rotation, actor).await?;
        if let RotationOutcome::Rotated(rotation) = &rotated {
            apply(&service, rotation);
        }
        Ok(rotated)
    });
    Ok(match rotated.await? {
        RotationOutcome::Rotated(rotation) => Ok(rotated_response(&key_pair, &rotation)),
        RotationOutcome::RotatedBefore(next_id) => Err(RotationRefusal::RotatedBefore(next_id)),
        RotationOutcome::NotLive => Err(RotationRefusal::NotLive),
        RotationOutcome::TooMany => Err(RotationRefusal::TooMany),
        RotationOutcome::TooFrequent { retry_after_s } => {
            return Err(too_frequent(service.rotations_per_day, retry_after_s));
        }
    })
}

fn too_frequent(max_per_day: u32, retry_after_s: u32) -> ApiError {
    let message = format!(
        "rotation limit exceeded: at most {max_per_day} rotations of a credential and its successors in 24 hours; retry in \
         {retry_after_s} s, or ask the operator, who can rotate, revoke and issue credentials at any time"
    );
    ApiError {
        retry_after_s: Some(retry_after_s),
        ..ApiError::new(Code::RateLimitExceeded, message)
    }
}

pub(super) fn generate_key_pair(service: &Service) -> Result<ApiKeyPair, ApiError> {
    credential::generate_key_pair(service.environment, getrandom::fill).map_err(|error| {
        tracing::error!(error.message = %error, "cannot read random bytes from the operating system");
        ApiError::unavailable()
    })
}

/// Applies the committed rotation in memory. The new credential comes first, so that the partner always has a
/// valid one.
fn apply(service: &Service, rotation: &RotationResult) {
    service.registry.upsert_credential(rotation.next.clone());
    service.registry.upsert_credential(rotation.previous.clone());
    for credential_id in &rotation.revoked {
        service.registry.revoke(*credential_id, service.clock.now());
    }
}

fn rotated_response(key_pair: &ApiKeyPair, rotation: &RotationResult) -> HttpResponse {
    HttpResponse::Created()
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(RotatedCredential::of(
            rotation.next.credential_id,
            key_pair,
            rotation.previous_ends_at,
        ))
}
