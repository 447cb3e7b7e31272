//! Entries of the audit log, and their list filter.

use time::OffsetDateTime;

use crate::period::Period;

#[derive(Debug, Clone)]
#[cfg_attr(feature = "sqlx", derive(sqlx::FromRow))]
pub struct AuditRow {
    /// Ascending, with gaps where a transaction was rolled back.
    pub audit_id: i64,
    /// Start of the transaction.
    pub at: OffsetDateTime,
    pub operator: String,
    /// Name of the action, e.g. `partner.change`.
    pub action: String,
    /// Id of the changed object.
    pub subject: String,
    /// State before the action, as JSON text.
    pub before: Option<String>,
    /// State after the action, as JSON text.
    pub after: Option<String>,
    pub trace_id: Option<String>,
}

/// Filter of audit entries; `None` matches any.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub operator: Option<String>,
    pub action: Option<String>,
    pub subject: Option<String>,
    pub period: Period,
}
