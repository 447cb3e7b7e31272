//! What a wallet may spend in one currency: its newest known balance, less what is set aside. Pure.
//!
//! Rule: what can be spent goes down at the decision and up only after a commit. A refusal stands only if it would stand
//! with everything that is set aside given back.

use crate::domain::ledger::Receipt;
use crate::domain::money::Amount;

/// The answer to "set this much aside".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is set aside.
    Held,
    /// Not now; but it would be there if what is set aside came back.
    Wait,
    /// It is not there, whatever comes back. Holds what the wallet has, in minor units.
    Short(Amount),
}

/// One currency of a wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purse {
    newest: Receipt,
    /// Set aside for records whose fate is open.
    aside: Amount,
}

impl Purse {
    /// A purse as the store says it is, with nothing set aside.
    #[must_use]
    pub const fn new(newest: Receipt) -> Self {
        Self {
            newest,
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

    /// Sets `amount` aside if it can be spent. `amount` is not negative.
    pub fn hold(&mut self, amount: Amount) -> Decision {
        assert!(amount >= Amount::ZERO, "a hold takes money, it does not make any");
        if self.newest.balance < amount {
            return Decision::Short(self.newest.balance);
        }
        match self.aside.checked_add(amount) {
            Some(aside) if aside <= self.newest.balance => {
                self.aside = aside;
                Decision::Held
            }
            _ => Decision::Wait,
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

    /// A commit or a read told of the wallet; what is older than what is known is ignored.
    pub fn learn(&mut self, receipt: Receipt) {
        if receipt.sequence > self.newest.sequence {
            self.newest = receipt;
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
        let answers = [60, 40, 1, 100, 101].map(|amount| purse.hold(minor(amount)));
        assert_eq!(
            answers,
            [
                Decision::Held,
                Decision::Held,
                Decision::Wait,
                Decision::Wait,
                Decision::Short(minor(100))
            ]
        );
    }

    #[test]
    fn a_released_hold_can_be_held_again() {
        let mut purse = Purse::new(receipt(1, 100));
        assert_eq!(purse.hold(minor(100)), Decision::Held);
        purse.release(minor(100));
        assert_eq!(purse.hold(minor(100)), Decision::Held);
    }

    #[test]
    fn a_settled_hold_is_spent() {
        let mut purse = Purse::new(receipt(1, 100));
        assert_eq!(purse.hold(minor(70)), Decision::Held);
        purse.settle(minor(70), Some(receipt(2, 30)));
        assert_eq!(purse.hold(minor(31)), Decision::Short(minor(30)));
        assert_eq!(purse.hold(minor(30)), Decision::Held);
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
    fn sums_that_cannot_be_counted_wait_instead_of_wrapping() {
        let mut purse = Purse::new(receipt(1, i64::MAX));
        assert_eq!(purse.hold(minor(i64::MAX)), Decision::Held);
        assert_eq!(purse.hold(minor(i64::MAX)), Decision::Wait);
    }

    #[test]
    #[should_panic(expected = "set aside")]
    fn a_hold_is_not_released_twice() {
        let mut purse = Purse::new(receipt(1, 100));
        assert_eq!(purse.hold(minor(10)), Decision::Held);
        purse.release(minor(10));
        purse.release(minor(10));
    }
}
