//! Operations and bodies of `/reconciliation`, and the reader of record files.

pub mod drifts;
pub mod records;

use serde::{Deserialize, Serialize};
use time::{Date, OffsetDateTime};
use utoipa::{IntoParams, ToSchema};
use vouchsafe_domain::operator::Role;
use vouchsafe_domain::reconciliation::allocations::{
    BatchAllocations, DayAllocations, RecordsAvailability, VoucherSource,
};
use vouchsafe_domain::reconciliation::drift::DriftFilter;
use vouchsafe_domain::reconciliation::result::{
    ReconciledDay, Reconciliation, ReconciliationResult, ReconciliationSummary, RecordsSource,
};

use crate::column::col;
use crate::error_code::Code;
use crate::filter::NoFilter;
use crate::operation::{Page, operations};
use crate::operator::operation::SecondOperator::Never;
use crate::operator::operation::{Operation, OperatorAccess, get, post};
use crate::operator::reconciliation::drifts::{DriftBody, ResolveRequest};

operations! {
    OperatorAccess;
    LIST_RECONCILIATIONS: Operation<NoFilter, Page<ReconciledDay>> =
        get("/reconciliation", Role::Viewer, "listReconciliations", "List reconciled days")
            .columns(&[
                col("Day", "date").link("/reconciliation/{date}"),
                col("Vendors", "vendors"),
                col("Compared", "compared"),
                col("Failed", "failed"),
                col("Matched", "matched"),
                col("Drifted", "drifted"),
                col("Unmatched", "unmatched"),
            ]);
    GET_RECONCILIATION: Operation<(), ReconciliationBody> =
        get("/reconciliation/{date}", Role::Viewer, "getReconciliation", "Get the reconciliation of a day")
            .errors(&[Code::ReconciliationNotFound, Code::ValidationFailed]);
    RUN_RECONCILIATION: Operation<RunRequest, ReconciliationBody> =
        post("/reconciliation/{date}/run", Role::Operator, Never, "runReconciliation", "Run the reconciliation of a day");
    UPLOAD_RECORDS: Operation<RecordsQuery, ReconciliationBody> =
        post("/reconciliation/{date}/records", Role::Operator, Never, "uploadRecords", "Upload the vendor records of a day")
            .errors(&[Code::ReconciliationInProgress]);
    LIST_DRIFTS: Operation<DriftFilter, Page<DriftBody>> =
        get("/drifts", Role::Viewer, "listDrifts", "List drifts")
            .columns(&[
                col("Drift", "drift_id"),
                col("Day", "date").link("/reconciliation/{date}"),
                col("Vendor", "vendor"),
                col("Kind", "kind"),
                col("Order", "order_id").at(6),
                col("Differences", "differences").text(12),
                col("Ours", "ours").console_only(),
                col("Theirs", "theirs").console_only(),
                col("Resolution", "resolution").at(4),
                col("Reason", "reason").console_only(),
                col("Vendor record", "vendor_record").text(14).terminal_only(),
            ]);
    RESOLVE_DRIFT: Operation<ResolveRequest, DriftBody> =
        post("/drifts/{drift_id}/resolve", Role::Operator, Never, "resolveDrift", "Resolve a drift");
}

/// Reconciliation of a day.
#[derive(Serialize, ToSchema)]
#[schema(as = Reconciliation)]
pub struct ReconciliationBody {
    /// Day in UTC.
    #[schema(format = Date)]
    date: String,
    /// Orders settled on the day and their vouchers, and the results of all vendors.
    summary: ReconciliationSummary,
    /// Comparisons with the records of the vendors that list their sales, by vendor.
    vendors: Vec<VendorReconciliation>,
    /// Vouchers of the orders settled on the day, by vendor and batch; null before they were counted.
    #[schema(required)]
    allocations: Option<Vec<BatchAllocationsBody>>,
}

