//! What goes wrong with vendors, by chance, and how often it did.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trouble {
    /// The vendor takes its time.
    Slow,
    /// It cannot be reached: nothing is sold.
    Down,
    /// It sells, and its answer is lost.
    AnswerLost,
    /// It sells, and its answer is no answer: nothing of it is taken.
    Nonsense,
    /// It sells a part, and more later.
    PartForNow,
    /// It sells a part, and never more.
    PartForEver,
    OutOfStock,
    /// Our own books are out of reach for a moment.
    BooksFail,
}

impl Trouble {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Slow,
        Self::Down,
        Self::AnswerLost,
        Self::Nonsense,
        Self::PartForNow,
        Self::PartForEver,
        Self::OutOfStock,
        Self::BooksFail,
    ];

    /// How often it strikes where it may, of a hundred times.
    const fn percent(self) -> u32 {
        match self {
            Self::Slow => 20,
            Self::BooksFail => 2,
            _ => 10,
        }
    }
}

/// The chance of a world's vendors.
#[derive(Default)]
pub(super) struct Troubles {
    dice: Option<StdRng>,
    struck: BTreeMap<Trouble, u64>,
    /// How long every answer takes.
    always: Option<Duration>,
    /// Nobody reads or writes our books.
    closed: bool,
}

impl Troubles {
    pub(super) fn begin(&mut self, seed: u64) {
        self.dice = Some(StdRng::seed_from_u64(seed));
    }

    pub(super) fn end(&mut self) {
        self.dice = None;
    }

    pub(super) fn slow_down(&mut self, by: Duration) {
        self.always = Some(by);
    }

    pub(super) fn close_books(&mut self, closed: bool) {
        self.closed = closed;
    }

    /// Whether this strikes now.
    pub(super) fn strikes(&mut self, trouble: Trouble) -> bool {
        if self.closed && trouble == Trouble::BooksFail {
            return true;
        }
        let Some(dice) = &mut self.dice else {
            return false;
        };
        let strikes = dice.random_range(0..100) < trouble.percent();
        if strikes {
            *self.struck.entry(trouble).or_default() += 1;
        }
        strikes
    }

    /// How long the vendor takes, where it takes its time.
    pub(super) fn slowness(&mut self, most: Duration) -> Option<Duration> {
        if self.always.is_some() {
            return self.always;
        }
        if !self.strikes(Trouble::Slow) {
            return None;
        }
        let most_ms = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
        let dice = self.dice.as_mut()?;
        Some(Duration::from_millis(dice.random_range(1..=most_ms)))
    }

    pub(super) fn counts(&self) -> BTreeMap<Trouble, u64> {
        self.struck.clone()
    }
}
