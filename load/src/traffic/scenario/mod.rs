//! Scenario files (`scenarios/*.json`): partners, SKUs, order forms, request mix, pace and faults. They
//! contain only sizes and shares, so two runs of one file with one seed send the same requests.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use rand::distr::weighted::WeightedIndex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::pace::{DEFAULT_DRAIN_S, Pace};
use super::request::RequestKind;
use crate::condition::Condition;
use crate::deployment::seed::{SeedData, SeedSku, product_id};

/// Maximum vouchers per order (contract §3).
const MAX_VOUCHERS: u64 = 1_000;
/// Maximum items per order (contract §3).
const MAX_ITEMS: usize = 100;
/// Wallet balance of each partner in USD: more than any run spends.
const USD_EACH: u64 = 900_000_000;
/// Maximum connections of a run: below the usual limit of open files.
const MAX_CONNECTIONS: usize = 16_384;

/// Length of a scenario's hash: enough to tell scenarios apart.
const HASH_BYTES: usize = 6;

/// Content of a scenario file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    pub description: String,
    /// Number of partners, each with a separate wallet and an equal share of the orders.
    pub partners: usize,
    pub skus: Skus,
    pub orders: Vec<OrderForm>,
    /// Request mix; only new orders if empty.
    #[serde(default)]
    pub requests: Vec<RequestShare>,
    pub pace: Pace,
    pub warm_up_s: u64,
    pub seconds: u64,
    /// In an open loop, requests that are open this long after the load count as dropped.
    #[serde(default = "default_drain_s")]
    pub drain_s: u64,
    /// Whether each partner has a webhook endpoint that receives all events.
    #[serde(default)]
    pub webhooks: bool,
    #[serde(default)]
    pub consoles: Option<OpenConsoles>,
    #[serde(default)]
    pub pauses: Option<PauseSchedule>,
    /// Number of kills and restarts after the load.
    #[serde(default)]
    pub restarts: u64,
    #[serde(default)]
    pub replays: Option<ReplayPhase>,
    /// Expected outcomes besides 2xx, such as `409 INSUFFICIENT_INVENTORY`. Any other outcome fails the
    /// audit.
    #[serde(default)]
    pub refusals: Vec<String>,
    /// Conditions that must hold for the figures of a run, such as `p99 <= 50`.
    #[serde(default)]
    pub thresholds: Vec<Condition>,
}

fn default_drain_s() -> u64 {
    DEFAULT_DRAIN_S
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skus {
    pub count: usize,
    /// Vouchers per SKU: a number, or `{ "enough_for": … }` vouchers in total.
    pub vouchers: VoucherSupply,
    pub popularity: Popularity,
    #[serde(default)]
    pub scarce: Option<ScarceSkus>,
}

/// Stock of each SKU that is not scarce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum VoucherSupply {
    Each(u64),
    ByPopularity(ByPopularity),
}

/// Stock proportional to popularity: with ten thousand SKUs, popular ones get thousands of vouchers and
/// others about twenty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByPopularity {
    /// This number of vouchers can be sold one by one before any SKU sells out.
    pub enough_for: u64,
}

impl VoucherSupply {
    /// Stock of a SKU with this share of the orders. Sales follow a Poisson distribution; mean + 6 × √mean +
    /// 10 is exceeded less than once in a hundred million cases.
    fn of(self, share: f64) -> u64 {
        match self {
            Self::Each(vouchers) => vouchers,
            Self::ByPopularity(ByPopularity { enough_for }) => {
                let mean = enough_for as f64 * share;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a non-negative count"
                )]
                let vouchers = (mean + 6.0 * mean.sqrt()).ceil() as u64 + 10;
                vouchers
            }
        }
    }
}

/// Distribution of orders over SKUs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Popularity {
    Uniform,
    /// The n-th SKU has weight 1/n to this power.
    Zipf(f64),
}

impl Popularity {
    /// Weights of `count` SKUs.
    pub(crate) fn weights(self, count: usize) -> Result<WeightedIndex<f64>, ScenarioError> {
        let weight = |rank: usize| match self {
            Self::Uniform => 1.0,
            Self::Zipf(exponent) => (rank as f64).powf(-exponent),
        };
        weighted((1..=count).map(weight))
    }
}

/// A discrete distribution over the indexes of the weights.
pub(crate) fn weighted(weights: impl Iterator<Item = f64>) -> Result<WeightedIndex<f64>, ScenarioError> {
    WeightedIndex::new(weights)
        .map_err(|_| ScenarioError::Invalid("weights must not be negative, all zero, or too large"))
}

/// Every n-th SKU has less stock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScarceSkus {
    /// 4 means every fourth SKU.
    pub every: usize,
    pub vouchers: u64,
}

/// An order form: number of SKUs and vouchers per SKU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderForm {
    /// Share of the sum of all weights.
    pub weight: f64,
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

/// Weight of one request kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestShare {
    pub kind: RequestKind,
    /// Share of the sum of all weights.
    pub weight: f64,
}