/// Vouchers of one vendor and batch that orders settled on the day have.
#[derive(Serialize, ToSchema)]
#[schema(as = BatchAllocations)]
struct BatchAllocationsBody {
    /// Vendor ID.
    vendor: String,
    /// Source of the vouchers.
    source: VoucherSource,
    /// Batch of the import; null for purchases, and for imports before batches had names.
    #[schema(required)]
    batch: Option<String>,
    /// Number of orders that have at least one of the vouchers.
    #[schema(minimum = 0)]
    orders: i64,
    /// Number of vouchers.
    #[schema(minimum = 0)]
    vouchers: i64,
    /// Whether vendor records exist for the vouchers.
    records: RecordsAvailability,
    /// Number of vouchers that match the vendor's records; null without records.
    #[schema(required, minimum = 0)]
    matched: Option<i64>,
    /// Number of vouchers that differ from the vendor's records; null without records.
    #[schema(required, minimum = 0)]
    drifted: Option<i64>,
    /// Number of vouchers that the vendor's records lack; null without records.
    #[schema(required, minimum = 0)]
    unmatched: Option<i64>,
}

/// Reconciliation of a day with one vendor.
#[derive(Serialize, ToSchema)]
struct VendorReconciliation {
    /// Vendor ID.
    vendor: String,
    /// Counts of the last comparison; null before the first.
    #[schema(required)]
    summary: Option<ReconciliationSummary>,
    /// Number of the vendor's records of the day.
    #[schema(required, minimum = 0)]
    recorded: Option<i64>,
    /// Source of the records.
    #[schema(required)]
    source: Option<RecordsSource>,
    /// Time at which the records were requested. A day not over by then was compared up to that time.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    started_at: Option<OffsetDateTime>,
    /// Time of the result.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    generated_at: Option<OffsetDateTime>,
    /// Failed attempts since the last result.
    #[schema(minimum = 0)]
    failed_attempts: i32,
    /// Reason of the last failure.
    #[schema(required)]
    last_error: Option<String>,
    /// Earliest time of the next attempt; null if none is due.
    #[serde(with = "vouchsafe_domain::timestamp::option")]
    #[schema(required)]
    next_attempt_at: Option<OffsetDateTime>,
}

/// Query of an upload of records.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct RecordsQuery {
    /// Vendor ID.
    #[param(example = "acme-cards")]
    #[arg(long)]
    pub vendor: String,
}

/// Vendors to compare a day with.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Vendor ID. Default: all vendors whose adapter lists its sales (`http` and `mock`).
    #[serde(default)]
    #[arg(long, help = "Vendor ID [default: all vendors that list their sales]")]
    pub vendor: Option<String>,
}

impl ReconciliationBody {
    /// The allocations of a day, its results by vendor, and their sum.
    #[must_use]
    pub fn of(day: Date, reconciliations: Vec<Reconciliation>, allocations: Option<DayAllocations>) -> Self {
        let vendors: Vec<VendorReconciliation> = reconciliations
            .into_iter()
            .map(VendorReconciliation::from)
            .collect();
        let summaries = vendors.iter().filter_map(|vendor| vendor.summary);
        let mut summary = summaries.fold(ReconciliationSummary::default(), ReconciliationSummary::combine);
        if let Some(counted) = &allocations {
            summary.orders_total = counted.orders_total;
            summary.vouchers_allocated = counted.vouchers_allocated;
        }
        let batches = allocations.map(|counted| {
            counted
                .batches
                .into_iter()
                .map(BatchAllocationsBody::from)
                .collect()
        });
        Self {
            date: day.to_string(),
            summary,
            vendors,
            allocations: batches,
        }
    }
}

impl From<BatchAllocations> for BatchAllocationsBody {
    fn from(batch: BatchAllocations) -> Self {
        let compared = |count| (batch.records != RecordsAvailability::None).then_some(count);
        Self {
            source: batch.source,
            orders: batch.orders,
            vouchers: batch.vouchers,
            records: batch.records,
            matched: compared(batch.matched),
            drifted: compared(batch.drifted),
            unmatched: compared(batch.unmatched),
            vendor: batch.vendor,
            batch: batch.batch,
        }
    }
}

impl From<Reconciliation> for VendorReconciliation {
    fn from(reconciliations: Reconciliation) -> Self {
        let compared = reconciliations.compared.as_ref();
        let timestamp = |pick: fn(&ReconciliationResult) -> OffsetDateTime| compared.map(pick);
        Self {
            summary: compared.map(|compared| compared.summary),
            recorded: compared.map(|compared| compared.recorded),
            source: compared.map(|compared| compared.source),
            started_at: timestamp(|compared| compared.started_at),
            generated_at: timestamp(|compared| compared.generated_at),
            vendor: reconciliations.vendor,
            failed_attempts: reconciliations.attempts,
            last_error: reconciliations.last_error,
            next_attempt_at: reconciliations.next_attempt_at,
        }
    }
}
