//! What does a file of `scenarios/` say? Who orders what, how often, at which pace, and what is done to Postgres
//! meanwhile: sizes and shares alone, so that two runs of one file ask for the same.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::arrivals::Spacing;
use crate::deployment::seed::{SeedData, SeedSku, product_id};
use crate::traffic::RequestKind;
use crate::weights::Weights;

/// Most vouchers of one order (contract §3).
const MAX_VOUCHERS: u64 = 1_000;
/// Most items of one order (contract §3).
const MAX_ITEMS: usize = 100;
/// What each partner has to spend, in USD: no run comes near it.
const USD_EACH: u64 = 900_000_000;
/// Most connections of a run: as many files as a process is given on an ordinary machine, with room to spare.
const MAX_CONNECTIONS: usize = 16_384;

/// A scenario, as its file says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    /// What it is to show.
    pub question: String,
    /// Partners, each with a wallet of its own; they order alike.
    pub partners: usize,
    /// What is for sale.
    pub skus: Skus,
    /// What orders look like, and how often.
    pub orders: Vec<OrderForm>,
    /// What is asked for besides new orders. Weights.
    #[serde(default)]
    pub requests: Vec<RequestShare>,
    pub pace: Pace,
    /// Seconds before anything is measured.
    pub warm_up_s: u64,
    /// Seconds that are measured.
    pub seconds: u64,
    /// Whether each partner has an endpoint for webhooks, which takes every event.
    #[serde(default)]
    pub webhooks: bool,
    /// What holds up Postgres, if anything.
    #[serde(default)]
    pub pauses: Option<PauseSchedule>,
    /// How often the service is killed and started again when the load is over.
    #[serde(default)]
    pub restarts: u64,
    /// What is asked of it after that, if anything.
    #[serde(default)]
    pub replays: Option<ReplayPhase>,
    /// Outcomes that belong to it beside 2xx, such as `409 INSUFFICIENT_INVENTORY`: any other fails the audit.
    #[serde(default)]
    pub refusals: Vec<String>,
}

/// What is for sale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skus {
    pub count: usize,
    /// Vouchers of each: a number, or `{ "enough_for": … }` vouchers in all.
    pub vouchers: VoucherSupply,
    /// How orders choose among them.
    pub popularity: Popularity,
    /// Of which there is less.
    #[serde(default)]
    pub scarce: Option<ScarceSkus>,
}

/// How many vouchers there are of each SKU that is not scarce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum VoucherSupply {
    Each(u64),
    ByPopularity(ByPopularity),
}

/// Enough of each SKU, and not much more: the favourites of ten thousand have thousands of vouchers, the rest some twenty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByPopularity {
    /// So many vouchers can be drawn, one by one, and none of the SKUs is sold out.
    pub enough_for: u64,
}

impl VoucherSupply {
    /// Of a SKU which has this share of the popularity. What is drawn of it is spread like a Poisson variable: its mean, six
    /// times the root of it and ten more are not exceeded once in a hundred million times.
    fn of(self, share: f64) -> u64 {
        match self {
            Self::Each(vouchers) => vouchers,
            Self::ByPopularity(ByPopularity { enough_for }) => {
                let mean = enough_for as f64 * share;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a share of a count, and a little more"
                )]
                let vouchers = (mean + 6.0 * mean.sqrt()).ceil() as u64 + 10;
                vouchers
            }
        }
    }
}

/// How orders choose among SKUs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Popularity {
    Uniform,
    /// The n-th as often as 1/n to this power.
    Zipf(f64),
}

impl Popularity {
    /// As weights of so many SKUs; `None` if they are none.
    pub(crate) fn weights(self, count: usize) -> Option<Weights> {
        match self {
            Self::Uniform => Weights::uniform(count),
            Self::Zipf(exponent) => Weights::zipf(count, exponent),
        }
    }
}

/// Every so manieth SKU has fewer vouchers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScarceSkus {
    /// Which: 4 is every fourth.
    pub every: usize,
    /// Vouchers of each of these.
    pub vouchers: u64,
}

/// One form of order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderForm {
    /// How often, beside the others.
    pub weight: f64,
    /// How many different SKUs.
    pub skus: usize,
    pub quantity: u32,
}

impl fmt::Display for OrderForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vouchers = if self.quantity == 1 { "voucher" } else { "vouchers" };
        match self.skus {
            1 => write!(f, "{} {vouchers}", self.quantity),
            skus => write!(f, "{} {vouchers} of each of {skus} SKUs", self.quantity),
        }
    }
}

