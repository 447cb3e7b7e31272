//! What tests ask of a procurement actor: to die.

use actix::{Handler, Message};

use super::ProcurementActor;

/// Kills the actor in the middle of its work.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::procurement) struct Panic;

impl Handler<Panic> for ProcurementActor {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("a procurement actor was told to panic");
    }
}
