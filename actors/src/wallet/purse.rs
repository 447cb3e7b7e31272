//! Purse: the spendable balance of a wallet in one currency, i.e. its newest known balance less open holds.
//! Pure.
//!
//! The spendable balance falls with a decision and rises only with a commit. A refusal is final only if it
//! would hold with every open hold released.

use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::Amount;

/// Maximum balance that credits may reach, in minor units: a ninth of the range of 64 bits. The rest is
/// headroom for concurrent credits and refunds, so that no commit fails on overflow.
pub const MAX_BALANCE: Amount = Amount::from_minor(1_000_000_000_000_000_000);

/// A request to a purse. Amounts are in minor units and not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReserveRequest {
    /// Hold this amount. Zero holds nothing; the flow then learns the wallet's state from the commit.
    Debit(Amount),
    /// Check that the balance may grow by this amount.
    Credit(Amount),
}

impl ReserveRequest {
    /// The amount to hold.
    #[must_use]
    pub const fn debit_amount(self) -> Amount {
        match self {
            Self::Debit(amount) => amount,
            Self::Credit(_) => Amount::ZERO,
        }
    }
}

/// The decision on a [`ReserveRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurseDecision {
    /// Granted; the debit is held.
    Held,
    /// Not possible now, but possible if open holds are released.
    Wait,
    /// Not possible even if every hold is released. Contains the balance in minor units.
    Refused(Amount),
}

/// One currency of a wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purse {
    newest: WalletState,
    /// Whether `newest` comes from a commit after the read in flight started.
    updated_since_read: bool,
    /// Held for records in flight.
    held: Amount,
}

impl Default for Purse {
    fn default() -> Self {
        Self::new(WalletState::EMPTY)
    }
}

impl Purse {
    /// A purse without holds.
    #[must_use]
    pub const fn new(newest: WalletState) -> Self {
        Self {
            newest,
            updated_since_read: false,
            held: Amount::ZERO,
        }
    }

    /// The newest known state of the wallet.
    #[must_use]
    pub const fn newest(&self) -> WalletState {
        self.newest
    }

    /// The held amount in minor units.
    #[must_use]
    pub const fn held(&self) -> Amount {
        self.held
    }

    /// Whether the request cannot be granted even if every hold is released.
    #[must_use]
    pub fn can_never_grant(&self, request: ReserveRequest) -> bool {
        match request {
            ReserveRequest::Debit(amount) => self.newest.balance < amount,
            ReserveRequest::Credit(amount) => {
                let filled = self.newest.balance.checked_add(amount);
                filled.is_none_or(|filled| filled > MAX_BALANCE)
            }
        }
    }

    /// Decides a request and holds its debit.
    pub fn hold(&mut self, request: ReserveRequest) -> PurseDecision {
        let debit = request.debit_amount();
        assert!(debit >= Amount::ZERO, "a hold must not be negative");
        if self.can_never_grant(request) {
            return PurseDecision::Refused(self.newest.balance);
        }
        match self.held.checked_add(debit) {
            Some(held) if debit == Amount::ZERO || held <= self.newest.balance => {
                self.held = held;
                PurseDecision::Held
            }
            _ => PurseDecision::Wait,
        }
    }

    /// The held amount was spent; `state` is the wallet's state after the commit.
    pub fn settle(&mut self, amount: Amount, state: Option<WalletState>) {
        self.release(amount);
        if let Some(state) = state {
            self.apply_commit(state);
        }
    }

    /// Releases a held amount.
    pub fn release(&mut self, amount: Amount) {
        let held = self.held.checked_sub(amount).filter(|held| *held >= Amount::ZERO);
        self.held = held.unwrap_or_else(|| panic!("released {amount:?}, but only {:?} is held", self.held));
    }

    /// Applies the state that a commit returned; an older state is ignored.
    pub fn apply_commit(&mut self, state: WalletState) {
        assert!(
            state.balance >= Amount::ZERO,
            "a commit never leaves a wallet below zero"
        );
        if state.sequence > self.newest.sequence {
            self.newest = state;
            self.updated_since_read = true;
        }
    }

    /// A read of the store starts.
    pub const fn start_read(&mut self) {
        self.updated_since_read = false;
    }

