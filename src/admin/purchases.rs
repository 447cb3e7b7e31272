//! `/purchases`: what is bought from vendors, what they said of it, and an operator's word that nothing more comes.
//!
//! Rule: nothing here quotes a vendor, who may have said a code. A purchase that is ended stays ended.

use actix_web::{HttpRequest, HttpResponse, web};
use uuid::Uuid;

use super::body::Json;
use super::decision::Because;
use super::operator::{Operator, Role};
use crate::errors::{ApiError, Code};
use crate::http::Page;
use crate::service::Service;
use crate::store::{EndPurchase, PurchaseFilter, PurchaseState};

/// What purchases are listed by.
const FILTERS: [&str; 3] = ["vendor", "state", "order_id"];

/// `GET /purchases`; filters: `vendor`, `state`, `order_id`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &FILTERS)?;
    let wanted = PurchaseFilter {
        vendor: page.filter("vendor").map(ToOwned::to_owned),
        state: page.one_of("state", &PurchaseState::ALL, PurchaseState::as_str)?,
        order_id: page.parsed("order_id")?,
    };
    let purchases = service
        .store
        .list_purchases(wanted, page.after()?, page.fetch())
        .await?;
    Ok(page.answer(purchases, |purchase| purchase.purchase_id.to_string()))
}

/// `POST /purchases/{purchase_id}/end`: nothing more comes of it, and what its order lacks is paid back.
pub(super) async fn end(
    service: web::Data<Service>,
    operator: Operator,
    purchase_id: web::Path<String>,
    Json(because): Json<Because>,
) -> Result<HttpResponse, ApiError> {
    let by = operator.may(Role::Operator)?;
    let reason = because.reason()?;
    let purchase_id: Uuid = purchase_id.parse().map_err(|_| not_found())?;
    match service.store.end_purchase(purchase_id, reason, by).await? {
        EndPurchase::Ended(purchase) => Ok(HttpResponse::Ok().json(purchase)),
        EndPurchase::NotFound => Err(not_found()),
    }
}

fn not_found() -> ApiError {
    ApiError::new(Code::PurchaseNotFound, "there is no such purchase")
}
