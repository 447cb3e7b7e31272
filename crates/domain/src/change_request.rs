//! Change requests: operators' changes that a second operator confirms (four-eyes principle).

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use time::OffsetDateTime;

use crate::ids::ChangeRequestId;
use crate::labels::labels;
use crate::operator::OperatorName;

labels! {
    /// What a change request changes.
    pub enum ChangeKind: "SCREAMING_SNAKE_CASE", "What is changed." {
        TopUp,
        Adjustment,
        PayoutPay,
        PayoutReject,
        PayoutFail,
        OrderApprove,
        OrderFulfil,
        CredentialIssue,
        CredentialRotate,
        /// Allowlist, approval rule or certification dates.
        PartnerChange,
        OperatorCreate,
        OperatorChange,
        OperatorTokenIssue,
        /// URL or credentials of a vendor.
        VendorPut,
    }
}

labels! {
    /// Progress of a change request.
    pub enum ChangeRequestStatus: "SCREAMING_SNAKE_CASE",
        "Status: `WAITING` (for another operator), `CONFIRMED` (it is being carried out), `EXECUTED`, `REFUSED` (it was confirmed, \
         but the state no longer permits it), `DECLINED` (or withdrawn by its requester), `EXPIRED`." {
        Waiting,
        Confirmed,
        Executed,
        Refused,
        Declined,
        Expired,
    }
}

/// A change that waits for a second operator, or waited for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ChangeRequest {
    /// Identifies the request.
    pub request_id: ChangeRequestId,
    pub kind: ChangeKind,
    /// ID of the changed object, or name of the operator.
    pub object: String,
    /// The change, without codes and secrets.
    #[serde(serialize_with = "serialize_json")]
    #[schema(value_type = Value)]
    pub details: String,
    pub status: ChangeRequestStatus,
    /// Operator who requested the change.
    pub requested_by: OperatorName,
    /// Time of the request.
    #[serde(with = "crate::timestamp")]
    pub requested_at: OffsetDateTime,
    /// Time until which it can be confirmed, exclusive.
    #[serde(with = "crate::timestamp")]
    pub expires_at: OffsetDateTime,
    /// Operator who confirmed or declined it.
    #[schema(required)]
    pub decided_by: Option<OperatorName>,
    /// Time of that decision.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub decided_at: Option<OffsetDateTime>,
    /// Why it was declined, if a reason was given.
    #[schema(required)]
    pub reason: Option<String>,
    /// Error code, if the confirmed change was refused.
    #[schema(required)]
    pub error_code: Option<String>,
}

/// What a change finds and leaves: the fields that it changes, each with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ChangePreview {
    /// Values now.
    #[serde(serialize_with = "serialize_json")]
    #[schema(value_type = Value)]
    pub before: String,
    /// Values once the change is carried out, if nothing else changes before.
    #[serde(serialize_with = "serialize_json")]
    #[schema(value_type = Value)]
    pub after: String,
}

/// Writes JSON text as it is.
fn serialize_json<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let json: &RawValue = serde_json::from_str(text).map_err(serde::ser::Error::custom)?;
    json.serialize(serializer)
}

/// Filter of change requests; `None` matches any.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct ChangeRequestFilter {
    /// Filter by status.
    #[param(inline)]
    #[arg(long, value_parser = crate::arguments::enum_parser::<ChangeRequestStatus>())]
    pub status: Option<ChangeRequestStatus>,
    /// Filter by kind.
    #[param(inline)]
    #[arg(long, value_parser = crate::arguments::enum_parser::<ChangeKind>())]
    pub kind: Option<ChangeKind>,
    /// Filter by the changed object: its ID, or the name of an operator.
    #[param(value_type = Option<crate::text_schema::FilterText>, inline, example = "example")]
    #[arg(long, value_name = "ID")]
    pub object: Option<String>,
}
