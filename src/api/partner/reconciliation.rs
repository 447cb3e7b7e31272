//! `GET /reconciliation/{date}`: reconciliation of a partner's vouchers with the vendors' records (preview).
//!
//! The route and its documentation exist only if the operator enables the preview. A partner sees only
//! vouchers that were bought for its own orders, and references instead of codes.

use actix_web::guard::GuardContext;
use actix_web::{HttpResponse, web};
use time::Date;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::partner::reconciliation::{
    GET_RECONCILIATION, MAX_DRIFTS, OPERATIONS, PartnerReconciliation, parse_date,
};

use crate::api::endpoint::Endpoint;
use crate::api::error::{ApiError, ApiResult};
use crate::api::middleware::authentication::AuthenticatedCaller;
use crate::api::partner::PartnerState;
use crate::api::partner::endpoint::bind;
use crate::service::Service;
use crate::settings::Preview;

/// The endpoint, which [`is_preview_on`] guards.
pub(super) fn preview() -> [Endpoint; OPERATIONS.len()] {
    [bind(GET_RECONCILIATION, get)]
}

/// The guard that hides the route while the preview is off.
pub(super) fn is_preview_on(request: &GuardContext<'_>) -> bool {
    let service = request.app_data::<web::Data<Service>>();
    service.is_some_and(|service| service.reconciliation_preview == Preview::On)
}

/// `GET /reconciliation/{date}`.
async fn get(
    service: web::Data<PartnerState>,
    caller: AuthenticatedCaller,
    date: web::Path<String>,
) -> ApiResult {
    let day = parse_date(&date)?;
    let found = service
        .store
        .reconciliations
        .find_partner_day(caller.partner_id(), day, MAX_DRIFTS)
        .await?;
    let found = found.ok_or_else(|| not_found(day))?;
    Ok(HttpResponse::Ok().json(PartnerReconciliation::of(day, found)))
}

/// The error for a day without a reconciliation.
pub(in crate::api) fn not_found(day: Date) -> ApiError {
    let message = format!("{day} is not reconciled yet; retry some hours after the end of the day (UTC)");
    ApiError::new(Code::ReconciliationNotFound, message)
}
