//! `/credentials`: list of a partner's credentials, and rotation.
//!
//! A rotation creates a credential and sets an expiry on the credential that signed the request. The secret
//! is in this response only. After a lost response the client repeats the request with the same credential: a
//! new credential that was never used is revoked and another one is created. A repetition may bring the
//! expiry forward but never postpones it.

use actix_web::web;
use vouchsafe_store::MAX_LIVE_CREDENTIALS;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::credentials::{OwnCredential, parse_overlap};

use crate::api::credential_rotation::{self, PreviousCredential, RotationRefusal};
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::list_response;
use crate::api::middleware::authentication::{Auth, VerifiedRequest, partner_suspended};
use crate::api::partner::PartnerState;
use crate::api::partner::authenticated_list::AuthenticatedList;

/// Lists the credentials, newest first.
pub(super) async fn list(
    service: web::Data<PartnerState>,
    AuthenticatedList { caller, page, .. }: AuthenticatedList,
) -> ApiResult {
    let credentials = service
        .store
        .credentials
        .list(caller.partner_id(), page.after()?, page.fetch_limit())
        .await?;
    let now = service.clock.now();
    let bodies = credentials
        .iter()
        .map(|credential| OwnCredential::of(credential, caller.credential_id, now));
    list_response(&page, bodies, |body| body.summary.credential_id)
}

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
