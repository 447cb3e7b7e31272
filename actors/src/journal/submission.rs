//! Submitted records and their completion: holds, idempotency key, admission and reply channel.
//!
//! These live as long as the record's outcome is open, independently of the request that submitted it.

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;
use tracing::Span;
use vouchsafe_domain::idempotency::StoredResponse;
use vouchsafe_domain::ledger::WalletState;

use crate::idempotency::KeyGuard;
use crate::ports::record::{Record, StaleReason, Verdict};

/// A reservation in memory for a record. Dropping it releases it.
pub trait Hold: Send {
    /// The record is committed. `wallet` is the newest state of the wallet that it posted to.
    fn settle(self: Box<Self>, wallet: Option<WalletState>);

    /// The commit found that the reserved state no longer exists.
    fn invalidate(self: Box<Self>, stale: StaleReason);
}

/// The resources of an open record: its idempotency key and its admission permit.
#[derive(Debug)]
pub struct Ticket {
    /// The key of the request.
    pub key: KeyGuard,
    /// Bounds the number of records in flight.
    pub admission: OwnedSemaphorePermit,
}

/// The outcome of a record, as its flow receives it.
#[derive(Debug)]
pub enum RecordOutcome {
    /// Committed. The record is returned so that the thread that allocated it frees it: freeing another
    /// thread's memory is slow.
    Committed(Box<Record>),
    /// The key already had this response.
    KeyKnown(StoredResponse),
    /// Not written: decide again with the returned ticket.
    Stale(StaleReason, Ticket),
    /// Not written, and writing it again would fail again.
    Poisoned,
    /// Not written because of a transient condition.
    Busy,
}

pub(super) struct Submission {
    pub(super) record: Record,
    pub(super) completion: Completion,
}

/// What depends on the record's outcome.
pub(super) struct Completion {
    pub(super) holds: Vec<Box<dyn Hold>>,
    pub(super) ticket: Ticket,
    pub(super) reply: oneshot::Sender<RecordOutcome>,
    pub(super) submitted_at: Instant,
    /// The span of the request, for log lines.
    pub(super) span: Span,
    /// Covers submission to verdict.
    pub(super) commit_span: Span,
}

impl Completion {
    /// Whether the flow has stopped waiting.
    pub(super) fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    /// Records the batch in the span.
    pub(super) fn record_batch(&self, batch: i64, records: i64) {
        self.commit_span.record("batch.number", batch);
        self.commit_span.record("batch.records", records);
    }

    /// Applies the verdict of a committed batch.
    pub(super) fn settle(self, record: Record, verdict: Verdict) {
        self.end(verdict.label(), |holds, ticket| match verdict {
            Verdict::Committed(wallet) => {
                holds.into_iter().for_each(|hold| hold.settle(wallet));
                let stored = StoredResponse {
                    fingerprint: record.claim.fingerprint,
                    response: record.claim.response.clone(),
                };
                ticket.key.store(stored);
                RecordOutcome::Committed(Box::new(record))
            }
            Verdict::KeyKnown(stored) => {
                drop(holds);
                ticket.key.resolve(stored.clone());
                RecordOutcome::KeyKnown(stored)
            }
            Verdict::Stale(stale) => {
                holds.into_iter().for_each(|hold| hold.invalidate(stale));
                RecordOutcome::Stale(stale, ticket)
            }
        });
    }

    /// Ends a record that was certainly not written. Holds and key are released before the flow is notified.
    pub(super) fn abort(self, outcome: RecordOutcome) {
        self.end("not_written", |holds, ticket| {
            drop((holds, ticket));
            outcome
        });
    }

    /// Ends the spans, ends the holds and the key by `end`, and notifies the flow of the outcome.
    fn end(self, verdict: &str, end: impl FnOnce(Vec<Box<dyn Hold>>, Ticket) -> RecordOutcome) {
        let Self {
            holds,
            ticket,
            reply,
            submitted_at: _,
            span,
            commit_span,
        } = self;
        let _entered = span.enter();
        commit_span.record("verdict", verdict);
        drop(commit_span);
        // The flow may have stopped waiting; it finds the response under its key.
        drop(reply.send(end(holds, ticket)));
    }
}
