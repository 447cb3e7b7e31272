//! Fault injection between the engine and its store: scripted, or random from a seed.
//!
//! Real databases and networks have every one of these faults. Each occurrence is counted, so that a random
//! walk can assert that all faults occurred.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::MutexGuard;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use strum::VariantArray;

use super::MemoryDatabase;
use super::batch::SentBatch;

/// Kind of an injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub enum FaultKind {
    /// The commit is slow and holds its locks meanwhile.
    Slow,
    /// The commit is aborted for lack of a resource.
    Busy,
    /// The commit is aborted because of a lock conflict.
    Contended,
    /// The commit is aborted because of its content.
    Poisoned,
    /// The commit is applied and its response is lost.
    ResponseLost,
    /// The commit never reaches the server.
    NeverSent,
    /// The connection is lost while the commit runs: it is applied later, unless the lane was recovered
    /// before.
    Detached,
    /// The commit reaches the server only after the lane was recovered.
    Delayed,
    /// A read is slow.
    SlowRead,
    ReadError,
    /// A stock claim is written and its response is lost.
    ClaimResponseLost,
    /// A recovery fails without effect.
    RecoveryError,
    /// A flush of deliveries is written and its response is lost.
    FlushResponseLost,
}

impl FaultKind {
    /// Faults of a commit, of which at most one occurs at a time.
    const COMMIT_FAULTS: [Self; 8] = [
        Self::Slow,
        Self::Busy,
        Self::Contended,
        Self::Poisoned,
        Self::ResponseLost,
        Self::NeverSent,
        Self::Detached,
        Self::Delayed,
    ];
}

/// Fault of one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// [`FaultKind::Slow`], by this duration.
    Slow(Duration),
    Busy,
    Contended,
    Poisoned,
    ResponseLost,
    NeverSent,
    /// [`FaultKind::Detached`], starting after this delay.
    Detached(Duration),
    Delayed,
}

impl Fault {
    const fn kind(self) -> FaultKind {
        match self {
            Self::Slow(_) => FaultKind::Slow,
            Self::Busy => FaultKind::Busy,
            Self::Contended => FaultKind::Contended,
            Self::Poisoned => FaultKind::Poisoned,
            Self::ResponseLost => FaultKind::ResponseLost,
            Self::NeverSent => FaultKind::NeverSent,
            Self::Detached(_) => FaultKind::Detached,
            Self::Delayed => FaultKind::Delayed,
        }
    }
}

/// Rate of each kind of random fault, per thousand calls.
#[derive(Debug, Clone)]
pub struct FaultRates {
    per_mille: BTreeMap<FaultKind, u32>,
    max_delay: Duration,
}

impl FaultRates {
    /// No faults. Delays of kinds added with [`Self::with`] are at most `longest`.
    #[must_use]
    pub const fn none(max_delay: Duration) -> Self {
        Self {
            per_mille: BTreeMap::new(),
            max_delay,
        }
    }

    /// The same rate for every kind.
    #[must_use]
    pub fn uniform(per_mille: u32, longest: Duration) -> Self {
        FaultKind::VARIANTS
            .iter()
            .fold(Self::none(longest), |rates, kind| rates.with(*kind, per_mille))
    }

    /// Sets the rate of one kind.
    #[must_use]
    pub fn with(mut self, kind: FaultKind, per_mille: u32) -> Self {
        self.per_mille.insert(kind, per_mille);
        let of_commit: u32 = FaultKind::COMMIT_FAULTS.iter().map(|kind| self.rate(*kind)).sum();
        assert!(
            of_commit <= 1_000,
            "a commit has at most one fault, so the rates of commit faults must not exceed 1000 in total"
        );
        self
    }

    fn rate(&self, kind: FaultKind) -> u32 {
        self.per_mille.get(&kind).copied().unwrap_or(0)
    }
}

/// Pending scripted faults, random faults, and counts.
#[derive(Debug, Default)]
pub(super) struct FaultInjector {
    scripted_commits: BTreeMap<String, VecDeque<Fault>>,
    scripted_calls: BTreeMap<(String, FaultKind), u32>,
    random: Option<RandomFaults>,
    counts: BTreeMap<FaultKind, u64>,
    commits_sent: u64,
    pub(super) order_counts: u64,
    pub(super) cap_reads: u64,
    /// Reads of counters of caps that fail from now on.
    pub(super) failing_cap_reads: u32,
    pub(super) flush_latency: FlushLatency,
    /// Every read and every flush fails.
    unavailable: bool,
    pub(super) delayed: VecDeque<SentBatch>,
}

/// Latency of a flush of deliveries.
#[derive(Debug, Clone, Copy, Default)]
pub struct FlushLatency {
    /// Before the flush is written.
    pub before: Duration,
    /// Time from the write to the response.
    pub after: Duration,
}

#[derive(Debug)]
struct RandomFaults {
    rng: StdRng,
    rates: FaultRates,
}

impl RandomFaults {
    fn should_fail(&mut self, kind: FaultKind) -> bool {
        self.rng.random_range(0..1_000) < self.rates.rate(kind)
    }

    fn random_delay(&mut self) -> Duration {
        self.rates.max_delay.mul_f64(self.rng.random_range(0.0..1.0))
    }

