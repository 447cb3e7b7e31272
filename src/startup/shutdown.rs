//! Graceful shutdown: open requests, the journal and deliveries end before the listeners and the node's
//! lease.

use std::time::Duration;

use actix_web::dev::ServerHandle;
use tracing::warn;

use crate::housekeeping::{recorder, renew_lease, traffic};
use crate::service::JobState;
use crate::service_manager;

/// After this time the next start settles the records in flight (contract §11).
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShutdownOutcome {
    Drained,
    /// The next start settles the records in flight.
    Incomplete,
}

/// Drains the service and ends the node's lease.
pub(super) async fn shut_down(service: &JobState, listeners: &[ServerHandle; 2]) -> ShutdownOutcome {
    service_manager::notify_stopping();
    let drained = tokio::select! {
        drained = tokio::time::timeout(DRAIN_DEADLINE, drain(service, listeners)) => drained.is_ok(),
        () = renew_lease(service) => false,
    };
    // Only now: a record in flight would find its stock gone.
    if drained && let Err(error) = service.node.end_lease().await {
        warn!(error.message = %error, "cannot end the node lease; other nodes take its stock over on demand");
    }
    if !drained {
        warn!(
            "shutdown incomplete after {} s; the next start settles the records in flight",
            DRAIN_DEADLINE.as_secs()
        );
    }
    if drained {
        ShutdownOutcome::Drained
    } else {
        ShutdownOutcome::Incomplete
    }
}

/// Ends long polls and purchasing, closes the gate, and waits for open requests, the journal and deliveries.
/// The listeners stay up until then, so that new requests get 503 instead of a connection reset.
async fn drain(service: &JobState, listeners: &[ServerHandle; 2]) {
    service.engine.long_polls.close();
    service.procurement.pause();
    service.gate.drain().await;
    service.engine.drain().await;
    service.shared_limits.leave().await;
    service.deliveries.drain().await;
    if let Some(log) = &service.attempt_log {
        log.drain().await;
    }
    // After the deliveries, so that the last ones are recorded.
    if let Some(watch) = &service.certification {
        recorder::flush(service, watch).await;
    }
    traffic::store(service).await;
    for listener in listeners {
        listener.stop(true).await;
    }
}
