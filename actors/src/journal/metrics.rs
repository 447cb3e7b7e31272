//! Journal metrics: commit duration, batch size, verdicts, events, money, recoveries.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use strum::VariantArray as _;
use tokio::time::Instant;
use vouchsafe_domain::event_kind::EventKind;
use vouchsafe_domain::sales::Sales;

use super::commit_health::CommitHealth;
use super::money::MoneyMetrics;
use crate::ports::record::{Record, StaleReason, Verdict};

/// Metrics of all lanes.
#[derive(Debug, Clone)]
pub struct JournalMetrics {
    commit_seconds: Histogram,
    batch_records: Histogram,
    queued: Gauge,
    verdicts: Family<VerdictLabels, Counter>,
    events: Family<EventLabels, Counter>,
    money: MoneyMetrics,
    sales: Arc<Mutex<Sales>>,
    recoveries: Counter,
}

/// Label set of the verdict counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabels {
    verdict: VerdictLabel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    event: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum VerdictLabel {
    Committed,
    KeyKnown,
    StaleBalance,
    StaleStock,
    StaleCap,
    StateChanged,
    Poisoned,
}

impl VerdictLabel {
    const ALL: [Self; 7] = [
        Self::Committed,
        Self::KeyKnown,
        Self::StaleBalance,
        Self::StaleStock,
        Self::StaleCap,
        Self::StateChanged,
        Self::Poisoned,
    ];

    /// The labels under which a verdict counts.
    const fn of(verdict: &Verdict) -> &'static [Self] {
        match verdict {
            Verdict::Committed(_) => &[Self::Committed],
            Verdict::KeyKnown(_) => &[Self::KeyKnown],
            Verdict::Stale(StaleReason::Balance) => &[Self::StaleBalance],
            Verdict::Stale(StaleReason::Stock) => &[Self::StaleStock],
            Verdict::Stale(StaleReason::Unclear) => &[Self::StaleBalance, Self::StaleStock],
            Verdict::Stale(StaleReason::StateChanged) => &[Self::StateChanged],
            Verdict::Stale(StaleReason::Cap) => &[Self::StaleCap],
            // Its earlier response was counted when it was stored.
            Verdict::Stale(StaleReason::KeyPurged) => &[],
        }
    }
}

impl EncodeLabelValue for VerdictLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        encoder.write_str(match self {
            Self::Committed => "committed",
            Self::KeyKnown => "key_known",
            Self::StaleBalance => "stale_balance",
            Self::StaleStock => "stale_stock",
            Self::StaleCap => "stale_cap",
            Self::StateChanged => "state_changed",
            Self::Poisoned => "poisoned",
        })
    }
}

impl Default for JournalMetrics {
    fn default() -> Self {
        Self {
            commit_seconds: Histogram::new(exponential_buckets(0.000_25, 2.0, 16)),
            batch_records: Histogram::new(exponential_buckets(1.0, 2.0, 10)),
            queued: Gauge::default(),
            verdicts: Family::default(),
            events: Family::default(),
            money: MoneyMetrics::default(),
            sales: Arc::default(),
            recoveries: Counter::default(),
        }
    }
}

impl JournalMetrics {
    /// The sales of all lanes since the last call.
    #[must_use]
    pub fn take_sales(&self) -> Sales {
        std::mem::take(&mut self.sales.lock())
    }

    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let journal = registry.sub_registry_with_prefix("journal");
        let seconds = "Duration of a group commit, from sending the batch to its verdicts";
        journal.register_with_unit(
            "commit_duration",
            seconds,
            Unit::Seconds,
            self.commit_seconds.clone(),
        );
        journal.register(
            "batch_records",
            "Records per group commit",
            self.batch_records.clone(),
        );
        journal.register(
            "records_queued",
            "Records waiting for a lane",
            self.queued.clone(),
        );
        // Creates every series at zero, so that rates have a start.
        VerdictLabel::ALL
            .into_iter()
            .for_each(|label| drop(self.verdict_counter(label)));
        journal.register(
            "verdicts",
            "Records by verdict of their commit",
            self.verdicts.clone(),
        );
        journal.register(
            "recoveries",
            "Batches whose unknown outcome had to be resolved",
            self.recoveries.clone(),
        );
        EventKind::VARIANTS
            .iter()
            .for_each(|kind| drop(self.event_counter(*kind)));
        registry.register(
            "order_events",
            "Committed order events, by kind",
            self.events.clone(),
        );
        registry.register_collector(Box::new(self.money.clone()));
    }

    fn verdict_counter(&self, verdict: VerdictLabel) -> Counter {
        self.verdicts.get_or_create_owned(&VerdictLabels { verdict })
    }

    fn event_counter(&self, kind: EventKind) -> Counter {
        let event = kind.into_str();
        self.events.get_or_create_owned(&EventLabels { event })
    }
}

/// A snapshot of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneStats {
    /// Records between decision and verdict.
    pub in_flight: usize,
    /// Records that wait for the batch in flight to end.
    pub queued: usize,
    /// Batches that were sent since the process started.
    pub batches: u64,
    /// Number of records of the last batch.
    pub last_batch_records: usize,
    /// Time from sending the last batch that ended to its verdicts.
    pub last_commit: Duration,
    /// Whether the lane can commit.
    pub can_commit: bool,
}

