//! What goes wrong between the engine and its store: by script, or by chance from a seed, and counted either way.
//!
//! Rule: a fault is one that a real database and a real network have. Each is counted when it is drawn, so that a walk
//! can show that it met all of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::MemoryDatabase;
use super::commit::Sent;

/// The kinds of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// The commit takes long; its locks are held meanwhile.
    Slow,
    /// The commit fails for certain, because of the moment.
    Busy,
    /// The commit fails for certain, because something in it is in somebody's way.
    Contended,
    /// The commit fails for certain, because of what is in it.
    Poisoned,
    /// The commit is applied, and its answer is lost.
    AnswerLost,
    /// The commit never reaches the server, and nobody is told.
    NeverSent,
    /// The connection is lost while the commit runs on: applied some time later, unless the lane was recovered before.
    Adrift,
    /// The commit reaches the server only after the lane was recovered.
    Late,
    /// A read takes long.
    SlowRead,
    /// A read is not answered.
    ReadFails,
    /// A claim of stock is written, and not answered.
    ClaimLost,
    /// A recovery is not answered, and did nothing.
    RecoverFails,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Slow,
        Self::Busy,
        Self::Contended,
        Self::Poisoned,
        Self::AnswerLost,
        Self::NeverSent,
        Self::Adrift,
        Self::Late,
        Self::SlowRead,
        Self::ReadFails,
        Self::ClaimLost,
        Self::RecoverFails,
    ];

    /// Those that befall a commit; at most one of them does.
    const OF_COMMIT: [Self; 8] = [
        Self::Slow,
        Self::Busy,
        Self::Contended,
        Self::Poisoned,
        Self::AnswerLost,
        Self::NeverSent,
        Self::Adrift,
        Self::Late,
    ];
}

/// What befalls one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// [`FaultKind::Slow`], by so much.
    Slow(Duration),
    Busy,
    Contended,
    Poisoned,
    AnswerLost,
    NeverSent,
    /// [`FaultKind::Adrift`], beginning so much later.
    Adrift(Duration),
    Late,
}

impl Fault {
    const fn kind(self) -> FaultKind {
        match self {
            Self::Slow(_) => FaultKind::Slow,
            Self::Busy => FaultKind::Busy,
            Self::Contended => FaultKind::Contended,
            Self::Poisoned => FaultKind::Poisoned,
            Self::AnswerLost => FaultKind::AnswerLost,
            Self::NeverSent => FaultKind::NeverSent,
            Self::Adrift(_) => FaultKind::Adrift,
            Self::Late => FaultKind::Late,
        }
    }
}

/// How often each kind of fault strikes by chance, in a thousand calls.
#[derive(Debug, Clone)]
pub struct Rates {
    per_mille: BTreeMap<FaultKind, u32>,
    longest: Duration,
}

impl Rates {
    /// No fault; what is slow is at most `longest`.
    #[must_use]
    pub const fn none(longest: Duration) -> Self {
        Self {
            per_mille: BTreeMap::new(),
            longest,
        }
    }

    /// Every kind equally often.
    #[must_use]
    pub fn each(per_mille: u32, longest: Duration) -> Self {
        FaultKind::ALL
            .into_iter()
            .fold(Self::none(longest), |rates, kind| rates.with(kind, per_mille))
    }

    /// The same with one kind so often.
    #[must_use]
    pub fn with(mut self, kind: FaultKind, per_mille: u32) -> Self {
        self.per_mille.insert(kind, per_mille);
        let of_commit: u32 = FaultKind::OF_COMMIT.iter().map(|kind| self.of(*kind)).sum();
        assert!(
            of_commit <= 1_000,
            "at most one fault befalls a commit, so their rates are at most 1000 together"
        );
        self
    }

    fn of(&self, kind: FaultKind) -> u32 {
        self.per_mille.get(&kind).copied().unwrap_or(0)
    }
}

/// What is going to go wrong, and what did.
#[derive(Debug, Default)]
pub(super) struct Faults {
    commits: BTreeMap<String, VecDeque<Fault>>,
    calls: BTreeMap<(String, FaultKind), u32>,
    chance: Option<Chance>,
    counts: BTreeMap<FaultKind, u64>,
    /// How many batches were sent.
    sent: u64,
    /// Statements that have not arrived yet.
    pub(super) late: VecDeque<Sent>,
}

