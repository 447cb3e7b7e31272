//! Actors of this node: totals by kind, the busiest ones, and their histories.

use std::time::Duration;

use strum::VariantArray as _;
use time::OffsetDateTime;
use vouchsafe_actors::ports::vendors::VendorId;
use vouchsafe_actors::supervisor::{ActorDetails, ActorScan, ActorState, ActorStats, BusyActor};
use vouchsafe_wire::operator::actors::{
    self as wire, ActorErrorBody, ActorKind, ActorStatsBody, ActorTotalsBody, ActorsQuery, LiveActor,
    LiveActors,
};

use crate::service::Service;

/// The actors of this node: totals by kind and the busiest ones.
pub(crate) fn list_actors(service: &Service, query: ActorsQuery) -> LiveActors {
    let (engine, limit) = (&service.engine, query.limit.get());
    let now = service.clock.now();
    let of_kind = |kind| match kind {
        ActorKind::Wallet => describe(kind, engine.wallets.scan(limit), now),
        ActorKind::Inventory => describe(kind, engine.inventory.scan(limit), now),
        ActorKind::Procurement => describe(kind, service.procurement.scan(limit), now),
        ActorKind::Delivery => describe(kind, service.deliveries.scan(limit), now),
    };
    let kinds = ActorKind::VARIANTS.iter().copied();
    let requested = kinds.filter(|kind| query.kind.is_none_or(|requested| requested == *kind));
    let (sums, busiest): (Vec<_>, Vec<_>) = requested.map(of_kind).unzip();
    let mut list = LiveActors::new(sums, busiest.into_iter().flatten().collect(), limit);
    service.live.actor_histories.add_rates(&mut list.data);
    list
}

/// One actor of this node; `None` if it does not run.
pub(crate) fn find_actor(service: &Service, kind: ActorKind, key: &str) -> Option<LiveActor> {
    let engine = &service.engine;
    let now = service.clock.now();
    let actor = match kind {
        ActorKind::Wallet => live_actor(kind, engine.wallets.describe(&key.parse().ok()?)?, now),
        ActorKind::Inventory => live_actor(kind, engine.inventory.describe(&key.parse().ok()?)?, now),
        ActorKind::Procurement => live_actor(kind, service.procurement.describe(&VendorId(key.into()))?, now),
        ActorKind::Delivery => live_actor(kind, service.deliveries.describe(&key.parse().ok()?)?, now),
    };
    Some(actor)
}

/// Adds to the histories of the busiest actors and of those that an operator has looked at.
pub(crate) fn record_actors(service: &Service, busiest: &LiveActors) {
    let histories = &service.live.actor_histories;
    histories.record(
        &busiest.data,
        |kind, key| find_actor(service, kind, key),
        service.clock.now(),
    );
}

fn describe<K: ToString>(
    kind: ActorKind,
    ActorScan { totals, busiest }: ActorScan<K>,
    now: OffsetDateTime,
) -> (ActorTotalsBody, Vec<LiveActor>) {
    let summary = ActorTotalsBody {
        kind,
        actors: totals.actors,
        not_ready: totals.not_ready,
        mailbox_depth: totals.mailbox_depth,
        handled: totals.handled,
        restarts: totals.restarts,
    };
    let actors = busiest.into_iter().map(|actor| live_actor(kind, actor, now));
    (summary, actors.collect())
}

fn live_actor<K: ToString>(kind: ActorKind, actor: BusyActor<K>, now: OffsetDateTime) -> LiveActor {
    LiveActor {
        kind,
        key: actor.key.to_string(),
        stats: reading(actor.stats, actor.details, now),
    }
}

fn reading(stats: ActorStats, details: ActorDetails, now: OffsetDateTime) -> ActorStatsBody {
    ActorStatsBody {
        mailbox_depth: stats.mailbox_depth,
        handled: stats.handled,
        handled_per_s: None,
        handling_p50_us: details.handling_p50.map(whole_micros),
        handling_p99_us: details.handling_p99.map(whole_micros),
        restarts: stats.restarts,
        state: match stats.state {
            ActorState::Loading => wire::ActorState::Loading,
            ActorState::Ready => wire::ActorState::Ready,
            ActorState::Idle => wire::ActorState::Idle,
            ActorState::Ended => wire::ActorState::Ended,
        },
        last_error: details.last_error.map(|error| ActorErrorBody {
            at: now - error.at.elapsed(),
            message: error.message,
        }),
    }
}

fn whole_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
