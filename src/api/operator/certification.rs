//! `/partners/{partner_id}/certification`: a partner's certification checks in the sandbox; reading and
//! resetting them.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::ids::PartnerId;

use crate::api::error::ApiResult;
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::partner::certification::{evaluate_partner, require_sandbox};
use crate::api::path_id::{Id, PathId as _};

/// `GET /partners/{partner_id}/certification`.
pub(super) async fn get(service: web::Data<OperatorState>, partner_id: Id<PartnerId>) -> ApiResult {
    require_sandbox(&service)?;
    let partner_id = partner_id.parse()?;
    if service.store.partners.find(partner_id).await?.is_none() {
        return Err(PartnerId::not_found());
    }
    Ok(HttpResponse::Ok().json(evaluate_partner(&service, partner_id).await?))
}

/// `DELETE /partners/{partner_id}/certification`: deletes the observations, so that every check is open
/// again.
pub(super) async fn restart(
    service: web::Data<OperatorState>,
    operator: Operator,
    partner_id: Id<PartnerId>,
) -> ApiResult {
    let actor = operator.audit_actor();
    require_sandbox(&service)?;
    let partner_id = partner_id.parse()?;
    if service.store.observations.delete(partner_id, actor).await? {
        Ok(HttpResponse::NoContent().finish())
    } else {
        Err(PartnerId::not_found())
    }
}
