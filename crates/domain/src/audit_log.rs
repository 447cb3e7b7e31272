//! Actors and entries of the audit log, and their list filter.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use time::OffsetDateTime;

use crate::ids::PartnerId;
use crate::period::Period;

/// The actor of an audited write and its request. Operators' writes need one, and so do partners' changes of access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditActor {
    /// An operator's name, a partner's id, `service` or `command-line`.
    pub operator: String,
    /// Trace id of the request; `None` outside of a request.
    pub trace_id: Option<String>,
}

impl AuditActor {
    /// The service itself.
    #[must_use]
    pub fn service() -> Self {
        Self {
            operator: "service".to_owned(),
            trace_id: None,
        }
    }

    /// A command that works on the database without the service.
    #[must_use]
    pub fn command_line() -> Self {
        Self {
            operator: "command-line".to_owned(),
            trace_id: None,
        }
    }

    /// A partner that acts on its own behalf.
    #[must_use]
    pub fn partner(partner_id: PartnerId, trace_id: String) -> Self {
        Self {
            operator: partner_id.to_string(),
            trace_id: Some(trace_id),
        }
    }
}

/// An entry of the audit trail.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "sqlx", derive(sqlx::FromRow))]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema), schema(as = AuditEntry))]
pub struct AuditRow {
    /// Sequence number.
    // Ascending, with gaps where a transaction was rolled back.
    pub audit_id: i64,
    /// Time of the action.
    // Start of the transaction.
    #[serde(with = "crate::timestamp")]
    pub at: OffsetDateTime,
    /// Name of the operator, or ID of the partner.
    pub operator: String,
    /// Action, such as `partner.change`.
    pub action: String,
    /// ID of the changed object.
    pub subject: String,
    /// State before the action.
    #[serde(serialize_with = "serialize_json")]
    #[cfg_attr(feature = "utoipa", schema(required, value_type = Value))]
    pub before: Option<String>,
    /// State after the action.
    #[serde(serialize_with = "serialize_json")]
    #[cfg_attr(feature = "utoipa", schema(required, value_type = Value))]
    pub after: Option<String>,
    /// Trace ID of the request.
    #[cfg_attr(feature = "utoipa", schema(required))]
    pub trace_id: Option<String>,
}

/// Writes the text of a `json` column as it is.
fn serialize_json<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    // The columns are `json`, so parsing cannot fail.
    let state: Option<&RawValue> = text.as_deref().and_then(|text| serde_json::from_str(text).ok());
    state.serialize(serializer)
}

/// Filter of audit entries; `None` matches any.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct AuditFilter {
    /// Filter by operator.
    #[cfg_attr(feature = "utoipa", param(value_type = Option<crate::text_schema::FilterText>, inline, example = "admin"))]
    #[cfg_attr(feature = "clap", arg(long))]
    pub operator: Option<String>,
    /// Filter by action.
    #[cfg_attr(feature = "utoipa", param(value_type = Option<crate::text_schema::FilterText>, inline, example = "partner.change"))]
    #[cfg_attr(feature = "clap", arg(long, help = "Filter by action, e.g. partner.change"))]
    pub action: Option<String>,
    /// Filter by subject.
    #[cfg_attr(feature = "utoipa", param(value_type = Option<crate::text_schema::FilterText>, inline, example = "ptn_0198c1f2a3b47c5d8e9f0a1b2c3d4e5f"))]
    #[cfg_attr(feature = "clap", arg(long, help = "Filter by subject, an ID"))]
    pub subject: Option<String>,
    #[serde(flatten)]
    #[cfg_attr(feature = "utoipa", param(ignore))]
    #[cfg_attr(feature = "clap", command(flatten))]
    pub period: Period,
}
