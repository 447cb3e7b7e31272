//! Batches on their way to the in-memory server.

use vouchsafe_actors::ports::record::Record;

use super::tables::{LaneId, Owner};

/// Identity of a batch: writer, lane, generation, number.
#[derive(Debug, Clone)]
pub(super) struct BatchHeader {
    pub(super) owner: Owner,
    pub(super) lane: LaneId,
    pub(super) generation: i64,
    pub(super) batch: i64,
}

/// A batch on its way to the server.
#[derive(Debug, Clone)]
pub(super) struct SentBatch {
    pub(super) header: BatchHeader,
    pub(super) records: Vec<Record>,
}
