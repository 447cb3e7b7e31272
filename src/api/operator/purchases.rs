//! `/purchases`: purchases from vendors, and ending one manually.
//!
//! Responses never quote a vendor's response, which may contain a code. An ended purchase stays ended.

use actix_web::{HttpRequest, HttpResponse, web};
use uuid::Uuid;
use vouchsafe_store::EndPurchaseOutcome;
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::decision::ReasonRequest;
use vouchsafe_wire::operator::purchases::{FILTERS, parse_filter};
use vouchsafe_wire::page::PageRequest;

use super::body::Json;
use crate::api::error::ApiError;
use crate::api::middleware::operator::{Operator, Role};
use crate::service::Service;

/// `GET /purchases`; filters: `vendor`, `state`, `order_id`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &FILTERS)?;
    let purchases = service
        .store
        .purchases
        .list(parse_filter(&page)?, page.after()?, page.fetch_limit())
        .await?;
    Ok(HttpResponse::Ok().json(page.body(purchases, |purchase| purchase.purchase_id.to_string())))
}

/// `POST /purchases/{purchase_id}/end`: ends a purchase; the missing vouchers of its order are refunded.
pub(super) async fn end(
    service: web::Data<Service>,
    operator: Operator,
    purchase_id: web::Path<String>,
    Json(request): Json<ReasonRequest>,
) -> Result<HttpResponse, ApiError> {
    let actor = operator.authorize(Role::Operator)?;
    let reason = request.validated()?;
    let purchase_id: Uuid = purchase_id.parse().map_err(|_| not_found())?;
    match service.store.purchases.end(purchase_id, reason, actor).await? {
        EndPurchaseOutcome::Ended(purchase) => Ok(HttpResponse::Ok().json(purchase)),
        EndPurchaseOutcome::NotFound => Err(not_found()),
    }
}

fn not_found() -> ApiError {
    ApiError::new(Code::PurchaseNotFound, "no such purchase")
}
