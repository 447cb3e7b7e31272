//! `/purchases`: purchases from vendors, and ending one manually.
//!
//! Responses never quote a vendor's response, which may contain a code. An ended purchase stays ended.

use actix_web::{HttpResponse, web};
use uuid::Uuid;
use vouchsafe_domain::purchase::view::PurchaseFilter;
use vouchsafe_store::EndPurchaseOutcome;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::decision::ReasonRequest;

use super::body::Json;
use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::{ListRequest, list_response};
use crate::api::middleware::operator::Operator;
use crate::api::operator::OperatorState;
use crate::api::operator::reports::Reports;

/// `GET /purchases`.
pub(super) async fn list(
    reports: Reports,
    ListRequest { page, filter }: ListRequest<PurchaseFilter>,
) -> ApiResult {
    let (after, limit) = (page.after()?, page.fetch_limit());
    let purchases = reports.read(async |store| store.purchases.list(filter.clone(), after, limit).await);
    list_response(&page, purchases.await?, |purchase| purchase.purchase_id)
}

/// `GET /purchases/{purchase_id}`.
pub(super) async fn get(service: web::Data<OperatorState>, purchase_id: web::Path<String>) -> ApiResult {
    let purchase_id: Uuid = purchase_id.parse().map_err(|_| not_found())?;
    let purchase = service.store.purchases.find_view(purchase_id).await?;
    Ok(HttpResponse::Ok().json(purchase.ok_or_else(not_found)?))
}

/// `POST /purchases/{purchase_id}/end`: ends a purchase; the missing vouchers of its order are refunded.
pub(super) async fn end(
    service: web::Data<OperatorState>,
    operator: Operator,
    purchase_id: web::Path<String>,
    Json(request): Json<ReasonRequest>,
) -> ApiResult {
    let actor = operator.audit_actor();
    let purchase_id: Uuid = purchase_id.parse().map_err(|_| not_found())?;
    match service
        .store
        .purchases
        .end(purchase_id, request.reason.into(), actor)
        .await?
    {
        EndPurchaseOutcome::Ended(purchase) => Ok(HttpResponse::Ok().json(purchase)),
        EndPurchaseOutcome::NotFound => Err(not_found()),
    }
}

fn not_found() -> ApiError {
    ApiError::new(Code::PurchaseNotFound, "no such purchase")
}
