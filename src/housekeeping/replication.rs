//! Check of the replication that `VOUCHSAFE_DURABILITY=replicated` requires.

use std::convert::Infallible;
use std::time::Duration;

use tracing::{error, info};
use vouchsafe_domain::replication::Replication;

use super::every;
use crate::service::JobState;
use crate::settings::Durability;

/// One statement. What changes between two checks is not found.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Checks from time to time, and logs each change, if replication is required. Never returns.
pub(super) async fn check(service: &JobState) -> Infallible {
    if service.durability == Durability::Local {
        return std::future::pending().await;
    }
    let mut logged = Replication::Unknown;
    every(
        CHECK_INTERVAL,
        "cannot check the replication of commits",
        async || {
            let found = service.node.check_replication().await?;
            service.metrics.record_replication(found.is_missing());
            if std::mem::replace(&mut logged, found) == found {
                return Ok(());
            }
            if found.is_missing() {
                error!(
                    reason = found.describe(),
                    "VOUCHSAFE_DURABILITY requires replication, which is missing"
                );
            } else {
                info!("{}", found.describe());
            }
            Ok(())
        },
    )
    .await
}
