//! Messages of the delivery actor.

use actix::Message;

use crate::supervisor::MailboxSlot;

/// There may be something to deliver.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::delivery) struct Wake {
    pub(in crate::delivery) _queued: MailboxSlot,
}

/// Start no more attempts; release the lease once those in flight have ended.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::delivery) struct ReleaseLease {
    pub(in crate::delivery) _queued: MailboxSlot,
}
