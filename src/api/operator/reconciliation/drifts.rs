//! `/drifts`: differences between a vendor's records and our purchases, and their resolution.

use actix_web::{HttpResponse, web};
use vouchsafe_domain::ids::DriftId;
use vouchsafe_domain::reconciliation::drift::{DriftFilter, ResolveDriftRequest};
use vouchsafe_wire::operator::reconciliation::drifts::{DriftBody, ResolveRequest};

use crate::api::error::ApiResult;
use crate::api::list_request::{ListRequest, list_response};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::body::Json;
use crate::api::path_id::{Id, PathId as _};

/// `GET /drifts`.
pub(in crate::api::operator) async fn list(
    service: web::Data<OperatorState>,
    ListRequest { page, filter }: ListRequest<DriftFilter>,
) -> ApiResult {
    let drifts = service
        .store
        .drifts
        .list(filter, page.after()?, page.fetch_limit());
    let bodies = drifts.await?.into_iter().map(DriftBody::from);
    list_response(&page, bodies, |body| body.drift_id)
}

/// `POST /drifts/{drift_id}/resolve`. A later call may change the resolution.
pub(in crate::api::operator) async fn resolve(
    service: web::Data<OperatorState>,
    operator: Operator,
    drift_id: Id<DriftId>,
    Json(request): Json<ResolveRequest>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let resolve_request = ResolveDriftRequest {
        drift_id: drift_id.parse()?,
        resolution: request.resolution.into(),
        reason: request.reason.into(),
    };
    let drift = service.store.drifts.resolve(resolve_request, actor).await?;
    Ok(HttpResponse::Ok().json(DriftBody::from(drift.ok_or_else(DriftId::not_found)?)))
}
