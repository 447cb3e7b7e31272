//! `GET /actors`: live actors with mailbox depth and restarts.

use std::cmp::Reverse;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_actors::supervisor::{ActorState, ActorStats};

use crate::api::middleware::operator::Operator;
use crate::api::error::ApiError;
use crate::service::Service;

pub const DEFAULT_LIMIT: usize = 100;

/// More than a busy node has; such a response takes about 1 MB.
pub const MAX_LIMIT: usize = 10_000;

pub const KINDS: [&str; 4] = ["wallet", "inventory", "procurement", "delivery"];

/// Live actors.
#[derive(Serialize, ToSchema)]
#[schema(as = LiveActors)]
pub struct ActorList {
    /// Totals per kind.
    sums: Vec<ActorKindSummary>,
    /// The busiest actors first: fullest mailbox, then most messages handled.
    data: Vec<LiveActor>,
    /// Whether there are more actors than `limit`.
    has_more: bool,
}

/// Totals of one kind of actor.
#[derive(Serialize, ToSchema)]
#[schema(as = ActorSum)]
struct ActorKindSummary {
    /// `wallet`, `inventory`, `procurement` or `delivery`.
    kind: &'static str,
    /// Number of live actors.
    actors: usize,
    /// Actors that are loading their state or have stopped.
    not_ready: usize,
    /// Messages in the mailboxes.
    mailbox_depth: usize,
    /// Messages handled since the process started.
    handled: u64,
    /// Restarts after a panic.
    restarts: u64,
}

/// A live actor.
#[derive(Serialize, ToSchema)]
#[schema(as = LiveActor)]
struct LiveActor {
    /// `wallet`, `inventory`, `procurement` or `delivery`.
    kind: &'static str,
    /// Partner ID, SKU (product and denomination), vendor ID or endpoint ID.
    key: String,
    #[serde(flatten)]
    stats: ActorStats,
}

/// `GET /actors?limit=&kind=`.
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let (limit, kind) = parse_query(&request)?;
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
        .map(|(kind, key, stats)| LiveActor { kind, key, stats });
    let all: Vec<LiveActor> = all
        .filter(|actor| kind.as_ref().is_none_or(|kind| actor.kind == kind))
        .collect();
    Ok(HttpResponse::Ok().json(actor_list(all, limit)))
}

fn actor_list(mut all: Vec<LiveActor>, limit: usize) -> ActorList {
    let sums = KINDS.map(|kind| summarize(kind, &all)).into_iter().collect();
    all.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    let has_more = all.len() > limit;
    all.truncate(limit);
    ActorList {
        sums,
        data: all,
        has_more,
    }
}

/// The key makes the order stable.
fn sort_key(actor: &LiveActor) -> (Reverse<usize>, Reverse<u64>, &str) {
    let ActorStats {
        mailbox_depth,
        handled,
        ..
    } = actor.stats;
    (Reverse(mailbox_depth), Reverse(handled), &actor.key)
}

fn summarize(kind: &'static str, all: &[LiveActor]) -> ActorKindSummary {
    let mut sum = ActorKindSummary {
        kind,
        actors: 0,
        not_ready: 0,
        mailbox_depth: 0,
        handled: 0,
        restarts: 0,
    };
    for ActorStats {
        mailbox_depth,
        handled,
        restarts,
        state,
    } in all
        .iter()
        .filter(|actor| actor.kind == kind)
        .map(|actor| actor.stats)
    {
        sum.actors += 1;
        sum.not_ready += usize::from(state != ActorState::Ready);
        sum.mailbox_depth += mailbox_depth;
        sum.handled += handled;
        sum.restarts += u64::from(restarts);
    }
    sum
}

fn parse_query(request: &HttpRequest) -> Result<(usize, Option<String>), ApiError> {
    let pairs = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
    let pairs = pairs.map_err(|_| ApiError::invalid_field("query", "expected name=value pairs"))?;
    let (mut limit, mut kind) = (DEFAULT_LIMIT, None);
    for (name, value) in pairs.into_inner() {
        match (name.as_str(), value.as_str()) {
            ("limit", text) => {
                let number = text
                    .parse()
                    .ok()
                    .filter(|number| (1..=MAX_LIMIT).contains(number));
                limit = number
                    .ok_or_else(|| ApiError::invalid_field("limit", format!("expected 1 to {MAX_LIMIT}")))?;
            }
            ("kind", kind_name) if KINDS.contains(&kind_name) => kind = Some(value),
            ("kind", _) => {
                let message = format!("expected one of {}", KINDS.join(", "));
                return Err(ApiError::invalid_field("kind", message));
            }
            _ => return Err(ApiError::invalid_field(name, "unknown parameter")),
        }
    }
    Ok((limit, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live_actor(kind: &'static str, key: &str, mailbox_depth: usize, handled: u64) -> LiveActor {
        let stats = ActorStats {
            mailbox_depth,
            handled,
            restarts: 1,
            state: ActorState::Ready,
        };
        LiveActor {
            kind,
            key: key.to_owned(),
            stats,
        }
    }

    #[test]
    fn limited_list_sorts_by_load_and_totals_count_all() {
        let all = vec![
            live_actor("wallet", "b", 0, 5),
            live_actor("inventory", "a", 0, 5),
            live_actor("inventory", "c", 0, 9),
            live_actor("wallet", "d", 2, 0),
        ];
        let list = actor_list(all, 3);
        let keys: Vec<_> = list.data.iter().map(|actor| actor.key.as_str()).collect();
        assert_eq!((keys, list.has_more), (vec!["d", "c", "a"], true));
        let sums: Vec<_> = list
            .sums
            .iter()
            .map(|s| (s.kind, s.actors, s.mailbox_depth, s.handled))
            .collect();
        assert_eq!(
            sums,
            [
                ("wallet", 2, 2, 5),
                ("inventory", 2, 0, 14),
                ("procurement", 0, 0, 0),
                ("delivery", 0, 0, 0)
            ]
        );
    }
}
