//! `GET /actors`: live actors with mailbox depth and restarts.

use actix_web::{HttpResponse, web};
use vouchsafe_actors::supervisor::{ActorState, ActorStats};
use vouchsafe_wire::operator::actors::{
    self as wire, ActorKind, ActorList, ActorReading, ActorsQuery, LiveActor,
};

use crate::api::error::ApiError;
use crate::api::list_request::ValidatedQuery;
use crate::api::middleware::operator::Operator;
use crate::service::Service;

/// `GET /actors`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    ValidatedQuery(query): ValidatedQuery<ActorsQuery>,
) -> Result<HttpResponse, ApiError> {
    let all = live_actors(ActorKind::Wallet, service.engine.wallets.stats())
        .chain(live_actors(
            ActorKind::Inventory,
            service.engine.inventory.stats(),
        ))
        .chain(live_actors(ActorKind::Procurement, service.procurement.stats()))
        .chain(live_actors(ActorKind::Delivery, service.deliveries.stats()));
    let is_requested = |actor: &LiveActor| query.kind.is_none_or(|kind| actor.kind == kind);
    let actors = ActorList::new(all.filter(is_requested).collect(), query.limit.get());
    Ok(HttpResponse::Ok().json(actors))
}

fn live_actors<K: ToString>(
    kind: ActorKind,
    stats: impl IntoIterator<Item = (K, ActorStats)>,
) -> impl Iterator<Item = LiveActor> {
    stats.into_iter().map(move |(key, stats)| LiveActor {
        kind,
        key: key.to_string(),
        stats: reading(stats),
    })
}

fn reading(stats: ActorStats) -> ActorReading {
    ActorReading {
        mailbox_depth: stats.mailbox_depth,
        handled: stats.handled,
        restarts: stats.restarts,
        state: match stats.state {
            ActorState::Loading => wire::ActorState::Loading,
            ActorState::Ready => wire::ActorState::Ready,
            ActorState::Ended => wire::ActorState::Ended,
        },
    }
}
