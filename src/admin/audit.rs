//! `/audit`: the operators' trail, newest first.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use serde_json::value::RawValue;
use time::OffsetDateTime;

use super::operator::Operator;
use crate::errors::ApiError;
use crate::http::{Page, period};
use crate::service::Service;
use crate::store::{AuditFilter, AuditRow};

#[derive(Serialize)]
struct EntryBody {
    audit_id: i64,
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    operator: String,
    action: String,
    subject: String,
    before: Option<Box<RawValue>>,
    after: Option<Box<RawValue>>,
    trace_id: Option<String>,
}

/// What the trail is filtered by.
const FILTERS: [&str; 5] = ["operator", "action", "subject", "from", "to"];

/// `GET /audit`; filters: `operator`, `action`, `subject`, `from`, `to`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let page = Page::read(&request, &FILTERS)?;
    let filter = |name| page.filter(name).map(ToOwned::to_owned);
    let filter = AuditFilter {
        operator: filter("operator"),
        action: filter("action"),
        subject: filter("subject"),
        period: period::of(&page)?,
    };
    let rows = service
        .store
        .list_audit(filter, page.after()?, page.fetch())
        .await?;
    let bodies = rows.into_iter().map(EntryBody::from).collect();
    Ok(page.answer(bodies, |entry: &EntryBody| entry.audit_id.to_string()))
}

impl From<AuditRow> for EntryBody {
    /// What the database keeps as JSON is JSON.
    fn from(row: AuditRow) -> Self {
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
