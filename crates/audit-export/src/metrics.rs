//! Metrics of the audit export.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// A target of the export, as its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

#[derive(Debug, Clone, Default)]
pub struct AuditExportMetrics {
    behind: Family<TargetLabels, Gauge>,
}

impl AuditExportMetrics {
    pub fn register(&self, registry: &mut Registry) {
        // A series exists from the start, also without an export.
        for name in TargetName::ALL {
            self.set_behind(name, Duration::ZERO);
        }
        registry.register_with_unit(
            "audit_export_behind",
            "Time since the target last had all audit checkpoints, by target; 0 without an export",
            Unit::Seconds,
            self.behind.clone(),
        );
    }

    pub(crate) fn set_behind(&self, name: TargetName, time: Duration) {
        let labels = TargetLabels {
            target: name.into_str(),
        };
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        self.behind.get_or_create(&labels).set(seconds);
    }
}
