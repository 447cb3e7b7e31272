//! Body and query of `GET /actors`.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use utoipa::{IntoParams, ToSchema};

use crate::limit::Limit;

const DEFAULT_LIMIT: usize = 100;

/// More than a busy node has; such a response takes about 1 MB.
const MAX_LIMIT: usize = 10_000;

type ActorsLimit = Limit<MAX_LIMIT, DEFAULT_LIMIT>;

/// Query of live actors.
#[derive(Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ActorsQuery {
    /// Filter by kind.
    #[param(inline)]
    #[cfg_attr(feature = "clap", arg(long, value_parser = vouchsafe_domain::arguments::enum_parser::<ActorKind>()))]
    pub kind: Option<ActorKind>,
    /// Maximum number of actors.
    #[serde(default)]
    #[param(inline, required = false)]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "N", default_value_t = ActorsLimit::default(), help = ActorsLimit::help("actors"))
    )]
    pub limit: ActorsLimit,
}

/// Kind of an actor.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
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
#[schema(as = ActorTotals)]
pub struct ActorKindSummary {
    /// `wallet`, `inventory`, `procurement` or `delivery`.
    #[schema(value_type = String)]
    kind: ActorKind,
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
pub struct LiveActor {
    /// `wallet`, `inventory`, `procurement` or `delivery`.
    #[schema(value_type = String)]
    pub kind: ActorKind,
    /// Partner ID, SKU (product and denomination), vendor ID or endpoint ID.
    pub key: String,
    #[serde(flatten)]
    pub stats: ActorReading,
}

/// A snapshot of an actor's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ActorStats)]
pub struct ActorReading {
    /// Messages in the mailbox.
    pub mailbox_depth: usize,
    /// Messages handled since the process started.
    pub handled: u64,
    /// Number of restarts after a panic.
    pub restarts: u32,
    /// State of the actor.
    pub state: ActorState,
}

/// The state of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActorState {
    /// Loading its state from the store.
    Loading,
    /// Ready to decide.
    Ready,
    /// Ended; the next request restarts it.
    Ended,
}

impl ActorList {
    /// Totals of all actors, and up to `limit` of them, the busiest first.
    #[must_use]
    pub fn new(mut all: Vec<LiveActor>, limit: usize) -> Self {
        let sums = ActorKind::VARIANTS
            .iter()
            .map(|kind| summarize(*kind, &all))
            .collect();
        all.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
        let has_more = all.len() > limit;
        all.truncate(limit);
        Self {
            sums,
            data: all,
            has_more,
        }
    }
}

/// The key makes the order stable.
fn sort_key(actor: &LiveActor) -> (Reverse<usize>, Reverse<u64>, &str) {
    let ActorReading {
        mailbox_depth,
        handled,
        ..
    } = actor.stats;
    (Reverse(mailbox_depth), Reverse(handled), &actor.key)
}

fn summarize(kind: ActorKind, all: &[LiveActor]) -> ActorKindSummary {
    let mut sum = ActorKindSummary {
        kind,
        actors: 0,
        not_ready: 0,
        mailbox_depth: 0,
        handled: 0,
        restarts: 0,
    };
    for ActorReading {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn live_actor(kind: ActorKind, key: &str, mailbox_depth: usize, handled: u64) -> LiveActor {
        let stats = ActorReading {
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
            live_actor(ActorKind::Wallet, "b", 0, 5),
            live_actor(ActorKind::Inventory, "a", 0, 5),
            live_actor(ActorKind::Inventory, "c", 0, 9),
            live_actor(ActorKind::Wallet, "d", 2, 0),
        ];
        let list = ActorList::new(all, 3);
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
                (ActorKind::Wallet, 2, 2, 5),
                (ActorKind::Inventory, 2, 0, 14),
                (ActorKind::Procurement, 0, 0, 0),
                (ActorKind::Delivery, 0, 0, 0)
            ]
        );
    }
}