/// How often something is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestShare {
    pub kind: RequestKind,
    /// How often, beside the others.
    pub weight: f64,
}

/// When requests leave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pace {
    /// Each connection's next when its last was answered.
    Closed {
        connections: usize,
    },
    /// At times fixed beforehand.
    Open {
        /// Connections; a request that finds none free leaves late, and its latency shows it.
        connections: usize,
        /// Requests of all kinds.
        per_second: f64,
        /// How they are spread.
        spacing: Spacing,
    },
}

impl Pace {
    /// Its connections.
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

/// Postgres stops for a while, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseSchedule {
    /// From the end of one to the beginning of the next, in milliseconds.
    pub every_ms: u64,
    /// How long each lasts, in milliseconds.
    pub for_ms: u64,
}

/// Keys are replayed that the service knows from its database alone: the load ends by count, the service is killed and
/// started again, and then the keys of that load are drawn evenly, in a closed loop over as many connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayPhase {
    /// New orders that the load sends after its warm-up, in place of those of its seconds.
    pub orders: u64,
    pub seconds: u64,
}

/// Why a file is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It cannot be read.
    #[error("cannot read the scenario")]
    Read(#[source] std::io::Error),
    /// It is not of the form.
    #[error("the file is no scenario")]
    Parse(#[source] serde_json::Error),
    /// Its parts do not go together.
    #[error("the scenario cannot be played: {0}")]
    Invalid(&'static str),
}

impl Scenario {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ScenarioError`].
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        Self::parse(&std::fs::read(path).map_err(ScenarioError::Read)?)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// [`ScenarioError`].
    pub fn parse(text: &[u8]) -> Result<Self, ScenarioError> {
        let scenario: Self = serde_json::from_slice(text).map_err(ScenarioError::Parse)?;
        scenario.validate()?;
        Ok(scenario)
    }

    /// Whether it can be played; asked again after sizes were changed.
    ///
    /// # Errors
    /// [`ScenarioError::Senseless`] with the first that cannot.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let fits = |shape: &OrderForm| {
            let vouchers = u64::from(shape.quantity) * shape.skus as u64;
            shape.skus <= MAX_ITEMS && shape.skus <= self.skus.count && (1..=MAX_VOUCHERS).contains(&vouchers)
        };
        let rules = [
            (self.partners > 0, "there is no partner"),
            (self.skus.count > 0, "there is no SKU"),
            (!self.orders.is_empty(), "nothing is ordered"),
            (
                self.orders.iter().all(fits),
                "an order has more items than there are SKUs or the contract allows, or too many vouchers or none",
            ),
            (self.seconds > 0, "nothing is measured"),
            (
                (1..=MAX_CONNECTIONS).contains(&self.pace.connections()),
                "there is no connection, or more than 16,384",
            ),
            (
                self.skus.scarce.is_none_or(|scarce| scarce.every > 0),
                "every 0th SKU is none",
            ),
            (
                self.pauses
                    .is_none_or(|pauses| pauses.every_ms > 0 && pauses.for_ms > 0),
                "a pause has no length",
            ),
            (
                self.replays
                    .is_none_or(|replays| replays.orders > 0 && replays.seconds > 0),
                "nothing is replayed, or for no time",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, why)) => Err(ScenarioError::Invalid(why)),
            None => Ok(()),
        }
    }

    /// What a service must hold for it.
    #[must_use]
    pub fn seed_data(&self) -> SeedData {
        let Skus {
            count,
            vouchers,
            popularity,
            scarce,
        } = self.skus;
        let shares = popularity.weights(count);
        let sku = |number| SeedSku {
            product_id: product_id(number),
            vouchers: match scarce {
                Some(scarce) if (number + 1) % scarce.every == 0 => scarce.vouchers,
                _ => vouchers.of(shares.as_ref().map_or(0.0, |shares| shares.share(number))),
            },
        };
        SeedData {
            skus: (0..count).map(sku).collect(),
            partners: self.partners,
            usd_each: USD_EACH,
        }
    }

    /// The time before anything is measured.
    #[must_use]
    pub fn warm_up(&self) -> Duration {
        Duration::from_secs(self.warm_up_s)
    }

    /// The time that is measured.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

#[cfg(test)]
mod tests;
