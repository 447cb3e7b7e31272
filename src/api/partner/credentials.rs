//! `POST /credentials/rotate`: credential rotation by the partner.
//!
//! Creates a credential and sets an expiry on the credential that signed the request. The secret is in this response only.
//! After a lost response the client repeats the request with the same credential: a new credential that was never used is
//! revoked and another one is created. A repetition may bring the expiry forward but never postpones it.

use actix_web::web;
use vouchsafe_store::MAX_LIVE_CREDENTIALS;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::credentials::parse_overlap;

use crate::api::credential_rotation::{self, PreviousCredential, RotationRefusal};
use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::authentication::{Auth, VerifiedRequest, partner_suspended};
use crate::api::partner::PartnerState;

/// The body is optional.
pub(super) async fn rotate(service: web::Data<PartnerState>, signed: VerifiedRequest<Auth>) -> ApiResult {
    let previous = PreviousCredential {
        credential_id: signed.caller.credential_id,
        partner_id: signed.caller.partner_id(),
        overlap: parse_overlap(&signed.body)?,
        max_per_day: Some(service.rotations_per_day),
        next_id: None,
    };
    let rotated = credential_rotation::rotate(&service, previous, signed.caller.audit_actor());
    let rotated = rotated.await.map_err(|error| match error.code {
        // Operators hear of it by a security event.
        Code::InvalidRowHmac => partner_suspended(),
        _ => error,
    });
    rotated?.map_err(|refusal| match refusal {
        RotationRefusal::RotatedBefore(_) => ApiError::unavailable(),
        RotationRefusal::NotLive => ApiError::new(
            Code::InvalidCredentials,
            "the credential that signed this request has expired or was revoked; use an active one",
        ),
        RotationRefusal::TooMany => ApiError::new(
            Code::CredentialLimitReached,
            format!(
                "the limit of {MAX_LIVE_CREDENTIALS} active credentials is reached; wait until one expires, or ask the \
                 operator to revoke one"
            ),
        ),
    })
}
