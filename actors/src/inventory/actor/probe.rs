//! What tests ask of an inventory actor: to show its shelf, and to die.

use actix::{Handler, Message, MessageResult};

use super::InventoryActor;
use crate::inventory::shelf::Shelf;

/// Shows the shelf.
#[derive(Debug, Message)]
#[rtype(result = "Shelf")]
pub(in crate::inventory) struct Show;

impl Handler<Show> for InventoryActor {
    type Result = MessageResult<Show>;

    fn handle(&mut self, _: Show, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.shelf.clone())
    }
}

/// Kills the actor in the middle of its work.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::inventory) struct Panic;

impl Handler<Panic> for InventoryActor {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("an inventory actor was told to panic");
    }
}
