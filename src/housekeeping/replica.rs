//! Comparison of the standby that operators read with the primary.

use std::convert::Infallible;
use std::time::Duration;

use tracing::{info, warn};

use super::every;
use crate::service::JobState;

const COMPARE_INTERVAL: Duration = Duration::from_secs(1);

/// Compares from time to time and logs each change, if there is a standby. Never returns.
pub(super) async fn compare(service: &JobState) -> Infallible {
    service.metrics.record_replica_lag(None);
    let Some(replica) = &service.replica else {
        return std::future::pending().await;
    };
    let mut was_read = None;
    every(COMPARE_INTERVAL, "cannot compare the replica", async || {
        let compared = replica.compare().await;
        let lag = replica.lag();
        service.metrics.record_replica_lag(lag);
        let is_read = lag.is_some();
        if was_read.replace(is_read) != Some(is_read) {
            if is_read {
                info!("lists of operators are read from the replica");
            } else {
                warn!(
                    "the replica does not answer or is behind: lists of operators are read from the primary"
                );
            }
        }
        Ok(compared?)
    })
    .await
}
