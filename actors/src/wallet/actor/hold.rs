//! Wallet hold: money reserved for one record, until it is settled, invalidated or released.

use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::{Amount, Currency};

use super::WalletActor;
use super::message::{MoneyResolution, ResolveMoney};
use crate::journal::Hold;
use crate::ports::record::StaleReason;
use crate::supervisor::{ActorRef, OpenHold};

/// Held money. Dropping it releases the money to the wallet.
#[derive(Debug)]
pub struct WalletHold {
    wallet: ActorRef<WalletActor>,
    currency: Currency,
    amount: Amount,
    resolved: bool,
    _open: OpenHold,
}

impl WalletHold {
    pub(super) fn new(wallet: ActorRef<WalletActor>, currency: Currency, amount: Amount) -> Self {
        let open = wallet.lineage.holds.open_hold();
        Self {
            wallet,
            currency,
            amount,
            resolved: false,
            _open: open,
        }
    }

    /// Notifies the wallet, once. A message to a dead actor is lost, which is harmless: the next incarnation
    /// reads the store.
    #[allow(clippy::disallowed_methods)] // no reply is needed, and a dead actor has no state to settle
    fn resolve(&mut self, resolution: MoneyResolution) {
        if std::mem::replace(&mut self.resolved, true) {
            return;
        }
        let queued = self.wallet.lineage.metrics.enqueue();
        self.wallet.addr.do_send(ResolveMoney {
            currency: self.currency,
            amount: self.amount,
            resolution,
            slot: queued,
        });
    }
}

impl Hold for WalletHold {
    fn settle(mut self: Box<Self>, state: Option<WalletState>) {
        self.resolve(MoneyResolution::Settled(state));
    }

    fn invalidate(mut self: Box<Self>, stale: StaleReason) {
        self.resolve(if stale.is_balance_suspect() {
            MoneyResolution::Invalidated
        } else {
            MoneyResolution::Released
        });
    }
}

impl Drop for WalletHold {
    fn drop(&mut self) {
        self.resolve(MoneyResolution::Released);
    }
}
