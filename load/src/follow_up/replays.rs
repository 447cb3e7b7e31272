//! Replays after a restart: repeats orders of a killed predecessor, so that the service must read each stored
//! response from the database.

use std::fmt;

use serde::Serialize;

use crate::audit::Check;
use crate::run::metrics::{RequestMetrics, request_metrics};
use crate::run::result::RunResult;
use crate::tally::Tally;
use crate::traffic::request::RequestKind;

/// Rate and latency of replays.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayReport {
    /// Number of orders that the replays are drawn from.
    pub orders: usize,
    pub replays: RequestMetrics,
    /// New orders per second of the run before the restart.
    pub new_orders_per_s: f64,
}

impl ReplayReport {
    /// Evaluates a run that consists of replays; `None` if there were none.
    #[must_use]
    pub fn from_run(result: &RunResult, orders: usize, new_orders_per_s: f64) -> Option<Self> {
        let replays = result.tally.background.get(&RequestKind::Duplicate)?;
        Some(Self {
            orders,
            replays: request_metrics(replays, result.lasted),
            new_orders_per_s,
        })
    }
}

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (replays, new) = (self.replays.per_s, self.new_orders_per_s);
        write!(
            f,
            "replays after the restart: {replays:.0}/s of {} orders, {:.2} × the {new:.0} new orders/s of this run, \
             latency, ms  {}",
            self.orders,
            replays / new,
            self.replays.latency_ms
        )
    }
}

/// Checks that every replay returned the stored response byte for byte.
#[must_use]
pub fn check_replays(tally: &Tally) -> Check {
    let succeeded = tally
        .background
        .get(&RequestKind::Duplicate)
        .map_or(0, |replays| replays.latency_us.len());
    let mismatches = &tally.mismatches;
    let result = match &mismatches.first {
        Some(first) => Err(format!(
            "{} of {succeeded} responses differ, first: {first}",
            mismatches.count
        )),
        None if succeeded == 0 => Err("no replay succeeded; nothing is proven".to_owned()),
        None if mismatches.compared < succeeded => Err(format!(
            "only {} of {succeeded} responses were compared",
            mismatches.compared
        )),
        None => Ok(format!("{succeeded} identical responses")),
    };
    Check::new("replayed after a restart", result)
}
