//! Request to replay webhook events.

use time::OffsetDateTime;

use crate::ids::EventId;

/// Events to send again.
#[derive(Debug, Clone, Copy)]
pub enum ReplayRequest {
    Event(EventId),
    /// Events committed from the first timestamp (inclusive) to the second (exclusive).
    TimeRange(OffsetDateTime, OffsetDateTime),
}
