//! `/actors`: every live actor, how busy it is and how often it was rebuilt.

use std::cmp::Reverse;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;
use vouchsafe_actors::supervisor::{ActorState, Reading};

use super::operator::Operator;
use crate::errors::ApiError;
use crate::service::Service;

/// How many are shown unless `limit` says otherwise.
pub(super) const DEFAULT_SHOWN: usize = 100;

/// Most that are shown: all of a busy node, and still a page of a megabyte.
pub(super) const MAX_SHOWN: usize = 10_000;

/// The kinds of actors.
pub(super) const KINDS: [&str; 4] = ["wallet", "inventory", "procurement", "delivery"];

/// The live actors.
#[derive(Serialize, ToSchema)]
#[schema(as = LiveActors)]
pub(super) struct Answer {
    /// All of a kind together, for each kind.
    sums: Vec<Sum>,
    /// The busiest first.
    data: Vec<Shown>,
    /// Whether there are more than are shown.
    has_more: bool,
}

/// All actors of a kind together.
#[derive(Serialize, ToSchema)]
#[schema(as = ActorSum)]
struct Sum {
    /// `wallet`, `inventory`, `procurement` or `delivery`.
    kind: &'static str,
    /// How many there are.
    actors: usize,
    /// How many of them do not decide now.
    not_ready: usize,
    /// Messages that wait.
    mailbox_depth: usize,
    /// Messages handled since the process began.
    handled: u64,
    /// How often one was rebuilt.
    restarts: u64,
}

/// A live actor.
#[derive(Serialize, ToSchema)]
#[schema(as = LiveActor)]
struct Shown {
    /// `wallet`, `inventory`, `procurement` or `delivery`.
    kind: &'static str,
    /// Whose it is: a partner, a SKU as product and denomination, a vendor, or an endpoint.
    key: String,
    #[serde(flatten)]
    reading: Reading,
}

/// `GET /actors`: sums of each kind, and the busiest first. `limit` 1 to 10,000, `kind` one of [`KINDS`].
pub(super) async fn list(
    service: web::Data<Service>,
    _operator: Operator,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let (limit, kind) = read_query(&request)?;
    let wallets = service.engine.wallets.readings();
    let shelves = service.engine.inventory.readings();
    let wallets = wallets
        .into_iter()
        .map(|(key, reading)| ("wallet", key.to_string(), reading));
    let shelves = shelves
        .into_iter()
        .map(|(key, reading)| ("inventory", key.to_string(), reading));
    let vendors = service.procurement.readings().into_iter();
    let vendors = vendors.map(|(key, reading)| ("procurement", key.to_string(), reading));
    let deliveries = service.deliveries.readings().into_iter();
    let deliveries = deliveries.map(|(key, reading)| ("delivery", key.to_string(), reading));
    let all = wallets
        .chain(shelves)
        .chain(vendors)
        .chain(deliveries)
        .map(|(kind, key, reading)| Shown { kind, key, reading });
    let all: Vec<Shown> = all
        .filter(|actor| kind.as_ref().is_none_or(|kind| actor.kind == kind))
        .collect();
    Ok(HttpResponse::Ok().json(answer(all, limit)))
}

fn answer(mut all: Vec<Shown>, limit: usize) -> Answer {
    let sums = KINDS.map(|kind| sum(kind, &all)).into_iter().collect();
    all.sort_by(|a, b| order_of(a).cmp(&order_of(b)));
    let has_more = all.len() > limit;
    all.truncate(limit);
    Answer {
        sums,
        data: all,
        has_more,
    }
}

/// The fullest mailbox first, then the one with most work done; equal ones by name, so that the order is the same again.
fn order_of(actor: &Shown) -> (Reverse<usize>, Reverse<u64>, &str) {
    let Reading {
        mailbox_depth,
        handled,
        ..
    } = actor.reading;
    (Reverse(mailbox_depth), Reverse(handled), &actor.key)
}

fn sum(kind: &'static str, all: &[Shown]) -> Sum {
    let mut sum = Sum {
        kind,
        actors: 0,
        not_ready: 0,
        mailbox_depth: 0,
        handled: 0,
        restarts: 0,
    };
    for Reading {
        mailbox_depth,
        handled,
        restarts,
        state,
    } in all
        .iter()
        .filter(|actor| actor.kind == kind)
        .map(|actor| actor.reading)
    {
        sum.actors += 1;
        sum.not_ready += usize::from(state != ActorState::Ready);
        sum.mailbox_depth += mailbox_depth;
        sum.handled += handled;
        sum.restarts += u64::from(restarts);
    }
    sum
}

fn read_query(request: &HttpRequest) -> Result<(usize, Option<String>), ApiError> {
    let pairs = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
    let pairs = pairs.map_err(|_| ApiError::invalid("query", "expected name=value pairs"))?;
    let (mut limit, mut kind) = (DEFAULT_SHOWN, None);
    for (name, value) in pairs.into_inner() {
        match (name.as_str(), value.as_str()) {
            ("limit", text) => {
                let number = text
                    .parse()
                    .ok()
                    .filter(|number| (1..=MAX_SHOWN).contains(number));
                limit =
                    number.ok_or_else(|| ApiError::invalid("limit", format!("expected 1 to {MAX_SHOWN}")))?;
            }
            ("kind", word) if KINDS.contains(&word) => kind = Some(value),
            ("kind", _) => {
                let message = format!("expected one of {}", KINDS.join(", "));
                return Err(ApiError::invalid("kind", message));
            }
            _ => return Err(ApiError::invalid(name, "this list has no such parameter")),
        }
    }
    Ok((limit, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: &'static str, key: &str, mailbox_depth: usize, handled: u64) -> Shown {
        let reading = Reading {
            mailbox_depth,
            handled,
            restarts: 1,
            state: ActorState::Ready,
        };
        Shown {
            kind,
            key: key.to_owned(),
            reading,
        }
    }

    #[test]
    fn the_busiest_come_first_and_sums_count_all() {
        let all = vec![
            shown("wallet", "b", 0, 5),
            shown("inventory", "a", 0, 5),
            shown("inventory", "c", 0, 9),
            shown("wallet", "d", 2, 0),
        ];
        let answer = answer(all, 3);
        let keys: Vec<_> = answer.data.iter().map(|actor| actor.key.as_str()).collect();
        assert_eq!((keys, answer.has_more), (vec!["d", "c", "a"], true));
        let sums: Vec<_> = answer
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
