//! `GET /actors`: live actors with mailbox depth and restarts.

use actix_web::{HttpRequest, HttpResponse, web};
use vouchsafe_actors::supervisor::{ActorState, ActorStats};
use vouchsafe_wire::operator::actors::{self as wire, ActorList, ActorReading, LiveActor, parse_query};

use crate::api::error::ApiError;
use crate::api::middleware::operator::Operator;
use crate::service::Service;

/// `GET /actors?limit=&kind=`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let (limit, kind) = parse_query(request.query_string())?;
    let wallets = service.engine.wallets.stats();
    let shelves = service.engine.inventory.stats();
    let wallets = wallets
        .into_iter()
        .map(|(key, stats)| ("wallet", key.to_string(), stats));
    let shelves = shelves
        .into_iter()
        .map(|(key, stats)| ("inventory", key.to_string(), stats));
    let vendors = service.procurement.stats().into_iter();
    let vendors = vendors.map(|(key, stats)| ("procurement", key.to_string(), stats));
    let deliveries = service.deliveries.stats().into_iter();
    let deliveries = deliveries.map(|(key, stats)| ("delivery", key.to_string(), stats));
    let all = wallets
        .chain(shelves)
        .chain(vendors)
        .chain(deliveries)
        .map(|(kind, key, stats)| LiveActor {
            kind,
            key,
            stats: reading(stats),
        });
    let all: Vec<LiveActor> = all
        .filter(|actor| kind.as_ref().is_none_or(|kind| actor.kind == kind))
        .collect();
    Ok(HttpResponse::Ok().json(ActorList::new(all, limit)))
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
