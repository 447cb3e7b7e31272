//! `/drifts`: differences between a vendor's records and our purchases, and their resolution.

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_domain::reconciliation::drift::ResolveDriftRequest;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::reconciliation::drifts::{DriftBody, FILTERS, ResolveRequest, parse_filter};
use vouchsafe_wire::page::PageRequest;

use crate::api::error::ApiError;
use crate::api::middleware::operator::{Operator, Role};
use crate::api::operator::body::Json;
use crate::service::Service;

/// `GET /drifts`; filters: `date`, `vendor`, `kind`, `resolution`.
pub(in crate::api::operator) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &FILTERS)?;
    let filter = parse_filter(&page)?;
    let drifts = service
        .store
        .drifts
        .list(filter, page.after()?, page.fetch_limit())
        .await?;
    let bodies = drifts.into_iter().map(DriftBody::from).collect();
    Ok(HttpResponse::Ok().json(page.body(bodies, |body: &DriftBody| body.drift_id.to_string())))
}

/// `POST /drifts/{drift_id}/resolve`. A later call may change the resolution.
pub(in crate::api::operator) async fn resolve(
    service: web::Data<Service>,
    operator: Operator,
    drift_id: web::Path<String>,
    Json(request): Json<ResolveRequest>,
) -> Result<HttpResponse, ApiError> {
    let actor = operator.authorize(Role::Operator)?;
    let resolution = request.validate_resolution()?;
    let resolve_request = ResolveDriftRequest {
        drift_id: drift_id.parse().map_err(|_| drift_not_found())?,
        resolution,
        reason: request.validate_reason()?,
    };
    let drift = service.store.drifts.resolve(resolve_request, actor).await?;
    Ok(HttpResponse::Ok().json(DriftBody::from(drift.ok_or_else(drift_not_found)?)))
}

fn drift_not_found() -> ApiError {
    ApiError::new(Code::DriftNotFound, "no such drift")
}
