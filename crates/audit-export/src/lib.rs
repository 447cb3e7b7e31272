//! Export of the audit log out of the database: to files of this node, and to an HTTP endpoint of the
//! deployment.
//!
//! All targets receive the same lines of JSON (`vouchsafe_domain::audit_export`) in order, at least once: the
//! entries of a checkpoint, then the checkpoint, whose hash and HMAC cover them. A file continues after its
//! last checkpoint, an endpoint after its position in the database.

mod endpoint;
mod file;
mod metrics;
mod settings;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, warn};
use vouchsafe_domain::clock::Clock;
use vouchsafe_domain::error_chain::describe_chain;
use vouchsafe_security::vault::fingerprint::FingerprintKey;
use vouchsafe_store::{AuditLog, ExportContent};

use self::endpoint::EndpointExport;
use self::file::FileExport;
pub use self::metrics::AuditExportMetrics;
use self::metrics::TargetName;
pub use self::settings::{AuditExportArgs, ExportTargets};

/// An entry is delayed by up to this and the interval of checkpoints.
const INTERVAL: Duration = Duration::from_secs(5);

/// The exports that the settings name.
pub struct AuditExport {
    targets: Vec<Target>,
    metrics: AuditExportMetrics,
}

enum Target {
    File(FileExport),
    Endpoint(EndpointExport),
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ExportOutcome {
    /// The target has all checkpoints.
    Complete,
    /// Another node exports to the endpoint, or waits after a failure.
    LeasedByOther,
    /// The target has checkpoints that the database does not have, as the text says. Nothing is exported.
    Mismatch(String),
}

impl AuditExport {
    /// The exports to these targets. Sends nothing yet. `key` hides the endpoint's URL in the database.
    ///
    /// # Errors
    /// If no HTTP client can be created.
    pub fn new(
        targets: ExportTargets,
        audit_log: &AuditLog,
        key: &FingerprintKey,
        clock: Arc<dyn Clock>,
        metrics: AuditExportMetrics,
    ) -> anyhow::Result<Self> {
        let file = |path, content| Target::File(FileExport::new(audit_log.clone(), path, content));
        let endpoint = targets.endpoint.map(|settings| {
            let id = key.hash_url(&settings.address());
            EndpointExport::new(audit_log.clone(), id, settings, clock).map(Target::Endpoint)
        });
        let targets = [
            targets
                .checkpoint_file
                .map(|path| file(path, ExportContent::Checkpoints)),
            targets.entry_file.map(|path| file(path, ExportContent::Entries)),
            endpoint.transpose()?,
        ];
        Ok(Self {
            targets: targets.into_iter().flatten().collect(),
            metrics,
        })
    }

    /// Exports new lines in a loop. The targets do not wait for each other. Never returns.
    pub async fn run(&self) -> Infallible {
        join_all(self.targets.iter().map(|target| self.run_target(target))).await;
        // Without a target.
        std::future::pending().await
    }

    async fn run_target(&self, target: &Target) {
        let name = target.name();
        let mut tick = interval(INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.metrics.record_complete(name);
        loop {
            tick.tick().await;
            let exported = match target {
                Target::File(file) => file.export().await,
                Target::Endpoint(endpoint) => endpoint.export().await,
            };
            match exported {
                Ok(ExportOutcome::Complete) => self.metrics.record_complete(name),
                Ok(ExportOutcome::LeasedByOther) => {}
                Ok(ExportOutcome::Mismatch(mismatch)) => error!(
                    error.message = mismatch,
                    audit_export.target = name.into_str(),
                    "cannot export the audit log"
                ),
                // A warning, as for everything that is tried again.
                Err(error) => warn!(
                    error.message = describe_chain(&*error),
                    audit_export.target = name.into_str(),
                    "cannot export the audit log"
                ),
            }
        }
    }
}

impl Target {
    const fn name(&self) -> TargetName {
        match self {
            Self::File(file) => match file.content() {
                ExportContent::Checkpoints => TargetName::CheckpointFile,
                ExportContent::Entries => TargetName::File,
            },
            Self::Endpoint(_) => TargetName::Url,
        }
    }
}
