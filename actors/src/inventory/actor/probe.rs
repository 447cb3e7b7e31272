//! Test messages of the inventory actor: inspect the shelf, panic.

use actix::{Handler, Message, MessageResult};

use super::InventoryActor;
use crate::inventory::shelf::Shelf;

#[derive(Debug, Message)]
#[rtype(result = "Shelf")]
pub(in crate::inventory) struct GetShelf;

impl Handler<GetShelf> for InventoryActor {
    type Result = MessageResult<GetShelf>;

    fn handle(&mut self, _: GetShelf, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.shelf.clone())
    }
}

#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::inventory) struct Panic;

impl Handler<Panic> for InventoryActor {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("inventory actor panics on request of a test");
    }
}
