//! Bulk jobs: one action of an operator on many objects, with a result for each.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::change_request::ChangeKind;
use crate::ids::{BulkJobId, ChangeRequestId};
use crate::labels::labels;
use crate::operator::OperatorName;

/// Objects of a job. A job of this size ends within a minute.
pub const MAX_OBJECTS: usize = 1_000;

labels! {
    /// What a bulk job does with each object.
    pub enum BulkAction: "SCREAMING_SNAKE_CASE", "What is done with each object." {
        OrderApprove,
        OrderReject,
        OrderCancel,
        PayoutPay,
        PayoutReject,
        PayoutFail,
        RequestConfirm,
        RequestDecline,
        DriftResolve,
        DriftEscalate,
        DeliveryReplay,
    }
}

labels! {
    /// Progress of a bulk job.
    pub enum BulkJobStatus: "SCREAMING_SNAKE_CASE",
        "Status: `RUNNING`, `ENDED` (each object has its result), `INTERRUPTED` (its node stopped: objects without a result need a \
         new job)." {
        Running,
        Ended,
        Interrupted,
    }
}

labels! {
    /// Result of a bulk job for one object.
    pub enum BulkResult: "SCREAMING_SNAKE_CASE",
        "Result: `WAITING` (none yet), `DONE`, `REQUESTED` (another operator has to confirm it), `REFUSED`, `FAILED` (it is unknown \
         whether it was done)." {
        Waiting,
        Done,
        Requested,
        Refused,
        Failed,
    }
}

impl ChangeKind {
    /// Whether the response of the confirmed change has a secret, which is shown once.
    #[must_use]
    pub const fn has_secret(self) -> bool {
        matches!(
            self,
            Self::CredentialIssue | Self::CredentialRotate | Self::OperatorTokenIssue
        )
    }
}

/// One action of an operator on many objects.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct BulkJob {
    /// Identifies the job.
    pub job_id: BulkJobId,
    pub action: BulkAction,
    /// Reason, the same for each object.
    #[schema(required)]
    pub reason: Option<String>,
    /// Operator who started it, and in whose name each object is changed.
    pub operator: OperatorName,
    pub status: BulkJobStatus,
    /// Number of objects.
    pub objects: i32,
    /// Number of objects that were changed.
    pub done: i32,
    /// Number of changes that another operator has to confirm.
    pub requested: i32,
    /// Number of objects that could not be changed.
    pub refused: i32,
    /// Number of objects of which it is unknown whether they were changed.
    pub failed: i32,
    /// Time of the start.
    #[serde(with = "crate::timestamp")]
    pub started_at: OffsetDateTime,
    /// Time of the last result.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub ended_at: Option<OffsetDateTime>,
    /// Trace ID of the entries that the job adds to the audit trail.
    pub trace_id: String,
}

/// The result of a bulk job for one object.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct BulkItem {
    /// Place in the job, from 1.
    pub position: i32,
    /// Order, payout, change request, drift or delivery.
    pub object_id: String,
    pub result: BulkResult,
    /// Error code, if it was refused or failed.
    #[schema(required)]
    pub error_code: Option<String>,
    /// What happened and what to do, if it was refused or failed.
    #[schema(required)]
    pub message: Option<String>,
    /// Change request, if another operator has to confirm it.
    #[schema(required)]
    pub request_id: Option<ChangeRequestId>,
    /// Time of the result.
    #[serde(with = "crate::timestamp::option")]
    #[schema(required)]
    pub ended_at: Option<OffsetDateTime>,
}

/// Filter of the objects of a bulk job; `None` matches any.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, utoipa::IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct BulkItemFilter {
    /// Filter by result.
    #[param(inline)]
    #[arg(long, value_parser = crate::arguments::enum_parser::<BulkResult>())]
    pub result: Option<BulkResult>,
}
