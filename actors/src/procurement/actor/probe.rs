//! Test message of the procurement actor: panic.

use actix::{Handler, Message};

use super::ProcurementActor;

#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::procurement) struct Panic;

impl Handler<Panic> for ProcurementActor {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Self::Context) {
        panic!("procurement actor panics on request of a test");
    }
}
