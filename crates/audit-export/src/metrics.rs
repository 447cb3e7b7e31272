//! Metric of the audit export: how long each target has lacked checkpoints, computed when it is read, so that
//! it also grows while an export hangs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

/// A target of the export, as its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TargetName {
    CheckpointFile,
    File,
    Url,
}

impl TargetName {
    const ALL: [Self; 3] = [Self::CheckpointFile, Self::File, Self::Url];

    pub(crate) const fn into_str(self) -> &'static str {
        match self {
            Self::CheckpointFile => "checkpoint_file",
            Self::File => "file",
            Self::Url => "url",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TargetLabels {
    target: &'static str,
}

/// Longer than the interval of checkpoints and an attempt at an endpoint that hangs.
const BEHIND_AFTER: Duration = Duration::from_secs(60);

/// When each configured target last had all checkpoints.
#[derive(Debug, Clone, Default)]
pub struct AuditExportMetrics(Arc<Mutex<BTreeMap<TargetName, Instant>>>);

impl AuditExportMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    /// The target has all checkpoints, or its export begins.
    pub(crate) fn record_complete(&self, name: TargetName) {
        let mut complete = self.0.lock();
        complete.insert(name, Instant::now());
    }

    /// The number of targets that have lacked checkpoints for longer than [`BEHIND_AFTER`].
    #[must_use]
    pub fn count_behind(&self) -> usize {
        let complete = self.0.lock();
        let behind = complete.values().filter(|at| at.elapsed() > BEHIND_AFTER);
        behind.count()
    }

    /// Seconds since the target last had all checkpoints; 0 if it is not configured.
    fn seconds_behind(&self, name: TargetName) -> i64 {
        let complete = self.0.lock();
        let seconds = complete.get(&name).map_or(0, |at| at.elapsed().as_secs());
        i64::try_from(seconds).unwrap_or(i64::MAX)
    }
}

impl Collector for AuditExportMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = encoder.encode_descriptor(
            "audit_export_behind",
            "Time since the target last had all audit checkpoints, by target; 0 without an export.",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        // A series exists from the start, also without an export.
        for name in TargetName::ALL {
            let labels = TargetLabels {
                target: name.into_str(),
            };
            ConstGauge::new(self.seconds_behind(name)).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
