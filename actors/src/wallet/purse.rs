//! What a wallet may spend in one currency: its newest known balance, less what is set aside. Pure.
//!
//! Rule: what can be spent goes down at the decision and up only after a commit. A refusal stands only if it would stand
//! with everything that is set aside given back.

use crate::domain::ledger::Receipt;
use crate::domain::money::Amount;

/// Most that bookings fill a wallet to, in minor units: a ninth of what 64 bits count. What others book at the same time,
/// and what comes back by refunds, still finds room above it, so that no commit fails for a sum that cannot be counted.
pub const MAX_BALANCE: Amount = Amount::from_minor(1_000_000_000_000_000_000);

/// What is asked of a purse. Amounts are in minor units and not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// To set this much aside; nothing only asks to be told what the commit says of the wallet.
    Take(Amount),
    /// Room for this much more.
    Add(Amount),
}

impl Wish {
    /// How much of it is set aside.
    #[must_use]
    pub const fn taken(self) -> Amount {
        match self {
            Self::Take(amount) => amount,
            Self::Add(_) => Amount::ZERO,
        }
    }
}

/// The answer to a [`Wish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurseDecision {
    /// It is granted, and what is taken is set aside.
    Held,
    /// Not now; but it would be there if what is set aside came back.
    Wait,
    /// It cannot be, whatever comes back. Holds what the wallet has, in minor units.
    Refused(Amount),
}

/// One currency of a wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purse {
    newest: Receipt,
    /// Whether `newest` was learned from a commit since the read under way began.
    learned: bool,
    /// Set aside for records whose fate is open.
    aside: Amount,
}

impl Default for Purse {
    fn default() -> Self {
        Self::new(Receipt::EMPTY)
    }
}

impl Purse {
    /// A purse as the store says it is, with nothing set aside.
    #[must_use]
    pub const fn new(newest: Receipt) -> Self {
        Self {
            newest,
            learned: false,
            aside: Amount::ZERO,
        }
    }

    /// What the newest receipt says.
    #[must_use]
    pub const fn newest(&self) -> Receipt {
        self.newest
    }

    /// What is set aside, in minor units.
    #[must_use]
    pub const fn aside(&self) -> Amount {
        self.aside
    }

    /// Whether the wish cannot be granted with what the wallet is known to hold, whatever comes back.
    #[must_use]
    pub fn refuses(&self, wish: Wish) -> bool {
        match wish {
            Wish::Take(amount) => self.newest.balance < amount,
            Wish::Add(amount) => {
                let filled = self.newest.balance.checked_add(amount);
                filled.is_none_or(|filled| filled > MAX_BALANCE)
            }
        }
    }

    /// Grants the wish if that can be, and sets aside what it takes.
    pub fn hold(&mut self, wish: Wish) -> PurseDecision {
        let taken = wish.taken();
        assert!(taken >= Amount::ZERO, "a hold takes money, it does not make any");
        if self.refuses(wish) {
            return PurseDecision::Refused(self.newest.balance);
        }
        match self.aside.checked_add(taken) {
            Some(aside) if taken == Amount::ZERO || aside <= self.newest.balance => {
                self.aside = aside;
                PurseDecision::Held
            }
            _ => PurseDecision::Wait,
        }
    }

    /// What was set aside is spent; the receipt says what is left.
    pub fn settle(&mut self, amount: Amount, receipt: Option<Receipt>) {
        self.release(amount);
        if let Some(receipt) = receipt {
            self.learn(receipt);
        }
    }

    /// What was set aside comes back.
    pub fn release(&mut self, amount: Amount) {
        let aside = self
            .aside
            .checked_sub(amount)
            .filter(|aside| *aside >= Amount::ZERO);
        self.aside = aside.unwrap_or_else(|| panic!("released {amount:?} of {:?} set aside", self.aside));
    }

    /// A commit told of the wallet; what is older than what is known is ignored.
    pub const fn learn(&mut self, receipt: Receipt) {
        if receipt.sequence > self.newest.sequence {
            self.newest = receipt;
            self.learned = true;
        }
    }

    /// The store is about to be read.
    pub const fn read_begins(&mut self) {
        self.learned = false;
    }