/// Metrics of one lane, and whether its commits proceed.
#[derive(Debug)]
pub(super) struct LaneMetrics {
    metrics: JournalMetrics,
    recovering: AtomicBool,
    health: Mutex<CommitHealth>,
    queued: AtomicUsize,
    batches: AtomicU64,
    last_batch_records: AtomicUsize,
    last_commit_us: AtomicU64,
}

impl LaneMetrics {
    pub(super) fn new(metrics: JournalMetrics) -> Self {
        Self {
            metrics,
            recovering: AtomicBool::new(false),
            health: Mutex::default(),
            queued: AtomicUsize::new(0),
            batches: AtomicU64::new(0),
            last_batch_records: AtomicUsize::new(0),
            last_commit_us: AtomicU64::new(0),
        }
    }

    pub(super) fn stats(&self, in_flight: usize) -> LaneStats {
        LaneStats {
            in_flight,
            queued: self.queued.load(Ordering::Relaxed),
            batches: self.batches.load(Ordering::Relaxed),
            last_batch_records: self.last_batch_records.load(Ordering::Relaxed),
            last_commit: Duration::from_micros(self.last_commit_us.load(Ordering::Relaxed)),
            can_commit: self.can_commit(),
        }
    }

    pub(super) fn record_submission(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
        self.metrics.queued.inc();
    }

    pub(super) fn can_commit(&self) -> bool {
        !self.recovering.load(Ordering::Relaxed) && self.health().can_commit(Instant::now())
    }

    pub(super) fn has_committed(&self) -> bool {
        self.health().has_committed(Instant::now())
    }

    fn health(&self) -> MutexGuard<'_, CommitHealth> {
        self.health.lock()
    }

    /// A batch was written. Returns whether commits have recovered with it.
    pub(super) fn record_written(&self) -> bool {
        self.health().record_success(Instant::now())
    }

    /// A batch was not written for lack of a resource.
    pub(super) fn record_busy(&self) {
        self.health().record_failure(Instant::now());
    }

    pub(super) fn record_batch(&self, records: usize) {
        self.queued.fetch_sub(records, Ordering::Relaxed);
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.last_batch_records.store(records, Ordering::Relaxed);
        self.metrics
            .queued
            .dec_by(i64::try_from(records).unwrap_or(i64::MAX));
        self.metrics
            .batch_records
            .observe(f64::from(u32::try_from(records).unwrap_or(u32::MAX)));
    }

    pub(super) fn start_commit_timer(&self) -> CommitTimer<'_> {
        let started_at = Instant::now();
        self.health().start(started_at);
        CommitTimer {
            lane: self,
            started_at,
        }
    }

    pub(super) fn record_verdicts(&self, verdicts: &[Verdict]) {
        for label in VerdictLabel::ALL {
            let counted = verdicts
                .iter()
                .filter(|verdict| VerdictLabel::of(verdict).contains(&label));
            self.metrics.verdict_counter(label).inc_by(counted.count() as u64);
        }
    }

    /// Counts events, money and sales of the committed records.
    pub(super) fn record_committed(&self, records: &[Record], verdicts: &[Verdict]) {
        let mut counts = [0; EventKind::VARIANTS.len()];
        let mut money = self.metrics.money.lock();
        let mut sales = self.metrics.sales.lock();
        for (record, verdict) in records.iter().zip(verdicts) {
            if matches!(verdict, Verdict::Committed(_)) {
                let steps = record.events.iter().flat_map(|events| &events.steps);
                steps.for_each(|step| counts[EventKind::of(step) as usize] += 1);
                if let Some(movement) = &record.movement {
                    money.add(movement);
                }
                if let Some(order) = &record.order {
                    sales.add(order);
                }
            }
        }
        drop((money, sales));
        for (kind, count) in EventKind::VARIANTS.iter().zip(counts) {
            if count > 0 {
                self.metrics.event_counter(*kind).inc_by(count);
            }
        }
    }

    pub(super) fn record_poisoned(&self) {
        self.metrics.verdict_counter(VerdictLabel::Poisoned).inc();
    }

    pub(super) fn start_recovery(&self) {
        self.recovering.store(true, Ordering::Relaxed);
        self.metrics.recoveries.inc();
    }

    pub(super) fn finish_recovery(&self) {
        self.recovering.store(false, Ordering::Relaxed);
    }
}

/// Observes the duration of a commit when dropped.
#[must_use]
pub(super) struct CommitTimer<'a> {
    lane: &'a LaneMetrics,
    started_at: Instant,
}

impl Drop for CommitTimer<'_> {
    fn drop(&mut self) {
        self.lane.health().finish();
        let duration = self.started_at.elapsed();
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.lane.last_commit_us.store(micros, Ordering::Relaxed);
        self.lane.metrics.commit_seconds.observe(duration.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_verdict_counts_under_its_reason() {
        let metrics = JournalMetrics::default();
        let lane = LaneMetrics::new(metrics.clone());
        let stale = [StaleReason::Cap, StaleReason::Unclear, StaleReason::KeyPurged];
        lane.record_verdicts(&stale.map(Verdict::Stale));
        let counts = VerdictLabel::ALL.map(|label| metrics.verdict_counter(label).get());
        assert_eq!(counts, [0, 0, 1, 1, 1, 0, 0]);
    }
}