    fn commit_fault(&mut self) -> Option<Fault> {
        let mut roll = self.rng.random_range(0..1_000);
        let kind = FaultKind::COMMIT_FAULTS.into_iter().find(|kind| {
            let rate = self.rates.rate(*kind);
            let hit = roll < rate;
            roll = roll.saturating_sub(rate);
            hit
        })?;
        Some(match kind {
            FaultKind::Slow => Fault::Slow(self.random_delay()),
            FaultKind::Busy => Fault::Busy,
            FaultKind::Contended => Fault::Contended,
            FaultKind::Poisoned => Fault::Poisoned,
            FaultKind::ResponseLost => Fault::ResponseLost,
            FaultKind::NeverSent => Fault::NeverSent,
            FaultKind::Detached => Fault::Detached(self.random_delay()),
            _ => Fault::Delayed,
        })
    }
}

impl FaultInjector {
    fn count(&mut self, kind: FaultKind) {
        *self.counts.entry(kind).or_default() += 1;
    }

    /// Fault of the node's next commit, if any.
    pub(super) fn next_commit_fault(&mut self, node: &str) -> Option<Fault> {
        self.commits_sent += 1;
        let scripted = self.scripted_commits.get_mut(node).and_then(VecDeque::pop_front);
        let fault = scripted.or_else(|| self.random.as_mut().and_then(RandomFaults::commit_fault))?;
        self.count(fault.kind());
        Some(fault)
    }

    /// Whether this call of the node fails with this kind.
    pub(super) fn should_fail(&mut self, node: &str, kind: FaultKind) -> bool {
        if self.unavailable && kind == FaultKind::ReadError {
            return true;
        }
        let scripted = self
            .scripted_calls
            .get_mut(&(node.to_owned(), kind))
            .filter(|remaining| **remaining > 0);
        let occurs = match scripted {
            Some(remaining) => {
                *remaining -= 1;
                true
            }
            None => self
                .random
                .as_mut()
                .is_some_and(|faults| faults.should_fail(kind)),
        };
        if occurs {
            self.count(kind);
        }
        occurs
    }

    /// Delay of a read, if it is slow.
    pub(super) fn read_delay(&mut self) -> Option<Duration> {
        let faults = self.random.as_mut()?;
        let delay = faults
            .should_fail(FaultKind::SlowRead)
            .then(|| faults.random_delay())?;
        self.count(FaultKind::SlowRead);
        Some(delay)
    }
}

impl MemoryDatabase {
    pub(super) fn faults(&self) -> MutexGuard<'_, FaultInjector> {
        self.shared.faults.lock()
    }

    /// Queues a fault for the node's next commit without one.
    pub fn fail_commit(&self, node: &str, fault: Fault) {
        self.faults()
            .scripted_commits
            .entry(node.to_owned())
            .or_default()
            .push_back(fault);
    }

    /// Makes the node's next `times` calls fail: `ReadError`, `ClaimResponseLost` or `RecoveryError`.
    pub fn fail_calls(&self, node: &str, kind: FaultKind, times: u32) {
        let scripted = [
            FaultKind::ReadError,
            FaultKind::ClaimResponseLost,
            FaultKind::RecoveryError,
        ]
        .contains(&kind);
        assert!(scripted, "{kind:?} cannot be scripted for calls");
        *self
            .faults()
            .scripted_calls
            .entry((node.to_owned(), kind))
            .or_default() += times;
    }

    /// Enables random faults: the same ones for the same seed and the same calls.
    pub fn fail_randomly(&self, seed: u64, rates: FaultRates) {
        self.faults().random = Some(RandomFaults {
            rng: StdRng::seed_from_u64(seed),
            rates,
        });
    }

    pub fn set_flush_latency(&self, latency: FlushLatency) {
        self.faults().flush_latency = latency;
    }

    /// Makes reads and flushes fail, or succeed again.
    pub fn set_unavailable(&self, unavailable: bool) {
        self.faults().unavailable = unavailable;
    }

    /// Disables all faults; delayed and detached commits still arrive.
    pub fn heal(&self) {
        let mut faults = self.faults();
        faults.random = None;
        faults.scripted_commits.clear();
        faults.scripted_calls.clear();
    }

    /// Number of batches sent, regardless of their outcome.
    #[must_use]
    pub fn commits_sent(&self) -> u64 {
        self.faults().commits_sent
    }

    /// Number of requests to count a partner's orders, regardless of their outcome.
    #[must_use]
    pub fn order_counts(&self) -> u64 {
        self.faults().order_counts
    }

    /// Makes the next `times` reads of counters of caps fail, and no other read.
    pub fn fail_cap_reads(&self, times: u32) {
        self.faults().failing_cap_reads = times;
    }

    /// Number of requests to read counters of a partner's caps, regardless of their outcome.
    #[must_use]
    pub fn cap_reads(&self) -> u64 {
        self.faults().cap_reads
    }

    /// Count of each kind of fault, including zeros.
    #[must_use]
    pub fn fault_counts(&self) -> BTreeMap<FaultKind, u64> {
        let faults = self.faults();
        FaultKind::VARIANTS
            .iter()
            .map(|kind| (*kind, faults.counts.get(kind).copied().unwrap_or(0)))
            .collect()
    }
}
