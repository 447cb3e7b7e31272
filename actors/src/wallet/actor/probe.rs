//! Test messages of the wallet actor: inspect a purse, panic.

use actix::{Handler, Message};
use vouchsafe_domain::money::Currency;

use super::WalletActor;
use crate::wallet::purse::Purse;

/// Returns the purse of a currency.
#[derive(Debug, Message)]
#[rtype(result = "Option<Purse>")]
pub(in crate::wallet) struct GetPurse(pub(in crate::wallet) Currency);

impl Handler<GetPurse> for WalletActor {
    type Result = Option<Purse>;

    fn handle(&mut self, GetPurse(currency): GetPurse, _: &mut Self::Context) -> Self::Result {
        self.purses.get(&currency).copied()
    }
}

#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::wallet) struct Panic;

impl Handler<Panic> for WalletActor {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("wallet actor panics on request of a test");
    }
}
