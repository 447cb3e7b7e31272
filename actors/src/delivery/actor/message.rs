//! What a delivery actor is told.

use actix::Message;

use crate::supervisor::Queued;

/// There may be something to deliver.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::delivery) struct Wake {
    pub(in crate::delivery) _queued: Queued,
}

/// Nothing new is to be sent; the lease is given back when what is under way has ended.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::delivery) struct Rest {
    pub(in crate::delivery) _queued: Queued,
}
