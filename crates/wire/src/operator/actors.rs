//! Body and query of `GET /actors`.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};

use crate::limit::Limit;

const DEFAULT_LIMIT: usize = 100;

/// More than a busy node has; such a response takes about 1 MB.
const MAX_LIMIT: usize = 10_000;

type ActorsLimit = Limit<MAX_LIMIT, DEFAULT_LIMIT>;

/// Query of live actors.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams, clap::Args)]
#[into_params(parameter_in = Query)]
pub struct ActorsQuery {
    /// Filter by kind.
    #[param(inline)]
    #[arg(long, value_parser = vouchsafe_domain::arguments::enum_parser::<ActorKind>())]
    pub kind: Option<ActorKind>,
    /// Maximum number of actors.
    #[serde(default)]
    #[param(inline, required = false)]
    #[arg(long, value_name = "N", default_value_t = ActorsLimit::default(), help = ActorsLimit::help("actors"))]
    pub limit: ActorsLimit,
}

/// Kind of an actor.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    ToSchema,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ActorKind {
    Wallet,
    Inventory,
    Procurement,
    Delivery,
}

/// Live actors.
#[derive(Default, Serialize, ToSchema)]
pub struct LiveActors {
    /// Totals per kind.
    sums: Vec<ActorTotalsBody>,
    /// The busiest actors first: fullest mailbox, then most messages handled.
    pub data: Vec<LiveActor>,
    /// Whether there are more actors than `limit`.
    has_more: bool,
}

/// A live actor and its last ten minutes.
#[derive(Serialize, ToSchema)]
pub struct ActorHistory {
    #[serde(flatten)]
    pub actor: LiveActor,
    /// A sample for each ten seconds, oldest first. They begin when the actor becomes one of the busiest, or
    /// when an operator reads this.
    pub samples: Vec<ActorSample>,
}

/// What an actor did in ten seconds.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActorSample {
    /// End of the period.
    #[serde(with = "vouchsafe_domain::timestamp")]
    pub at: OffsetDateTime,
    /// Messages in the mailbox, at the end of the period.
    pub mailbox_depth: usize,
    /// Messages handled per second.
    pub handled_per_s: f64,
}

/// Totals of one kind of actor.
#[derive(Serialize, ToSchema)]
#[schema(as = ActorTotals)]
pub struct ActorTotalsBody {
    /// `wallet`, `inventory`, `procurement` or `delivery`.
    #[schema(value_type = String)]
    pub kind: ActorKind,
    /// Number of live actors.
    pub actors: usize,
    /// Actors that are loading their state or have stopped.
    pub not_ready: usize,
    /// Messages in the mailboxes.
    pub mailbox_depth: usize,
    /// Messages handled since the process started, by ended actors too.
    pub handled: u64,
    /// Restarts after a panic, of ended actors too.
    pub restarts: u64,
}

/// A live actor.
#[derive(Serialize, ToSchema)]
pub struct LiveActor {
    /// `wallet`, `inventory`, `procurement` or `delivery`.
    #[schema(value_type = String)]
    pub kind: ActorKind,
    /// Partner ID, SKU (product and denomination), vendor ID or endpoint ID.
    pub key: String,
    #[serde(flatten)]
    pub stats: ActorStatsBody,
}

/// A snapshot of an actor.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ActorStats)]
pub struct ActorStatsBody {
    /// Messages in the mailbox.
    pub mailbox_depth: usize,
    /// Messages handled since the process started; webhook attempts of a delivery actor.
    pub handled: u64,
    /// Messages handled per second, in the last seconds; null until the actor was one of the busiest for some
    /// seconds.
    #[schema(required)]
    pub handled_per_s: Option<f64>,
    /// Half of the messages since the process started were handled in less than this time. Microseconds, a
    /// power of two; null before the first.
    #[schema(required)]
    pub handling_p50_us: Option<u64>,
    /// 99 of 100 messages since the process started were handled in less than this time. Microseconds, a
    /// power of two; null before the first.
    #[schema(required)]
    pub handling_p99_us: Option<u64>,
    /// Number of restarts after a panic.
    pub restarts: u32,
    /// State of the actor.
    pub state: ActorState,
    /// Its last error since the process started; null if there was none.
    #[schema(required)]
    pub last_error: Option<ActorErrorBody>,
}

/// An error of an actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ActorError)]
pub struct ActorErrorBody {
    /// When it occurred.
    #[serde(with = "vouchsafe_domain::timestamp")]
    pub at: OffsetDateTime,
    /// What happened.
    pub message: String,
}

/// The state of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActorState {
    /// Loading its state from the store.
    Loading,
    /// Ready to decide.
    Ready,
    /// Holds nothing and waits for work, such as the delivery actor of an endpoint that failed until its next
    /// attempt.
    Idle,
    /// Ended; the next request restarts it.
    Ended,
}

impl LiveActors {
    /// The summaries of all kinds, and up to `limit` of the busiest actors of each.
    #[must_use]
    pub fn new(sums: Vec<ActorTotalsBody>, mut busiest: Vec<LiveActor>, limit: usize) -> Self {
        busiest.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
        busiest.truncate(limit);
        let actors: usize = sums.iter().map(|sum| sum.actors).sum();
        Self {
            has_more: actors > busiest.len(),
            sums,
            data: busiest,
        }
    }
}

/// The key makes the order stable.
fn sort_key(actor: &LiveActor) -> (Reverse<usize>, Reverse<u64>, &str) {
    let ActorStatsBody {
        mailbox_depth,
        handled,
        ..
    } = actor.stats;
    (Reverse(mailbox_depth), Reverse(handled), &actor.key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live_actor(kind: ActorKind, key: &str, mailbox_depth: usize, handled: u64) -> LiveActor {
        let stats = ActorStatsBody {
            mailbox_depth,
            handled,
            handled_per_s: None,
            handling_p50_us: None,
            handling_p99_us: None,
            restarts: 1,
            state: ActorState::Ready,
            last_error: None,
        };
        LiveActor {
            kind,
            key: key.to_owned(),
            stats,
        }
    }

    #[test]
    fn actors_of_all_kinds_are_sorted_by_load() {
        let busiest = vec![
            live_actor(ActorKind::Wallet, "b", 0, 5),
            live_actor(ActorKind::Inventory, "a", 0, 5),
            live_actor(ActorKind::Inventory, "c", 0, 9),
            live_actor(ActorKind::Wallet, "d", 2, 0),
        ];
        let summary = ActorTotalsBody {
            kind: ActorKind::Wallet,
            actors: 4,
            not_ready: 0,
            mailbox_depth: 2,
            handled: 19,
            restarts: 4,
        };
        let list = LiveActors::new(vec![summary], busiest, 3);
        let keys: Vec<_> = list.data.iter().map(|actor| actor.key.as_str()).collect();
        assert_eq!((keys, list.has_more), (vec!["d", "c", "a"], true));
    }
}
