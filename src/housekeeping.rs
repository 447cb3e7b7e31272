//! What a service does beside serving: it keeps its lease, takes over what other nodes have changed, takes out of sale what
//! has expired, seals the trail, keeps watch for certifications, and clears away what is over.
//!
//! Rule: none of these waits for another, and the lease is renewed until the last record has its verdict.

use std::time::Duration;

use actix_web::web;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use crate::certification::keeper::keep_watch;
use crate::change;
use crate::service::Service;
use crate::store::LEASE_S;

/// How often the lease is renewed: three times before it would run out.
const RENEW_EVERY: Duration = Duration::from_secs(LEASE_S.cast_unsigned() as u64 / 3);

/// How often the trail is looked at for what operators have changed on other nodes: a revoked credential is in force
/// there for no longer.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often what is over is cleared away.
const CLEAR_EVERY: Duration = Duration::from_secs(60);

/// How often it is looked for vouchers that have expired: a level is a minute late at most, and a shelf never, since it
/// looks at the day itself.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// How often the trail is sealed: for so long an entry may be changed unseen by who can write to the database.
const SEAL_EVERY: Duration = Duration::from_secs(10);

/// Keeps the lease; returns when a later start of this node has taken over.
pub async fn keep_lease(service: &Service) {
    let mut tick = interval(RENEW_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        match service.node.renew_lease().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => warn!(%error, "the lease cannot be renewed now"),
        }
    }
}

/// Takes over what was changed elsewhere, and clears away what is over. Never returns.
pub async fn keep_house(service: &web::Data<Service>) {
    tokio::join!(
        follow(service),
        clear(service),
        sweep(service),
        seal(service),
        keep_watch(service)
    );
}

async fn follow(service: &web::Data<Service>) {
    let mut tick = interval(LOOK_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = None;
    loop {
        tick.tick().await;
        match service.store.newest_changes().await {
            Ok(newest) if seen.as_ref() == Some(&newest) => {}
            Ok(newest) => match change::take_over_changes(service).await {
                Ok(()) => seen = Some(newest),
                Err(error) => warn!(%error, "what operators have changed cannot be read now"),
            },
            Err(error) => warn!(%error, "the trail cannot be read now"),
        }
    }
}

async fn clear(service: &Service) {
    let mut tick = interval(CLEAR_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        service.rate_limits.clear_idle(service.clock.monotonic());
        service.register.forget_ended(service.clock.now());
        if let Err(error) = service.store.purge_expired_keys().await {
            warn!(%error, "old answers cannot be cleared away now");
        }
        if let Err(error) = service.store.purge_deliveries().await {
            warn!(%error, "old deliveries cannot be cleared away now");
        }
    }
}

async fn sweep(service: &Service) {
    let mut tick = interval(SWEEP_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Err(error) = sweep_all(service).await {
            warn!(%error, "what has expired cannot be taken out of sale now");
        }
    }
}

/// Step by step, each a transaction of its own, and each told to the shelves.
async fn sweep_all(service: &Service) -> Result<(), sqlx::Error> {
    loop {
        let swept = service.store.sweep_expired().await?;
        if swept.expired > 0 {
            info!(vouchers = swept.expired, "expired vouchers went out of sale");
        }
        for sku in &swept.skus {
            service.engine.inventory.doubt(sku);
        }
        if !swept.more {
            return Ok(());
        }
    }
}

async fn seal(service: &Service) {
    let mut tick = interval(SEAL_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Err(error) = seal_all(service).await {
            warn!(%error, "the trail cannot be sealed now");
        }
    }
}

/// The line is what the seals are compared with, should somebody remove the newest of them.
async fn seal_all(service: &Service) -> Result<(), sqlx::Error> {
    while let Some(seal) = service.store.seal_trail().await? {
        info!(
            seal.number = seal.seal,
            seal.entries = seal.entries,
            seal.hash = seal.hash,
            "the trail is sealed"
        );
        if !seal.is_full() {
            break;
        }
    }
    Ok(())
}
