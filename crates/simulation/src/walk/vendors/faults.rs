//! Random vendor faults and their counts.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use strum::VariantArray;

/// Kind of a vendor fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, VariantArray)]
pub enum VendorFault {
    /// The response is slow.
    Slow,
    /// The vendor cannot be reached; nothing is sold.
    Unreachable,
    /// The vendor sells and its response is lost.
    ResponseLost,
    /// The vendor sells and its response is invalid; nothing is imported.
    InvalidResponse,
    /// The vendor sells a part now and the rest later.
    PartialForNow,
    /// The vendor sells a part and no more.
    PartialFinal,
    OutOfStock,
    /// The service's purchase records are unavailable.
    RecordsUnavailable,
}

impl VendorFault {
    /// Probability in percent.
    const fn percent(self) -> u32 {
        match self {
            Self::Slow => 20,
            Self::RecordsUnavailable => 2,
            _ => 10,
        }
    }
}

/// Random source and counters of vendor faults.
#[derive(Default)]
pub(super) struct VendorFaults {
    rng: Option<StdRng>,
    counts: BTreeMap<VendorFault, u64>,
    /// Latency of every response.
    fixed_latency: Option<Duration>,
    records_unavailable: bool,
}

impl VendorFaults {
    pub(super) fn enable_random(&mut self, seed: u64) {
        self.rng = Some(StdRng::seed_from_u64(seed));
    }

    pub(super) fn disable_random(&mut self) {
        self.rng = None;
    }

    pub(super) fn set_latency(&mut self, by: Duration) {
        self.fixed_latency = Some(by);
    }

    pub(super) fn set_records_unavailable(&mut self, closed: bool) {
        self.records_unavailable = closed;
    }

    /// Whether this fault occurs now.
    pub(super) fn should_fail(&mut self, fault: VendorFault) -> bool {
        if self.records_unavailable && fault == VendorFault::RecordsUnavailable {
            return true;
        }
        let Some(rng) = &mut self.rng else {
            return false;
        };
        let fails = rng.random_range(0..100) < fault.percent();
        if fails {
            *self.counts.entry(fault).or_default() += 1;
        }
        fails
    }

    /// Latency of the response, if it is slow.
    pub(super) fn latency(&mut self, max: Duration) -> Option<Duration> {
        if self.fixed_latency.is_some() {
            return self.fixed_latency;
        }
        if !self.should_fail(VendorFault::Slow) {
            return None;
        }
        let max_ms = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
        let rng = self.rng.as_mut()?;
        Some(Duration::from_millis(rng.random_range(1..=max_ms)))
    }

    pub(super) fn counts(&self) -> BTreeMap<VendorFault, u64> {
        self.counts.clone()
    }
}
