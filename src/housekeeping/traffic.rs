//! Storage of this node's traffic by minute, and of its sales.

use std::convert::Infallible;
use std::time::Duration;

use super::attempt;
use crate::service::JobState;

const MINUTE: i64 = 60_000;

/// Stores traffic and sales at the end of each minute. Never returns.
pub(super) async fn store_minutes(service: &JobState) -> Infallible {
    loop {
        let now = service.clock.now();
        let passed = i64::from(now.second()) * 1_000 + i64::from(now.millisecond());
        tokio::time::sleep(Duration::from_millis((MINUTE - passed).max(0).cast_unsigned())).await;
        store(service).await;
    }
}

/// Stores traffic and sales since the last call. Also called at shutdown.
pub(crate) async fn store(service: &JobState) {
    let counts = service.live.take_unstored();
    let sales = service.metrics.journal().take_sales();
    if !sales.is_empty() {
        let added = service.store.traffic.add_sales(counts.period, sales);
        attempt("cannot store the sales of a minute", added).await;
    }
    attempt(
        "cannot store the traffic of a minute",
        service.store.traffic.add(counts),
    )
    .await;
}
