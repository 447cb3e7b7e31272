//! `GET /audit`: the audit trail, newest entries first.

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_wire::operator::audit::{AuditEntryBody, FILTERS, parse_filter};
use vouchsafe_wire::page::PageRequest;

use crate::api::error::ApiError;
use crate::api::middleware::operator::Operator;
use crate::service::Service;

/// `GET /audit`; filters: `operator`, `action`, `subject`, `from`, `to`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &FILTERS)?;
    let rows = service
        .store
        .audit_log
        .list(parse_filter(&page)?, page.after()?, page.fetch_limit())
        .await?;
    let bodies = rows.into_iter().map(AuditEntryBody::from).collect();
    Ok(HttpResponse::Ok().json(page.body(bodies, |entry: &AuditEntryBody| entry.audit_id.to_string())))
}
