//! Reconciliation of a day as its partner sees it.

use time::OffsetDateTime;

use super::drift::Drift;
use super::result::ReconciliationSummary;

/// A partner's part of a day's reconciliation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerDay {
    pub summary: ReconciliationSummary,
    /// Oldest first, up to the requested limit.
    pub drifts: Vec<Drift>,
    /// Time of the newest result of the day.
    pub generated_at: OffsetDateTime,
}
