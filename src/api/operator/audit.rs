//! `GET /audit`: the audit trail, newest entries first.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::api::error::ApiError;
use crate::api::middleware::operator::Operator;
use vouchsafe_wire::page::PageRequest;
use vouchsafe_wire::period;
use crate::service::Service;
use vouchsafe_domain::audit_log::{AuditFilter, AuditRow};

/// An entry of the audit trail.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditEntryBody {
    /// Sequence number.
    audit_id: i64,
    /// Time of the action.
    #[serde(with = "vouchsafe_domain::timestamp")]
    at: OffsetDateTime,
    /// Name of the operator, or ID of the partner.
    operator: String,
    /// Action, such as `partner.change`.
    action: String,
    /// ID of the changed object.
    subject: String,
    /// State before the action.
    #[schema(required, value_type = Value)]
    before: Option<Box<RawValue>>,
    /// State after the action.
    #[schema(required, value_type = Value)]
    after: Option<Box<RawValue>>,
    /// Trace ID of the request.
    #[schema(required)]
    trace_id: Option<String>,
}

const FILTERS: [&str; 5] = ["operator", "action", "subject", "from", "to"];

/// `GET /audit`; filters: `operator`, `action`, `subject`, `from`, `to`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = PageRequest::parse(request.path(), request.query_string(), &FILTERS)?;
    let filter = |name| page.filter(name).map(ToOwned::to_owned);
    let filter = AuditFilter {
        operator: filter("operator"),
        action: filter("action"),
        subject: filter("subject"),
        period: period::from_page(&page)?,
    };
    let rows = service
        .store
        .audit_log
        .list(filter, page.after()?, page.fetch_limit())
        .await?;
    let bodies = rows.into_iter().map(AuditEntryBody::from).collect();
    Ok(HttpResponse::Ok().json(page.body(bodies, |entry: &AuditEntryBody| entry.audit_id.to_string())))
}

impl From<AuditRow> for AuditEntryBody {
    fn from(row: AuditRow) -> Self {
        // The columns are `json`, so parsing cannot fail.
        let raw = |text: Option<String>| text.and_then(|text| RawValue::from_string(text).ok());
        Self {
            audit_id: row.audit_id,
            at: row.at,
            operator: row.operator,
            action: row.action,
            subject: row.subject,
            before: raw(row.before),
            after: raw(row.after),
            trace_id: row.trace_id,
        }
    }
}
