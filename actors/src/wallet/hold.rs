//! Money set aside for one record: a token that is settled, refuted, or gives itself back.

use crate::domain::ledger::Receipt;
use crate::domain::money::{Amount, Currency};
use crate::journal::{Hold, Stale};
use crate::supervisor::{Found, OpenHold};

use super::actor::WalletActor;
use super::actor::message::{MoneyFate, MoneyResolved};

/// Money set aside. Dropping it gives the money back to the wallet.
#[derive(Debug)]
pub struct WalletHold {
    wallet: Found<WalletActor>,
    currency: Currency,
    amount: Amount,
    resolved: bool,
    _open: OpenHold,
}

impl WalletHold {
    pub(super) fn new(wallet: Found<WalletActor>, currency: Currency, amount: Amount) -> Self {
        let open = wallet.lineage.holds.begin();
        Self {
            wallet,
            currency,
            amount,
            resolved: false,
            _open: open,
        }
    }

    /// Tells the wallet, once. To a wallet that has died it says nothing: the next incarnation reads the store.
    #[allow(clippy::disallowed_methods)] // no answer is needed, and a dead incarnation has nothing to settle
    fn resolve(&mut self, fate: MoneyFate) {
        if std::mem::replace(&mut self.resolved, true) {
            return;
        }
        let queued = self.wallet.lineage.meter.queue();
        self.wallet.addr.do_send(MoneyResolved {
            currency: self.currency,
            amount: self.amount,
            fate,
            queued,
        });
    }
}

impl Hold for WalletHold {
    fn settle(mut self: Box<Self>, receipt: Option<Receipt>) {
        self.resolve(MoneyFate::Settled(receipt));
    }

    fn refute(mut self: Box<Self>, stale: Stale) {
        self.resolve(if stale.doubts_balance() {
            MoneyFate::Refuted
        } else {
            MoneyFate::Released
        });
    }
}

impl Drop for WalletHold {
    fn drop(&mut self) {
        self.resolve(MoneyFate::Released);
    }
}
