//! What operators see of the journal: how long commits take, how large batches are, what was said of records.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use super::record::Verdict;

/// Counters of all lanes together.
#[derive(Debug, Clone)]
pub struct JournalMetrics {
    commit_seconds: Histogram,
    batch_records: Histogram,
    queued: Gauge,
    committed: Counter,
    key_known: Counter,
    stale_balance: Counter,
    stale_stock: Counter,
    poisoned: Counter,
    recoveries: Counter,
}

impl Default for JournalMetrics {
    fn default() -> Self {
        Self {
            commit_seconds: Histogram::new(exponential_buckets(0.000_25, 2.0, 16)),
            batch_records: Histogram::new(exponential_buckets(1.0, 2.0, 10)),
            queued: Gauge::default(),
            committed: Counter::default(),
            key_known: Counter::default(),
            stale_balance: Counter::default(),
            stale_stock: Counter::default(),
            poisoned: Counter::default(),
            recoveries: Counter::default(),
        }
    }
}

impl JournalMetrics {
    /// Shows the counters under their names.
    pub fn register(&self, registry: &mut Registry) {
        let journal = registry.sub_registry_with_prefix("journal");
        let seconds = "Time of one group commit, from sending the batch to its verdicts";
        journal.register_with_unit("commit", seconds, Unit::Seconds, self.commit_seconds.clone());
        journal.register(
            "batch_records",
            "Records in one group commit",
            self.batch_records.clone(),
        );
        journal.register(
            "queued_records",
            "Records that wait for a lane",
            self.queued.clone(),
        );
        for (word, counter) in [
            ("committed", &self.committed),
            ("key_known", &self.key_known),
            ("stale_balance", &self.stale_balance),
            ("stale_stock", &self.stale_stock),
            ("poisoned", &self.poisoned),
        ] {
            let verdicts = journal.sub_registry_with_label(("verdict".into(), word.into()));
            verdicts.register("verdicts", "What commits said of records", counter.clone());
        }
        journal.register(
            "recoveries",
            "Batches whose outcome had to be settled",
            self.recoveries.clone(),
        );
    }

    pub(super) fn submitted(&self) {
        self.queued.inc();
    }
}

/// What one lane counts, and whether its commits flow.
#[derive(Debug)]
pub(super) struct LaneMeter {
    metrics: JournalMetrics,
    recovering: AtomicBool,
}

impl LaneMeter {
    pub(super) fn new(metrics: JournalMetrics) -> Self {
        Self {
            metrics,
            recovering: AtomicBool::new(false),
        }
    }

    pub(super) fn flows(&self) -> bool {
        !self.recovering.load(Ordering::Relaxed)
    }

    pub(super) fn batch_begins(&self, records: usize) {
        self.metrics
            .queued
            .dec_by(i64::try_from(records).unwrap_or(i64::MAX));
        self.metrics
            .batch_records
            .observe(f64::from(u32::try_from(records).unwrap_or(u32::MAX)));
    }

    pub(super) fn commit_begins(&self) -> CommitTimer<'_> {
        CommitTimer {
            histogram: &self.metrics.commit_seconds,
            since: Instant::now(),
        }
    }

    pub(super) fn written(&self, verdicts: &[Verdict]) {
        let count = |matches: fn(&Verdict) -> bool| verdicts.iter().filter(|v| matches(v)).count() as u64;
        self.metrics
            .committed
            .inc_by(count(|v| matches!(v, Verdict::Committed(_))));
        self.metrics
            .key_known
            .inc_by(count(|v| matches!(v, Verdict::KeyKnown(_))));
        self.metrics.stale_balance.inc_by(count(
            |v| matches!(v, Verdict::Stale(stale) if stale.doubts_balance()),
        ));
        self.metrics.stale_stock.inc_by(count(
            |v| matches!(v, Verdict::Stale(stale) if stale.doubts_stock()),
        ));
    }

    pub(super) fn poisoned(&self) {
        self.metrics.poisoned.inc();
    }

    pub(super) fn recovery_begins(&self) {
        self.recovering.store(true, Ordering::Relaxed);
        self.metrics.recoveries.inc();
    }

    pub(super) fn recovery_ends(&self) {
        self.recovering.store(false, Ordering::Relaxed);
    }
}

/// Observes the time of one commit when it is dropped.
#[must_use]
pub(super) struct CommitTimer<'a> {
    histogram: &'a Histogram,
    since: Instant,
}

impl Drop for CommitTimer<'_> {
    fn drop(&mut self) {
        self.histogram.observe(self.since.elapsed().as_secs_f64());
    }
}
