//! Messages of the wallet actor.

use actix::Message;
use vouchsafe_domain::ledger::WalletState;
use vouchsafe_domain::money::{Amount, Currency};

use super::Funds;
use crate::supervisor::{MailboxSlot, Reply};
use crate::wallet::purse::ReserveRequest;

/// Holds a debit, or checks the room for a credit.
#[derive(Debug, Message)]
#[rtype(result = "Reply<Funds>")]
pub(in crate::wallet) struct HoldMoney {
    pub(in crate::wallet) currency: Currency,
    pub(in crate::wallet) request: ReserveRequest,
    pub(in crate::wallet) slot: MailboxSlot,
}

#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::wallet) struct ResolveMoney {
    pub(in crate::wallet) currency: Currency,
    pub(in crate::wallet) amount: Amount,
    pub(in crate::wallet) resolution: MoneyResolution,
    pub(in crate::wallet) slot: MailboxSlot,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::wallet) enum MoneyResolution {
    /// Spent; with the wallet's state after the commit.
    Settled(Option<WalletState>),
    Released,
    /// Released because the wallet holds less than expected.
    Invalidated,
}
