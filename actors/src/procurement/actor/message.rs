//! Messages of the procurement actor.

use actix::Message;

use crate::supervisor::MailboxSlot;

/// Poll for due purchases.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::procurement) struct Poll {
    /// Maximum number of purchases in flight.
    pub(in crate::procurement) concurrency: usize,
    pub(in crate::procurement) slot: MailboxSlot,
}
