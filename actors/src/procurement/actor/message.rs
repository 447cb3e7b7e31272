//! What a procurement actor is told.

use actix::Message;

use crate::supervisor::Queued;

/// Time to look for what is due.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::procurement) struct Look {
    /// How many purchases may be under way with the vendor.
    pub(in crate::procurement) concurrency: usize,
    pub(in crate::procurement) queued: Queued,
}