/// Operators who watch the load: each console follows the live feed and loads a page every two seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenConsoles {
    pub count: u32,
    /// Actors that are started before the load and that no order of it uses.
    #[serde(default)]
    pub idle_actors: u32,
}

/// Repeated pauses of Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseSchedule {
    /// Milliseconds from the end of one pause to the start of the next.
    pub every_ms: u64,
    /// Length of each pause, in milliseconds.
    pub for_ms: u64,
}

/// Replays after a restart: the load ends after a number of orders, the service is killed and restarted, then
/// a closed loop over the same number of connections replays uniformly drawn keys of that load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayPhase {
    /// Number of new orders after the warm-up; replaces the measured time of the scenario.
    pub orders: u64,
    pub seconds: u64,
}

/// Reason for an invalid scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("cannot read the scenario")]
    Read(#[source] std::io::Error),
    #[error("the file is not a valid scenario")]
    Parse(#[source] serde_json::Error),
    #[error("invalid scenario: {0}")]
    Invalid(&'static str),
}

impl Scenario {
    /// Reads and validates a scenario file.
    ///
    /// # Errors
    /// [`ScenarioError`] if the file cannot be read, parsed or validated.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        Self::parse(&std::fs::read(path).map_err(ScenarioError::Read)?)
    }

    /// Parses and validates the content of a scenario file.
    ///
    /// # Errors
    /// [`ScenarioError`] if the file cannot be read, parsed or validated.
    pub fn parse(text: &[u8]) -> Result<Self, ScenarioError> {
        let scenario: Self = serde_json::from_slice(text).map_err(ScenarioError::Parse)?;
        scenario.validate()?;
        Ok(scenario)
    }

    /// Validates the scenario. Call it again after changing sizes.
    ///
    /// # Errors
    /// [`ScenarioError::Invalid`] with the first violated rule.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let is_valid_form = |shape: &OrderForm| {
            let vouchers = u64::from(shape.quantity) * shape.skus as u64;
            shape.skus <= MAX_ITEMS && shape.skus <= self.skus.count && (1..=MAX_VOUCHERS).contains(&vouchers)
        };
        let rules = [
            (self.partners > 0, "partners must be at least 1"),
            (self.skus.count > 0, "skus.count must be at least 1"),
            (!self.orders.is_empty(), "orders must not be empty"),
            (
                self.orders.iter().all(is_valid_form),
                "an order form needs 1 to 100 SKUs (at most skus.count) and 1 to 1,000 vouchers",
            ),
            (self.seconds > 0, "seconds must be at least 1"),
            (
                (1..=MAX_CONNECTIONS).contains(&self.pace.connections()),
                "connections must be 1 to 16,384",
            ),
            (
                self.skus.scarce.is_none_or(|scarce| scarce.every > 0),
                "scarce.every must be at least 1",
            ),
            (
                self.pauses
                    .is_none_or(|pauses| pauses.every_ms > 0 && pauses.for_ms > 0),
                "pauses.every_ms and pauses.for_ms must be at least 1",
            ),
            (
                self.replays
                    .is_none_or(|replays| replays.orders > 0 && replays.seconds > 0),
                "replays.orders and replays.seconds must be at least 1",
            ),
            (
                self.webhooks || self.requests.iter().all(|share| share.kind != RequestKind::Life),
                "requests of the kind life need webhooks",
            ),
        ];
        match rules.iter().find(|(is_satisfied, _)| !is_satisfied) {
            Some((_, reason)) => Err(ScenarioError::Invalid(reason)),
            None => Ok(()),
        }
    }

    /// Seed data of the deployment.
    #[must_use]
    pub fn seed_data(&self) -> SeedData {
        let Skus {
            count,
            vouchers,
            popularity,
            scarce,
        } = self.skus;
        // `None` for a scenario that `validate` rejects.
        let weights = popularity.weights(count).ok();
        let share = |number| {
            let weights = weights.as_ref()?;
            Some(weights.weight(number)? / weights.total_weight())
        };
        let sku = |number| SeedSku {
            product_id: product_id(number),
            vouchers: match scarce {
                Some(scarce) if (number + 1) % scarce.every == 0 => scarce.vouchers,
                _ => vouchers.of(share(number).unwrap_or_default()),
            },
        };
        SeedData {
            skus: (0..count).map(sku).collect(),
            partners: self.partners,
            usd_each: USD_EACH,
        }
    }

    /// Hash of everything that changes the load, but for its times: they are compared as numbers.
    #[must_use]
    pub fn hash(&self) -> String {
        let load = Self {
            name: String::new(),
            description: String::new(),
            thresholds: Vec::new(),
            warm_up_s: 0,
            seconds: 0,
            ..self.clone()
        };
        // A scenario comes from JSON.
        let text = serde_json::to_vec(&load).unwrap_or_default();
        hex::encode(&Sha256::digest(text)[..HASH_BYTES])
    }

    #[must_use]
    pub fn warm_up(&self) -> Duration {
        Duration::from_secs(self.warm_up_s)
    }

    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

#[cfg(test)]
mod tests;
