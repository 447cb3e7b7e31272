//! What a wallet actor is asked and told.

use actix::Message;

use super::Funds;
use crate::domain::ledger::Receipt;
use crate::domain::money::{Amount, Currency};
use crate::supervisor::{Queued, Reply};
use crate::wallet::purse::Wish;

/// Sets money aside, or asks whether there is room for more.
#[derive(Debug, Message)]
#[rtype(result = "Reply<Funds>")]
pub(in crate::wallet) struct HoldMoney {
    pub(in crate::wallet) currency: Currency,
    pub(in crate::wallet) wish: Wish,
    pub(in crate::wallet) queued: Queued,
}

/// What became of money that was set aside.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::wallet) struct MoneyResolved {
    pub(in crate::wallet) currency: Currency,
    pub(in crate::wallet) amount: Amount,
    pub(in crate::wallet) fate: MoneyFate,
    pub(in crate::wallet) queued: Queued,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::wallet) enum MoneyFate {
    /// It was spent; the receipt says what is left.
    Settled(Option<Receipt>),
    Released,
    /// It came back, since the wallet holds less than was thought.
    Refuted,
}