    /// Applies the state that a read returned, even an older one than known before the read: a store that
    /// fell back is believed. A state that a commit returned after the read started may be newer than the
    /// read.
    pub const fn apply_read(&mut self, read: WalletState) {
        if !self.updated_since_read || read.sequence > self.newest.sequence {
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

    fn state(sequence: i64, balance: i64) -> WalletState {
        WalletState {
            sequence,
            balance: minor(balance),
        }
    }

    #[test]
    fn purse_holds_its_balance_then_waits_for_released_holds() {
        let mut purse = Purse::new(state(1, 100));
        let decisions = [60, 40, 1, 100, 101].map(|amount| purse.hold(ReserveRequest::Debit(minor(amount))));
        assert_eq!(
            decisions,
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
    fn released_amount_can_be_held_again() {
        let mut purse = Purse::new(state(1, 100));
        assert_eq!(purse.hold(ReserveRequest::Debit(minor(100))), PurseDecision::Held);
        purse.release(minor(100));
        assert_eq!(purse.hold(ReserveRequest::Debit(minor(100))), PurseDecision::Held);
    }

    #[test]
    fn settled_hold_is_spent() {
        let mut purse = Purse::new(state(1, 100));
        assert_eq!(purse.hold(ReserveRequest::Debit(minor(70))), PurseDecision::Held);
        purse.settle(minor(70), Some(state(2, 30)));
        assert_eq!(
            purse.hold(ReserveRequest::Debit(minor(31))),
            PurseDecision::Refused(minor(30))
        );
        assert_eq!(purse.hold(ReserveRequest::Debit(minor(30))), PurseDecision::Held);
    }

    #[test]
    fn older_state_is_ignored() {
        let mut purse = Purse::new(state(5, 10));
        purse.apply_commit(state(4, 1_000));
        assert_eq!(purse.newest(), state(5, 10));
        purse.apply_commit(state(6, 1_000));
        assert_eq!(purse.newest(), state(6, 1_000));
    }

    #[test]
    fn read_applies_unless_a_newer_commit_arrived_meanwhile() {
        // Known state, states from commits during the read, state from the read, expected state.
        let table = [
            (state(5, 10), vec![], state(6, 20), state(6, 20)),
            (state(5, 10), vec![], state(3, 20), state(3, 20)),
            (state(5, 10), vec![state(6, 9)], state(5, 10), state(6, 9)),
            (state(5, 10), vec![state(6, 9)], state(7, 8), state(7, 8)),
            (state(5, 10), vec![state(4, 11)], state(5, 10), state(5, 10)),
            (state(5, 10), vec![state(4, 11)], state(3, 12), state(3, 12)),
        ];
        for (known, committed, read, expected) in table {
            let mut purse = Purse::default();
            purse.apply_commit(known);
            purse.start_read();
            committed.iter().for_each(|state| purse.apply_commit(*state));
            purse.apply_read(read);
            assert_eq!(purse.newest(), expected, "{known:?}, {committed:?}, {read:?}");
        }
    }

    #[test]
    fn credit_beyond_the_maximum_balance_is_refused() {
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
            let mut purse = Purse::new(state(1, balance));
            assert_eq!(
                purse.hold(ReserveRequest::Credit(minor(more))),
                expected,
                "{balance} and {more}"
            );
            assert_eq!(purse.held(), Amount::ZERO);
        }
    }

    #[test]
    fn overflowing_hold_waits() {
        let mut purse = Purse::new(state(1, i64::MAX));
        assert_eq!(
            purse.hold(ReserveRequest::Debit(minor(i64::MAX))),
            PurseDecision::Held
        );
        assert_eq!(
            purse.hold(ReserveRequest::Debit(minor(i64::MAX))),
            PurseDecision::Wait
        );
    }

    #[test]
    #[should_panic(expected = "is held")]
    fn releasing_a_hold_twice_panics() {
        let mut purse = Purse::new(state(1, 100));
        assert_eq!(purse.hold(ReserveRequest::Debit(minor(10))), PurseDecision::Held);
        purse.release(minor(10));
        purse.release(minor(10));
    }
}
