//! Comparison of the standby that operators read with the primary.

use std::convert::Infallible;
use std::time::Duration;

use tracing::{info, warn};

use super::ticker;
use crate::service::JobState;

/// A read that meets a standby as it dies is repeated on the primary after this time.
const COMPARE_INTERVAL: Duration = Duration::from_millis(250);

/// Compares from time to time and logs each change, if there is a standby. Never returns.
pub(super) async fn compare(service: &JobState) -> Infallible {
    let Some(replica) = &service.replica else {
        return std::future::pending().await;
    };
    let mut was_read = None;
    let mut tick = ticker(COMPARE_INTERVAL);
    loop {
        tick.tick().await;
        let compared = replica.compare().await;
        let lag = replica.lag();
        service.metrics.record_replica_lag(lag);
        let is_read = lag.is_some();
        if was_read.replace(is_read) == Some(is_read) {
            continue;
        }
        match compared {
            _ if is_read => info!("lists of operators are read from the replica"),
            Ok(()) => warn!(
                "the replica is behind, or no standby of this database: lists of operators are read from the primary"
            ),
            Err(error) => warn!(
                error.message = %error,
                "cannot compare the replica: lists of operators are read from the primary"
            ),
        }
    }
}
