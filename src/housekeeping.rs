//! Background tasks of a node: lease renewal, stock sharing, sharing of rate limits, cache refresh, stock
//! expiry and counts, data keys, audit checkpoints and their export, replication, certification, live
//! figures, purging.
//!
//! The tasks run independently. The lease is renewed until the last record has its verdict.

mod data_keys;
mod overview;
pub(crate) mod recorder;
mod replica;
mod replication;
mod sampler;
mod security_events;
mod stock_metrics;
pub(crate) mod traffic;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::{info, warn};
use vouchsafe_domain::error_chain::describe_chain;
use vouchsafe_security::environment::Environment;
use vouchsafe_store::StoreError;
use vouchsafe_store::{KeySweep, LEASE_S, PartitionChanges, RecentChanges};

use crate::config_change;
use crate::housekeeping::recorder::run_recorder;
use crate::housekeeping::stock_metrics::measure_stock;
use crate::service::JobState;
use crate::service_manager;

/// Three renewals per lease.
const LEASE_RENEWAL_INTERVAL: Duration = Duration::from_secs(LEASE_S.cast_unsigned() as u64 / 3);

/// Delay after a renewal that failed; until one succeeds, a node without orders is not ready.
const LEASE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Bounds how long a credential revoked on another node stays in force here.
const CHANGE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Bounds how long a test clock that was advanced at another node stays behind here.
const SANDBOX_CLOCK_INTERVAL: Duration = Duration::from_secs(2);

/// Refusals are limited per second.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(1);

const PURGE_INTERVAL: Duration = Duration::from_secs(60);

/// Bounds the delay of the audit entry and of the stored state only: shelves and stock levels check the
/// expiry themselves.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);

/// Until then, stock levels count the vouchers of an emptied chunk.
const COUNT_INTERVAL: Duration = Duration::from_secs(10);

/// Until its checkpoint is written, a change of an audit entry by another database user is undetectable.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(10);

/// Ticks once per period. After a late tick the next one follows a whole period later.
pub(crate) fn ticker(period: Duration) -> Interval {
    let mut tick = interval(period);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick
}

/// Runs a job once per period and logs `failed` when it fails. Never returns.
async fn every(
    period: Duration,
    failed: &'static str,
    mut job: impl AsyncFnMut() -> anyhow::Result<()>,
) -> Infallible {
    let mut tick = ticker(period);
    loop {
        tick.tick().await;
        attempt(failed, job()).await;
    }
}

/// Logs `failed` when the work fails.
async fn attempt<T>(failed: &'static str, work: impl Future<Output = Result<T, impl Into<anyhow::Error>>>) {
    if let Err(error) = work.await {
        warn!(error.message = describe_chain(&*error.into()), "{failed}");
    }
}

/// Renews the lease, and with it the service manager's watchdog; returns when the database no longer has this
/// start of the node.
pub(crate) async fn renew_lease(service: &JobState) {
    let mut tick = ticker(LEASE_RENEWAL_INTERVAL);
    loop {
        tick.tick().await;
        match service.node.renew_lease().await {
            Ok(true) => service_manager::keep_alive(),
            Ok(false) => return,
            Err(error) => {
                warn!(error.message = %error, "cannot renew the node lease");
                if service.engine.has_committed() {
                    service_manager::keep_alive();
                }
                tick.reset_after(LEASE_RETRY_DELAY);
            }
        }
    }
}

/// Runs all other background tasks. Never returns.
pub(crate) async fn run_housekeeping(service: &Arc<JobState>) -> Infallible {
    let (never, ..) = tokio::join!(
        poll_changes(service),
        service.shared_limits.run(),
        log_suppressed_refusals(service),
        purge(service),
        expire_stock(service),
        count_stock(service),
        measure_stock(service),
        data_keys::refresh_keys(service),
        data_keys::probe_wrapping_keys(service),
        data_keys::reencrypt_codes(service),
        write_checkpoints(service),
        replication::check(service),
        replica::compare(service),
        follow_sandbox_clocks(service),
        service.audit_export.run(),
        security_events::audit(service),
        run_recorder(service),
        overview::read(service),
        sampler::sample(service),
        traffic::store_minutes(service),
        service.engine.share_stock()
    );
    never
}

async fn poll_changes(service: &Arc<JobState>) -> Infallible {
    let mut tick = ticker(CHANGE_POLL_INTERVAL);
    let mut applied: Option<RecentChanges> = None;
    let mut discontinuities = 0;
    loop {
        tick.tick().await;
        let current = service.store.database.discontinuities();
        if std::mem::replace(&mut discontinuities, current) != current {
            // The numbers of lost changes are given again: everything is read.
            applied = None;
        }
        match service.store.audit_log.recent_changes().await {
            Ok(newest) if applied.as_ref() == Some(&newest) => {}
            Ok(newest) => {
                let changes = applied.as_ref().and_then(|applied| newest.unapplied(applied));
                match config_change::reload(service, changes).await {
                    Ok(()) => applied = Some(newest),
                    Err(error) => warn!(error.message = %error, "cannot load changes of other nodes"),
                }
            }
            Err(error) => warn!(error.message = %error, "cannot poll for changes of other nodes"),
        }
    }
}

