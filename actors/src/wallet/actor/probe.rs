//! What tests ask of a wallet actor: to show a purse, and to die.

use actix::{Handler, Message};

use super::WalletActor;
use crate::domain::money::Currency;
use crate::wallet::purse::Purse;

/// Shows the purse of a currency.
#[derive(Debug, Message)]
#[rtype(result = "Option<Purse>")]
pub(in crate::wallet) struct Show(pub(in crate::wallet) Currency);

impl Handler<Show> for WalletActor {
    type Result = Option<Purse>;

    fn handle(&mut self, Show(currency): Show, _: &mut Self::Context) -> Self::Result {
        self.purses.get(&currency).copied()
    }
}

/// Kills the actor in the middle of its work.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::wallet) struct Panic;

impl Handler<Panic> for WalletActor {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("a wallet actor was told to panic");
    }
}
