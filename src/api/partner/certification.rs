//! `GET /certification`: a partner's certification checklist. Sandbox only; in production the route is 404.
//!
//! The operator route uses the same response body.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::ids::PartnerId;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::certification::Certification;

use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::authentication::AuthenticatedCaller;
use crate::api::partner::PartnerState;
use crate::service::{Service, State};
use vouchsafe_certification::evaluate;

pub(super) async fn get(service: web::Data<PartnerState>, caller: AuthenticatedCaller) -> ApiResult {
    require_sandbox(&service)?;
    let body = evaluate_partner(&service, caller.partner_id()).await?;
    Ok(HttpResponse::Ok().json(body))
}

/// Rejects the request unless this is a sandbox.
pub(in crate::api) fn require_sandbox(service: &Service) -> Result<(), ApiError> {
    let sandbox = service.certification.as_ref().map(|_| ());
    sandbox.ok_or_else(|| {
        ApiError::new(
            Code::RouteNotFound,
            "certification exists in the sandbox only; call the sandbox API",
        )
    })
}

/// Evaluates the certification of a partner.
pub(in crate::api) async fn evaluate_partner<C>(
    service: &State<C>,
    partner_id: PartnerId,
) -> Result<Certification, ApiError> {
    let observations = service.store.observations.list(partner_id).await?;
    let result = evaluate(&observations, service.clock.now());
    Ok(Certification::of(partner_id, result))
}