/// Follows the test clocks that partners advance at other nodes.
async fn follow_sandbox_clocks(service: &JobState) -> Infallible {
    every(
        SANDBOX_CLOCK_INTERVAL,
        "cannot read the test clocks",
        async || {
            if service.environment == Environment::Sandbox
                && service
                    .store
                    .sandbox_clocks
                    .refresh(&service.sandbox_clocks)
                    .await?
            {
                service.engine.forget_responses();
            }
            Ok(())
        },
    )
    .await
}

async fn log_suppressed_refusals(service: &JobState) -> Infallible {
    let mut tick = ticker(REFUSAL_INTERVAL);
    loop {
        tick.tick().await;
        service.refusals.log_suppressed(service.clock.monotonic());
    }
}

async fn purge(service: &JobState) -> Infallible {
    let mut key_sweep = KeySweep::default();
    let jobs = &service.store;
    let mut tick = ticker(PURGE_INTERVAL);
    loop {
        tick.tick().await;
        service.rate_limits.evict_idle(service.clock.monotonic());
        service.in_flight.evict_idle();
        service.partner_clients.evict_idle();
        service.operator_clients.evict_idle();
        service.registry.evict_ended(service.clock.now());
        let keys = jobs.responses.purge_expired(&mut key_sweep);
        attempt("cannot purge expired idempotency keys", keys).await;
        attempt("cannot purge old counters of caps", jobs.partners.purge_usage()).await;
        attempt("cannot purge ended credentials", jobs.credentials.purge_ended()).await;
        attempt(
            "cannot purge old counts of rate limits",
            service.shared_limits.purge(),
        )
        .await;
        attempt(
            "cannot purge ended stock demands",
            service.node.purge_stock_demands(),
        )
        .await;
        attempt("cannot purge old deliveries", jobs.deliveries.purge_ended()).await;
        attempt(
            "cannot end expired change requests",
            jobs.change_requests.expire(),
        )
        .await;
        attempt(
            "cannot purge old change requests",
            jobs.change_requests.purge_ended(),
        )
        .await;
        attempt("cannot purge old bulk jobs", jobs.bulk_jobs.purge()).await;
        attempt(
            "cannot purge ended sessions of operators",
            jobs.operators.purge_sessions(),
        )
        .await;
        attempt(
            "cannot purge ended operator tokens",
            jobs.operators.purge_tokens(),
        )
        .await;
        let orders = jobs.waiting_orders.expedite_after_clock_change();
        attempt("cannot expedite waiting orders after a clock change", orders).await;
        let purchases = jobs.purchases.expedite_after_clock_change();
        attempt("cannot expedite purchases after a clock change", purchases).await;
        attempt(
            "cannot purge old counts of sold vouchers",
            jobs.stock.purge_sold(),
        )
        .await;
        attempt(
            "cannot remove old hours of webhook endpoints",
            service.store.webhook_health.remove_old(),
        )
        .await;
        attempt(
            "cannot maintain the log of delivery attempts",
            maintain_attempt_log(service),
        )
        .await;
    }
}

async fn maintain_attempt_log(service: &JobState) -> Result<(), StoreError> {
    let deliveries = &service.store.deliveries;
    let PartitionChanges { dropped, busy } = deliveries
        .maintain_attempt_partitions(service.delivery_log_days)
        .await?;
    if dropped + busy > 0 {
        info!(
            partitions.dropped = dropped,
            partitions.busy = busy,
            "old delivery attempts purged"
        );
    }
    Ok(())
}

async fn expire_stock(service: &JobState) -> Infallible {
    every(
        EXPIRY_INTERVAL,
        "cannot take expired vouchers out of sale",
        async || Ok(expire_all_stock(service).await?),
    )
    .await
}

/// Takes expired vouchers out of sale in batches, one transaction each, and notifies the shelves.
async fn expire_all_stock(service: &JobState) -> Result<(), StoreError> {
    loop {
        let batch = service.store.stock.expire_batch().await?;
        if batch.expired > 0 {
            info!(vouchers = batch.expired, "expired vouchers taken out of sale");
        }
        for sku in &batch.skus {
            service.engine.inventory.invalidate(sku);
        }
        if !batch.has_more {
            return Ok(());
        }
    }
}

async fn count_stock(service: &JobState) -> Infallible {
    every(COUNT_INTERVAL, "cannot count emptied chunks", async || {
        let mut started = Instant::now();
        while service.store.stock.count_emptied_chunks().await? {
            // A backlog takes at most half of a CPU.
            tokio::time::sleep(started.elapsed()).await;
            started = Instant::now();
        }
        Ok(())
    })
    .await
}

async fn write_checkpoints(service: &JobState) -> Infallible {
    every(
        CHECKPOINT_INTERVAL,
        "cannot write an audit checkpoint",
        async || Ok(write_due_checkpoints(service).await?),
    )
    .await
}

async fn write_due_checkpoints(service: &JobState) -> Result<(), StoreError> {
    loop {
        let key = service.keyring.vault().checkpoint_key();
        let Some(checkpoint) = service.store.audit_log.write_checkpoint(key).await? else {
            return Ok(());
        };
        // The log proves the newest checkpoints if they are deleted from the database.
        info!(
            checkpoint.number = checkpoint.number,
            checkpoint.entries = checkpoint.entries,
            checkpoint.hash = checkpoint.hash,
            "audit checkpoint written"
        );
        if !checkpoint.is_full() {
            return Ok(());
        }
    }
}
