//! `GET /actors` and `/actors/{kind}/{key}`: live actors with mailbox depth, handling times, restarts and
//! last error.

use actix_web::{HttpResponse, web};
use vouchsafe_wire::error_code::Code;
use vouchsafe_wire::operator::actors::{ActorHistory, ActorKind, ActorsQuery};

use crate::api::error::{ApiError, ApiResult};
use crate::api::list_request::ValidatedQuery;
use crate::api::operator::OperatorState;
use crate::live_actors::{find_actor, list_actors};

/// `GET /actors`.
pub(super) async fn list(
    service: web::Data<OperatorState>,
    ValidatedQuery(query): ValidatedQuery<ActorsQuery>,
) -> HttpResponse {
    HttpResponse::Ok().json(list_actors(&service, query))
}

/// `GET /actors/{kind}/{key}`.
pub(super) async fn get(service: web::Data<OperatorState>, path: web::Path<(String, String)>) -> ApiResult {
    let (kind, key) = path.into_inner();
    let kind: ActorKind = kind.parse().map_err(|_| actor_not_found())?;
    let mut actor = [find_actor(&service, kind, &key).ok_or_else(actor_not_found)?];
    service.live.actor_histories.add_rates(&mut actor);
    let [actor] = actor;
    Ok(HttpResponse::Ok().json(ActorHistory {
        samples: service.live.actor_histories.samples(kind, &key),
        actor,
    }))
}

fn actor_not_found() -> ApiError {
    ApiError::new(
        Code::ActorNotFound,
        "no such actor runs on this node; it starts with the next request that needs it",
    )
}
