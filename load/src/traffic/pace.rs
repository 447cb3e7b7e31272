//! Pace, length and parts of a load run.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Deadline of the drain after an open loop in seconds, unless the run sets another: a backlog that takes
/// longer says nothing new.
pub const DEFAULT_DRAIN_S: u64 = 10;

/// Closed or open loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pace {
    /// Each connection sends its next request after the response to the previous one.
    Closed { connections: usize },
    /// Requests leave at times fixed before the run.
    Open {
        /// A request that finds no free connection leaves late; the delay is part of its latency.
        connections: usize,
        per_second: f64,
        spacing: Spacing,
    },
}

impl Pace {
    #[must_use]
    pub fn connections(self) -> usize {
        match self {
            Self::Closed { connections } | Self::Open { connections, .. } => connections,
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { connections } => write!(f, "closed loop over {connections} connections"),
            Self::Open {
                connections,
                per_second,
                spacing,
            } => write!(
                f,
                "open loop of {per_second} requests/s ({spacing}) over {connections} connections"
            ),
        }
    }
}

/// Distribution of the arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// Equal intervals
    Constant,
    /// Exponential intervals, as from independent callers; includes bursts
    Poisson,
}

impl fmt::Display for Spacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Constant => "constant",
            Self::Poisson => "poisson",
        })
    }
}

/// When a run ends, not counting the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLength {
    Orders(u64),
    /// After this time; requests in flight are awaited.
    Time(Duration),
}

impl fmt::Display for RunLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Orders(orders) => write!(f, "{orders} orders"),
            Self::Time(time) => write!(f, "{} s", time.as_secs()),
        }
    }
}

/// Part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Audited but not measured.
    WarmUp,
    /// Audited and measured.
    Measured,
}
