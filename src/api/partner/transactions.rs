//! `GET /transactions`: ledger entries of a partner's wallets, newest first.

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_wire::page::PageRequest;
use vouchsafe_wire::partner::transactions::{FILTERS, TransactionBody, parse_filter};

use crate::api::error::ApiError;
use crate::api::middleware::authentication::AuthenticatedCaller;
use crate::service::Service;

/// `GET /transactions`; filters: `from`, `to`, `order_id`, `type`, `currency`.
///
/// # Errors
/// `VALIDATION_FAILED` and `INVALID_CURSOR`.
pub async fn list(
    service: web::Data<Service>,
    caller: AuthenticatedCaller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &FILTERS)?;
    let filter = parse_filter(&page)?;
    let found = service
        .store
        .transactions
        .list(caller.partner_id(), filter, page.after()?, page.limit())
        .await?;
    let bodies = found.entries.into_iter().map(TransactionBody::from).collect();
    Ok(HttpResponse::Ok().json(page.body_with_next(bodies, found.next)))
}
