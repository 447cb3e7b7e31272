//! Rate of sale of one SKU on this node, from which the size of a claim follows. Pure.
//!
//! Beside other nodes, a node owns what it sells within two seconds, and at least one chunk: what it does not
//! sell is for sale on them. A node that sold nothing for two seconds needs none. Alone, it gets more
//! (`claim_chunks_v1`).

use std::time::Duration;

use tokio::time::Instant;

/// Sales that a claim provides for. A claim takes some milliseconds; most of the rest bridges a slow
/// database.
const CLAIM_AHEAD: Duration = Duration::from_secs(2);

/// A rate is measured over at least this time: the first orders of a burst say little.
const MIN_PERIOD: Duration = Duration::from_millis(100);

/// Maximum of a claim: 16 chunks, so that the busiest SKU claims about once a second.
const MAX_TARGET: usize = 8_000;

/// The next claim begins when this share of the target is left.
const LOW_WATER_SHARE: usize = 4;

#[derive(Debug, Clone, Copy)]
pub(super) struct SaleRate {
    /// Vouchers held since the last claim.
    held: usize,
    claimed_at: Instant,
    last_held_at: Instant,
    /// Free vouchers that the last claim aimed for.
    target: usize,
}

impl SaleRate {
    pub(super) const fn start(now: Instant) -> Self {
        Self {
            held: 0,
            claimed_at: now,
            last_held_at: now,
            target: 0,
        }
    }

    pub(super) const fn record_held(&mut self, vouchers: usize, now: Instant) {
        self.held = self.held.saturating_add(vouchers);
        self.last_held_at = now;
    }

    /// Free vouchers that this node needs itself while other nodes demand some.
    pub(super) fn needed(&self, now: Instant) -> usize {
        if now.saturating_duration_since(self.last_held_at) < CLAIM_AHEAD {
            self.target
        } else {
            0
        }
    }

    /// Free vouchers below which stock is claimed ahead of demand.
    pub(super) const fn low_water(&self) -> usize {
        self.target / LOW_WATER_SHARE
    }

    /// Free vouchers that a claim at this time aims for.
    pub(super) fn start_claim(&mut self, now: Instant) -> usize {
        // A claim is repeated while stock is elsewhere: nothing can be held meanwhile, and the demand is as
        // large as before.
        if self.held == 0 && now.saturating_duration_since(self.last_held_at) < CLAIM_AHEAD {
            return self.target;
        }
        let period = now.saturating_duration_since(self.claimed_at).max(MIN_PERIOD);
        let target = self.held as u128 * CLAIM_AHEAD.as_millis() / period.as_millis().max(1);
        self.held = 0;
        self.claimed_at = now;
        self.target = usize::try_from(target).unwrap_or(MAX_TARGET).min(MAX_TARGET);
        self.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_provides_for_two_seconds_of_sales() {
        let start = Instant::now();
        // Vouchers held; milliseconds since the last claim; target and low water afterwards.
        let table = [
            (0, 0, 0, 0),
            (1, 0, 20, 5),
            (1, 10_000, 0, 0),
            (100, 1_000, 200, 50),
            (500, 50, 8_000, 2_000),
            (10_000, 1_000, 8_000, 2_000),
            (usize::MAX, 1, 8_000, 2_000),
        ];
        for (held, elapsed_ms, target, low_water) in table {
            let mut rate = SaleRate::start(start);
            rate.record_held(held, start);
            let claimed = rate.start_claim(start + Duration::from_millis(elapsed_ms));
            assert_eq!(
                (claimed, rate.low_water()),
                (target, low_water),
                "{held} in {elapsed_ms} ms"
            );
        }
    }

    #[test]
    fn each_claim_measures_from_the_one_before() {
        let start = Instant::now();
        let mut rate = SaleRate::start(start);
        rate.record_held(1_000, start);
        assert_eq!(rate.start_claim(start + Duration::from_secs(1)), 2_000);
        assert_eq!(rate.start_claim(start + Duration::from_secs(2)), 0);
    }

    #[test]
    fn repeated_claim_without_stock_keeps_the_rate() {
        let start = Instant::now();
        let mut rate = SaleRate::start(start);
        rate.record_held(1_000, start + Duration::from_millis(900));
        assert_eq!(rate.start_claim(start + Duration::from_secs(1)), 2_000);
        assert_eq!(rate.start_claim(start + Duration::from_millis(1_050)), 2_000);
        assert_eq!(rate.needed(start + Duration::from_millis(1_100)), 2_000);
        assert_eq!(rate.start_claim(start + Duration::from_millis(2_900)), 0);
    }

    #[test]
    fn node_without_sales_for_two_seconds_needs_no_stock() {
        let start = Instant::now();
        let mut rate = SaleRate::start(start);
        rate.record_held(100, start);
        rate.start_claim(start + Duration::from_secs(1));
        assert_eq!(rate.needed(start + Duration::from_millis(1_999)), 200);
        assert_eq!(rate.needed(start + Duration::from_secs(2)), 0);
    }
}