    /// A read told of the wallet. It counts, whatever was known before it began: a store that fell back behind what it had
    /// said is believed. What a commit told meanwhile may be newer than the read.
    pub const fn believe(&mut self, read: Receipt) {
        if !self.learned || read.sequence > self.newest.sequence {
            self.newest = read;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minor(amount: i64) -> Amount {
        Amount::from_minor(amount)
    }

    fn receipt(sequence: i64, balance: i64) -> Receipt {
        Receipt {
            sequence,
            balance: minor(balance),
        }
    }

    #[test]
    fn holds_until_nothing_is_left_then_waits_for_what_is_set_aside() {
        let mut purse = Purse::new(receipt(1, 100));
        let answers = [60, 40, 1, 100, 101].map(|amount| purse.hold(Wish::Take(minor(amount))));
        assert_eq!(
            answers,
            [
                PurseDecision::Held,
                PurseDecision::Held,
                PurseDecision::Wait,
                PurseDecision::Wait,
                PurseDecision::Refused(minor(100))
            ]
        );
    }

    #[test]
    fn a_released_hold_can_be_held_again() {
        let mut purse = Purse::new(receipt(1, 100));
        assert_eq!(purse.hold(Wish::Take(minor(100))), PurseDecision::Held);
        purse.release(minor(100));
        assert_eq!(purse.hold(Wish::Take(minor(100))), PurseDecision::Held);
    }

    #[test]
    fn a_settled_hold_is_spent() {
        let mut purse = Purse::new(receipt(1, 100));
        assert_eq!(purse.hold(Wish::Take(minor(70))), PurseDecision::Held);
        purse.settle(minor(70), Some(receipt(2, 30)));
        assert_eq!(
            purse.hold(Wish::Take(minor(31))),
            PurseDecision::Refused(minor(30))
        );
        assert_eq!(purse.hold(Wish::Take(minor(30))), PurseDecision::Held);
    }

    #[test]
    fn an_older_receipt_is_ignored() {
        let mut purse = Purse::new(receipt(5, 10));
        purse.learn(receipt(4, 1_000));
        assert_eq!(purse.newest(), receipt(5, 10));
        purse.learn(receipt(6, 1_000));
        assert_eq!(purse.newest(), receipt(6, 1_000));
    }

    #[test]
    fn a_read_counts_unless_a_commit_told_of_something_newer_meanwhile() {
        // What was known, what commits told while the read was under way, what the read said, what is known then.
        let table = [
            (receipt(5, 10), vec![], receipt(6, 20), receipt(6, 20)),
            (receipt(5, 10), vec![], receipt(3, 20), receipt(3, 20)),
            (receipt(5, 10), vec![receipt(6, 9)], receipt(5, 10), receipt(6, 9)),
            (receipt(5, 10), vec![receipt(6, 9)], receipt(7, 8), receipt(7, 8)),
            (
                receipt(5, 10),
                vec![receipt(4, 11)],
                receipt(5, 10),
                receipt(5, 10),
            ),
            (
                receipt(5, 10),
                vec![receipt(4, 11)],
                receipt(3, 12),
                receipt(3, 12),
            ),
        ];
        for (known, told, read, then) in table {
            let mut purse = Purse::default();
            purse.learn(known);
            purse.read_begins();
            told.iter().for_each(|told| purse.learn(*told));
            purse.believe(read);
            assert_eq!(purse.newest(), then, "{known:?}, {told:?}, {read:?}");
        }
    }

    #[test]
    fn a_wallet_is_filled_to_its_limit_and_no_further() {
        let limit = MAX_BALANCE.minor();
        let table = [
            (0, limit, PurseDecision::Held),
            (0, limit + 1, PurseDecision::Refused(minor(0))),
            (limit, 0, PurseDecision::Held),
            (limit, 1, PurseDecision::Refused(minor(limit))),
            (limit + 7, 1, PurseDecision::Refused(minor(limit + 7))),
            (1, i64::MAX, PurseDecision::Refused(minor(1))),
        ];
        for (balance, more, expected) in table {
            let mut purse = Purse::new(receipt(1, balance));
            assert_eq!(
                purse.hold(Wish::Add(minor(more))),
                expected,
                "{balance} and {more}"
            );
            assert_eq!(purse.aside(), Amount::ZERO);
        }
    }

    #[test]
    fn sums_that_cannot_be_counted_wait_instead_of_wrapping() {
        let mut purse = Purse::new(receipt(1, i64::MAX));
        assert_eq!(purse.hold(Wish::Take(minor(i64::MAX))), PurseDecision::Held);
        assert_eq!(purse.hold(Wish::Take(minor(i64::MAX))), PurseDecision::Wait);
    }

    #[test]
    #[should_panic(expected = "set aside")]
    fn a_hold_is_not_released_twice() {
        let mut purse = Purse::new(receipt(1, 100));
        assert_eq!(purse.hold(Wish::Take(minor(10))), PurseDecision::Held);
        purse.release(minor(10));
        purse.release(minor(10));
    }
}
