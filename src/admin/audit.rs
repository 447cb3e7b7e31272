//! `/audit`: the operators' trail, newest first.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::operator::Operator;
use crate::errors::ApiError;
use crate::http::{Page, period};
use crate::service::Service;
use crate::store::{AuditFilter, AuditRow};

/// What an operator did.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(super) struct EntryBody {
    /// Its number.
    audit_id: i64,
    /// When.
    #[serde(with = "vouchsafe_actors::domain::moment")]
    at: OffsetDateTime,
    /// Who.
    operator: String,
    /// What, such as `partner.change`.
    action: String,
    /// To what.
    subject: String,
    /// What it was before.
    #[schema(required, value_type = Value)]
    before: Option<Box<RawValue>>,
    /// What it was after.
    #[schema(required, value_type = Value)]
    after: Option<Box<RawValue>>,
    /// The trace id of the request.
    #[schema(required)]
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
