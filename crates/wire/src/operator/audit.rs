//! Body and filters of `GET /audit`.

use serde::Serialize;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use utoipa::ToSchema;
use vouchsafe_domain::audit_log::{AuditFilter, AuditRow};

use crate::error_body::InvalidRequest;
use crate::page::PageRequest;
use crate::period;

pub const FILTERS: [&str; 5] = ["operator", "action", "subject", "from", "to"];

/// Parses the filters.
///
/// # Errors
/// `VALIDATION_FAILED` for a value that does not parse.
pub fn parse_filter(page: &PageRequest) -> Result<AuditFilter, InvalidRequest> {
    let filter = |name| page.filter(name).map(ToOwned::to_owned);
    Ok(AuditFilter {
        operator: filter("operator"),
        action: filter("action"),
        subject: filter("subject"),
        period: period::from_page(page)?,
    })
}

/// An entry of the audit trail.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditEntryBody {
    /// Sequence number.
    pub audit_id: i64,
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
