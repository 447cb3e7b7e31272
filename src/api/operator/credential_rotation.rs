//! `POST /credentials/{credential_id}/rotate`: an operator rotates a partner's credential, as the partner can
//! itself.

use actix_web::web;
use serde::{Deserialize, Serialize};
use vouchsafe_domain::change_request::ChangeKind;
use vouchsafe_domain::ids::{CredentialId, PartnerId};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::credentials::RotateRequest;

use super::body::OptionalJson;
use super::change::{Change, ChangeDescription, Execution, submit, to_description};
use super::credential_errors::{issued_before, limit_reached};
use crate::api::credential_rotation::{self, PreviousCredential, RotationRefusal};
use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::path_id::{Id, PathId as _};

/// The body is optional.
pub(super) async fn rotate(
    service: web::Data<OperatorState>,
    operator: Operator,
    credential_id: Id<CredentialId>,
    OptionalJson(request): OptionalJson<RotateRequest>,
) -> ApiResult {
    request.validate_overlap()?;
    let credential_id = credential_id.parse()?;
    let credential = service.store.credentials.find(credential_id).await?;
    let partner_id = credential.ok_or_else(CredentialId::not_found)?.partner_id;
    let rotation = CredentialRotation {
        partner_id,
        credential_id,
        request,
    };
    submit(&service, &operator, ChangeKind::CredentialRotate, rotation).await
}

/// The successor of a credential, and the end of the credential.
#[derive(Serialize, Deserialize)]
pub(super) struct CredentialRotation {
    partner_id: PartnerId,
    credential_id: CredentialId,
    request: RotateRequest,
}

impl Change for CredentialRotation {
    async fn describe(&self, service: &OperatorState) -> Result<ChangeDescription, ApiError> {
        let credential = service.store.credentials.find(self.credential_id).await?;
        if !credential.is_some_and(|credential| credential.is_live(service.clock.now())) {
            return Err(not_live());
        }
        to_description(self.credential_id, self.partner_id, &self.request)
    }

    async fn carry_out(
        self,
        Execution {
            service,
            actor,
            request_id,
        }: Execution<'_>,
    ) -> ApiResult {
        let previous = PreviousCredential {
            credential_id: self.credential_id,
            partner_id: self.partner_id,
            overlap: self.request.validate_overlap()?,
            max_per_day: None,
            next_id: request_id.map(|id| CredentialId::from_uuid(id.as_uuid())),
        };
        let rotated = credential_rotation::rotate(service, previous, actor);
        rotated.await?.map_err(|refusal| match refusal {
            RotationRefusal::RotatedBefore(next_id) => issued_before(next_id),
            RotationRefusal::NotLive => not_live(),
            RotationRefusal::TooMany => limit_reached(),
        })
    }
}

fn not_live() -> ApiError {
    ApiError::new(
        Code::CredentialNotLive,
        "the credential has ended or was revoked; issue a new one instead",
    )
}
