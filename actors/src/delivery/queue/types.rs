//! Input and output of a delivery queue.

use vouchsafe_domain::delivery::{DeliveryUpdate, EndpointHealth, QueuedDelivery};

/// A delivery read from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadedDelivery {
    pub delivery: QueuedDelivery,
    /// Whether it waits for an earlier event of its order that has a row.
    pub is_blocked: bool,
}

/// What to read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadRequest {
    /// Rows that are due, and up to `limit` events past `after`, with the rows among them in their positions.
    Due { after: i64, limit: usize },
    /// The deliveries of a failing endpoint, due or not: up to `limit` rows up to event `after` in the order
    /// of their next attempts, then up to `limit` events and rows past it. A row that waits for an earlier
    /// event of its order is left out.
    Oldest { after: i64, limit: usize },
}

impl ReadRequest {
    /// The number of the last event before the page.
    pub(super) const fn after(self) -> i64 {
        let (Self::Due { after, .. } | Self::Oldest { after, .. }) = self;
        after
    }
}

/// Changes to write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueChanges {
    /// Every event up to this number is delivered, has a row, or was not subscribed to.
    pub cursor: i64,
    pub health: EndpointHealth,
    /// Updates of deliveries that have, or get, a row.
    pub updates: Vec<DeliveryUpdate>,
    /// The endpoint has recovered: rows that wait for their next attempt become due.
    pub recovered: bool,
}
