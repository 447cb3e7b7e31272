//! What operators see of the journal: how long commits take, how large batches are, what was said of records.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use super::record::{Stale, Verdict};

/// Counters of all lanes together.
#[derive(Debug, Clone)]
pub struct JournalMetrics {
    commit_seconds: Histogram,
    batch_records: Histogram,
    queued: Gauge,
    verdicts: Family<Said, Counter>,
    recoveries: Counter,
}

/// What was said of a record, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Said {
    verdict: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Word {
    Committed,
    KeyKnown,
    StaleBalance,
    StaleStock,
    Moved,
    Poisoned,
}

impl Word {
    const ALL: [Self; 6] = [
        Self::Committed,
        Self::KeyKnown,
        Self::StaleBalance,
        Self::StaleStock,
        Self::Moved,
        Self::Poisoned,
    ];
}

impl EncodeLabelValue for Word {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        encoder.write_str(match self {
            Self::Committed => "committed",
            Self::KeyKnown => "key_known",
            Self::StaleBalance => "stale_balance",
            Self::StaleStock => "stale_stock",
            Self::Moved => "moved",
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
        // Each is there from the beginning, at nought.
        Word::ALL.into_iter().for_each(|word| drop(self.said(word)));
        journal.register("verdicts", "What commits said of records", self.verdicts.clone());
        journal.register(
            "recoveries",
            "Batches whose outcome had to be settled",
            self.recoveries.clone(),
        );
    }

    fn said(&self, verdict: Word) -> Counter {
        self.verdicts.get_or_create_owned(&Said { verdict })
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
        for (word, matches) in [
            (
                Word::Committed,
                (|v| matches!(v, Verdict::Committed(_))) as fn(&Verdict) -> bool,
            ),
            (Word::KeyKnown, |v| matches!(v, Verdict::KeyKnown(_))),
            (
                Word::StaleBalance,
                |v| matches!(v, Verdict::Stale(stale) if stale.doubts_balance()),
            ),
            (
                Word::StaleStock,
                |v| matches!(v, Verdict::Stale(stale) if stale.doubts_stock()),
            ),
            (Word::Moved, |v| matches!(v, Verdict::Stale(Stale::Moved))),
        ] {
            self.metrics.said(word).inc_by(count(matches));
        }
    }

    pub(super) fn poisoned(&self) {
        self.metrics.said(Word::Poisoned).inc();
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
