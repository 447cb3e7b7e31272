//! Reconciliation results per vendor and day.

use crate::labels::labels;
use serde::Serialize;
use time::{Date, OffsetDateTime};

labels! {
    /// Source of a vendor's records.
    pub enum RecordsSource: "lowercase",
        "Source of the vendor's records: `http` (fetched from the vendor) or `csv` (file uploaded by an operator)." {
        Http,
        Csv,
    }
}

/// Counts of a reconciliation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ReconciliationSummary {
    /// Number of orders: settled on the day, or for which one vendor's vouchers were bought.
    #[schema(minimum = 0)]
    pub orders_total: i64,
    /// Number of vouchers allocated to these orders.
    #[schema(minimum = 0)]
    pub vouchers_allocated: i64,
    /// Number of vouchers that both sides have with the same terms.
    #[schema(minimum = 0)]
    pub matched: i64,
    /// Number of vouchers that both sides have with different terms.
    #[schema(minimum = 0)]
    pub drifted: i64,
    /// Number of vouchers that only one side has.
    #[schema(minimum = 0)]
    pub unmatched: i64,
}

impl ReconciliationSummary {
    /// Sums the counts.
    #[must_use]
    pub const fn combine(self, other: Self) -> Self {
        Self {
            orders_total: self.orders_total + other.orders_total,
            vouchers_allocated: self.vouchers_allocated + other.vouchers_allocated,
            matched: self.matched + other.matched,
            drifted: self.drifted + other.drifted,
            unmatched: self.unmatched + other.unmatched,
        }
    }
}

/// Result of the last successful comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconciliationResult {
    pub source: RecordsSource,
    /// Not later than the request of the records. If the day was not over then, the comparison covers a part
    /// of it.
    pub started_at: OffsetDateTime,
    pub generated_at: OffsetDateTime,
    /// Number of the vendor's records.
    pub recorded: i64,
    pub summary: ReconciliationSummary,
}

/// A day of a vendor: its last result, and the state of the next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciliation {
    pub vendor: String,
    pub day: Date,
    /// Earliest time of the next attempt; `None` if none is scheduled.
    pub next_attempt_at: Option<OffsetDateTime>,
    /// Failed attempts since the last success.
    pub attempts: i32,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    pub compared: Option<ReconciliationResult>,
}

/// A day of all vendors, for the list of days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ReconciledDay {
    /// Day in UTC.
    #[serde(rename = "date", serialize_with = "crate::iso_date::serialize")]
    #[schema(rename = "date", value_type = String, format = Date)]
    pub day: Date,
    /// Number of vendors with records of the day, or whose records were requested.
    #[schema(minimum = 0)]
    pub vendors: i64,
    /// Number of those that were compared.
    #[schema(minimum = 0)]
    pub compared: i64,
    /// Number of those whose last attempt failed.
    #[schema(minimum = 0)]
    pub failed: i64,
    /// Number of vouchers that both sides have with the same terms.
    #[schema(minimum = 0)]
    pub matched: i64,
    /// Number of vouchers that both sides have with different terms.
    #[schema(minimum = 0)]
    pub drifted: i64,
    /// Number of vouchers that only one side has.
    #[schema(minimum = 0)]
    pub unmatched: i64,
}