#[derive(Debug)]
struct Chance {
    rng: StdRng,
    rates: Rates,
}

impl Chance {
    fn strikes(&mut self, kind: FaultKind) -> bool {
        self.rng.random_range(0..1_000) < self.rates.of(kind)
    }

    fn span(&mut self) -> Duration {
        self.rates.longest.mul_f64(self.rng.random_range(0.0..1.0))
    }

    fn commit(&mut self) -> Option<Fault> {
        let mut roll = self.rng.random_range(0..1_000);
        let kind = FaultKind::OF_COMMIT.into_iter().find(|kind| {
            let rate = self.rates.of(*kind);
            let hit = roll < rate;
            roll = roll.saturating_sub(rate);
            hit
        })?;
        Some(match kind {
            FaultKind::Slow => Fault::Slow(self.span()),
            FaultKind::Busy => Fault::Busy,
            FaultKind::Contended => Fault::Contended,
            FaultKind::Poisoned => Fault::Poisoned,
            FaultKind::AnswerLost => Fault::AnswerLost,
            FaultKind::NeverSent => Fault::NeverSent,
            FaultKind::Adrift => Fault::Adrift(self.span()),
            _ => Fault::Late,
        })
    }
}

impl Faults {
    fn count(&mut self, kind: FaultKind) {
        *self.counts.entry(kind).or_default() += 1;
    }

    /// What befalls this commit of the node.
    pub(super) fn draw_commit(&mut self, node: &str) -> Option<Fault> {
        self.sent += 1;
        let scripted = self.commits.get_mut(node).and_then(VecDeque::pop_front);
        let fault = scripted.or_else(|| self.chance.as_mut().and_then(Chance::commit))?;
        self.count(fault.kind());
        Some(fault)
    }

    /// Whether this call of the node fails so.
    pub(super) fn draw(&mut self, node: &str, kind: FaultKind) -> bool {
        let scripted = self
            .calls
            .get_mut(&(node.to_owned(), kind))
            .filter(|left| **left > 0);
        let strikes = match scripted {
            Some(left) => {
                *left -= 1;
                true
            }
            None => self.chance.as_mut().is_some_and(|chance| chance.strikes(kind)),
        };
        if strikes {
            self.count(kind);
        }
        strikes
    }

    /// How much longer than usual a read takes.
    pub(super) fn draw_delay(&mut self) -> Option<Duration> {
        let chance = self.chance.as_mut()?;
        let delay = chance.strikes(FaultKind::SlowRead).then(|| chance.span())?;
        self.count(FaultKind::SlowRead);
        Some(delay)
    }
}

impl MemoryDatabase {
    pub(super) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next commit of this node that has no fault yet has this one.
    pub fn fail_commit(&self, node: &str, fault: Fault) {
        self.faults()
            .commits
            .entry(node.to_owned())
            .or_default()
            .push_back(fault);
    }

    /// The next `times` calls of this node fail so: `ReadFails`, `ClaimLost` or `RecoverFails`.
    pub fn fail_calls(&self, node: &str, kind: FaultKind, times: u32) {
        let scripted = [
            FaultKind::ReadFails,
            FaultKind::ClaimLost,
            FaultKind::RecoverFails,
        ]
        .contains(&kind);
        assert!(scripted, "{kind:?} does not befall a call by count");
        *self.faults().calls.entry((node.to_owned(), kind)).or_default() += times;
    }

    /// From now on faults strike by chance, the same for the same seed and the same calls.
    pub fn fail_by_chance(&self, seed: u64, rates: Rates) {
        self.faults().chance = Some(Chance {
            rng: StdRng::seed_from_u64(seed),
            rates,
        });
    }

    /// From now on nothing goes wrong; what is late or adrift still arrives.
    pub fn heal(&self) {
        let mut faults = self.faults();
        faults.chance = None;
        faults.commits.clear();
        faults.calls.clear();
    }

    /// How many batches were sent, whatever became of them.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.faults().sent
    }

    /// How often each kind of fault struck; every kind is there.
    #[must_use]
    pub fn fault_counts(&self) -> BTreeMap<FaultKind, u64> {
        let faults = self.faults();
        FaultKind::ALL
            .into_iter()
            .map(|kind| (kind, faults.counts.get(&kind).copied().unwrap_or(0)))
            .collect()
    }
}
