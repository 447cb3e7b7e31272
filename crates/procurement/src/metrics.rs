//! Metrics of vendors: rejected responses, circuits, open drifts, reconciled days.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VendorLabels {
    vendor: String,
}

impl VendorLabels {
    fn of(vendor: &str) -> Self {
        Self {
            vendor: vendor.to_owned(),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct VendorMetrics {
    rejected_responses: Family<VendorLabels, Counter>,
    open_circuits: Family<VendorLabels, Gauge>,
    open_drifts: Family<VendorLabels, Gauge>,
    reconciled_day: Family<VendorLabels, Gauge>,
    failed_reconciliations: Family<VendorLabels, Counter>,
}

impl VendorMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "vendor_responses_rejected",
            "Vendor responses rejected as invalid, by vendor",
            self.rejected_responses.clone(),
        );
        registry.register(
            "vendor_circuit_open",
            "Whether the vendor's circuit breaker rejects calls or tries one: 1 or 0, by vendor",
            self.open_circuits.clone(),
        );
        registry.register(
            "vendor_drifts_open",
            "Unresolved drifts between the vendor's records and ours, by vendor",
            self.open_drifts.clone(),
        );
        let day = "Start of the last day that was fully reconciled, by vendor, in Unix time";
        registry.register_with_unit(
            "vendor_reconciled_day_timestamp",
            day,
            Unit::Seconds,
            self.reconciled_day.clone(),
        );
        registry.register(
            "vendor_reconciliations_failed",
            "Failed attempts to reconcile a day, by vendor",
            self.failed_reconciliations.clone(),
        );
    }

    /// Counts a vendor response that was rejected as invalid.
    pub fn record_rejected_response(&self, vendor: &str) {
        self.rejected_responses
            .get_or_create(&VendorLabels::of(vendor))
            .inc();
    }

    /// Sets whether the circuit breaker of a vendor is open or half-open.
    pub fn set_circuit(&self, vendor: &str, is_open: bool) {
        self.open_circuits
            .get_or_create(&VendorLabels::of(vendor))
            .set(is_open.into());
    }

    /// Sets the number of unresolved drifts of a vendor and the start of its last reconciled day (Unix time).
    pub fn set_reconciliation(&self, vendor: &str, open: i64, last_day_s: Option<i64>) {
        let labels = VendorLabels::of(vendor);
        // Creates the vendor's other series at zero, so that the first increase is one.
        drop(self.rejected_responses.get_or_create(&labels));
        drop(self.failed_reconciliations.get_or_create(&labels));
        drop(self.open_circuits.get_or_create(&labels));
        self.open_drifts.get_or_create(&labels).set(open);
        if let Some(last_day_s) = last_day_s {
            self.reconciled_day.get_or_create(&labels).set(last_day_s);
        }
    }

    /// Counts a failed attempt to reconcile a day with a vendor.
    pub fn record_failed_reconciliation(&self, vendor: &str) {
        self.failed_reconciliations
            .get_or_create(&VendorLabels::of(vendor))
            .inc();
    }
}
