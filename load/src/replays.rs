//! How fast does a service answer keys that it knows from its database alone? Those of orders which its killed predecessor
//! acknowledged, drawn evenly from all of them.

use std::fmt;

use serde::Serialize;

use crate::audit::Check;
use crate::report::{RequestMetrics, request_metrics};
use crate::run::RunResult;
use crate::tally::Tally;
use crate::traffic::RequestKind;

/// What replays came to.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayReport {
    /// Orders that keys were drawn from.
    pub orders: usize,
    pub replays: RequestMetrics,
    /// New orders a second, of the same run before the restart.
    pub new_orders_per_s: f64,
}

impl ReplayReport {
    /// Of a run that asked for nothing else; `None` if there were none.
    #[must_use]
    pub fn from_run(ran: &RunResult, orders: usize, new_orders_per_s: f64) -> Option<Self> {
        let replays = ran.tally.background.get(&RequestKind::Duplicate)?;
        Some(Self {
            orders,
            replays: request_metrics(replays, ran.lasted),
            new_orders_per_s,
        })
    }
}

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (replays, new) = (self.replays.per_s, self.new_orders_per_s);
        write!(
            f,
            "replays after the restart: {replays:.0}/s of {} orders, {:.2} times the {new:.0} new orders/s of this run, \
             latency µs  {}",
            self.orders,
            replays / new,
            self.replays.latency_us
        )
    }
}

/// Whether every replay was answered as its order, byte for byte.
#[must_use]
pub fn check_replays(tally: &Tally) -> Check {
    let answered = tally
        .background
        .get(&RequestKind::Duplicate)
        .map_or(0, |replays| replays.latency_us.len());
    let broken = &tally.mismatches;
    let result = match &broken.first {
        Some(first) => Err(format!(
            "{} of {answered} differ, the first {first}",
            broken.count
        )),
        None if answered == 0 => Err("none was answered, so nothing is proven".to_owned()),
        None if broken.compared < answered => {
            Err(format!("{answered} answered, and {} compared", broken.compared))
        }
        None => Ok(format!("{answered}, each byte for byte as its order")),
    };
    Check::new("replayed after a restart", result)
}
